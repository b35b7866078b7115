"""The form of results: tables and colours on a terminal, aligned plain text in a pipe, one JSON document with --json.

Plain text has no box characters and no escape codes. In a pipe a table row is one line, so that grep and awk can read
it, unless COLUMNS sets a width.
"""

from __future__ import annotations

import enum
import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import click

from hockney.cli.streams import holds_document, print_line
from hockney.report.table import TextTable
from hockney.units import printable

JSON_VERSION = 3
_CODE_SPAN = re.compile("`[^`]*`")  # the one markup that sentences have: a command, which stays on one line
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|min|h|[KMG]iB|[kMG]?B|%)(?!\w))| (?=±\d)")
_HARD_BLANK = "\N{NO-BREAK SPACE}"
_GAP = 2  # blanks between columns
_WRAP_MIN = 14  # a column of sentences is at least this wide
_STYLES: dict[str, dict[str, Any]] = {
    "bold": {"bold": True},
    "dim": {"dim": True},
    "yellow": {"fg": "yellow"},
    "red": {"fg": "red"},
}


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; `style` of its cells: one of _STYLES.

    On a narrow screen, the cells of `wrap` columns are broken into lines and `optional` columns are hidden. If that is
    not enough, several tables are printed, each with the `key` columns (by default the first). No figure is cut.
    """

    title: str
    right: bool = False
    wrap: bool = False
    optional: bool = False
    key: bool = False
    style: str = ""


def is_terminal() -> bool:
    """Whether standard output is a terminal that understands escape codes."""
    try:
        return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:
        return False


def is_colored() -> bool:
    """Whether output may have colours: on a terminal, unless NO_COLOR is set."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def line_width() -> int:
    """The width of a line, from 20 to 1000: of the terminal or COLUMNS, else 100."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, 20), 1000)


def local_time(unix_s: float) -> str:
    """`2026-03-01 14:05`, in the local time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))


# ---- JSON -----------------------------------------------------------------------------------------------------------


def print_json(command: str, data: Mapping[str, Any]) -> None:
    """Print one JSON document with its format and version. NaN and infinity are refused; use None."""
    import json

    document = {"format": f"hockney-{command}", "version": JSON_VERSION, **data}
    text = json.dumps(document, indent=2, allow_nan=False, default=_as_json)
    holds_document.set(True)
    print_line(text)


def _as_json(value: Any) -> Any:
    """A dataclass by its fields, a point with its options by name, numbers and arrays of numpy, sets, enumerations."""
    from hockney.model import Point  # 20 ms, which the help of all commands would take longer

    if isinstance(value, Point):
        return value.as_json()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


# ---- sentences ------------------------------------------------------------------------------------------------------


def wrapped(text: str, width: int | None = None, *, first: str = "", rest: str = "") -> list[str]:
    """The lines of a paragraph, `first` and `rest` being their indents.

    Words, commands in `…`, and numbers with their units stay whole.
    """
    commands_whole = _CODE_SPAN.sub(lambda match: match[0].replace(" ", _HARD_BLANK), printable(text))
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub(_HARD_BLANK, commands_whole),
        width or line_width(),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HARD_BLANK, " ") for line in lines] or [""]


def title(text: str, *, first: bool = False) -> int:
    """A heading, below a blank line unless it is the `first` of the screen. Returns the lines it takes, as `lines`."""
    blank = 0 if first else say()
    return blank + lines(wrapped(text), "bold")


def say(text: str = "") -> int:
    """A sentence that may be searched for in a log: one line in a pipe."""
    return lines(wrapped(text) if is_terminal() else [text])


def note(text: str, *, style: str = "") -> int:
    """A sentence for people: wrapped, with a hanging indent."""
    return lines(wrapped(text, rest="  "), style)


def item(text: str, *, head: str = "", style: str = "") -> None:
    """An indented paragraph; `head`: its first words."""
    lines(wrapped(f"{head}: {text}" if head else text, first="  ", rest="    "), style)


def lines(texts: Sequence[str], style: str = "") -> int:
    """Print lines that are wrapped already, on a terminal in a style; returns how many."""
    for text in texts:
        (print if is_colored() else print_line)(_styled(printable(text), style))
    return len(texts)


def _styled(text: str, style: str) -> str:
    return click.style(text, **_STYLES[style]) if style and text and is_colored() else text


# ---- tables ---------------------------------------------------------------------------------------------------------


def table(
    columns: Sequence[TableColumn | str],
    rows: Iterable[Sequence[str] | str],
    *,
    fits: bool = False,
    narrow: Iterable[Sequence[str]] = (),
    heading: str = "",
) -> int:
    """Print a table, and return how many lines it takes; a row that is a text is a heading of the rows that follow.

    It `fits` the screen on a terminal, where COLUMNS is set, or where asked for; else each row is one line. `narrow`
    are the same rows with shorter cells: they are printed instead where the others are too wide for it. The `heading`
    stands above each part.
    """
    described = [TableColumn(column) if isinstance(column, str) else column for column in columns]
    blocks: list[tuple[str, list[list[str]]]] = [("", [])]
    for row in rows:
        if isinstance(row, str):
            blocks.append((row, []))
        else:
            cells = [printable(text, keep="") for text in row]
            blocks[-1][1].append(cells + [""] * (len(described) - len(cells)))
    printed = [row for _, block in blocks for row in block]
    if not printed:
        return 0
    longest = [max(map(text_width, texts)) for texts in zip(*printed, strict=True)]
    natural = [max(len(column.title), length) for column, length in zip(described, longest, strict=True)]
    parts, least = [list(range(len(described)))], natural
    fits = fits or is_terminal() or os.environ.get("COLUMNS", "").lstrip("0").isdecimal()
    narrow = list(narrow)
    if fits and narrow and _total(parts[0], natural) > line_width():
        return table(columns, narrow, fits=fits, heading=heading)
    if fits:
        least = [_least_width(column, length) for column, length in zip(described, longest, strict=True)]
        parts = split_columns(described, least, line_width())
    count = 0
    for number, places in enumerate(parts):
        count += title(heading) if heading else say() if number else 0
        count += _print_part(described, blocks, _grown(places, least, natural, fits=fits))
    hidden = [column.title for place, column in enumerate(described) if not any(place in part for part in parts)]
    if hidden:
        count += note(f"(columns hidden, screen too narrow: {', '.join(hidden)})", style="dim")
    return count


