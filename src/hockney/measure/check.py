"""Finds series that became slower: measures a baseline's plan again, in short launches, until the answer is certain.

docs/checking.md says when it ends. A slowdown that is not by far (30 % beyond the limit, which drift hardly ever
explains) counts only at the ends of time and patience, and only if the later half of the launches shows it too: other
load comes and goes within seconds. The error of all looks together is 5 %: each early one has a fiftieth of it, either
end two fifths (J. L. Haybittle, Brit. J. Radiol. 44, 1971). All launches run the whole plan, like the baseline: other
load affects a series, especially if ranks sleep while they wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hockney.analysis.compare import Comparison, Reason, ReasonCode, SeriesChange, Verdict, compare_runs
from hockney.analysis.compare.differences import renamed
from hockney.analysis.expect import Expectations, Judged, Outcome, judge_expectations
from hockney.analysis.health.absolute import EXPECTED
from hockney.analysis.health.topology import SWITCHES
from hockney.analysis.host_series import SUITE, series_of
from hockney.analysis.repeat import LAUNCHES_WANTED, longer_health, more_launches
from hockney.errors import Fix, HockneyError, UsageError
from hockney.measure import run as running
from hockney.measure.health import measure_health
from hockney.measure.plan import Plan, make_plan, plan_again
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.sampler import Sampler
from hockney.model import NOT_MEASURED, Point, PointStatus, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store, StoredPoint, StoredRun
from hockney.stats.shift import LAUNCHES_MIN
from hockney.suites import Limits
from hockney.units import counted, percent_digits
from hockney.worker.catalogue import Catalogue
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions, Skipped

PATIENCE_S = 120.0  # how long inconclusive series are measured again, by default
LEAST_S = 5.0  # before a check ends early: other load may come for some seconds
LOOKS = tuple(LAUNCHES_MIN << n for n in range(10))  # after how many launches a check may end
FAR = 1.3  # times the limit
EARLY_SHARE, END_SHARE = 0.02, 0.4  # of the error of all looks: of ten early ones, and of the two ends
# Reasons that no launches of the check remove.
_FINAL = (ReasonCode.FAILED, ReasonCode.SKIPPED, ReasonCode.STATE_UNKNOWN, ReasonCode.OTHER_DEFINITION)

Compare = Callable[[float, float, int], Sequence[SeriesChange]]
"""(margin, share, first) -> the changes, by the launches from the first on; see compare_runs."""


@dataclass
class Gate:
    """The verdicts of a check on the series of a baseline. `margin`: the limit, a ratio.

    `changes`: those at the last end; one that more launches cannot decide stays.
    """

    compare: Compare
    margin: float
    base_id: int
    changes: dict[Point, SeriesChange] = field(default_factory=dict)

    @property
    def open(self) -> set[Point]:
        """The series that more launches may decide."""
        return {point for point, change in self.changes.items() if may_be_decided(change, self.base_id)}

    @property
    def is_slower(self) -> bool:
        """Whether a series is slower."""
        return any(change.verdict is Verdict.SLOWER for change in self.changes.values())

    def is_over(self) -> bool:
        """Whether a series is slower by far, or none needs another launch; those that have their answer do not."""
        answered = self.changes.keys() - self.open
        return bool(self._far(EARLY_SHARE) - answered) or all(
            change.point in answered or self._is_decided(change) for change in self.compare(self.margin, EARLY_SHARE, 0)
        )

    def _far(self, share: float) -> set[Point]:
        """The points that are slower by far."""
        slower = (each for each in self.compare(FAR * self.margin, share, 0) if each.verdict is Verdict.SLOWER)
        return {change.point for change in slower}

    def _is_decided(self, change: SeriesChange) -> bool:
        """Whether a series is exact, within the limit with its whole interval, or beyond the help of launches."""
        if change.verdict is Verdict.INCONCLUSIVE and not change.is_too_wide:
            return not may_be_decided(change, self.base_id)
        return change.is_exact or (change.verdict is not Verdict.SLOWER and change.reach <= self.margin)

    def answer(self, launches: int, share: float) -> None:
        """Judge the series that have no answer yet, after this number of launches, with this share of the error."""
        later = {change.point: change.shift for change in self.compare(self.margin, share, launches // 2)}
        changes, far, is_open = self.compare(self.margin, share, 0), self._far(share), self.open
        for change in changes:
            if change.point not in self.changes or change.point in is_open:
                shown = later.get(change.point)
                lasts = change.point in far or change.is_exact or (shown is not None and shown.ratio > self.margin)
                self.changes[change.point] = settled(change, self.margin, len(changes), lasts=lasts)


def check(
    reference: str, lab: Lab, *, max_slowdown: float, time_s: float | None = None, patience_s: float = PATIENCE_S
) -> Comparison:
    """Measure a run's plan again and compare.

    `max_slowdown` is a fraction; `time_s` when it ends at the latest (None: the baseline's time), or `patience_s` later
    if a series is inconclusive then; but after six launches at least, unless all is certain before. Raises UsageError
    for an unusable baseline, before anything is measured; HockneyError when stopped.
    """
    store, base_id = lab.store, lab.store.find_run(reference)
    if store.run(base_id).info.suite == SUITE:
        return _check_health(base_id, lab, 1 + max_slowdown, time_s)
    plan = plan_of_baseline(store, base_id, lab.catalogue)
    plan = plan if time_s is None else plan.within(time_s=time_s)
    runs, share = list[int](), END_SHARE

    def compared(margin: float, share: float, first: int) -> Sequence[SeriesChange]:
        return compare_runs(store, base_id, runs[0], margin=margin, share=share, first_launch=first).changes

    def launches() -> int:
        return len({launch.index for launch in store.run(runs[0]).launches.values()})

    def make_sampler(plan: Plan, sides: Sequence[running.Side], **launch: Any) -> Sampler:
        runs[:] = [sides[0].recorder.run_id]
        return running.one_side(plan, sides, is_short=plan.deadline_ns is None, **launch)

    def rest() -> Collection[Point]:
        nonlocal share
        is_early = launches() in LOOKS and time.monotonic() >= least_s and gate.is_over()
        share = EARLY_SHARE if is_early else END_SHARE
        return () if is_early else plan.points

    gate = Gate(compared, 1 + max_slowdown, base_id)
    is_real = any(point.transport not in plan.virtual for point in plan.points)
    least_s = time.monotonic() + is_real * min(LEAST_S, plan.limits.time_s / 4)
    how: dict[str, Any] = {"make_sampler": make_sampler, "rest": rest}
    (outcome,) = running.measure_variants([running.Variant(plan)], lab, **how)
    run_id = _unless_stopped(outcome)
    gate.answer(launches(), share)
    measured = _measured(store, run_id, plan.points)
    left = gate.open.intersection(measured) if patience_s > 0 and not gate.is_slower else set[Point]()
    if left:
        share = END_SHARE
        _unless_stopped(running.add_launches(run_id, measured, LAUNCHES_WANTED, patience_s, lab, **how))
        gate.answer(launches(), share)
    limit, patience = f"{percent_digits(max_slowdown)}%", f"{math.ceil(2 * patience_s or PATIENCE_S)}s"
    argv = ("hockney", "check", "--baseline", str(base_id), "--max-slowdown", limit, "--patience", patience)
    comparison = compare_runs(store, base_id, run_id, margin=gate.margin, share=share)
    again = Fix("check longer", argv)
    return replace(comparison, changes=tuple(gate.changes.values()), again=again, judged_again=len(left))


def _check_health(base_id: int, lab: Lab, margin: float, time_s: float | None) -> Comparison:
    """Measure the hosts of a health run again and compare; it ends by its own rules."""
    stored, planned, _ = usable_baseline(lab.store, base_id)
    limits = Limits.of_plan(stored.info.plan)
    asked = RunOptions(
        tuple({row.point.transport: None for row in planned}),
        placement=Placement.of_plan(stored.info.plan),
        limits=limits if time_s is None else replace(limits, time_s=time_s),
    )
    again = {"expected": stored.info.plan.get(EXPECTED, ()), "switches": stored.info.plan.get(SWITCHES)}
    run_id = _unless_stopped(measure_health(asked, lab, label=None, **again))
    comparison = compare_runs(lab.store, base_id, run_id, margin=margin)
    among = len(comparison.changes)
    return replace(comparison, changes=tuple(settled(change, margin, among) for change in comparison.changes))


def settled(change: SeriesChange, margin: float, among: int, *, lasts: bool = True) -> SeriesChange:
    """The verdict at an end, where a slowdown that is not certain, or does not last, is inconclusive.

    A wide interval without a slowdown beyond the margin is fine. `among`: how many series were compared.
    """
    if change.is_too_wide and change.reach <= margin:
        return replace(change, verdict=Verdict.SAME, reasons=())
    shift, reason = change.shift, Reason(ReasonCode.NOT_SIGNIFICANT)
    if change.verdict is Verdict.SAME and shift is not None and shift.ratio > margin:
        reason = Reason(ReasonCode.MAY_BE_CHANCE, {"among": among}) if shift.is_beyond(margin) else reason
    elif change.verdict is not Verdict.SLOWER or lasts:
        return change
    return replace(change, verdict=Verdict.INCONCLUSIVE, reasons=(reason,))


def may_be_decided(change: SeriesChange, base_id: int) -> bool:
    """Whether more launches of the check may decide a series; none replace missing launches of the baseline."""
    return change.verdict is Verdict.INCONCLUSIVE and all(
        reason.code not in _FINAL and reason.facts.get("run") != base_id for reason in change.reasons
    )


def usable_baseline(store: Store, base_id: int) -> tuple[StoredRun, list[StoredPoint], Collection[Point]]:
    """A stored run, its planned points and those with samples. Raises UsageError for one that cannot be a baseline."""
    stored = store.run(base_id)
    if stored.info.is_imported:
        why = "it was imported, so it cannot be measured again. Compare it with another import"
        raise UsageError(f"run {base_id} can't be a baseline: {why}")
    planned = [row for row in store.points(base_id) if row.status is not PointStatus.SKIPPED]
    sampled = {measurement.point_id for measurement in store.summaries(base_id) if measurement.samples}
    good = dict.fromkeys(row.point for row in planned if row.id in sampled and row.status is not PointStatus.FAILED)
    if not good:
        raise UsageError(f"run {base_id} can't be a baseline: none of its points has samples")
    made = len({launch.index for launch in stored.launches.values()})
    if stored.info.suite == SUITE:
        if all(
            len({series.unit_of(each) for each, _ in series.pairs}) < LAUNCHES_MIN
            for series in series_of(Run(store, base_id))
        ):
            why = f"it has fewer than {LAUNCHES_MIN} measurements of every host and link"
            raise UsageError(f"run {base_id} can't be a baseline: {why}", fix=longer_health(stored.info))
    elif made < LAUNCHES_MIN:
        has = f"it has {counted(made, 'launch', 'launches')}, and a baseline needs {LAUNCHES_MIN}"
        fix = more_launches(base_id, stored.info, LAUNCHES_WANTED)
        raise UsageError(f"run {base_id} can't be a baseline: {has}", fix=fix)
    Plan.of_run(stored, ())  # raises for a plan of another version
    return stored, planned, good


def plan_of_baseline(store: Store, base_id: int, catalogue: Catalogue) -> Plan:
    """The plan that measures a stored run again. Raises UsageError for a run that cannot be a baseline."""
    stored, planned, good = usable_baseline(store, base_id)
    # Only a newly installed library may replace one that is gone.
    names = renamed(stored.info.facts.get("transports") or (), catalogue.transports)
    now = {
        row.point: replace(row.point, transport=names.get(row.point.transport, row.point.transport)) for row in planned
    }
    plan = plan_again(stored, [now[point] for point in good], catalogue, launches=LAUNCHES_WANTED)
    why = f"run {base_id} has nothing to check it against"
    useless = [Skipped(now[row.point], why) for row in planned if row.point not in good]
    return replace(plan, skipped=(*plan.skipped, *useless)).within(more_launches=True)


def plan_of_limits(expectations: Expectations, catalogue: Catalogue, time_s: float | None) -> Plan:
    """The plan that measures series with limits."""
    suite = expectations.suite()
    return make_plan(suite, RunOptions(limits=suite.limits(time_s=time_s)), catalogue)


def check_expectations(
    expectations: Expectations, lab: Lab, *, time_s: float | None = None
) -> tuple[int, list[Judged]]:
    """Measure series with limits, and once more those that may miss them; the run, and the outcome of each limit."""
    catalogue, store = lab.catalogue, lab.store
    plan = plan_of_limits(expectations, catalogue, time_s)
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
