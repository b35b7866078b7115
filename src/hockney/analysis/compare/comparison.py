"""Compares two stored runs series by series, with launches as the unit of replication (docs/methods.md).

Those of health runs are of hosts and links (analysis/host_series.py), which have no machine state.

A launch's value is the median of its measurements' medians in one machine state: that of the tables of base, else of
new, where both runs have it. States are classified over the measurements of both runs together, since one that was slow
throughout shows it only next to the other. Runs on two CPU models are classified separately, and their states are
matched by name. The figures of a series are those of each run's own frame, with its names of states.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hockney.analysis.compare.differences import contention_of, differences, is_unchanged, renamed
from hockney.analysis.compare.drift import Drift, Probes
from hockney.analysis.compare.values import Comparison, Difference, Reason, ReasonCode, SeriesChange, Verdict
from hockney.analysis.health.faults import weak_hosts
from hockney.analysis.host_series import series_of
from hockney.analysis.repeat import INTERLEAVED, ends_early
from hockney.errors import UsageError
from hockney.model import DIGITS, NOT_MEASURED, MachineProbe, Point, PointStatus, RunInfo
from hockney.results.runs import Run, Series, states_together
from hockney.results.store import Store
from hockney.stats import CONFIDENCE, State, state_order
from hockney.stats.sequence import VALUES_MIN, shifts_at_any_time
from hockney.stats.shift import LAUNCHES_MIN, Shift, can_decide, shifts
from hockney.stats.states import is_state

_Launches = Mapping[int, Sequence[float]]  # by number, the medians of a launch's measurements in ns
Entry = tuple[int, Point]
"""A variant, by its number (base is 0), at a point, as base names it."""
Ratios = Mapping[Entry, Sequence[float]]
"""Of each entry its times over base's, one per launch."""
Quadruples = Mapping[int, Mapping[int, tuple[list[float], list[float]]]]  # by launch and round, ns of base and of new
PAIRS_MIN = 6  # launch pairs of two runs measured in alternation, to decide
MARGIN_OF_PAIRS = 1.01  # the size of the environment alone moves times by some tenths of a per cent
BETWEEN_RUNS = 0.04  # the standard deviation of a ratio of two unchanged runs, where ranks sleep (docs/methods.md)


@dataclass
class RunSeries:
    """One series in one run.

    `launches`: the numbers of those with samples. `times_ns`: by machine state of both runs together, then launch;
    `names`: what the run alone calls these states. `digits`: the rounding error of imported times, as a fraction.
    """

    series: Series
    launches: set[int]
    times_ns: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    names: dict[str | None, str] = field(default_factory=dict)
    digits: float = 0.0

    def states_against(self, other: RunSeries) -> list[str]:
        """Its states in order; `near, contended compared with run 2` where the run alone has another name."""
        states = sorted(self.times_ns, key=state_order)
        alike = (is_state(state, State(self.names[state], None)) or state == self.names[state] for state in states)
        compared = f" compared with run {other.series.run.id}"
        return [state if is_alike else state + compared for state, is_alike in zip(states, alike, strict=True)]