def records(columns: Mapping[TableColumn, Callable[[Any], str]], members: Iterable[Any], *, fits: bool = False) -> int:
    """Print a table with a row for each member; each column has the function that makes its text."""
    rows = ([text(member) for text in columns.values()] for member in members)
    return table(list(columns), rows, fits=fits)


def texts(shown: TextTable, *, bold: str = "", first: bool = False, fits: bool = True) -> None:
    """Print a table of texts with its title and notes; the cells of the column `bold` are in bold type."""
    title(shown.title, first=first)
    columns = [
        TableColumn(name, place > 0, wrap=not place, key=name in ("what", "size"), style="bold" * (name == bold))
        for place, name in enumerate(shown.columns)
    ]
    table(columns, shown.texts, fits=fits)
    if shown.notes:
        say()
    for text in shown.notes:
        note(text)


def _least_width(column: TableColumn, longest: int) -> int:
    """The least width of a column: titles and sentences are broken between words."""
    longest_word = max(map(len, _BEFORE_UNIT.sub(_HARD_BLANK, column.title).split(" ")))
    return max(longest_word, min(_WRAP_MIN, longest) if column.wrap else longest)


def split_columns(columns: Sequence[TableColumn], widths: Sequence[int], width: int) -> list[list[int]]:
    """The places of the columns of each table to print, so that none is wider than `width` if possible."""
    shown = list(range(len(columns)))
    for place, column in enumerate(columns):
        if column.optional and _total(shown, widths) > width:
            shown.remove(place)
    if _total(shown, widths) <= width:
        return [shown]
    keys = [place for place, column in enumerate(columns) if column.key] or [0]
    parts = [keys[:]]
    for place in range(len(columns)):
        if place not in keys:
            if len(parts[-1]) > len(keys) and _total([*parts[-1], place], widths) > width:
                parts.append(keys[:])
            parts[-1].append(place)
    return parts


def _total(places: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[place] for place in places) + _GAP * (len(places) - 1)


def _grown(places: Sequence[int], least: Sequence[int], natural: Sequence[int], *, fits: bool) -> dict[int, int]:
    """The widths of the columns at these places: they share the room of the line, none wider than it needs.

    If the table `fits` and there is too little room, its widest column is narrower, and cells are broken between words.
    """
    widths = {place: least[place] for place in places}
    room = line_width() - _total(places, least)
    if room < 0 and fits:
        widest = max(places, key=lambda place: least[place])
        widths[widest] = max(min(_WRAP_MIN, least[widest]), least[widest] + room)
    room = max(0, room)
    by_need = sorted(places, key=lambda place: natural[place] - least[place])
    for left, place in zip(range(len(by_need), 0, -1), by_need, strict=True):
        more = min(natural[place] - least[place], room // left)
        widths[place] += more
        room -= more
    return widths


def text_width(text: str) -> int:
    """The columns of a terminal that a text takes: two for a wide character (CJK, emoji), none for a combining one."""
    shown = [each for each in text if unicodedata.category(each) not in ("Mn", "Me", "Cf")]
    return len(shown) + sum(unicodedata.east_asian_width(each) in "WF" for each in shown)


def _cell(text: str, width: int, *, right: bool) -> list[str]:
    """The lines of a cell; what has no room in the column even so is broken anywhere."""
    lines: list[str] = []
    for line in [text] if right and len(text) <= width else wrapped(text, width):
        lines += textwrap.wrap(line, width, break_on_hyphens=False) if len(line) > width else [line]
    blanks = (" " * (width - text_width(line)) for line in lines)
    return [blank + line if right else line + blank for line, blank in zip(lines, blanks, strict=True)]


def _print_part(
    columns: Sequence[TableColumn], blocks: Iterable[tuple[str, list[list[str]]]], widths: Mapping[int, int]
) -> int:
    """Print the titles, then each heading with its rows, in the columns that have a width; returns the lines."""

    def aligned(row: Sequence[str], *, is_head: bool = False) -> Iterator[str]:
        cells = [_cell(row[place], width, right=columns[place].right) for place, width in widths.items()]
        height = max(map(len, cells))
        for cell in cells:
            blank = [" " * text_width(cell[0])] * (height - len(cell))
            cell[:] = blank + cell if is_head else cell + blank
        styles = ["bold" if is_head else columns[place].style for place in widths]
        for parts in zip(*cells, strict=True):
            yield (" " * _GAP).join(map(_styled, parts, styles)).rstrip()

    titles = [column.title for column in columns]
    printed = list(aligned(titles, is_head=True)) if any(titles) else []
    for heading, block in blocks:
        printed += wrapped(heading, rest="  ") if heading else []
        printed += [line for row in block for line in aligned(row)]
    for line in printed:
        (print if is_colored() else print_line)(line)
    return len(printed)
