"""One run from its plan to the store: starts the jobs, lets the sampler measure, writes every round, notes warnings.

Whatever ends a run early (Ctrl-C, a full disk, a kill) leaves every finished round in the store; a resumed run goes on
from there.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Protocol

from hockney import __version__
from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import HockneyError, UsageError
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
    warnings_during,
)
from hockney.measure.estimate import MIN_MEASUREMENTS
from hockney.measure.plan import Plan, Skipped, refuse_empty
from hockney.measure.pool import Failures, WorkerPool
from hockney.measure.sampler import Progress, Sampler, reached_text
from hockney.model import Definition, Launch, Measurement, Point, PointStatus, RunInfo, RunStatus, Warning_
from hockney.results.runs import Run, main_state
from hockney.results.store import MeasurementSummary, Store
from hockney.results.store.lock import alone
from hockney.results.traits import traits_json
from hockney.stats import LAUNCHES, MIXED, ONE_LAUNCH, State, needed_for, time_of
from hockney.suites import LAUNCHES_MAX
from hockney.units import counted
from hockney.worker.build import compiler_facts
from hockney.worker.catalogue import Catalogue
from hockney.worker.launch import YIELDS
from hockney.worker.libraries import Library
from hockney.worker.mpi_transport import by_sockets
from hockney.worker.processes import cpu_time_s

_SYSTEM_SHARE_MAX = 0.2  # a library that spins in user space stays far below
_SHARE_WALL_MIN_NS = 50_000_000  # of less, a tick or two would make a share
_STEAL_MAX = 0.02
STARTING, MEASURING, ADDED, PREPARING = "starting jobs", "measuring", "added sizes", "calibrating and storing"
_MEASUREMENTS_LATER = 8  # of a point in each launch after the first: what decides is the scatter between launches
_WORST_FIRST = (
    PointStatus.FAILED, PointStatus.SKIPPED, PointStatus.STOPPED, PointStatus.BUDGET, PointStatus.PRECISE,
)  # fmt: skip


class Display(Protocol):
    """Who shows a run while it goes on. Called between measurements only, so it may take some ms."""

    def begun(self, run_id: int, plan: Plan, *, goes_on: bool, several: bool, precise: int) -> None:
        """The run has a number; nothing is started yet.

        `goes_on`: rounds of it were measured before. `several`: it is of several launches, and each of the plan's is
        made whole. So many points are `precise` already, and are not measured unless beside others.
        """
        ...

    def launched(self, launch: Launch) -> None:
        """A job is up."""
        ...

    def measured(self, measurement: Measurement) -> None:
        """A measurement has come back."""
        ...

    def progressed(self, progress: Progress) -> None:
        """A round is stored."""
        ...

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """A point is finished, one way or another."""
        ...


@dataclass(frozen=True)
class Start:
    """Where a run begins or goes on: the next round and launch, and the earlier measurements that count.

    `alike`: a measurement of each point that has any, whose batch is used again.
    `several`: it is judged over all its launches, these and those before. `precise`: so many points are it already.
    `failed`: so many failed before, and are not tried again.
    """

    seed: int
    several: bool
    round: int = 0
    launch: int = 0
    earlier: Sequence[Measurement] = ()
    alike: Mapping[Point, Measurement] = field(default_factory=dict)
    precise: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `failed` counts points, `failed_before` those of them that failed before it was resumed.

    `spent_s` says where the time went, by what was done.
    """

    run_id: int
    status: RunStatus
    failed: int
    failed_before: int = 0
    spent_s: Mapping[str, float] = field(default_factory=dict)


