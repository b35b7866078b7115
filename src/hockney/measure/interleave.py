"""Measures two variants in alternation, so that drift of the machine affects both alike.

Variants are environments, transports, library builds or MPI installations. Both jobs of a launch pair run concurrently
(an idle one sleeps). Each point is measured base, new, new, base, or the reverse, within a fraction of a second and
with one batch. Each side is stored as an ordinary run; launch and round connect the measurements of such a quadruple
(analysis/compare/comparison.py).
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import UsageError
from hockney.measure.calibration import Calibration
from hockney.measure.estimate import MIN_MEASUREMENTS
from hockney.measure.plan import Plan
from hockney.measure.point_work import Work
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.run import Side, Variant, measure_variants
from hockney.measure.sampler import Progress, Sampler
from hockney.model import NOT_MEASURED, Measurement, Point, PointStatus
from hockney.stats import median
from hockney.worker.launch import refuse_overridden

BASE, NEW = 0, 1
_SIDES = ("base", "new")
_ORDERS = ((BASE, NEW, NEW, BASE), (NEW, BASE, BASE, NEW))


def measure(variants: tuple[Variant, Variant], lab: Lab) -> tuple[RunOutcome, RunOutcome]:
    """Measure two runs in alternation; returns how each ended. Both plans have the same launches and time.

    Raises UsageError where the plans have no series in common or a variable would have no effect, StoreError.
    """
    names, common = _common(variants)
    for variant in common:
        for transport in {point.transport for point in variant.plan.points}:
            refuse_overridden(lab.catalogue.transports[transport].library, variant.environment)
    pair_id = random.SystemRandom().randrange(1 << 32)
    # Variables that one side sets and the other has from here; facts have only those of libraries.
    inherited = [name for variant in common for name in variant.environment if name in os.environ]
    about = {"id": pair_id, "names": names, "inherited": inherited}
    linked = [
        replace(variant, link={INTERLEAVED: {**about, "side": side}})
        for variant, side in zip(common, _SIDES, strict=True)
    ]

    def make_sampler(plan: Plan, sides: Sequence[Side], **launch: Any) -> Sampler:
        return _PairSampler(plan, _BothSides(sides, names), **launch)

    base, new = measure_variants(linked, lab, make_sampler=make_sampler)
    return base, new


def _common(variants: tuple[Variant, Variant]) -> tuple[dict[str, str], tuple[Variant, Variant]]:
    """The new run's names of base's transports, and both variants with their common points in base's order."""
    base, new = variants
    listed = [list(dict.fromkeys(point.transport for point in variant.plan.points)) for variant in variants]
    if len(listed[BASE]) != len(listed[NEW]):
        has = " and ".join(", ".join(names) or "none" for names in listed)
        raise UsageError(f"both sides need the same number of transports; they have {has}")
    names = {old: new for old, new in zip(*listed, strict=True) if old != new}
    points = [point for point in base.plan.points if _renamed(point, names) in set(new.plan.points)]
    if not points:
        reasons = [skipped.reason for variant in variants for skipped in variant.plan.skipped]
        raise UsageError(f"both sides have no point in common: {next(iter(reasons), 'their points differ')}")
    return names, (_only(base, points), _only(new, (_renamed(point, names) for point in points)))


def _only(variant: Variant, points: Iterable[Point]) -> Variant:
    """A variant of these points alone: no size is added, and no launch."""
    plan = replace(variant.plan, points=tuple(points), refine=frozenset())
    return replace(variant, plan=plan.within(more_launches=False))


def _renamed(point: Point, names: Mapping[str, str]) -> Point:
    return replace(point, transport=names.get(point.transport, point.transport))


