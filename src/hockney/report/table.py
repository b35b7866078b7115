"""A table as texts, the same for the screen, Markdown and the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hockney.report.document import Block


@dataclass(frozen=True)
class Cell:
    """A figure and its interval; `is_best`: of its column, or its interval overlaps with that one's."""

    text: str
    spread: str = ""
    is_best: bool = False

    def __str__(self) -> str:
        return f"{self.text} {self.spread}".rstrip()


@dataclass(frozen=True)
class TextTable(Block):
    """A table with all that belongs to it. `keys` are the indices of the columns that name a row.

    `lead` stands above the table, `notes` below; `definitions` are of the columns, `bold` is one of them. `is_open`:
    not folded. `fits`: as of a Table.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    lead: str = ""
    notes: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    keys: tuple[int, ...] = (0,)
    is_open: bool = False
    bold: str = ""
    fits: bool = True

    @property
    def texts(self) -> list[list[str]]:
        """The rows, each cell as a text with its interval."""
        return [list(map(str, row)) for row in self.rows]


def text_rows(rows: Iterable[Iterable[str]]) -> tuple[tuple[Cell, ...], ...]:
    """The rows of a table of texts without intervals."""
    return tuple(tuple(map(Cell, row)) for row in rows)
