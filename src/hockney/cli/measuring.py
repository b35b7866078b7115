"""What `quick` and `run` have in common: measure with a display, then show the figures and how the run ended."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from hockney.cli import render
from hockney.cli.common import check_label, refuse_output
from hockney.cli.export import written
from hockney.cli.figures import groups_of, print_run, print_run_by_size
from hockney.cli.progress import Display
from hockney.cli.rerun import typed
from hockney.cli.show import run_as_json
from hockney.cli.streams import remark
from hockney.cli.tables import Tables, print_tables, tables_as_json, tables_of
from hockney.errors import ExitCode
from hockney.measure import run as running
from hockney.measure.plan import RunOptions, make_plan, transport_words
from hockney.measure.recorder import RunOutcome
from hockney.model import PointStatus, RunStatus
from hockney.report.sheet import Sheet
from hockney.results.export import write_csv
from hockney.results.runs import Run
from hockney.results.store import Store, default_path
from hockney.stats import MIXED
from hockney.suites import Suite
from hockney.units import counted, format_duration_s, percent_digits
from hockney.worker.catalogue import Catalogue, load


@dataclass(frozen=True)
class Output:
    """How a run is shown: as JSON, without progress, and in which CSV file too."""

    as_json: bool
    quiet: bool = False
    csv: Path | None = None
    verbose: bool = False


def measure_and_show(
    command: str, suite: Suite, asked: RunOptions, output: Output, *, store: Path | None, label: str | None
) -> int:
    """Measure a suite and show the result; returns the exit code.

    `quick` prints the data sheet, the suite of a report its tables, all pairs of ranks their matrix. Other suites print
    a column for each transport, or all series of one transport. Raises UsageError for unknown words before anything is
    measured; StoreError, BuildError.
    """

    def begin(catalogue: Catalogue, results: Store, display: Display) -> RunOutcome:
        plan = make_plan(suite, asked, catalogue)
        return running.measure(plan, catalogue, results, display, command=command_line(command), label=label)

    check_label(label)
    return _carry_out(command, begin, store, output, create=True, words=transport_words(suite, asked))


def resume_and_show(command: str, reference: str, output: Output, *, store: Path | None) -> int:
    """Continue a stored run. Raises as measure_and_show."""

    def begin(catalogue: Catalogue, results: Store, display: Display) -> RunOutcome:
        return running.resume(reference, catalogue, results, display)

    return _carry_out(command, begin, store, output, create=False)


def _carry_out(
    command: str,
    begin: Callable[[Catalogue, Store, Display], RunOutcome],
    store: Path | None,
    output: Output,
    *,
    create: bool,
    words: Sequence[str] | None = None,
) -> int:
    if output.csv is not None:
        refuse_output("--csv", output.csv, [store or default_path()])
    with measuring(store, create=create, quiet=output.quiet, words=words) as (catalogue, results, display):
        outcome = begin(catalogue, results, display)
        display.close()  # before anything is shown
        run = Run(results, outcome.run_id)
        is_kept = results.is_in_place()
        tables = tables_of(run)
        is_empty = isinstance(tables, Sheet) and not tables.rows
        is_done = outcome.status is RunStatus.DONE and is_kept and not is_empty
        if output.as_json:
            document = {
                "run": outcome.run_id,
                "status": outcome.status.value,
                "failed_points": outcome.failed,
                "store": str(results.path) if is_kept else None,
                **run_as_json(run),
                **tables_as_json(tables),
                "missing": [asdict(missing) for missing in catalogue.missing],
            }
            render.print_json(command, document)
        else:
            _print(run, tables, catalogue, verbose=output.verbose)
        if not is_kept:
            remark(
                f"\nhockney: the results file {results.path} was removed, moved or replaced during this run, and run "
                f"{outcome.run_id} with it; name where it is now with --store, or measure again"
            )
        elif not (output.quiet and is_done):
            for line in _ending(outcome, results, is_empty=is_empty):
                remark(f"\n{line}")
        if output.csv is not None:
            with written(output.csv) as stream:
                write_csv(results, outcome.run_id, stream)
    return ExitCode.DONE if is_done else ExitCode.INCOMPLETE


def _print(run: Run, tables: Tables, catalogue: Catalogue, *, verbose: bool) -> None:
    if tables:
        print_tables(tables, run, catalogue.missing, verbose=verbose)
        if isinstance(tables, Sheet):
            return
        render.limits(run.warnings)
    elif any(len(group) > 1 for group in groups_of(run.series)):
        print_run_by_size(run)
    else:
        print_run(run)
        return
    render.say()
    render.say(f"All figures, and the reasons of failed and skipped points: {typed('show', run.id)}")


@contextlib.contextmanager
def measuring(
    store: Path | None, *, create: bool, quiet: bool = False, words: Sequence[str] | None = None
) -> Iterator[tuple[Catalogue, Store, Display]]:
    """All that measuring needs; SIGTERM acts like Ctrl-C, and the display is closed at the end.

    `words` name the transports that are wanted, None all.
    """
    catalogue = load(words)
    display = Display(quiet=quiet)
    with Store.open(store, create=create) as results, _stop_on_sigterm(), contextlib.closing(display):
        try:
            yield catalogue, results, display
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(display.kept()) from interrupt


def _ending(outcome: RunOutcome, results: Store, *, is_empty: bool) -> Iterator[str]:
    """The lines on standard error below the result: where the time went, and what to do next."""
    time_line = _time_text(outcome, results)
    if time_line is not None:
        yield time_line
    run_id = outcome.run_id
    parts = [f"Saved as run {run_id} in {results.path}"]
    if outcome.status is RunStatus.INTERRUPTED:
        parts.append(f"it was stopped early: {typed('run', '--resume', run_id)} goes on with it")
    elif outcome.status is RunStatus.PARTIAL and not outcome.failed:
        parts.append(f"nothing could be measured; {typed('show', run_id)} shows why")
    elif outcome.status is RunStatus.PARTIAL:
        before = f", {outcome.failed_before} of them before it was resumed" if outcome.failed_before else ""
        parts.append(f"{counted(outcome.failed, 'point')} failed{before}: {typed('show', run_id)} shows why")
        if outcome.failed_before:
            parts.append("only a new run tries them again")
        if not any(measurement.samples for measurement in results.summaries(run_id)):
            parts.append("nothing was measured")
    elif not is_empty:
        commands = typed("explain", run_id), typed("show", run_id, "--plot"), typed("show", run_id, "--states")
        parts.append(f"next: {' · '.join(commands)}")
    yield "; ".join(parts)


def _time_text(outcome: RunOutcome, results: Store) -> str | None:
    """Where the time went, in a run of which some points did not reach the precision; None where all did."""
    points = [row for row in results.points(outcome.run_id) if row.status in (PointStatus.PRECISE, PointStatus.BUDGET)]
    missed = sum(row.status is PointStatus.BUDGET for row in points)
    if not missed or not outcome.spent_s:
        return None
    spent = ", ".join(f"{format_duration_s(seconds)} {what}" for what, seconds in outcome.spent_s.items() if seconds)
    states = [state for _, state in results.summaries_with_states(outcome.run_id)]
    contended = sum(bool(state.contended) or state == MIXED for state in states) / len(states)
    precision = percent_digits(results.run(outcome.run_id).info.plan["precision"])
    return (
        f"Time: {spent}. {missed} of {counted(len(points), 'point')} did not reach {precision} %; "
        f"{100 * contended:.0f} % of the measurements were contended."
    )


def command_line(command: str) -> str:
    """What is stored as the command that made a run."""
    arguments = sys.argv[1:] if command in sys.argv else [command]
    return shlex.join(["hockney", *arguments])


@contextlib.contextmanager
def _stop_on_sigterm() -> Iterator[None]:
    """SIGTERM and SIGHUP act like Ctrl-C: all measurements made are stored."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # nohup lets SIGHUP be ignored, and it stays ignored.
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
