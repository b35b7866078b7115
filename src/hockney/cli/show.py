"""`hockney show`: the figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.common import command, names, run_argument
from hockney.cli.curves import (
    SHORT_NOTE,
    Curve,
    curves_of,
    definition_text,
    endings_of,
    figure_row,
    figures_in,
    has_window,
    placement_text,
    precision_text,
    why_no_intervals,
)
from hockney.cli.render import Column
from hockney.cli.rerun import going_on
from hockney.cli.times import local_time
from hockney.errors import UsageError, unknown
from hockney.model import RunStatus
from hockney.units import counted

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series

_COLUMNS: list[Column | str] = [
    Column("size", right=True, key=True, style="bold"), Column("time", right=True), Column("95 % interval", right=True),
    Column("rate", right=True), Column("minimum", right=True, optional=True), Column("state", key=True),
    Column("floor", right=True), Column("measurements", right=True, optional=True), "status",
]  # fmt: skip


@command(
    "show",
    example="""hockney show last
    hockney show last --tables
    hockney show 12 --pattern pingpong --transport mpi""",
)
@run_argument
@click.option(
    "--pattern", multiple=True, metavar="NAME,…", help="Only these patterns.", shell_complete=complete.patterns
)
@click.option(
    "-t",
    "--transport",
    multiple=True,
    metavar="NAME,…",
    help="Only these transports, named as for `hockney run`: tcp, 'tcp*', mpi, mpi@openmpi …",
    shell_complete=complete.transports,
)
@click.option("--state", metavar="STATE", help="Only figures of this state.", shell_complete=complete.states)
@click.option(
    "--by-size", is_flag=True, help="One row for each size and one column for each transport, in one machine state."
)
@click.option("--states", is_flag=True, help="Also figures with too few measurements in their state.")
@click.option(
    "--tables",
    is_flag=True,
    help="The data sheet of quick, the tables of the classic report that the suite is of, or the matrix of all pairs.",
)
def show(
    reference: str,
    pattern: tuple[str, ...],
    transport: tuple[str, ...],
    state: str | None,
    by_size: bool,
    states: bool,
    tables: bool,
    *,
    as_json: bool,
    store: Path | None,
) -> None:
    """Show the figures of a run.

    Each with its interval, the state of the machine it holds for, and the floor then; below them what failed or was
    skipped, with the reason. With --tables, a run of quick is shown as its data sheet, one of atlas, scabench, t3d,
    ancor or paragon as the tables of that report, beside the published figures, and one of allpairs as the matrix of
    its pairs. RUN is a number, a label, `last` (if none is named), or `last~1` for the one before.
    """
    from hockney.results.runs import open_results

    with open_results(store) as results:
        run = results.run(reference)
        series = _select(run, pattern, transport)
        if by_size and (tables or as_json):
            raise UsageError(f"--by-size and {'--tables' if tables else '--json'} are two forms of output: give one")
        if state is not None:
            _refuse_unseen(state, series)
        if tables:
            if state is not None or len(series) < len(run.series):
                raise UsageError("tables are of a whole run: leave out --pattern, --transport and --state")
            _show_tables(run, as_json=as_json)
        elif as_json:
            render.print_json("show", run_as_json(run, series, state=state))
        elif by_size:
            print_run_by_size(run, series, state=state)
        else:
            print_run(run, series, every_state=states, state=state)


def _show_tables(run: Run, *, as_json: bool) -> None:
    from hockney.cli.tables import print_tables, tables_as_json, tables_of
    from hockney.report.classic import classic_names

    tables = tables_of(run)
    if not tables:
        names = ", ".join(classic_names())
        raise UsageError(
            f"run {run.id} is of {run.info.suite}, which has no data sheet, no report's tables and no matrix of pairs; "
            f"these have: quick, {names}, and allpairs on three ranks or more"
        )
    if as_json:
        render.print_json("show", {**run_as_json(run), **tables_as_json(tables)})
    else:
        print_tables(tables, run)


def print_run(
    run: Run, series: Sequence[Series] | None = None, *, every_state: bool = False, state: str | None = None
) -> None:
    """The figures of these series (None: of all) in a state (None: in each), what has none and why, and warnings."""
    from hockney.analysis.explain.pairs import why_no_matrix

    shown = run.series if series is None else series
    curves = curves_of(shown, run.launches.values(), every_state=every_state, state=state)
    _print_head(run, has_figures=bool(curves))
    for curve in curves:
        _print_curve(curve, run.info.plan.get("precision"))
    no_matrix = why_no_matrix((one.point.pattern, one.point.ranks) for one in shown)
    if no_matrix is not None:
        render.say()
        render.note(no_matrix)
    _print_endings(run, shown)


def print_run_by_size(run: Run, series: Sequence[Series] | None = None, *, state: str | None = None) -> None:
    """The times of these series (None: of all) with a row for each size and a column for each transport."""
    from hockney.cli.by_size import print_by_size

    shown = run.series if series is None else series
    _print_head(run, has_figures=any(one.measurements for one in shown))
    print_by_size(shown, state)
    _print_endings(run, shown)


def _print_endings(run: Run, shown: Sequence[Series]) -> None:
    """What has no figure and why, and warnings."""
    endings = endings_of(shown, stopped=run.status is RunStatus.INTERRUPTED)
    if endings:
        render.title("Failed, skipped, not reached")
        render.table([Column("what", wrap=True), "status", Column("why", wrap=True)], endings, fits=True)
    render.limits(run.warnings)


def run_as_json(run: Run, series: Sequence[Series] | None = None, *, state: str | None = None) -> dict[str, Any]:
    """All that is known of a run and of these series (None: of all) in a state, but for the samples."""
    from hockney.results.export import series_json

    shown = run.series if series is None else series
    return {**_run_json(run), "series": [series_json(one, figures_in(one, state)) for one in shown]}


def _select(run: Run, pattern: Sequence[str], transport: Sequence[str]) -> Sequence[Series]:
    """The series of these patterns on these transports, which are named as for `run`; none named: of all."""
    patterns = _meant("pattern", names("--pattern", pattern), (one.point.pattern for one in run.series), str.__eq__)
    words = names("--transport", transport)
    transports = _meant("transport", words, (one.point.transport for one in run.series), _names_transport)
    found = [one for one in run.series if one.point.pattern in patterns and one.point.transport in transports]
    if not found and run.series:
        raise UsageError(f"run {run.id} has no {' or '.join(patterns)} on {' or '.join(transports)}")
    return found


def _names_transport(word: str, name: str) -> bool:
    from hockney.worker.catalogue import matches  # 25 ms, and only who names one waits for it

    return matches(word, name)


def _meant(kind: str, words: Sequence[str], there: Iterable[str], matches: Callable[[str, str], bool]) -> list[str]:
    """The names there that words mean; without any word all. Raises UsageError for a word that means none."""
    known = list(dict.fromkeys(there))
    for word in words:
        if not any(matches(word, name) for name in known):
            raise unknown(f"{kind} in this run", word, known)
    return [name for name in known if not words or any(matches(word, name) for word in words)]


def _refuse_unseen(state: str, series: Sequence[Series]) -> None:
    """Raises UsageError for a state in which none of these has a figure."""
    seen = dict.fromkeys(figure.state for one in series for figure in one.figures())
    if state not in seen:
        raise UsageError(f"no figure of state '{state}': there are {'; '.join(sorted(seen)) or 'none of any state'}")


def _print_head(run: Run, *, has_figures: bool) -> None:
    from hockney.analysis.explain.curve import started_once

    info, facts = run.info, run.facts
    name = f"Run {run.id}" + (f" ({run.label})" if run.label else "")
    render.title(f"{name}: {info.suite}, {local_time(info.started_unix_s)}, {run.status.value}", first=True)
    model = facts.get("cpu", {}).get("model") or "unknown CPU"
    render.note(f"{facts.get('hostname') or 'unknown host'}: {model}; hockney {info.version}; {info.command}")
    libraries = {launch.transport: launch.library for launch in run.launches.values()}
    for transport, library in libraries.items():
        render.note(f"{transport}: {library}")
    placement = placement_text(run)
    if placement:
        render.note(placement)
    if not run.series:  # of an earlier version: now a run is stored with its points
        render.note("It was stopped before its points were stored: begin a new one.", style="yellow")
    elif run.status is RunStatus.KILLED:
        render.note(
            f"It was killed after {counted(run.rounds, 'round')}; {going_on(run.id, run.facts)} goes on with it.",
            style="yellow",
        )
    why = why_no_intervals(run)
    once = started_once(run)
    if why:
        render.note(why, style="yellow")
    elif once and has_figures:
        render.note(once, style="dim")


def _print_curve(curve: Curve, asked_precision: float | None) -> None:
    render.title(curve.name)
    rows = [figure_row(series, figure, curve.launches, asked_precision) for series, figure in curve.figures]
    with_messages = [*_COLUMNS[:4], Column("messages", right=True), *_COLUMNS[4:]]
    render.table(with_messages if has_window(curve.figures[0][0].point) else _COLUMNS, rows)
    over = {figure.interval_over for _, figure in curve.figures}
    texts = {definition_text(figure.definition, over) for _, figure in curve.figures}
    for text in sorted(texts):
        # A size of 0 B has no rate: what is said of its time is said with the others'.
        if not any(other.startswith(text) and other != text for other in texts):
            render.note(text, style="dim")
    missed = precision_text((figure for _, figure in curve.figures), asked_precision)
    if missed:
        render.note(missed, style="dim")
    if curve.hidden:
        render.note(
            f"Left out: {curve.hidden} with too few measurements in their state; --states shows them.", style="dim"
        )
    if any(figure.is_short for _, figure in curve.figures):
        render.note(SHORT_NOTE, style="yellow")
    if curve.oversubscribed:
        render.note("There were more ranks than CPUs: these are scheduling times.", style="yellow")


def _run_json(run: Run) -> dict[str, Any]:
    from hockney.results.export import launch_json

    info = run.info
    return {
        "number": run.id,
        "label": run.label,
        "command": info.command,
        "suite": info.suite,
        "status": run.status.value,
        "started_unix_s": info.started_unix_s,
        "finished_unix_s": run.finished_unix_s,
        "hockney": info.version,
        "seed": info.seed,
        "plan": info.plan,
        "facts": run.facts,
        "launches": [launch_json(number, launch) for number, launch in run.launches.items()],
        "warnings": [render.warning_json(warning) for warning in run.warnings],
    }
