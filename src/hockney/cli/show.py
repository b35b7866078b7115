"""`hockney show`: the figures of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hockney.analysis.repeat import LAUNCHES, more_launches, resume
from hockney.cli import complete, render
from hockney.cli.common import command, names, run_argument
from hockney.cli.curves import (
    SHORT_MARK,
    SHORT_NOTE,
    Curve,
    curves_of,
    definition_text,
    endings_of,
    figures_in,
    figures_in_or_most,
    format_interval,
    has_window,
    placement_text,
    precision_text,
    size_text,
    state_text,
    status_text,
    why_no_intervals,
)
from hockney.cli.render import Column
from hockney.cli.rerun import fix_text
from hockney.cli.times import local_time
from hockney.errors import UsageError, unknown
from hockney.model import RunStatus
from hockney.units import counted, format_messages, format_ns, format_rate

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series
    from hockney.stats import Figure


class _Row(NamedTuple):
    series: Series
    figure: Figure
    launches: int
    precision: float | None


@dataclass(frozen=True)
class _Column:
    """A column, its text, and in which tables it is: all, or only those of a stream or of several states."""

    column: Column
    text: Callable[[_Row], str]
    only: str = ""


_COLUMNS = (
    _Column(Column("size", right=True, key=True, style="bold"), lambda row: size_text(row.series.point)),
    _Column(Column("time", right=True), lambda row: format_ns(row.figure.value_ns) + SHORT_MARK * row.figure.is_short),
    _Column(Column("95 % interval", right=True), lambda row: format_interval(row.figure.low_ns, row.figure.high_ns)),
    _Column(Column("rate", right=True), lambda row: _known(row.figure.rate_bytes_per_s, format_rate)),
    _Column(Column("messages", right=True), lambda row: _known(row.figure.messages_per_s, format_messages), "stream"),
    _Column(Column("minimum", right=True, optional=True), lambda row: format_ns(row.figure.minimum_ns)),
    _Column(Column("state", key=True), lambda row: row.figure.state, "states"),
    _Column(Column("floor", right=True), lambda row: _known(row.figure.floor_ns, format_ns), "states"),
    _Column(Column("measurements", right=True, optional=True), lambda row: _measurements(row)),
    _Column(Column("status"), lambda row: status_text(row.series.status, row.figure, row.precision)),
)


def _measurements(row: _Row) -> str:
    return str(row.figure.n_measurements) + f" in {row.figure.n_launches}" * (row.launches > 1)


def _known(value: float | None, text: Callable[[float], str]) -> str:
    return "" if value is None else text(value)


@command(
    "show",
    example="""hockney show last
    hockney show last --tables
    hockney show 12 --pattern pingpong --transport mpi --plot""",
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
@click.option("--state", metavar="STATE", help="Only figures of this machine state.", shell_complete=complete.states)
@click.option("--states", is_flag=True, help="Figures of every machine state, one per row.")
@click.option("--by-size", is_flag=True, help="One row per size and one column per transport.")
@click.option("--plot", is_flag=True, help="Plot times and rates; with --tables: published figures and yours.")
@click.option("--tables", is_flag=True, help="The data sheet of quick, the tables of a classic report, or all pairs.")
@click.option("-v", "--verbose", is_flag=True, help="With --tables: also definitions, and every finding and caveat.")
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
    verbose: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Show the figures of a run.

    Figures are of one machine state: the uncontended one with most measurements. RUN is a number, a label, `last`
    (the default), or `last~1` for the run before.
    """
    from hockney.results.runs import open_results

    forms = {"--by-size": by_size, "--plot": plot and not tables, "--tables": tables}
    given = [name for name, is_given in forms.items() if is_given] + ["--json"] * (as_json and (plot or not tables))
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} are two forms of output: give one")
    with open_results(store) as results:
        run = results.run(reference)
        series = _select(run, pattern, transport)
        if state is not None:
            _refuse_unseen(state, series)
        if tables:
            if state is not None or len(series) < len(run.series):
                raise UsageError("tables are of a whole run: leave out --pattern, --transport and --state")
            _show_tables(run, every_state=states, as_json=as_json, verbose=verbose, plot=plot)
        elif as_json:
            render.print_json("show", run_as_json(run, series, state=state))
        elif by_size:
            print_run_by_size(run, series, state=state)
        elif plot:
            print_plots(run, series, state)
        else:
            print_run(run, series, every_state=states, state=state)


