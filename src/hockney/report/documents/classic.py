"""A classic report as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hockney.analysis.repeat import further
from hockney.measure.warnings import OVERSUBSCRIBED
from hockney.report.classic import ClassicReport, make_report
from hockney.report.classic.screen import all_tables, first_page, footnotes, plots_of, values_of
from hockney.report.classic.values import Here, PublishedRow, Reported
from hockney.report.columns import marks_text
from hockney.report.commands import typed
from hockney.report.document import Block, Plot, Sentence, Text, Title
from hockney.report.documents.tables import TableKind
from hockney.report.notes import SHORT_NOTE, fixed, one_launch
from hockney.report.words import RANGE_MARK
from hockney.stats import RANGE
from hockney.worker.libraries import Missing


def classic_document(
    report: ClassicReport, missing: Sequence[Missing] = (), *, everything: bool = False
) -> Iterator[Block]:
    """A line for each benchmark, and the conclusions; all tables if `everything`; what is `missing` here."""
    sections = [*first_page(report), *(all_tables(report) if everything else [])]
    yield from sections
    yield Sentence()
    for text in footnotes(report, sections):
        yield Text(text, tone="quiet")
    values = values_of(report)
    yield from one_launch(value.over for value in values if value.over)
    if any(value.over == RANGE for value in values):
        yield Text(f"{marks_text([RANGE_MARK])}{fixed(further(report.run))}")
    if any(value.is_short for value in values):
        yield Text(SHORT_NOTE)
    if any(value.is_oversubscribed for value in values):
        yield Text(f"*: more ranks than CPUs, so this is a scheduling time. {OVERSUBSCRIBED}")
    if missing:
        yield Title("Not available here")
        for absent in missing:
            yield Text(f"{absent.name}: {absent.why}; {absent.how}")
    if not everything:
        tables, curves = (typed("show", report.run.id, option) for option in ("--tables", "--all"))
        yield Text(f"All rows, and what decided the conclusions: {tables}; with every curve and failure: {curves}")


def report_as_json(report: ClassicReport) -> dict[str, Any]:
    """For --json: every published row, each figure of it here with its interval, state and ratio, and the verdicts."""
    conclusions = [
        {**asdict(each), "judgements": [{**vars(j), "figures": _named(j.figures)} for j in each.judgements]}
        for each in report.conclusions
    ]
    details = [
        {"point": series.point, "values": _named(dict(zip(detail.quantities, values, strict=True)))}
        for detail in report.details
        for series, values in detail.rows
    ]
    benchmarks = [
        {
            "title": group.benchmark.title,
            "notes": group.notes,
            "rows": [_row_json(row, group.benchmark.keys) for row in group.rows],
        }
        for group in report.groups
    ]
    of_report = {"benchmarks": benchmarks, "conclusions": conclusions, "details": details}
    return {"classic": {"source": report.report, **of_report}}


def _row_json(row: PublishedRow, keys: Iterable[str]) -> dict[str, Any]:
    return {
        "names": dict(zip(keys, row.names, strict=True)),
        "quantity": row.quantity,
        "unit": row.unit,
        "published": row.published,
        "printed": row.figure.printed,
        "model": row.modelled,
        "note": row.figure.note,
        "reason": row.reason,
        "here": [_cell_json(column, cell, row.figure.also) for column, cell in row.cells.items()],
    }


def _cell_json(column: str, cell: Here, also: str) -> dict[str, Any]:
    return {
        "figure": _value_json(column, cell.value),
        "also": None if cell.also is None else _value_json(also, cell.also),
        "ratio": cell.ratio,
        "error": cell.error,
        "used": cell.is_used,
        "reproduced": cell.is_reproduced,
    }


def _named(values: Mapping[str, Reported]) -> list[dict[str, Any]]:
    return [_value_json(name, value) for name, value in values.items()]


def _value_json(name: str, value: Reported) -> dict[str, Any]:
    """A value with its bounds: null where it is computed from others."""
    estimate = value.estimate
    has_bounds = value.is_exact or value.over is not None or value.is_predicted
    low, high = (estimate.low, estimate.high) if estimate is not None and has_bounds else (None, None)
    return {
        "name": name,
        "value": value.number,
        "low": low,
        "high": high,
        "interval_over": value.over,
        "unit": value.unit,
        "state": value.state,
        "reason": value.reason,
        "at_bytes": value.at_bytes,
        "pairs": value.pairs,
        "exact": value.is_exact,
        "predicted": value.is_predicted,
        "oversubscribed": value.is_oversubscribed,
        "is_short": value.is_short,
    }


KIND = TableKind(
    make_report,
    lambda report, _, missing, __: classic_document(report, missing),
    report_as_json,
    lambda report: [Plot(*plot) for plot in plots_of(report)],
    in_full=lambda report: classic_document(report, everything=True),
)
