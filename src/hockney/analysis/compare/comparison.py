"""Compares two stored runs series by series, with launches as the unit of replication (docs/methods.md).

A launch's value is the median of its measurements' medians in one machine state. States are classified over the
measurements of both runs together. Runs on two CPU models are classified separately, and their states are matched by
name.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hockney.analysis.compare.differences import contention_of, differences, is_unchanged, renamed
from hockney.analysis.compare.drift import Drift, Probes
from hockney.analysis.compare.values import Comparison, Difference, Reason, ReasonCode, SeriesChange, Verdict
from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import UsageError
from hockney.model import DIGITS, NOT_MEASURED, Definition, MachineProbe, Point, PointStatus, RunInfo
from hockney.results.store import MeasurementSummary, Store, StoredPoint, StoredRun
from hockney.stats import CONFIDENCE, MIXED, State, classify, classify_both, of_one_batch, place
from hockney.stats.figures import STREAM_EVENTS_MIN
from hockney.stats.shift import LAUNCHES_MIN, Shift, can_decide, level, shifts

_Launches = Mapping[int, Sequence[float]]  # by number, the medians of a launch's measurements in ns
Quadruples = Mapping[int, Mapping[int, tuple[list[float], list[float]]]]  # by launch and round, ns of base and of new
_NOT_MEASURED = (ReasonCode.FAILED, ReasonCode.SKIPPED)  # even if the series has samples from before
PAIRS_MIN = 6  # launch pairs of two runs measured in alternation, to decide
BETWEEN_RUNS = 0.04  # the standard deviation of a ratio of two unchanged runs, where ranks sleep (docs/methods.md)


@dataclass
class RunSeries:
    """One series in one run.

    `launches`: the numbers of those with samples. `times_ns`: by machine state; `definition`: how samples became times.
    `is_short`: a stream with fewer than 8 events per sample. `digits`: the rounding error of imported times, as a
    fraction.
    """

    run: StoredRun
    stored: StoredPoint
    launches: set[int] = field(default_factory=set)
    times_ns: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    definition: Definition | None = None
    is_short: bool = False
    digits: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether its clock is a model's without noise."""
        return bool(self.run.info.plan.get("virtual", {}).get(self.stored.point.transport))


def compare_runs(store: Store, base_id: int, new_id: int, *, margin: float = 1.0, first_launch: int = 0) -> Comparison:
    """Compare every series of two runs, except those that both plans skipped.

    `margin`: the ratio of times that a difference must exceed. Launches of the new run before `first_launch` are
    ignored. Raises UsageError if both ids are the same run, or the runs have no series in common.
    """
    if base_id == new_id:
        raise UsageError(f"run {base_id} can't be compared with itself: name another one")
    with store.snapshot():
        runs = store.run(base_id), store.run(new_id)
        points = store.points(base_id), store.points(new_id)
        measurements = store.summaries(base_id), store.summaries(new_id)
    infos = runs[0].info, runs[1].info
    pair_names = names_of_pair(*infos)
    names = pair_names or renamed(*({stored.point.transport for stored in of_run} for of_run in points))
    probes = [[measurement.probe for measurement in of_run] for of_run in measurements]
    models = [(info.facts.get("cpu") or {}).get("model") for info in infos]
    states = classify_both(*probes) if models[0] == models[1] else tuple(map(classify, probes))
    base, base_probes = _read(runs[0], points[0], measurements[0], states[0], names, 0)
    new, new_probes = _read(runs[1], points[1], measurements[1], states[1], {}, first_launch)
    common = {point: (base[point], new[point]) for point in new if point in base}
    common = {
        point: sides
        for point, sides in common.items()
        if any(side.launches or side.stored.status is not PointStatus.SKIPPED for side in sides)
    }
    most = [max((len(series.launches) for series in of_run.values()), default=0) for of_run in (base, new)]
    if not common or not any(most):
        raise UsageError(
            f"runs {base_id} and {new_id} have no series in common that has samples: "
            "name two of the same patterns, sizes and transports"
        )
    changed = differences(*runs, names)
    if pair_names is None:
        sleeping = {name for info in infos for name in info.facts.get("sleeping", ())}
        series = [
            _match(point, *sides, BETWEEN_RUNS if point.transport in sleeping else 0.0)
            for point, sides in common.items()
        ]
        drift_data = (base_probes, new_probes, sleeping) if is_unchanged(changed) else None
    else:
        changed = (*(Difference("transport", *pair) for pair in names.items()), *changed)
        series, quadruples = [], _quadruples(common, measurements)
        for point, sides in common.items():
            missing = tuple(why for why in _missing(*sides) if why.code in _NOT_MEASURED)
            series.append(match_pairs(point, quadruples[point], missing))
        drift_data = None
    changes = []
    for change in judge(series, drift_data, margin):
        before, after = common[change.point]
        launches = len(before.launches), len(after.launches)
        changes.append(replace(change, is_short=before.is_short or after.is_short, launches=launches))
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
        libraries={launch.transport: launch.library for run in runs for launch in run.launches.values()},
        renamed=names,
        interleaved=pair_names is not None,
    )


