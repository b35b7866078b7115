"""Has anything become slower? A baseline's plan is measured again, and what looks suspicious judged by new launches.

Most of what looks slower is not: among many series some are unlucky, and some launches meet a disturbed machine. So a
suspicion only chooses what is judged again, by new launches, and those alone give the verdict: who judges by the
values that raised the suspicion judges the unlucky ones. The whole plan runs in them, as in the baseline: what else
runs between the measurements of a series is a part of its times, above all where its ranks sleep while they wait. What
those can't decide, because the machine was in another state or scattered too much, is measured on while a time lasts.
(A limit of a file is no suspicion of chance: what misses one is measured once more and judged by all its
measurements.) A series is worse if all of its interval over launches lies beyond the slowdown allowed, it stands out
among all series (stats/shift.py), and no drift of the machine explains it (compare/drift.py): the baseline is not
measured again.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hockney.analysis.compare import Comparison, SeriesChange, Verdict, compare_runs
from hockney.analysis.compare.expect import Expectations, Judged, judge, points_of
from hockney.analysis.compare.expect import Outcome as Judgement
from hockney.analysis.compare.library_upgrade import renamed
from hockney.cli.rerun import LAUNCHES, more_launches
from hockney.errors import HockneyError, UsageError
from hockney.machine import usable_cpus
from hockney.measure import run as running
from hockney.measure.plan import Plan, RunOptions, Skipped, make_plan, plan_again
from hockney.measure.run import Display, Outcome
from hockney.model import NOT_MEASURED, Point, PointStatus, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.shift import LAUNCHES_MIN
from hockney.units import counted
from hockney.worker.catalogue import Catalogue

PATIENCE_S = 120.0  # how long what is inconclusive is measured again, if nothing else is said
_TESTS = 3  # of a series in new launches, at most: each may err. From one to the next they double
_HELP = "a quieter machine or more launches of the baseline help"


@dataclass(frozen=True)
class Checked:
    """What a check found. `comparison` has each series with the verdict of its last look; SLOWER is worse."""

    run_id: int
    comparison: Comparison
    judged_again: int  # series, by new launches alone

    @property
    def is_worse(self) -> bool:
        return self.comparison.counts[Verdict.SLOWER] > 0

    @property
    def is_whole(self) -> bool:
        """Whether every series of the baseline was measured and decided."""
        return not self.comparison.counts[Verdict.INCONCLUSIVE] and not self.comparison.only_base


def check(
    reference: str,
    catalogue: Catalogue,
    store: Store,
    display: Display,
    *,
    command: str,
    max_slowdown: float,
    time_s: float | None = None,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
) -> Checked:
    """Measure a run's plan again and compare. `max_slowdown` is a fraction; `time_s` that of a look (None: the base's).

    What is inconclusive after the first new launches is measured on, by looks that can end within `patience_s`. Raises
    UsageError for a baseline that nothing can be compared with, before anything is measured; HockneyError where it was
    stopped.
    """
    base_id = store.find_run(reference)
    plan = _plan(store, base_id, catalogue)
    plan = plan if time_s is None else replace(plan, time_s=time_s)
    outcome = running.measure(plan, catalogue, store, display, command=command, label=None)
    _refuse_stopped(outcome)
    compared = functools.partial(compare_runs, store, base_id, outcome.run_id, margin=1 + max_slowdown)
    found = compared()
    suspects = {
        point: _Suspect() for point in _measured(store, outcome.run_id, _suspicious(found.changes, found.margin))
    }
    left = list(suspects)
    everything = _measured(store, outcome.run_id, plan.points)
    until_s = clock() + patience_s
    while left:
        _refuse_stopped(
            running.add_launches(outcome.run_id, everything, plan.launches, plan.time_s, catalogue, store, display)
        )
        fresh = compared(first_launch=plan.launches)
        found = replace(fresh, changes=found.changes, protocols={**found.protocols, **fresh.protocols})
        for change in fresh.changes:
            if change.point in left:
                suspects[change.point].look(change, found.margin, len(fresh.changes))
        if clock() + plan.time_s > until_s:
            break
        left = _measured(store, outcome.run_id, [point for point in left if suspects[point].is_open])
    changes = tuple(
        suspects[change.point].change or change if change.point in suspects else change for change in found.changes
    )
    return Checked(outcome.run_id, replace(found, changes=changes), len(suspects))


@dataclass
class _Suspect:
    """A series that is judged again: what its new launches say, in how many tests, and with how many in the last."""

    change: SeriesChange | None = None
    tests: int = 0
    launches: int = 0

    def look(self, change: SeriesChange, margin: float, among: int) -> None:
        """Take in what all new launches say; what is still open is tested again when there are twice as many.

        `among`: how many series they are compared in.
        """
        launches = change.shift.n_new if change.chance is not None and change.shift is not None else 0
        if self.tests and change.is_open and launches < 2 * self.launches:
            return
        self.tests += change.chance is not None
        self.launches = launches
        self.change = _settled(change, margin, among)

    @property
    def is_open(self) -> bool:
        """Whether more launches may still decide it."""
        found = self.change
        return found is not None and found.verdict is Verdict.INCONCLUSIVE and found.is_open and self.tests < _TESTS


def _plan(store: Store, base_id: int, catalogue: Catalogue) -> Plan:
    stored = store.run(base_id)
    asked = [row for row in store.points(base_id) if row.status is not PointStatus.SKIPPED]
    sampled = {measurement.point_id for measurement in store.summaries(base_id) if measurement.samples}
    good = dict.fromkeys(row.point for row in asked if row.id in sampled and row.status is not PointStatus.FAILED)
    if not good:
        raise UsageError(f"run {base_id} can't be a baseline: none of its points has samples")
    # Not those that a check adds for some points: with it as a baseline the next would make ever more.
    made = len({launch.index for launch in stored.launches.values()})
    base_launches = min(made, int(stored.info.plan.get("launches", made)))
    if base_launches < LAUNCHES_MIN:
        raise UsageError(
            f"run {base_id} can't be a baseline: it has {counted(base_launches, 'launch', 'launches')}, and it takes "
            f"{LAUNCHES_MIN} to know how much launches vary; {more_launches(base_id, stored.info, LAUNCHES)}"
        )
    # Only what has come since may stand in for what is gone: a library that was there was another one all the time.
    names = renamed(stored.info.facts.get("transports") or (), catalogue.transports)
    again = {
        row.point: replace(row.point, transport=names.get(row.point.transport, row.point.transport)) for row in asked
    }
    launches = max(base_launches, LAUNCHES)
    try:
        plan = plan_again(
            *(stored.info.suite, [again[point] for point in good], stored.info.plan),
            *(catalogue, len(usable_cpus())),
            launches=launches,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"run {base_id} was stored by another version of hockney and cannot be measured again: take a new baseline"
        ) from error
    lack = f"run {base_id} has nothing to check it against"
    useless = [Skipped(again[row.point], lack) for row in asked if row.point not in good]
    return replace(plan, skipped=(*plan.skipped, *useless))


def check_expectations(
    expectations: Expectations,
    catalogue: Catalogue,
    store: Store,
    display: Display,
    *,
    command: str,
    time_s: float | None = None,
) -> tuple[int, list[Judged]]:
    """Measure what has limits, and what does not surely keep them once more; gives the run and what became of each."""
    wishes = RunOptions(time_s=time_s)
    plan = make_plan(expectations.suite(), wishes, catalogue, len(usable_cpus()))
    outcome = running.measure(plan, catalogue, store, display, command=command, label=None)
    _refuse_stopped(outcome)
    judged = judge(Run(store, outcome.run_id), expectations, catalogue)
    unsure = points_of(judged, (Judgement.MISSED, Judgement.INCONCLUSIVE))
    again = _measured(store, outcome.run_id, unsure)
    if again:
        budget_s = plan.time_s / len(plan.points) * len(again)
        _refuse_stopped(running.add_launches(outcome.run_id, again, plan.launches, budget_s, catalogue, store, display))
        judged = judge(Run(store, outcome.run_id), expectations, catalogue)
    return outcome.run_id, judged


def _measured(store: Store, run_id: int, points: Iterable[Point]) -> list[Point]:
    """Those of the points that neither failed nor were skipped."""
    measured = {row.point for row in store.points(run_id) if row.status not in NOT_MEASURED}
    return [point for point in points if point in measured]


def _refuse_stopped(outcome: Outcome) -> None:
    if outcome.status is RunStatus.INTERRUPTED:
        raise HockneyError(
            f"the check was stopped, so nothing is decided; what was measured is stored as run {outcome.run_id}"
        )


def _suspicious(changes: Iterable[SeriesChange], margin: float) -> list[Point]:
    """Slower by more than is allowed, surely or not; and what could not be decided."""
    return [
        change.point
        for change in changes
        if change.verdict is Verdict.INCONCLUSIVE or (change.shift is not None and change.shift.ratio > margin)
    ]


def _settled(change: SeriesChange, margin: float, among: int) -> SeriesChange:
    """The verdict of a look at fresh launches: what looks slower still, but not surely, is inconclusive."""
    if change.verdict is not Verdict.SAME or change.shift is None or change.shift.ratio <= margin:
        return change
    doubt = "but not surely"
    if change.is_beyond:  # its own interval is: only that it is one of so many is in the way
        doubt = f"but {f'among {among} series ' if among > 1 else ''}so much may come by chance"
    return replace(
        change, verdict=Verdict.INCONCLUSIVE, reason=f"it looks slower by more than is allowed, {doubt}; {_HELP}"
    )
