"""How results look: tables and colours on a terminal, aligned plain text in a pipe, one JSON document with --json.

Plain text has no box characters and no escape codes, one record a line, so that grep and awk can read it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from hockney.model import Warning_

JSON_VERSION = 1


@dataclass(frozen=True)
class Column:
    """A column of a table; `wrap` where a terminal may break its cells into lines, `style` as rich writes it."""

    title: str
    right: bool = False
    wrap: bool = False
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
    print(json.dumps(document, indent=2, allow_nan=False, default=_as_json))


def _as_json(value: Any) -> Any:
    """Numbers and arrays of numpy, and sets, as plain ones."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def title(text: str, *, first: bool = False) -> None:
    """A heading, with a blank line above it unless it is the first thing on the screen."""
    above = "" if first else "\n"
    if is_terminal():
        _console().print(f"{above}[bold]{_escaped(text)}[/bold]")
    else:
        print(f"{above}{text}")


def say(text: str = "", *, style: str | None = None) -> None:
    """A paragraph, wrapped to a terminal's width; one line in a pipe."""
    if is_terminal():
        _console().print(_escaped(text), style=style)
    else:
        print(text)


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[str]]) -> None:
    """Cells are text as it shall be read; a row may be shorter than the list of columns."""
    described = [Column(column) if isinstance(column, str) else column for column in columns]
    filled = [[*row, *[""] * (len(described) - len(row))] for row in rows]
    if is_terminal():
        _print_rich(described, filled)
    else:
        for line in plain_lines(described, filled):
            print(line)


def plain_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns aligned with blanks, two between them, none at the ends of lines."""
    titles = [column.title for column in columns]
    everything = [titles, *rows] if any(titles) else list(rows)
    if not everything:
        return []
    widths = [max(len(row[place]) for row in everything) for place in range(len(columns))]
    lines = []
    for row in everything:
        cells = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def warnings(found: Iterable[Warning_]) -> None:
    """Each warning with its remedy."""
    for warning in found:
        if is_terminal():
            _console().print(f"[yellow]![/yellow] {_escaped(warning.cause)} [dim]{_escaped(warning.remedy)}[/dim]")
        else:
            print(f"! {warning}")


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

    titled = any(column.title for column in columns)
    shown = Table(box=box.SIMPLE_HEAD, show_header=titled, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        shown.add_column(
            _escaped(column.title),
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold",
            style=column.style,
        )
    for row in rows:
        shown.add_row(*(_escaped(cell) for cell in row))
    _console().print(shown)
