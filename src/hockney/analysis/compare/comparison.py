"""Two stored runs -> what became of every series, with launches as the unit of replication.

A launch's value is the median of its measurements' medians, within one state of the machine and one definition. States
are found among the measurements of both runs together, so that a floor or a pace means the same in both; only where
the CPUs are of different models, each run has its own, which are then matched by name. A series is compared in one
state that both runs saw: an uncontended one if enough launches saw one, of several that with most launches.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.compare.drift import Drifts, Moved
from hockney.analysis.compare.library_upgrade import renamed
from hockney.analysis.compare.paired import judged_in_turns, names_of_pair, other_transports, quadruples_of
from hockney.analysis.compare.protocols import KnownSwitch, Protocols, known_switches
from hockney.analysis.compare.surroundings import differences, disturbances, is_unchanged
from hockney.analysis.compare.values import Comparison, Difference, SeriesChange, Verdict
from hockney.cli.rerun import LAUNCHES
from hockney.errors import UsageError
from hockney.model import NOT_MEASURED, CurveKey, Definition, Point, PointStatus, curve_of
from hockney.results.store import MeasurementSummary, Store, StoredPoint, StoredRun
from hockney.stats import CONFIDENCE, MIXED, State, classify, classify_both, of_one_batch, place
from hockney.stats.shift import LAUNCHES_MIN, Shift, can_decide, shifts
from hockney.stats.states import MachineProbe

_Launches = Mapping[int, Sequence[float]]  # by number, the medians of a launch's measurements, ns
_Condition = tuple[str, Definition]  # the name of a state, and how samples became times

_APART = (
    1.5  # the least ratio between all launches of one run and all of the other that is told of an inconclusive series
)
_APART_SINGLE = 3.0  # the same where a run has one launch: what differs from launch to launch may be more than half


@dataclass(frozen=True)
class _Side:
    """One run: its points by the name that the comparison uses, and each point's measurements by condition and launch.

    `sampled` are the points with samples, in whatever state of the machine, each with its number of launches.
    Measurements during which the state changed are in `measurements_ns` as mixed. `signs` are of all points, by state
    and launch.
    """

    run: StoredRun
    points: Mapping[Point, StoredPoint]
    sampled: Mapping[Point, int]
    measurements_ns: Mapping[Point, Mapping[_Condition, _Launches]]
    signs: Mapping[str, Mapping[int, Sequence[MachineProbe]]]

    def steady(self, point: Point) -> dict[_Condition, _Launches]:
        """What is in one state of the machine."""
        return {key: launches for key, launches in self.measurements_ns.get(point, {}).items() if key[0] != MIXED.name}


def compare_runs(
    store: Store,
    base_id: int,
    new_id: int,
    *,
    margin: float = 1.0,
    confidence: float = CONFIDENCE,
    first_launch: int = 0,
) -> Comparison:
    """What became of every series from one run to the other.

    `margin`: the ratio of times that a difference must exceed to be one. `confidence`: of each interval, and that none
    of the differences is there by chance alone. Launches of the new run before `first_launch` don't count. What both
    plans skipped is no series of either; all else that both have is judged. Raises UsageError where the runs are one,
    or have no series in common.
    """
    if base_id == new_id:
        raise UsageError(f"run {base_id} can't be compared with itself: name another one")
    with store.snapshot():
        base, new, names = _read(store, base_id, new_id, first_launch)
        in_turns = names_of_pair(base.run.info, new.run.info) is not None
        measurements = [store.summaries(one) if in_turns else [] for one in (base_id, new_id)]
    common = [point for point in new.points if point in base.points and not _left_out(point, base, new)]
    if not common or not (base.sampled or new.sampled):
        raise UsageError(_nothing_in_common(base, new))
    changed = (*other_transports(names, in_turns), *differences(base.run, new.run, names))
    if in_turns:
        series = quadruples_of((base.run, new.run), (base.points, new.points), measurements, common)
        changes = tuple(judged_in_turns(series, _not_measured(common, base, new), margin, confidence))
    else:
        pairs = [_compared(point, base, new) for point in common]
        changes = tuple(_judged(pairs, base, new, changed, margin, confidence))
    return Comparison(
        base=base_id,
        new=new_id,
        launches=(max(base.sampled.values(), default=0), max(new.sampled.values(), default=0)),
        launches_least=(min(base.sampled.values(), default=0), min(new.sampled.values(), default=0)),
        margin=margin,
        confidence=confidence,
        differences=changed,
        changes=changes,
        only_base=tuple(point for point in base.sampled if point not in new.points),
        only_new=tuple(point for point in new.sampled if point not in base.points),
        protocols=_protocols(changes, base, new),
        disturbances=disturbances(base.run, new.run),
        infos=(base.run.info, new.run.info),
        failed=(_failed(base), _failed(new)),
        interleaved=in_turns,
    )


def _failed(side: _Side) -> dict[str, str]:
    """The transports of which points failed, with what the run itself calls them."""
    failed = ((point, stored) for point, stored in side.points.items() if stored.status is PointStatus.FAILED)
    return {point.transport: stored.point.transport for point, stored in failed}


# ---- reading --------------------------------------------------------------------------------------------------------


def _read(store: Store, base_id: int, new_id: int, first_launch: int) -> tuple[_Side, _Side, dict[str, str]]:
    """Both sides, and what new calls base's transports where that is another name."""
    runs = store.run(base_id), store.run(new_id)
    points = store.points(base_id), store.points(new_id)
    names = dict(
        names_of_pair(runs[0].info, runs[1].info)
        or renamed(*({stored.point.transport for stored in listed} for listed in points))
    )
    measurements = store.summaries(base_id), store.summaries(new_id)
    states = _states(runs, measurements)
    return (
        _side(runs[0], points[0], measurements[0], states[0], names, 0),
        _side(runs[1], points[1], measurements[1], states[1], {}, first_launch),
        names,
    )


