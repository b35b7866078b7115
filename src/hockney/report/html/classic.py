"""The tables and conclusions of a classic report, where a run of the page is of its suite."""

from __future__ import annotations

from collections.abc import Iterable

from hockney.report.classic import make_report
from hockney.report.classic.conclusions import ClassicReport, Named
from hockney.report.classic.values import NOTHING, Cell, ClassicTable, Measured, format_figure
from hockney.report.classic.view import text_of, view_of
from hockney.report.html.material import Material
from hockney.report.table import TextTable, text_rows
from hockney.report.words import SHORT_MARK, figure_text
from hockney.stats import Estimate


def classic_items(material: Material) -> list[tuple[ClassicReport, list[TextTable]]]:
    """The report of each run of the page that used a classic suite, with its tables."""
    reports = filter(None, map(make_report, material.runs))
    return [(report, [_table(table) for table in report.tables]) for report in reports]


def figures_text(figures: Iterable[Named]) -> str:
    """`tcp 15.5 us, unix 9.1 us`: the figures of a conclusion."""
    return ", ".join(" ".join(filter(None, (f.name, format_figure(f.value), f.unit))) for f in figures)


def _table(table: ClassicTable) -> TextTable:
    view = view_of(table)
    return TextTable(
        title=table.title,
        columns=tuple(column.title for column in view.columns),
        rows=text_rows(map(_cell, row) for row in view.rows),
        notes=(*table.notes, *(each.sentence(f"({each.reason})") for each in view.left_out)),
        keys=tuple(place for place, column in enumerate(view.columns) if column.kind == "key"),
        is_open=len(view.rows) <= 20 and any(column.kind == "measured" for column in view.columns),
    )


def _cell(cell: Cell) -> str:
    """`6.62 ±1% x1.05`, `6.62 +0.3%` of a model; a published figure as printed."""
    if not isinstance(cell, Measured):
        return text_of(cell)
    if cell.value is None:
        return NOTHING
    value = cell.estimate or Estimate(cell.value, cell.value, cell.value)
    shown, bounds = figure_text(value, format_figure, is_range=cell.lacks_measurements)
    parts = [shown + "*" * cell.oversubscribed + SHORT_MARK * cell.is_short, *[bounds] * bool(bounds)]
    if cell.error is not None:
        parts.append("reproduced" if cell.reproduced else f"{cell.error:+.1%}")
    elif cell.ratio is not None:
        parts.append(f"x{format_figure(cell.ratio)}")
    return " ".join(parts)
