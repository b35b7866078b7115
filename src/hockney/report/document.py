"""A document: all that a command says, as blocks. Builders make it; renderers print it as text, Markdown or HTML.

Blocks hold sentences and cells, and know neither the width of a screen nor a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Tone = Literal["", "strong", "quiet", "caution", "error"]


@dataclass(frozen=True, kw_only=True)
class Block:
    """What a document consists of. Where it is too long, the blocks with the highest `priority` are left out; 0: none.

    `noun` is what is counted in the line that says what was left out, and `count` how many of them the block is.
    """

    priority: int = 0
    noun: str = ""
    count: int = 1


@dataclass(frozen=True)
class Title(Block):
    """A heading; `beside` stands at the end of its line."""

    text: str
    beside: str = ""


@dataclass(frozen=True)
class Sentence(Block):
    """A sentence that may be searched for in a log, so it stays in one line in a pipe. Empty: a blank line."""

    text: str = ""


@dataclass(frozen=True)
class Text(Block):
    """A sentence for people, which may be broken into lines; `is_cut`: it is cut at the end of its first line."""

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
    """A point of a list: a paragraph, others `below` it, and `others` that are points of its own list.

    With `lines_max`, it takes at most so many lines of 100 columns: the first of those below follows the paragraph
    on its line where that is shorter, and is cut where both are still longer.
    """

    text: str
    below: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    lines_max: int | None = None


class Cell(str):
    """A cell of a table with its parts: a figure and its interval; `is_best`: of its column, or not told apart."""

    figure: str
    interval: str
    is_best: bool

    def __new__(cls, figure: str, interval: str = "", *, is_best: bool = False) -> Cell:
        cell = super().__new__(cls, f"{figure} {interval}" if interval else figure)
        cell.figure, cell.interval, cell.is_best = figure, interval, is_best
        return cell


@dataclass(frozen=True)
class Column:
    """A column of a table; `definition` is what its cells are.

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
    """A table; a row that is a text is a heading of the rows that follow.

    It `fits` the screen on a terminal, where COLUMNS is set, or where asked for; else each row is one line. `narrow`
    are the same rows with shorter cells: they are printed instead where the others are too wide for it. The `heading`
    stands above each part.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[str] | str]
    fits: bool = False
    narrow: Sequence[Sequence[str] | str] = ()
    heading: str = ""

    @property
    def heads(self) -> list[Column]:
        """All columns as such; the first is the key if none is."""
        known = [Column(each) if isinstance(each, str) else each for each in self.columns]
        return known if any(each.key for each in known) or not known else [replace(known[0], key=True), *known[1:]]


@dataclass(frozen=True)
class Plot(Block):
    """Curves of (size in bytes, value) with both axes logarithmic; `unit` is "ns", "bytes/s" or another text."""

    title: str
    curves: Mapping[str, Sequence[tuple[int, float]]]
    unit: str


@dataclass(frozen=True)
class Matrix(Block):
    """Values from each of some ends, by rows, to each; None where there is none. `unit` is "ns" or "bytes/s"."""

    title: str
    names: Sequence[str]
    values: Sequence[Sequence[float | None]]
    unit: str

    @property
    def is_rate(self) -> bool:
        """Whether the lowest value is the slowest."""
        return self.unit == "bytes/s"


@dataclass(frozen=True)
class Group(Block):
    """Blocks that are shown or left out together."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section(Block):
    """Blocks below their title; on a page they are folded unless the section `is_open`."""

    title: str
    blocks: tuple[Block, ...]
    is_open: bool = False

    @property
    def tables(self) -> list[Table]:
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def rows(self) -> list[list[str]]:
        """Those of its tables, without headings."""
        return [list(row) for table in self.tables for row in table.rows if not isinstance(row, str)]

    @property
    def notes(self) -> list[str]:
        """The sentences below its tables, or above."""
        return [block.text for block in self.blocks if isinstance(block, Text)]


@dataclass(frozen=True)
class More(Block):
    """The line that counts what was left out, and says which option prints it; `counts` are of what never was in."""

    option: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """Blocks in their order. With `lines_max`, it takes at most so many lines of 100 columns, where it can."""

    blocks: tuple[Block, ...]
    lines_max: int | None = None

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)


def document(blocks: Iterable[Block], lines_max: int | None = None) -> Document:
    """A document of the blocks that a builder yields."""
    return Document(tuple(blocks), lines_max)


def records(columns: Mapping[Column, Callable[[Any], str]], members: Iterable[Any], *, fits: bool = False) -> Table:
    """A table with a row for each member; each column has the function that makes its text, and one at least."""
    rows = list(members)
    shown = {column: text for column, text in columns.items() if any(map(text, rows))}
    return Table([*shown], [[text(row) for text in shown.values()] for row in rows], fits=fits)
