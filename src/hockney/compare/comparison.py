"""Two stored runs -> what became of every series, with launches as the unit of replication.

A launch's value is the median of its visits' medians, within one state of the machine and one definition. States are
found among the visits of both runs together, so that a floor or a pace means the same in both; only where the CPUs are
of different models, each run has its own, which are then matched by name. Where the launches of a run saw several
states, each state that both runs have is a stratum (stats/shift.py), and each launch counts in one.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.compare.kin import renamed
from hockney.compare.launches import launches_beside, launches_enough, launches_wanted
from hockney.compare.paired import judged_in_turns, names_of_pair, other_transports, quadruples_of
from hockney.compare.protocols import KnownSwitch, Protocols, known_switches
from hockney.compare.surroundings import differences, disturbances
from hockney.compare.values import Comparison, SeriesChange, Verdict
from hockney.errors import UsageError
from hockney.model import NOT_MEASURED, Definition, Point, PointStatus
from hockney.plan import CurveKey, curve_of
from hockney.stats import CONFIDENCE, MIXED, State, classify, classify_both, of_one_batch, place
from hockney.stats.shift import can_decide_over, family_p, share_longer, shift_over
from hockney.store import Store, StoredPoint, StoredRun, VisitSummary

_Launches = Mapping[int, Sequence[float]]  # by number, the medians of a launch's visits, ns
_Condition = tuple[str, Definition]  # the name of a state, and how samples became times

_AGREEMENT = 0.8  # of pairs of visits, one of each run, that must lie as the launches do
_OVERLAP = (
    "the launches of the two runs differ, but single visits are quick and slow in both: which there are more of may "
    "change from minute to minute; measure both runs once more, in turns"
)
_APART = 1.5  # the least ratio between all launches of one run and all of the other that is told of an undecided series
_APART_SINGLE = 3.0  # the same where a run has one launch: what differs from launch to launch may be more than half
_STEP_LEAST = 2  # launches on either side of a step
_GAP_SPREADS = 2.0


@dataclass(frozen=True)
class _Side:
    """One run: its points by the name that the comparison uses, and each point's visits by condition and launch.

    `sampled` are the points with samples, in whatever state of the machine, each with its number of launches.
    `aside_ns` are visits that don't count: the state changed during them, or others are to be judged anew.
    """

    run: StoredRun
    points: Mapping[Point, StoredPoint]
    sampled: Mapping[Point, int]
    visits_ns: Mapping[Point, Mapping[_Condition, _Launches]]
    aside_ns: Mapping[Point, Mapping[_Condition, _Launches]]


def compare_runs(
    store: Store,
    base_id: int,
    new_id: int,
    *,
    margin: float = 1.0,
    confidence: float = CONFIDENCE,
    again: Collection[Point] = (),
    first_launch: int = 0,
) -> Comparison:
    """What became of every series from one run to the other.

    `margin`: the ratio of times that a difference must exceed to be one. `confidence`: of each interval, and that none
    of the differences is there by chance alone. Of the points in `again`, launches of the new run before `first_launch`
    don't count. What both plans skipped is no series of either; all else that both have is judged. Raises UsageError
    where the runs are one, or have no series in common.
    """
    if base_id == new_id:
        raise UsageError(f"run {base_id} can't be compared with itself: name another one")
    with store.snapshot():
        base, new, names = _read(store, base_id, new_id, frozenset(again), first_launch)
        in_turns = names_of_pair(base.run.info, new.run.info) is not None
        visits = [store.summaries(one) if in_turns else [] for one in (base_id, new_id)]
    common = [point for point in new.points if point in base.points and not _left_out(point, base, new)]
    if not common or not (base.sampled or new.sampled):
        raise UsageError(_nothing_in_common(base, new))
    if in_turns:
        series = quadruples_of((base.run, new.run), (base.points, new.points), visits, common)
        changes = tuple(judged_in_turns(series, _not_measured(common, base, new), margin, confidence))
    else:
        pairs = [_compared(point, base, new, confidence) for point in common]
        changes = tuple(_judged(pairs, margin, confidence, (base_id, new_id)))
    return Comparison(
        base=base_id,
        new=new_id,
        launches=(max(base.sampled.values(), default=0), max(new.sampled.values(), default=0)),
        launches_least=(min(base.sampled.values(), default=0), min(new.sampled.values(), default=0)),
        margin=margin,
        confidence=confidence,
        differences=(*other_transports(names, in_turns), *differences(base.run, new.run, names)),
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


def _read(
    store: Store, base_id: int, new_id: int, again: Collection[Point], first_launch: int
) -> tuple[_Side, _Side, dict[str, str]]:
    """Both sides, and what new calls base's transports where that is another name."""
    runs = store.run(base_id), store.run(new_id)
    points = store.points(base_id), store.points(new_id)
    names = dict(
        names_of_pair(runs[0].info, runs[1].info)
        or renamed(*({stored.point.transport for stored in listed} for listed in points))
    )
    visits = store.summaries(base_id), store.summaries(new_id)
    states = _states(runs, visits)
    return (
        _side(runs[0], points[0], visits[0], states[0], names, (), 0),
        _side(runs[1], points[1], visits[1], states[1], {}, again, first_launch),
        names,
    )


