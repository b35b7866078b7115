"""The tables of a run: quick's data sheet, a classic report's tables, or the matrix of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hockney.analysis.explain.pairs import PairMatrix, pair_matrices
from hockney.cli import render
from hockney.cli.classic import print_report, report_as_json
from hockney.cli.curves import placement_text, say_one_launch
from hockney.cli.pairs import pairs_as_json, print_pairs
from hockney.cli.rerun import typed
from hockney.cli.sheet import print_sheet, sheet_as_json
from hockney.errors import UsageError
from hockney.report.classic import make_report
from hockney.report.classic.conclusions import ClassicReport
from hockney.report.sheet import Sheet, make_sheet
from hockney.results.runs import Run
from hockney.worker.catalogue import Missing

Tables = Sheet | ClassicReport | list[PairMatrix]


def tables_of(run: Run, *, every_state: bool = False) -> Tables:
    """The tables of the run's suite; an empty list without any. Raises UsageError for states that they don't show."""
    if run.info.suite == "quick":
        return make_sheet(run, every_state=every_state)
    found = make_report(run) or pair_matrices(run)
    if found and every_state:
        raise UsageError(
            "--tables shows every state only for quick. Here each figure names its state; "
            f"run {typed('show', run.id, '--states')} for all states"
        )
    return found


def print_table_plots(tables: Tables) -> None:
    """Plot the published and measured figures of a classic report. Raises UsageError where there are none."""
    from hockney.cli.plot import PlotCurve, print_plot
    from hockney.report.classic.plots import plots_of

    plots = plots_of(tables) if isinstance(tables, ClassicReport) else []
    if not plots:
        raise UsageError("these tables have no published curve over sizes. Leave out --tables to plot your curves")
    for plot in plots:
        curves = [PlotCurve(name, *map(list, zip(*points, strict=True))) for name, points in plot.curves.items()]
        print_plot(plot.title, curves, plot.unit)


def print_tables(tables: Tables, run: Run, missing: Sequence[Missing] = (), *, verbose: bool = False) -> None:
    """Print tables; `missing` is what the machine that measured does not have, where that is known."""
    match tables:
        case Sheet():
            from hockney.analysis.explain import explain_run

            found = explain_run(run).findings if tables.rows else ()
            print_sheet(tables, run, missing, found, verbose=verbose)
            return
        case ClassicReport():
            print_report(tables, run, missing)
        case _:
            print_pairs(tables)
            figures = [figure for series in run.series for figure in series.figures()] if tables else []
            say_one_launch(figure.interval_over for figure in figures if figure.low_ns is not None)
    placement = placement_text(run)
    if placement:
        render.note(placement)


def tables_as_json(tables: Tables) -> dict[str, Any]:
    """The same values; {} where there are no tables."""
    match tables:
        case Sheet():
            return sheet_as_json(tables)
        case ClassicReport():
            return report_as_json(tables)
        case _:
            return pairs_as_json(tables) if tables else {}
