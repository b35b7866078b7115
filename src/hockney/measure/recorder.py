"""Where the results of a run go while it measures: to the store, then to the display."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import FrameType
from typing import NamedTuple

from hockney.analysis.health.matrices import LOST
from hockney.analysis.health.stalls import STALLS, Stall
from hockney.machine.activity import Moment
from hockney.machine.facts import fact
from hockney.measure.estimate import MIN_MEASUREMENTS
from hockney.measure.plan import Plan
from hockney.measure.point_work import reached_text
from hockney.measure.sampler import Progress
from hockney.measure.warnings import (
    Tally,
    core_warnings,
    device_warnings,
    steal_warning,
    stray_warnings,
    warnings_during,
    warnings_of_map,
)
from hockney.model import Launch, Measurement, Point, PointStatus, RunStatus, Warning_
from hockney.results.runs import Run, Series
from hockney.results.store import Store
from hockney.results.traits import transport_traits
from hockney.stats.interval import LAUNCHES_USEFUL
from hockney.units import counted
from hockney.worker.catalogue import Catalogue

_WORST_FIRST = (
    PointStatus.FAILED, PointStatus.SKIPPED, PointStatus.STOPPED, PointStatus.TIME_UP, PointStatus.PRECISE,
)  # fmt: skip


class Display:
    """Shows a run while it measures; this one shows nothing. Called between measurements, so it may take some ms."""

    def begun(self, run_id: int, plan: Plan, *, goes_on: bool, precise: int) -> None:
        """The run has a number; nothing is started yet.

        `goes_on`: it is resumed. `precise`: how many points are precise already.
        """

    def launched(self, launch: Launch) -> None:
        """A job is up."""

    def measured(self, measurement: Measurement) -> None:
        """A measurement is made."""

    def progressed(self, progress: Progress) -> None:
        """A round is stored."""

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """A point is finished."""

    def close(self) -> None:
        """Nothing is measured for now: print what is left."""


class Lab(NamedTuple):
    """All that measuring needs, handed on whole: what can be measured here, where results go, and who watches.

    `command`: the command line, which is stored with new runs.
    """

    catalogue: Catalogue
    store: Store
    display: Display
    command: str = ""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. `failed` counts points, also those that failed before it was resumed.

    `lost_hosts`: those that stopped answering, with the cause.
    """

    run_id: int
    status: RunStatus
    failed: int
    lost_hosts: Mapping[str, str] = field(default_factory=dict)
    stalls: Sequence[Stall] = ()


class Recorder:
    """The sampler's Observer; the pool reports each start of a job to it."""

    def __init__(self, store: Store, run_id: int, display: Display) -> None:
        self.store = store
        self.run_id = run_id
        self.launches_left = 0  # after the one under way
        self.end_s = -math.inf  # until when launches may be added, of time.monotonic()
        self.statuses: dict[Point, PointStatus] = {}
        self.tally = Tally()
        self.lost_hosts: dict[str, str] = {}  # that no longer answer, with the cause
        self.stalls: list[Stall] = []
        self.others: list[Moment] = []  # the load of other programs during each launch
        self.display = display
        self._oversubscribed: dict[int, bool] = {}  # by launch

    def warn(self, warnings: Iterable[Warning_]) -> None:
        for warning in warnings:
            self.store.add_warning(self.run_id, warning)

    def started(self, launched: Launch) -> int:
        launch_id = self.store.add_launch(self.run_id, launched)
        self._oversubscribed[launch_id] = launched.oversubscribed
        self.display.launched(launched)
        return launch_id

    def measured(self, measurement: Measurement) -> None:
        self.tally.add(measurement, oversubscribed=self._oversubscribed.get(measurement.launch_id, False))
        self.display.measured(measurement)

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        if measurements:
            with interrupts_wait():
                self.store.write_round(self.run_id, measurements)
        # Launches still to come will take about as long as this one.
        left_s, most_s = (
            seconds + self.launches_left * (progress.elapsed_s + seconds)
            for seconds in (progress.left_s, progress.left_most_s)
        )
        most_s = max(most_s, self.end_s - time.monotonic())
        self.display.progressed(replace(progress, left_s=left_s, left_most_s=most_s))

    def points_added(self, points: Sequence[Point]) -> None:
        self.store.add_points(self.run_id, points)

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """Store the worst end of a point over several launches."""
        before = self.statuses.get(point, PointStatus.PRECISE)
        if _WORST_FIRST.index(status) <= _WORST_FIRST.index(before):
            self.statuses[point] = status
            self.store.set_status(self.run_id, point, status, reason)
        self.display.point_ended(point, status, reason)

    def finish(self, plan: Plan, status: RunStatus, catalogue: Catalogue, *, goes_on: bool) -> RunOutcome:
        """Store how the run ended, and its warnings."""
        failed = sum(row.status is PointStatus.FAILED for row in self.store.points(self.run_id))
        stored = self.store.run(self.run_id)
        points = (*self.statuses, *(row.point for row in plan.skipped))
        # Points that measure the harness are no results.
        real = [point for point in points if not transport_traits(stored.info.facts, point.transport).is_harness]
        refused = all(self.statuses.get(point, PointStatus.SKIPPED) is PointStatus.SKIPPED for point in real)
        if status is RunStatus.DONE and (failed or (real and refused) or not self.statuses):
            status = RunStatus.PARTIAL
        self.warn(self.tally.warnings(catalogue, fact(stored.info.facts, "environment") or {}))
        self.warn(steal_warning(self.store, self.run_id))
        for of_run in (core_warnings, warnings_of_map, stray_warnings):
            self.warn(of_run(stored))
        self.warn(device_warnings(stored, self.statuses))
        self.warn(warnings_during(self.others, goes_on=goes_on))
        if self.lost_hosts:
            self.store.add_to_facts(self.run_id, LOST, self.lost_hosts)
        for stall in self.stalls:
            self.store.add_to_facts(self.run_id, STALLS, asdict(stall))
        self.store.finish_run(self.run_id, status)
        return RunOutcome(self.run_id, status, failed, self.lost_hosts, self.stalls)


def judge_over_launches(store: Store, run_id: int) -> set[Point]:
    """Replace each point's end, which is of its last launch, by that of the figure over all launches.

    Returns the points that are not precise yet.
    """
    unknown = set()
    for series in Run(store, run_id).series:
        if series.status in (PointStatus.PRECISE, PointStatus.TIME_UP):
            status, reason = _end_over_launches(series)
            store.set_status(run_id, series.point, status, reason)
            if status is not PointStatus.PRECISE:
                unknown.add(series.point)
    return unknown


def _end_over_launches(series: Series) -> tuple[PointStatus, str | None]:
    figure, asked = series.shown, series.run.info.plan["precision"]
    reached = None if figure is None else figure.precision
    if figure and figure.n_measurements >= MIN_MEASUREMENTS and reached is not None and reached <= asked:
        return PointStatus.PRECISE, None
    made = counted(len({measurement.launch_id for measurement, _ in series.pairs}), "launch", "launches")
    needed = figure.launches_needed if figure else None
    more = f"; about {needed} launches would reach {asked:.1%}" if needed and needed <= LAUNCHES_USEFUL else ""
    of = counted(figure.n_launches, "launch", "launches") if figure else ""
    known = reached_text(reached, of, len(series.pairs))
    return PointStatus.TIME_UP, f"all launches were made: {known} in {made}{more}"


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Delay SIGINT, SIGTERM and SIGHUP to the end of the body, so that no round is half written."""
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
