"""What a table of a classic report is made of: text, published figures, and figures of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hockney.archive import Published

Kind = Literal["key", "published", "measured"]


@dataclass(frozen=True)
class Measured:
    """A figure of this machine, or the reason why there is none. `low` and `high` enclose it at 95 %.

    `published` is the figure that it is set beside, in the same unit. `at_bytes` is the size at which a best figure was
    found. `oversubscribed`: there were more ranks than CPUs, so that it is a scheduling time. `pairs`: for a statistic
    over pairs of ranks, how many it is over and how many were asked for. `computed`: it follows from other figures and
    has no interval of its own; any other figure without one had too few measurements. `is_short`: of a stream in which
    fewer than 8 events follow each other. `interval_over`: launches, or one alone; None: no interval, or that of a fit.
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
        """Whether it is known how well it is known."""
        return self.low is not None and self.high is not None

    @property
    def lacks_measurements(self) -> bool:
        """Whether it would have an interval if there were more measurements; 0 needs none."""
        return bool(self.value) and not self.has_interval and not self.computed

    @property
    def spread(self) -> float | None:
        """The longer arm of the interval as a fraction of the value."""
        if self.value is None or self.low is None or self.high is None or self.value <= 0:
            return None
        return max(self.high - self.value, self.value - self.low) / self.value


Cell = str | Published | Measured
"""Text, a figure of the report, or one of this machine."""


@dataclass(frozen=True)
class Column:
    """A column: where a row stands in the grid, what was published, or what was measured.

    `parts`: the transport and what else tells a column from the others, where it is of one transport.
    """

    title: str
    kind: Kind = "key"
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of a report, in the report's shape, with this machine's columns beside the published one.

    `heading`: how many of the first columns are best said once, above the rows that have them in common.
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
