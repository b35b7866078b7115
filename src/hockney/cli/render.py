"""How results look: tables and colours on a terminal, aligned plain text in a pipe, one JSON document with --json.

Plain text has no box characters and no escape codes. In a pipe a table row is one line, so that grep and awk can read
it, unless COLUMNS sets a width.
"""

from __future__ import annotations

import itertools
import operator
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hockney.cli.streams import holds_document, print_line
from hockney.units import printable

if TYPE_CHECKING:
    from rich.console import Console

    from hockney.model import Warning_

JSON_VERSION = 2
_COMMAND = re.compile("`[^`]*`")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|min|h|[KMG]iB|[kMG]?B|%)(?!\w))")
_HARD_BLANK = "\N{NO-BREAK SPACE}"
_GAP = 2  # blanks between columns
_WRAP_MIN = 16  # a column of sentences is at least this wide


@dataclass(frozen=True)
class Column:
    """A column of a table; `style` as rich writes it.

    On a narrow screen, the cells of `wrap` columns are broken into lines and `optional` columns are hidden. If that is
    not enough, several tables are printed, each with the `key` columns (by default the first). A column that is
    `joined` stays with the one before it. No figure is cut.
    """

    title: str
    right: bool = False
    wrap: bool = False
    optional: bool = False
    key: bool = False
    joined: bool = False
    style: str | None = None


def is_terminal() -> bool:
    """Whether standard output is a terminal that understands escape codes."""
    try:
        return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:
        return False


def is_colored() -> bool:
    """Whether output may have colours: on a terminal, unless NO_COLOR is set."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def print_json(command: str, data: Mapping[str, Any]) -> None:
    """Print one JSON document with its format and version. NaN and infinity are refused; use None."""
    import json

    document = {"format": f"hockney-{command}", "version": JSON_VERSION, **data}
    text = json.dumps(document, indent=2, allow_nan=False, default=_as_json)
    holds_document.set(True)
    print_line(text)


def _as_json(value: Any) -> Any:
    """Numbers and arrays of numpy, and sets, as plain ones."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def line_width() -> int:
    """The width of a line, from 20 to 1000: of the terminal or COLUMNS, else 100."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, 20), 1000)


# ---- sentences ------------------------------------------------------------------------------------------------------


def wrapped(text: str, width: int | None = None, *, first: str = "", rest: str = "") -> list[str]:
    """The lines of a paragraph, `first` and `rest` being their indents.

    Words, commands in `…`, and numbers with their units stay whole.
    """
    joined = _COMMAND.sub(lambda match: match[0].replace(" ", _HARD_BLANK), printable(text))
    lines = textwrap.wrap(
        _keep_units(joined),
        max(1, line_width() if width is None else width),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HARD_BLANK, " ") for line in lines] or [""]


def _keep_units(text: str) -> str:
    return _BEFORE_UNIT.sub(_HARD_BLANK, text)


def title(text: str, *, first: bool = False) -> None:
    """A heading, below a blank line unless it is the `first` of the screen."""
    if not first:
        print_line("")
    _print_lines(wrapped(text), "bold")


def say(text: str = "", *, style: str | None = None) -> None:
    """A sentence that may be searched for in a log: one line in a pipe."""
    _print_lines(wrapped(text) if is_terminal() else [text], style)


def note(text: str, *, style: str | None = None) -> None:
    """A sentence for people: wrapped, with a hanging indent."""
    _print_lines(wrapped(text, rest="  "), style)


def item(text: str, *, head: str = "", style: str | None = None) -> None:
    """An indented paragraph; `head`: its first words, in bold."""
    before = f"  {head}: " if head else "  "
    lines = wrapped(before.lstrip() + text, first="  ", rest="    ")
    _print_lines(lines, style, head_to=len(before) - 2 if head and lines[0].startswith(before) else 0)


def lines(texts: Sequence[str]) -> None:
    """Lines that are wrapped already."""
    _print_lines(texts, None)


def limits(found: Sequence[Warning_], *, none: str = "") -> None:
    """The warnings below their heading; without any, the sentence `none`."""
    if found or none:
        title("What limits precision")
    if found:
        warnings(found)
    elif none:
        say(none)


def warnings(found: Iterable[Warning_]) -> None:
    """Each warning with its fix; of those that a resumed run repeats the newest."""
    for warning in {(warning.kind, warning.subject): warning for warning in found}.values():
        bullet("!", str(warning))


def bullet(mark: str, text: str) -> None:
    """A paragraph after a mark, which is yellow if it is an exclamation mark."""
    _print_lines(wrapped(f"{mark} {text}", rest="  "), None, head_to=1, head_style="yellow" if mark == "!" else "bold")


def warning_json(warning: Warning_) -> dict[str, str]:
    """A warning as JSON holds it."""
    return {
        "kind": warning.kind,
        "subject": warning.subject,
        "cause": warning.cause,
        "remedy": warning.remedy,
    }


def _print_lines(lines: Sequence[str], style: str | None, *, head_to: int = 0, head_style: str = "bold") -> None:
    """On a terminal in a style, which the first `head_to` characters add `head_style` to."""
    if not is_terminal():
        for line in lines:
            print_line(line)
        return
    from rich.text import Text

    text = Text(printable("\n".join(lines)))
    text.stylize(head_style, 0, head_to)
    _console().print(text, style=style, soft_wrap=True)


def _console() -> Console:
    """A console on the present standard output; without colours where NO_COLOR is set."""
    from rich.console import Console

    colors: Literal["auto"] | None = "auto" if is_colored() else None
    # Without a height rich would read COLUMNS itself.
    return Console(highlight=False, width=line_width(), height=24, color_system=colors)


# ---- tables ---------------------------------------------------------------------------------------------------------


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[str] | str], *, fits: bool = False) -> None:
    """Print a table; a row that is a text is a heading of the rows that follow.

    It `fits` the screen on a terminal, where COLUMNS is set, or where asked for; else each row is one line.
    """
    described = [Column(column) if isinstance(column, str) else column for column in columns]
    described = [replace(column, title=printable(column.title, keep="")) for column in described]
    blocks: list[tuple[str, list[list[str]]]] = [("", [])]
    for row in rows:
        if isinstance(row, str):
            blocks.append((row, []))
        else:
            cells = [printable(text, keep="") for text in row]
            blocks[-1][1].append([*cells, *[""] * (len(described) - len(cells))])
    texts = [[row[place] for _, block in blocks for row in block] for place in range(len(described))]
    natural = [max(map(len, [column.title, *cells])) for column, cells in zip(described, texts, strict=True)]
    tables, widths = [list(range(len(described)))], natural
    fits = fits or is_terminal() or os.environ.get("COLUMNS", "").lstrip("0").isdecimal()
    if fits:
        widths = [_least_width(column, cells) for column, cells in zip(described, texts, strict=True)]
        tables = split_columns(described, widths, line_width())
    for part, places in enumerate(tables):
        if part:
            print_line("")
        shown = [described[place] for place in places]
        room = line_width() - _total(places, widths) if fits else 0
        grown = _grown(shown, [widths[place] for place in places], [natural[place] for place in places], room)
        _print_table(shown, blocks, places, grown)
    hidden = [column.title for place, column in enumerate(described) if not any(place in places for places in tables)]
    if hidden:
        note(f"(columns hidden, screen too narrow: {', '.join(hidden)})", style="dim")


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """As narrow as a column can be: titles are broken between words, and cells where they may be."""
    texts = [column.title, *cells] if column.wrap else [column.title]
    longest_word = max(len(word) for text in texts for word in _keep_units(text).split(" "))
    longest = max(map(len, cells), default=0)
    return max(longest_word, min(_WRAP_MIN, longest) if column.wrap else longest)


def split_columns(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[list[int]]:
    """The places of the columns of each table to print, so that none is wider than `width` if possible."""
    everything = list(range(len(columns)))
    shown = everything[:]
    for place in everything:
        if columns[place].optional and _total(shown, widths) > width:
            shown.remove(place)
    if _total(shown, widths) <= width:
        return [shown]
    keys = [place for place in everything if columns[place].key] or everything[:1]
    tables = [keys[:]]
    for place in everything:
        if place in keys:
            continue
        with_next = [place, place + 1] if place + 1 < len(columns) and columns[place + 1].joined else [place]
        may_part = len(tables[-1]) > len(keys) and not columns[place].joined
        if may_part and _total([*tables[-1], *with_next], widths) > width:
            tables.append(keys[:])
        tables[-1].append(place)
    return tables


def _total(places: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[place] for place in places) + _GAP * (len(places) - 1)


def _grown(columns: Sequence[Column], least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """The widths of a table's columns. The room goes to the narrowest wrapped column, then to titles that fit whole."""
    widths = list(least)
    while room and (growing := [i for i, column in enumerate(columns) if column.wrap and widths[i] < natural[i]]):
        widths[min(growing, key=widths.__getitem__)] += 1
        room -= 1
    for place, lacking in enumerate(map(operator.sub, natural, widths)):
        if lacking <= room:
            widths[place] += lacking
            room -= lacking
    return widths


