"""Decides the next measurements, and when to stop: rounds over all points until each is precise enough.

A round measures every unfinished point once, in random order. Contention of some seconds then affects all points
alike, and shows as scatter between rounds (Gropp and Lusk 1999). Where a suite names points that come first, most
rounds have only these. The replicate is the measurement: its samples are neighbours in time. A point ends when the
interval of the median over measurements in one machine state is narrow enough, or when the time is up.

The sampler knows neither workers nor stores, so tests run whole runs with a fake clock and machine.
"""

from __future__ import annotations

import functools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from hockney.measure.estimate import (
    MIN_MEASUREMENTS,
    SAMPLES_MIN,
    SPAN_S,
    events_on_schedule,
    is_long,
    long_messages_s,
    long_ns,
    stream_least,
    stream_ns,
)
from hockney.measure.plan import Plan
from hockney.measure.point_work import (
    ENDS_WANTED,
    FILL,
    PointFailed,
    Work,
    batch_for_ends,
    batch_ns,
    curve_in_one_state,
    ends_ns,
    measure_exactly,
    refuse_no_time,
    refuse_short,
    repetition_ns,
)
from hockney.model import CurveKey, Measurement, Point, PointStatus, curve_of
from hockney.stats.figures import STREAM_EVENTS_MIN
from hockney.stats.fit.segments import sizes_to_add
from hockney.stats.states import classify

_SLOW_S = 1.0  # a transport is slow if a point took longer in a first round: others take some hundredths
_NARROW_CHECKS = 2  # stopping at the first narrow interval would favour lucky ones
_STREAM_SLACK = 8  # how many times shorter than wanted its batch may be: then it still lasts over 0.1 ms
_FAR_TOO_LONG = 4  # times what a batch needs: it was chosen in a quick moment, and the next measurement gets another
_MORE_TIME = "give it more --time"
_FIRST_MEASUREMENTS = 8  # of points that come first, before there are any of the rest: enough for an interval
_WHOLE_EVERY = 3  # then one round in three has all points


