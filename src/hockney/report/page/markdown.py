"""The report of runs as one document, of those that screens show: for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hockney.report.document import Block, Text, Title
from hockney.report.documents.figures import run_document
from hockney.report.documents.findings import strongest_document
from hockney.report.documents.sheet import sheet_document
from hockney.report.documents.tables import tables_document, tables_of
from hockney.report.page.choices import choices_of
from hockney.report.page.comparisons import comparisons_of
from hockney.report.page.material import material_of
from hockney.report.page.predictions import predictions_of
from hockney.report.page.summary import summary_of
from hockney.report.page.tables import load_section
from hockney.results.runs import Results, Run


def report_document(results: Results, runs: Sequence[Run]) -> Iterator[Block]:
    """The comparison of the first run with the others, then of each run its verdict, tables and findings."""
    sections, _ = comparisons_of(material_of(results, runs[0], runs[1:])) if runs[1:] else ([], [])
    yield from (replace(section, title=f"Comparison: {section.title}") for section in sections)
    for run in runs:
        yield from _run_blocks(results, run)


def _run_blocks(results: Results, run: Run) -> Iterator[Block]:
    material = material_of(results, run, ())
    summary, choices, predictions = summary_of(material), choices_of(material), predictions_of(material)
    yield Title(summary.machine, end=run.name)
    yield Text(f"{summary.host}, {summary.date}; {'; '.join(f'{word}: {text}' for word, text in summary.facts)}")
    yield from map(Text, summary.verdict)
    yield from [choices] if choices else []
    tables = tables_of(run)
    if tables is not None and tables.name == "sheet":
        yield from [*sheet_document(tables.values, run)][1:]  # the first block is the machine
        load = load_section(material)
        yield from [load] if load else []
    else:
        yield from run_document(run, run.series) if tables is None else tables_document(tables, run)
    if material.explanation is not None and (tables is None or tables.name != "health"):  # which has them
        yield from strongest_document(material.explanation, material.names)
    if predictions is not None and predictions.table:
        yield from (Title("Measured against predicted"), predictions.table)
    elif predictions is not None:
        yield from (Title("Measured against predicted"), Text(predictions.why))