def _show_tables(run: Run, *, every_state: bool, as_json: bool, verbose: bool, plot: bool) -> None:
    from hockney.cli.tables import print_table_plots, print_tables, tables_as_json, tables_of
    from hockney.report.classic import classic_names

    tables = tables_of(run, every_state=every_state)
    if not tables:
        reports = ", ".join(classic_names())
        raise UsageError(
            f"run {run.id} is of {run.info.suite}, which has no tables; "
            f"these have: quick, {reports}, and allpairs on three ranks or more"
        )
    if as_json:
        render.print_json("show", {**run_as_json(run), **tables_as_json(tables)})
    elif plot:
        print_table_plots(tables)
    else:
        print_tables(tables, run, verbose=verbose)


def print_run(
    run: Run, series: Sequence[Series] | None = None, *, every_state: bool = False, state: str | None = None
) -> None:
    """Print the figures of these series (None: of all), in one state unless in `every_state`, and what has none."""
    from hockney.analysis.explain.pairs import why_no_matrix

    shown = run.series if series is None else series
    main = state or _main_state(run)
    if every_state or state is not None:
        figures = {one: figures_in(one, state) for one in shown}
    else:
        figures = {one: figures_in_or_most(one, main) for one in shown}
    curves = curves_of(run, shown, figures)
    _print_head(run, shown)
    if state is None and not every_state:
        _print_state(shown, main)
    asked = run.info.plan.get("precision")
    for curve in curves:
        _print_curve(curve, main if not every_state else "", asked)
    _print_notes(run, curves, asked)
    no_matrix = why_no_matrix((one.point.pattern, one.point.ranks) for one in shown)
    if no_matrix is not None:
        render.note(no_matrix)
    _print_endings(run, shown)


def print_run_by_size(run: Run, series: Sequence[Series] | None = None, *, state: str | None = None) -> None:
    """Print the times of these series (None: of all), a row per size and a column per transport."""
    from hockney.cli.by_size import print_by_size

    shown = run.series if series is None else series
    main = state or _main_state(run)
    _print_head(run, shown)
    if state is None:
        _print_state(shown, main)
    print_by_size(run, shown, main, is_asked=state is not None)
    _print_endings(run, shown)


def print_plots(run: Run, series: Sequence[Series], state: str | None = None) -> None:
    """Plot times and rates of curves with three sizes or more, the transports of a pattern in one plot."""
    from hockney.cli.by_size import groups_of, name_of
    from hockney.cli.plot import PlotCurve, print_plot
    from hockney.report.names import readable_names

    main = state or _main_state(run)
    transports = readable_names(run.launches.values())
    _print_head(run, series)
    _print_state(series, main)
    for group in groups_of(series):
        times, rates = [], []
        for transport, members in group.items():
            found = {one.point.bytes: figure for one in members for figure in figures_in(one, main)}
            if len(found) >= 3:
                sizes, figures = zip(*sorted(found.items(), key=lambda pair: pair[0]), strict=True)
                times.append(PlotCurve(transports[transport], sizes, [f.value_ns for f in figures]))
                rates.append(PlotCurve(transports[transport], sizes, [f.rate_bytes_per_s or 0 for f in figures]))
        name = name_of(next(iter(group.values()))[0].point)
        print_plot(f"Time of {name}", times, "ns")
        print_plot(f"Rate of {name}", rates, "bytes/s")