def _read(
    run: StoredRun,
    stored: Iterable[StoredPoint],
    measurements: Sequence[MeasurementSummary],
    states: Sequence[State],
    names: Mapping[str, str],
    first_launch: int,
) -> tuple[dict[Point, RunSeries], Probes]:
    """The series of a run by their points, named as in the new run, and the machine probes of all of them."""
    by_id = {row.id: RunSeries(run, row) for row in stored}
    numbers = {launch_id: launch.index for launch_id, launch in run.launches.items()}
    for each in measurements:
        if each.samples:
            # It changes only where a later version resumed the run. Of one run, equal definitions are one object.
            by_id[each.point_id].definition = each.definition
            if numbers[each.launch_id] >= first_launch:
                by_id[each.point_id].launches.add(numbers[each.launch_id])
    probes: dict[str, dict[int, list[MachineProbe]]] = {}
    conditions = ((state, each.definition) for each, state in zip(measurements, states, strict=True))
    of_batch = of_one_batch([each.point_id for each in measurements], [each.batch for each in measurements], conditions)
    for each, state, is_counted in zip(measurements, states, of_batch, strict=True):
        series, number = by_id[each.point_id], numbers[each.launch_id]
        is_counted = is_counted and each.definition is series.definition and number >= first_launch
        if each.median_ns and is_counted and state is not MIXED:
            series.times_ns.setdefault(state.name, {}).setdefault(number, []).append(each.median_ns)
            probes.setdefault(state.name, {}).setdefault(number, []).append(each.probe)
            if DIGITS in each.counters:
                series.digits = min(each.counters[DIGITS][0] / each.median_ns, 0.5)
            is_short = 0 < each.batch * each.definition.divisor < STREAM_EVENTS_MIN
            series.is_short = is_short and series.stored.point.is_stream
    of_points = (series.stored.point for series in by_id.values())
    renamed_points = (replace(point, transport=names.get(point.transport, point.transport)) for point in of_points)
    return dict(zip(renamed_points, by_id.values(), strict=True)), probes


# ---- one series -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatchedSeries:
    """A series with the times of its launches in base and new, in one state; or the reasons why there is none.

    `ratios` are those of launch pairs, where the runs were measured in alternation. `digits`: as in RunSeries, of both.
    `exact`: on models without noise. `between`: the standard deviation of the logarithm between runs, which launches of
    one run do not show.
    """

    point: Point
    state: str | None = None
    times_ns: tuple[Sequence[float], Sequence[float]] = ((), ())
    reasons: tuple[Reason, ...] = ()
    ratios: Sequence[float] = ()
    digits: tuple[float, float] = (0.0, 0.0)
    exact: bool = False
    between: float = 0.0


