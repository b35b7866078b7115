"""Tables that are never wider than a line may be, the same on a terminal and in a pipe.

For those with a column or more for each transport, which would be several hundred columns wide in a pipe, and there for
every table if COLUMNS asks for a width.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hockney.cli import render
from hockney.cli.render import Column
from hockney.cli.streams import print_line

_WRAP_MIN = 16  # a column that wraps may become as narrow as this, if its words do


@dataclass(frozen=True)
class Group:
    """Rows below one heading, which has the whole width; none where it is empty."""

    rows: Sequence[Sequence[str]]
    heading: str = ""


def table(columns: Sequence[Column | str], groups: Iterable[Group]) -> list[str]:
    """As many tables as it takes, each with the key columns; titles and the cells of `wrap` columns become lines.

    Gives the titles of the columns left out.
    """
    described = render.described_columns(columns)
    found = [Group([render.cells(row) for row in group.rows], group.heading) for group in groups]
    rows = [row for group in found for row in group.rows]
    least = [_least_width(column, [row[place] for row in rows]) for place, column in enumerate(described)]
    tables = render.places_of_tables(described, least, render.line_width())
    for part, places in enumerate(tables):
        if part:
            print_line("")
        _print_part(described, found, places, _grown(described, rows, places, least))
    return render.left_out(described, tables)


def _print_part(columns: Sequence[Column], groups: Iterable[Group], places: Sequence[int], widths: list[int]) -> None:
    shown = [columns[place] for place in places]
    is_titled = any(column.title for column in shown)
    titles = [render.wrapped(column.title, width) for column, width in zip(shown, widths, strict=True) if is_titled]
    height = max(map(len, titles), default=0)
    for line in zip(*([""] * (height - len(one)) + one for one in titles), strict=True):
        render.bold(render.aligned(line, shown, widths))
    for group in groups:
        if group.heading:
            render.note(group.heading)
        for row in group.rows:
            cells = [
                render.wrapped(row[place], width) if column.wrap else [row[place]]
                for place, column, width in zip(places, shown, widths, strict=True)
            ]
            for line in itertools.zip_longest(*cells, fillvalue=""):
                print_line(render.aligned(line, shown, widths))


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """Titles are broken between words; cells too where they may be, down to what is still easy to read."""
    texts = [column.title, *cells] if column.wrap else [column.title]
    words = max((len(word) for text in texts for word in render.keep_units(text).split(" ")), default=0)
    natural = max(map(len, cells), default=0)
    return max(words, min(_WRAP_MIN, natural) if column.wrap else natural)


def _grown(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], places: Sequence[int], least: Sequence[int]
) -> list[int]:
    """The widths of a part's columns: what is left of the line goes to those that wrap, the narrowest first."""
    widths = {place: least[place] for place in places}
    natural = {place: max((len(row[place]) for row in rows), default=0) for place in places if columns[place].wrap}
    for _ in range(render.line_width() - render.total_width(places, least)):
        growing = [place for place in natural if widths[place] < natural[place]]
        if growing:
            widths[min(growing, key=widths.__getitem__)] += 1
    return list(widths.values())
