"""Statistics: confidence intervals, machine states and the figures of a point."""

from __future__ import annotations

from hockney.stats.figures import (
    BETWEEN_LAUNCHES,
    EXACT,
    ONE_LAUNCH,
    Figure,
    figures_of,
    needed_for,
    of_one_batch,
    rate_bytes_per_s,
    time_of,
)
from hockney.stats.interval import CONFIDENCE, Estimate, Interval, median
from hockney.stats.states import MIXED, UNKNOWN, State, classify, classify_both, place

__all__ = [
    "BETWEEN_LAUNCHES",
    "CONFIDENCE",
    "EXACT",
    "MIXED",
    "ONE_LAUNCH",
    "UNKNOWN",
    "Estimate",
    "Figure",
    "Interval",
    "State",
    "classify",
    "classify_both",
    "figures_of",
    "median",
    "needed_for",
    "of_one_batch",
    "place",
    "rate_bytes_per_s",
    "time_of",
]
