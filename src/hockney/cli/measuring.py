"""What `quick` and `run` have in common: measure with a display, then show the figures and say how it ended."""

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
from hockney.cli.by_size import groups_of
from hockney.cli.common import refuse_loss, refuse_unwritable
from hockney.cli.export import written
from hockney.cli.labels import check_label, tell_of_label
from hockney.cli.progress import Display
from hockney.cli.show import print_run, print_run_by_size, run_as_json
from hockney.cli.streams import remark
from hockney.cli.tables import print_tables, tables_as_json, tables_of
from hockney.errors import ExitCode
from hockney.machine import usable_cpus
from hockney.machine.topology import read_topology
from hockney.measure import run as running
from hockney.measure.plan import Plan, RunOptions, make_plan, transport_words
from hockney.measure.run import Outcome
from hockney.model import PointStatus, RunStatus
from hockney.report.sheet import Sheet
from hockney.results.export import write_csv
from hockney.results.runs import Run
from hockney.results.store import Store, default_path
from hockney.stats import MIXED
from hockney.suites import Suite
from hockney.units import counted, format_duration_s, percent_digits
from hockney.worker import leftovers
from hockney.worker.catalogue import Catalogue, load


@dataclass(frozen=True)
class Output:
    """How a run is shown: as JSON, without progress, and in which CSV file too."""

    as_json: bool
    quiet: bool = False
    csv: Path | None = None


def measure_and_show(
    command: str, suite: Suite, wishes: RunOptions, output: Output, *, store: Path | None, label: str | None
) -> int:
    """Measure a suite and show what came out; gives the exit code.

    `quick` ends with the data sheet, a suite of a classic report with that report's tables, one of all pairs of ranks
    with their matrix. Others end with a column for each transport where there are several, else with all series.

    Raises UsageError for words that nothing here knows, before anything is measured; StoreError, BuildError.
    """

    def begin(catalogue: Catalogue, results: Store, display: Display) -> Outcome:
        plan = plan_here(suite, wishes, catalogue)
        tell_of_label(label, results, display)
        return running.measure(plan, catalogue, results, display, command=command_line(command), label=label)

    check_label(label)
    return _carry_out(command, begin, store, output, create=True, words=transport_words(suite, wishes))


def plan_here(suite: Suite, wishes: RunOptions, catalogue: Catalogue) -> Plan:
    """What would be measured on this machine."""
    return make_plan(suite, wishes, catalogue, len(usable_cpus()), lambda: read_topology().cache_sizes())


def resume_and_show(command: str, reference: str, output: Output, *, store: Path | None) -> int:
    """Go on with a stored run. Raises as measure_and_show."""

    def begin(catalogue: Catalogue, results: Store, display: Display) -> Outcome:
        run_id = results.find_run(reference)
        display.reads(run_id, results.run(run_id).rounds)
        return running.resume(str(run_id), catalogue, results, display)

    return _carry_out(command, begin, store, output, create=False)


def _carry_out(
    command: str,
    begin: Callable[[Catalogue, Store, Display], Outcome],
    store: Path | None,
    output: Output,
    *,
    create: bool,
    words: Sequence[str] | None = None,
) -> int:
    if output.csv is not None:
        refuse_unwritable(output.csv)
        refuse_loss("--csv", output.csv, [store or default_path()])
    with measuring(store, create=create, quiet=output.quiet, words=words) as (catalogue, results, display):
        outcome = begin(catalogue, results, display)
        display.close()  # before anything is shown
        run = Run(results, outcome.run_id)
        is_kept = results.is_in_place()
        tables = tables_of(run)
        if output.as_json:
            ending = _ending_json(outcome, results.path if is_kept else None)
            missing = [asdict(one) for one in catalogue.missing]
            render.print_json(command, {**ending, **run_as_json(run), **tables_as_json(tables), "missing": missing})
        elif tables:
            print_tables(tables, run, catalogue.missing)
            if not isinstance(tables, Sheet):
                render.limits(run.warnings)
                _say_more(run)
        elif any(len(group) > 1 for group in groups_of(run.series)):
            print_run_by_size(run)
            _say_more(run)
        else:
            print_run(run)
        is_empty = isinstance(tables, Sheet) and not tables.rows
        is_done = outcome.status is RunStatus.DONE and is_kept and not is_empty
        if not is_kept:
            _say_lost(outcome, results.path)
        elif not (output.quiet and is_done):
            _say_ending(outcome, results, is_empty=is_empty)
        if output.csv is not None:
            with written(output.csv) as stream:
                write_csv(results, outcome.run_id, stream)
    return ExitCode.DONE if is_done else ExitCode.INCOMPLETE


@contextlib.contextmanager
def measuring(
    store: Path | None, *, create: bool, quiet: bool = False, words: Sequence[str] | None = None
) -> Iterator[tuple[Catalogue, Store, Display]]:
    """All that measuring needs; a polite kill is taken like Ctrl-C, and the display is closed at the end.

    `words` name the transports that are wanted, None all.
    """
    leftovers.remove_recorded()
    catalogue = load(words)
    display = Display(quiet=quiet)
    with Store.open(store, create=create) as results, _stop_on_sigterm(), contextlib.closing(display):
        try:
            yield catalogue, results, display
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(display.kept()) from interrupt


def _say_more(run: Run) -> None:
    """Below tables: where all the figures are."""
    render.say()
    render.say(f"`hockney show {run.id}` has every figure, with what failed or was skipped and why")


def _ending_json(outcome: Outcome, path: Path | None) -> dict[str, object]:
    return {
        "run": outcome.run_id,
        "status": outcome.status.value,
        "failed_points": outcome.failed,
        "store": None if path is None else str(path),
    }


def _say_lost(outcome: Outcome, path: Path) -> None:
    remark(
        f"\nhockney: the results file {path} is no longer there, and with it run {outcome.run_id}: it was removed, "
        "moved or replaced while this run was measured; name the one it was moved to with --store, or measure again"
    )


def _say_ending(outcome: Outcome, results: Store, *, is_empty: bool) -> None:
    """On standard error: what is on standard output is the result alone."""
    path = results.path
    time_line = _time_text(outcome, results)
    if time_line is not None:
        remark(f"\n{time_line}")
    words = [f"run {outcome.run_id} is stored in {path}"]
    if outcome.status is RunStatus.INTERRUPTED:
        words.append(f"it was stopped early: `hockney run --resume {outcome.run_id}` goes on with it")
    elif outcome.status is RunStatus.PARTIAL and not outcome.failed:
        words.append(f"nothing could be measured; `hockney show {outcome.run_id}` says why")
    elif outcome.status is RunStatus.PARTIAL:
        measured = any(measurement.samples for measurement in results.summaries(outcome.run_id))
        words.append(f"{counted(outcome.failed, 'point')} failed, as `hockney show {outcome.run_id}` says")
        if outcome.failed_before:
            before = f"{outcome.failed_before} before it was resumed"
            words.append(f"{before}, which does not try again what failed: a new run does")
        words.append(f"{'all else that can be measured here was' if measured else 'nothing was measured'}")
    elif not is_empty:
        words.append(f"`hockney explain {outcome.run_id}` says what it shows")
    remark(f"\n{'; '.join(words)}")


def _time_text(outcome: Outcome, results: Store) -> str | None:
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
    """A polite kill, or a terminal that goes away, is taken like Ctrl-C: what was measured is stored."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # Under nohup a hang-up is ignored, and stays so.
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
