"""Finds series that became slower: measures a baseline's plan again and judges suspects by new launches.

Among many series some seem slower by bad luck. So a suspicion only chooses the series to judge again, and new launches
alone give the verdict. They run the whole plan, like the baseline: other load affects a series, especially if ranks
sleep while they wait. Inconclusive series are measured again with twice the launches each time, within a time. A series
that misses a limit of a file is measured once more and judged by all its measurements.

A series that is slower by far needs no second judgement: among all series the chance of one so far beyond twice the
limit is 0.1 %, and no drift doubles times. After 3, 6, 12 … launches the check ends if every series is so, or fine with
its whole interval (J. L. Haybittle, Brit. J. Radiol. 44, 1971: rare early ends leave the error of the last look).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hockney.analysis.compare import Comparison, Reason, ReasonCode, SeriesChange, Verdict, compare_runs
from hockney.analysis.compare.differences import renamed
from hockney.analysis.compare.expect import Expectations, Judged, Outcome, judge_expectations
from hockney.analysis.repeat import LAUNCHES_WANTED, more_launches
from hockney.errors import Fix, HockneyError, UsageError
from hockney.measure import run as running
from hockney.measure.plan import Plan, make_plan, plan_again
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.sampler import Sampler
from hockney.model import NOT_MEASURED, Point, PointStatus, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.shift import LAUNCHES_MIN
from hockney.units import counted, percent_digits
from hockney.worker.catalogue import Catalogue
from hockney.worker.points import RunOptions, Skipped

PATIENCE_S = 120.0  # how long inconclusive series are measured again, by default
LOOKS = tuple(LAUNCHES_MIN << n for n in range(12))  # after how many launches a check may end
FAR = 2.0  # times the limit
_RARE = 0.001
# Reasons that no launches of the check remove.
_FINAL = (ReasonCode.FAILED, ReasonCode.SKIPPED, ReasonCode.STATE_UNKNOWN, ReasonCode.OTHER_DEFINITION)


def check(
    reference: str,
    lab: Lab,
    *,
    max_slowdown: float,
    time_s: float | None = None,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
) -> Comparison:
    """Measure a run's plan again and compare.

    `max_slowdown` is a fraction; `time_s` that of the first measurement (None: the baseline's). Series that are
    inconclusive after the first new launches are measured again if that can end within `patience_s`. Raises UsageError
    for an unusable baseline, before anything is measured; HockneyError when stopped.
    """
    store, base_id = lab.store, lab.store.find_run(reference)
    plan = plan_of_baseline(store, base_id, lab.catalogue)
    plan = plan if time_s is None else plan.within(time_s=time_s)
    margin, limits = 1 + max_slowdown, plan.limits

    def compared(run_id: int, first_launch: int = 0) -> Comparison:
        fresh = compare_runs(store, base_id, run_id, margin=margin, first_launch=first_launch)
        return replace(fresh, changes=tuple(or_not_slower(change, margin) for change in fresh.changes))

    def far_slower(run_id: int) -> set[Point]:
        return slower_by_far(compare_runs(store, base_id, run_id, margin=FAR * margin).changes)

    def is_decided(run_id: int) -> bool:
        return all_decided(compared(run_id).changes, far_slower(run_id), margin, base_id)

    (outcome,) = running.measure_variants([running.Variant(plan)], lab, make_sampler=_until(is_decided))
    run_id = _unless_stopped(outcome)
    comparison = compared(run_id)
    measured, certain = _measured(store, run_id, plan.points), far_slower(run_id)
    suspects = [point for point in suspicious(comparison.changes, margin) if point in measured and point not in certain]
    verdicts: dict[Point, SeriesChange] = {}
    left, made = suspects, 0  # how many times the launches of the plan
    first = len({launch.index for launch in store.run(run_id).launches.values()})  # an early end made fewer
    until_s = clock() + patience_s
    while left and (not made or clock() + made * limits.time_s <= until_s):
        more = max(1, made)
        launches, budget_s = more * limits.launches, more * limits.time_s
        _unless_stopped(running.add_launches(run_id, measured, launches, budget_s, lab))
        made += more
        fresh = compared(run_id, first)
        comparison = replace(fresh, changes=comparison.changes)
        judged = {change.point: settled(change, margin, len(fresh.changes)) for change in fresh.changes}
        verdicts |= {point: judged[point] for point in left}
        left = [point for point in left if may_be_decided(verdicts[point], base_id)]
    changes = tuple(verdicts.get(change.point, change) for change in comparison.changes)
    longer = ("--max-slowdown", f"{percent_digits(max_slowdown)}%", "--patience", f"{math.ceil(2 * patience_s)}s")
    again = Fix("check longer", ("hockney", "check", "--baseline", str(base_id), *longer))
    return replace(comparison, changes=changes, again=again, judged_again=len(suspects))


def _until(is_decided: Callable[[int], bool]) -> running.MakeSampler:
    """Makes samplers that measure nothing from the first of LOOKS on at which all is decided."""
    launches = itertools.count()

    def make(plan: Plan, sides: Sequence[running.Side], **launch: Any) -> Sampler:
        if next(launches) in LOOKS and is_decided(sides[0].recorder.run_id):
            plan = replace(plan, points=())
        return running.one_side(plan, sides, **launch)

    return make


def slower_by_far(changes: Iterable[SeriesChange]) -> set[Point]:
    """The points that are slower beyond a margin almost certainly; those on models without noise have no chance."""
    slower = (change for change in changes if change.verdict is Verdict.SLOWER)
    return {change.point for change in slower if change.chance is None or change.chance <= _RARE}


def all_decided(changes: Iterable[SeriesChange], certain: Collection[Point], margin: float, base_id: int) -> bool:
    """Whether no series needs another launch: each is slower by far, fine with its whole interval, or lost."""
    return all(
        change.point in certain
        or (change.verdict in (Verdict.SAME, Verdict.FASTER) and change.reach <= margin)
        or (change.verdict is Verdict.INCONCLUSIVE and not may_be_decided(change, base_id))
        for change in changes
    )


def or_not_slower(change: SeriesChange, margin: float) -> SeriesChange:
    """The change, but fine if its interval, which was too wide for a verdict, has no slowdown beyond the margin."""
    is_decided = change.is_too_wide and change.reach <= margin
    return replace(change, verdict=Verdict.SAME, reasons=()) if is_decided else change


def suspicious(changes: Iterable[SeriesChange], margin: float) -> list[Point]:
    """Points that are slower than allowed, significantly or not, and inconclusive ones."""
    return [
        change.point
        for change in changes
        if change.verdict is Verdict.INCONCLUSIVE or (change.shift is not None and change.shift.ratio > margin)
    ]


def settled(change: SeriesChange, margin: float, among: int) -> SeriesChange:
    """The verdict by new launches alone. A series that is slower without certainty is inconclusive.

    `among`: how many series were compared.
    """
    if change.verdict is not Verdict.SAME or change.shift is None or change.shift.ratio <= margin:
        return change
    reason = Reason(ReasonCode.NOT_SIGNIFICANT)
    if change.shift.is_beyond(margin):
        reason = Reason(ReasonCode.MAY_BE_CHANCE, {"among": among})
    return replace(change, verdict=Verdict.INCONCLUSIVE, reasons=(reason,))


def may_be_decided(change: SeriesChange, base_id: int) -> bool:
    """Whether more launches of the check may decide a series; none replace missing launches of the baseline."""
    return change.verdict is Verdict.INCONCLUSIVE and all(
        reason.code not in _FINAL and reason.facts.get("run") != base_id for reason in change.reasons
    )


def plan_of_baseline(store: Store, base_id: int, catalogue: Catalogue) -> Plan:
    """The plan that measures a stored run again. Raises UsageError for a run that cannot be a baseline."""
    stored = store.run(base_id)
    if stored.info.is_imported:
        raise UsageError(
            f"run {base_id} can't be a baseline: it was imported, so it cannot be measured again. Compare it with "
            "another import"
        )
    planned = [row for row in store.points(base_id) if row.status is not PointStatus.SKIPPED]
    sampled = {measurement.point_id for measurement in store.summaries(base_id) if measurement.samples}
    good = dict.fromkeys(row.point for row in planned if row.id in sampled and row.status is not PointStatus.FAILED)
    if not good:
        raise UsageError(f"run {base_id} can't be a baseline: none of its points has samples")
    # Without the launches that a check adds: with it as a baseline the next check would make ever more.
    made = len({launch.index for launch in stored.launches.values()})
    launches = min(made, max(int(stored.info.plan.get("launches", made)), LAUNCHES_MIN))
    if launches < LAUNCHES_MIN:
        fix = more_launches(base_id, stored.info, LAUNCHES_WANTED)
        raise UsageError(
            f"run {base_id} can't be a baseline: it has {counted(launches, 'launch', 'launches')}, and a baseline "
            f"needs {LAUNCHES_MIN}",
            fix=fix,
        )
    # Only a newly installed library may replace one that is gone.
    names = renamed(stored.info.facts.get("transports") or (), catalogue.transports)
    now = {
        row.point: replace(row.point, transport=names.get(row.point.transport, row.point.transport)) for row in planned
    }
    points, launches = [now[point] for point in good], max(launches, LAUNCHES_WANTED)
    plan = plan_again(stored, points, catalogue, launches=launches)
    why = f"run {base_id} has nothing to check it against"
    useless = [Skipped(now[row.point], why) for row in planned if row.point not in good]
    return replace(plan, skipped=(*plan.skipped, *useless))


def check_expectations(
    expectations: Expectations, lab: Lab, *, time_s: float | None = None
) -> tuple[int, list[Judged]]:
    """Measure series with limits, and once more those that may miss them; the run, and the outcome of each limit."""
    suite, catalogue, store = expectations.suite(), lab.catalogue, lab.store
    plan = make_plan(suite, RunOptions(limits=suite.limits(time_s=time_s)), catalogue)
    run_id = _unless_stopped(running.measure(plan, lab))
    judged = judge_expectations(Run(store, run_id), expectations, catalogue)
    unkept = dict.fromkeys(limit.point for limit in judged if limit.point and limit.outcome is not Outcome.MET)
    again = _measured(store, run_id, unkept)
    if again:
        budget_s = plan.limits.time_s / len(plan.points) * len(again)
        _unless_stopped(running.add_launches(run_id, again, plan.limits.launches, budget_s, lab))
        judged = judge_expectations(Run(store, run_id), expectations, catalogue)
    return run_id, judged


def _measured(store: Store, run_id: int, points: Iterable[Point]) -> list[Point]:
    """The points that neither failed nor were skipped."""
    measured = {row.point for row in store.points(run_id) if row.status not in NOT_MEASURED}
    return [point for point in points if point in measured]


def _unless_stopped(outcome: RunOutcome) -> int:
    """The number of a run. Raises HockneyError for one that was stopped."""
    if outcome.status is RunStatus.STOPPED:
        raise HockneyError(
            f"the check was stopped, so nothing is decided; the measurements are stored as run {outcome.run_id}"
        )
    return outcome.run_id
