"""The figures of a run as tables of one curve each, as one table of several transports by size, or as plots."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from hockney.analysis.repeat import further
from hockney.model import Point, RunStatus, curve_of
from hockney.report.columns import OTHER_STATE, is_other, marks_text
from hockney.report.document import Block, Column, Plot, Sentence, Table, Text, Title
from hockney.report.notes import (
    SHORT_NOTE,
    caveats_of,
    endings_of,
    fixed,
    launches_advice,
    padded,
    state_text,
    status_text,
)
from hockney.report.words import (
    RANGE_MARK,
    cell_text,
    known_text,
    launches_text,
    placement_text,
    readable_names,
    size_text,
)
from hockney.results.building import Building
from hockney.results.figures import Figure
from hockney.results.rates import at_rate
from hockney.results.runs import Run, Series
from hockney.stats import ONE_LAUNCH, UNKNOWN, Estimate, rate_per_s
from hockney.units import counted, format_messages, format_ns, format_rate, local_time


def _measurements(figure: Figure) -> str:
    in_launches = f" in {figure.n_launches}" if len(figure.series.launches) > 1 else ""
    return f"{figure.n_measurements}{in_launches}"


_Value = tuple[Callable[[Figure], Estimate | None], Callable[[float], str]]  # of a figure, and its text
_TIME: _Value = (lambda figure: figure.time, format_ns)
_RATES: dict[str, _Value] = {
    "events": (lambda figure: rate_per_s(1.0, figure.time), format_messages),
    "rate": (lambda figure: figure.bytes_per_s, format_rate),
    "messages": (lambda figure: figure.messages_per_s, format_messages),
}


def _cell(figure: Figure | None, value: _Value, state: str | None = None) -> str:
    """`41.9 ns ±2%`, marked if it is not of the `state`; empty without a figure."""
    of, text = value
    known = None if figure is None else of(figure)
    if figure is None or known is None:
        return ""
    return padded(*cell_text(figure, known, text), OTHER_STATE * is_other(figure, state))


def _overlap(figure: Figure) -> str:
    overlap = figure.overlap_percent
    if overlap is None:
        return ""
    low, high = f"{overlap.low:.0f}", f"{overlap.high:.0f}"
    return f"{overlap.value:.0f} %" + (f" ({low}–{high})" if low != high else "")


def _of_events(text: Callable[[Building], str]) -> Callable[[Figure], str]:
    """The text of a figure of events; empty of others."""
    return lambda figure: "" if figure.building is None else text(figure.building)


def _reached(building: Building) -> str:
    """`9.21 k/s (92 %)`: the rate reached, and its share of the one offered if that is less."""
    share = f" ({building.kept:.0%})".replace("%", " %") if building.kept is not None and building.kept < 0.99 else ""
    return f"{known_text(building.events_per_s, format_messages)}{share}"


# In which tables a column is: all, or only those of a stream, of several states, of events, of events on schedule, or
# of those without a schedule ("free").
_COLUMNS: tuple[tuple[str, Column, Callable[[Figure], str]], ...] = (
    ("", Column("size", right=True, key=True, tone="strong"), lambda figure: size_text(figure.point)),
    ("schedule", Column("offered", right=True, key=True), lambda figure: format_messages(figure.point.rate_hz)),
    ("free", Column("time", right=True), lambda figure: _cell(figure, _TIME)),
    ("schedule", Column("p50", right=True), lambda figure: _cell(figure, _TIME)),
    ("events", Column("events", right=True), lambda figure: _cell(figure, _RATES["events"])),
    ("free", Column("rate", right=True), lambda figure: _cell(figure, _RATES["rate"])),
    ("stream", Column("messages", right=True), lambda figure: _cell(figure, _RATES["messages"])),
    ("", Column("pure", right=True, optional=True), lambda figure: known_text(figure.pure_ns, format_ns)),
    ("", Column("overlap", right=True, optional=True), _overlap),
    ("", Column("minimum", right=True, optional=True), lambda figure: known_text(figure.minimum_ns, format_ns)),
    ("schedule", Column("p99", right=True), lambda figure: known_text(figure.tails.p99_ns, format_ns)),
    ("schedule", Column("p99.9", right=True), lambda figure: known_text(figure.tails.p999_ns, format_ns)),
    ("schedule", Column("verdict"), lambda figure: figure.series.verdict or ""),
    ("schedule", Column("reached", right=True), _of_events(_reached)),
    ("", Column("per builder", right=True), _of_events(lambda of: known_text(of.builder_bytes_per_s, format_rate))),
    ("schedule", Column("late", right=True), _of_events(lambda of: f"{100 * of.late:.2g} %" if of.late else "")),
    (
        "",
        Column("fairness", right=True, optional=True),
        _of_events(lambda of: known_text(of.fairness, "{:.2f}".format)),
    ),
    ("", Column("lost", right=True), _of_events(lambda of: f"{of.lost or ''}")),
    ("", Column("resent", right=True), _of_events(lambda of: f"{of.resent or ''}")),
    ("", Column("timeouts", right=True), _of_events(lambda of: f"{of.timeouts or ''}")),
    ("states", Column("state", key=True), lambda figure: figure.state),
    ("states", Column("floor", right=True), lambda figure: known_text(figure.floor_ns, format_ns)),
    ("", Column("measurements", right=True, optional=True), _measurements),
    ("", Column("status"), status_text),
)


def name_text(member: Series) -> str:
    """` (osu_allreduce)`: of a run that was made by such names, the benchmark that a curve is of; else empty."""
    suite, point = member.run.info.suite, member.point
    if not re.search(r"(^|,)\s*(osu|imb)", suite, re.IGNORECASE):
        return ""
    from hockney.suites.tools import benchmarks_in, name_of  # with pydantic

    name = name_of(benchmarks_in(suite), point.pattern, point.transport, dict(point.options))
    return f" ({name})" if name else ""


def groups_of(
    series: Iterable[Series], names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, dict[str, list[Series]]]:
    """The series of each pattern, its options and ranks, by transport and algorithm: `Open MPI 4.1 ring`.

    `names`: readable ones of transports. Without the harness itself.
    """
    groups: dict[str, dict[str, list[Series]]] = {}
    for member in (member for member in series if not member.is_harness):
        point, options = member.point, dict(member.point.options)
        column = f"{names.get(point.transport, point.transport)} {options.pop('algorithm', '')}".rstrip()
        title = f"{replace(point, options=tuple(options.items())).text()}{name_text(member)}"
        group = groups.setdefault(title, {})
        group.setdefault(column, []).append(member)
    return groups


# ---- a table for each curve -----------------------------------------------------------------------------------------


def run_document(
    run: Run, shown: Sequence[Series], *, every_state: bool = False, state: str | None = None, verbose: bool = False
) -> Iterator[Block]:
    """The figures of these series, in one state unless `every_state`, and caveats, in full if `verbose`."""
    main = state or main_state_of(run.series)
    curves: dict[tuple[object, bool], list[Figure]] = {  # all rates of events of a curve are one table
        (curve_of(at_rate(member.point, 0)), is_paced): [] for member in shown for is_paced in (False, True)
    }
    for member in sorted(shown, key=lambda member: (member.point.bytes, member.point.rate_hz)):
        figures = member.figures() if every_state else member.figures_in(state)
        curves[curve_of(at_rate(member.point, 0)), member.point.rate_hz > 0] += figures
    tables = list(filter(None, curves.values()))
    rows = [figure for table in tables for figure in table]
    yield from _head(run, shown, rows, None if every_state or state else main)
    names = readable_names(run.launches.values())
    shown_tables = [block for table in tables for block in _curve(table, names, None if every_state else main)]
    yield from shown_tables
    if rows:
        yield Sentence()
        yield Text("docs/metrics.md defines the time and the rate of each pattern.", "quiet")
    yield from _notes(run, rows, _cells(shown_tables))
    yield from _endings(run, shown, verbose=verbose)


def _cells(blocks: Iterable[Block]) -> list[str]:
    return [cell for block in blocks if isinstance(block, Table) for row in block.rows for cell in row]


def _curve(rows: Sequence[Figure], names: Mapping[str, str], state: str | None) -> Iterator[Block]:
    """One table with its title, with states where they are not all the one `state`."""
    point = rows[0].point
    kinds = {"", "stream" if _has_rate(point) else ""}
    kinds |= {"schedule"} if point.rate_hz else {"free", "events" if point.traits.events else ""}
    # A rank alone has no floor, and so no state.
    kinds |= {"states" if any(figure.state != state and point.ranks > 1 for figure in rows) else ""}
    algorithm = rows[-1].definition.algorithm
    note = " (more ranks than CPUs: scheduling times)" if rows[0].series.oversubscribed else ""
    name = at_rate(point, 0).text(names.get(point.transport, point.transport)) + name_text(rows[0].series)
    note = ", rates offered" * (point.rate_hz > 0) + note
    is_new = algorithm and "algorithm" not in dict(point.options)  # what `auto` has chosen
    yield Title(f"{name}{f', {algorithm} algorithm' if is_new else ''}{note}")
    known = {column: [*map(text, rows)] for kind, column, text in _COLUMNS if kind in kinds}
    shown = {column: cells for column, cells in known.items() if any(cells)}
    yield Table([*shown], [list(cells) for cells in zip(*shown.values(), strict=True)])


def _has_rate(point: Point) -> bool:
    """Whether messages follow each other between pairs of ranks, so that a rate is more useful than a time."""
    return "window" in dict(point.options) or (point.is_stream and point.traits.links is not None)


def _notes(run: Run, figures: Sequence[Figure], cells: Iterable[str], marks: str = "") -> Iterator[Block]:
    """The meaning of marks in cells, after that of other `marks`, and what limits the figures, each in a line."""
    for text in (f"{marks}{marks_text(cells)}", launches_advice(run, figures)):
        if text:
            yield Text(text, "quiet")
    if any(figure.is_short for figure in figures):
        yield Text(SHORT_NOTE, "caution")
    count = sum(figure.verified is False for figure in figures)
    if count:
        yield Text(f"Payloads of {counted(count, 'figure')} were never verified.", "caution")


# ---- one row per size -----------------------------------------------------------------------------------------------


def by_size_document(
    run: Run, shown: Sequence[Series], *, state: str | None = None, verbose: bool = False
) -> Iterator[Block]:
    """The times of these series, a row per size and a column per transport and algorithm; of streams the rates, too.

    Sizes that were not measured in the state of the table are marked, unless `state` is asked for; then they are left
    out.
    """
    main = state or main_state_of(run.series)
    names = readable_names(run.launches.values())
    figures = {member: member.figures_in(state) for member in shown}
    printed = [member for member in shown if not member.is_harness and member.point.role != "refined"]
    of_all = [figure for member in printed for figure in figures[member]]
    yield from _head(run, shown, of_all, main if state is None else None)
    groups = groups_of((member for member in shown if figures[member]), names)
    tables = [block for what, group in groups.items() for block in _group(what, group, figures, main)]
    yield from tables
    others = "; ".join(dict.fromkeys(figure.state for figure in of_all if is_other(figure, main)))
    marks = f"{OTHER_STATE}: in another machine state ({others}). " if others else ""
    yield Sentence()
    yield from _notes(run, of_all, _cells(tables), marks)
    yield from _endings(run, shown, verbose=verbose)


def _group(
    what: str, group: Mapping[str, Sequence[Series]], figures: Mapping[Series, Sequence[Figure]], state: str
) -> Iterator[Block]:
    """A table of each value of a pattern on all its transports."""
    by_size = [{member.point.bytes: figures[member][0] for member in members} for members in group.values()]
    points = {member.point.bytes: member.point for members in group.values() for member in members}
    asked = [points[size] for size in sorted(points) if points[size].role != "refined"]
    first = next(iter(points.values()))
    columns = [Column("size", right=True, key=True, tone="strong"), *(Column(name, right=True) for name in group)]
    rates = ("rate", "messages") if _has_rate(first) else ("events", "rate") if first.traits.events else ()
    values = {"time": _TIME, **{rate: _RATES[rate] for rate in rates if any(points)}}
    for name, value in values.items():
        rows = [
            [size_text(point), *(_cell(sizes.get(point.bytes), value, state) for sizes in by_size)] for point in asked
        ]
        yield Table(columns, rows, fits=True, heading=f"{what}: {name}")
    if len(points) > len(asked):
        yield Text(f"{counted(len(points) - len(asked), 'added size')} not shown.", "quiet")


# ---- plots ----------------------------------------------------------------------------------------------------------


def plots_document(run: Run, series: Sequence[Series], state: str | None = None) -> Iterator[Block]:
    """Plots of times and rates of curves with three sizes or more, all transports and algorithms in one plot."""
    main = state or main_state_of(run.series)
    yield from _head(run, series, [], main)
    plots = None
    for plots in plots_of(run, series, state):
        yield plots
    if plots is None:
        yield Text(f"Nothing to plot: no curve has three sizes or more{f' in state {main}' if main else ''}.")


def _cpu_percent(figure: Figure) -> float | None:
    """The CPU time of the rank that uses the most, in per cent of the time that the measurement took."""
    return max((100 * (user + system) for user, system in figure.cpu_shares), default=0.0) or None


_PLOTS: tuple[tuple[str, Callable[[Figure], float | None], str], ...] = (
    ("Time of {}", lambda figure: figure.time.value, "ns"),
    ("Rate of {}", lambda figure: figure.bytes_per_s.value if figure.bytes_per_s else None, "bytes/s"),
    ("CPU time of {}: the busiest rank", _cpu_percent, "%"),
)


def plots_of(run: Run, series: Sequence[Series], state: str | None = None) -> Iterator[Plot]:
    """Each plot of a run, made when it is asked for; a curve has three sizes or more, each above 0 B."""
    for name, group in groups_of(series, readable_names(run.launches.values())).items():
        for title, of, unit in _PLOTS:
            curves: dict[str, list[tuple[int, float]]] = {}
            for column, members in group.items():
                sized = (figure for member in members if member.point.bytes for figure in member.figures_in(state))
                points = {figure.point.bytes: value for figure in sized if (value := of(figure)) is not None}
                curves |= {column: sorted(points.items())} if len(points) >= 3 else {}
            if curves:
                yield Plot(title.format(name), curves, unit)


# ---- above and below ------------------------------------------------------------------------------------------------


def main_state_of(shown: Iterable[Series]) -> str:
    """The machine state that most of the shown figures are of, without those of the harness itself; else empty."""
    states = Counter(each.shown.state for each in shown if each.shown is not None and not each.is_harness)
    return max(states, key=lambda name: states[name], default="")


def _head(run: Run, shown: Sequence[Series], figures: Sequence[Figure], state: str | None) -> Iterator[Block]:
    """The run, the machine, libraries and CPUs, whether figures have intervals, and the `state` that was chosen."""
    info, facts = run.info, run.facts
    yield Title(f"R{run.name[1:]}: {info.suite}, {local_time(info.started_unix_s)}, {run.ending}")
    model = facts.get("cpu", {}).get("model") or "unknown CPU"
    yield Text(f"{facts.get('hostname') or 'unknown host'}: {model}; hockney {info.version}; {info.command}")
    transports = {member.point.transport for member in shown}
    for transport, library in run.libraries.items():
        if transport in transports and library:
            yield Text(f"{transport}: {library}")
    placement = " ".join(filter(None, (placement_text(run), f"{launches_text(run)}." * (run.launch_count > 1))))
    if placement:
        yield Text(placement)
    few = sum(figure.is_range for figure in figures)
    if few:
        have = f"{few} of {counted(len(figures), 'figure')} {'has' if few == 1 else 'have'}"
        fix = fixed(further(run)) * all(each.interval_over != ONE_LAUNCH for each in figures)  # else it follows below
        why = f"too few measurements in one machine state for an interval ({RANGE_MARK}).{fix}"
        yield Text(f"{have} {why}", "caution")
    elif run.status is RunStatus.KILLED:
        yield Text(f"It was killed after {counted(run.rounds, 'round')}.{fixed(further(run))}", "caution")
    counts: Counter[str] = Counter()
    for member in shown:
        if not member.is_harness and not member.is_exact:
            counts += member.counts
    if set(counts) - {UNKNOWN.name} and state is not None and counts[state]:
        yield Text(state_text(counts, state))


def _endings(run: Run, shown: Sequence[Series], *, verbose: bool = False) -> Iterator[Block]:
    """Points without figures with their reasons, and caveats."""
    endings = endings_of(shown)
    if endings:
        yield Title("Failed, skipped, not reached")
        yield Table([Column("", wrap=True)], endings, fits=True)
    yield from caveats_of(run, verbose=verbose)
