"""`hockney predict --validate`: predictions from a run, next to its measurements."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from hockney.cli.measuring import command_line, measuring
from hockney.cli.predicted import transports_of
from hockney.cli.progress import ProgressDisplay
from hockney.errors import ExitCode, HockneyError, UsageError
from hockney.measure import run as running
from hockney.measure.plan import make_plan
from hockney.measure.predict import fit_to_check, validate
from hockney.render.json import print_json
from hockney.render.text import show
from hockney.report.documents.prediction import validation_document, validation_json
from hockney.results.runs import Run, open_results
from hockney.stats.fit import NoFit
from hockney.suites import load_suite
from hockney.worker.points import RunOptions, transport_words


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
    suite = checks.model_copy(update=both)
    asked = RunOptions(tuple(transports), limits=suite.limits(time_s=time_s))

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
        print_json("predict", {"run": run.id, "validation": list(map(validation_json, done))})
    else:
        show(validation_document(run, done))
    return ExitCode.DONE if any(each.rows for each in done) else ExitCode.INCOMPLETE
