"""The tables of the Paragon report: the cost of each way of sending over the native one, and where curves jump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hockney.archive import published
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import NOT_PLANNED, QUANTITIES, Reading, blank
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.results.runs import Series
from hockney.stats.fit import JUMP, NoFit, fit_segments
from hockney.units import counted, format_bytes

_PVM = "pvm"
_REFINED = "refined"
_NATIVE = "NX csend/crecv"
_RATE, _TIME = QUANTITIES["rate"], QUANTITIES["time"]

Curve = Mapping[int, Series]  # by size


def tables(reading: Reading) -> list[Table]:
    """Bandwidth, ratio to the native library, jumps, latency and bandwidth."""
    curves = _curves(reading)
    native = _native(curves, reading)
    return [
        _bandwidths(curves, native, reading),
        _ratios(curves, native, reading),
        _jumps(curves, reading),
        _latencies(curves, native, reading),
    ]


def _curves(reading: Reading) -> dict[str, Curve]:
    """The ping-pong between ranks 0 and 1 by transport: native ones first, in the order of the plan."""
    found: dict[str, dict[int, Series]] = {}
    for series in reading.series("pingpong"):
        if series.point.ranks == 2 and not series.point.options:
            found.setdefault(series.point.transport, {})[series.point.bytes] = series
    return dict(sorted(found.items(), key=lambda pair: _is_pvm(pair[0])))


def _is_pvm(transport: str) -> bool:
    return transport.partition("@")[0].partition(":")[0] == _PVM


def _native(curves: Mapping[str, Curve], reading: Reading) -> str | None:
    """The transport that ratios refer to: that with the best bandwidth that is not PVM."""
    best = {name: _best(curve, reading) for name, curve in curves.items() if not _is_pvm(name)}
    return max(best, key=lambda name: best[name].value or 0.0, default=None)


def _best(curve: Curve, reading: Reading, published: float | None = None) -> Measured:
    return reading.best(list(curve.values()), _RATE, published)[1]


def method_of(transport: str) -> str:
    """The report's name of a way to send, else the name of the transport."""
    variant = transport.partition(":")[2].removesuffix("-daemon")
    known = {row["variant"]: row["published"] for row in contents("paragon")["method"]}
    if not _is_pvm(transport) or variant not in known:
        return transport
    route = "daemon route" if transport.endswith("-daemon") else "direct"
    return f"{known[variant]}, {route} ({transport})"


def _sizes(curves: Mapping[str, Curve]) -> list[int]:
    """The sizes of the rows: those asked for, and added ones that every curve has."""
    return [size for size, series in _by_size(curves).items() if _is_row(series, curves)]


def _by_size(curves: Mapping[str, Curve]) -> dict[int, list[Series]]:
    found: dict[int, list[Series]] = {}
    for size, one in sorted((pair for curve in curves.values() for pair in curve.items()), key=lambda pair: pair[0]):
        found.setdefault(size, []).append(one)
    return found


def _is_row(series: Sequence[Series], curves: Mapping[str, Curve]) -> bool:
    return len(series) == len(curves) or any(one.point.role != _REFINED for one in series)


def _added_note(curves: Mapping[str, Curve]) -> list[str]:
    """How many sizes of each curve have no row."""
    extra = [one for series in _by_size(curves).values() if not _is_row(series, curves) for one in series]
    count = Counter(one.point.transport for one in extra)
    told = ", ".join(f"{name} {number}" for name, number in count.items())
    how = "Added sizes have a row only if every method has them. The others count for the best rate and for jumps"
    return [f"{how}; `hockney show` has them: {told}."] if told else []


def _bandwidths(curves: Mapping[str, Curve], native: str | None, reading: Reading) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for size in _sizes(curves):
        if size > 0:
            cells = [_at(curve, size, reading) for curve in curves.values()]
            rows.append((format_bytes(size), "", *cells))
    told = next(one for one in published("paragon") if one.metric == "asymptotic_bandwidth")
    best = [_best(curve, reading, told.value) for curve in curves.values()]
    rows.append((f"best (published: {_NATIVE})", told, *(best or [blank("MB/s", NOT_PLANNED, told.value)])))
    columns = [Column("size"), Column("published", "published")]
    columns += [Column(_titled(name, native), "measured", (name,)) for name in curves]
    if not curves:
        columns.append(Column("this machine", "measured"))
    notes = tuple(_added_note(curves))
    return Table("bandwidth", "Bandwidth of the ping-pong, MB/s", tuple(columns), tuple(rows), notes)


def _titled(name: str, native: str | None) -> str:
    return f"{name} (native)" if name == native else method_of(name)


def _at(curve: Curve, size: int, reading: Reading) -> Measured:
    return reading.cell(curve[size], _RATE) if size in curve else blank("MB/s", NOT_PLANNED)


def _ratios(curves: Mapping[str, Curve], native: str | None, reading: Reading) -> Table:
    others = {name: curve for name, curve in curves.items() if name != native}
    rows: list[tuple[Cell, ...]] = []
    for size in _sizes(curves):
        if size > 0 and native is not None:
            base = _at(curves[native], size, reading)
            rows.append((format_bytes(size), *(_ratio(_at(curve, size, reading), base) for curve in others.values())))
    columns = (Column("size"), *(Column(method_of(name), "measured") for name in others))
    told = f"Bandwidth over that of {native}, the fastest here that is not PVM."
    notes = (told if native else "Nothing native was measured.",)
    return Table("ratio", "Ratio to the native library", columns, tuple(rows), notes)