class _BothSides:
    """The sampler's Instrument, which measures on `side`, and its Observer, which reports to both sides.

    The sampler has base's points; `names`: the new run's names of base's transports.
    """

    def __init__(self, sides: Sequence[Side], names: Mapping[str, str]) -> None:
        self.side = BASE  # after a failure: the side that failed
        self._recorders = [side.recorder for side in sides]
        self._pools = [side.pool for side in sides]
        self._names: tuple[Mapping[str, str], Mapping[str, str]] = ({}, names)
        self._side_of: dict[int, int] = {}  # by launch_id

    def _point(self, point: Point, side: int) -> Point:
        return _renamed(point, self._names[side])

    def clock_ns(self, point: Point) -> float:
        return self._pools[self.side].clock_ns(self._point(point, self.side))

    def measure(self, point: Point, **how: Any) -> Measurement:
        measurement = self._pools[self.side].measure(self._point(point, self.side), **how)
        self._side_of[measurement.launch_id] = self.side
        return measurement

    def side_of(self, measurement: Measurement) -> int:
        """The side that a measurement is of."""
        return self._side_of[measurement.launch_id]

    def measured(self, measurement: Measurement) -> None:
        self._recorders[self.side_of(measurement)].measured(measurement)

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        for side, recorder in enumerate(self._recorders):
            recorder.round_done([each for each in measurements if self.side_of(each) == side], progress)

    def points_added(self, points: Sequence[Point]) -> None:
        """Nothing: no size is added."""

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """Report the end to both sides. If one side could not measure a point, the other skips it."""
        for side, recorder in enumerate(self._recorders):
            end = status, reason
            if status in NOT_MEASURED and side != self.side:
                end = PointStatus.SKIPPED, f"{_SIDES[self.side]} could not measure it: {reason}"
            recorder.point_ended(self._point(point, side), *end)


class _PairCalibration(Calibration):
    """Of both sides: a point is measured four times, twice a side."""

    def __init__(self, both: _BothSides, order: random.Random, plan: Plan, *more: Any) -> None:
        super().__init__(plan, both, *more)
        self._both, self._random = both, order

    def is_exact(self, work: Work) -> bool:
        """Never: ratios decide, also between models without noise."""
        return False

    def calibrate(self, work: Work) -> None:
        """One batch for both sides, the larger one, and as many samples as the slower side has time for."""
        calibrated = []
        given = work.batch, work.is_long
        for side in self._random.sample((BASE, NEW), 2):
            self._both.side, (work.batch, work.is_long) = side, given
            super().calibrate(work)
            calibrated.append((work.batch, work.samples, work.is_long))
        work.batch = max(batch for batch, _, _ in calibrated)
        work.samples = max(min(work.samples, 5), min(samples * batch // work.batch for batch, samples, _ in calibrated))
        work.is_long = all(is_long for _, _, is_long in calibrated)

    def take(self, work: Work) -> list[Measurement]:
        """Two measurements of each side, whose order is drawn."""
        verify = work.wants_check()
        measurements = list[Measurement]()
        for side in self._random.choice(_ORDERS):
            self._both.side = side
            if not measurements:
                measurements.append(self._measure_point(work))
            else:
                batch = measurements[0].batch
                measurements.append(self._measure(work, batch, samples=work.samples, warmup=work.warmup, verify=verify))
        return measurements


class _PairSampler(Sampler):
    """One launch pair: each round measures every point on both sides, and judges ratios."""

    def __init__(self, plan: Plan, both: _BothSides, **launch: Any) -> None:
        super().__init__(plan, both, both, **launch)
        self._both = both
        self._ratios: dict[Point, list[float]] = {}

    def _make_calibration(self, points: int, budget_s: float) -> Calibration:
        return _PairCalibration(self._both, self._random, self._plan, self._clock, points, budget_s)

    def _took(self, work: Work, measurements: Sequence[Measurement]) -> None:
        super()._took(work, measurements)
        medians_ns = [(statistics.median(each.times_ns().tolist()), self._both.side_of(each)) for each in measurements]
        new, base = ([ns for ns, side in medians_ns if side == which] for which in (NEW, BASE))
        self._ratios.setdefault(work.point, []).append((new[0] * new[1] / (base[0] * base[1])) ** 0.5)

    def _judge(self, active: list[Work], *, refine: bool = True) -> list[Work]:
        """End the points whose ratio is as precise as wanted within this launch pair."""
        unfinished = []
        for work in active:
            ratios = self._ratios.get(work.point, [])
            work.time = median(ratios) if ratios else None
            if len(ratios) >= MIN_MEASUREMENTS and self._is_narrow(work):
                self._end(work, PointStatus.PRECISE, None)
            else:
                unfinished.append(work)
        return unfinished
