"""How the tables of a classic report look, on a terminal, in a pipe and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hockney.cli import render
from hockney.report.classic.reading import states_note
from hockney.report.classic.values import Cell, ClassicReport, Measured, Table
from hockney.units import format_bytes

if TYPE_CHECKING:
    from hockney.worker.catalogue import Missing

_TOO_FEW = "±?"


def print_report(report: ClassicReport, missing: Sequence[Missing] = ()) -> None:
    """Every table with its notes; what this machine lacks comes last."""
    render.title(f"The tables of: {report.report.source}", first=True)
    for table in report.tables:
        _print_table(table)
    cells = [cell for table in report.tables for cell in table.measured()]
    render.say()
    render.say(
        "ratio: this machine's figure over the published one. Figures are medians with the longer arm of their 95 % "
        "interval; one without ± is computed from others, or zero."
    )
    if any(cell.lacks_visits for cell in cells):
        render.say(f"{_TOO_FEW}: too few visits for an interval.")
    if any(cell.oversubscribed for cell in cells):
        render.say("*: there were more ranks than CPUs: a scheduling time, not the transport's own.")
    if missing:
        render.title("What is not here")
        for one in missing:
            render.say(f"  {one.name}: {one.why}; {one.how}")


def report_as_json(report: ClassicReport) -> dict[str, Any]:
    """For --json: every table; a cell is text, or a figure with its unit, interval, state and published value."""
    source = asdict(report.report)
    return {"tables": {"source": source, "of": [_table_json(table) for table in report.tables]}}


def _table_json(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "columns": [asdict(column) for column in table.columns],
        "rows": [[_cell_json(cell) for cell in row] for row in table.rows],
        "notes": list(table.notes),
    }


def _cell_json(cell: Cell) -> Any:
    return {**asdict(cell), "ratio": cell.ratio} if isinstance(cell, Measured) else cell


def _print_table(table: Table) -> None:
    common, note = states_note(table.measured())
    compared = {
        place
        for row in table.rows
        for place, cell in enumerate(row)
        if isinstance(cell, Measured) and cell.published is not None
    }
    columns: list[render.Column | str] = []
    for place, column in enumerate(table.columns):
        wide = column.kind == "key" and table.name in ("configuration", "hardware", "software")
        right = column.kind != "key" and not wide
        columns.append(render.Column(column.title, right=right, wrap=wide, key=column.kind != "measured"))
        if place in compared:
            columns.append(render.Column("ratio", right=True))
    reasons: dict[str, int] = {}
    rows = []
    for row in table.rows:
        texts = []
        for place, cell in enumerate(row):
            texts.append(_text(cell, common, reasons))
            if place in compared:
                texts.append(_ratio(cell))
        rows.append(texts)
    render.title(table.title)
    render.table(columns, rows)
    for reason, number in reasons.items():
        render.say(f"({number}) {reason}", style="yellow")
    for text in (*table.notes, *([note] if note else [])):
        render.say(text, style="dim")


def _text(cell: Cell, common: str | None, reasons: dict[str, int]) -> str:
    """A figure with what is to be known of it, or the number of the reason why there is none."""
    if isinstance(cell, str):
        return cell
    if cell.value is None:
        return f"({reasons.setdefault(cell.reason or 'no reason is known', len(reasons) + 1)})"
    spread = cell.spread
    parts = [
        format_figure(cell.value) + ("*" if cell.oversubscribed else ""),
        _TOO_FEW if cell.lacks_visits else "" if spread is None else _arm(spread),
        "" if cell.at_bytes is None else f"at {format_bytes(cell.at_bytes)}",
        _pairs(cell),
        "" if cell.state in (None, common) else str(cell.state),
    ]
    return " ".join(part for part in parts if part)


def _arm(spread: float) -> str:
    return f"±{max(0.001, spread):.1%}" if spread < 0.0995 else f"±{spread:.0%}"


def _pairs(cell: Measured) -> str:
    """What a statistic over pairs leaves out."""
    of, asked = cell.pairs or (0, 0)
    return f"of {of} of {asked} pairs" if of < asked else ""


def _ratio(cell: Cell) -> str:
    ratio = cell.ratio if isinstance(cell, Measured) else None
    return "" if ratio is None else format_figure(ratio)


def format_figure(value: float) -> str:
    """Three digits, never an exponent: `0.00123`, `6.60`, `23,167`."""
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude == 0:
        return "0"
    for digits, edge in ((1, 9.995), (2, 0.9995), (3, 0.09995), (4, 0.009995), (5, 0.0009995)):
        if magnitude >= edge:
            return f"{value:.{digits}f}"
    return f"{value:.6f}"