def _states(
    runs: tuple[StoredRun, StoredRun], visits: tuple[list[VisitSummary], list[VisitSummary]]
) -> tuple[list[State], list[State]]:
    signs = [[visit.signs for visit in of_run] for of_run in visits]
    models = [(run.info.facts.get("cpu") or {}).get("model") for run in runs]
    if models[0] != models[1]:
        return classify(signs[0]), classify(signs[1])
    return classify_both(signs[0], signs[1])


def _side(
    run: StoredRun,
    points: Iterable[StoredPoint],
    summaries: Sequence[VisitSummary],
    states: Sequence[State],
    names: Mapping[str, str],
    again: Collection[Point],
    first_launch: int,
) -> _Side:
    named = {_named(stored.point, names): stored for stored in points}
    stale = {stored.id for point, stored in named.items() if point in again}
    numbers = {launch_id: launch.index for launch_id, launch in run.launches.items()}
    visits: dict[int, dict[_Condition, dict[int, list[float]]]] = {}
    aside: dict[int, dict[_Condition, dict[int, list[float]]]] = {}
    # Of a hundred thousand visits: a set made at once takes less than a look-up for each.
    launches = {(v.point_id, numbers[v.launch_id]) for v in summaries if v.samples}
    sampled = Counter(id_ for id_, number in launches if number >= first_launch or id_ not in stale)
    conditions_of = ((state, visit.definition) for visit, state in zip(summaries, states, strict=True))
    of_batch = of_one_batch([v.point_id for v in summaries], [v.batch for v in summaries], conditions_of)
    for visit, state, is_counted in zip(summaries, states, of_batch, strict=True):
        number = numbers[visit.launch_id]
        if visit.median_ns and is_counted:
            counts = state is not MIXED and (number >= first_launch or visit.point_id not in stale)
            conditions = (visits if counts else aside).setdefault(visit.point_id, {})
            conditions.setdefault((state.name, visit.definition), {}).setdefault(number, []).append(visit.median_ns)
    return _Side(
        run,
        named,
        {point: sampled[stored.id] for point, stored in named.items() if stored.id in sampled},
        *({point: of[stored.id] for point, stored in named.items() if stored.id in of} for of in (visits, aside)),
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
class _Stratum:
    """The launches of both runs that count in one state of the machine: of each its visits."""

    state: str
    base_ns: _Launches
    new_ns: _Launches

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.base_ns), len(self.new_ns)


@dataclass(frozen=True)
class _Pair:
    """One series of both runs, in the states that both have; or why it can't be decided.

    `is_open`: whether more launches of the new run may change that; `wanted`: how many each run should have; `apart`:
    how far all launches of one are from all of the other.
    """

    point: Point
    strata: tuple[_Stratum, ...] = ()
    reason: str | None = None
    is_open: bool = False
    wanted: tuple[int, int] = (0, 0)
    apart: float | None = None

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stratum.state for stratum in self.strata))


def _compared(point: Point, base: _Side, new: _Side, confidence: float) -> _Pair:
    absences = [_absence(point, side) for side in (base, new)]
    if any(absences):
        is_open = not absences[0] and new.points[point].status not in NOT_MEASURED
        return _Pair(point, reason="; ".join(filter(None, absences)), is_open=is_open)
    runs, before, after = (base.run.id, new.run.id), base.visits_ns[point], new.visits_ns[point]
    strata = _strata(before, after)
    if not strata:
        why = _why_apart(runs, before, after)
        return _Pair(point, reason=why, is_open=not _share_a_state(before, after), apart=_apart(point, base, new))
    sizes = [stratum.sizes for stratum in strata]
    if not can_decide_over(sizes, confidence):
        wanted = launches_wanted((base.sampled[point], new.sampled[point]), sizes, confidence)
        why = _too_few(runs, strata, confidence)
        return _Pair(point, strata, why, is_open=True, wanted=wanted, apart=_apart(point, base, new))
    return _Pair(point, strata)


