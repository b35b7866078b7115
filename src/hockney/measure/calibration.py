"""Chooses how many repetitions and samples the measurements of a point have, and takes them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Protocol

from hockney.measure.estimate import SAMPLES_MIN, events_on_schedule, long_ns, stream_least, stream_ns
from hockney.measure.plan import Plan
from hockney.measure.point_work import (
    ENDS_WANTED,
    FILL,
    Work,
    batch_for_ends,
    batch_ns,
    ends_ns,
    measure_exactly,
    refuse_no_time,
    refuse_short,
    repetition_ns,
)
from hockney.model import Measurement, Point
from hockney.stats.figures import STREAM_EVENTS_MIN

_STREAM_SLACK = 8  # how many times shorter than wanted its batch may be: then it still lasts over 0.1 ms
_FAR_TOO_LONG = 4  # times what a batch needs: it was chosen in a quick moment, and the next measurement gets another
_MORE_TIME = "give it more --time"


class Instrument(Protocol):
    """Measures points. Every call ends within a time limit or raises."""

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        """One measurement. Raises PointFailed."""

    def clock_ns(self, point: Point) -> float:
        """The cost of reading the clock in this point's job. Raises PointFailed."""


class Calibration:
    """Of the points of a plan that are measured for budget_s; over after `deadline_s`, as the clock has it."""

    def __init__(
        self, plan: Plan, instrument: Instrument, clock: Callable[[], float], points: int, budget_s: float
    ) -> None:
        self._plan = plan
        self._instrument = instrument
        self._clock = clock
        self._deadline_s = clock() + budget_s
        self._long_ns = long_ns(points, budget_s)
        self._stream_ns = stream_ns(points, budget_s, plan.limits.timeout_s)
        self.round = 0  # of the measurements that are taken

    def make_alike(self, work: Work, measurement: Measurement | None) -> None:
        """Use the batch of an earlier launch again: the figure of a stream never mixes batches."""
        if measurement is not None and measurement.elapsed_ns.size:
            work.batch, work.samples = measurement.batch, measurement.elapsed_ns.shape[1]
            work.batch_is_given = True
            work.is_long = work.batch == work.samples == 1 and batch_ns(measurement) >= self._long_ns

    def take(self, work: Work) -> list[Measurement]:
        """The next measurement of a point that is calibrated. Raises PointFailed."""
        if not self.is_exact(work):
            measurement = self._measure_point(work)
            if work.point.transport in self._plan.virtual:
                refuse_no_time(measurement)
            if work.once is not None:
                work.ends_ns, work.once = self._ends_ns(work, work.once, measurement), None
                refuse_short(measurement, work.ends_ns, _MORE_TIME)
            wanted = self.wanted_batch(work, measurement)
            if work.batch > _FAR_TOO_LONG * wanted and len(work.probes) < SAMPLES_MIN:
                work.set_batch(wanted, repetition_ns(measurement))
            return [measurement]
        measurement = measure_exactly(work.point, functools.partial(self._measure, work))
        work.batch, work.samples = measurement.batch, measurement.elapsed_ns.shape[1]
        return [measurement]

    def is_exact(self, work: Work) -> bool:
        """Whether one measurement of a few repetitions says all."""
        return self._plan.is_exact(work.point)

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
            wanted = self.wanted_batch(work, measurement)
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

    def calibrate(self, work: Work) -> None:
        """Choose the batch, if no earlier launch did. These samples only warm up; they are not kept."""
        work.warm = True
        if self.is_exact(work):
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
        if batch_ns(measurement) >= self._long_ns and self._clock() < self._deadline_s:
            measurement = self._measure(work, 1, samples=1, warmup=0)  # the very first may be long because it is
        is_long = batch_ns(measurement) >= self._long_ns
        if not is_long:
            work.set_batch(min(self.wanted_batch(work, measurement), 100), repetition_ns(measurement))
            once, measurement = measurement, self._measure_point(work, SAMPLES_MIN)
            work.ends_ns = self._ends_ns(work, once, measurement)
        work.set_batch(self.wanted_batch(work, measurement), repetition_ns(measurement))
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
            batch = self.wanted_batch(work, measurement)
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

    def wanted_batch(self, work: Work, measurement: Measurement) -> int:
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