class Recorder:
    """The sampler's Observer and the pool's Starter: what happens goes to the store, then to the display."""

    def __init__(self, store: Store, run_id: int, display: Display) -> None:
        self.store = store
        self.run_id = run_id
        self._display = display
        self._yields = _KernelShare()
        self._losses = _Losses()
        # Launches with more ranks than CPUs, where all yield, as they should; or through sockets, the kernel's own.
        self._in_kernel: set[int] = set()
        self.launches_left = 0  # after the one under way
        self.statuses: dict[Point, PointStatus] = {}
        self._begun_s = time.monotonic()
        self._spent_s = dict.fromkeys((STARTING, MEASURING, ADDED), 0.0)

    def started(self, launched: Launch) -> int:
        self._spent_s[STARTING] += time.time() - launched.started_unix_s
        launch_id = self.store.add_launch(self.run_id, launched)
        if launched.oversubscribed or by_sockets(launched.library, os.environ):
            self._in_kernel.add(launch_id)
        self._display.launched(launched)
        return launch_id

    def measured(self, measurement: Measurement) -> None:
        self._spent_s[ADDED if measurement.point.role == "refined" else MEASURING] += (
            time.time() - measurement.started_unix_s
        )
        if measurement.launch_id not in self._in_kernel:
            self._yields.add(measurement)
        self._losses.add(measurement)
        self._display.measured(measurement)

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        if measurements:
            with interrupts_wait():
                self.store.write_round(self.run_id, measurements)
        # Launches still to come will take about as long as this one.
        left_s, most_s = (
            one_s + self.launches_left * (progress.elapsed_s + one_s)
            for one_s in (progress.left_s, progress.left_most_s)
        )
        self._display.progressed(replace(progress, left_s=left_s, left_most_s=most_s))

    def points_added(self, points: Sequence[Point]) -> None:
        self.store.add_points(self.run_id, points)

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """With several launches the worst of a point's ends stands."""
        before = self.statuses.get(point, PointStatus.PRECISE)
        if _WORST_FIRST.index(status) <= _WORST_FIRST.index(before):
            self.statuses[point] = status
            self.store.set_status(self.run_id, point, status, reason)
        self._display.point_ended(point, status, reason)

    def finish(
        self, plan: Plan, status: RunStatus, catalogue: Catalogue, others: Sequence[Moment], start: Start
    ) -> Outcome:
        """Store how the run ended, and the warnings of what disturbed it."""
        failed = start.failed + sum(end is PointStatus.FAILED for end in self.statuses.values())
        # The harness's own points are no result.
        real = [point for point in (*self.statuses, *(row.point for row in plan.skipped)) if point.transport != "null"]
        refused = all(self.statuses.get(point, PointStatus.SKIPPED) is PointStatus.SKIPPED for point in real)
        if status is RunStatus.DONE and (failed or (real and refused) or not self.statuses):
            status = RunStatus.PARTIAL
        for warning in (
            *self._yields.warnings(catalogue),
            *self._losses.warnings(),
            *_steal_warning(self.store, self.run_id),
            *warnings_during(others, goes_on=start.launch > 0),
        ):
            self.store.add_warning(self.run_id, warning)
        self.store.finish_run(self.run_id, status)
        rest_s = time.monotonic() - self._begun_s - sum(self._spent_s.values())
        return Outcome(self.run_id, status, failed, start.failed, {**self._spent_s, PREPARING: max(0.0, rest_s)})


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Ctrl-C and a polite kill take effect at the end of the body: a round half written is a round lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    before = {
        number: signal.signal(number, lambda number, frame: caught.append((number, frame)))
        for number in map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        if callable(signal.getsignal(number))
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in caught[:1]:
            stop = before[number]
            assert callable(stop)
            stop(number, frame)


class _KernelShare:
    """How much of its time each transport spends in the kernel while it sends short messages."""

    def __init__(self) -> None:
        self._system_ns: dict[str, int] = {}
        self._wall_ns: dict[str, int] = {}

    def add(self, measurement: Measurement) -> None:
        if measurement.point.pattern != "pingpong" or measurement.point.bytes > 1024:
            return
        name = measurement.point.transport
        self._system_ns[name] = self._system_ns.get(name, 0) + measurement.cpu_system_ns[0]
        self._wall_ns[name] = self._wall_ns.get(name, 0) + measurement.wall_ns[0]

    def warnings(self, catalogue: Catalogue) -> Iterable[Warning_]:
        for name, wall_ns in self._wall_ns.items():
            share = self._system_ns[name] / max(1, wall_ns)
            info = catalogue.transports.get(name)
            if wall_ns < _SHARE_WALL_MIN_NS or share < _SYSTEM_SHARE_MAX:
                continue
            if info is None or info.library is None or "syscalls" in info.caps:
                continue
            yield Warning_(
                "yield",
                name,
                f"{name} spends {share:.0%} of its time in the kernel while it waits for short messages: it yields the "
                "CPU in its progress loop, so its latency is that of system calls.",
                _spinning(info.library, catalogue),
            )


def _spinning(library: Library, catalogue: Catalogue) -> str:
    """What makes the waits of a library spin."""
    if library.is_wheel:
        others = (one.library.id for one in catalogue.transports.values() if one.library and not one.library.is_wheel)
        other = next((name for name in others if name.startswith("mpi@")), None)
        advice = (
            f"compare with {other}"
            if other
            else "install another MPI to compare (apt install libopenmpi-dev openmpi-bin)"
        )
        return f"No setting of the PyPI wheel of MPICH changes this; {advice}."
    told = os.environ.get(YIELDS) if library.kind == "openmpi" else None
    return f"Unset {YIELDS}={told}." if told else "Look for the library's setting that makes waits spin."


class _Losses:
    """How many messages each pattern lost on each transport that may lose any."""

    def __init__(self) -> None:
        self._lost: Counter[tuple[str, str]] = Counter()

    def add(self, measurement: Measurement) -> None:
        self._lost[measurement.point.transport, measurement.point.pattern] += round(
            sum(measurement.counters.get("lost", ()))
        )

    def warnings(self) -> Iterable[Warning_]:
        for name in sorted({name for name, _ in +self._lost}):
            counts = ", ".join(
                f"{lost:,} in {pattern}" for (of, pattern), lost in sorted((+self._lost).items()) if of == name
            )
            yield Warning_(
                "loss",
                name,
                f"{name} lost messages ({counts}), and its times and rates count those as if they had arrived.",
                "The export has the losses of each measurement; shorter messages, a smaller window or longer socket "
                "buffers "
                "(net.core.rmem_max) lose fewer.",
            )


def measure(
    plan: Plan, catalogue: Catalogue, store: Store, display: Display, *, command: str, label: str | None = None
) -> Outcome:
    """Measure a new run. Raises UsageError if the plan has no point at all, StoreError.

    KeyboardInterrupt is taken as the wish to stop: what was measured is stored, the outcome says INTERRUPTED.
    """
    info = describe_run(plan, catalogue, command, label)
    with contextlib.ExitStack() as held:
        try:
            with interrupts_wait():  # a run that is stored and has no number here could not be said to have stopped
                run_id = create_run(plan, info, store, held)
            warn_before(plan, info.facts, store, run_id, "When the run began")
        except KeyboardInterrupt:
            store.finish_run(run_id, RunStatus.INTERRUPTED)
            return Outcome(run_id, RunStatus.INTERRUPTED, 0)
        return _carry_out(plan, catalogue, store, display, run_id, Start(info.seed, several=plan.launches > 1))


def describe_run(
    plan: Plan, catalogue: Catalogue, command: str, label: str | None, environment: Mapping[str, str] = os.environ
) -> RunInfo:
    """All that is stored of a run that begins now. Raises UsageError without any point, or for unusable CPUs."""
    refuse_empty(plan)
    refuse_unusable(plan.cpus)
    sleeping = [name for name, info in catalogue.transports.items() if info.sleeps]
    points = (*plan.points, *(skipped.point for skipped in plan.skipped))
    traits = traits_json(
        (info for name, info in catalogue.patterns.items() if any(point.pattern == name for point in points)),
        (info for name, info in catalogue.transports.items() if any(point.transport == name for point in points)),
    )
    known = {"transports": list(catalogue.transports), "sleeping": sleeping, "traits": traits}
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
    """Store a new run with its points; gives its number. `held` keeps its lock."""
    skipped = {one.point: one.reason for one in plan.skipped}
    return store.create_run(
        info, plan.points, skipped, lock=lambda number: held.enter_context(alone(store.path, number))
    )


def warn_before(plan: Plan, known: dict[str, Any], store: Store, run_id: int, when: str) -> None:
    """What of the machine disturbs this plan; it watches other programs for a moment, and says `when` that was."""
    ranks_here = max(point.ranks for point in plan.points) if not plan.hosts else 1
    over_loopback = not plan.hosts and any(point.transport.startswith("tcp") for point in plan.points)
    for warning in warnings_before(known, ranks=ranks_here, when=when, cpus=plan.cpus):
        if warning.kind != "congestion" or over_loopback:
            store.add_warning(run_id, warning)


def resume(reference: str, catalogue: Catalogue, store: Store, display: Display) -> Outcome:
    """Go on with a run that was killed or interrupted, or whose time was up.

    Every point that isn't precise, failed or skipped gets the plan's time again, and launches that were cut short or
    not made are made. What failed stays so, and the run PARTIAL: a payload that was corrupted once must not be
    forgotten because it arrives the next time. Raises UsageError if the run is complete, is being measured by another
    program, is one of a pair, or is from an incompatible version or another machine.
    """
    run_id = store.find_run(reference)
    with alone(store.path, run_id):
        return _resume(run_id, catalogue, store, display)


def _resume(run_id: int, catalogue: Catalogue, store: Store, display: Display) -> Outcome:
    stored = store.run(run_id)
    if stored.info.plan.get(INTERLEAVED):
        raise UsageError(
            f"run {run_id} was measured in alternation with another and cannot be continued alone: measure the pair "
            "again with compare --interleave"
        )
    known = facts()
    changed = another_machine(stored.info.facts, known)
    if changed is not None:
        raise UsageError(f"run {run_id} cannot go on here, for {changed}: begin a new one")
    points = store.points(run_id)
    if not points:
        raise UsageError(f"run {run_id} was stopped before its points were stored and cannot go on: begin a new one")
    measurable = [row for row in points if row.status not in (PointStatus.FAILED, PointStatus.SKIPPED)]
    try:
        plan = Plan.from_json(stored.info.suite, (row.point for row in measurable), stored.info.plan)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"run {run_id} was stored by another version of hockney and cannot go on") from error
    skipped = (Skipped(row.point, row.reason or "") for row in points if row.status is PointStatus.SKIPPED)
    plan = replace(plan, skipped=tuple(skipped))  # so that a run of which all was refused does not end well now
    begun = 1 + max((launch.index for launch in stored.launches.values()), default=-1)
    ended = stored.status in (RunStatus.DONE, RunStatus.PARTIAL)
    launches_left = plan.launches - (begun if ended else max(0, begun - 1))  # the last one begun was cut short
    if plan.launches > 1 and launches_left < plan.launches:
        plan = replace(plan, refine=frozenset())  # the first launch has added what there is to add
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
        raise UsageError(f"run {run_id} cannot go on: {', '.join(gone)} is not here any more")
    refuse_unusable(plan.cpus)
    # A launch is judged by its own measurements alone.
    counts = plan.launches == 1
    before = {row.point: list(store.measurements(row)) for row in measurable}
    earlier = [measurement for measurements in before.values() for measurement in measurements] if counts else []
    store.resume_run(run_id)
    failed = sum(row.status is PointStatus.FAILED for row in points)
    try:  # others may disturb now that did not when it began, and the warnings of then stay
        warn_before(plan, known, store, run_id, "When the run went on")
    except KeyboardInterrupt:
        store.finish_run(run_id, RunStatus.INTERRUPTED)
        return Outcome(run_id, RunStatus.INTERRUPTED, failed, failed)
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


