"""One run from its plan to the store: starts the jobs, lets the sampler measure, writes every round, notes warnings.

When Ctrl-C, a full disk or a kill ends a run early, every finished round is in the store, and the run can be resumed.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hockney import __version__
from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import UsageError
from hockney.machine import (
    Moment,
    StealMeter,
    Watch,
    another_machine,
    choose_cpus,
    facts,
    refuse_unusable,
    usable_cpus,
    warnings_before,
)
from hockney.measure.plan import Plan, Skipped, refuse_empty
from hockney.measure.pool import Failures, WorkerPool
from hockney.measure.precision import judge_over_launches
from hockney.measure.recorder import Display, Recorder, RunOutcome, finish_quietly, interrupts_wait
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point, PointStatus, RunInfo, RunStatus
from hockney.results.store import Store, StoredPoint, StoredRun
from hockney.results.store.lock import alone
from hockney.results.traits import traits_json
from hockney.suites import LAUNCHES_MAX
from hockney.worker.build import compiler_facts
from hockney.worker.catalogue import Catalogue
from hockney.worker.processes import cpu_time_s

_MEASUREMENTS_LATER = 8  # of a point in each launch after the first: the scatter between launches decides


@dataclass(frozen=True)
class Start:
    """Where a run begins or is resumed: its next round and launch, and the earlier measurements that count.

    `alike`: a measurement of each point that has any, whose batch is used again. `several`: points are judged over all
    launches. `precise`, `failed`: how many points are so already; they are not measured again.
    """

    seed: int
    several: bool
    round: int = 0
    launch: int = 0
    earlier: Sequence[Measurement] = ()
    alike: Mapping[Point, Measurement] = field(default_factory=dict)
    precise: int = 0
    failed: int = 0


def measure(
    plan: Plan, catalogue: Catalogue, store: Store, display: Display, *, command: str, label: str | None = None
) -> RunOutcome:
    """Measure a new run. Raises UsageError if the plan has no point, StoreError.

    KeyboardInterrupt stops it: all measurements made are stored, and the outcome is INTERRUPTED.
    """
    info = describe_run(plan, catalogue, command, label)
    with contextlib.ExitStack() as held:
        try:
            with interrupts_wait():  # a stored run must have its number here
                run_id = create_run(plan, info, store, held)
            warn_before(plan, info.facts, store, run_id, "When the run began")
        except KeyboardInterrupt:
            store.finish_run(run_id, RunStatus.INTERRUPTED)
            return RunOutcome(run_id, RunStatus.INTERRUPTED, 0)
        return _carry_out(plan, catalogue, store, display, run_id, Start(info.seed, several=plan.launches > 1))


def describe_run(
    plan: Plan, catalogue: Catalogue, command: str, label: str | None, environment: Mapping[str, str] = os.environ
) -> RunInfo:
    """All that is stored of a run that begins now. Raises UsageError without any point, or for unusable CPUs."""
    refuse_empty(plan)
    refuse_unusable(plan.cpus)
    points = (*plan.points, *(skipped.point for skipped in plan.skipped))
    patterns, transports = {point.pattern for point in points}, {point.transport for point in points}
    known = {
        "transports": list(catalogue.transports),
        "sleeping": [name for name, info in catalogue.transports.items() if info.sleeps],
        "traits": traits_json(
            (info for name, info in catalogue.patterns.items() if name in patterns),
            (info for name, info in catalogue.transports.items() if name in transports),
        ),
    }
    return RunInfo(
        command=command,
        suite=plan.suite,
        label=label,
        started_unix_s=time.time(),
        seed=random.SystemRandom().randrange(1 << 32),
        version=__version__,
        facts={**facts(environment=environment, compiler=compiler_facts()), **known},
        plan=plan.as_json(),
    )


def create_run(plan: Plan, info: RunInfo, store: Store, held: contextlib.ExitStack) -> int:
    """Store a new run with its points; returns its number. `held` keeps its lock."""
    skipped = {row.point: row.reason for row in plan.skipped}
    return store.create_run(
        info, plan.points, skipped, lock=lambda number: held.enter_context(alone(store.path, number))
    )


def warn_before(plan: Plan, known: dict[str, Any], store: Store, run_id: int, when: str) -> None:
    """Store the warnings of what disturbs this plan now, which observes other programs for a moment."""
    ranks_here = max(point.ranks for point in plan.points) if not plan.hosts else 1
    over_loopback = not plan.hosts and any(point.transport.startswith("tcp") for point in plan.points)
    for warning in warnings_before(known, ranks=ranks_here, when=when, cpus=plan.cpus):
        if warning.kind != "congestion" or over_loopback:
            store.add_warning(run_id, warning)


def resume(reference: str, catalogue: Catalogue, store: Store, display: Display) -> RunOutcome:
    """Continue a run that was killed or interrupted, or whose time was up.

    Points that are not precise, failed or skipped get the plan's time again, and missing launches are made. What failed
    stays so, and the run PARTIAL. Raises UsageError for a run that cannot be resumed, with the reason.
    """
    run_id = store.find_run(reference)
    with alone(store.path, run_id):
        return _resume(run_id, catalogue, store, display)


def _resume(run_id: int, catalogue: Catalogue, store: Store, display: Display) -> RunOutcome:
    stored, points, known = store.run(run_id), store.points(run_id), facts()
    _refuse_unfit(stored, points, known)
    measurable = [row for row in points if row.status not in (PointStatus.FAILED, PointStatus.SKIPPED)]
    try:
        plan = Plan.from_json(stored.info.suite, (row.point for row in measurable), stored.info.plan)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"run {run_id} was stored by another version of hockney and cannot go on: begin a new run"
        ) from error
    # With its skipped points, so that a run of which all was refused does not end as done.
    skipped = (Skipped(row.point, row.reason or "") for row in points if row.status is PointStatus.SKIPPED)
    plan = replace(plan, skipped=tuple(skipped))
    begun = _launches_begun(stored)
    ended = stored.status in (RunStatus.DONE, RunStatus.PARTIAL)
    launches_left = plan.launches - (begun if ended else max(0, begun - 1))  # the last one begun was cut short
    if plan.launches > 1 and launches_left < plan.launches:
        plan = replace(plan, refine=frozenset())  # the first launch has added the sizes
    goes_on = launches_left > 0 and plan.launches > 1
    if not measurable or (not goes_on and all(row.status is PointStatus.PRECISE for row in measurable)):
        raise UsageError(
            f"run {run_id} has nothing left to measure: what is not precise failed or was skipped; begin a new run"
            if len(measurable) < len(points)
            else f"run {run_id} is complete: there is nothing to resume"
        )
    for row in measurable:
        catalogue.add_folder(row.point.transport)
    gone = sorted({row.point.transport for row in measurable} - set(catalogue.transports))
    if gone:
        raise UsageError(f"run {run_id} cannot go on: {', '.join(gone)} is not here any more; begin a new run")
    refuse_unusable(plan.cpus)
    counts = plan.launches == 1  # a launch is judged by its own measurements alone
    before = {row.point: list(store.measurements(row)) for row in measurable}
    earlier = [measurement for measurements in before.values() for measurement in measurements] if counts else []
    store.resume_run(run_id)
    failed = sum(row.status is PointStatus.FAILED for row in points)
    try:
        warn_before(plan, known, store, run_id, "When the run went on")
    except KeyboardInterrupt:
        store.finish_run(run_id, RunStatus.INTERRUPTED)
        return RunOutcome(run_id, RunStatus.INTERRUPTED, failed, failed)
    start = Start(
        seed=stored.info.seed + stored.rounds,
        several=plan.launches > 1,
        round=stored.rounds,
        launch=begun,
        earlier=earlier,
        alike={point: measurements[-1] for point, measurements in before.items() if measurements},
        precise=sum(row.status is PointStatus.PRECISE for row in measurable) if counts else 0,
        failed=failed,
    )
    return _carry_out(replace(plan, launches=max(1, launches_left)), catalogue, store, display, run_id, start)


def _refuse_unfit(stored: StoredRun, points: Sequence[StoredPoint], known: Mapping[str, Any]) -> None:
    """Raises UsageError for a run of a pair, of another machine, or without points."""
    if stored.info.plan.get(INTERLEAVED):
        raise UsageError(
            f"run {stored.id} was measured in alternation with another and cannot be continued alone: measure the pair "
            "again with compare --interleave"
        )
    changed = another_machine(stored.info.facts, known)
    if changed is not None:
        raise UsageError(f"run {stored.id} cannot go on here, for {changed}: begin a new one")
    if not points:
        raise UsageError(f"run {stored.id} was stopped before its points were stored and cannot go on: begin a new one")


def _launches_begun(stored: StoredRun) -> int:
    return 1 + max((launch.index for launch in stored.launches.values()), default=-1)


def add_launches(
    run_id: int,
    points: Sequence[Point],
    launches: int,
    time_s: float,
    catalogue: Catalogue,
    store: Store,
    display: Display,
) -> RunOutcome:
    """Measure some points of a run in more launches, after all its launches so far; a PARTIAL run stays so."""
    with alone(store.path, run_id):
        stored = store.run(run_id)
        plan = Plan.from_json(stored.info.suite, points, stored.info.plan)
        plan = replace(plan, launches=launches, time_s=time_s, refine=frozenset())
        refuse_unusable(plan.cpus)
        store.resume_run(run_id)
        before = {row.point: store.measurements(row) for row in store.points(run_id) if row.point in plan.points}
        start = Start(
            seed=stored.info.seed + stored.rounds,
            several=True,
            round=stored.rounds,
            launch=_launches_begun(stored),
            alike={point: measurements[-1] for point, measurements in before.items() if measurements},
        )
        outcome = _carry_out(plan, catalogue, store, display, run_id, start)
        if stored.status is RunStatus.PARTIAL and outcome.status is RunStatus.DONE:
            store.finish_run(run_id, RunStatus.PARTIAL)
        return outcome


def _carry_out(
    plan: Plan, catalogue: Catalogue, store: Store, display: Display, run_id: int, start: Start
) -> RunOutcome:
    recorder = Recorder(store, run_id, display)
    others: list[Moment] = []
    status = RunStatus.DONE
    try:
        display.begun(run_id, plan, goes_on=start.round > 0, precise=start.precise)
        _make_launches(plan, catalogue, recorder, start, others)
        if start.several:
            judge_over_launches(store, run_id, plan.precision)
    except KeyboardInterrupt:
        status = RunStatus.INTERRUPTED
    except Exception:
        finish_quietly(store, run_id, RunStatus.INTERRUPTED)
        raise
    return recorder.finish(plan, status, catalogue, others, failed_before=start.failed, goes_on=start.launch > 0)


def _make_launches(plan: Plan, catalogue: Catalogue, recorder: Recorder, start: Start, others: list[Moment]) -> None:
    """Each launch starts every job anew, with its part of the time. The first adds sizes, all later ones have them too.

    What other programs used during each goes to `others`, except for jobs of several hosts: daemons may start their
    ranks here, and their CPU time would count as another program's.
    """
    cpus = usable_cpus()
    meter = StealMeter(cpus)
    watch = None if plan.hosts else Watch(cpu_time_s, cpus)
    round_ = start.round
    failures = Failures()
    alike = start.alike
    end_s = time.monotonic() + plan.time_s
    for index in range(LAUNCHES_MAX if plan.more_launches else plan.launches):
        left = max(0, plan.launches - 1 - index)
        if index >= plan.launches:
            unknown = judge_over_launches(recorder.store, recorder.run_id, plan.precision)
            plan = replace(plan, points=tuple(point for point in plan.points if point in unknown))
            if not plan.points or time.monotonic() >= end_s:
                return
        recorder.launches_left = left
        pool = WorkerPool(
            plan,
            catalogue,
            recorder,
            choose_cpus=choose_cpus,
            cpus_usable=len(cpus),
            steal=meter.read,
            launch_index=start.launch + index,
            failures=failures,
        )
        with watched(watch, others), pool:
            sampler = Sampler(
                plan,
                pool,
                recorder,
                seed=start.seed + index,
                clock=time.monotonic,
                earlier=start.earlier,
                alike=alike,
                start_round=round_,
                measurements=_MEASUREMENTS_LATER if plan.more_launches and index > 0 else None,
            )
            sampler.run(max(0.0, end_s - time.monotonic()) / (left + 1))
            round_ = sampler.rounds
        alike = sampler.alike
        plan = replace(plan, points=sampler.points, refine=frozenset())


@contextlib.contextmanager
def watched(watch: Watch | None, others: list[Moment]) -> Iterator[None]:
    """Add what other programs used during a launch, however it ends; of a short one nothing is known."""
    try:
        yield
    finally:
        if watch is not None:
            others.append(watch.read())
