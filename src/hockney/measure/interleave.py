"""Measures variants in alternation, so that drift of the machine affects all alike.

Variants are environments, transports, library builds, MPI installations, or settings of one library. All jobs of a
launch run concurrently (idle ones sleep). Each point is measured on all variants in a random order and then in its
mirror image, within a fraction of a second and with one batch: base, new, new, base, or the reverse. Each variant is
stored as an ordinary run; launch and round connect the measurements (analysis/compare/comparison.py).

With `decide` it is a race: after each launch a variant leaves the points at which it needs no more. Launches are then
short, since certainty takes a number of them (stats/sequence.py). A race that was stopped goes on from its launches.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hockney.analysis.compare.comparison import Entry, Ratios, decided_pairs, launch_ratio, round_ratio
from hockney.analysis.repeat import EARLY, INTERLEAVED
from hockney.errors import UsageError
from hockney.machine.facts import facts
from hockney.measure.calibration import Calibration
from hockney.measure.estimate import MIN_MEASUREMENTS
from hockney.measure.plan import Plan
from hockney.measure.point_work import PointFailed, Work
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.run import Side, Variant, measure_variants, refuse_elsewhere, resume_variants
from hockney.measure.sampler import Progress, Sampler
from hockney.model import NOT_MEASURED, Measurement, Point, PointStatus, RunStatus
from hockney.results.store import Store
from hockney.stats import median
from hockney.stats.sequence import values_needed
from hockney.worker.launch import refuse_overridden

BASE = 0
Decide = Callable[[Ratios], Collection[Entry]]
"""The entries that need no more measuring; base leaves a point with the last other variant."""


def measure(
    variants: Sequence[Variant], lab: Lab, *, decide: Decide | None = None, runs: Sequence[int] = ()
) -> tuple[RunOutcome, ...]:
    """Measure a run of each variant in alternation; returns how each ended. The first is base, to which others compare.

    All plans have the same launches and time. Without `decide` these launches are made. With it, launches are short and
    go on while any entry is left and the time is not up, but at least as many are made as the plan has.

    A variant is measured at the points that base has, too. `runs`: those of the same variants in a race that goes on,
    for the rest of its time, unless it had ended. Raises UsageError where there are no points or a variable would have
    no effect, StoreError.
    """
    names, common = _common(variants, more_launches=decide is not None)
    for variant in common:
        for transport in {point.transport for point in variant.plan.points}:
            refuse_overridden(lab.catalogue.transports[transport].library, variant.environment)
    pair_id = random.SystemRandom().randrange(1 << 32)
    # Variables that one side sets and another has from here; facts have only those of libraries.
    inherited = [name for variant in common for name in variant.environment if name in os.environ]
    about = {"id": pair_id, "inherited": inherited, **({EARLY: True} if decide else {})}
    linked = [
        replace(variant, link=variant.link | {INTERLEAVED: about | {"names": names[max(1, at)], "side": _side(at)}})
        for at, variant in enumerate(common)
    ]
    owns = [_Own(of_variant, variant.having) for of_variant, variant in zip(names, common, strict=True)]
    race = _Race(owns, [variant.plan.points for variant in common], decide)

    def make_sampler(plan: Plan, sides: Sequence[Side], **launch: Any) -> Sampler:
        plan = replace(plan, points=tuple(point for point in plan.points if race.entered[point]))
        return _RaceSampler(plan, _AllSides(sides, race), **launch)

    rest = race.look if decide else None
    if not runs:
        return tuple(measure_variants(linked, lab, make_sampler=make_sampler, rest=rest))
    base, limits = lab.store.run(runs[BASE]), variants[BASE].plan.limits
    refuse_elsewhere(base, known := facts())
    launches = race.replay(lab.store, runs)
    if base.status in (RunStatus.DONE, RunStatus.PARTIAL) or (launches and not race.look()):
        return tuple(RunOutcome(run_id, RunStatus.DONE, 0) for run_id in runs)
    left = {"time_s": max(1.0, limits.time_s - base.measured_s), "launches": max(1, limits.launches - launches)}
    going_on = [replace(variant, plan=variant.plan.within(**left)) for variant in linked]
    return tuple(resume_variants(runs, going_on, lab, known, make_sampler=make_sampler, rest=rest))


def until_verdicts(margin: float) -> Decide:
    """Ends each series of a comparison that differs beyond a margin, a ratio of times, or certainly does not."""

    def decide(ratios: Ratios) -> list[Entry]:
        return list(itertools.compress(ratios, decided_pairs(list(ratios.values()), margin)))

    return decide


def can_race(variants: Sequence[Variant], start_s: float | None = None) -> bool:
    """Whether the time is enough for as many short launches as make any verdict certain, by an estimate."""
    series, limits = max(len(variant.plan.points) for variant in variants), variants[BASE].plan.limits
    return race_s(variants, values_needed(max(1, series)), start_s) <= limits.time_s


def race_s(variants: Sequence[Variant], launches: int, start_s: float | None = None) -> float:
    """How long this number of short launches of all takes, by an estimate: twice their first rounds.

    `start_s`: of a library's job, if it is known.
    """
    return 2 * sum(variant.plan.within(launches=launches).first_rounds_s(start_s=start_s) for variant in variants)


def _side(number: int) -> str:
    return "new" if number else "base"


def _common(variants: Sequence[Variant], *, more_launches: bool) -> tuple[list[Mapping[str, str]], tuple[Variant, ...]]:
    """Each variant's names of base's transports, where they differ, and the variants with their common points.

    Points are in base's order; base has those that any other variant has.
    """
    base, *others = variants
    all_ = "both sides" if len(others) == 1 else "all variants"
    listed = [list(dict.fromkeys(point.transport for point in variant.plan.points)) for variant in variants]
    if len({len(transports) for transports in listed}) > 1:
        has = " and ".join(", ".join(names) or "none" for names in listed)
        raise UsageError(f"{all_} need the same number of transports; they have {has}: name one of these for each")
    names: list[Mapping[str, str]] = [
        {old: new for old, new in zip(listed[BASE], own, strict=True) if old != new} for own in listed
    ]
    common, shared = list[Variant](), set[Point]()
    for number, variant in enumerate(others, 1):
        known, own = set(variant.plan.points), _Own(names[number], variant.having)
        points = [point for point in base.plan.points if own(point) in known]
        if not points:
            reasons = [skipped.reason for either in (base, variant) for skipped in either.plan.skipped]
            raise UsageError(f"{all_} have no point in common: {next(iter(reasons), 'their points differ')}")
        shared.update(points)
        common.append(_only(variant, (own(point) for point in points), more_launches))
    of_base = _only(base, (point for point in base.plan.points if point in shared), more_launches)
    return names, (of_base, *common)


def _only(variant: Variant, points: Iterable[Point], more_launches: bool) -> Variant:
    """A variant of these points alone: no size is added."""
    plan = replace(variant.plan, points=tuple(points), refine=frozenset())
    return replace(variant, plan=plan.within(more_launches=more_launches))


class _Own(NamedTuple):
    """From base's point to a variant's: its names of base's transports, and its option."""

    names: Mapping[str, str]
    having: tuple[str, str] | None

    def __call__(self, point: Point) -> Point:
        point = replace(point, transport=self.names.get(point.transport, point.transport))
        return point.having(*self.having) if self.having else point