def _main_state(run: Run) -> str:
    from hockney.results.runs import table_state

    measured = [one for one in run.series if one.point.transport != "null"]
    return table_state(measured) or table_state(run.series) or ""


def _print_state(series: Iterable[Series], state: str) -> None:
    counts: Counter[str] = Counter()
    for one in series:
        if one.point.transport != "null":
            counts += one.measurements_by_state
    if counts:
        render.note(state_text(counts, state))


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
    from hockney.worker.catalogue import matches  # 25 ms

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


def _print_head(run: Run, shown: Iterable[Series]) -> None:
    info, facts = run.info, run.facts
    name = f"Run {run.id}" + (f" ({run.label})" if run.label else "")
    render.title(f"{name}: {info.suite}, {local_time(info.started_unix_s)}, {run.status.value}", first=True)
    model = facts.get("cpu", {}).get("model") or "unknown CPU"
    render.note(f"{facts.get('hostname') or 'unknown host'}: {model}; hockney {info.version}; {info.command}")
    transports = {one.point.transport for one in shown}
    libraries = {launch.transport: launch.library for launch in run.launches.values()}
    for transport, library in libraries.items():
        if transport in transports:
            render.note(f"{transport}: {library}")
    placement = placement_text(run)
    if placement:
        render.note(placement)
    if not run.series:  # of an earlier version: now a run is stored with its points
        render.note("It was stopped before its points were stored: begin a new one.", style="yellow")
    elif run.status is RunStatus.KILLED:
        fix = fix_text(resume(run.id, run.info))
        render.note(f"It was killed after {counted(run.rounds, 'round')}. {fix}.", style="yellow")
    why = why_no_intervals(run)
    if why:
        render.note(why, style="yellow")


def _print_curve(curve: Curve, state: str, asked_precision: float | None) -> None:
    """One table; with states where they are not all the one `state`."""
    kinds = {"", "stream" if has_window(curve.figures[0][0].point) else ""}
    # A rank alone has no floor, and so no state.
    kinds |= {"states"} if any(f.state != state and one.point.ranks > 1 for one, f in curve.figures) else set()
    columns = [column for column in _COLUMNS if column.only in kinds]
    rows = [_Row(series, figure, curve.launches, asked_precision) for series, figure in curve.figures]
    render.title(curve.name)
    render.table([column.column for column in columns], [[column.text(row) for column in columns] for row in rows])


def _print_notes(run: Run, curves: Sequence[Curve], asked_precision: float | None) -> None:
    """What holds for the tables above, each once: definitions, precision, and the meaning of marks."""
    pairs = [pair for curve in curves for pair in curve.figures]
    definitions: dict[str, str] = {}
    for series, figure in sorted(pairs, key=lambda pair: pair[0].point.bytes):  # 0 B has no rate
        over = {other.interval_over for one, other in pairs if one.point.pattern == series.point.pattern}
        definitions[series.point.pattern] = definition_text(figure.definition, over)
    if definitions:
        render.title("Times and rates")
    for text in dict.fromkeys(definitions.values()):
        patterns = [pattern for pattern, its in definitions.items() if its == text]
        render.note(f"{', '.join(patterns)}: {text}", style="dim")
    missed = precision_text((figure for _, figure in pairs), asked_precision)
    if missed:
        render.note(missed, style="dim")
    if any(figure.is_short for _, figure in pairs):
        render.note(SHORT_NOTE, style="yellow")
    if pairs and len({launch.index for launch in run.launches.values()}) == 1:
        fix = fix_text(more_launches(run.id, run.info, LAUNCHES))
        render.note(f"Intervals cover one launch only, not the variation between launches. {fix}.", style="dim")
    crowded = [curve.name for curve in curves if curve.oversubscribed]
    if crowded:
        more = f" and {len(crowded) - 1} more" if len(crowded) > 1 else ""
        render.note(f"More ranks than CPUs, so these are scheduling times: {crowded[0]}{more}.", style="yellow")


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