def _apart(point: Point, base: _Side, new: _Side) -> float | None:
    """By what ratio each launch of the new run took longer than any of the base, or shorter (then below 1).

    In whatever state of the machine, also while that changed: a fact, not a verdict, for a state may do so, too. None
    where that is too little to tell, or where the times are defined otherwise.
    """
    least = _APART
    all_ns: list[list[float]] = []
    definitions: set[Definition] = set()
    for side in (base, new):
        seen = [one.get(point, {}) for one in (side.visits_ns, side.aside_ns)]
        definitions.update(definition for conditions in seen for _, definition in conditions)
        of_launches = [launches for conditions in seen for launches in conditions.values()]
        if len(definitions) > 1:
            return None
        if len(set().union(*of_launches)) < 2:
            least = _APART_SINGLE
        all_ns.append([ns for launches in of_launches for ns in _values(launches)])
    longer, shorter = min(all_ns[1]) / max(all_ns[0]), max(all_ns[1]) / min(all_ns[0])
    return longer if longer >= least else shorter if shorter <= 1 / least else None


def _strata(before: Mapping[_Condition, _Launches], after: Mapping[_Condition, _Launches]) -> tuple[_Stratum, ...]:
    """The conditions that both runs have: that with most launches first, of those with as many that with most visits.

    A launch that saw several counts in the first of them alone: it has one luck. Times have no say in it.
    """

    def weight(condition: _Condition) -> tuple[int, ...]:
        of_both = [side[condition] for side in sides]
        visits = (sum(map(len, launches.values())) for launches in of_both)
        return min(map(len, of_both)), sum(map(len, of_both)), min(visits)

    shared = sorted((condition for condition in before if condition in after), key=lambda one: place(one[0]))
    sides = [{condition: dict(side[condition]) for condition in shared} for side in (before, after)]
    found: list[_Stratum] = []
    while shared:
        best = max(shared, key=weight)
        shared.remove(best)
        if not all(side[best] for side in sides):
            break
        found.append(_Stratum(best[0], sides[0][best], sides[1][best]))
        for side in sides:
            for other in shared:
                side[other] = {number: ns for number, ns in side[other].items() if number not in side[best]}
    return tuple(found)


def _absence(point: Point, side: _Side) -> str | None:
    """Why a side has nothing to compare, or None. What failed has not: not even by the samples from before."""
    stored = side.points[point]
    if stored.status in NOT_MEASURED:
        return f"{stored.status.value} in run {side.run.id}: {stored.reason or 'no reason is known'}"
    if point not in side.sampled:
        return f"run {side.run.id} has no samples of it"
    if point not in side.visits_ns:
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


def _too_few(runs: tuple[int, int], strata: Sequence[_Stratum], confidence: float) -> str:
    if len(strata) > 1:
        ordered = sorted(strata, key=lambda one: place(one.state))
        seen = "; ".join(f"{one.state} {_of_runs(runs, one)}" for one in ordered)
        return f"too few launches in each state: {seen}; in one state it takes {launches_enough(confidence)} of each"
    beside = launches_beside(len(strata[0].base_ns), confidence)
    takes = f"{launches_enough(confidence)} of each" if beside is None else f"{beside} of run {runs[1]} beside these"
    return f"too few launches in one state ({strata[0].state}): {_of_runs(runs, strata[0])}; it takes {takes}"


def _of_runs(runs: tuple[int, int], stratum: _Stratum) -> str:
    """`5 of run 3 and 1 of run 7`."""
    return " and ".join(f"{count} of run {run}" for count, run in zip(stratum.sizes, runs, strict=True))


# ---- all series -----------------------------------------------------------------------------------------------------


def _judged(pairs: Sequence[_Pair], margin: float, confidence: float, runs: tuple[int, int]) -> Iterable[SeriesChange]:
    decidable = [pair for pair in pairs if pair.reason is None]
    chances = dict(zip((pair.point for pair in decidable), _chances(decidable, margin), strict=True))
    for pair in pairs:
        found = None
        if pair.strata:
            found = shift_over([(_values(one.base_ns), _values(one.new_ns)) for one in pair.strata], confidence)
        chance = chances.get(pair.point)
        if chance is None or found is None or found.low is None or found.high is None:
            yield SeriesChange(
                *(pair.point, Verdict.UNDECIDED, pair.reason, pair.states, found),
                is_open=pair.is_open,
                wanted=pair.wanted,
                apart=pair.apart,
            )
            continue
        verdict = Verdict.SAME
        is_slower, is_faster = found.low > margin, found.high < 1 / margin
        if chance <= 1 - confidence and (is_slower or is_faster):
            verdict = Verdict.SLOWER if is_slower else Verdict.FASTER
        reason = None
        if verdict is not Verdict.SAME:
            reason = None if _visits_agree(pair, verdict) else _OVERLAP
            reason = reason or _stepped(pair, found.ratio, runs)
            verdict = verdict if reason is None else Verdict.UNDECIDED
        yield SeriesChange(
            *(pair.point, verdict, reason, pair.states, found, chance), is_open=True, is_beyond=is_slower or is_faster
        )


