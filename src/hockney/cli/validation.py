"""`hockney predict --validate`: predictions from a run, next to its measurements."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hockney.cli import render
from hockney.cli.measuring import command_line, measuring
from hockney.cli.predicted import WHAT, print_missing, transports_of
from hockney.cli.progress import ProgressDisplay
from hockney.cli.render import TableColumn
from hockney.errors import ExitCode, HockneyError, UsageError
from hockney.measure import run as running
from hockney.measure.plan import RunOptions, make_plan, transport_words
from hockney.measure.predict import Checked, Validation, fit_to_check, validate
from hockney.report.words import ERROR_COLUMNS, error_cells, size_text
from hockney.results.runs import Run, open_results
from hockney.stats.fit import NoFit
from hockney.suites import load_suite
from hockney.units import format_ns


def show_validation(
    store: Path | None, reference: str | None, transports: Sequence[str], time_s: float | None, *, as_json: bool
) -> int:
    """Validate a stored run, or without one measure it first; returns the exit code. Raises UsageError, StoreError."""
    if reference is not None:
        if time_s is not None:
            raise UsageError("--validate --from measures nothing: leave out --time")
        with open_results(store) as results:
            return _show(results.run(reference), transports, as_json=as_json)
    # The basic figures and the points that check a fit, in one suite: both then see the same machine.
    basics, checks = load_suite("basics"), load_suite("validate")
    both = {"series": (*basics.series, *checks.series), "time_s": basics.time_s + checks.time_s}
    suite, asked = checks.model_copy(update=both), RunOptions(transports=tuple(transports), time_s=time_s)
    with measuring(store, create=True, quiet=False, words=transport_words(suite, asked)) as (catalogue, results, bar):
        plan = make_plan(suite, asked, catalogue)
        outcome = running.measure(plan, catalogue, results, bar, command=command_line("predict"))
        bar.close()
        return _show(Run(results, outcome.run_id), (), as_json=as_json)


def _show(run: Run, transports: Sequence[str], *, as_json: bool) -> int:
    fits = [fit_to_check(run, name) for name in transports_of(run, transports)]
    with contextlib.closing(ProgressDisplay()) as display:
        done = [
            validate(run, fit, tick=display.simulating(fit.transport, len(fit.figures.others)))
            for fit in fits
            if not isinstance(fit, NoFit)
        ]
    if not any(each.rows or each.missing for each in done):
        reason = next((fit.reason for fit in fits if isinstance(fit, NoFit)), "it has no transport")
        reason = "it has no figures besides those that the fit uses" if done else reason
        raise HockneyError(
            f"run {run.id} cannot be validated: {reason}. Measure a new run", argv=("hockney", "predict", "--validate")
        )
    if as_json:
        render.print_json("predict", {"run": run.id, "validation": [_json(each) for each in done]})
    else:
        _print(run, done)
    return ExitCode.DONE if any(each.rows for each in done) else ExitCode.INCOMPLETE


def _print(run: Run, done: Sequence[Validation]) -> None:
    render.title(f"Predictions from the basic figures of run {run.id}, next to its other figures", first=True)
    columns: dict[TableColumn, Callable[[Checked], str]] = {
        WHAT[0]: lambda row: row.point.text(),
        WHAT[1]: lambda row: size_text(row.point),
        TableColumn("predicted", right=True): lambda row: format_ns(row.predicted_ns),
        TableColumn("measured", right=True): lambda row: format_ns(row.measured_ns.value),
        TableColumn("error", right=True): lambda row: f"{row.error:+.1%}",
    }
    for each in done:
        render.title(f"{each.transport}{f', {each.state}' if each.state else ''}")
        render.records(columns, each.rows)
        print_missing(each.missing)
    render.title("Size of the errors")
    rows = [[each.transport, *error_cells(each)] for each in done]
    render.table([TableColumn("transport", key=True), *(TableColumn(name, right=True) for name in ERROR_COLUMNS)], rows)


def _json(each: Validation) -> dict[str, Any]:
    return {
        "transport": each.transport,
        "state": each.state,
        "median_error": each.median_error,
        "within_10_percent": each.share_within(0.10),
        "within_25_percent": each.share_within(0.25),
        "points": [{**vars(row), "measured_ns": row.measured_ns.value, "error": row.error} for row in each.rows],
    }
