"""How a run is read for tables: its series by pattern, one figure for each, in the report's own units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hockney.library import Run, Series
from hockney.model import Point, PointStatus
from hockney.report.classic.values import Measured
from hockney.stats import Figure
from hockney.stats.npb import ft_mops

Options = Mapping[str, str]
NOT_PLANNED = "not asked for in this run"

_LOCAL = ("memload",)  # they send nothing, so the null transport is as good as any


@dataclass(frozen=True)
class Quantity:
    """What a report prints of a point: a unit, and how it follows from the pattern's time in ns."""

    unit: str
    of: Callable[[Point, Figure, float], float]
    larger_is_better: bool = False


def _rate_mb_s(figure: Figure, time_ns: float) -> float:
    return figure.definition.bytes_per_rep / (time_ns * figure.definition.divisor) * 1e3


def _ft_mops(point: Point, figure: Figure, time_ns: float) -> float:
    return ft_mops(dict(point.options).get("class", "S"), time_ns * figure.definition.divisor) / point.ranks


QUANTITIES: Mapping[str, Quantity] = {
    "time": Quantity("us", lambda point, figure, ns: ns / 1e3),
    "whole time": Quantity("us", lambda point, figure, ns: 2 * ns / 1e3),
    "rate": Quantity("MB/s", lambda point, figure, ns: _rate_mb_s(figure, ns), True),
    "half the rate": Quantity("MB/s", lambda point, figure, ns: _rate_mb_s(figure, ns) / 2, True),
    "rate per rank": Quantity("MB/s", lambda point, figure, ns: _rate_mb_s(figure, ns) / point.ranks, True),
    # Half the ranks send at a time: from the half round trip, whatever the pattern counts.
    "rate of pairs": Quantity(
        "MB/s",
        lambda point, figure, ns: point.ranks * point.bytes / (ns * figure.definition.divisor) * 1e3,
        True,
    ),
    "speed per rank": Quantity("Mop/s", _ft_mops, True),
}


class Reading:
    """A run, read for tables. `defaults` are options that a point does not name, by pattern."""

    def __init__(self, run: Run, defaults: Mapping[str, Options] | None = None) -> None:
        self.run = run
        self._defaults = defaults or {}
        self._figures: dict[Series, Figure | None] = {}
        states: Counter[str] = Counter(state.name for series in run.series for state in series.states)
        self._common = [name for name, _ in states.most_common() if name not in ("mixed", "unknown")]

    def series(self, *patterns: str) -> list[Series]:
        """All series of these patterns but the harness's own, in the order of the plan."""
        found = (series.point for series in self.run.series)
        wanted = [
            point.pattern in patterns and (point.transport != "null" or point.pattern in _LOCAL) for point in found
        ]
        return [series for series, is_wanted in zip(self.run.series, wanted, strict=True) if is_wanted]

    def options(self, point: Point) -> dict[str, str]:
        """All options of a point that a table may ask for, with the defaults."""
        return {**self._defaults.get(point.pattern, {}), **dict(point.options)}

    def figure(self, series: Series) -> Figure | None:
        """The figure that stands for a series: one with an interval, in the state that the run was in most."""
        if series not in self._figures:
            self._figures[series] = self._chosen(series.figures())
        return self._figures[series]

    def _chosen(self, figures: Sequence[Figure]) -> Figure | None:
        def place(figure: Figure) -> tuple[bool, bool, int, int]:
            known = self._common.index(figure.state) if figure.state in self._common else len(self._common)
            return (figure.low_ns is None, figure.state == "mixed", known, -figure.n_visits)

        return min(figures, key=place, default=None)

    def cell(self, series: Series, quantity: Quantity, published: float | None = None) -> Measured:
        """A series as a cell of a table."""
        figure = self.figure(series)
        if figure is None or figure.value_ns <= 0:
            return Measured(quantity.unit, reason=self.reason(series), published=published)

        def of(time_ns: float) -> float:
            return quantity.of(series.point, figure, time_ns)

        low, high = None, None
        if figure.low_ns is not None and figure.high_ns is not None:
            low, high = sorted((of(figure.low_ns), of(figure.high_ns)))
        return Measured(
            quantity.unit,
            of(figure.value_ns),
            low,
            high,
            figure.state,
            series.oversubscribed,
            published=published,
        )

    def best(self, found: Sequence[Series], quantity: Quantity, published: float | None = None) -> Measured:
        """The best of several series, with the size that it was found at; the first one's reason where none has any."""
        cells = [(series, self.cell(series, quantity, published)) for series in found]
        known = [(series, cell) for series, cell in cells if cell.value is not None]
        if not known:
            return cells[0][1] if cells else Measured(quantity.unit, reason=NOT_PLANNED, published=published)
        sign = 1 if quantity.larger_is_better else -1
        series, cell = max(known, key=lambda pair: sign * (pair[1].value or 0.0))
        return with_size(cell, series.point.bytes)

    @staticmethod
    def reason(series: Series) -> str:
        """Why a series has no figure, as a table says it."""
        point, reason = series.point, series.reason
        if reason is not None and reason.startswith(f"{point.ranks} ranks on "):
            return "more ranks than CPUs would measure the scheduler; --oversubscribe runs them"
        if series.status is PointStatus.FAILED:
            return f"failed: {reason or 'no reason was stored'}"
        if series.status is PointStatus.SKIPPED:
            return f"skipped: {reason or 'no reason was stored'}"
        return "not reached: the time was up, or the run was stopped"

    @staticmethod
    def between_hosts(series: Series) -> bool:
        """Whether its ranks were on more than one host."""
        return any(len(set(launch.hosts)) > 1 for launch in series.launches)


def of_one_state(cells: Sequence[Measured]) -> list[bool]:
    """Which cells have figures of the state that most of them have: only those are to be put together."""
    count = Counter(cell.state for cell in cells if cell.value is not None)
    common = count.most_common(1)[0][0] if count else None
    return [cell.value is not None and cell.state == common for cell in cells]


def with_size(cell: Measured, size_bytes: int) -> Measured:
    """The same, found at this size."""
    return replace(cell, at_bytes=size_bytes)


def blank(unit: str, reason: str, published: float | None = None) -> Measured:
    """A cell without a figure."""
    return Measured(unit, reason=reason, published=published)


def states_note(cells: Iterable[Measured]) -> tuple[str | None, str | None]:
    """The state that most cells hold for, and the sentence that says so; None where none is known."""
    count = Counter(cell.state for cell in cells if cell.value is not None and cell.state is not None)
    if not count:
        return None, None
    common = count.most_common(1)[0][0]
    return common, f"State of the machine: {common}{'' if len(count) == 1 else ', unless a cell names another'}."


def options_text(options: Iterable[tuple[str, str]]) -> str:
    """`window=16 until=sent`."""
    return " ".join(f"{name}={value}" for name, value in options)


def counters_sum(series: Series, name: str) -> float | None:
    """A counter summed over all visits and ranks; None where it was not counted."""
    found: list[Any] = [visit.counters[name] for visit in series.visits if name in visit.counters]
    return float(sum(sum(values) for values in found)) if found else None
