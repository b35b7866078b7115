"""The highest rate of events that is sustained within a deadline, from the schedules that a search measured.

A rate is sustained where at most 1 % of all events of its measurements end later than the deadline after they were due,
and the farm does not fall behind: a queue that grows would exceed any deadline in the end, however short the stream.
An event that started late has its wait in its time (docs/metrics.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hockney.model import Measurement, Point
from hockney.stats.figures import percentile

if TYPE_CHECKING:
    from hockney.results.runs import Run

LATE_MAX = 0.01  # of the events


@dataclass(frozen=True)
class SustainedRate:
    """The result of a search for one point; the point has no fixed rate.

    `sustained_hz` is the highest rate that was sustained, `missed_hz` the lowest one above it that was not; None: no
    such rate was measured. `bytes_per_s` and the times are those of `sustained_hz`, over all events, `missed_p99_ns` is
    that of `missed_hz`; None: insufficient data. `is_over`: the search ended before its time was up. `low_hz` and
    `high_hz`: on a fitted machine the interval of `sustained_hz`, or `is_range`.
    """

    point: Point
    sustained_hz: int | None
    missed_hz: int | None
    missed_p99_ns: float | None
    is_over: bool
    bytes_per_s: float | None = None
    p50_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None
    low_hz: float | None = None
    high_hz: float | None = None
    is_range: bool = False


@dataclass(frozen=True)
class HighestRates:
    """All that a run searched, with its deadline."""

    deadline_ns: float
    rates: tuple[SustainedRate, ...]

    def groups(self) -> Iterable[list[SustainedRate]]:
        """The searches that differ only in the events in flight."""
        groups: dict[Point, list[SustainedRate]] = {}
        for rate in self.rates:
            groups.setdefault(without(rate.point, "in_flight"), []).append(rate)
        return groups.values()


def at_rate(point: Point, rate_hz: int) -> Point:
    """The same point with events at this rate; 0: each as soon as it may."""
    point = without(point, "rate_hz")
    return replace(point, options=tuple(sorted((*point.options, ("rate_hz", str(rate_hz)))))) if rate_hz else point


def without(point: Point, option: str) -> Point:
    """The same point with the default of an option."""
    return replace(point, options=tuple(pair for pair in point.options if pair[0] != option))


def is_sustained(measurements: Iterable[Measurement], deadline_ns: float) -> bool:
    """Whether a rate is sustained. The median of its measurements says whether the farm falls behind.

    By how much, of the time it had, is from the medians of a measurement's halves.
    """
    import numpy as np

    late, behind = [], []
    for measurement in measurements:
        times_ns = measurement.times_ns()
        half = max(1, len(times_ns) // 2)
        growth_ns = float(np.median(times_ns[-half:]) - np.median(times_ns[:half]))
        late.append(times_ns > deadline_ns)
        behind.append(growth_ns * measurement.point.rate_hz / (1e9 * half))
    return bool(np.concatenate(late).mean() <= LATE_MAX and statistics.median(behind) <= 0.01)


def next_hz(first_hz: float, kept: Mapping[int, bool]) -> int | None:
    """The rate to try after these, each with whether it was sustained, first `first_hz`; None: the search is over."""
    low_hz = max((rate_hz for rate_hz, is_kept in kept.items() if is_kept), default=0)
    high_hz = min((rate_hz for rate_hz, is_kept in kept.items() if not is_kept), default=math.inf)
    if not kept:
        rate_hz = first_hz
    elif high_hz == math.inf:
        rate_hz = low_hz * 1.5
    else:
        rate_hz = math.sqrt(low_hz * high_hz) if low_hz else high_hz / 2
    wanted_hz = min(1_000_000_000, max(1, round(rate_hz)))  # as the worker takes it
    is_close, is_hopeless = high_hz <= 1.02 * low_hz, not low_hz and wanted_hz < 0.01 * first_hz
    return None if wanted_hz in (low_hz, high_hz) or is_close or is_hopeless else wanted_hz


def highest_rates(run: Run) -> HighestRates | None:
    """The result of each search of a run; None if the run searched no rate."""
    deadline_ns = run.info.plan.get("deadline_ns")
    if deadline_ns is None:
        return None
    bases = [series.point for series in run.series if not series.point.rate_hz]
    measured = {series.point: series.measurements for series in run.series}
    return HighestRates(deadline_ns, tuple(highest_of(base, measured, deadline_ns) for base in bases))


def highest_of(base: Point, measured: Mapping[Point, Sequence[Measurement]], deadline_ns: float) -> SustainedRate:
    """The result for one point, from its measurements, which count the bytes of an event, and those on schedule."""
    import numpy as np

    own = {point.rate_hz: each for point, each in measured.items() if each and at_rate(point, 0) == base}
    times_ns = {rate_hz: np.concatenate([one.times_ns() for one in each]) for rate_hz, each in own.items()}
    event = own.pop(0)[0].definition if 0 in own else None
    first_hz = 1e9 / max(1.0, float(np.median(times_ns[0]))) if event else 0.0
    kept = {rate_hz: is_sustained(each, deadline_ns) for rate_hz, each in own.items()}
    missed_hz = min((rate_hz for rate_hz, is_kept in kept.items() if not is_kept), default=None)
    below = [rate_hz for rate_hz, is_kept in kept.items() if is_kept and (missed_hz is None or rate_hz < missed_hz)]
    missed_p99_ns = None if missed_hz is None else percentile(times_ns[missed_hz], 0.99)
    outcome = missed_hz, missed_p99_ns, next_hz(first_hz, kept) is None
    if not below:
        return SustainedRate(base, None, *outcome)
    best_ns = times_ns[max(below)]
    bytes_per_s = max(below) * event.bytes_per_rep / event.divisor if event else None
    p99_ns, p999_ns = (percentile(best_ns, share) for share in (0.99, 0.999))
    return SustainedRate(base, max(below), *outcome, bytes_per_s, float(np.median(best_ns)), p99_ns, p999_ns)