def add_launches(
    run_id: int,
    points: Sequence[Point],
    launches: int,
    time_s: float,
    catalogue: Catalogue,
    store: Store,
    display: Display,
) -> Outcome:
    """Start the jobs of some points of a run anew so many times, after all its launches so far; gives how this ended.

    The run as a whole stays PARTIAL if it was.
    """
    with alone(store.path, run_id):
        stored = store.run(run_id)
        plan = replace(
            Plan.from_json(stored.info.suite, points, stored.info.plan),
            launches=launches,
            time_s=time_s,
            refine=frozenset(),
        )
        refuse_unusable(plan.cpus)
        begun = 1 + max((launch.index for launch in stored.launches.values()), default=-1)
        store.resume_run(run_id)
        before = (
            (row.point, list(store.measurements(row))) for row in store.points(run_id) if row.point in plan.points
        )
        start = Start(
            seed=stored.info.seed + stored.rounds,
            several=True,
            round=stored.rounds,
            launch=begun,
            alike={point: measurements[-1] for point, measurements in before if measurements},
        )
        outcome = _carry_out(plan, catalogue, store, display, run_id, start)
        if stored.status is RunStatus.PARTIAL and outcome.status is RunStatus.DONE:
            store.finish_run(run_id, RunStatus.PARTIAL)
        return outcome


