"""How results look: tables and colours on a terminal, aligned plain text in a pipe, one JSON document with --json.

Plain text has no box characters and no escape codes. One record is one line, so that grep and awk can read it, unless
COLUMNS asks for a width; what would be too wide for that is folded (fold.py), and notes, warnings and findings are
wrapped as on a terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hockney.cli.copying import copyable
from hockney.cli.streams import holds_document, print_line
from hockney.units import printable

if TYPE_CHECKING:
    from rich.console import Console

    from hockney.model import Warning_

JSON_VERSION = 1
_COMMAND = re.compile("`[^`]*`")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|min|h|[KMG]iB|[kMG]?B|%)(?!\w))")
_HARD_BLANK = "\N{NO-BREAK SPACE}"
GAP = 2  # blanks between columns
_WIDTH = 100  # of a line, where neither a terminal nor COLUMNS says it
_WIDTH_LEAST, _WIDTH_MOST = 20, 1000  # whatever they say
_WRAP_MIN = 16  # a column that wraps may become as narrow as this,
_WORD_MAX = 24  # or as its longest word, up to this: longer ones are broken


@dataclass(frozen=True)
class Column:
    """A column of a table; `style` as rich writes it.

    What is done where a line is too narrow: the cells of `wrap` columns are broken into lines; `optional` columns are
    left out, from the left, where that is enough, and named below; else several tables are made of one, each beginning
    with the `key` columns (the first, if none is), which tell its rows apart. A figure is never cut, though a line be
    too long, and a column that stands `beside` the one before it is not parted from it.
    """

    title: str
    right: bool = False
    wrap: bool = False
    optional: bool = False
    key: bool = False
    beside: bool = False
    style: str | None = None


def is_terminal() -> bool:
    """Whether somebody looks at standard output, on something that can do more than a typewriter."""
    try:
        return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:
        return False


def print_json(command: str, data: Mapping[str, Any]) -> None:
    """One JSON document that says what it is; numbers that are none (NaN, infinity) must be None."""
    import json

    document = {"format": f"hockney-{command}", "version": JSON_VERSION, **data}
    text = json.dumps(document, indent=2, allow_nan=False, default=_as_json)
    holds_document.set(True)
    print_line(copyable(text, in_json=True))


def _as_json(value: Any) -> Any:
    """Numbers and arrays of numpy, and sets, as plain ones."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def title(text: str, *, first: bool = False) -> None:
    """A heading, with a blank line above it unless it is the first thing on the screen."""
    if not first:
        print_line("")
    for line in wrapped(text):
        bold(line)


def bold(text: str) -> None:
    """A line that stands out on a terminal."""
    if is_terminal():
        _console().print(f"[bold]{_escaped(printable(text))}[/bold]")
    else:
        print_line(text)


def line_width() -> int:
    """How wide a line may be, on a terminal and in a pipe."""
    return min(max(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH_LEAST), _WIDTH_MOST)


def _is_width_asked() -> bool:
    """Whether COLUMNS says how wide a line may be; a shell keeps its own to itself unless it is exported."""
    return os.environ.get("COLUMNS", "").lstrip("0").isdecimal()


def wrapped(text: str, width: int | None = None, *, first: str = "", rest: str = "") -> list[str]:
    """The lines of a paragraph; `first` and `rest` stand before them.

    No word is broken, no command in `…`, and no number is parted from its unit.
    """
    joined = _COMMAND.sub(lambda match: match[0].replace(" ", _HARD_BLANK), printable(copyable(text)))
    lines = textwrap.wrap(
        keep_units(joined),
        max(1, line_width() if width is None else width),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HARD_BLANK, " ") for line in lines] or [""]


def keep_units(text: str) -> str:
    """With a blank at which no line ends between each number and its unit."""
    return _BEFORE_UNIT.sub(_HARD_BLANK, text)


def say(text: str = "", *, style: str | None = None) -> None:
    """A sentence that somebody may search a log for: one line in a pipe."""
    _print_lines(wrapped(text) if is_terminal() else [copyable(text)], style)


def note(text: str, *, style: str | None = None) -> None:
    """A sentence that only people read: wrapped, and set in but for its first line, which tells it from the next."""
    _print_lines(wrapped(text, rest="  "), style)


def item(text: str, *, head: str = "", style: str | None = None) -> None:
    """A paragraph set in by two blanks; `head`: its first words, set off."""
    before = f"  {head}: " if head else "  "
    lines = wrapped(before.lstrip() + text, first="  ", rest="    ")
    _print_lines(lines, style, head_to=len(before) - 2 if head and lines[0].startswith(before) else 0)


