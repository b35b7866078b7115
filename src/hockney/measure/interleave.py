"""Measures two variants in alternation, so that drift of the machine affects both alike.

Variants are environments, transports, library builds or MPI installations. Both jobs of a launch pair are up at once
(an idle one sleeps), and each point is measured base, new, new, base, or the reverse, within a fraction of a second and
with one batch. Each side is stored as an ordinary run; launch and round connect the measurements of such a quadruple
(analysis/compare/paired.py).
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import UsageError
from hockney.machine import Moment, StealMeter, Watch, choose_cpus, usable_cpus
from hockney.measure.interfaces import Instrument, PointFailed, Progress
from hockney.measure.plan import Plan
from hockney.measure.point_work import Work
from hockney.measure.pool import Failures, WorkerPool
from hockney.measure.precision import judge_over_launches
from hockney.measure.recorder import Display, Recorder, RunOutcome, finish_quietly, interrupts_wait
from hockney.measure.run import create_run, describe_run, warn_before, watched
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point, PointStatus, RunStatus
from hockney.results.store import Store
from hockney.stats import median
from hockney.worker.catalogue import Catalogue
from hockney.worker.launch import refuse_overridden
from hockney.worker.processes import cpu_time_s

BASE, NEW = 0, 1
_SIDES = ("base", "new")
_ORDERS = ((BASE, NEW, NEW, BASE), (NEW, BASE, BASE, NEW))
_QUADRUPLES_MIN = 10  # of a point in each launch pair, before its precision can end it


@dataclass(frozen=True)
class Variant:
    """What one side measures, and the variables that it adds to the environment of its jobs."""

    plan: Plan
    environment: Mapping[str, str]
    label: str | None = None


@dataclass
class _Side:
    """One side while it is measured. `names`: what it calls base's transports."""

    plan: Plan
    run_id: int
    recorder: Recorder
    names: Mapping[str, str]
    environment: Mapping[str, str]
    pool: WorkerPool | None = None

    def point(self, point: Point) -> Point:
        return replace(point, transport=self.names.get(point.transport, point.transport))


def measure(
    variants: tuple[Variant, Variant], catalogue: Catalogue, store: Store, display: Display, *, command: str
) -> tuple[RunOutcome, RunOutcome]:
    """Measure two runs in alternation; returns how each ended. Both plans have the same launches and time.

    Raises UsageError where the plans have no series in common or a variable would have no effect, StoreError.
    """
    plans, names = _common(variants)
    for variant, plan in zip(variants, plans, strict=True):
        for transport in {point.transport for point in plan.points}:
            refuse_overridden(catalogue.transports[transport].library, variant.environment)
    pair_id = random.SystemRandom().randrange(1 << 32)
    with contextlib.ExitStack() as held:
        sides: list[_Side] = []
        others: list[Moment] = []
        status = RunStatus.DONE
        try:
            with interrupts_wait():
                for variant, plan, side in zip(variants, plans, _SIDES, strict=True):
                    info = describe_run(plan, catalogue, command, variant.label, {**os.environ, **variant.environment})
                    environment = {**info.facts["environment"], **variant.environment}
                    link = {INTERLEAVED: {"id": pair_id, "side": side, "names": names}}
                    facts = {**info.facts, "environment": environment}
                    info = replace(info, facts=facts, plan={**info.plan, **link})
                    run_id = create_run(plan, info, store, held)
                    recorder = Recorder(store, run_id, display)
                    sides.append(_Side(plan, run_id, recorder, names if side == "new" else {}, variant.environment))
            warn_before(plan, info.facts, store, run_id, "When the run began")
            display.begun(sides[BASE].run_id, plans[BASE], goes_on=False, precise=0)
            _make_launch_pairs(_BothSides((sides[BASE], sides[NEW])), catalogue, others)
            for one in sides:
                judge_over_launches(store, one.run_id, one.plan.precision)
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt) or len(sides) < len(_SIDES):
                for one in sides:
                    finish_quietly(store, one.run_id, RunStatus.INTERRUPTED)
                raise
            status = RunStatus.INTERRUPTED
        outcomes = [one.recorder.finish(one.plan, status, catalogue, others) for one in sides]
        return outcomes[BASE], outcomes[NEW]


def _common(variants: tuple[Variant, Variant]) -> tuple[list[Plan], dict[str, str]]:
    """Both plans with their common points in base's order, and what new calls base's transports."""
    listed = [list(dict.fromkeys(point.transport for point in one.plan.points)) for one in variants]
    if len(listed[BASE]) != len(listed[NEW]):
        has = " and ".join(", ".join(names) or "none" for names in listed)
        raise UsageError(f"both sides need the same number of transports; they have {has}")
    names = {old: new for old, new in zip(*listed, strict=True) if old != new}
    new_points = set(variants[NEW].plan.points)
    common = [point for point in variants[BASE].plan.points if _renamed(point, names) in new_points]
    if not common:
        reasons = [skipped.reason for variant in variants for skipped in variant.plan.skipped]
        raise UsageError(f"both sides have no point in common: {next(iter(reasons), 'their points differ')}")
    points = (common, [_renamed(point, names) for point in common])
    return [
        replace(one.plan, points=tuple(own), refine=frozenset()) for one, own in zip(variants, points, strict=True)
    ], names


def _renamed(point: Point, names: Mapping[str, str]) -> Point:
    return replace(point, transport=names.get(point.transport, point.transport))


