"""How a point is measured on a model without noise: once, over a few repetitions."""

from __future__ import annotations

import math
from typing import Protocol

from hockney.measure.estimate import SAMPLES_MIN, SCHEDULE_EVENTS_MIN, events_on_schedule
from hockney.measure.point_work import FILL, SCHEDULE_FILL
from hockney.model import Measurement, Point


class Measure(Protocol):
    """Takes a measurement of one point."""

    def __call__(self, batch: int, *, samples: int, warmup: int) -> Measurement: ...


def measure_exactly(point: Point, measure: Measure, *, batch: int = 4, samples: int = SAMPLES_MIN) -> Measurement:
    """A measurement of `samples` times `batch` repetitions; of a stream more, of events on schedule one each."""
    if point.rate_hz:
        events = max(SCHEDULE_EVENTS_MIN, events_on_schedule(point.rate_hz))
        return measure(1, samples=events, warmup=max(1, events // SCHEDULE_FILL))
    if point.is_stream:
        once = measure(1, samples=1, warmup=0)
        # After 256 events the ends weigh little.
        batch = max(1, min(math.ceil(256 / once.definition.divisor), most_repetitions(once)))
    return measure(batch, samples=samples, warmup=max(1, batch // FILL))


def most_repetitions(measurement: Measurement) -> int:
    """How many repetitions a batch may have, so that it has no more messages than are simulated in a moment."""
    # A barrier counts no message.
    return (1 << 18) // max(measurement.point.ranks, measurement.definition.messages_per_rep)
