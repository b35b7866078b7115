"""A predicted time."""

from __future__ import annotations

from dataclasses import dataclass

from hockney.model import Point


@dataclass(frozen=True)
class Prediction:
    """The time of a point in ns.

    `low_ns` and `high_ns`: its 95 % interval; None where the model is given, and where the figures that it is fitted to
    have none. `outside`: why the point lies outside the range that the model was fitted to; None: it does not.
    """

    point: Point
    time_ns: float
    low_ns: float | None = None
    high_ns: float | None = None
    outside: str | None = None