def _make_launch_pairs(both: _BothSides, catalogue: Catalogue, others: list[Moment]) -> None:
    plan = both.sides[BASE].plan
    cpus = usable_cpus()
    meter = StealMeter(cpus)
    watch = None if plan.hosts else Watch(cpu_time_s, cpus)
    chance = random.Random()
    end_s, round_ = time.monotonic() + plan.time_s, 0
    alike: dict[Point, Measurement] = {}
    failures = [Failures() for _ in both.sides]
    for index in range(plan.launches):
        left = plan.launches - 1 - index
        with watched(watch, others), contextlib.ExitStack() as up:
            for side, failed in zip(both.sides, failures, strict=True):
                side.recorder.launches_left = left
                side.pool = WorkerPool(
                    side.plan,
                    catalogue,
                    side.recorder,
                    choose_cpus=choose_cpus,
                    cpus_usable=len(cpus),
                    steal=meter.read,
                    launch_index=index,
                    environment=side.environment,
                    failures=failed,
                )
                up.enter_context(side.pool)
            sampler = _PairSampler(plan, both, seed=chance.randrange(1 << 32), start_round=round_, alike=alike)
            sampler.run(max(0.0, end_s - time.monotonic()) / (left + 1))
            round_, alike = sampler.rounds, sampler.alike


class _BothSides:
    """The sampler's Instrument, which measures on `side`, and its Observer, which tells both sides."""

    def __init__(self, sides: tuple[_Side, _Side]) -> None:
        self.sides = sides
        self.side = BASE
        self._failed = BASE  # the side whose instrument failed last
        self._side_of: dict[int, int] = {}  # by launch_id

    @property
    def _instrument(self) -> Instrument:
        pool = self.sides[self.side].pool
        assert pool is not None
        return pool

    def clock_ns(self, point: Point) -> float:
        """As Instrument."""
        with self._noting_failure():
            return self._instrument.clock_ns(self.sides[self.side].point(point))

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        """As Instrument."""
        with self._noting_failure():
            measurement = self._instrument.measure(
                self.sides[self.side].point(point),
                round_=round_,
                batch=batch,
                samples=samples,
                warmup=warmup,
                verify=verify,
            )
        self._side_of[measurement.launch_id] = self.side
        return measurement

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except PointFailed:
            self._failed = self.side
            raise

    def measured(self, measurement: Measurement) -> None:
        """As Observer."""
        self.sides[self._side_of[measurement.launch_id]].recorder.measured(measurement)

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        """As Observer."""
        for number, side in enumerate(self.sides):
            side.recorder.round_done([one for one in measurements if self._side_of[one.launch_id] == number], progress)

    def points_added(self, points: Sequence[Point]) -> None:
        """As Observer; no size is added."""

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """As Observer. Where one side could not measure a point, the other skips it."""
        for number, side in enumerate(self.sides):
            failed = status in (PointStatus.FAILED, PointStatus.SKIPPED)
            if failed and number != self._failed:
                why = f"{_SIDES[self._failed]} could not measure it: {reason}"
                side.recorder.point_ended(side.point(point), PointStatus.SKIPPED, why)
            else:
                side.recorder.point_ended(side.point(point), status, reason)


class _PairSampler(Sampler):
    """One launch pair: each round measures every point four times, twice a side, and judges ratios."""

    def __init__(
        self, plan: Plan, both: _BothSides, *, seed: int, start_round: int, alike: Mapping[Point, Measurement]
    ) -> None:
        super().__init__(plan, both, both, seed=seed, clock=time.monotonic, start_round=start_round, alike=alike)
        self._both = both
        self._ratios: dict[Point, list[float]] = {}

    def _calibrate(self, work: Work) -> None:
        """One batch for both sides, the larger one, and as many samples as the slower side has time for."""
        calibrated = []
        given = work.batch
        for side in self._random.sample((BASE, NEW), 2):
            self._both.side, work.batch = side, given
            super()._calibrate(work)
            calibrated.append((work.batch, work.samples, work.is_long))
        work.batch = max(batch for batch, _, _ in calibrated)
        work.samples = max(min(work.samples, 5), min(samples * batch // work.batch for batch, samples, _ in calibrated))
        work.is_long = all(is_long for _, _, is_long in calibrated)

    def _take(self, work: Work) -> list[Measurement]:
        verify = work.wants_check()
        order = self._random.choice(_ORDERS)
        measurements = []
        for place, self._both.side in enumerate(order):
            if place == 0:
                measurements.append(self._measure_point(work))
            else:
                batch = measurements[0].batch
                measurements.append(self._measure(work, batch, samples=work.samples, warmup=work.warmup, verify=verify))
        medians_ns = [statistics.median(measurement.times_ns().tolist()) for measurement in measurements]
        new, base = ([ns for ns, side in zip(medians_ns, order, strict=True) if side == which] for which in (NEW, BASE))
        self._ratios.setdefault(work.point, []).append((new[0] * new[1] / (base[0] * base[1])) ** 0.5)
        return measurements

    def _judge(self, active: list[Work], *, refine: bool = True) -> list[Work]:
        """End the points whose ratio is as precise as wanted within this launch pair."""
        unfinished = []
        for work in active:
            ratios = self._ratios.get(work.point, [])
            work.time = median(ratios) if ratios else None
            if len(ratios) >= _QUADRUPLES_MIN and self._is_narrow(work):
                self._end(work, PointStatus.PRECISE, None)
            else:
                unfinished.append(work)
        return unfinished
