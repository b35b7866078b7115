"""`hockney show`: the figures of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli.common import command, complete, file_option, names, transports_option
from hockney.errors import UsageError, unknown
from hockney.render.json import print_json
from hockney.results.export import launches_json, series_json
from hockney.results.runs import Run, Series, open_results
from hockney.stats.states import state_name

if TYPE_CHECKING:
    from hockney.report.document import Block
    from hockney.report.documents.tables import Tables


@command(
    "show",
    example="""hockney show last
    hockney show last --all
    hockney show 12 --pattern pingpong --transport mpi --plot""",
)
@click.argument("reference", metavar="[RUN]", default="last", shell_complete=complete("run"))
@click.option(
    "--pattern", multiple=True, metavar="NAME,…", help="Only these patterns.", shell_complete=complete("pattern")
)
@transports_option(help="Only these transports, named as for `hockney run`: tcp, 'tcp*', mpi, mpi@openmpi …")
@click.option("--state", metavar="STATE", help="Only figures of this machine state.", shell_complete=complete("state"))
@click.option("--states", is_flag=True, help="Figures of every machine state, one per row.")
@click.option("--by-size", is_flag=True, help="One row per size and one column per transport.")
@click.option(
    "--plot", is_flag=True, help="Plot times, rates and CPU times; with --tables: published figures and yours."
)
@click.option("--tables", is_flag=True, help="Print the tables of the run's suite; an error if it has none.")
@click.option("--like", is_flag=True, help="Compare with the data sheets of machines that resemble this one.")
@file_option("--sheet", metavar="FILE.toml", help="With --like: also with this data sheet (of `hockney share`).")
@click.option("--all", "everything", is_flag=True, help="Every figure, in one table per curve.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print the CPU of each rank, clocks of hosts, and full caveats; with tables, definitions and parameters.",
)
def show(
    reference: str,
    pattern: tuple[str, ...],
    transport: tuple[str, ...],
    state: str | None,
    *,
    states: bool,
    by_size: bool,
    plot: bool,
    tables: bool,
    like: bool,
    sheet: Path | None,
    everything: bool,
    verbose: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Show the figures of a run.

    Shows the tables of its suite (data sheet, first page of a classic report, all pairs). With --all, a selection, or
    another suite, each curve has a table. Figures are of one machine state: the quiet one with most measurements, if it
    has enough. RUN is a number, a label, `last` (the default), or `last~1` for the run before.
    """
    from hockney.render.text import show as show_document  # 60 ms, as all below
    from hockney.report.documents.clocks import clocks_around_document
    from hockney.report.documents.figures import by_size_document, plots_document, run_document
    from hockney.report.documents.hosts import bindings
    from hockney.report.documents.tables import table_plots_document, tables_document, tables_json

    forms = {
        "--by-size": by_size,
        "--plot": plot and not tables,
        "--tables": tables,
        "--like": like or sheet is not None,
        "--all": everything and not as_json,
    }
    given = [name for name, is_given in forms.items() if is_given] + ["--json"] * (
        as_json and (plot or not tables) and not forms["--like"]
    )
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} are two forms of output: give one")
    with open_results(store) as results:
        run = results.run(reference)
        if forms["--like"]:
            _show_like(run, sheet, as_json=as_json)
            return
        series = select(run, pattern, transport)
        if state is not None:
            seen = {figure.state for member in series for figure in member.figures()}
            state = state_name(state)
            if state not in seen:
                raise unknown("state in this run", state, sorted(seen))
        selects = pattern or transport or state is not None
        known: Tables | None = None
        if tables:
            if state is not None or len(series) < len(run.series):
                raise UsageError("tables are of a whole run: leave out --pattern, --transport and --state")
            known = _tables(run, every_state=states)
        elif as_json and run.info.suite == "health" and not selects:
            known = _tables(run, every_state=False)
        if as_json:
            print_json("show", {**run_as_json(run, series, state=state), **tables_json(known)})
            return
        shown: Iterable[Block]
        if by_size:
            shown = by_size_document(run, series, state=state, verbose=verbose)
        elif plot:
            shown = table_plots_document(known) if known else plots_document(run, series, state)
        elif known or (known := None if everything or selects or states else _filled_tables(run)):
            shown = tables_document(known, run, verbose=verbose, everything=tables)
        else:
            above = _filled_tables(run) if everything and not selects else None
            whole = above.kind.in_full(above.values) if above and above.kind.in_full else ()
            shown = [*whole, *run_document(run, series, every_state=states, state=state, verbose=verbose)]
        show_document([*shown, *bindings(run), *clocks_around_document(run)] if verbose else shown)


def _show_like(run: Run, path: Path | None, *, as_json: bool) -> None:
    """The run among the data sheets of the archive and, if it is given, this one."""
    from hockney.render.text import show as show_document
    from hockney.report.likeness import like_document, like_json
    from hockney.results.sheets import read_sheet

    more = [] if path is None else [read_sheet(path)]
    if as_json:
        print_json("show", {**run_as_json(run), "like": like_json(run, more)})
    else:
        show_document(like_document(run, more))


def _filled_tables(run: Run) -> Tables | None:
    """The tables of the run's suite; none where there is nothing to put on its sheet."""
    from hockney.report.documents.tables import tables_of

    tables = tables_of(run)
    return None if tables and tables.name == "sheet" and not tables.values.rows else tables


def _tables(run: Run, *, every_state: bool) -> Tables:
    """The tables of the run's suite. Raises UsageError where it has none."""
    from hockney.archive import reports
    from hockney.report.documents.tables import tables_of

    tables = tables_of(run, every_state=every_state)
    if not tables:
        raise UsageError(
            f"run {run.id} is of {run.info.suite}, which has no tables; these have: quick, {', '.join(reports())}, "
            "allpairs on three ranks or more, and a search of the highest rate"
        )
    return tables


def run_as_json(run: Run, series: Sequence[Series] | None = None, *, state: str | None = None) -> dict[str, Any]:
    """Everything known about a run and these series (None: all) in a state, without the samples."""
    info = run.info
    shown = run.series if series is None else series
    return {
        "number": run.id,
        "label": run.label,
        "command": info.command,
        "suite": info.suite,
        "status": run.ending,
        "started_unix_s": info.started_unix_s,
        "finished_unix_s": run.finished_unix_s,
        "hockney": info.version,
        "seed": info.seed,
        "plan": info.plan,
        "facts": run.facts,
        "launches": launches_json(run),
        "warnings": run.warnings,
        "series": [
            series_json(member, member.figures() if state is None else member.figures_in(state)) for member in shown
        ],
    }


def select(run: Run, pattern: Sequence[str], transport: Sequence[str]) -> Sequence[Series]:
    """The series of these patterns on these transports, which are named as for `run`; none named: of all."""
    patterns, words = names("--pattern", pattern), names("--transport", transport)
    if not (patterns or words):
        return run.series
    from hockney.worker.catalogue import matches  # 25 ms

    known_patterns = dict.fromkeys(member.point.pattern for member in run.series)
    known_transports = dict.fromkeys(member.point.transport for member in run.series)
    for word in patterns:
        if word not in known_patterns:
            raise unknown("pattern in this run", word, known_patterns)
    for word in words:
        if not any(matches(word, name) for name in known_transports):
            raise unknown("transport in this run", word, known_transports)
    selected = [
        member
        for member in run.series
        if (not patterns or member.point.pattern in patterns)
        and (not words or any(matches(word, member.point.transport) for word in words))
    ]
    if not selected and run.series:
        raise UsageError(f"run {run.id} has no {' or '.join(patterns)} on {' or '.join(words)}")
    return selected