class _Race:
    """What is known of each entry: `ratios`, one per launch; and who is still measured at which points.

    `entered`: the variants at each of base's points, base first; none where only base would be.
    """

    def __init__(self, owns: Sequence[_Own], points: Sequence[Iterable[Point]], decide: Decide | None) -> None:
        self.owns, self.is_open = owns, decide is not None
        own = [set(of_variant) for of_variant in points]
        self.entered = {
            point: [number for number, of_variant in enumerate(own) if owns[number](point) in of_variant]
            for point in points[BASE]
        }
        self.ratios: dict[Entry, list[float]] = {}
        self._decide = decide

    def leave(self, number: int, point: Point) -> None:
        """Base takes all others with it, and the last other one takes base."""
        left = [other for other in self.entered[point] if other != number]
        self.entered[point] = left if number != BASE and len(left) > 1 else []

    def replay(self, store: Store, runs: Sequence[int]) -> int:
        """Take the launches of stored runs, as if measured now; returns their number.

        A round counts where it has all variants that are still there: a kill may leave it half written.
        """
        failed, rounds = list[Entry](), dict[int, dict[tuple[Point, int], dict[int, list[float]]]]()
        for number, run_id in enumerate(runs):
            own = {self.owns[number](point): point for point in self.entered}
            here, launches = store.points(run_id), store.run(run_id).launches
            rows = {row.id: own[row.point] for row in here if row.point in own}
            failed += [(number, rows[row.id]) for row in here if row.id in rows and row.status in NOT_MEASURED]
            for each in store.summaries(run_id):
                if each.median_ns and each.point_id in rows:
                    of_launch = rounds.setdefault(launches[each.launch_id].index, {})
                    of_round = of_launch.setdefault((rows[each.point_id], each.round), {})
                    of_round.setdefault(number, []).append(each.median_ns)
        for _, launch in sorted(rounds.items()):
            ratios: dict[Entry, list[float]] = {}
            for (point, _), times_ns in launch.items():
                if all(number in times_ns or (number, point) in failed for number in self.entered[point]):
                    base = times_ns.pop(BASE, [])
                    for number, of_side in times_ns.items() if base else ():
                        ratios.setdefault((number, point), []).append(round_ratio(base, of_side))
            self.launch_over(ratios)
            self.look()
        for number, point in failed:
            self.leave(number, point)
        return len(rounds)

    def launch_over(self, ratios: Ratios) -> None:
        """Keep the ratio of each entry's rounds."""
        for entry, of_rounds in ratios.items():
            self.ratios.setdefault(entry, []).append(launch_ratio(of_rounds))

    def look(self) -> set[Point]:
        """Let the decided entries leave; returns the points that need more launches."""
        assert self._decide is not None
        for number, point in self._decide(self.ratios):
            if number in self.entered[point]:
                self.leave(number, point)
        return {point for point, entered in self.entered.items() if entered}