def _states(
    runs: tuple[StoredRun, StoredRun], measurements: tuple[list[MeasurementSummary], list[MeasurementSummary]]
) -> tuple[list[State], list[State]]:
    signs = [[measurement.signs for measurement in of_run] for of_run in measurements]
    models = [(run.info.facts.get("cpu") or {}).get("model") for run in runs]
    if models[0] != models[1]:
        return classify(signs[0]), classify(signs[1])
    return classify_both(signs[0], signs[1])


def _side(
    run: StoredRun,
    points: Iterable[StoredPoint],
    summaries: Sequence[MeasurementSummary],
    states: Sequence[State],
    names: Mapping[str, str],
    first_launch: int,
) -> _Side:
    named = {_named(stored.point, names): stored for stored in points}
    numbers = {launch_id: launch.index for launch_id, launch in run.launches.items()}
    measurements: dict[int, dict[_Condition, dict[int, list[float]]]] = {}
    signs: dict[str, dict[int, list[MachineProbe]]] = {}
    # Of a hundred thousand measurements: a set made at once takes less than a look-up for each.
    launches = {(v.point_id, numbers[v.launch_id]) for v in summaries if v.samples}
    sampled = Counter(id_ for id_, number in launches if number >= first_launch)
    conditions_of = ((state, measurement.definition) for measurement, state in zip(summaries, states, strict=True))
    of_batch = of_one_batch([v.point_id for v in summaries], [v.batch for v in summaries], conditions_of)
    for measurement, state, is_counted in zip(summaries, states, of_batch, strict=True):
        number = numbers[measurement.launch_id]
        if measurement.median_ns and is_counted and number >= first_launch:
            conditions = measurements.setdefault(measurement.point_id, {})
            conditions.setdefault((state.name, measurement.definition), {}).setdefault(number, []).append(
                measurement.median_ns
            )
            signs.setdefault(state.name, {}).setdefault(number, []).append(measurement.signs)
    return _Side(
        run,
        named,
        {point: sampled[stored.id] for point, stored in named.items() if stored.id in sampled},
        {point: measurements[stored.id] for point, stored in named.items() if stored.id in measurements},
        signs,
    )


def _named(point: Point, names: Mapping[str, str]) -> Point:
    return replace(point, transport=names[point.transport]) if point.transport in names else point


def _left_out(point: Point, base: _Side, new: _Side) -> bool:
    return all(side.points[point].status is PointStatus.SKIPPED for side in (base, new)) and not (
        point in base.sampled or point in new.sampled
    )


def _nothing_in_common(base: _Side, new: _Side) -> str:
    for side in (base, new):
        if not side.sampled:
            return f"run {side.run.id} has nothing to compare: none of its points has samples"
    has = [_inventory(side) for side in (base, new)]
    if has[0] == has[1]:  # then it is options, ranks or sizes that differ
        has = [f"{next(iter(side.sampled))}, for one" for side in (base, new)]
    return (
        f"runs {base.run.id} and {new.run.id} have no series in common: {base.run.id} has {has[0]}; "
        f"{new.run.id} has {has[1]}"
    )


def _inventory(side: _Side) -> str:
    transports = sorted({point.transport for point in side.sampled})
    patterns = sorted({point.pattern for point in side.sampled})
    return f"{', '.join(patterns)} on {', '.join(transports)}"