def _carry_out(plan: Plan, catalogue: Catalogue, store: Store, display: Display, run_id: int, start: Start) -> Outcome:
    recorder = Recorder(store, run_id, display)
    others: list[Moment] = []
    status = RunStatus.DONE
    try:
        display.begun(run_id, plan, goes_on=start.round > 0, several=start.several, precise=start.precise)
        _make_launches(plan, catalogue, recorder, start, others)
        if start.several:
            judge_over_launches(store, run_id, plan.precision)
    except KeyboardInterrupt:
        status = RunStatus.INTERRUPTED
    except Exception:
        finish_quietly(store, run_id, RunStatus.INTERRUPTED)
        raise
    return recorder.finish(plan, status, catalogue, others, start)


def _make_launches(plan: Plan, catalogue: Catalogue, recorder: Recorder, start: Start, others: list[Moment]) -> None:
    """Each starts every job anew and has its part of the time. The first adds sizes, all later ones have them too.

    What other programs took during each goes to `others`, but for jobs of several hosts: daemons may start their ranks
    on this one, and whose work that is nobody could tell.
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
    """Adds what others took during a launch, however it ends."""
    try:
        yield
    finally:
        if watch is not None:
            others.append(watch.read() or Moment(0.0))  # of one too short to tell, nothing is known


def judge_over_launches(store: Store, run_id: int, precision: float) -> set[Point]:
    """A launch ends a point by its own measurements.

    What is said of it in the end is of its measurements over all launches.

    Gives the points that are not precise yet.
    """
    unknown = set()
    for series, measurements in Run(store, run_id).summaries():
        if series.status in (PointStatus.PRECISE, PointStatus.BUDGET):
            status, reason = _end_over_launches(measurements, precision)
            store.set_status(run_id, series.point, status, reason)
            if status is not PointStatus.PRECISE:
                unknown.add(series.point)
    return unknown


def _end_over_launches(
    measurements: Sequence[tuple[MeasurementSummary, State]], precision: float
) -> tuple[PointStatus, str | None]:
    """As a launch judges its own: by the figure of the state that counts, if its measurements are enough."""
    figures: dict[str, dict[Definition, list[MeasurementSummary]]] = {}
    for measurement, state in measurements:
        if state != MIXED and measurement.samples:
            figures.setdefault(state.name, {}).setdefault(measurement.definition, []).append(measurement)
    by_state = {state: max(of_state.values(), key=len) for state, of_state in figures.items()}
    chosen = main_state([{state: len(of_state) for state, of_state in by_state.items()}])
    most = [] if chosen is None else by_state[chosen]
    medians_ns = [measurement.median_ns for measurement in most if measurement.median_ns is not None]
    launch_ids = [measurement.launch_id for measurement in most]
    time, over = time_of(medians_ns, launch_ids) if most else (None, ONE_LAUNCH)
    if (
        len(most) >= MIN_MEASUREMENTS
        and time is not None
        and time.precision is not None
        and time.precision <= precision
    ):
        return PointStatus.PRECISE, None
    count = counted(len({measurement.launch_id for measurement, _ in measurements}), "launch", "launches")
    needed = needed_for(medians_ns, launch_ids, precision) if most else None
    more = f"; about {needed} launches would reach {precision:.1%}" if needed else ""
    unit = "launches" if over == LAUNCHES else "measurements"
    return PointStatus.BUDGET, f"all launches were made: {reached_text(time, len(measurements), unit)} in {count}{more}"


def finish_quietly(store: Store, run_id: int, status: RunStatus) -> None:
    """After an error of the store itself this may fail too; the first error is the one to tell."""
    finish: Callable[[int, RunStatus], None] = store.finish_run
    try:
        finish(run_id, status)
    except HockneyError:
        return


def _steal_warning(store: Store, run_id: int) -> Iterable[Warning_]:
    known = [summary.steal for summary in store.summaries(run_id) if summary.steal is not None]
    share = sum(known) / len(known) if known else 0.0
    if share > _STEAL_MAX:
        yield Warning_(
            "steal",
            "machine",
            f"While this run measured, the hypervisor took {share:.0%} of the CPU time.",
            "Measure when other virtual machines are idle, or on an instance with cores of its own.",
        )