class _AllSides:
    """The sampler's Instrument, which measures on `side`, and its Observer, which reports to all sides of a point."""

    def __init__(self, sides: Sequence[Side], race: _Race) -> None:
        self.side = BASE  # after a failure: the side that failed
        self.race = race
        self._recorders = [side.recorder for side in sides]
        self._pools = [side.pool for side in sides]
        self._side_of: dict[int, int] = {}  # by launch_id

    def _point(self, point: Point, side: int) -> Point:
        return self.race.owns[side](point)

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

    def went_on_without(self, point: Point, failure: PointFailed) -> bool:
        """Take the side that failed out of a point's race, if others can go on there."""
        if self.side == BASE or len(self.race.entered[point]) <= 2:
            return False
        status = PointStatus.SKIPPED if failure.skipped else PointStatus.FAILED
        self._recorders[self.side].point_ended(self._point(point, self.side), status, str(failure))
        self.race.leave(self.side, point)
        return True

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """Report the end to all sides still there. Where one could not measure a point, the others skip it."""
        for side in self.race.entered[point]:
            end = status, reason
            if status in NOT_MEASURED and side != self.side:
                end = PointStatus.SKIPPED, f"{self._name(self.side)} could not measure it: {reason}"
            self._recorders[side].point_ended(self._point(point, side), *end)
        if status in NOT_MEASURED:
            self.race.leave(BASE, point)

    def _name(self, side: int) -> str:
        return _side(side) if side == BASE or len(self._pools) == 2 else f"variant {side}"


