"""Predicted times, alone and next to measured ones."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hockney.model import Point
from hockney.stats.interval import Estimate


@dataclass(frozen=True)
class Prediction:
    """The time of a point in ns.

    `low_ns` and `high_ns`: its 95 % interval; None where the model is given, and where the figures that it is fitted to
    have none. `outside_bytes`: of a point outside the range that the model was fitted to, the nearest size within it.
    """

    point: Point
    time_ns: float
    low_ns: float | None = None
    high_ns: float | None = None
    outside_bytes: int | None = None


@dataclass(frozen=True)
class Checked:
    """A point that the fit did not use."""

    point: Point
    predicted_ns: float
    measured_ns: Estimate

    @property
    def error(self) -> float:
        """How much more is predicted than measured, as a fraction."""
        return self.predicted_ns / self.measured_ns.value - 1


@dataclass(frozen=True)
class Validation:
    """The points of a transport in one machine state (None: in all), and why others could not be predicted."""

    transport: str
    state: str | None
    rows: Sequence[Checked]
    missing: Mapping[Point, str]

    @property
    def median_error(self) -> float | None:
        """The median size of the errors; None without points."""
        return statistics.median(abs(row.error) for row in self.rows) if self.rows else None

    def share_within(self, limit: float) -> float | None:
        """The fraction of the points with an error of at most this limit."""
        return sum(abs(row.error) <= limit for row in self.rows) / len(self.rows) if self.rows else None
