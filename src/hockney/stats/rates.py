"""Rates of events that are sustained within a deadline, and the search for the highest one.

A rate is sustained where at most 1 % of all events of its measurements end later than the deadline after they were due,
and the farm does not fall behind: a queue that grows would exceed any deadline in the end, however short the stream.
An event that started late has its wait in its time (docs/metrics.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping

from hockney.model import Measurement
from hockney.stats.interval import middle

LATE_MAX = 0.01  # of the events


def misses_of(measurements: Iterable[Measurement], deadline_ns: float) -> str:
    """What a rate misses: "deadline", "backlog" (the farm falls behind), or both; "" of a rate that is sustained.

    The median of its measurements says whether the farm falls behind. By how much, of the time it had, is from the
    medians of a measurement's halves.
    """
    import numpy as np

    late, behind = [], []
    for measurement in measurements:
        times_ns = measurement.times_ns()
        half = max(1, len(times_ns) // 2)
        growth_ns = middle(times_ns[-half:]) - middle(times_ns[:half])
        late.append(times_ns > deadline_ns)
        behind.append(growth_ns * measurement.point.rate_hz / (1e9 * half))
    missed = {"deadline": np.concatenate(late).mean() > LATE_MAX, "backlog": statistics.median(behind) > 0.01}
    return ", ".join(word for word, is_missed in missed.items() if is_missed)


def bounds(kept: Mapping[int, bool]) -> tuple[int | None, int | None]:
    """The highest rate below all that were not sustained, and the lowest of these; `kept`: whether each was."""
    missed_hz = min((rate_hz for rate_hz, is_kept in kept.items() if not is_kept), default=None)
    below = (rate_hz for rate_hz, is_kept in kept.items() if is_kept and (missed_hz is None or rate_hz < missed_hz))
    return max(below, default=None), missed_hz


def next_hz(first_hz: float, kept: Mapping[int, bool]) -> int | None:
    """The rate to try after these, each with whether it was sustained, first `first_hz`; None: the search is over."""
    low_hz, high_hz = bounds(kept)
    if low_hz is None:
        rate_hz = first_hz if high_hz is None else high_hz / 2
    else:
        rate_hz = low_hz * 1.5 if high_hz is None else math.sqrt(low_hz * high_hz)
    wanted_hz = min(1_000_000_000, max(1, round(rate_hz)))  # as the worker takes it
    is_close = low_hz is not None and high_hz is not None and high_hz <= 1.02 * low_hz
    is_hopeless = low_hz is None and wanted_hz < 0.01 * first_hz
    return None if wanted_hz in (low_hz, high_hz) or is_close or is_hopeless else wanted_hz
