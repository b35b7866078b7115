"""Data left by a round that is cut short anywhere, and the repetitions before the kept ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch
from tests.measure.made_up_machine import Machine, Notes, plan_of, sample
from tests.measure.test_run import Silent
from tests.worker.extra import EXTRA
from tests.worker.test_native import converse, measure

from hockney.errors import StoreError
from hockney.measure.point_work import PointFailed
from hockney.measure.recorder import Recorder
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point, PointStatus
from hockney.results.store import Store
from hockney.worker.build import build_worker

POINTS = tuple(Point("shm", "pingpong", 2, size) for size in (8, 64, 512))
SAMPLES = 30  # of a measurement that counts, at the least; those of calibration have fewer


@dataclass
class Breaking(Machine):
    """A machine that raises an error once, at one of its calls."""

    error: BaseException | None = None
    at: int = 0
    calls: int = 0
    broke: Point | None = None

    def _count(self, point: Point) -> None:
        self.calls += 1
        if self.error is not None and self.calls == self.at:
            self.broke = point
            raise self.error

    def clock_ns(self, point: Point) -> float:
        self._count(point)
        return super().clock_ns(point)

    def measure(self, point: Point, **how: Any) -> Measurement:
        self._count(point)
        return super().measure(point, **how)

    @property
    def made(self) -> Counter[tuple[Point, int]]:
        """The measurements that count, by point and round."""
        return tally(each for each in self.measurements if each.elapsed_ns.shape[1] >= SAMPLES)


def tally(measurements: Any) -> Counter[tuple[Point, int]]:
    return Counter((measurement.point, measurement.round) for measurement in measurements)


def quick(**more: Any) -> Breaking:
    return Breaking(lambda point: 100.0, noise=0.2, **more)


def calls_of(rounds: int) -> int:
    """The number of calls of the instrument until this many rounds are over."""
    machine = quick()
    with pytest.raises(KeyboardInterrupt):
        Sampler(plan_of(*POINTS), machine, Stopping(rounds), seed=1, clock=machine.clock).run(1000)
    return machine.calls


class Stopping(Notes):
    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.most = rounds

    def round_done(self, measurements: Sequence[Measurement], progress: Any) -> None:
        super().round_done(measurements, progress)
        if len(self.rounds) == self.most:
            raise KeyboardInterrupt


PLACES = range(1, calls_of(3) + 1)


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("full"), RuntimeError("a defect")], ids=repr)
def test_a_round_cut_short_anywhere_stores_each_measurement(error: BaseException, at: int, tmp_path: Path) -> None:
    machine = quick(error=error, at=at)
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(), POINTS)
        store.add_launch(run_id, make_launch())
        recorder = Recorder(store, run_id, Silent())
        with pytest.raises(type(error)):
            Sampler(plan_of(*POINTS), machine, recorder, seed=1, clock=machine.clock).run(1000)
        stored = tally(each for row in store.points(run_id) for each in store.measurements(row).values())
    assert stored == machine.made
    assert set(stored.values()) <= {1}


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("skipped", [True, False])
def test_a_failed_point_leaves_the_others_measured_once_in_each_round(skipped: bool, at: int) -> None:
    machine = quick(error=PointFailed("rank 1 died", skipped=skipped), at=at)
    notes = Stopping(6)
    with pytest.raises(KeyboardInterrupt):
        Sampler(plan_of(*POINTS), machine, notes, seed=1, clock=machine.clock).run(1000)
    assert machine.broke is not None
    assert notes.ends[machine.broke] == (PointStatus.SKIPPED if skipped else PointStatus.FAILED, "rank 1 died")
    stored = tally(each for measurements in notes.rounds for each in measurements)
    assert stored == machine.made
    for point in set(POINTS) - {machine.broke}:
        assert [stored[point, number] for number in range(6)] == [1] * 6
        assert notes.ends[point][0] is PointStatus.STOPPED


@pytest.mark.parametrize("method", ["measured", "round_done", "point_ended"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("full")], ids=repr)
def test_an_observer_that_raises_gets_each_measurement_once(error: BaseException, method: str) -> None:
    class Raising(Notes):
        def round_done(self, measurements: Sequence[Measurement], progress: Any) -> None:
            super().round_done(measurements, progress)
            if method == "round_done" and len(self.rounds) == 2:
                raise error

        def measured(self, measurement: Measurement) -> None:
            if method == "measured" and (measurement.point, measurement.round) == (POINTS[1], 2):
                raise error

        def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
            super().point_ended(point, status, reason)
            if method == "point_ended":
                raise error

    machine, notes = replace(quick(), noise=0.002), Raising()
    with pytest.raises(type(error)):
        Sampler(plan_of(*POINTS), machine, notes, seed=1, clock=machine.clock).run(1000)
    assert tally(each for measurements in notes.rounds for each in measurements) == machine.made


# ---- warm-up --------------------------------------------------------------------------------------------------------


@dataclass
class Recording(Machine):
    """A machine that keeps how each measurement was asked for."""

    asked: list[dict[str, int]] = field(default_factory=list)

    def measure(self, point: Point, **how: Any) -> Measurement:
        self.asked.append(how)
        return super().measure(point, **how)


def test_a_quarter_of_a_batch_comes_before_each_measurement() -> None:
    machine = Recording(lambda point: 100.0)
    sample(machine, plan_of(POINTS[0]))
    kept = [how for how in machine.asked if how["samples"] >= SAMPLES]
    assert len(kept) > 10
    assert all(how["warmup"] == how["batch"] // 4 > 0 for how in kept)
    assert [how["warmup"] for how in machine.asked[:2]] == [0, 25], "calibration: is it long? how long is it when warm?"


def test_a_repetition_that_is_a_measurement_by_itself_has_no_warm_up() -> None:
    machine = Recording(lambda point: 1.5e9)
    sample(machine, plan_of(POINTS[0]))
    assert {how["warmup"] for how in machine.asked} == {0}


def test_a_later_launch_warms_each_point_up_before_its_first_measurement() -> None:
    first = Machine(lambda point: 100.0)
    kept = {each.point: each for measurements in sample(first, plan_of(*POINTS)).rounds for each in measurements}
    machine = Recording(lambda point: 100.0)
    Sampler(plan_of(*POINTS), machine, Notes(), seed=2, clock=machine.clock, alike=kept).run(1e-9)
    for warm_up, measured in zip(machine.asked[::2], machine.asked[1::2], strict=True):
        assert (warm_up["samples"], warm_up["batch"]) == (1, measured["batch"])
        assert measured["samples"] >= SAMPLES


@pytest.mark.parametrize("warmup", [0, 5])
def test_the_worker_makes_the_warm_up_that_is_asked_for(warmup: int) -> None:
    """Counted on the wire: rank 0 lists every message that it sends."""
    command = measure("pingpong", 72, batch=7, samples=4, warmup=warmup, verify="no")
    answers, done = converse(build_worker(EXTRA), [command], "-t", "fault", env={"HOCKNEY_FAULT": "list 0 0"})
    assert answers[0]["warmup"] == warmup
    assert sum("72" in line.split() for line in done.stderr.splitlines()) == warmup + 7 * 4, done.stderr