def _print_table(
    columns: Sequence[Column],
    blocks: Iterable[tuple[str, list[list[str]]]],
    places: Sequence[int],
    widths: Sequence[int],
) -> None:
    """The titles, then each heading with its rows."""
    if any(column.title for column in columns):
        titles = [wrapped(column.title, width) for column, width in zip(columns, widths, strict=True)]
        height = max(map(len, titles))
        _print_grid(columns, widths, [[[""] * (height - len(lines)) + lines for lines in titles]], style="bold")
    for heading, block in blocks:
        if heading:
            note(heading)
        cells = [
            [
                wrapped(row[place], width) if column.wrap else [row[place]]
                for place, column, width in zip(places, columns, widths, strict=True)
            ]
            for row in block
        ]
        _print_grid(columns, widths, cells)


def _print_grid(
    columns: Sequence[Column],
    widths: Sequence[int],
    rows: Iterable[Sequence[Sequence[str]]],
    *,
    style: str | None = None,
) -> None:
    """Rows of cells, each a list of lines, in the style of their column or in `style`."""
    lines = (line for row in rows for line in itertools.zip_longest(*row, fillvalue=""))
    padded = (
        [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        for line in lines
    )
    gap = " " * _GAP
    if not is_terminal():
        for cells in padded:
            print_line(gap.join(cells).rstrip())
        return
    from rich.text import Text

    console, styles = _console(), [style or column.style or "" for column in columns]
    for cells in padded:
        line = Text(gap).join(Text(cell, of) for cell, of in zip(cells, styles, strict=True))
        line.rstrip()
        console.print(line, soft_wrap=True)
