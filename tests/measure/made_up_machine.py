"""A fake machine for the sampler: its clock, its states, its drift and its times are known exactly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.builders import make_measurement

from hockney.measure.plan import Plan
from hockney.measure.point_work import PointFailed
from hockney.measure.sampler import Progress, Sampler
from hockney.model import Definition, Measurement, Point, PointStatus, curve_of
from hockney.suites import Limits


class OwnClock:
    """The part of an Instrument that tells the time, from a clock that its measurements advance."""

    now_s = 0.0

    def clock(self) -> float:
        return self.now_s

    def clock_ns(self, point: Point) -> float:
        return 25.0


@dataclass
class Machine(OwnClock):
    """An Instrument whose repetition takes time_ns(point), with some noise, on a clock that it turns itself."""

    time_ns: Callable[[Point], float]
    noise: float = 0.002
    ends_ns: float = 0.0  # of each batch, besides its repetitions
    floor_ns: Callable[[float], float] = lambda now_s: 27.0
    broken: dict[Point, str] = field(default_factory=dict)
    interrupt_after: int | None = None
    pause_s: float = 1e-3  # time of a measurement outside its samples
    drift: Callable[[float], float] = lambda now_s: 1.0  # of all times, which no floor shows
    now_s: float = 0.0
    measurements: list[Measurement] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        if point in self.broken:
            raise PointFailed(self.broken[point])
        if self.interrupt_after is not None and len(self.measurements) >= self.interrupt_after:
            raise KeyboardInterrupt
        floor_ns = self.floor_ns(self.now_s)
        luck = self.random.gauss(1, self.noise)
        batch_ns = 2 * self.time_ns(point) * luck * batch * (floor_ns / 27.0) * self.drift(self.now_s)
        self.now_s += ((batch * samples + warmup) * batch_ns / batch + samples * self.ends_ns) / 1e9 + self.pause_s
        batch_ns += self.ends_ns
        elapsed_ns = np.full((2, samples), max(1, round(batch_ns)), dtype=np.int64)
        measurement = make_measurement(
            point,
            elapsed_ns,
            round_=round_,
            batch=batch,
            definition=Definition("root", 2, 2 * point.bytes, 2),
            floor_ns=(floor_ns, floor_ns),
            wall_ns=(round(batch_ns * samples),) * 2,
            verified=verify,
        )
        self.measurements.append(measurement)
        return measurement


@dataclass
class Notes:
    """An Observer that keeps everything."""

    rounds: list[list[Measurement]] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    ends: dict[Point, tuple[PointStatus, str | None]] = field(default_factory=dict)
    history: list[tuple[int, Point]] = field(default_factory=list)  # of ends: after how many rounds
    added: list[Point] = field(default_factory=list)

    def measured(self, measurement: Measurement) -> None:
        pass

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        self.rounds.append(list(measurements))
        self.progress.append(progress)

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        assert self.ends.get(point, (PointStatus.PRECISE, None)) == (PointStatus.PRECISE, None)
        self.ends[point] = (status, reason)
        self.history.append((len(self.rounds), point))

    def points_added(self, points: Sequence[Point]) -> None:
        self.added.extend(points)


def all_measurements(notes: Notes) -> list[Measurement]:
    return [measurement for measurements in notes.rounds for measurement in measurements]


def sample(machine: Machine, plan: Plan, budget_s: float = 1000, earlier: Sequence[Measurement] = ()) -> Notes:
    notes = Notes()
    Sampler(plan, machine, notes, seed=1, clock=machine.clock, earlier=earlier).run(budget_s)
    return notes


def plan_of(*points: Point, precision: float = 0.01, refine: bool = False) -> Plan:
    curves = frozenset(curve_of(point) for point in points) if refine else frozenset()
    return Plan("test", points, limits=Limits(precision=precision), refine=curves)


def jumping_after(*last_bytes: int) -> Callable[[Point], float]:
    """A curve that takes half as long again from one byte after each of some sizes on."""
    return lambda point: (200 + point.bytes / 10) * 1.5 ** sum(point.bytes > last for last in last_bytes)
