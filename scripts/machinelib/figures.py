"""Published figures of one report, and a list of those that a fit has asked for."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from hockney.archive import Coordinate, Published, published

Where = Mapping[str, Coordinate | list[Coordinate]]


class Figures:
    """The figures of a report. Every use names its purpose, and the model's file repeats it."""

    def __init__(self, report: str) -> None:
        self._all = list(published(report))
        self.used: list[dict[str, Any]] = []

    def value(self, for_: str, **where: Coordinate) -> float:
        """The one figure with these values in its columns, as printed."""
        (figure,) = self._asked(for_, dict(where))
        return _value(figure)

    def ns(self, for_: str, **where: Coordinate) -> float:
        """The same of a time in us."""
        return self.value(for_, **where) * 1000.0

    def column(self, for_: str, name: str, **where: Coordinate) -> float:
        """Another number of the row of a figure, as printed."""
        (figure,) = self._asked(for_, dict(where))
        return float(figure.at[name])

    def table(self, for_: str, *columns: str, **where: Coordinate | list[Coordinate]) -> dict[tuple[int, ...], float]:
        """All figures with these values in their columns, by the numbers in `columns`."""
        figures = self._asked(for_, where)
        return {tuple(int(figure.at[name]) for name in columns): _value(figure) for figure in figures}

    def _asked(self, for_: str, where: Where) -> Sequence[Published]:
        figures = [figure for figure in self._all if figure.matches(where)]
        if not figures or functools.reduce(lambda count, each: count * _length(each), where.values(), 1) > len(figures):
            raise LookupError(f"not all of {where} are in the report")
        self.used.append({"where": dict(where), "for": for_})
        return figures


def _length(value: Coordinate | list[Coordinate]) -> int:
    return len(value) if isinstance(value, list) else 1


def _value(figure: Published) -> float:
    if figure.value is None:
        raise LookupError(f"{figure.benchmark} has no such figure")
    return figure.value


def line(points: Mapping[int, float]) -> tuple[float, float]:
    """Fixed part and slope through points, by least squares of relative errors."""
    weights = {x: 1 / y**2 for x, y in points.items()}
    all_ = sum(weights.values())
    x_mean = sum(weights[x] * x for x in points) / all_
    y_mean = sum(weights[x] * y for x, y in points.items()) / all_
    slope = sum(weights[x] * (x - x_mean) * (y - y_mean) for x, y in points.items())
    slope /= sum(weights[x] * (x - x_mean) ** 2 for x in points)
    return y_mean - slope * x_mean, slope


def between(low: tuple[float, float], high: tuple[float, float]) -> dict[str, float]:
    """A cost that is linear through two points (bytes, ns); no part of it is negative."""
    slope = max(0.0, (high[1] - low[1]) / (high[0] - low[0]))
    return cost(fixed=low[1] - slope * low[0], per_byte=slope)


def cost(fixed: float = 0.0, per_byte: float = 0.0, per_packet: float = 0.0) -> dict[str, float]:
    """A cost in ns, without the parts that are 0."""
    parts = {"fixed_ns": fixed, "per_byte_ns": per_byte, "per_packet_ns": per_packet}
    if min(parts.values()) < 0:
        raise ValueError(f"a negative cost: {parts}")
    return {name: part for name, part in parts.items() if part > 0}