def compare_runs(
    store: Store, base_id: int, new_id: int, *, margin: float = 0.0, first_launch: int = 0, share: float = 1.0
) -> Comparison:
    """Compare every series of two runs, except those that both plans skipped.

    `margin`: the ratio of times that a difference must exceed (0: 1, in alternation 1.01). Launches of the new run
    before `first_launch` are ignored. `share`: of the error of all looks, as stats.shift has it. Raises UsageError if
    both are one run, or they have no series in common.
    """
    if base_id == new_id:
        raise UsageError(f"run {base_id} can't be compared with itself: name another one")
    with store.snapshot():
        runs = Run(store, base_id), Run(store, new_id)
        infos = runs[0].info, runs[1].info
        weak = weak_hosts(*runs)
        listed = series_of(runs[0], weak), series_of(runs[1], weak)
        are_ends = any(series.point.hosts for of_run in listed for series in of_run)
        states: list[dict[int, State]] = [{}, {}] if are_ends else states_together(*runs)
        pair_names = names_of_pair(*infos)
        margin = margin or (1.0 if pair_names is None else MARGIN_OF_PAIRS)
        names = pair_names or renamed(*({series.point.transport for series in run.series} for run in runs))
        base, base_probes = _read(runs[0], listed[0], states[0], names, 0)
        new, new_probes = _read(runs[1], listed[1], states[1], {}, first_launch)
    common = {
        point: sides
        for point, sides in ((point, (base[point], new[point])) for point in new if point in base)
        if any(side.launches or side.series.status is not PointStatus.SKIPPED for side in sides)
    }
    most = [max((len(series.launches) for series in of_run.values()), default=0) for of_run in (base, new)]
    if not common or not any(most):
        raise UsageError(
            f"runs {base_id} and {new_id} have no series in common that has samples: {_other_names(base, new)}"
            "name two of the same patterns, sizes and transports"
        )
    changed = differences(*runs, names)
    compared = {point: most_telling(*sides) for point, sides in common.items()}
    if pair_names is None:
        sleeping = {name for info in infos for name in info.facts.get("sleeping", ())}
        series = [
            _match(point, *sides, compared[point], BETWEEN_RUNS if point.transport in sleeping else 0.0)
            for point, sides in common.items()
        ]
        is_known = not any(info.is_imported for info in infos)  # imports do not show drift apart from their library
        drift_data = (base_probes, new_probes, sleeping) if is_known and is_unchanged(changed) else None
    else:
        changed = (*(Difference("transport", *pair) for pair in names.items()), *changed)
        early, drift_data = any(map(ends_early, infos)), None
        series = [_match_sides(point, *sides, early=early) for point, sides in common.items()]
    changes = []
    for change in judge(series, drift_data, margin, share):
        before, after = common[change.point]
        figures = [side.series.figures_in(side.names.get(compared[change.point])) for side in (before, after)]
        base_ns, new_ns = (figure[0].time.value if figure else None for figure in figures)
        shown = [each.series.shown for each in (before, after)]
        of_other = any(each and one and each[0].state != one.state for each, one in zip(figures, shown, strict=True))
        is_short = any(each.is_short for figure in figures for each in figure)
        launches = len(before.launches), len(after.launches)
        change = replace(change, base_ns=base_ns, new_ns=new_ns, is_short=is_short, is_of_other_state=of_other)
        changes.append(replace(change, launches=launches))
    named = sorted((pair for run in runs for pair in run.libraries.items()), key=lambda pair: pair[1] != "")
    return Comparison(
        base=base_id,
        new=new_id,
        launches=(most[0], most[1]),
        margin=margin,
        differences=changed,
        changes=tuple(changes),
        only_base=tuple(point for point in base if base[point].launches and point not in new),
        only_new=tuple(point for point in new if new[point].launches and point not in base),
        contention=contention_of(*runs),
        infos=infos,
        libraries=dict(named),  # those of imports are empty
        renamed=names,
        interleaved=pair_names is not None,
    )


def _other_names(base: Collection[Point], new: Collection[Point]) -> str:
    """The transports of both runs, where only their names differ: those of an import can be given; else empty."""
    sides = [{(replace(point, transport=""), point.transport) for point in of_run} for of_run in (base, new)]
    shared = {point for point, _ in sides[0]} & {point for point, _ in sides[1]}
    names = [", ".join(sorted({name for point, name in side if point in shared})) for side in sides]
    return f"{names[0]} and {names[1]} are other transports; `import -t` names that of a file; or " if shared else ""


