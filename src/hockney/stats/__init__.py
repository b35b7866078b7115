"""Statistics: confidence intervals, machine states and the time of a point."""

from __future__ import annotations

from hockney.stats.figures import BETWEEN_LAUNCHES, EXACT, ONE_LAUNCH, RANGE, ROUNDING, estimate_of, rate_per_s, time_of
from hockney.stats.interval import CONFIDENCE, Estimate, Interval, median
from hockney.stats.states import MIXED, UNKNOWN, State, classify, classify_both, state_order
