"""Decides the next measurements, and when to stop: rounds over all points until each is precise enough.

A round measures every unfinished point once, in random order. Contention of some seconds then affects all points
alike, and shows as scatter between rounds (Gropp and Lusk 1999). Where a suite names points that come first, most
rounds have only these. The replicate is the measurement: its samples are neighbours in time. A point ends when the
interval of the median over measurements in one machine state is narrow enough, or when the time is up.

The sampler knows neither workers nor stores, so tests run whole runs with a fake clock and machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hockney.measure.calibration import Calibration, Instrument
from hockney.measure.estimate import FIRST_ROUNDS_MIN, MIN_MEASUREMENTS, SPAN_S, is_long, long_messages_s
from hockney.measure.plan import Plan
from hockney.measure.point_work import PointFailed, Work
from hockney.measure.refinement import Refinement
from hockney.model import Measurement, Point, PointStatus
from hockney.stats.states import classify

_SLOW_S = 1.0  # a transport is slow if a point took longer in a first round: others take some hundredths
_FIRST_MEASUREMENTS = 8  # of points that come first, before there are any of the rest: enough for an interval
_WHOLE_EVERY = 3  # then one round in three has all points


class Observer(Protocol):
    """Receives events, for the store and the display. Methods must not take long."""

    def measured(self, measurement: Measurement) -> None: ...

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        """A round is over, or was cut short, with these measurements."""

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """A point is finished. A precise one may go on next to an added size, and end again."""

    def points_added(self, points: Sequence[Point]) -> None:
        """Sizes were added where a curve bends."""


@dataclass(frozen=True)
class Progress:
    """How far a run is. `left_most_s` is the rest of its budget.

    `left_s` estimates the time for the unfinished points if intervals narrow as expected and no size is added.
    """

    round: int
    points: int
    finished: int
    elapsed_s: float
    left_s: float
    left_most_s: float


class Sampler:
    """One launch of a plan. `earlier`: measurements of a resumed run, which count.

    `alike`: measurements of earlier launches, whose batches are used again. `measurements`: a point ends after this
    many, however precise, since the interval over launches decides. `is_short`: the launch ends after few rounds, where
    the number of launches decides: three, and as long as the first, which has its starts and calibrations.
    """

    def __init__(
        self,
        plan: Plan,
        instrument: Instrument,
        observer: Observer,
        *,
        seed: int,
        clock: Callable[[], float],
        earlier: Sequence[Measurement] = (),
        alike: Mapping[Point, Measurement] | None = None,
        start_round: int = 0,
        measurements: int | None = None,
        is_short: bool = False,
    ) -> None:
        self._plan = plan
        self._instrument = instrument
        self._observer = observer
        self._random = random.Random(seed)
        self._clock = clock
        self._span_s = SPAN_S / plan.limits.launches
        self._measurements = measurements
        self._is_short = is_short
        self._deadline_s = self._short_only_s = self._enough_s = math.inf
        self.round = self._first_round = start_round  # rounds so far, earlier ones included
        self._work = {point: Work(point) for point in plan.points}
        self._pending: list[Measurement] = []
        self._finished = 0
        self._judged = 0  # measurements, when they were judged last
        self._given_up: set[Point] = set()
        self._refinement = Refinement(plan, self._work, self._given_up)
        self._alike = {**(alike or {}), **{measurement.point: measurement for measurement in earlier}}
        for measurement in earlier:
            if measurement.point in self._work:
                self._work[measurement.point].add(measurement)

    def run(self, budget_s: float) -> None:
        """Measure until every point has ended or budget_s have passed.

        The observer gets every measurement, also when an exception (Ctrl-C) ends a round in its middle.
        """
        active = list(self._work.values())
        resumed = [work for work in active if work.probes]
        for work in resumed:
            work.first_s = self._clock() - self._span_s
        if resumed:
            active = self._judge(active)  # precise points stay so
            active += self._rejoined([work for work in active if work.point.role == "refined"], active)
        start_s = self._clock()  # only now: judging many earlier measurements may take longer than a short budget
        self._deadline_s = start_s + budget_s
        self._short_only_s = start_s + long_messages_s(budget_s, self._plan.limits.launches)
        self._calibration = self._make_calibration(len(active), budget_s)
        for work in self._work.values():
            self._calibration.make_alike(work, self._alike.get(work.point))
        try:
            while active and (self.round == self._first_round or not self._is_over()):
                self._one_round(active)
                if self._is_short and self._enough_s == math.inf:
                    self._enough_s = 2 * self._clock() - start_s
                over = self._is_over()
                # Judging takes all measurements, so long runs do it ever more rarely.
                if over or self._measurements_made() >= 1.02 * self._judged:
                    active = self._judge(active, refine=not over)
                self._tell_round(active, start_s, budget_s)
        except KeyboardInterrupt:
            for work in active:
                if work.probes:
                    self._end_early(work, PointStatus.STOPPED, "the run was stopped")
            raise
        finally:
            if self._pending:
                self._tell_round(active, start_s, budget_s)
        for work in active:
            self._end_early(work, PointStatus.TIME_UP, "the time was up")

    def _make_calibration(self, points: int, budget_s: float) -> Calibration:
        return Calibration(self._plan, self._instrument, self._clock, points, budget_s)

    @property
    def alike(self) -> dict[Point, Measurement]:
        """The last measurement of every point, for the launches that follow."""
        latest = {point: work.last for point, work in self._work.items() if work.last is not None}
        return {**self._alike, **latest}

    @property
    def points(self) -> tuple[Point, ...]:
        """The plan's and those that were added."""
        return tuple(self._work)

    def _is_over(self) -> bool:
        now_s = self._clock()
        is_enough = now_s >= self._enough_s and self.round - self._first_round >= FIRST_ROUNDS_MIN
        return is_enough or now_s >= self._deadline_s

    # ---- one round ---------------------------------------------------------------------------------------------------

    def _first(self, active: Sequence[Work]) -> list[Work]:
        """The points that the next round measures without the others; [] if it measures all, as in a short launch."""
        if self._is_short:
            return []
        first = [work for work in active if work.point.role == "first"]
        too_few = any(len(work.probes) < _FIRST_MEASUREMENTS for work in first)
        return first if too_few or self.round % _WHOLE_EVERY else []

    def _order(self, points: Sequence[Work]) -> list[Work]:
        """The order of a round: of the first as the plan has them, so that a first figure comes soon."""
        return self._random.sample(points, len(points)) if self.round > 0 else list(points)

    def _one_round(self, active: list[Work]) -> None:
        calibration = self._calibration
        calibration.round = self.round
        for work in self._order(self._first(active) or active):
            if self._is_cut_before(work):
                break
            if self._is_left_out(work):
                continue
            begin_s = self._clock()
            try:
                if not work.warm:
                    calibration.calibrate(work)
                    begin_s = self._clock()
                measurements = calibration.take(work)
            except PointFailed as failure:
                active.remove(work)
                self._given_up.add(work.point)
                self._end(work, PointStatus.SKIPPED if failure.skipped else PointStatus.FAILED, str(failure))
                continue
            now_s = self._clock()
            work.cost_s = now_s - begin_s
            work.first_s = now_s if work.first_s is None else work.first_s
            self._took(work, measurements)
        self.round += 1

    def _is_cut_before(self, work: Work) -> bool:
        """Whether a round ends here: the first of a launch never, as few measurements are better than none."""
        return self.round > self._first_round and self._is_over()

    def _is_left_out(self, work: Work) -> bool:
        """Whether a first round that takes far too long is made without this: a long message on a slow transport."""
        if self.round > self._first_round or self._clock() < self._short_only_s or not is_long(work.point):
            return False
        transport = work.point.transport
        alike = (each for each in self._work.values() if each.point.transport == transport)
        return transport not in self._plan.virtual and any(each.took_s > _SLOW_S for each in alike)

    def _took(self, work: Work, measurements: Sequence[Measurement]) -> None:
        """Keep measurements that a point got in a round."""
        for measurement in measurements:
            work.add(measurement)
            self._pending.append(measurement)
            self._observer.measured(measurement)

    # ---- after a round ---------------------------------------------------------------------------------------

    def _measurements_made(self) -> int:
        return sum(len(work.probes) for work in self._work.values())

    def _judge(self, active: list[Work], *, refine: bool = True) -> list[Work]:
        """End precise points, add sizes at bends if `refine`, and return the points that continue."""
        # States are classified over all measurements of the run: more measurements give more certain levels.
        everything = list(self._work.values())
        self._judged = self._measurements_made()
        states = iter(classify([probe for work in everything for probe in work.probes]))
        for work in everything:
            work.states = [next(states) for _ in work.probes]
            work.time = work.time_in_main_state()
        now_s = self._clock()
        going_on = []
        for work in active:
            spread = work.first_s is not None and now_s - work.first_s >= self._span_s
            spread = spread or work.point.transport in self._plan.virtual  # nothing disturbs a model
            enough = self._is_narrow(work) and work.measurements_since >= MIN_MEASUREMENTS
            if self._measurements is not None:
                enough = work.measurements_since >= self._measurements
            if (enough and spread) or (work.probes and self._plan.is_exact(work.point)):
                self._end(work, PointStatus.PRECISE, None)
            else:
                going_on.append(work)
        added = self._refine({work.point for work in going_on}) if refine else []
        return going_on + added + self._rejoined(added, going_on)

    def _refine(self, unfinished: set[Point]) -> list[Work]:
        added, again = self._refinement.sizes(unfinished)
        self._add(added)
        self._finished -= len(again)
        return added + again

    def _add(self, added: Sequence[Work]) -> None:
        if added:
            self._work.update({work.point: work for work in added})
            self._observer.points_added([work.point for work in added])

    def _rejoined(self, added: Sequence[Work], active: Sequence[Work]) -> list[Work]:
        """The neighbours of added sizes that had ended and now go on."""
        rejoined = self._refinement.neighbours(added, active)
        self._finished -= len(rejoined)
        return rejoined

    def _is_narrow(self, work: Work) -> bool:
        return work.precision is not None and work.precision <= self._plan.limits.precision

    def _end_early(self, work: Work, status: PointStatus, why: str) -> None:
        """End a point before its time; one that was precise, and still is, stays precise."""
        if work.precise and self._is_narrow(work):
            self._end(work, PointStatus.PRECISE, None)
        else:
            self._end(work, status, f"{why}: {work.reached}")

    def _end(self, work: Work, status: PointStatus, reason: str | None) -> None:
        self._finished += 1
        work.precise = status is PointStatus.PRECISE
        self._observer.point_ended(work.point, status, reason)

    def _tell_round(self, active: list[Work], start_s: float, budget_s: float) -> None:
        elapsed_s = self._clock() - start_s
        most_s = max(0.0, budget_s - elapsed_s) if active else 0.0
        left_s = min(self._wanted_s(active), most_s)
        progress = Progress(self.round, len(self._work), self._finished, elapsed_s, left_s, most_s)
        # Emptied before the call: an interrupt must not lose a round or store it twice.
        measurements, self._pending = self._pending, []
        self._observer.round_done(measurements, progress)

    def _wanted_s(self, active: Sequence[Work]) -> float:
        """Time for the measurements that points still need, and at least until the last point may end (_judge)."""
        known_s = [work.cost_s for work in active if work.cost_s]
        usual_s = sum(known_s) / max(1, len(known_s))  # of one that was just added
        measurements_s = sum((work.cost_s or usual_s) * self._measurements_wanted(work) for work in active)
        now_s = self._clock()
        begun_s = [now_s if work.first_s is None else work.first_s for work in active]
        return max(measurements_s, max(begun_s, default=-math.inf) + self._span_s - now_s)

    def _measurements_wanted(self, work: Work) -> float:
        """An interval narrows with the root of the number of measurements."""
        if self._measurements is not None:
            return max(1, self._measurements - work.measurements_since)
        least = max(1, MIN_MEASUREMENTS - work.measurements_since)
        shortfall = (work.precision or 0.0) / self._plan.limits.precision
        return max(least, len(work.probes) * (shortfall**2 - 1))
