"""The tables of the classic reports: text, published figures, and figures of this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hockney.archive import Published
from hockney.stats import RANGE
from hockney.stats.interval import Bounded, Estimate

NOTHING = "\N{EN DASH}"
_NAMED_MAX = 5  # rows or columns that a sentence lists
Kind = Literal["key", "published", "measured", "predicted"]


@dataclass(frozen=True)
class Measured(Bounded):
    """A figure of this machine with its 95 % confidence interval or range, or the `reason` why there is none.

    `published` is the report's figure in the same unit, `at_bytes` the size of a best figure. `pairs`: over how many
    pairs of ranks a statistic is, and how many were asked for. `computed`: from other figures, without an interval of
    its own. `oversubscribed` and `is_short` as for a point. `interval_over`: None without an interval, or for a fit's.
    `exact`: of a model without noise; its bounds are the value. `model`: of one of the report's own machine, and
    `reproduced` where the published figure was used for its fit.
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
    model: bool = False
    exact: bool = False
    reproduced: bool = False

    @property
    def error(self) -> float | None:
        """How far a model's figure is off the published one, as a fraction of that."""
        return self.ratio - 1 if self.model and self.ratio is not None else None

    @property
    def ratio(self) -> float | None:
        """This machine's figure over the published one."""
        return self.value / self.published if self.value is not None and self.published else None

    @property
    def interval(self) -> Estimate | None:
        """The value with its interval; None where its bounds are only what was seen."""
        return None if self.lacks_measurements else self.estimate

    @property
    def lacks_measurements(self) -> bool:
        """Whether more measurements would give it an interval."""
        return self.interval_over == RANGE

    def converted(self, unit: str, of: Callable[[float], float]) -> Measured:
        """The same figure in another unit; `of` is monotonic."""
        if self.estimate is None:
            return replace(self, unit=unit, value=None if self.value is None else of(self.value))
        return replace(self, unit=unit, **vars(self.estimate.mapped(of)))


Cell = str | Published | Measured


@dataclass(frozen=True)
class ClassicColumn:
    """A column of row keys, or of published, measured or predicted figures.

    `parts` are the transport and the other distinctions of the column; of a published key its title alone.
    """

    title: str
    kind: Kind = "key"
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """Why figures are missing, and the rows or columns that miss them; without `names` all rows do."""

    reason: str
    names: tuple[str, ...] = ()
    predicted: bool = False

    def sentence(self, why: str) -> str:
        """`Not measured (1): tcp, ring, 2 ranks; …`; `why` is printed in place of the reason."""
        more = f"; and {len(self.names) - _NAMED_MAX} more" if len(self.names) > _NAMED_MAX else ""
        which = f": {'; '.join(self.names[:_NAMED_MAX])}{more}" if self.names else ""
        return f"Not {'predicted' if self.predicted else 'measured'} {why}{which}."


@dataclass(frozen=True)
class ClassicTable:
    """A table in the report's shape, with columns of this machine next to the published one.

    The first `heading` columns are shown above the rows that share them. `left_out` says why figures are missing.
    """

    name: str
    title: str
    columns: tuple[ClassicColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    heading: int = 0
    left_out: tuple[LeftOut, ...] = ()


def plain_table(name: str, title: str, heads: str, rows: Iterable[Sequence[Cell]], *notes: str) -> ClassicTable:
    """A table of keys alone; `heads` are separated by `|`."""
    return ClassicTable(name, title, tuple(map(ClassicColumn, heads.split("|"))), tuple(map(tuple, rows)), notes)


def blank(unit: str, reason: str, published: float | None = None) -> Measured:
    """A cell without a figure."""
    return Measured(unit, reason=reason, published=published)


def format_figure(value: float) -> str:
    """Three digits, never an exponent: `0.00123`, `6.60`, `23,167`."""
    if not value:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(float(f"{value:.3g}"))))
    return f"{value:,.{min(max(decimals, 0), 6)}f}"
