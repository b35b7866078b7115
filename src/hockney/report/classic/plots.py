"""The published and the measured figures of a report's tables as curves over the message size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hockney.archive import Published
from hockney.report.classic.conclusions import ClassicReport
from hockney.report.classic.layout import layouts
from hockney.report.classic.values import Cell, Measured, Table


@dataclass(frozen=True)
class Plot:
    """The figures of a table, or of its rows that differ in size only: (size, value) by the name of the curve."""

    title: str
    unit: str
    curves: dict[str, list[tuple[int, float]]]


def plots_of(report: ClassicReport) -> list[Plot]:
    """A plot for each table over sizes, and for each set of its other keys with two published sizes or more."""
    titles = {layout.name: layout.keys["bytes"] for layout in layouts(report.report.name) if "bytes" in layout.keys}
    tables = [table for table in report.tables if table.name in titles]
    plots = [plot for table in tables for plot in _plots(table, titles[table.name])]
    return [plot for plot in plots if len(plot.curves.get("published", ())) > 1]


def _plots(table: Table, size_title: str) -> Iterable[Plot]:
    keys = [place for place, column in enumerate(table.columns) if column.kind == "key"]
    at_size = next(place for place in keys if table.columns[place].title == size_title)
    groups: dict[str, list[tuple[Cell, ...]]] = {}
    for row in table.rows:
        others = (f"{table.columns[place].title} {row[place]}" for place in keys if place != at_size)
        groups.setdefault(", ".join(others), []).append(row)
    for name, rows in groups.items():
        curves: dict[str, list[tuple[int, float]]] = {}
        units = [cell.unit for row in rows for cell in row if isinstance(cell, Published)]
        for row in rows:
            size = str(row[at_size]).partition(" ")[0]
            for column, cell in zip(table.columns, row, strict=True) if size.isdecimal() else ():
                if isinstance(cell, Published | Measured) and cell.unit in units and cell.value is not None:
                    curves.setdefault(column.title, []).append((int(size), cell.value))
        yield Plot(f"{table.title}{f': {name}' if name else ''}", units[0] if units else "", curves)
