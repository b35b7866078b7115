"""The common part of `quick` and `run`: measures with a display, then shows the figures and the outcome."""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hockney.analysis.repeat import further
from hockney.cli.common import refuse_output
from hockney.cli.export import written
from hockney.cli.progress import ProgressDisplay
from hockney.cli.report import form_of, write_report
from hockney.cli.show import run_as_json
from hockney.errors import ExitCode, UsageError
from hockney.measure import run as running
from hockney.measure.plan import Plan, planned, refuse_empty
from hockney.measure.recorder import Lab, RunOutcome
from hockney.model import PointStatus, RunStatus
from hockney.render.json import print_json
from hockney.render.streams import remark
from hockney.render.terminal import wrapped
from hockney.render.text import show
from hockney.report.commands import typed
from hockney.report.document import Document, Sentence
from hockney.report.documents.figures import by_size_document, groups_of, plots_of, run_document
from hockney.report.documents.plan import plan_document
from hockney.report.documents.sheet import missing_text
from hockney.report.documents.tables import Tables, tables_document, tables_json, tables_of
from hockney.report.notes import fixed, is_unreached
from hockney.report.words import percent_text, precision_reached
from hockney.results.export import write_csv
from hockney.results.runs import Results, Run
from hockney.results.store import Store, default_path
from hockney.suites import Suite
from hockney.units import counted, percent_digits
from hockney.worker.catalogue import Catalogue, load, matches
from hockney.worker.points import RunOptions


@dataclass(frozen=True)
class OutputOptions:
    """Where the results of a command go, and how they are shown: as JSON, and in a CSV file and a report too."""

    command: str
    store: Path | None
    as_json: bool
    quiet: bool = False
    csv: Path | None = None
    report: Path | None = None
    verbose: bool = False

    def refuse(self) -> None:
        """Raises UsageError for a file that cannot be written."""
        for option, path in (("--csv", self.csv), ("--report", self.report)):
            if path is not None:
                refuse_output(option, path, [self.store or default_path()])
        if self.report is not None and form_of(self.report) in ("svg", "png"):
            raise UsageError(f"{self.report}: charts are of a stored run; write them with {typed('report', '--help')}")


def measure_and_show(suite: Suite, asked: RunOptions, output: OutputOptions, *, label: str | None = None) -> int:
    """Measure a suite and show the result; returns the exit code.

    `quick` prints the data sheet, the suite of a report its tables, all pairs of ranks their matrix. Other suites print
    a column for each transport, or all series of one transport. Raises UsageError for unknown words before anything is
    measured; StoreError, BuildError.
    """
    output.refuse()
    plan, catalogue = planned(suite, asked)
    words = asked.transports  # mpi is every MPI
    if absent := [each for each in catalogue.missing if any(matches(word, each.name) for word in words)]:
        remark(missing_text(absent))
    with measuring(output.command, output.store, catalogue, quiet=output.quiet) as lab:
        return _show(running.measure(plan, lab, label=label), lab, output)


def resume_and_show(reference: str, output: OutputOptions) -> int:
    """Continue a stored run, "": the last unfinished, and show the result; returns the exit code. Raises as above."""
    output.refuse()
    with measuring(output.command, output.store, load(), create=False, quiet=output.quiet) as lab:
        return _show(running.resume(reference, lab), lab, output)


def show_plan(plan: Plan, *, as_json: bool, goal: str = "") -> int:
    """Print a plan; nothing is started or stored. Returns the exit code. Raises UsageError for an empty one."""
    refuse_empty(plan)
    if as_json:
        document = {
            "dry_run": True,
            "suite": plan.suite,
            "plan": plan.as_json(),
            "first_rounds_s": plan.first_rounds_s(),
            "points": plan.points,
            "skipped": plan.skipped,
        }
        print_json("run", document)
    else:
        show(plan_document(plan, goal))
    return ExitCode.DONE


