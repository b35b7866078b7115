"""How a run of several launches spends its time, on a made-up machine with contended cores."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import make_launch, make_transport
from tests.measure.contended_machine import ContendedMachine
from tests.measure.made_up_machine import Machine
from tests.measure.test_run import Silent

from hockney.analysis.repeat import further
from hockney.errors import UsageError
from hockney.machine.activity import Moment
from hockney.measure import run as running
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab, Recorder
from hockney.model import Launch, Measurement, Point, PointStatus, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats import BETWEEN_LAUNCHES
from hockney.suites import Limits
from hockney.worker.catalogue import Catalogue

CATALOGUE = Catalogue({}, {"shm": make_transport("shm")}, ())
POINTS = tuple(Point("shm", "pingpong", 2, 1 << place) for place in range(12))
START_S = 0.7


class Launches:
    """Replaces WorkerPool: a launch takes its time to start and has a random memory layout."""

    machine: Machine
    cores: ContendedMachine | None
    layouts: random.Random
    unsteady: int = 0  # how many points vary from launch to launch by a fifth

    def __init__(self, plan: Plan, catalogue: Catalogue, recorder: Recorder, *_: Any, **how: Any) -> None:
        self._recorder = recorder

    @contextlib.contextmanager
    def launch(self, index: int, _: int) -> Iterator[None]:
        self.machine.now_s += START_S
        self._launch_id = self._recorder.started(make_launch(index=index))
        self._layout = {point: self.layouts.gauss(1, 0.008) for point in POINTS}
        for point in POINTS[len(POINTS) - self.unsteady :]:
            self._layout[point] = self.layouts.uniform(0.8, 1.2)
        yield

    def clock_ns(self, point: Point) -> float:
        return 25.0

    def measure(self, point: Point, **how: Any) -> Measurement:
        machine, cores, begin_s = self.machine, self.cores, self.machine.now_s
        factor = cores.takes(begin_s % cores.length_s) if cores else 1.0
        machine.time_ns = lambda point: (100 + point.bytes / 10) * self._layout[point] * factor
        machine.pause_s = 0.012 * factor
        measurement = replace(machine.measure(point, **how), launch_id=self._launch_id)
        if cores is None:
            return measurement
        moments = begin_s % cores.length_s, machine.now_s % cores.length_s
        floors, paces = [27 * cores.distance(at_s) for at_s in moments], [cores.slowness(at_s) for at_s in moments]
        return replace(
            measurement,
            floor_ns=(floors[0], floors[1]),
            pace_ns=(paces[0], paces[1]),
            solo_ns=(paces[0][0], paces[1][0]),
        )


def measured(
    monkeypatch: pytest.MonkeyPatch, path: Path, cores: ContendedMachine | None, unsteady: int = 0, **more: Any
) -> tuple[int, float, list[int]]:
    """How many points are precise, how long it took, and of how many launches each point has measurements."""

    class Pool(Launches):
        machine = Machine(lambda point: 100.0, noise=0.004)
        layouts = random.Random(3)

    Pool.cores, Pool.unsteady = cores, unsteady
    clock = Pool.machine.clock
    monkeypatch.setattr(running, "WorkerPool", Pool)
    monkeypatch.setattr(running, "Watch", lambda *_: SimpleNamespace(read=lambda: Moment(0.0)))
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=clock, time=clock))
    monkeypatch.setattr(running, "warnings_before", lambda *_, **__: [])
    plan = Plan("test", POINTS, limits=Limits(precision=0.02, time_s=60.0, launches=6)).within(**more)
    with Store.open(path) as store:
        run_id = running.measure(plan, Lab(CATALOGUE, store, Silent(), "test"), seed=5).run_id
        rows = store.points(run_id)
        seen = {row.id: {measurement.launch_id for measurement in store.measurements(row).values()} for row in rows}
    precise = sum(row.status is PointStatus.PRECISE for row in rows)
    return precise, clock(), [len(launches) for launches in seen.values()]


def test_a_quiet_machine_needs_no_more_than_the_launches_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    precise, took_s, launches = measured(monkeypatch, tmp_path / "r.db", None, more_launches=True)
    assert precise == len(POINTS)
    assert took_s < 20  # of the made-up clock
    assert set(launches) == {6}


@pytest.mark.full
def test_on_contended_cores_imprecise_points_get_more_launches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for seed in (1, 3, 4):
        path = tmp_path / f"{seed}.db"
        precise, took_s, launches = measured(monkeypatch, path, ContendedMachine(seed), more_launches=True)
        assert precise >= len(POINTS) * 5 / 6
        assert took_s < 66  # of the made-up clock: a launch is made whole
        assert min(launches) >= 6
        assert max(launches) > 6


def test_precise_points_have_launches_from_the_whole_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One in each sixth of the time: those of the first seconds alone are no sample of the machine."""
    _, _, launches = measured(monkeypatch, tmp_path / "r.db", None, more_launches=True, unsteady=4)
    steady, unsteady = launches[:-4], launches[-4:]
    assert min(unsteady) > max(steady)
    assert 9 <= min(steady) <= max(steady) <= 12


