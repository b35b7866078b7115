"""Compares two stored runs series by series, with launches as the unit of replication (docs/methods.md).

A launch's value is the median of its measurements' medians in one machine state. States are classified over the
measurements of both runs together. Runs on two CPU models are classified separately, and their states are matched by
name.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
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


@dataclass(frozen=True)
class RunData:
    """One run of a comparison, with points named as in the new run.

    `launches`: the number of launches with samples, by point. `times_ns`: the times in one machine state, by point and
    state; `definitions`: how their samples became times. `probes`: the machine probes of all points, by state and
    launch. `short`: streams with fewer than 8 events per sample. `digits`: the rounding error of imported times, as a
    fraction.
    """

    run: StoredRun
    points: Mapping[Point, StoredPoint]
    launches: Mapping[Point, int]
    times_ns: Mapping[Point, Mapping[str, _Launches]]
    definitions: Mapping[Point, Definition]
    probes: Probes
    short: Collection[Point] = ()
    digits: Mapping[Point, float] = field(default_factory=dict)

    def is_exact(self, point: Point) -> bool:
        """Whether its clock is a model's without noise."""
        return bool(self.run.info.plan.get("virtual", {}).get(self.points[point].point.transport))


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
    pair_names = names_of_pair(runs[0].info, runs[1].info)
    names = pair_names or renamed(*({stored.point.transport for stored in of_run} for of_run in points))
    states = _states(runs, measurements)
    base = _run_data(runs[0], points[0], measurements[0], states[0], names, 0)
    new = _run_data(runs[1], points[1], measurements[1], states[1], {}, first_launch)
    common = [point for point in new.points if point in base.points and not _is_skipped(point, base, new)]
    if not common or not (base.launches or new.launches):
        raise UsageError(
            f"runs {base_id} and {new_id} have no series in common that has samples: "
            "name two of the same patterns, sizes and transports"
        )
    changed = differences(base.run, new.run, names)
    if pair_names is None:
        series = [_match(point, base, new) for point in common]
        sleeping = {name for run in runs for name in run.info.facts.get("sleeping", ())}
        drift_data = (base.probes, new.probes, sleeping) if is_unchanged(changed) else None
    else:
        changed = (*(Difference("transport", *pair) for pair in names.items()), *changed)
        series, quadruples = [], _quadruples((base, new), measurements, common)
        for point in common:
            missing = tuple(why for why in _missing(point, base, new) if why.code in _NOT_MEASURED)
            series.append(match_pairs(point, quadruples[point], missing))
        drift_data = None
    changes = judge(series, drift_data, margin)
    short = {*base.short, *new.short}
    changes = [replace(change, is_short=change.point in short) for change in changes]
    return Comparison(
        base=base_id,
        new=new_id,
        launches=(max(base.launches.values(), default=0), max(new.launches.values(), default=0)),
        margin=margin,
        differences=changed,
        changes=tuple(changes),
        only_base=tuple(point for point in base.launches if point not in new.points),
        only_new=tuple(point for point in new.launches if point not in base.points),
        contention=contention_of(*runs),
        infos=(runs[0].info, runs[1].info),
        libraries={launch.transport: launch.library for run in runs for launch in run.launches.values()},
        renamed=names,
        interleaved=pair_names is not None,
    )


# ---- reading --------------------------------------------------------------------------------------------------------


def _states(
    runs: Sequence[StoredRun], measurements: tuple[list[MeasurementSummary], list[MeasurementSummary]]
) -> tuple[list[State], list[State]]:
    probes = [[measurement.probe for measurement in of_run] for of_run in measurements]
    models = [(run.info.facts.get("cpu") or {}).get("model") for run in runs]
    if models[0] != models[1]:
        return classify(probes[0]), classify(probes[1])
    return classify_both(probes[0], probes[1])