def _read(
    run: Run, listed: Sequence[Series], states: Mapping[int, State], names: Mapping[str, str], first_launch: int
) -> tuple[dict[Point, RunSeries], Probes]:
    """The series of a run by their points, named as in the new run, and their probes, by `states` of both runs."""
    by_point: dict[Point, RunSeries] = {}
    probes: dict[str, dict[int, list[MachineProbe]]] = {}
    for series in listed:
        made = {series.unit_of(each) for each, _ in series.pairs if each.samples}
        side = RunSeries(series, {number for number in made if number >= first_launch})
        point = series.point
        by_point[replace(point, transport=names.get(point.transport, point.transport))] = side
        if series.status is PointStatus.FAILED:
            continue  # its samples may be wrong
        own, figures = {each.id: state.name for each, state in series.pairs}, series.figures()
        if states and any(states[number].name != name for number, name in own.items()):
            figures = list(run.frame.rows_of(series, [(each, states[each.id]) for each, _ in series.pairs]))
        for figure in (row for row in figures if not row.is_mixed):
            side.names[figure.state] = Counter(own[each.id] for each in figure.measurements).most_common(1)[0][0]
            for each in figure.measurements:
                number = series.unit_of(each)
                if each.median_ns and number >= first_launch:
                    side.times_ns.setdefault(figure.state, {}).setdefault(number, []).append(each.median_ns)
                    probes.setdefault(figure.state, {}).setdefault(number, []).append(each.probe)
                    if DIGITS in each.counters:
                        side.digits = min(each.counters[DIGITS][0] / each.median_ns, 0.5)
    return by_point, probes


# ---- one series -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatchedSeries:
    """A series with the times of its launches in base and new, in one state; or the reasons why there is none.

    `ratios` are those of launch pairs, where the runs were measured in alternation; `early`: until the verdict was
    certain. `digits`: as in RunSeries, of both.
    `exact`: on models without noise. `between`: the standard deviation of the logarithm between runs, which launches of
    one run do not show. `names`: what base and new alone call the state.
    """

    point: Point
    state: str | None = None
    times_ns: tuple[Sequence[float], Sequence[float]] = ((), ())
    reasons: tuple[Reason, ...] = ()
    ratios: Sequence[float] = ()
    early: bool = False
    digits: tuple[float, float] = (0.0, 0.0)
    exact: bool = False
    between: float = 0.0
    names: tuple[str, ...] = ()


def _match(point: Point, base: RunSeries, new: RunSeries, state: str | None, between: float) -> MatchedSeries:
    reasons = tuple(_missing(base, new)) or tuple(_incomparable(base, new))
    if reasons or state is None:
        return MatchedSeries(point, reasons=reasons)
    times_ns = _medians_ns(base.times_ns[state]), _medians_ns(new.times_ns[state])
    counts = len(times_ns[0]), len(times_ns[1])
    if base.series.is_exact and new.series.is_exact:
        return MatchedSeries(point, None, times_ns, exact=True)
    if not can_decide(*counts):
        runs = base.series.run.id, new.series.run.id
        facts = {"base": counts[0], "new": counts[1], "needed": LAUNCHES_MIN, "runs": runs}
        reasons = (Reason(ReasonCode.FEW_MEASUREMENTS if point.hosts else ReasonCode.FEW_LAUNCHES, facts),)
    digits = base.digits, new.digits
    names = () if point.hosts else (base.names[state], new.names[state])
    return MatchedSeries(point, state, times_ns, reasons, digits=digits, between=between, names=names)


def _missing(*sides: RunSeries) -> Iterator[Reason]:
    """Why a series has no times."""
    for side in sides:
        series, facts = side.series, {"run": side.series.run.id}
        if series.status in NOT_MEASURED:
            yield Reason(ReasonCode(series.status.value), {**facts, "message": series.reason or "no reason is known"})
        elif not side.times_ns:
            yield Reason(ReasonCode.NO_STEADY_STATE if side.launches else ReasonCode.NO_SAMPLES, facts)


def _incomparable(base: RunSeries, new: RunSeries) -> Iterator[Reason]:
    """Why times of a series in both runs are not compared; one reason at most."""
    if len({side.series.shown.definition for side in (base, new) if side.series.shown}) > 1:
        yield Reason(ReasonCode.OTHER_DEFINITION)
    elif base.series.run.info.is_imported != new.series.run.info.is_imported:
        yield Reason(ReasonCode.STATE_UNKNOWN)
    elif base.times_ns.keys().isdisjoint(new.times_ns):
        states = {"base": base.states_against(new), "new": new.states_against(base)}
        facts = {**states, "runs": (base.series.run.id, new.series.run.id)}
        yield Reason(ReasonCode.NO_COMMON_STATE, facts)


