"""The figures of a run as tables of one curve each, as one table of several transports by size, or as plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from hockney.analysis.repeat import LAUNCHES_WANTED, more_launches, resume
from hockney.cli import render
from hockney.cli.plot import print_plot
from hockney.cli.render import TableColumn, local_time
from hockney.cli.rerun import fix_text
from hockney.cli.words import (
    SHORT_NOTE,
    ending_text,
    endings_of,
    format_interval,
    known_text,
    launches_advice,
    print_caveats,
    say_one_launch,
    state_text,
    status_text,
)
from hockney.model import Point, PointStatus, RunStatus, curve_of
from hockney.report.names import readable_names
from hockney.report.words import SHORT_MARK, figure_text, launches_text, placement_text, size_text
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.stats import EXACT, UNKNOWN, Estimate, rate_per_s
from hockney.units import counted, format_messages, format_ns, format_rate


class _Row(NamedTuple):
    series: Series
    figure: Figure
    precision: float | None  # the precision that was asked for


def _measurements(row: _Row) -> str:
    in_launches = f" in {row.figure.n_launches}" if len(row.series.launches) > 1 else ""
    return f"{row.figure.n_measurements}{in_launches}"


_Value = tuple[Callable[[Figure], Estimate | None], Callable[[float], str]]  # of a figure, and its text
_TIME: _Value = (lambda figure: figure.time, format_ns)
_RATES: dict[str, _Value] = {
    "events": (lambda figure: rate_per_s(1.0, figure.time), format_messages),
    "rate": (lambda figure: figure.bytes_per_s, format_rate),
    "messages": (lambda figure: figure.messages_per_s, format_messages),
}


def _rate_text(name: str, figure: Figure) -> str:
    of, text = _RATES[name]
    rate = of(figure)
    return "" if rate is None else text(rate.value)


# In which tables a column is: all, or only those of a stream, of several states, of events, of events on schedule, or
# of those without a schedule ("free").
_COLUMNS: tuple[tuple[str, TableColumn, Callable[[_Row], str]], ...] = (
    ("", TableColumn("size", right=True, key=True, style="bold"), lambda row: size_text(row.series.point)),
    (
        "",
        TableColumn("time", right=True),
        lambda row: format_ns(row.figure.time.value) + SHORT_MARK * row.figure.is_short,
    ),
    (
        "",
        TableColumn("95 % interval", right=True),
        lambda row: format_interval(row.figure.time, is_range=row.figure.is_range),
    ),
    ("events", TableColumn("events", right=True), lambda row: _rate_text("events", row.figure)),
    ("free", TableColumn("rate", right=True), lambda row: _rate_text("rate", row.figure)),
    ("stream", TableColumn("messages", right=True), lambda row: _rate_text("messages", row.figure)),
    ("", TableColumn("minimum", right=True, optional=True), lambda row: known_text(row.figure.minimum_ns, format_ns)),
    ("schedule", TableColumn("p99", right=True), lambda row: known_text(row.figure.tails.p99_ns, format_ns)),
    ("schedule", TableColumn("p99.9", right=True), lambda row: known_text(row.figure.tails.p999_ns, format_ns)),
    ("states", TableColumn("state", key=True), lambda row: row.figure.state),
    ("states", TableColumn("floor", right=True), lambda row: known_text(row.figure.floor_ns, format_ns)),
    ("", TableColumn("measurements", right=True, optional=True), _measurements),
    ("", TableColumn("status"), lambda row: status_text(row.series.status, row.figure, row.precision)),
)


def figures_in(series: Series, state: str | None) -> list[Figure]:
    """The figure that tables show, or that of one machine state."""
    return [each for each in series.figures() if (each.is_shown if state is None else each.state == state)]


def groups_of(series: Iterable[Series]) -> list[dict[str, list[Series]]]:
    """The series of each pattern, number of ranks and options, by transport; without the harness itself."""
    groups: dict[tuple[object, ...], dict[str, list[Series]]] = {}
    for member in series:
        point = member.point
        if not member.is_harness:
            group = groups.setdefault((point.pattern, point.ranks, point.options), {})
            group.setdefault(point.transport, []).append(member)
    return list(groups.values())


# ---- a table for each curve -----------------------------------------------------------------------------------------


def print_run(
    run: Run,
    shown: Sequence[Series],
    *,
    every_state: bool = False,
    state: str | None = None,
    verbose: bool = False,
) -> None:
    """Print the figures of these series, in one state unless `every_state`, and the series without figures.

    `verbose`: caveats in full.
    """
    main = state or main_state_of(run.series)
    asked = run.info.plan.get("precision")
    curves: dict[object, list[_Row]] = {}
    for member in sorted(shown, key=lambda member: member.point.bytes):
        figures = member.figures() if every_state else figures_in(member, state)
        curves.setdefault(curve_of(member.point), []).extend(_Row(member, figure, asked) for figure in figures)
    tables = [curves[curve] for curve in dict.fromkeys(curve_of(member.point) for member in shown) if curves[curve]]
    rows = [row for table in tables for row in table]
    _print_head(run, shown, [row.figure for row in rows], None if every_state or state else main)
    names = readable_names(run.launches.values())
    for table in tables:
        _print_curve(table, names, None if every_state else main)
    _print_notes(run, rows)
    _print_endings(run, shown, verbose=verbose)


def _print_curve(rows: Sequence[_Row], names: Mapping[str, str], state: str | None) -> None:
    """One table; with states where they are not all the one `state`."""
    point = rows[0].series.point
    kinds = {"", "stream" if _has_window(point) else ""}
    kinds |= {"schedule"} if point.rate_hz else {"free", "events" if point.traits.events else ""}
    # A rank alone has no floor, and so no state.
    kinds |= {"states" if any(row.figure.state != state and point.ranks > 1 for row in rows) else ""}
    algorithm = rows[-1].figure.definition.algorithm
    note = " (more ranks than CPUs: scheduling times)" if rows[0].series.oversubscribed else ""
    name = point.text(names.get(point.transport, point.transport))
    render.title(f"{name}{f', {algorithm} algorithm' if algorithm else ''}{note}")
    known = (each for each in _COLUMNS if each[0] in kinds)
    render.records({column: text for _, column, text in known if any(map(text, rows))}, rows)


def _has_window(point: Point) -> bool:
    """Whether several messages are in flight concurrently, so that a rate is more useful than a time."""
    return "window" in dict(point.options)


def _print_notes(run: Run, rows: Sequence[_Row]) -> None:
    """Notes on the tables above, each once."""
    if rows:
        render.say()
        render.note("docs/metrics.md defines the time and the rate of each pattern.", style="dim")
    if any(row.figure.is_short for row in rows):
        render.note(SHORT_NOTE, style="yellow")
    is_measured = any(row.figure.interval_over != EXACT for row in rows)
    _say_unverified(row.figure for row in rows)
    advice = launches_advice(run, (row.figure for row in rows)) if is_measured else None
    if advice:
        render.note(advice, style="dim")
    has_interval = any(row.figure.has_interval for row in rows)
    if is_measured and has_interval and run.launch_count == 1:
        fix = fix_text(more_launches(run.id, run.info, LAUNCHES_WANTED))
        render.note(f"Intervals cover one launch only, not the variation between launches. {fix}.", style="dim")


def _say_unverified(figures: Iterable[Figure]) -> None:
    count = sum(figure.verified is False for figure in figures)
    if count:
        render.note(f"Payloads of {counted(count, 'figure')} were never verified.", style="yellow")


# ---- one row per size -----------------------------------------------------------------------------------------------


def print_run_by_size(run: Run, shown: Sequence[Series], *, state: str | None = None, verbose: bool = False) -> None:
    """Print the times of these series, a row per size and a column per transport; of streams the rates, too.

    Sizes that were not measured in the state of the table are marked, unless `state` is asked for; then they are left
    out.
    """
    main = state or main_state_of(run.series)
    names = readable_names(run.launches.values())
    figures = {member: figures_in(member, state) for member in shown}
    of_all = [figure for of_one in figures.values() for figure in of_one]
    _print_head(run, shown, of_all, main if state is None else None)
    cells = ""
    for group in groups_of(member for member in shown if figures[member]):
        cells += _print_group(group, figures, names, main)
    marks = {
        "±": "95 % interval",
        "(": "range seen, or of several machine states",
        "*": "in another machine state",
        "–": "not measured",
    }
    meanings = [f"{mark}: {meaning}" for mark, meaning in marks.items() if mark in cells]
    if meanings:
        render.note(f"{'; '.join(meanings)}.", style="dim")
    say_one_launch(figure.interval_over for figure in of_all)
    advice = launches_advice(run)
    if advice:
        render.note(advice)
    if SHORT_MARK in cells:
        render.note(SHORT_NOTE)
    _say_unverified(of_all)
    _print_endings(run, shown, verbose=verbose)


def _print_group(
    group: Mapping[str, Sequence[Series]],
    figures: Mapping[Series, Sequence[Figure]],
    names: Mapping[str, str],
    state: str,
) -> str:
    """Print a pattern on all its transports; returns the text of all cells."""
    by_size = {
        transport: {member.point.bytes: figures[member][0] for member in members}
        for transport, members in group.items()
    }
    points = {member.point.bytes: member.point for members in group.values() for member in members}
    asked = [points[size] for size in sorted(points) if points[size].role != "refined"]
    first = next(iter(points.values()))
    render.title(first.text())
    columns = [TableColumn("size", right=True, key=True, style="bold")]
    columns += [TableColumn(names.get(transport, transport), right=True) for transport in group]
    rates = ("rate", "messages") if _has_window(first) else ("events", "rate") if first.traits.events else ()
    values = [_TIME, *(_RATES[rate] for rate in rates if any(points))]
    cells = ""
    for number, value in enumerate(values):
        if number:
            render.say()
        rows = [
            [size_text(point), *(_cell(sizes.get(point.bytes), state, *value) for sizes in by_size.values())]
            for point in asked
        ]
        render.table(columns, rows, fits=True)
        cells += "".join(cell for row in rows for cell in row)
    if len(points) > len(asked):
        render.note(f"{counted(len(points) - len(asked), 'added size')} not shown.", style="dim")
    return cells


def _cell(
    figure: Figure | None, state: str, of: Callable[[Figure], Estimate | None], text: Callable[[float], str]
) -> str:
    """`41.9 ns ±2%`, padded, so that figures with and without an interval are aligned."""
    value = None if figure is None else of(figure)
    if figure is None or value is None:
        return "–"
    mark = SHORT_MARK * figure.is_short + "*" * (figure.state != state)
    shown, bounds = figure_text(value, text, is_range=figure.is_range)
    return f"{shown} {bounds:<4}{mark:<1}"


# ---- plots ----------------------------------------------------------------------------------------------------------


def print_plots(run: Run, series: Sequence[Series], state: str | None = None) -> None:
    """Plot times and rates of curves with three sizes or more, the transports of a pattern in one plot."""
    main = state or main_state_of(run.series)
    _print_head(run, series, [], main)
    plots = plots_of(run, series, state)
    for title, curves, unit in plots:
        print_plot(title, curves, unit)
    if not plots:
        render.note(f"Nothing to plot: no curve has three sizes or more{f' in state {main}' if main else ''}.")


def plots_of(
    run: Run, series: Sequence[Series], state: str | None = None
) -> list[tuple[str, dict[str, list[tuple[int, float]]], str]]:
    """The title, the curves and the unit of each plot; a curve has three sizes or more, each above 0 B."""
    names = readable_names(run.launches.values())
    plots = []
    for group in groups_of(series):
        times: dict[str, list[tuple[int, float]]] = {}
        rates: dict[str, list[tuple[int, float]]] = {}
        for transport, members in group.items():
            sized = (member for member in members if member.point.bytes)
            figures = {member.point.bytes: figure for member in sized for figure in figures_in(member, state)}
            if len(figures) >= 3:
                times[names[transport]] = [(size, figures[size].time.value) for size in sorted(figures)]
                known = ((size, figures[size].bytes_per_s) for size in sorted(figures))
                rates[names[transport]] = [(size, rate.value if rate else 0.0) for size, rate in known]
        name = next(iter(group.values()))[0].point.text()
        if times:
            plots += [(f"Time of {name}", times, "ns"), (f"Rate of {name}", rates, "bytes/s")]
    return plots


# ---- above and below ------------------------------------------------------------------------------------------------


def main_state_of(shown: Iterable[Series]) -> str:
    """The machine state that most of the shown figures are of, without those of the harness itself; else empty."""
    states = Counter(each.shown.state for each in shown if each.shown is not None and not each.is_harness)
    return max(states, key=lambda name: states[name], default="")


def _print_head(run: Run, shown: Sequence[Series], figures: Sequence[Figure], state: str | None) -> None:
    """The run, the machine, libraries and CPUs, whether figures have intervals, and the `state` that was chosen."""
    info, facts = run.info, run.facts
    name = f"Run {run.id}" + (f" ({run.label})" if run.label else "")
    render.title(f"{name}: {info.suite}, {local_time(info.started_unix_s)}, {ending_text(run.status)}", first=True)
    model = facts.get("cpu", {}).get("model") or "unknown CPU"
    render.note(f"{facts.get('hostname') or 'unknown host'}: {model}; hockney {info.version}; {info.command}")
    transports = {member.point.transport for member in shown}
    libraries = {launch.transport: launch.library for launch in run.launches.values()}
    for transport, library in libraries.items():
        if transport in transports and library:
            render.note(f"{transport}: {library}")
    launches = f"{launches_text(run)}." if run.launch_count > 1 else ""
    placement = " ".join(filter(None, (placement_text(run), launches)))
    if placement:
        render.note(placement)
    is_complete = all(member.status is PointStatus.PRECISE for member in run.series)  # and cannot be resumed
    fix = "" if is_complete else f" {fix_text(resume(run.id, info))}."
    few = sum(not figure.has_interval for figure in figures)
    if few and not info.is_imported:
        have = f"{few} of {counted(len(figures), 'figure')} {'has' if few == 1 else 'have'}"
        render.note(f"{have} too few measurements for an interval: (a - b) is the range seen.{fix}", style="yellow")
    elif run.status is RunStatus.KILLED:
        render.note(f"It was killed after {counted(run.rounds, 'round')}.{fix}", style="yellow")
    counts: Counter[str] = Counter()
    for member in shown:
        if not member.is_harness and not member.is_exact:
            counts += member.counts
    if set(counts) - {UNKNOWN.name} and state is not None and counts[state]:
        render.note(state_text(counts, state))


def _print_endings(run: Run, shown: Sequence[Series], *, verbose: bool = False) -> None:
    """Points without figures with their reasons, and caveats."""
    endings = endings_of(shown)
    if endings:
        render.title("Failed, skipped, not reached")
        render.table([TableColumn("", wrap=True)], endings, fits=True)
    print_caveats(run, verbose=verbose)