def _protocols(changes: Iterable[SeriesChange], base: _Side, new: _Side) -> dict[CurveKey, Protocols]:
    """Of the curves in which something moved: a fit takes its time."""
    moved = {curve_of(change.point) for change in changes if change.verdict in (Verdict.SLOWER, Verdict.FASTER)}
    switches = [_switches(moved, side) for side in (base, new)]
    return {curve: Protocols.of((base.run.id, new.run.id), *(of[curve] for of in switches)) for curve in moved}


def _switches(curves: Collection[CurveKey], side: _Side) -> dict[CurveKey, tuple[KnownSwitch, ...]]:
    """Those of a run's curves, each in the state that most of its launches saw."""
    listed: dict[CurveKey, list[Point]] = {}
    for point in side.visits_ns:
        if curve_of(point) in curves:
            listed.setdefault(curve_of(point), []).append(point)
    libraries = {launch.transport: launch.library for launch in side.run.launches.values()}
    found: dict[CurveKey, tuple[KnownSwitch, ...]] = {}
    for curve, points in listed.items():
        # A definition counts the bytes of its own size, so a state may have one for each.
        seen = [
            (state, point.bytes, launches) for point in points for (state, _), launches in side.visits_ns[point].items()
        ]
        most = Counter(state for state, _, launches in seen for _ in launches).most_common(1)[0][0]
        times_ns = {size: statistics.median(_values(launches)) for state, size, launches in seen if state == most}
        # By the name that the run has for it, which tells the version.
        transport = side.points[points[0]].point.transport
        found[curve] = known_switches(times_ns, transport, side.run.info.facts, libraries.get(transport, ""))
    return found


def _values(launches: _Launches) -> list[float]:
    return list(_medians(launches).values())


def _medians(launches: _Launches) -> dict[int, float]:
    return {  # a call for each of a hundred thousand launches with one visit would take longer than all else here
        number: visits_ns[0] if len(visits_ns) == 1 else statistics.median(visits_ns)
        for number, visits_ns in launches.items()
    }


def _visits_agree(pair: _Pair, verdict: Verdict) -> bool:
    """Whether single visits tell the runs apart too.

    Where visits of one series are of two kinds, in a ratio that drifts from minute to minute, neighbouring launches
    are alike, and those of two runs are not: nothing has changed but the hour.
    """
    longer = pairs = 0.0
    for one in pair.strata:
        base_ns, new_ns = (list(itertools.chain(*launches.values())) for launches in (one.base_ns, one.new_ns))
        longer += share_longer(base_ns, new_ns) * len(base_ns) * len(new_ns)
        pairs += len(base_ns) * len(new_ns)
    share = longer / pairs
    return (share if verdict is Verdict.SLOWER else 1 - share) >= _AGREEMENT


def _stepped(pair: _Pair, ratio: float, runs: tuple[int, int]) -> str | None:
    """Why a run says nothing that changed by half as much, or more, while it was measured; None if neither did.

    That is a gap between all launches before some moment and all after it, twice as wide as either of the two spreads:
    else a few launches in no order of time would have one too often.
    """
    enough = abs(math.log(ratio)) / 2
    for stratum in pair.strata:
        for run, launches in zip(runs, (stratum.base_ns, stratum.new_ns), strict=True):
            in_order = [median_ns for _, median_ns in sorted(_medians(launches).items())]
            for cut in range(_STEP_LEAST, len(in_order) - _STEP_LEAST + 1):
                lower, upper = sorted((in_order[:cut], in_order[cut:]), key=statistics.median)
                gap = math.log(min(upper) / max(lower))
                spread = max(math.log(max(side) / min(side)) for side in (lower, upper))
                if gap >= max(enough, _GAP_SPREADS * spread):
                    return (
                        f"run {run} itself changed by half of the difference, or more, between two of its launches, "
                        "and the machine may have done so again: measure both runs once more, in turns"
                    )
    return None


def _chances(pairs: Sequence[_Pair], margin: float) -> list[float]:
    import numpy as np

    if not pairs:
        return []
    strata = [one for pair in pairs for one in pair.strata]
    tables = []
    for sides in ([_medians(one.base_ns) for one in strata], [_medians(one.new_ns) for one in strata]):
        numbers = sorted({number for values in sides for number in values})
        tables.append(np.array([[values.get(number, math.nan) for number in numbers] for values in sides]))
    starts = None
    if len(strata) > len(pairs):
        starts = [0, *itertools.accumulate(len(pair.strata) for pair in pairs[:-1])]
    chances: list[float] = family_p(tables[0], tables[1], margin, starts).tolist()
    return chances