def most_telling(base: RunSeries, new: RunSeries) -> str | None:
    """The state to compare, of those that both sides have; None without one.

    One that can decide, then that of the tables of base, then of new, then an uncontended one, with most launches, then
    most measurements.
    """
    shown = [side.series.run.state_of(*side.series.job) for side in (base, new)]

    def weight(state: str) -> tuple[bool, list[bool], bool, int, int, int]:
        sides = base.times_ns[state], new.times_ns[state]
        launches = [len(side) for side in sides]
        measurements = min(sum(map(len, side.values())) for side in sides)
        is_shown = [side.names[state] == name for side, name in zip((base, new), shown, strict=True)]
        is_quiet = not State(state, None).is_contended
        return can_decide(*launches), is_shown, is_quiet, min(launches), sum(launches), measurements

    return max(sorted(base.times_ns.keys() & new.times_ns.keys(), key=state_order), key=weight, default=None)


def _medians_ns(launches: _Launches) -> list[float]:
    # Without a call for each of a hundred thousand launches with one measurement.
    return [ns[0] if len(ns) == 1 else statistics.median(ns) for ns in launches.values()]


# ---- runs measured in alternation -----------------------------------------------------------------------------------


def names_of_pair(base: RunInfo, new: RunInfo) -> dict[str, str] | None:
    """The new run's name for each transport of base if the runs were interleaved, else None."""
    links = [info.plan.get(INTERLEAVED) or {} for info in (base, new)]
    if [link.get("side") for link in links] != ["base", "new"] or links[0].get("id") != links[1].get("id"):
        return None
    return dict(links[1].get("names") or {})


def _match_sides(point: Point, base: RunSeries, new: RunSeries, *, early: bool) -> MatchedSeries:
    """As match_pairs, of a series that was measured on both sides."""
    missing = tuple(why for why in _missing(base, new) if why.code in (ReasonCode.FAILED, ReasonCode.SKIPPED))
    if missing:
        return MatchedSeries(point, reasons=missing)
    quadruples: dict[int, dict[int, tuple[list[float], list[float]]]] = {}
    for number, side in enumerate((base, new)):
        for each, _ in side.series.pairs:
            if each.median_ns:
                of_launch = quadruples.setdefault(side.series.run.launches[each.launch_id].index, {})
                of_launch.setdefault(each.round, ([], []))[number].append(each.median_ns)
    return match_pairs(point, quadruples, early=early)


def round_ratio(base: Sequence[float], new: Sequence[float]) -> float:
    """The ratio of new to base in one round."""
    return math.exp(statistics.fmean(map(math.log, new)) - statistics.fmean(map(math.log, base)))


def launch_ratio(rounds: Sequence[float]) -> float:
    """The ratio of a launch pair: the median over its rounds."""
    return math.exp(statistics.median(map(math.log, rounds)))


def launch_ratios(quadruples: Quadruples) -> list[float]:
    """The ratio of new to base of each launch pair that has a round with times on both sides."""
    launches = (
        [round_ratio(base, new) for base, new in rounds.values() if base and new]
        for _, rounds in sorted(quadruples.items())
    )
    return [launch_ratio(rounds) for rounds in launches if rounds]


def match_pairs(point: Point, quadruples: Quadruples, *, early: bool = False) -> MatchedSeries:
    """A series of two runs measured in alternation."""
    ratios, needed = launch_ratios(quadruples), VALUES_MIN if early else PAIRS_MIN
    few = Reason(ReasonCode.FEW_PAIRS, {"pairs": len(ratios), "needed": needed})
    return MatchedSeries(point, reasons=(few,) if len(ratios) < needed else (), ratios=ratios, early=early)