def _print_lines(lines: Sequence[str], style: str | None, *, head_to: int = 0, head_style: str = "bold") -> None:
    """On a terminal in a style; up to `head_to` the first line has another."""
    if not is_terminal():
        for line in lines:
            print_line(line)
        return
    from rich.text import Text

    text = Text(printable("\n".join(lines)))
    text.stylize(head_style, 0, head_to)
    _console().print(text, style=style, soft_wrap=True)


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Cells are text as it shall be read; a row may be shorter than the list of columns. Gives the titles left out."""
    described = described_columns(columns)
    filled = [[*cells(row), *[""] * (len(described) - len(row))] for row in rows]
    if is_terminal():
        return _print_rich(described, filled)
    if _is_width_asked():
        from hockney.cli import wrapped_table as fold  # which prints by means of this module

        return fold.table(described, [fold.Group(filled)])
    for line in plain_lines(described, filled):
        print_line(line)
    return []


def cells(row: Iterable[str]) -> list[str]:
    """What is in a row, each in one line, so that it can neither steer a terminal nor look like another row."""
    return [printable(text, keep="") for text in row]


def left_out(columns: Sequence[Column], tables: Iterable[Sequence[int]]) -> list[str]:
    """The titles of the columns that are in none of these tables, which is said, and how to see them."""
    shown = {place for places in tables for place in places}
    titles = [column.title for place, column in enumerate(columns) if place not in shown]
    if titles:
        wider = "a larger COLUMNS" if _is_width_asked() else "a wider terminal, a pipe"
        them = "them" if len(titles) > 1 else "it"
        note(f"Left out for want of width: {', '.join(titles)}; {wider} or --json shows {them}.", style="dim")
    return titles


def described_columns(columns: Iterable[Column | str]) -> list[Column]:
    """A title alone stands for a column without anything special."""
    whole = [Column(column) if isinstance(column, str) else column for column in columns]
    return [replace(column, title=printable(column.title, keep="")) for column in whole]


def plain_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns aligned with blanks, two between them, none at the ends of lines."""
    titles = _titles(columns)
    everything = [titles, *rows] if any(titles) else list(rows)
    if not everything:
        return []
    widths = [max(len(row[place]) for row in everything) for place in range(len(columns))]
    return [aligned(row, columns, widths) for row in everything]


def aligned(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    """A line of a table."""
    cells = [
        cell.rjust(width) if column.right else cell.ljust(width)
        for cell, width, column in zip(row, widths, columns, strict=True)
    ]
    return (" " * GAP).join(cells).rstrip()


def limits(found: Sequence[Warning_], *, none: str = "") -> None:
    """The warnings under the one heading that they have everywhere; without any `none`, or nothing at all."""
    if found or none:
        title("What limits precision")
    if found:
        warnings(found)
    elif none:
        say(none)


def warnings(found: Iterable[Warning_]) -> None:
    """Each warning with its remedy."""
    for warning in found:
        _print_lines(wrapped(f"! {warning}", rest="  "), None, head_to=1, head_style="yellow")


def warning_json(warning: Warning_) -> dict[str, str]:
    """A warning as JSON holds it."""
    return {
        "kind": warning.kind,
        "subject": warning.subject,
        "cause": warning.cause,
        "remedy": warning.remedy,
    }


# ---- rich -----------------------------------------------------------------------------------------------------------


def _console(width: int | None = None) -> Console:
    """One for each use: it holds nothing, and standard output may be another one in a test.

    With NO_COLOR rich would still write bold and dim.
    """
    from rich.console import Console

    is_plain = bool(os.environ.get("NO_COLOR"))
    columns = width or line_width()
    # Without a height rich would read COLUMNS itself.
    return Console(highlight=False, width=columns, height=24, color_system=None if is_plain else "auto")


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _print_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    from rich import box
    from rich.table import Table

    console = _console()
    widths = least_widths(columns, rows)
    tables = places_of_tables(columns, widths, console.width)
    for part, places in enumerate(tables):
        if part:
            console.print()
        shown = Table(
            box=box.SIMPLE_HEAD,
            show_header=any(columns[place].title for place in places),
            header_style="bold",
            pad_edge=False,
            show_edge=False,
            collapse_padding=True,
        )
        for place in places:
            column = columns[place]
            shown.add_column(
                _escaped(column.title),
                justify="right" if column.right else "left",
                no_wrap=not column.wrap,
                overflow="fold",
                style=column.style,
            )
        for row in rows:
            shown.add_row(*(_escaped(row[place]) for place in places))
        _console(max(console.width, total_width(places, widths))).print(shown)
    return left_out(columns, tables)


def least_widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """As narrow as each column may become."""
    texts = [[column.title, *(row[place] for row in rows)] for place, column in enumerate(columns)]
    natural = [max(map(len, own)) for own in texts]
    words = [max(len(word) for text in own for word in text.split(" ")) for own in texts]
    return [
        min(one, max(_WRAP_MIN, min(word, _WORD_MAX))) if column.wrap else one
        for one, word, column in zip(natural, words, columns, strict=True)
    ]


def places_of_tables(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[list[int]]:
    """The places of the columns of each table that is to be shown, so that none is wider than `width` if it can."""
    places = list(range(len(columns)))
    needed = places[:]
    for place in places:
        if total_width(needed, widths) > width and columns[place].optional:
            needed.remove(place)
    if total_width(needed, widths) <= width:
        return [needed]
    keys = [place for place in places if columns[place].key] or places[:1]
    tables = [keys[:]]
    for unit in _units(columns, [place for place in places if place not in keys]):
        if total_width([*tables[-1], *unit], widths) > width and len(tables[-1]) > len(keys):
            tables.append(keys[:])
        tables[-1] += unit
    return tables


def total_width(places: Sequence[int], widths: Sequence[int]) -> int:
    """Of a table of these columns."""
    return sum(widths[place] for place in places) + GAP * (len(places) - 1)


def _units(columns: Sequence[Column], places: Iterable[int]) -> list[list[int]]:
    """Columns that stay together."""
    units: list[list[int]] = []
    for place in places:
        if units and columns[place].beside:
            units[-1].append(place)
        else:
            units.append([place])
    return units


def _titles(columns: Sequence[Column]) -> list[str]:
    return [column.title for column in columns]