# ---- one series -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """One series of both runs, in one state of the machine; or why it can't be decided.

    `is_open`: whether more launches of the new run may change that; `wanted`: how many each run should have; `apart`:
    how far all launches of one are from all of the other.
    """

    point: Point
    state: str | None = None
    times_ns: tuple[Sequence[float], Sequence[float]] = ((), ())  # one a launch, of base and of new
    reason: str | None = None
    is_open: bool = False
    wanted: tuple[int, int] = (0, 0)
    apart: float | None = None


def _compared(point: Point, base: _Side, new: _Side) -> _Pair:
    absences = [_absence(point, side) for side in (base, new)]
    if any(absences):
        is_open = not absences[0] and new.points[point].status not in NOT_MEASURED
        return _Pair(point, reason="; ".join(filter(None, absences)), is_open=is_open)
    runs, before, after = (base.run.id, new.run.id), base.steady(point), new.steady(point)
    shared = [condition for condition in before if condition in after]
    if not shared:
        why = _why_apart(runs, before, after)
        return _Pair(point, reason=why, is_open=not _share_a_state(before, after), apart=_apart(point, base, new))
    best = _most_telling(shared, before, after)
    times_ns = _values(before[best]), _values(after[best])
    sizes = len(times_ns[0]), len(times_ns[1])
    if not can_decide(*sizes):
        wanted = _wanted(base.sampled[point], sizes[0]), _wanted(new.sampled[point], sizes[1])
        why = (
            f"too few launches in one state ({best[0]}): {sizes[0]} of run {runs[0]} and {sizes[1]} of run {runs[1]}; "
            f"it takes {LAUNCHES_MIN} of each"
        )
        return _Pair(point, best[0], times_ns, why, is_open=True, wanted=wanted, apart=_apart(point, base, new))
    return _Pair(point, best[0], times_ns)


def _most_telling(
    shared: Iterable[_Condition], before: Mapping[_Condition, _Launches], after: Mapping[_Condition, _Launches]
) -> _Condition:
    """Of those that can decide, the uncontended one of most launches, then measurements. Times have no say in it."""

    def weight(condition: _Condition) -> tuple[bool, bool, int, int, int]:
        sides = before[condition], after[condition]
        launches = [len(side) for side in sides]
        measurements = min(sum(map(len, side.values())) for side in sides)
        return (
            can_decide(*launches),
            not State(condition[0], None).contended,
            min(launches),
            sum(launches),
            measurements,
        )

    return max(sorted(shared, key=lambda one: place(one[0])), key=weight)


def _wanted(made: int, in_state: int) -> int:
    """How many launches a new run in place of this one should have; 0 where it has enough.

    Twice as many where there were enough, but in several states of the machine.
    """
    if in_state >= LAUNCHES_MIN:
        return 0
    return LAUNCHES if made < LAUNCHES_MIN else max(LAUNCHES, 2 * made)


def _apart(point: Point, base: _Side, new: _Side) -> float | None:
    """By what ratio each launch of the new run took longer than any of the base, or shorter (then below 1).

    In whatever state of the machine, also while that changed: a fact, not a verdict, for a state may do so, too. None
    where that is too little to tell, or where the times are defined otherwise.
    """
    conditions = [side.measurements_ns[point] for side in (base, new)]
    if len({definition for of_side in conditions for _, definition in of_side}) > 1:
        return None
    single = any(len({number for launches in of_side.values() for number in launches}) < 2 for of_side in conditions)
    least = _APART_SINGLE if single else _APART
    base_ns, new_ns = ([ns for launches in of.values() for ns in _values(launches)] for of in conditions)
    longer, shorter = min(new_ns) / max(base_ns), max(new_ns) / min(base_ns)
    return longer if longer >= least else shorter if shorter <= 1 / least else None


def _absence(point: Point, side: _Side) -> str | None:
    """Why a side has nothing to compare, or None. What failed has not: not even by the samples from before."""
    stored = side.points[point]
    if stored.status in NOT_MEASURED:
        return f"{stored.status.value} in run {side.run.id}: {stored.reason or 'no reason is known'}"
    if point not in side.sampled:
        return f"run {side.run.id} has no samples of it"
    if not side.steady(point):
        return f"run {side.run.id} has no samples of it in one steady state of the machine"
    return None


def _not_measured(points: Iterable[Point], *sides: _Side) -> dict[Point, str]:
    """Why points were not measured, of those that were not on any side."""
    return {
        point: f"{stored.status.value} in run {side.run.id}: {stored.reason or 'no reason is known'}"
        for side in sides
        for point in points
        for stored in [side.points[point]]
        if stored.status in NOT_MEASURED
    }


def _why_apart(runs: tuple[int, int], before: Iterable[_Condition], after: Iterable[_Condition]) -> str:
    if not _share_a_state(before, after):
        seen = (f"run {run} saw {_listed(side)}" for run, side in zip(runs, (before, after), strict=True))
        return f"no state of the machine in common: {'; '.join(seen)}"
    return "its times are defined otherwise in the two runs (docs/metrics.md)"


def _listed(conditions: Iterable[_Condition]) -> str:
    return " / ".join(sorted({name for name, _ in conditions}, key=place))


def _share_a_state(before: Iterable[_Condition], after: Iterable[_Condition]) -> bool:
    return not {name for name, _ in before}.isdisjoint(name for name, _ in after)


# ---- all series -----------------------------------------------------------------------------------------------------


def _judged(
    pairs: Sequence[_Pair],
    base: _Side,
    new: _Side,
    changed: Sequence[Difference],
    margin: float,
    confidence: float,
) -> Iterable[SeriesChange]:
    known = [pair for pair in pairs if pair.state is not None]
    found = {
        pair.point: shift_and_chance
        for pair, shift_and_chance in zip(known, shifts([p.times_ns for p in known], margin, confidence), strict=True)
    }
    drifts = _drifts(known, found, base, new) if is_unchanged(changed) else None
    for pair in pairs:
        states = () if pair.state is None else (pair.state,)
        shift, chance = found.get(pair.point, (None, None))
        if shift is None or shift.low is None or shift.high is None or chance is None or pair.state is None:
            yield SeriesChange(
                *(pair.point, Verdict.INCONCLUSIVE, pair.reason, states, shift),
                is_open=pair.is_open,
                wanted=pair.wanted,
                apart=pair.apart,
            )
            continue
        verdict, reason = Verdict.SAME, None
        if chance <= 1 - confidence:
            verdict = Verdict.SLOWER if shift.ratio > 1 else Verdict.FASTER
            near = shift.low if shift.ratio > 1 else shift.high
            moved = Moved(pair.point, pair.state, math.log(shift.ratio))
            drift = None if drifts is None else drifts.explains(moved, near, margin)
            if drift is not None:
                verdict, reason = Verdict.INCONCLUSIVE, drift.reason
        is_beyond = shift.low > margin or shift.high < 1 / margin
        yield SeriesChange(*(pair.point, verdict, reason, states, shift, chance), is_open=True, is_beyond=is_beyond)


def _drifts(
    pairs: Iterable[_Pair], found: Mapping[Point, tuple[Shift, float | None]], base: _Side, new: _Side
) -> Drifts:
    moved = [
        Moved(pair.point, pair.state, math.log(found[pair.point][0].ratio))
        for pair in pairs
        if pair.state is not None and found[pair.point][1] is not None
    ]
    sleeping = {name for side in (base, new) for name in side.run.info.facts.get("sleeping", ())}
    return Drifts(base.signs, new.signs, moved, sleeping)


def _protocols(changes: Iterable[SeriesChange], base: _Side, new: _Side) -> dict[CurveKey, Protocols]:
    """Of the curves in which something moved: a fit takes its time."""
    moved = {curve_of(change.point) for change in changes if change.verdict in (Verdict.SLOWER, Verdict.FASTER)}
    switches = [_switches(moved, side) for side in (base, new)]
    return {curve: Protocols.of((base.run.id, new.run.id), *(of[curve] for of in switches)) for curve in moved}


def _switches(curves: Collection[CurveKey], side: _Side) -> dict[CurveKey, tuple[KnownSwitch, ...]]:
    """Those of a run's curves, each in the state that most of its launches saw."""
    listed: dict[CurveKey, list[Point]] = {}
    for point in side.measurements_ns:
        if curve_of(point) in curves and side.steady(point):
            listed.setdefault(curve_of(point), []).append(point)
    libraries = {launch.transport: launch.library for launch in side.run.launches.values()}
    found: dict[CurveKey, tuple[KnownSwitch, ...]] = {}
    for curve, points in listed.items():
        # A definition counts the bytes of its own size, so a state may have one for each.
        seen = [
            (state, point.bytes, launches) for point in points for (state, _), launches in side.steady(point).items()
        ]
        most = Counter(state for state, _, launches in seen for _ in launches).most_common(1)[0][0]
        times_ns = {size: statistics.median(_values(launches)) for state, size, launches in seen if state == most}
        # By the name that the run has for it, which tells the version.
        transport = side.points[points[0]].point.transport
        found[curve] = known_switches(times_ns, transport, side.run.info.facts, libraries.get(transport, ""))
    return found


def _values(launches: _Launches) -> list[float]:
    # A call for each of a hundred thousand launches with one measurement would take longer than all else here.
    return [ns[0] if len(ns) == 1 else statistics.median(ns) for ns in launches.values()]
