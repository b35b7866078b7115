"""A document: everything a command prints, as blocks. Builders make it; renderers print text, Markdown or HTML.

Blocks hold sentences and cells, and know neither the width of a screen nor a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Tone = Literal["", "strong", "quiet", "caution", "error"]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a document. Where a document is too long, blocks with the highest `priority` are left out; 0: never.

    The line that counts what was left out counts such a block as `count` of its `noun`.
    """

    priority: int = 0
    noun: str = ""
    count: int = 1


@dataclass(frozen=True)
class Title(Block):
    """A heading; `end` is printed at the end of its line."""

    text: str
    end: str = ""


@dataclass(frozen=True)
class Sentence(Block):
    """A sentence that is one line in a pipe, so that a search of a log finds it. Empty: a blank line."""

    text: str = ""


@dataclass(frozen=True)
class Text(Block):
    """A sentence that is broken into lines where needed; `is_cut`: it is cut at the end of its first line."""

    text: str
    tone: Tone = ""
    is_cut: bool = False


@dataclass(frozen=True)
class Item(Block):
    """An indented paragraph; `head`: its first words."""

    text: str
    head: str = ""
    tone: Tone = ""


@dataclass(frozen=True)
class Bullet(Block):
    """An item of a list: a paragraph, more paragraphs `below` it, and `others`, the items of a list inside it.

    `lines_max` limits it to this many lines of 100 columns. Where it is longer, the first paragraph below continues on
    the line of the item; where that is still too long, it is cut.
    """

    text: str
    below: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    lines_max: int | None = None


class Cell(str):
    """A cell of a table: a figure and its interval. `is_best`: best of its column, or not distinguishable from it."""

    figure: str
    interval: str
    is_best: bool

    def __new__(cls, figure: str, interval: str = "", *, is_best: bool = False) -> Cell:
        cell = super().__new__(cls, f"{figure} {interval}" if interval else figure)
        cell.figure, cell.interval, cell.is_best = figure, interval, is_best
        return cell


@dataclass(frozen=True)
class Column:
    """A column of a table; `definition` explains its cells.

    On a narrow screen, the cells of `wrap` columns are broken into lines and `optional` columns are hidden. If that is
    not enough, several tables are printed, each with the `key` columns (by default the first). No figure is cut.
    """

    title: str
    right: bool = False
    wrap: bool = False
    optional: bool = False
    key: bool = False
    tone: Tone = ""
    definition: str = ""


@dataclass(frozen=True)
class Table(Block):
    """A table; a row that is a string is a heading of the rows below it.

    It is fitted to the screen on a terminal, if COLUMNS is set, or if it `fits`; otherwise each row is one line.
    `narrow` has the same rows with shorter cells, for screens that are too narrow for the others. `heading` is printed
    above each part.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[str] | str]
    fits: bool = False
    narrow: Sequence[Sequence[str] | str] = ()
    heading: str = ""

    @property
    def heads(self) -> list[Column]:
        """The columns, each as a Column; if none is a key, the first is."""
        known = [Column(each) if isinstance(each, str) else each for each in self.columns]
        return known if any(each.key for each in known) or not known else [replace(known[0], key=True), *known[1:]]


@dataclass(frozen=True)
class Plot(Block):
    """Curves of (size in bytes, value), both axes logarithmic; `unit` is "ns", "bytes/s" or another text.

    Over "date", of (seconds since 1970, value), both linear, with a line at each date in `marks`.
    """

    title: str
    curves: Mapping[str, Sequence[tuple[int, float]]]
    unit: str
    over: Literal["size", "date"] = "size"
    marks: Sequence[int] = ()


@dataclass(frozen=True)
class Matrix(Block):
    """Values between the ends in `names`: a row for each source; None: no value. `unit` is "ns" or "bytes/s"."""

    title: str
    names: Sequence[str]
    values: Sequence[Sequence[float | None]]
    unit: str

    @property
    def is_rate(self) -> bool:
        """Whether the lowest value is the slowest."""
        return self.unit == "bytes/s"


@dataclass(frozen=True)
class Section(Block):
    """Blocks that are shown or left out together, below their title if any; a page folds them unless it `is_open`."""

    title: str
    blocks: tuple[Block, ...]
    is_open: bool = False

    @property
    def tables(self) -> list[Table]:
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def rows(self) -> list[list[str]]:
        """The rows of its tables, without headings."""
        return [list(row) for table in self.tables for row in table.rows if not isinstance(row, str)]

    @property
    def notes(self) -> list[str]:
        """The sentences above and below its tables."""
        return [block.text for block in self.blocks if isinstance(block, Text)]


@dataclass(frozen=True)
class More(Block):
    """The line that counts what was left out and names the option that prints it; `counts`: never in the document."""

    option: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """Blocks in their order. `lines_max`: blocks are left out until the rest fits this many lines of 100 columns."""

    blocks: tuple[Block, ...]
    lines_max: int | None = None

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)


def records(columns: Mapping[Column, Callable[[Any], str]], members: Iterable[Any], *, fits: bool = False) -> Table:
    """A table with a row for each member. A column has the function that makes its cells; an empty one is left out."""
    rows = list(members)
    shown = {column: text for column, text in columns.items() if any(map(text, rows))}
    return Table([*shown], [[text(row) for text in shown.values()] for row in rows], fits=fits)