def decided_pairs(series: Sequence[Sequence[float]], margin: float) -> list[bool]:
    """Whether each series has its verdict, by the ratios of launch pairs: different beyond the margin, or within it."""
    return [
        chance is not None and (chance <= 1 - CONFIDENCE or not shift.may_be_beyond(margin))
        for shift, chance in shifts_at_any_time(series, margin)
    ]


# ---- all series -----------------------------------------------------------------------------------------------------


def judge(
    series: Sequence[MatchedSeries],
    drift_data: tuple[Probes, Probes, Collection[str]] | None,
    margin: float,
    share: float = 1.0,
) -> list[SeriesChange]:
    """The verdict on each series.

    `drift_data`: probes of base and new, and the transports whose ranks sleep; None where drift is not the cause.
    """
    known = [member for member in series if member.state is not None or member.ratios]
    pairs = [([1.0] * len(member.ratios), member.ratios) if member.ratios else member.times_ns for member in known]
    if any(member.early for member in known):
        found = shifts_at_any_time([member.ratios for member in known], margin)
    else:
        found = shifts(pairs, margin, share, [member.point.transport for member in known])
    results = {member.point: _widened(*result, member, margin) for member, result in zip(known, found, strict=True)}
    decided = {
        member.point: (str(member.state), results[member.point][0])
        for member in known
        if results[member.point][1] is not None
    }
    drift = Drift(*drift_data, decided) if drift_data else None
    changes = []
    for member in series:
        if member.exact:
            changes.append(_judge_exact(member, margin))
            continue
        shift, chance = results.get(member.point, (None, None))
        if drift and shift is not None:
            shift = drift.beside_wake_ups(member.point, shift)
        verdict, reasons = Verdict.INCONCLUSIVE, member.reasons
        if shift is None or chance is None or reasons:
            chance = None
        elif chance > 1 - CONFIDENCE:
            verdict, most = Verdict.SAME, max(1.25, margin)
            if shift.may_be_beyond(most):
                wide = Reason(ReasonCode.WIDE_INTERVAL, {"by": most - 1})
                one_of_many = Reason(ReasonCode.MAY_BE_CHANCE, {"among": len(known)})
                verdict, reasons = Verdict.INCONCLUSIVE, (one_of_many if shift.is_beyond(margin) else wide,)
        else:
            verdict = Verdict.SLOWER if shift.ratio > 1 else Verdict.FASTER
            explained = drift.explaining(member.point, margin) if drift else None
            if explained is not None:
                facts = dict(zip(("by", "shown_by"), explained, strict=True))
                verdict, reasons = Verdict.INCONCLUSIVE, (Reason(ReasonCode.DRIFT, facts),)
        changes.append(SeriesChange(member.point, verdict, reasons, member.names, shift, chance))
    return changes


def _widened(shift: Shift, chance: float | None, member: MatchedSeries, margin: float) -> tuple[Shift, float | None]:
    """Widen a shift and its chance by the variance between runs and the rounding errors of both sides."""
    base, new = member.digits
    if shift.low is None or shift.high is None or not (base or new or member.between):
        return shift, chance
    between = 1.96 * member.between
    below, above = (math.exp(math.hypot(math.log(end / shift.ratio), between)) for end in (shift.low, shift.high))
    low = shift.ratio / below * (1 - new) / (1 + base) * (1 - 1e-9)
    high = shift.ratio * above * (1 + new) / (1 - base) * (1 + 1e-9)
    widened = replace(shift, low=low, high=high)
    return widened, chance if widened.is_beyond(margin) else 1.0


def _judge_exact(member: MatchedSeries, margin: float) -> SeriesChange:
    """Any difference beyond the margin counts."""
    ratio = member.times_ns[1][0] / member.times_ns[0][0]
    shift = Shift(ratio, ratio, ratio, 1.0, *map(len, member.times_ns))
    most = max(margin, 1.0005)  # less is printed as 0.0 %
    is_same = 1 / most <= ratio <= most
    verdict = Verdict.SAME if is_same else Verdict.SLOWER if ratio > 1 else Verdict.FASTER
    return SeriesChange(member.point, verdict, shift=shift)
