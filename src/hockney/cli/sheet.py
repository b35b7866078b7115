"""How the data sheet looks, on a terminal, in a pipe and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hockney.analysis.explain.finding import relative
from hockney.cli import render
from hockney.cli.render import Column
from hockney.model import PointStatus
from hockney.report.sheet import Failure, Row, Sheet, Value
from hockney.stats import ONE_LAUNCH
from hockney.units import counted, format_bytes, format_ns, format_rate
from hockney.worker.catalogue import Missing, matches, split_name

_VAGUE = 10.0  # an interval ten times as wide as its value says nothing more


def print_sheet(sheet: Sheet, missing: Sequence[Missing] = ()) -> None:
    """The whole sheet: figures, layers, what limits them, what is not there."""
    columns: list[Column | str] = [
        Column("transport", style="bold", key=True),
        Column("state", key=True),
        Column("floor", right=True),
        Column("latency 8 B", right=True),
        Column("stream", right=True),
        Column("two-way", right=True),
        Column("barrier", right=True),
        Column("r_inf", right=True),
        Column("n_1/2", right=True),
    ]
    if sheet.rows:
        render.title(
            "Two ranks; typical time or rate, and the longer arm of its 95 % interval; per state of the machine"
        )
        rows = [_cells(row) for row in sheet.rows]
        render.table(columns, rows)
        if any(row.oversubscribed for row in sheet.rows):
            render.note("* more ranks than CPUs: scheduling times and what follows from them, not the transport's own")
        for words in _legend(sheet):
            render.note(words)
        if sheet.started_once:
            render.note(sheet.started_once)
        elif names := _names_within_one_launch(sheet.rows):
            render.note(f"The ± of some figures hold within one launch, the only one in that state: {names}.")
    elif sheet.states:
        crowded = any(warning.kind == "oversubscription" for warning in sheet.warnings)
        cause = ", for with fewer CPUs than ranks each message waits for the scheduler" if crowded else ""
        more = "give this process more CPUs, measure longer" if crowded else "measure longer"
        render.note(
            f"No point was measured often enough for an interval{cause}: {more} (--time), or go on with "
            f"`hockney run --resume {sheet.run_id}`; `hockney show {sheet.run_id}` has the medians so far.",
            style="yellow",
        )
    else:
        render.note("Nothing was measured.", style="yellow")
    if sheet.layers:
        render.title("What each layer adds to the half round trip of 8 B")
        for layer in sheet.layers:
            render.item(f"{layer.text} ({layer.state}){layer.remark}")
    render.limits(sheet.warnings)
    notes = [
        *_failure_lines(sheet.failures),
        *_also_ready(sheet),
        *(f"{one.name}: {one.why}; {one.how}" for one in missing),
    ]
    if notes:
        render.title("What is not shown")
        for note in notes:
            render.item(note)


def sheet_as_json(sheet: Sheet) -> dict[str, Any]:
    """For --json: the same values, with units in their names."""

    def plain(value: Any) -> Any:
        return value.value if isinstance(value, PointStatus) else value

    document = asdict(sheet, dict_factory=lambda pairs: {name: plain(value) for name, value in pairs})
    document["states"] = [dict(zip(("name", "floor_ns", "measurements"), state, strict=True)) for state in sheet.states]
    return document


def _names_within_one_launch(rows: Iterable[Row]) -> str:
    """`tcp (far), shm (near)`."""
    one = (row for row in rows if any(value is not None and value.over == ONE_LAUNCH for value in row.values))
    return ", ".join(f"{row.transport} ({row.state})" for row in one)


def _cells(row: Row) -> list[str]:
    def cell(value: Value | None, form: Callable[[float], str]) -> str:
        mark = "*" if row.oversubscribed and value is not None else ""
        return _cell(value, form) + mark

    return [
        row.transport,
        row.state,
        format_ns(row.floor_ns) if row.floor_ns is not None else "-",
        cell(row.latency_ns, format_ns),
        cell(row.stream_bytes_per_s, format_rate),
        cell(row.twoway_bytes_per_s, format_rate),
        cell(row.barrier_ns, format_ns),
        cell(row.r_inf_bytes_per_s, format_rate),
        cell(row.n_half_bytes, lambda size: format_bytes(round(size))),
    ]


def _cell(value: Value | None, form: Callable[[float], str]) -> str:
    """`47.9 ns ±0.9%`."""
    if value is None:
        return "-"
    arm = relative(value)
    # Never "±0.0%": nothing is known that well.
    spread = f"{max(0.001, arm):.1%}" if arm < 0.0995 else f"{arm:.0%}"
    return f"{form(value.value)} ±{spread if arm < _VAGUE else '>1000%'}"


def _legend(sheet: Sheet) -> Iterable[str]:
    yield from _floor_words(sheet)
    yield "stream, two-way: best of 64 KiB and 1 MiB, 16 messages under way; two-way counts both directions."
    yield f"r_inf, n_1/2: of the last straight line through the ping-pong's times{_line_sizes(sheet.rows)}."
    yield (
        "-: too few measurements in that state for an interval, of either length for stream and two-way, or a line "
        "that does "
        "not tell it."
    )
    seen = ", ".join(
        f"{name}{f' ({format_ns(floor_ns)})' if floor_ns else ''} {measurements}"
        for name, floor_ns, measurements in sheet.states
    )
    yield f"Measurements by state: {seen}."
    if sheet.harness_ns is not None:
        yield f"The harness itself costs {_cell(sheet.harness_ns, format_ns)} per repetition."


def _line_sizes(rows: Sequence[Row]) -> str:
    """From which size to which the lines go: a line may leave the longest message out that it does not explain."""
    states = Counter(row.transport for row in rows)
    lines: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        if row.fit_from_bytes is not None and row.fit_to_bytes is not None and row.r_inf_bytes_per_s is not None:
            lines.setdefault((row.fit_from_bytes, row.fit_to_bytes), []).append(
                row.transport + (f" ({row.state})" if states[row.transport] > 1 else "")
            )
    texts = [
        f"from {format_bytes(first)} to {format_bytes(last)} on {', '.join(names)}"
        for (first, last), names in lines.items()
    ]
    return f", {'; '.join(texts)}" if texts else ""


def _floor_words(sheet: Sheet) -> list[str]:
    """What the floor is, and what the names of the states mean that were seen."""
    names = [name for name, _, _ in sheet.states]
    words = []
    if not all(name.startswith("reference") for name in names):
        paired = any(layer.floor_ns is not None for layer in sheet.layers)
        below = "; what shm adds to it, below, is to that beside its own 8 B alone" if paired else ""
        words.append(f"floor: one cache line between the two CPUs, half a round trip, of all measurements{below}.")
    if any(name.startswith("reference") for name in names):
        words.append("reference: no line between hosts; the floor is the transport's own 8 B, half a round trip.")
    if any(name.endswith(" slowed") for name in names):
        words.append("slowed: something else shares a core that a rank runs on.")
    if any(name.endswith(", same core") for name in names):
        words.append("same core: both ranks ran on hardware threads of one core.")
    return words


def _failure_lines(failures: Iterable[Failure]) -> Iterable[str]:
    """Transports of which the same is to be said are named together."""
    alike: dict[tuple[int, PointStatus, str], list[str]] = {}
    for failure in failures:
        alike.setdefault((failure.points, failure.status, failure.reason), []).append(failure.transport)
    for (count, status, reason), transports in alike.items():
        points = f"{counted(count, 'point')}{' each' if len(transports) > 1 else ''}"
        end = "not shown" if status is PointStatus.BUDGET else status.value
        yield f"{', '.join(transports)}: {points} {end}, because {reason}"


def _also_ready(sheet: Sheet) -> Iterable[str]:
    """Transports that were ready and not asked for; `mpi:*` for variants none of which was."""
    kinds: dict[str, list[str]] = {}
    for name in sheet.also_ready:
        base, _, variant = split_name(name)
        kinds.setdefault(f"{base}:*" if variant else base, []).append(name)
    asked = {row.transport for row in sheet.rows} | {failure.transport for failure in sheet.failures}
    words: list[str] = []
    for kind, names in kinds.items():
        words += names if len(names) == 1 or any(matches(kind, name) for name in asked) else [kind]
    if words:
        yield f"also ready, and not in this run: {', '.join(words)}; `hockney run quick -t 'NAME,…'` measures them"
