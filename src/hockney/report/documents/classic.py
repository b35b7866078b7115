"""The tables of a classic report as a document and as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from hockney.analysis.repeat import further
from hockney.archive import Published
from hockney.measure.warnings import OVERSUBSCRIBED
from hockney.report.classic import make_report
from hockney.report.classic.conclusions import ClassicReport, Conclusion, Named
from hockney.report.classic.values import Cell, ClassicColumn, ClassicTable, Measured, format_figure
from hockney.report.classic.view import plots_of, states_note, text_of, view_of
from hockney.report.commands import typed
from hockney.report.document import Block, Column, Item, Plot, Sentence, Table, Text, Title
from hockney.report.documents.table_kind import TableKind
from hockney.report.notes import SHORT_NOTE, fixed, one_launch
from hockney.report.sheet import marks_text
from hockney.report.words import RANGE_MARK, SHORT_MARK, figure_text
from hockney.results.runs import Run
from hockney.stats.interval import Estimate
from hockney.units import format_bytes
from hockney.worker.libraries import Missing

_OF_THE_MODEL = ("model", "model-used", "model-structure")  # two screens, which stand above the figures


def classic_document(
    report: ClassicReport, run: Run, missing: Sequence[Missing] = (), *, verbose: bool = False
) -> Iterator[Block]:
    """Every table of a run with its notes, then what is `missing` on this machine.

    What a model is made of is there if `verbose`.
    """
    yield Title(f"The tables of: {report.report.source}")
    if not verbose and any(table.name in _OF_THE_MODEL for table in report.tables):
        report = replace(report, tables=tuple(table for table in report.tables if table.name not in _OF_THE_MODEL))
        command = typed("show", run.id, "-v")
        yield Text(f"The model's parameters, their sources, and the figures that it used: {command}")
    views = list(map(view_of, report.tables))
    said: set[str] = set()
    reasons: dict[str, int] = {}
    state: str | None = None
    for view in views:
        state = yield from _table(view, said, reasons, state)
    yield from _conclusions(report.conclusions, reasons)
    if reasons:
        yield Title("Why figures are missing")
    for reason, number in reasons.items():
        yield Text(f"({number}) {reason}", tone="caution")
    cells = [cell for view in views for row in view.rows for cell in row if isinstance(cell, Measured)]
    yield Sentence()
    if not all(cell.exact or cell.computed or cell.value is None for cell in cells):
        yield Text(
            "x: ratio of this machine's figure to the published one. ±: half-width of the 95 % confidence interval."
        )
        yield Text("Figures without ± are computed from others, or zero.")
    yield from one_launch(cell.interval_over for cell in cells)
    if any(cell.model for cell in cells):
        yield Text("error: of the model against the published figure. reproduced: that figure was used for its fit.")
    if any(cell.lacks_measurements for cell in cells):
        yield Text(f"{marks_text([RANGE_MARK])}{fixed(further(run))}")
    if any(cell.is_short for cell in cells):
        yield Text(SHORT_NOTE)
    if any(cell.oversubscribed for cell in cells):
        yield Text(f"*: more ranks than CPUs, so this is a scheduling time. {OVERSUBSCRIBED}")
    if missing:
        yield Title("Not available here")
        for absent in missing:
            yield Text(f"{absent.name}: {absent.why}; {absent.how}")


def report_as_json(report: ClassicReport) -> dict[str, Any]:
    """For --json: every table; a cell is text, or a figure with its unit, interval, state and published value."""
    tables = [
        {
            "name": table.name,
            "title": table.title,
            "columns": table.columns,
            "rows": [[_cell_json(cell) for cell in row] for row in table.rows],
            "notes": table.notes,
        }
        for table in report.tables
    ]
    return {"tables": {"source": report.report, "of": tables, "conclusions": report.conclusions}}


def _cell_json(cell: Cell) -> Any:
    return {**asdict(cell), "ratio": cell.ratio, "error": cell.error} if isinstance(cell, Measured) else text_of(cell)


def _table(
    view: ClassicTable, said: set[str], reasons: dict[str, int], state: str | None
) -> Generator[Block, None, str | None]:
    """A table; returns the sentence on the machine state that holds below it.

    Sentences printed before are not repeated: the notes in `said`, and the sentence `state`. `reasons` has the numbers
    of those that are printed below all tables.
    """
    yield Title(view.title)
    common, note = states_note(cell for row in view.rows for cell in row if isinstance(cell, Measured))
    if view.rows:
        measured = any(column.kind in ("measured", "predicted") for column in view.columns)
        modelled = {
            place
            for row in view.rows
            for place, cell in enumerate(row)
            if isinstance(cell, Measured) and cell.error is not None
        }
        columns = []
        for place, column in enumerate(view.columns[view.heading :], view.heading):
            is_figure = column.kind in ("measured", "predicted")
            right = column.kind != "key" and measured
            columns.append(Column(column.title, right=right, wrap=not is_figure, key=not is_figure))
            columns += [Column("error", right=True)] if place in modelled else []
        shown: list[list[str] | str] = []
        for heading, rows in itertools.groupby(view.rows, key=lambda row: row[: view.heading]):
            shown += [_heading(view, heading)] if heading else []
            for row in rows:
                texts = []
                for place, cell in enumerate(row[view.heading :], view.heading):
                    texts.append(_text(cell, view.columns[place], common, reasons))
                    texts += [_error(cell)] if place in modelled else []
                first, *others = texts
                shown.append(["  " * bool(heading) + first, *others])
        yield Table(columns, shown, fits=True)
    for missing in view.left_out:
        yield Text(missing.sentence(_number(missing.reason, reasons)), tone="caution")
    if view.rows:
        for text in (*(note for note in view.notes if note not in said), *([note] if note and note != state else [])):
            yield Text(text, tone="quiet")
        said.update(view.notes)
    return note or state


def _number(reason: str, reasons: dict[str, int]) -> str:
    """`(1)`: a reason that many tables share is printed once, below them."""
    return f"({reasons.setdefault(reason, len(reasons) + 1)})"


def _conclusions(conclusions: Sequence[Conclusion], reasons: dict[str, int]) -> Iterator[Block]:
    """The verdicts below each conclusion and its published figures."""
    if conclusions:
        yield Title("The report's conclusions, and whether they hold here")
    for conclusion in conclusions:
        yield Text(f"{conclusion.text}{f' [{conclusion.holds}]' if conclusion.holds else ''}")
        published = conclusion.published or ", ".join(map(_named, conclusion.figures))
        if published:
            yield Item(published, head="published")
        for judgement in conclusion.judgements:
            why = judgement.reason or ""
            verdict = f"{judgement.verdict} {_number(why, reasons)}" if why in reasons else judgement.verdict
            parts = [verdict, ", ".join(map(_named, judgement.figures)), "" if why in reasons else why]
            yield Item("; ".join(filter(None, parts)), head=judgement.on or "here")


def _named(figure: Named) -> str:
    """`receiver 15.5 % ±3.2%`; published figures have no interval, and no ± either."""
    mark = "*" if figure.oversubscribed else ""
    spread = _spread(figure.estimate) if figure.precision else ""  # a model without noise is exact
    return " ".join(filter(None, (figure.name, f"{format_figure(figure.value)}{mark}", figure.unit, spread)))


def _heading(view: ClassicTable, cells: Sequence[Cell]) -> str:
    """`ranks 2 (published: latency 86)`: the cells that the rows below have in common."""
    titled = list(zip(view.columns, map(text_of, cells), strict=False))
    keys = ", ".join(f"{column.title} {text}" for column, text in titled if column.kind == "key" and text)
    published = [
        f"{(*column.parts, column.title)[0]} {text}" for column, text in titled if column.kind == "published" and text
    ]
    return f"{keys} (published: {'; '.join(published)})" if published else keys


def _text(cell: Cell, column: ClassicColumn, common: str | None, reasons: dict[str, int]) -> str:
    """A figure with its interval, size, pairs, state and ratio, or the number of the reason why there is none."""
    if not isinstance(cell, Measured):
        unit = f" {cell.unit}" if isinstance(cell, Published) and column.kind == "key" else ""
        return text_of(cell) + unit
    if cell.value is None:
        return _number(cell.reason or "no reason is known", reasons)
    parts = [
        format_figure(cell.value) + ("*" if cell.oversubscribed else "") + (SHORT_MARK if cell.is_short else ""),
        "" if cell.exact else _spread(cell.estimate, is_range=cell.lacks_measurements),
        "" if cell.at_bytes is None else f"at {format_bytes(cell.at_bytes)}",
        f"of {cell.pairs[0]} of {cell.pairs[1]} pairs" if cell.pairs and cell.pairs[0] < cell.pairs[1] else "",
        "" if cell.state in (None, common) else str(cell.state),
        "" if cell.ratio is None or cell.model else f"x{format_figure(cell.ratio)}",
    ]
    return " ".join(part for part in parts if part)


def _error(cell: Cell) -> str:
    """How far a model's figure is off; that it counts as reproduced where the published one was used for its fit."""
    if not isinstance(cell, Measured) or cell.error is None:
        return ""
    return "reproduced" if cell.reproduced else f"{cell.error:+.1%}"


def _spread(value: Estimate | None, *, is_range: bool = False) -> str:
    """`±0.3%`, or both ends; empty without bounds."""
    if value is None:
        return ""
    if not is_range and 0 < value.relative < 0.0995:
        return f"±{max(0.001, value.relative):.1%}"
    return figure_text(value, format_figure, is_range=is_range)[1]


KIND = TableKind(
    make_report,
    lambda report, run, missing, verbose: classic_document(report, run, missing, verbose=verbose),
    report_as_json,
    lambda report: [Plot(plot.title, plot.curves, plot.unit) for plot in plots_of(report.report.name, report.tables)],
)
