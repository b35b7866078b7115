"""Figures from samples: intervals of medians, states of the machine, and what is said of one point."""

from __future__ import annotations

from hockney.stats.figures import Figure, figures_of, rate_bytes_per_s
from hockney.stats.interval import CONFIDENCE, Interval, median, order_ranks, quantile
from hockney.stats.states import MIXED, UNKNOWN, State, classify

__all__ = [
    "CONFIDENCE",
    "MIXED",
    "UNKNOWN",
    "Figure",
    "Interval",
    "State",
    "classify",
    "figures_of",
    "median",
    "order_ranks",
    "quantile",
    "rate_bytes_per_s",
]
