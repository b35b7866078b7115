"""How results look: tables and colours on a terminal, aligned plain text in a pipe, one JSON document with --json.

Plain text has no box characters and no escape codes. One record is one line, so that grep and awk can read it; what
would be too wide for that is folded (fold.py), and notes, warnings and findings are wrapped as on a terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hockney.cli.copying import copyable
from hockney.cli.streams import holds_document, print_line

if TYPE_CHECKING:
    from rich.console import Console

    from hockney.model import Warning_

JSON_VERSION = 1
_COMMAND = re.compile("`[^`]*`")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|min|h|[KMG]iB|[kMG]?B|%)(?!\w))")
_HARD_BLANK = "\N{NO-BREAK SPACE}"
GAP = 2  # blanks between columns
_WIDTH = 100  # of a line, where neither a terminal nor COLUMNS says it
_WRAP_MIN = 24  # a column that wraps may become as narrow as this


@dataclass(frozen=True)
class Column:
    """A column of a table; `style` as rich writes it.

    What a terminal does that is too narrow: it breaks the cells of `wrap` columns into lines, leaves out `optional`
    columns, and at last makes several tables of one, each beginning with the `key` columns (the first, if none is).
    A figure is never cut, and a column that stands `beside` the one before it is not parted from it.
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
        _console().print(f"[bold]{_escaped(text)}[/bold]")
    else:
        print_line(text)


def line_width() -> int:
    """How wide a line may be, on a terminal and in a pipe."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def wrapped(text: str, width: int | None = None, *, first: str = "", rest: str = "") -> list[str]:
    """The lines of a paragraph; `first` and `rest` stand before them.

    No word is broken, no command in `…`, and no number is parted from its unit.
    """
    joined = _COMMAND.sub(lambda match: match[0].replace(" ", _HARD_BLANK), copyable(text))
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

    text = Text("\n".join(lines))
    text.stylize(head_style, 0, head_to)
    _console().print(text, style=style, soft_wrap=True)


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[str]]) -> None:
    """Cells are text as it shall be read; a row may be shorter than the list of columns."""
    described = described_columns(columns)
    filled = [[*row, *[""] * (len(described) - len(row))] for row in rows]
    if is_terminal():
        _print_rich(described, filled)
    else:
        for line in plain_lines(described, filled):
            print_line(line)


def described_columns(columns: Iterable[Column | str]) -> list[Column]:
    """A title alone stands for a column without anything special."""
    return [Column(column) if isinstance(column, str) else column for column in columns]


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


def _console() -> Console:
    """One for each use: it holds nothing, and standard output may be another one in a test."""
    from rich.console import Console

    return Console(highlight=False)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _print_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table

    console = _console()
    for part, places in enumerate(fitting_places(columns, rows, console.width)):
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
        console.print(shown)


def fitting_places(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The places of the columns of each table that is to be shown, so that none is wider than `width` if it can."""
    natural = [max(len(row[place]) for row in [_titles(columns), *rows]) for place in range(len(columns))]
    widths = [min(_WRAP_MIN, one) if column.wrap else one for one, column in zip(natural, columns, strict=True)]
    return places_of_tables(columns, widths, width)


def places_of_tables(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[list[int]]:
    """As fitting_places, for columns of these widths."""
    places = list(range(len(columns)))
    for place in reversed(places[:]):
        if total_width(places, widths) > width and columns[place].optional:
            places.remove(place)
    if total_width(places, widths) <= width:
        return [places]
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
