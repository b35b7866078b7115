"""The highest rate of events that is sustained within a deadline, from the schedules that a search measured.

A rate is sustained where at most 1 % of all events of its measurements end later than the deadline after they were due,
and the farm does not fall behind: a queue that grows would exceed any deadline in the end, however short the stream.
An event that started late has its wait in its time (docs/metrics.md).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hockney.model import Measurement, Point
from hockney.stats.figures import percentile

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series

LATE_MAX = 0.01  # of the events


@dataclass(frozen=True)
class Stream:
    """A measurement on schedule: its late events, all events, and how far the farm fell behind, of the time it had."""

    late: int
    events: int
    behind: float


@dataclass(frozen=True)
class SustainedRate:
    """The result of a search for one point; the point has no fixed rate.

    `sustained_hz` is the highest rate that was sustained, `missed_hz` the lowest one above it that was not; None: no
    such rate was measured. The times are those of `sustained_hz`, over all events; None: insufficient data.
    """

    point: Point
    sustained_hz: int | None
    missed_hz: int | None
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None


@dataclass(frozen=True)
class HighestRates:
    """All that a run searched, with its deadline."""

    deadline_ns: float
    rates: tuple[SustainedRate, ...]


def at_rate(point: Point, rate_hz: int) -> Point:
    """The same point with events at this rate; 0: each as soon as it may."""
    others = tuple(pair for pair in point.options if pair[0] != "rate_hz")
    options = (*others, ("rate_hz", str(rate_hz))) if rate_hz else others
    return replace(point, options=tuple(sorted(options)))


def stream_of(measurement: Measurement, deadline_ns: float) -> Stream:
    """The stream of a measurement on schedule; `behind` is from the medians of its halves, 0 for a single event."""
    import numpy as np

    times_ns = measurement.times_ns()
    half = len(times_ns) // 2
    half_ns = half * 1e9 / measurement.point.rate_hz
    growth_ns = float(np.median(times_ns[-half:]) - np.median(times_ns[:half])) if half else 0.0
    return Stream(int((times_ns > deadline_ns).sum()), len(times_ns), growth_ns / half_ns if half else 0.0)


def is_sustained(streams: Sequence[Stream]) -> bool:
    """Whether a rate is sustained; the median of its measurements says whether the farm falls behind."""
    late = sum(stream.late for stream in streams)
    in_time = late <= LATE_MAX * sum(stream.events for stream in streams)
    return in_time and statistics.median(stream.behind for stream in streams) <= 0.01


def highest_rates(run: Run) -> HighestRates | None:
    """The result of each search of a run; None if the run searched no rate."""
    deadline_ns = run.info.plan.get("deadline_ns")
    if deadline_ns is None:
        return None
    bases = [series.point for series in run.series if not series.point.rate_hz]
    return HighestRates(deadline_ns, tuple(_highest(base, run.series, deadline_ns) for base in bases))


def _highest(base: Point, series: Iterable[Series], deadline_ns: float) -> SustainedRate:
    import numpy as np

    tried = {
        each.point.rate_hz: each
        for each in series
        if each.point.rate_hz and at_rate(each.point, 0) == base and each.measurements
    }
    kept = {
        rate_hz: is_sustained([stream_of(measurement, deadline_ns) for measurement in each.measurements])
        for rate_hz, each in tried.items()
    }
    missed_hz = min((rate_hz for rate_hz, is_kept in kept.items() if not is_kept), default=None)
    below = [rate_hz for rate_hz, is_kept in kept.items() if is_kept and (missed_hz is None or rate_hz < missed_hz)]
    if not below:
        return SustainedRate(base, None, missed_hz, None, None, None)
    times_ns = tried[max(below)].times_ns
    percentiles = (percentile(times_ns, share) for share in (0.99, 0.999))
    return SustainedRate(base, max(below), missed_hz, float(np.median(times_ns)), *percentiles)