def _match(point: Point, base: RunSeries, new: RunSeries, between: float) -> MatchedSeries:
    best = most_telling(base.times_ns, new.times_ns)
    reasons = tuple(_missing(base, new)) or tuple(_incomparable(base, new))
    if reasons or best is None:
        return MatchedSeries(point, None, (_any_state(base.times_ns), _any_state(new.times_ns)), reasons)
    times_ns = _medians_ns(base.times_ns[best]), _medians_ns(new.times_ns[best])
    counts = len(times_ns[0]), len(times_ns[1])
    if base.is_exact and new.is_exact:
        return MatchedSeries(point, None, times_ns, exact=True)
    if not can_decide(*counts):
        runs = base.run.id, new.run.id
        facts = {"state": best, "base": counts[0], "new": counts[1], "needed": LAUNCHES_MIN, "runs": runs}
        reasons = (Reason(ReasonCode.FEW_LAUNCHES, facts),)
    return MatchedSeries(point, best, times_ns, reasons, digits=(base.digits, new.digits), between=between)


def _missing(*sides: RunSeries) -> Iterator[Reason]:
    """Why a series has no times."""
    for side in sides:
        stored, facts = side.stored, {"run": side.run.id}
        if stored.status in NOT_MEASURED:
            yield Reason(ReasonCode(stored.status.value), {**facts, "message": stored.reason or "no reason is known"})
        elif not side.times_ns:
            yield Reason(ReasonCode.NO_STEADY_STATE if side.launches else ReasonCode.NO_SAMPLES, facts)


def _incomparable(base: RunSeries, new: RunSeries) -> Iterator[Reason]:
    """Why times of a series in both runs are not compared; one reason at most."""
    states = [sorted(side.times_ns, key=place) for side in (base, new)]
    if base.definition != new.definition:
        yield Reason(ReasonCode.OTHER_DEFINITION)
    elif base.run.info.is_imported != new.run.info.is_imported:
        yield Reason(ReasonCode.STATE_UNKNOWN)
    elif set(states[0]).isdisjoint(states[1]):
        facts = {"base": states[0], "new": states[1], "runs": (base.run.id, new.run.id)}
        yield Reason(ReasonCode.NO_COMMON_STATE, facts)


def most_telling(before: Mapping[str, _Launches], after: Mapping[str, _Launches]) -> str | None:
    """The state to compare, of those that both sides have; None without one.

    One that can decide, uncontended, with most launches, then most measurements.
    """

    def weight(state: str) -> tuple[bool, bool, int, int, int]:
        sides = before[state], after[state]
        launches = [len(side) for side in sides]
        measurements = min(sum(map(len, side.values())) for side in sides)
        is_quiet = not State(state, None).is_contended
        return can_decide(*launches), is_quiet, min(launches), sum(launches), measurements

    return max(sorted(before.keys() & after.keys(), key=place), key=weight, default=None)


def _any_state(states: Mapping[str, _Launches]) -> list[float]:
    """The launch medians of the most telling state."""
    state = most_telling(states, states)
    return [] if state is None else _medians_ns(states[state])


def _medians_ns(launches: _Launches) -> list[float]:
    # Without a call for each of a hundred thousand launches with one measurement.
    return [ns[0] if len(ns) == 1 else statistics.median(ns) for ns in launches.values()]


# ---- runs measured in alternation -----------------------------------------------------------------------------------


def names_of_pair(base: RunInfo, new: RunInfo) -> dict[str, str] | None:
    """The new run's name for each transport of base if the runs were interleaved, else None."""
    links = [info.plan.get(INTERLEAVED) or {} for info in (base, new)]
    if [link.get("side") for link in links] != ["base", "new"] or links[0].get("id") != links[1].get("id"):
        return None
    return dict(links[0].get("names") or {})