def _run_data(
    run: StoredRun,
    stored: Iterable[StoredPoint],
    measurements: Sequence[MeasurementSummary],
    states: Sequence[State],
    names: Mapping[str, str],
    first_launch: int,
) -> RunData:
    points = {replace(row.point, transport=names.get(row.point.transport, row.point.transport)): row for row in stored}
    numbers = {launch_id: launch.index for launch_id, launch in run.launches.items()}
    times_ns: dict[int, dict[str, dict[int, list[float]]]] = {}
    # It changes only where a later version resumed the run. Of one run, equal definitions are one object.
    last = {each.point_id: each.definition for each in measurements if each.samples}
    probes: dict[str, dict[int, list[MachineProbe]]] = {}
    events: dict[int, int] = {}  # in a sample, by point
    digits: dict[int, float] = {}  # by point
    launches = {(each.point_id, numbers[each.launch_id]) for each in measurements if each.samples}
    with_samples = Counter(point_id for point_id, number in launches if number >= first_launch)
    conditions = ((state, each.definition) for each, state in zip(measurements, states, strict=True))
    of_batch = of_one_batch([each.point_id for each in measurements], [each.batch for each in measurements], conditions)
    for each, state, is_counted in zip(measurements, states, of_batch, strict=True):
        number = numbers[each.launch_id]
        is_counted = is_counted and each.definition is last.get(each.point_id)
        if each.median_ns and is_counted and number >= first_launch and state is not MIXED:
            of_point = times_ns.setdefault(each.point_id, {})
            of_point.setdefault(state.name, {}).setdefault(number, []).append(each.median_ns)
            probes.setdefault(state.name, {}).setdefault(number, []).append(each.probe)
            if DIGITS in each.counters:
                digits[each.point_id] = min(each.counters[DIGITS][0] / each.median_ns, 0.5)
            events[each.point_id] = each.batch * each.definition.divisor
    return RunData(
        run,
        points,
        {point: with_samples[row.id] for point, row in points.items() if row.id in with_samples},
        {point: times_ns[row.id] for point, row in points.items() if row.id in times_ns},
        {point: last[row.id] for point, row in points.items() if row.id in times_ns},
        probes,
        {point for point, row in points.items() if point.is_stream and 0 < events.get(row.id, 0) < STREAM_EVENTS_MIN},
        {point: digits[row.id] for point, row in points.items() if row.id in digits},
    )


def _is_skipped(point: Point, *sides: RunData) -> bool:
    """Whether both plans skipped it and neither run has samples."""
    return all(side.points[point].status is PointStatus.SKIPPED and point not in side.launches for side in sides)


# ---- one series -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatchedSeries:
    """A series with the times of its launches in base and new, in one state; or the reasons why there is none.

    `ratios` are those of launch pairs, where the runs were measured in alternation. `digits`: as in RunData, of both.
    `exact`: on models without noise.
    """

    point: Point
    state: str | None = None
    times_ns: tuple[Sequence[float], Sequence[float]] = ((), ())
    reasons: tuple[Reason, ...] = ()
    launches: tuple[int, int] = (0, 0)
    ratios: Sequence[float] = ()
    digits: tuple[float, float] = (0.0, 0.0)
    exact: bool = False


def _match(point: Point, base: RunData, new: RunData) -> MatchedSeries:
    launches = base.launches.get(point, 0), new.launches.get(point, 0)
    before, after = base.times_ns.get(point, {}), new.times_ns.get(point, {})
    best = most_telling(before, after)
    reasons = tuple(_missing(point, base, new)) or tuple(_incomparable(point, base, new))
    if reasons or best is None:
        return MatchedSeries(point, None, (_any_state(before), _any_state(after)), reasons, launches)
    times_ns = _medians_ns(before[best]), _medians_ns(after[best])
    counts = len(times_ns[0]), len(times_ns[1])
    if base.is_exact(point) and new.is_exact(point):
        return MatchedSeries(point, None, times_ns, launches=launches, exact=True)
    if not can_decide(*counts):
        runs = base.run.id, new.run.id
        facts = {"state": best, "base": counts[0], "new": counts[1], "needed": LAUNCHES_MIN, "runs": runs}
        reasons = (Reason(ReasonCode.FEW_LAUNCHES, facts),)
    digits = base.digits.get(point, 0.0), new.digits.get(point, 0.0)
    return MatchedSeries(point, best, times_ns, reasons, launches, digits=digits)


