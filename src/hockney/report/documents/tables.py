"""The tables of a run: quick's data sheet, a classic report's, all pairs, highest rates, impacts, or clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from hockney.analysis.clocks import Clocks, clocks_of
from hockney.analysis.explain import explain_run
from hockney.analysis.finding import Finding
from hockney.analysis.health import Health, health_of
from hockney.analysis.health.matrices import SUITE
from hockney.analysis.impact import Impact, Impacts, impacts_of
from hockney.analysis.pairs import PairMatrix, pair_matrices
from hockney.analysis.repeat import resume
from hockney.errors import HockneyError, UsageError
from hockney.report.classic import make_report
from hockney.report.classic.conclusions import ClassicReport
from hockney.report.classic.view import plots_of
from hockney.report.commands import command_line, fix_text, typed
from hockney.report.document import Block, Document, Plot, Text, Title, document
from hockney.report.documents.classic import classic_document, report_as_json
from hockney.report.documents.hosts import clocks_document, health_document, health_json
from hockney.report.documents.sheet import sheet_as_json, sheet_document
from hockney.report.impacts import background_text, impact_table
from hockney.report.names import readable_names
from hockney.report.notes import caveats_of, one_launch
from hockney.report.pairs import pair_table, rank_values
from hockney.report.rates import rates_table
from hockney.report.sheet import Sheet, make_sheet
from hockney.report.words import placement_text
from hockney.results.rates import HighestRates, highest_rates
from hockney.results.runs import Run
from hockney.stats import Interval
from hockney.units import counted, format_ns
from hockney.worker.libraries import Missing

Tables = Sheet | ClassicReport | HighestRates | Impacts | Clocks | Health | list[PairMatrix]


def tables_of(run: Run, *, every_state: bool = False) -> Tables:
    """The tables of the run's suite, or an empty list. Raises UsageError for states that they don't show."""
    if run.info.suite == "quick":
        return make_sheet(run, every_state=every_state)
    if run.info.suite == SUITE:
        return health_of(run)
    tables = impacts_of(run) or highest_rates(run) or clocks_of(run) or make_report(run) or pair_matrices(run)
    if tables and every_state:
        raise UsageError(
            "--tables shows every state only for quick. Here each figure names its state; "
            f"run {typed('show', run.id, '--states')} for all states"
        )
    return tables


def table_plots_document(tables: Tables) -> Iterator[Block]:
    """Plots of the published and measured figures of a classic report. Raises UsageError where there are none."""
    plots = plots_of(tables.report.name, tables.tables) if isinstance(tables, ClassicReport) else []
    if not plots:
        raise UsageError("these tables have no published curve over sizes. Leave out --tables to plot your curves")
    yield from (Plot(plot.title, plot.curves, plot.unit) for plot in plots)


def tables_document(tables: Tables, run: Run, missing: Sequence[Missing] = (), *, verbose: bool = False) -> Document:
    """Tables and caveats; `missing` lists the libraries that the measuring machine does not have, if known."""
    if isinstance(tables, Sheet):
        findings: Sequence[Finding] = ()
        with suppress(HockneyError):  # no figure has an interval in one machine state
            findings = explain_run(run).findings
        return sheet_document(tables, run, missing, findings, verbose=verbose)
    return document(_blocks(tables, run, missing, verbose=verbose))


def _blocks(tables: Tables, run: Run, missing: Sequence[Missing], *, verbose: bool) -> Iterator[Block]:
    match tables:
        case ClassicReport():
            yield from classic_document(tables, run, missing, verbose=verbose)
        case Health():
            yield from health_document(run, tables)
        case HighestRates():
            more = f"All rates that were tried: {typed('show', run.id, '--all')}"
            table = rates_table(tables, go_on=command_line(resume(run.id, run.info)), more=more)
            yield replace(table, bold="events")
        case Impacts():
            yield from _impacts(tables, run)
        case Clocks():
            yield from clocks_document(tables)
        case _:
            for matrix in tables if isinstance(tables, list) else ():
                yield from matrix_blocks(matrix)
            yield from one_launch(series.shown.interval_over for series in run.series if tables and series.shown)
    placement = None if isinstance(tables, Health) else placement_text(run)
    if placement:
        yield Text(placement)
    yield from caveats_of(run, verbose=verbose)


def tables_as_json(tables: Tables) -> dict[str, Any]:
    """The same values; {} where there are no tables."""
    match tables:
        case Sheet():
            return sheet_as_json(tables)
        case ClassicReport():
            return report_as_json(tables)
        case Health():
            return {"health": health_json(tables)}
        case HighestRates():
            return vars(tables)
        case Impacts():
            return {"background": tables.background, "impacts": [_impact_json(each) for each in tables.impacts]}
        case Clocks():
            return {"clocks": tables.jobs}
        case _:
            return pairs_as_json(tables) if tables else {}


# ---- under a background ----------------------------------------------------------------------------------------------


def _impact_json(impact: Impact) -> dict[str, Any]:
    factor = impact.factor
    return {**vars(impact), "factor": factor.value, "low": factor.low, "high": factor.high}


def _impacts(impacts: Impacts, run: Run) -> Iterator[Block]:
    names = readable_names(run.launches.values())
    table = impact_table(impacts, lambda transport: names.get(transport, transport))
    notes = (f"{table.notes[0]} By machine state: {typed('show', run.id, '--states')}.",)
    yield replace(table, title=f"Impact of {background_text(run)}", notes=notes, bold="impact")
    if any(impact.factor.low is None for impact in impacts.impacts):
        yield Text(f"–: too few rounds for an interval. {fix_text(resume(run.id, run.info))}.", tone="quiet")
    yield from one_launch(impact.interval_over for impact in impacts.impacts if impact.factor.low is not None)


# ---- all pairs -------------------------------------------------------------------------------------------------------


def pairs_as_json(matrices: Iterable[PairMatrix]) -> dict[str, Any]:
    """For --json: `time_ns[source][target]` with its interval, null on the diagonal and for pairs without one."""
    documents = []
    for matrix in matrices:
        document = asdict(matrix)
        del document["times"]
        document["time_ns"] = _square(matrix, lambda time: time.value)
        document["low_ns"] = _square(matrix, lambda time: time.low)
        document["high_ns"] = _square(matrix, lambda time: time.high)
        for outlier, of_matrix in zip(document["outliers"], matrix.outliers, strict=True):
            outlier["factor"] = of_matrix.factor
        documents.append(document)
    return {"matrices": documents}


def _square(matrix: PairMatrix, of: Callable[[Interval], float | None]) -> list[list[float | None]]:
    cells = [[matrix.time(a, b) for b in range(matrix.ranks)] for a in range(matrix.ranks)]
    return [[None if time is None else of(time) for time in row] for row in cells]


def matrix_blocks(matrix: PairMatrix) -> Iterator[Block]:
    """It with its classes and outliers."""
    floor = "" if matrix.floor_ns is None else f", floor {format_ns(matrix.floor_ns)}"
    values = rank_values(matrix, str)
    title = f"Half a round trip: {values.name} ({matrix.state}{floor})"
    if matrix.ranks <= 16:
        yield replace(pair_table(values), title=title, fits=False)
    else:
        yield Title(title)
        yield Text(f"The matrix of {matrix.ranks} ranks is in --json only.")
    if matrix.oversubscribed:
        yield Text("There were more ranks than CPUs: scheduling times, not the transport's own.")
    if matrix.missing:
        yield Text(f"{counted(matrix.missing, 'pair')} not measured in this state.")
    for text in values.classes:
        yield Text(text)
    for text in values.outliers:
        yield Text(f"! {text}", tone="caution")
    if matrix.inconclusive:
        count = counted(len(matrix.inconclusive), "pair")
        yield Text(f"? {count} inconclusive (--json has all): {values.inconclusive[0]}")
