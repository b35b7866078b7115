"""The rows of a classic report next to this machine's figures: values with their intervals, cells, rows and groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hockney.archive import Benchmark, Published
from hockney.report.document import Column, Section, Table, Text
from hockney.stats import RANGE
from hockney.stats.interval import Estimate

_WRAPPED_MIN = 30  # a longer cell is a sentence
_KEYS_MAX = 3  # columns that are repeated where a table is too wide for the screen
REPRODUCED = 0.02
"""A model's figure this near to a published one that its fit used is reproduced; else it has an error."""


@dataclass(frozen=True)
class Reported:
    """A figure of this machine in `unit`, or the `reason` why there is none.

    Its bounds cover what `over` says, or are its own where it `is_exact`, of a model without noise; without either it
    is computed from others. `at_bytes` is the size of a best figure; `pairs`: over how many pairs of ranks a statistic
    is, and how many were asked for. `is_predicted`: on a model of this machine. `state`, `is_oversubscribed` and
    `is_short` as for a Figure.
    """

    unit: str
    estimate: Estimate | None = None
    over: str | None = None
    state: str | None = None
    reason: str | None = None
    at_bytes: int | None = None
    pairs: tuple[int, int] | None = None
    is_exact: bool = False
    is_predicted: bool = False
    is_oversubscribed: bool = False
    is_short: bool = False

    @property
    def number(self) -> float | None:
        return None if self.estimate is None else self.estimate.value

    @property
    def interval(self) -> Estimate | None:
        """The value with its interval; None where its bounds are only what was seen, or its own."""
        return self.estimate if self.is_exact or self.over not in (None, RANGE) else None

    def converted(self, unit: str, of: Callable[[float], float]) -> Reported:
        """The same figure in another unit; `of` is monotonic."""
        return replace(self, unit=unit, estimate=self.estimate and self.estimate.mapped(of))


def exactly(unit: str, value: float, **more: object) -> Reported:
    """A value that is computed from others, without an interval."""
    return Reported(unit, Estimate(value, value, value), **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Here:
    """A row's value in one column, and `also` another quantity of the same points.

    `published` is what it is compared with, None where the report's figure is of another way to send. `of_model`: of
    the model of the report's own machine; `is_used`: its fit used the published figure.
    """

    value: Reported
    published: float | None = None
    also: Reported | None = None
    of_model: bool = False
    is_used: bool = False

    @property
    def ratio(self) -> float | None:
        """This machine's figure over the published one."""
        number = self.value.number
        return None if number is None or not self.published else number / self.published

    @property
    def error(self) -> float | None:
        """How far a model's figure is off the published one, as a fraction of that."""
        return self.ratio - 1 if self.of_model and self.ratio is not None else None

    @property
    def is_reproduced(self) -> bool:
        """Whether it is as near as a figure should be that the model was fitted to."""
        return self.is_used and self.error is not None and abs(self.error) <= REPRODUCED


@dataclass(frozen=True)
class PublishedRow:
    """A published figure read as a `quantity`, its `unit` and number, what its model gives, and the cells by column.

    `reason`: why no cell has a value.
    """

    figure: Published
    names: tuple[str, ...]
    quantity: str
    unit: str
    published: float | None
    modelled: float | None
    cells: Mapping[str, Here] = field(default_factory=dict)
    reason: str | None = None

    @property
    def known(self) -> dict[str, Here]:
        return {column: cell for column, cell in self.cells.items() if cell.value.estimate is not None}


@dataclass(frozen=True)
class BenchmarkRows:
    """The rows of a benchmark, and its columns of this machine in the order of the run."""

    benchmark: Benchmark
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> list[tuple[PublishedRow, Here]]:
        """The cells with a value, row by row."""
        return [(row, cell) for row in self.rows for cell in row.known.values()]


def table_section(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    notes: Iterable[str] = (),
    keys: int = 1,
    is_open: bool = False,
) -> Section:
    """A table and its notes. The first `keys` columns name a row; sentences are wrapped, figures stand on the right."""
    columns = []
    for number, name in enumerate(names):
        is_text = number < keys or any(len(row[number]) > _WRAPPED_MIN for row in rows)
        columns.append(Column(name, right=not is_text, wrap=is_text, key=number < min(keys, _KEYS_MAX)))
    table = [Table(columns, rows, fits=True)] if rows else []
    return Section(title, (*table, *(Text(note, tone="quiet") for note in notes)), is_open=is_open)


def format_figure(value: float) -> str:
    """Three digits, never an exponent: `0.00123`, `6.60`, `23,167`."""
    if not value:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(float(f"{value:.3g}"))))
    return f"{value:,.{min(max(decimals, 0), 6)}f}"