def _missing(point: Point, *sides: RunData) -> Iterator[Reason]:
    """Why a series has no times."""
    for side in sides:
        stored, facts = side.points[point], {"run": side.run.id}
        if stored.status in NOT_MEASURED:
            yield Reason(ReasonCode(stored.status.value), {**facts, "message": stored.reason or "no reason is known"})
        elif point not in side.times_ns:
            yield Reason(ReasonCode.NO_STEADY_STATE if point in side.launches else ReasonCode.NO_SAMPLES, facts)


def _incomparable(point: Point, base: RunData, new: RunData) -> Iterator[Reason]:
    """Why times of a series in both runs are not compared; one reason at most."""
    states = [sorted(side.times_ns[point], key=place) for side in (base, new)]
    if base.definitions[point] != new.definitions[point]:
        yield Reason(ReasonCode.OTHER_DEFINITION)
    elif base.run.info.is_imported != new.run.info.is_imported:
        yield Reason(ReasonCode.STATE_UNKNOWN)
    elif set(states[0]).isdisjoint(states[1]):
        runs = base.run.id, new.run.id
        yield Reason(ReasonCode.NO_COMMON_STATE, {"base": states[0], "new": states[1], "runs": runs})


def most_telling(before: Mapping[str, _Launches], after: Mapping[str, _Launches]) -> str | None:
    """The state to compare, of those that both sides have; None without one.

    One that can decide, uncontended, with most launches, then most measurements.
    """

    def weight(state: str) -> tuple[bool, bool, int, int, int]:
        sides = before[state], after[state]
        launches = [len(side) for side in sides]
        measurements = min(sum(map(len, side.values())) for side in sides)
        is_quiet = not State(state, None).contended
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
    sides: Sequence[RunData], measurements: Sequence[Sequence[MeasurementSummary]], common: Sequence[Point]
) -> dict[Point, Quadruples]:
    """The measurements of each series in both runs."""
    quadruples: dict[Point, dict[int, dict[int, tuple[list[float], list[float]]]]] = {point: {} for point in common}
    for number, (side, of_run) in enumerate(zip(sides, measurements, strict=True)):
        series = {side.points[point].id: quadruples[point] for point in common}
        for measurement in of_run:
            if measurement.median_ns and measurement.point_id in series:
                launch = side.run.launches[measurement.launch_id].index
                of_launch = series[measurement.point_id].setdefault(launch, {})
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
        member.point: _widened(*result, *member.digits, margin)
        for member, result in zip(known, shifts(pairs, margin), strict=True)
    }
    drift = None
    if drift_data is not None:
        decided = {
            member.point: (str(member.state), shift)
            for member in known
            for shift, chance in [results[member.point]]
            if chance is not None
        }
        drift = Drift(*drift_data[:2], decided, drift_data[2])
    changes = []
    for member in series:
        if member.exact:
            changes.append(_judge_exact(member, margin))
            continue
        shift, chance = results.get(member.point, (None, None))
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
        figures = (shift, chance, base_ns, new_ns)
        changes.append(SeriesChange(member.point, verdict, reasons, member.state, *figures, launches=member.launches))
    return changes


def _widened(shift: Shift, chance: float | None, base: float, new: float, margin: float) -> tuple[Shift, float | None]:
    """Widen a shift and its chance by the rounding errors of both sides: fractions below 1."""
    if shift.low is None or shift.high is None or not (base or new):
        return shift, chance
    low, high = shift.low * (1 - new) / (1 + base) * (1 - 1e-9), shift.high * (1 + new) / (1 - base) * (1 + 1e-9)
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
    return SeriesChange(member.point, verdict, (), None, shift, None, base_ns, new_ns, launches=member.launches)