class Instrument(Protocol):
    """Measures points. Every call ends within a time limit or raises."""

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        """One measurement. Raises PointFailed."""

    def clock_ns(self, point: Point) -> float:
        """The cost of reading the clock in this point's job. Raises PointFailed."""


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
    many, however precise, since the interval over launches decides.
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
    ) -> None:
        self._plan = plan
        self._instrument = instrument
        self._observer = observer
        self._random = random.Random(seed)
        self._clock = clock
        self._span_s = SPAN_S / plan.limits.launches
        self._measurements = measurements
        self._deadline_s = self._short_only_s = math.inf
        self.round = self._first_round = start_round  # rounds so far, earlier ones included
        self._work = {point: Work(point) for point in plan.points}
        self._pending: list[Measurement] = []
        self._finished = 0
        self._judged = 0  # measurements, when they were judged last
        self._given_up: set[Point] = set()
        self._refined: Counter[CurveKey] = Counter(curve_of(point) for point in plan.points if point.role == "refined")
        self._judged_curves: Counter[CurveKey] = Counter()  # its measurements, when a curve was judged last
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
            work.narrow_checks = _NARROW_CHECKS - 1
            work.first_s = self._clock() - self._span_s
        if resumed:
            active = self._judge(active)  # precise points stay so
            active += self._measure_again([work for work in active if work.point.role == "refined"], active)
        start_s = self._clock()  # only now: judging many earlier measurements may take longer than a short budget
        self._deadline_s = start_s + budget_s
        self._short_only_s = start_s + long_messages_s(budget_s, self._plan.limits.launches)
        self._long_ns = long_ns(len(active), budget_s)
        self._stream_ns = stream_ns(len(active), budget_s, self._plan.limits.timeout_s)
        for work in self._work.values():
            self._make_alike(work)
        try:
            while active and (self.round == self._first_round or not self._is_over()):
                self._one_round(active)
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

    def _make_alike(self, work: Work) -> None:
        """Use the batch of an earlier launch again: the figure of a stream never mixes batches."""
        measurement = self._alike.get(work.point)
        if measurement is not None and measurement.elapsed_ns.size:
            work.batch, work.samples = measurement.batch, measurement.elapsed_ns.shape[1]
            work.batch_is_given = True
            work.is_long = work.batch == work.samples == 1 and batch_ns(measurement) >= self._long_ns

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
        return self._clock() >= self._deadline_s

    # ---- one round ---------------------------------------------------------------------------------------------------

    def _first(self, active: Sequence[Work]) -> list[Work]:
        """The points that the next round measures without the others; [] if it measures all."""
        first = [work for work in active if work.point.role == "first"]
        too_few = any(len(work.probes) < _FIRST_MEASUREMENTS for work in first)
        return first if too_few or self.round % _WHOLE_EVERY else []

    def _order(self, points: Sequence[Work]) -> list[Work]:
        """The order of a round: of the first as the plan has them, so that a first figure comes soon."""
        return self._random.sample(points, len(points)) if self.round > 0 else list(points)

    def _one_round(self, active: list[Work]) -> None:
        for work in self._order(self._first(active) or active):
            if self._is_cut_before(work):
                break
            if self._is_left_out(work):
                continue
            begin_s = self._clock()
            try:
                if not work.warm:
                    self._calibrate(work)
                    begin_s = self._clock()
                measurements = self._take(work)
            except PointFailed as failure:
                active.remove(work)
                self._given_up.add(work.point)
                self._end(work, PointStatus.SKIPPED if failure.skipped else PointStatus.FAILED, str(failure))
                continue
            now_s = self._clock()
            work.cost_s = now_s - begin_s
            work.first_s = now_s if work.first_s is None else work.first_s
            for measurement in measurements:
                work.add(measurement)
                self._pending.append(measurement)
                self._observer.measured(measurement)
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

    def _take(self, work: Work) -> list[Measurement]:
        if not self._is_exact(work):
            measurement = self._measure_point(work)
            if work.point.transport in self._plan.virtual:
                refuse_no_time(measurement)
            if work.once is not None:
                work.ends_ns, work.once = self._ends_ns(work, work.once, measurement), None
                refuse_short(measurement, work.ends_ns, _MORE_TIME)
            wanted = self._wanted_batch(work, measurement)
            if work.batch > _FAR_TOO_LONG * wanted and len(work.probes) < SAMPLES_MIN:
                work.set_batch(wanted, repetition_ns(measurement))
            return [measurement]
        measurement = measure_exactly(work.point, functools.partial(self._measure, work))
        work.batch, work.samples = measurement.batch, measurement.elapsed_ns.shape[1]
        return [measurement]

    def _is_exact(self, work: Work) -> bool:
        """Whether its clock is a model's without noise: one measurement of a few repetitions says all."""
        return self._plan.virtual.get(work.point.transport, False)

    def _measure_point(self, work: Work, samples: int | None = None) -> Measurement:
        """A measurement whose batches are long enough, of these samples or the point's own.

        The batch may have been chosen on a cold path or a slower machine. A measurement with too short batches is made
        again: the clock, and the ranks' meeting before each batch, would be a part of its times. A stream keeps the
        batch of an earlier launch longer, as another one would leave out the measurements of that launch.
        """
        slack = _STREAM_SLACK if work.batch_is_given and work.point.is_stream else 2
        verify = samples is None and work.wants_check()
        for _ in range(5):
            measurement = self._measure(
                work, work.batch, samples=samples or work.samples, warmup=work.warmup, verify=verify
            )
            wanted = self._wanted_batch(work, measurement)
            if work.batch >= wanted / slack:
                break
            # The first repetitions may have been quick.
            work.set_batch(min(wanted, 100 * work.batch), repetition_ns(measurement))
        return measurement

    def _measure(self, work: Work, batch: int, *, samples: int, warmup: int, verify: bool = False) -> Measurement:
        begin_s = self._clock()
        try:
            return self._instrument.measure(
                work.point, round_=self.round, batch=batch, samples=samples, warmup=warmup, verify=verify
            )
        finally:
            work.took_s += self._clock() - begin_s

    def _calibrate(self, work: Work) -> None:
        """Choose the batch, if no earlier launch did. These samples only warm up; they are not kept."""
        work.warm = True
        if self._is_exact(work):
            return
        work.clock_ns = self._instrument.clock_ns(work.point)
        if work.batch > 0:
            if not work.is_long:
                self._measure(work, work.batch, samples=1, warmup=work.warmup)
            return
        work.batch = 1
        if work.point.rate_hz:
            self._calibrate_schedule(work)
            return
        measurement = self._measure(work, 1, samples=1, warmup=0)
        if batch_ns(measurement) >= self._long_ns and not self._is_over():
            measurement = self._measure(work, 1, samples=1, warmup=0)  # the very first may be long because it is
        is_long = batch_ns(measurement) >= self._long_ns
        if not is_long:
            work.set_batch(min(self._wanted_batch(work, measurement), 100), repetition_ns(measurement))
            once, measurement = measurement, self._measure_point(work, SAMPLES_MIN)
            work.ends_ns = self._ends_ns(work, once, measurement)
        work.set_batch(self._wanted_batch(work, measurement), repetition_ns(measurement))
        if work.ends_ns > 0:
            measurement = self._measure_point(work, 1)
            refuse_short(measurement, work.ends_ns, _MORE_TIME)
        if is_long:
            work.once = measurement
            work.is_long, work.samples = work.batch == 1, 1

    def _ends_ns(self, work: Work, once: Measurement, measurement: Measurement) -> float:
        """What a batch of a stream takes besides its repetitions, if that makes it longer than others; else 0."""
        if not work.point.is_stream or "lost" in measurement.counters:
            return 0.0
        for _ in range(2):
            ends = ends_ns(once, measurement)
            batch = self._wanted_batch(work, measurement)
            is_marked = batch * measurement.definition.divisor < STREAM_EVENTS_MIN
            if is_marked or batch_for_ends(measurement, ends, ENDS_WANTED) <= batch:
                return 0.0
            # The first repetition of a job is slow, as are some on a busy machine: that was no end.
            samples = int(min(20, max(SAMPLES_MIN, 4_000_000 / batch_ns(once))))
            once = self._measure(work, 1, samples=samples, warmup=1)
        return ends

    def _calibrate_schedule(self, work: Work) -> None:
        """Choose the number of events: a sample is one event, and a measurement must keep its limit."""
        rate_hz = work.point.rate_hz
        events = min(10, rate_hz)
        trial = self._measure(work, 1, samples=events, warmup=1)
        each_ns = max(1.0, trial.wall_ns[0] / events)
        work.samples = max(1, min(events_on_schedule(rate_hz), int(self._stream_ns / each_ns)))

    def _wanted_batch(self, work: Work, measurement: Measurement) -> int:
        """The number of repetitions for which reading the clock costs less than 1 % of a batch.

        Of a stream, also enough for its ends to weigh little, and no more than fit stream_ns.
        """
        if work.point.rate_hz:
            return 1
        each_ns = repetition_ns(measurement)
        clocked = math.ceil(max(20_000, 200 * work.clock_ns) / each_ns)
        if not work.point.is_stream:
            return clocked
        # A batch of datagrams is no longer than a receiver's buffer: ranks meet only between batches.
        events, least_ns = (64, 0.0) if "lost" in measurement.counters else stream_least(work.point)
        ends = batch_for_ends(measurement, work.ends_ns, ENDS_WANTED)
        wanted = max(clocked, least_ns / each_ns, events / measurement.definition.divisor, ends)
        return max(1, math.ceil(min(wanted, int(self._stream_ns / each_ns / (1 + 1 / FILL)))))

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
                work.narrow_checks, enough = _NARROW_CHECKS - 1, work.measurements_since >= self._measurements
            work.narrow_checks = work.narrow_checks + 1 if enough and spread else 0
            if work.narrow_checks >= _NARROW_CHECKS or (work.probes and self._is_exact(work)):
                self._end(work, PointStatus.PRECISE, None)
            else:
                going_on.append(work)
        added = self._refine({work.point for work in going_on}) if refine else []
        return going_on + added + self._measure_again(added, going_on)

    def _is_narrow(self, work: Work) -> bool:
        return work.precision is not None and work.precision <= self._plan.limits.precision

    def _refine(self, unfinished: set[Point]) -> list[Work]:
        """Add sizes where a curve leaves its line, once all its points have ended.

        Also sizes that were measured already, but in another machine state than the rest of the curve.
        """
        added: list[Work] = []
        again: list[Work] = []
        for curve in sorted(self._plan.refine):
            works = self._measured(curve)
            known = curve_in_one_state(works)
            unknown = {work.point for work in works} - {point for point, _ in known}
            room = (48 if self._plan.exact else 12) - self._refined[curve]
            is_ready = room > 0 and known and unfinished.isdisjoint(unknown)
            if not is_ready or not self._is_news(curve, works, unfinished):
                continue
            grain = self._plan.grains.get(works[0].point.pattern, 1)
            times = [(point.bytes, time) for point, time in known]
            wanted = [
                replace(works[0].point, bytes=size, role="refined")
                for size in sizes_to_add(times, grain_bytes=grain, exact=self._plan.exact)
            ]
            new = [Work(point) for point in wanted if point not in self._work][:room]
            self._refined[curve] += len(new)
            added += new
            elsewhere = [self._work[point] for point in wanted if point in unknown]
            again += [work for work in elsewhere if work.retries < 10]
        self._add(added)
        for work in again:
            work.retries += 1
            work.begin_anew()
        self._finished -= len(again)
        return added + again

    def _add(self, added: Sequence[Work]) -> None:
        if added:
            self._work.update({work.point: work for work in added})
            self._observer.points_added([work.point for work in added])

    def _measured(self, curve: CurveKey) -> list[Work]:
        """A curve's points by size, without those that failed."""
        works = [work for point, work in self._work.items() if curve_of(point) == curve]
        return sorted((work for work in works if work.point not in self._given_up), key=lambda work: work.point.bytes)

    def _measure_again(self, added: Sequence[Work], active: Sequence[Work]) -> list[Work]:
        """Measure the neighbours of each added size again: sizes that are compared need the same rounds.

        Returns those that had ended and now go on.
        """
        new = {work.point for work in added}
        under_way = {work.point for work in active}
        neighbours = {
            work.point: work
            for curve in {curve_of(point) for point in new}
            for pair in pairwise(self._measured(curve))
            if any(work.point in new for work in pair)
            for work in pair
            if work.point not in new
        }
        for work in neighbours.values():
            work.begin_anew()
        rejoined = [work for point, work in neighbours.items() if point not in under_way]
        self._finished -= len(rejoined)
        return rejoined

    def _is_news(self, curve: CurveKey, works: Sequence[Work], unfinished: set[Point]) -> bool:
        """Whether a curve has a quarter more measurements than at its last judgement, or all of them."""
        measurements = sum(len(work.probes) for work in works)
        over = unfinished.isdisjoint(work.point for work in works)
        if measurements < self._judged_curves[curve] * (1 if over else 1.25) + 1:
            return False
        self._judged_curves[curve] = measurements
        return True

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
        least = max(1, MIN_MEASUREMENTS - work.measurements_since, _NARROW_CHECKS - work.narrow_checks)
        shortfall = (work.precision or 0.0) / self._plan.limits.precision
        return max(least, len(work.probes) * (shortfall**2 - 1))