def _quadruples(
    common: Mapping[Point, tuple[RunSeries, RunSeries]], measurements: Sequence[Sequence[MeasurementSummary]]
) -> dict[Point, Quadruples]:
    """The measurements of each series in both runs."""
    quadruples: dict[Point, dict[int, dict[int, tuple[list[float], list[float]]]]] = {point: {} for point in common}
    for number, of_run in enumerate(measurements):
        series = {sides[number].stored.id: (sides[number].run, quadruples[point]) for point, sides in common.items()}
        for measurement in of_run:
            if measurement.median_ns and measurement.point_id in series:
                run, of_series = series[measurement.point_id]
                of_launch = of_series.setdefault(run.launches[measurement.launch_id].index, {})
                of_launch.setdefault(measurement.round, ([], []))[number].append(measurement.median_ns)
    return dict(quadruples)


def launch_ratios(quadruples: Quadruples) -> list[float]:
    """The ratio of new to base of each launch pair: the median over its rounds that have times on both sides."""
    ratios = []
    for _, rounds in sorted(quadruples.items()):
        logs = [
            statistics.fmean(map(math.log, new)) - statistics.fmean(map(math.log, base))
            for base, new in rounds.values()
            if base and new
        ]
        if logs:
            ratios.append(math.exp(statistics.median(logs)))
    return ratios


def match_pairs(point: Point, quadruples: Quadruples, missing: tuple[Reason, ...]) -> MatchedSeries:
    """A series of two runs measured in alternation; `missing`: why it was not measured."""
    ratios = launch_ratios(quadruples)
    if not missing and len(ratios) < PAIRS_MIN:
        missing = (Reason(ReasonCode.FEW_PAIRS, {"pairs": len(ratios), "needed": PAIRS_MIN}),)
    pairs = [pair for rounds in quadruples.values() for pair in rounds.values()]
    base_ns, new_ns = ([ns for pair in pairs for ns in pair[side]] for side in (0, 1))
    return MatchedSeries(point, None, (base_ns, new_ns), missing, ratios=ratios)


# ---- all series -----------------------------------------------------------------------------------------------------


def judge(
    series: Sequence[MatchedSeries], drift_data: tuple[Probes, Probes, Collection[str]] | None, margin: float
) -> list[SeriesChange]:
    """The verdict on each series.

    `drift_data`: probes of base and new, and the transports whose ranks sleep; None where drift is not the cause.
    """
    known = [member for member in series if member.state is not None or member.ratios]
    pairs = [([1.0] * len(member.ratios), member.ratios) if member.ratios else member.times_ns for member in known]
    results = {
        member.point: _widened(*result, member, margin)
        for member, result in zip(known, shifts(pairs, margin), strict=True)
    }
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
                verdict, reasons = Verdict.INCONCLUSIVE, (Reason(ReasonCode.WIDE_INTERVAL, {"by": most - 1}),)
        else:
            verdict = Verdict.SLOWER if shift.ratio > 1 else Verdict.FASTER
            explained = drift.explaining(member.point, margin) if drift else None
            if explained is not None:
                facts = dict(zip(("by", "shown_by"), explained, strict=True))
                verdict, reasons = Verdict.INCONCLUSIVE, (Reason(ReasonCode.DRIFT, facts),)
        base_ns, new_ns = (level(times_ns) if times_ns else None for times_ns in member.times_ns)
        if member.ratios and base_ns is not None and shift is not None:
            new_ns = base_ns * shift.ratio
        changes.append(SeriesChange(member.point, verdict, reasons, member.state, shift, chance, base_ns, new_ns))
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
    base_ns, new_ns = (times_ns[0] for times_ns in member.times_ns)
    ratio = new_ns / base_ns
    shift = Shift(ratio, ratio, ratio, 1.0, *map(len, member.times_ns))
    most = max(margin, 1.0005)  # less is printed as 0.0 %
    is_same = 1 / most <= ratio <= most
    verdict = Verdict.SAME if is_same else Verdict.SLOWER if ratio > 1 else Verdict.FASTER
    return SeriesChange(member.point, verdict, (), None, shift, None, base_ns, new_ns)