def _ratio(cell: Measured, base: Measured) -> Measured:
    """The ratio of two figures of the same machine state."""
    if cell.value is None or not base.value:
        return blank("", cell.reason or base.reason or NOT_PLANNED)
    if "mixed" in (cell.state, base.state):
        return blank("", "the machine state changed during every measurement")
    if cell.state != base.state:
        return blank("", "measured in another machine state than the native library")
    known = None not in (cell.low, cell.high, base.low, base.high)
    return Measured(
        "",
        cell.value / base.value,
        (cell.low or 0.0) / base.high if known and base.high else None,
        (cell.high or 0.0) / base.low if known and base.low else None,
        cell.state,
        cell.oversubscribed or base.oversubscribed,
        interval_over=cell.interval_over if known else None,
    )


# ---- jumps ---------------------------------------------------------------------------------------------------------


def _jumps(curves: Mapping[str, Curve], reading: Reading) -> Table:
    rows: list[tuple[Cell, ...]] = []
    left_out: list[str] = []
    for name, curve in curves.items():
        ascending = [curve[size] for size in sorted(curve)]
        measured = reading.together(ascending, _TIME)
        known = [
            (series.point.bytes, cell.value, cell.spread)
            for series, cell in measured
            if cell.value is not None and cell.spread is not None
        ]
        left_out += _left_out(name, ascending, len(measured), len(known), reading)
        sizes, times, spreads = [list(column) for column in zip(*known, strict=True)] or [[], [], []]
        rows += [(method_of(name), *found) for found in jumps_of([*map(int, sizes)], times, spreads)]
    for row in contents("paragon")["jump"]:
        told = next(one for one in published("paragon") if one.metric == row["metric"])
        rows.append((row["title"], told, row["what"], row["text"]))
    columns = (Column("method"), Column("size"), Column("what"), Column("how much"))
    page = reading.run.facts.get("memory", {}).get("page_bytes")
    notes = list(contents("paragon")["notes"]["jumps"])
    if page:
        notes.append(f"A page here: {format_bytes(page)}.{_buffers(reading.run.facts.get('network', {}))}")
    return Table("jumps", "Where curves jump", columns, tuple(rows), (*notes, *left_out))


def jumps_of(sizes_bytes: Sequence[int], times: Sequence[float], spreads: Sequence[float]) -> list[tuple[str, ...]]:
    """Size, kind and extent of each jump and outlier of a curve; `spreads` are relative half-widths of intervals."""
    fit = fit_segments(sizes_bytes, times, spreads)
    if isinstance(fit, NoFit):
        return [("", "", "fewer than three sizes have figures with an interval")]
    if fit.curved:
        return [("", "curved", f"{len(times)} sizes lie on a smooth curve")]
    found = [(switch.above_bytes, "jump", switch.relative.value) for switch in fit.switches if switch.is_jump]
    found += [
        (fit.sizes_bytes[at], "outlier", fit.residuals[at]) for at in fit.outliers if abs(fit.residuals[at]) >= JUMP
    ]
    if not found:
        return [("", "none", f"{len(times)} sizes lie on straight lines")]
    return [
        (format_bytes(size), kind, f"{abs(change):.0%} {'slower' if change > 0 else 'faster'} than the line before")
        for size, kind, change in sorted(found)
    ]


def _buffers(network: Mapping[str, int | None]) -> str:
    """The sizes of socket buffers, beyond which a sender waits for its receiver."""
    names = ("tcp_send_buffer_bytes", "tcp_receive_buffer_bytes", "send_buffer_bytes")
    sizes = [size for name in names if (size := network.get(name)) is not None]
    if len(sizes) < len(names):
        return ""
    send, receive, others = map(format_bytes, sizes)
    return f" Buffers here, by default: TCP's {send} to send, {receive} to receive; other sockets' {others}."


def _left_out(name: str, curve: Sequence[Series], measured: int, known: int, reading: Reading) -> list[str]:
    """How many sizes are left out, and why."""
    figures = sum(reading.figure(series) is not None for series in curve)
    counts = (
        (measured - known, "without an interval"),
        (figures - measured, "in another machine state"),
        (len(curve) - figures, "without a figure"),
    )
    told = ", ".join(f"{number} {why}" for number, why in counts if number)
    return [f"{method_of(name)}: of {counted(len(curve), 'size')}, left out: {told}."] if told else []


# ---- latency and bandwidth -----------------------------------------------------------------------------------------


def _latencies(curves: Mapping[str, Curve], native: str | None, reading: Reading) -> Table:
    places = {one.at["method"]: one for one in published("paragon") if one.metric == "rank"}
    rows: list[tuple[Cell, ...]] = []
    for name, curve in curves.items():
        small = min((size for size in curve if size > 0), default=None)
        latency = blank("us", NOT_PLANNED) if small is None else reading.cell(curve[small], _TIME)
        place = "1" if name == native else places.get(method_of(name).partition(",")[0], "")
        size = "" if small is None else format_bytes(small)
        rows.append((method_of(name), place, size, latency, _best(curve, reading)))
    for row in contents("paragon")["method"]:
        if not any(method_of(name).startswith(row["published"]) for name in curves):
            reason = "PVM is not installed, or was not asked for in this run"
            place = places.get(row["published"], "")
            rows.append((row["published"], place, "", blank("us", reason), blank("MB/s", reason)))
    columns = (
        Column("method"),
        Column("place there", "published"),
        Column("size"),
        Column("latency, us", "measured"),
        Column("best MB/s", "measured"),
    )
    notes = ("Place there: the order of bandwidth that the report's text gives; 1 is the native library.",)
    return Table("latency", "Latency and bandwidth", columns, tuple(rows), notes)
