"""The tables and conclusions of a classic report, where a run of the page is of its suite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hockney.report.classic import make_report
from hockney.report.classic.conclusions import Conclusion, Named
from hockney.report.classic.values import NOTHING, Cell, Measured, Table, format_figure
from hockney.report.classic.view import text_of, view_of
from hockney.report.html.material import Material
from hockney.report.words import SHORT_MARK, spread_text


@dataclass(frozen=True)
class TableItem:
    """A table with its figures as texts; columns with whether they hold words. `has_figures`: of this machine."""

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    has_figures: bool


@dataclass(frozen=True)
class ConclusionItem:
    """A conclusion, the published figures, and for each transport the verdict with its figures."""

    text: str
    published: str
    verdicts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class ClassicItem:
    """A run of a classic suite as its report has it."""

    source: str
    run: int
    tables: tuple[TableItem, ...]
    conclusions: tuple[ConclusionItem, ...]


def classic_items(material: Material) -> list[ClassicItem]:
    """The tables of each run of the page that used a classic suite."""
    items = []
    for run in material.runs:
        report = make_report(run)
        if report is not None:
            tables = tuple(_table(table) for table in report.tables)
            conclusions = tuple(_conclusion(conclusion) for conclusion in report.conclusions)
            items.append(ClassicItem(report.report.source, run.id, tables, conclusions))
    return items


def _table(table: Table) -> TableItem:
    view = view_of(table)
    missing = tuple(each.sentence(f"({each.reason})") for each in view.left_out)
    return TableItem(
        title=table.title,
        columns=tuple((column.title, column.kind == "key") for column in view.columns),
        rows=tuple(tuple(map(_cell, row)) for row in view.rows),
        notes=(*table.notes, *missing),
        has_figures=any(column.kind == "measured" for column in view.columns),
    )


def _cell(cell: Cell) -> str:
    """`6.62 ±1% x1.05`, `6.62 +0.3%` of a model; a published figure as printed."""
    if not isinstance(cell, Measured):
        return text_of(cell)
    if cell.value is None:
        return NOTHING
    parts = [format_figure(cell.value) + "*" * cell.oversubscribed + SHORT_MARK * cell.is_short]
    if cell.precision is not None and not cell.exact:
        parts.append(spread_text(cell.precision))
    if cell.error is not None:
        parts.append("reproduced" if cell.reproduced else f"{cell.error:+.1%}")
    elif cell.ratio is not None:
        parts.append(f"x{format_figure(cell.ratio)}")
    return " ".join(parts)


def _conclusion(conclusion: Conclusion) -> ConclusionItem:
    return ConclusionItem(
        text=conclusion.text,
        published=conclusion.published or _listed(conclusion.figures),
        verdicts=tuple(
            (judgement.on or "here", judgement.verdict, judgement.reason or _listed(judgement.figures))
            for judgement in conclusion.judgements
        ),
    )


def _listed(figures: Iterable[Named]) -> str:
    return ", ".join(" ".join(filter(None, (f.name, format_figure(f.value), f.unit))) for f in figures)