def _show(outcome: RunOutcome, lab: Lab, output: OutputOptions) -> int:
    results, catalogue = lab.store, lab.catalogue
    run = Run(results, outcome.run_id)
    tables = tables_of(run)
    figures = tables.values.values if tables and tables.name == "sheet" else run.shown
    is_search = tables is not None and tables.name == "rates"
    is_empty = not (tables.values.has_result if tables and is_search else any(each.has_interval for each in figures))
    is_done = outcome.status is RunStatus.DONE and not is_empty
    if output.as_json:
        document = {
            "run": outcome.run_id,
            "failed_points": outcome.failed,
            "store": str(results.path),
            **run_as_json(run),
            **tables_json(tables),
            "missing": catalogue.missing,
        }
        print_json(output.command, document)
    else:
        show(_document(run, tables, catalogue, verbose=output.verbose or not results.is_unmoved))
    results.check_unmoved()
    if not (output.quiet and is_done):
        ending = wrapped(_ending(outcome, run, results.path, is_empty=is_empty, is_search=is_search), rest="  ")
        remark("\n".join(["", *ending]))
    if output.csv is not None:
        with written(output.csv) as stream:
            write_csv(run, stream)
    if output.report is not None:
        write_report(Results(results), [run], output.report, form_of(output.report))
    return ExitCode.DONE if is_done else ExitCode.INCOMPLETE


def _document(run: Run, tables: Tables | None, catalogue: Catalogue, *, verbose: bool) -> Document:
    if tables:
        document = tables_document(tables, run, catalogue.to_get(), verbose=verbose)
        if tables.kind.is_whole or tables.kind.in_full:  # it names the command for all figures itself
            return document
        blocks = document.blocks
    elif max(map(len, groups_of(run.series).values()), default=0) > 1 and not any(s.point.rate_hz for s in run.series):
        blocks = tuple(by_size_document(run, run.series, verbose=verbose))
    else:
        return Document(tuple(run_document(run, run.series, verbose=verbose)))
    more = f"All figures, and the reasons of failed and skipped points: {typed('show', run.id, '--all')}"
    return Document(blocks if verbose else (*blocks, Sentence(), Sentence(more)))


@contextlib.contextmanager
def measuring(
    command: str,
    store: Path | None,
    catalogue: Catalogue,
    *,
    create: bool = True,
    quiet: bool = False,
    make_display: type[ProgressDisplay] = ProgressDisplay,
) -> Iterator[Lab]:
    """All that measuring needs; the display is closed at the end."""
    display = make_display(quiet=quiet)
    with Store.open(store, create=create) as results, contextlib.closing(display):
        try:
            yield Lab(catalogue, results, display, command_line(command))
            results.check_unmoved()
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(display.kept()) from interrupt


def _ending(outcome: RunOutcome, run: Run, path: Path, *, is_empty: bool, is_search: bool) -> str:
    """The line on standard error below the result: whether the time was up, and the next commands."""
    run_id = outcome.run_id
    if outcome.status is RunStatus.STOPPED:
        more = f"; it was stopped early: {typed('run', '--resume', run_id)} continues"
    elif outcome.status is RunStatus.PARTIAL:
        what = f"{counted(outcome.failed, 'point')} failed" if outcome.failed else "nothing could be measured"
        more = f"; {what}: {typed('show', run_id, '--all')} shows why"
    elif is_empty:
        asked = percent_digits(run.info.plan["precision"])
        nothing = "no search has found its highest rate" if is_search else f"nothing is known to {asked} % yet"
        more = f"; {nothing}.{fixed(further(run))}"
    else:
        plot = [typed("show", run_id, "--plot")] if any(True for _ in plots_of(run, run.series)) else []
        commands = typed("explain", run_id), *plot, typed("show", run_id, "--states")
        more = f"; next: {' · '.join(commands)}"
    early = []
    if any(series.status is PointStatus.TIME_UP for series in run.series):
        reached = math.inf if is_search else precision_reached(run)
        early += ["time is up"] if outcome.status is not RunStatus.STOPPED else []
        early += [f"half of the figures are known to {percent_text(reached)}"] if reached < math.inf else []
        unreached = sum(map(is_unreached, run.series))
        more = f"; {unreached} of {counted(len(run.series), 'point')} not reached{more}" if unreached else more
    return f"Saved as run {run_id} in {path}{'; ' * bool(early)}{': '.join(early)}{more}"


def command_line(command: str) -> str:
    """The command line to store with a run."""
    arguments = sys.argv[1:] if command in sys.argv else [command]
    return shlex.join(["hockney", *arguments])