def test_where_the_number_of_launches_is_fixed_there_are_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, _, launches = measured(monkeypatch, tmp_path / "r.db", ContendedMachine(1), more_launches=False)
    assert set(launches) == {6}


def test_a_resumed_run_of_several_launches_makes_short_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One launch that had the whole time would be one value of the interval over launches."""
    path = tmp_path / "r.db"
    _, _, before = measured(monkeypatch, path, None, more_launches=True, unsteady=4, time_s=15.0)
    with Store.open(path) as store:
        run_id = running.resume("1", Lab(CATALOGUE, store, Silent())).run_id
        launches = Counter(each.launch_id for row in store.points(run_id) for each in store.measurements(row).values())
    assert len(launches) > max(before) + 5
    assert max(list(launches.values())[max(before) :]) <= 8 * len(POINTS)


def test_a_finished_run_of_one_launch_gets_others_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two at least, even if all is precise: an interval over two launches would be wider than that of one."""
    path = tmp_path / "r.db"
    precise, _, before = measured(monkeypatch, path, None, launches=1)
    assert (precise, set(before)) == (len(POINTS), {1})
    with Store.open(path) as store:
        running.resume("1", Lab(CATALOGUE, store, Silent()))
        run = Run(store, 1)
        assert run.launch_count >= 3
        assert {figure.interval_over for figure in run.shown} == {BETWEEN_LAUNCHES}
        assert further(run) is None
        with pytest.raises(UsageError, match="nothing to resume"):
            running.resume("1", Lab(CATALOGUE, store, Silent()))


@pytest.mark.parametrize("launch", [1, 2])
def test_its_other_launches_can_be_stopped_and_resumed(
    launch: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By Ctrl-C as one starts: every point is precise by then."""

    class StopsAtStart(Silent):
        def launched(self, launch_: Launch) -> None:
            if launch_.index == launch:
                raise KeyboardInterrupt

    path = tmp_path / "r.db"
    measured(monkeypatch, path, None, launches=1)
    with Store.open(path) as store:
        assert running.resume("1", Lab(CATALOGUE, store, StopsAtStart())).status is RunStatus.STOPPED
        stopped = Run(store, 1)
        fix = further(stopped)
        assert stopped.launch_count == launch + 1
        assert fix is not None
        assert fix.argv == ("hockney", "run", "--resume", "1")
        running.resume("1", Lab(CATALOGUE, store, Silent()))
        run = Run(store, 1)
        assert run.launch_count >= 3
        assert {figure.interval_over for figure in run.shown} == {BETWEEN_LAUNCHES}


def test_a_run_that_is_measured_is_not_advised_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measured(monkeypatch, tmp_path / "r.db", None, launches=1)
    with Store.open(tmp_path / "r.db") as store:
        assert further(Run(store, 1)) is not None
        store.resume_run(1)
        assert further(Run(store, 1)) is None