class _RaceCalibration(Calibration):
    """Of all sides: a point is measured twice on each."""

    def __init__(self, sides: _AllSides, order: random.Random, plan: Plan, *more: Any) -> None:
        super().__init__(plan, sides, *more)
        self._sides, self._random = sides, order

    def is_exact(self, work: Work) -> bool:
        """Never: ratios decide, also between models without noise."""
        return False

    def _shuffled(self, point: Point) -> list[int]:
        entered = self._sides.race.entered[point]
        return self._random.sample(entered, len(entered))

    def calibrate(self, work: Work) -> None:
        """One batch for all sides, the largest one, and as many samples as the slowest side has time for."""
        calibrated = []
        given = work.batch, work.is_long
        for side in self._shuffled(work.point):
            self._sides.side, (work.batch, work.is_long) = side, given
            try:
                super().calibrate(work)
            except PointFailed as failure:
                if not self._sides.went_on_without(work.point, failure):
                    raise
                continue
            calibrated.append((work.batch, work.samples, work.is_long))
        work.batch = max(batch for batch, _, _ in calibrated)
        work.samples = max(min(work.samples, 5), min(samples * batch // work.batch for batch, samples, _ in calibrated))
        work.is_long = all(is_long for _, _, is_long in calibrated)

    def take(self, work: Work) -> list[Measurement]:
        """Two measurements of each side, in an order that is drawn and in its mirror image."""
        try:
            return list(self._alternately(work))
        except PointFailed as failure:
            if not self._sides.went_on_without(work.point, failure):
                raise
        return self.take(work)

    def _alternately(self, work: Work) -> Iterator[Measurement]:
        order, verify = self._shuffled(work.point), work.wants_check()
        self._sides.side = order[0]
        first = self._measure_point(work)
        yield first
        for side in (*order[1:], *reversed(order)):
            self._sides.side = side
            yield self._measure(work, first.batch, samples=work.samples, warmup=work.warmup, verify=verify)


class _RaceSampler(Sampler):
    """One launch of all variants: each round measures every point on those that are there, and judges ratios."""

    def __init__(self, plan: Plan, sides: _AllSides, **launch: Any) -> None:
        super().__init__(plan, sides, sides, is_short=sides.race.is_open, **launch)
        self._sides = sides
        self._ratios: dict[Entry, list[float]] = {}  # of each round

    def run(self, budget_s: float) -> None:
        try:
            super().run(budget_s)
        finally:
            self._sides.race.launch_over(self._ratios)

    def _make_calibration(self, points: int, budget_s: float) -> Calibration:
        return _RaceCalibration(self._sides, self._random, self._plan, self._clock, points, budget_s)

    def _took(self, work: Work, measurements: Sequence[Measurement]) -> None:
        super()._took(work, measurements)
        times_ns: dict[int, list[float]] = {}
        for each in measurements:
            ns = statistics.median(each.times_ns().tolist())
            times_ns.setdefault(self._sides.side_of(each), []).append(ns)
        base = times_ns.pop(BASE)
        for side, of_side in times_ns.items():
            self._ratios.setdefault((side, work.point), []).append(round_ratio(base, of_side))

    def _judge(self, active: list[Work], *, refine: bool = True) -> list[Work]:
        """End the points whose ratios are all as precise as wanted within this launch."""
        unfinished = []
        for work in active:
            entries = [(side, work.point) for side in self._sides.race.entered[work.point] if side != BASE]
            known = [median(self._ratios[entry]) for entry in entries if entry in self._ratios]
            work.time = max(
                known, key=lambda time: math.inf if time.precision is None else time.precision, default=None
            )
            is_enough = known and min(time.n for time in known) >= MIN_MEASUREMENTS
            if is_enough and len(known) == len(entries) and self._is_narrow(work):
                self._end(work, PointStatus.PRECISE, None)
            else:
                unfinished.append(work)
        return unfinished
