"""The tables of the classic reports: text, published figures, and figures of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from hockney.archive import Published

Kind = Literal["key", "published", "measured"]


@dataclass(frozen=True)
class Measured:
    """A figure of this machine with its 95 % confidence interval, or the `reason` why there is none.

    `published` is the report's figure in the same unit, `at_bytes` the size of a best figure. `pairs`: over how many
    pairs of ranks a statistic is, and how many were asked for. `computed`: from other figures, without an interval of
    its own. `oversubscribed` and `is_short` as for a point. `interval_over`: None without an interval, or for a fit's.
    """

    unit: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    state: str | None = None
    oversubscribed: bool = False
    reason: str | None = None
    published: float | None = None
    at_bytes: int | None = None
    pairs: tuple[int, int] | None = None
    computed: bool = False
    is_short: bool = False
    interval_over: str | None = None

    @property
    def ratio(self) -> float | None:
        """This machine's figure over the published one."""
        return self.value / self.published if self.value is not None and self.published else None

    @property
    def has_interval(self) -> bool:
        """Whether it has a confidence interval."""
        return self.low is not None and self.high is not None

    @property
    def lacks_measurements(self) -> bool:
        """Whether more measurements would give it an interval."""
        return bool(self.value) and not self.has_interval and not self.computed

    @property
    def spread(self) -> float | None:
        """The larger half-width of the interval over the value."""
        if self.value is None or self.low is None or self.high is None or self.value <= 0:
            return None
        return max(self.high - self.value, self.value - self.low) / self.value


Cell = str | Published | Measured
Row = TypeVar("Row")


@dataclass(frozen=True)
class Column:
    """A column of row keys, published or measured figures; `parts` are the transport and what else distinguishes it."""

    title: str
    kind: Kind = "key"
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table in the report's shape, with columns of this machine next to the published one.

    The first `heading` columns are shown above the rows that share them.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    heading: int = 0

    def measured(self) -> Iterable[Measured]:
        """Every cell of this machine."""
        return (cell for row in self.rows for cell in row if isinstance(cell, Measured))


@dataclass(frozen=True)
class Field(Generic[Row]):
    """A column, and how its cell follows from what a row is made of."""

    title: str
    pick: Callable[[Row], Cell]
    kind: Kind = "key"
    parts: tuple[str, ...] = ()


def table_of(
    name: str,
    title: str,
    fields: Iterable[Field[Row]],
    rows: Iterable[Row],
    notes: Iterable[str] = (),
    heading: int = 0,
) -> Table:
    """The table of some rows by a description of its columns."""
    described = tuple(fields)
    columns = tuple(Column(field.title, field.kind, field.parts) for field in described)
    cells = tuple(tuple(field.pick(row) for field in described) for row in rows)
    return Table(name, title, columns, cells, tuple(notes), heading)
