"""The tables of the Ancor note: a byte stream by its modes, seen from both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.archive import Published, published
from hockney.fit import NoFit, fit_line
from hockney.library import Series
from hockney.model import Visit
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import NOT_PLANNED, Reading, blank, options_text
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.units import format_bytes

_SPEED_AT_BYTES = 65500
_OWN_OPTIONS = ("write", "read", "source")
_SIDES = ("sender", "receiver")
_NO_RATE = "the times do not tell that they grow with the size, so there is no rate to approach"


@dataclass(frozen=True)
class _Stream:
    """All sizes of one cell of the matrix over one transport in one direction."""

    transport: str  # with the options that tell it from another
    direction: str
    sender: int  # its rank
    series: tuple[Series, ...]


def tables(reading: Reading) -> list[Table]:
    """The summary, then a table for each figure of the note, transport and direction."""
    figures = [(spec, _streams(spec, reading)) for spec in contents("ancor")["figure"]]
    found = [_summary(figures, reading)]
    for spec, streams in figures:
        found.extend(_curve(spec, stream, reading) for stream in streams)
    return found


def _streams(spec: Mapping[str, str], reading: Reading) -> list[_Stream]:
    groups: dict[tuple[str, int], list[Series]] = {}
    for series in reading.series("stream"):
        options = reading.options(series.point)
        if (options["write"], options["read"]) == (spec["write"], spec["read"]):
            told = options_text(pair for pair in series.point.options if pair[0] not in _OWN_OPTIONS)
            groups.setdefault((f"{series.point.transport} {told}".strip(), int(options["source"])), []).append(series)
    return [
        _Stream(
            transport,
            _direction(members, sender),
            sender,
            tuple(sorted(members, key=lambda one: one.point.bytes)),
        )
        for (transport, sender), members in groups.items()
    ]


def _direction(members: Sequence[Series], sender: int) -> str:
    hosts = next((launch.hosts for one in members for launch in one.launches), ())
    names = hosts if len(set(hosts)) > 1 else ()
    ends = [names[rank] if rank < len(names) else f"rank {rank}" for rank in (sender, 1 - sender)]
    return f"{ends[0]} to {ends[1]}"


# ---- one curve -----------------------------------------------------------------------------------------------------


def _curve(spec: Mapping[str, str], stream: _Stream, reading: Reading) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (format_bytes(series.point.bytes), *_cells(series, stream.sender, reading)) for series in stream.series
    ]
    columns = [Column("size")]
    columns += [Column(f"{side}: time, us", "measured") for side in _SIDES]
    columns += [Column(f"{side}: MB/s", "measured") for side in _SIDES]
    columns += [Column(f"{side}: CPU, %", "measured") for side in _SIDES]
    columns += [Column("write would block", "measured"), Column("read would block", "measured")]
    title = f"{_modes(spec)} ({spec['name']}): {stream.transport}, {stream.direction}"
    name = f"{spec['name']}: {stream.transport}, source={stream.sender}"
    return Table(name, title, tuple(columns), tuple(rows), tuple(contents("ancor")["notes"]["curve"]))


def _modes(spec: Mapping[str, str]) -> str:
    words = {"blocking": "blocking", "nonblocking": "non-blocking"}
    return f"{words[spec['write']]} write, {words[spec['read']]} read"


def _cells(series: Series, sender: int, reading: Reading) -> tuple[Measured, ...]:
    ranks = (sender, 1 - sender)
    units = ("us", "us", "MB/s", "MB/s", "%", "%", "", "")
    if reading.figure(series) is None:
        return tuple(blank(unit, reading.reason(series)) for unit in units)
    times = [_side(series, rank, reading) for rank in ranks]
    speeds = [_speed(series, cell) for cell in times]
    cpu = [_cpu(series, rank, reading) for rank in ranks]
    blocked = [
        _per_write(series, name, rank, reading)
        for name, rank in zip(("write_would_block", "read_would_block"), ranks, strict=True)
    ]
    return (*times, *speeds, *cpu, *blocked)


def _side(series: Series, rank: int, reading: Reading) -> Measured:
    """What a write, or the reads for one, took on this rank."""

    def time_us(visit: Visit) -> float:
        import numpy as np

        return float(np.median(visit.elapsed_ns[rank])) / (visit.batch * visit.definition.divisor) / 1e3

    return reading.median(series, "us", time_us)


def _speed(series: Series, time_us: Measured) -> Measured:
    size = series.point.bytes
    low, high = (None if end is None or end <= 0 else size / end for end in (time_us.high, time_us.low))
    if not time_us.value or size == 0:
        return blank("MB/s", "a write of nothing has no speed")
    return replace(time_us, unit="MB/s", value=size / time_us.value, low=low, high=high)


def _cpu(series: Series, rank: int, reading: Reading) -> Measured:
    def percent(visit: Visit) -> float:
        used = visit.cpu_user_ns[rank] + visit.cpu_system_ns[rank]
        return 100 * used / visit.wall_ns[rank] if visit.wall_ns[rank] else 0.0

    return reading.median(series, "%", percent)


def _per_write(series: Series, name: str, rank: int, reading: Reading) -> Measured:
    def per_write(visit: Visit) -> float | None:
        writes = visit.elapsed_ns.shape[1] * visit.batch * visit.definition.messages_per_rep
        return visit.counters[name][rank] / writes if name in visit.counters and writes else None

    return reading.median(series, "", per_write)


# ---- the summary ---------------------------------------------------------------------------------------------------


def _summary(figures: Sequence[tuple[Mapping[str, str], Sequence[_Stream]]], reading: Reading) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for spec, streams in figures:
        told = {one.metric: one for one in published("ancor") if _is_of(one, spec)}
        cells = [(stream, _fitted(stream, told, reading)) for stream in streams]
        head = (
            _modes(spec),
            f"{told['speed'].at['sender']} to {told['speed'].at['receiver']}",
            told["system_overhead"].printed,
            told["speed"].printed,
            _cpu_text(told),
        )
        for stream, measured in cells:
            rows.append((*head, stream.transport, stream.direction, *measured))
        if not cells:
            units = ("us", "MB/s", "MB/s", "%", "%")
            rows.append((*head, "this machine", "", *(blank(unit, NOT_PLANNED) for unit in units)))
    columns = [Column("modes"), Column("best direction there", "published")]
    columns += [Column(f"published {what}", "published") for what in ("overhead, us", "MB/s of 65,500 B", "CPU")]
    columns += [Column("transport"), Column("direction")]
    columns += [
        Column(title, "measured")
        for title in ("overhead, us", "MB/s of 65,500 B", "asymptotic MB/s", "sender's CPU, %", "receiver's CPU, %")
    ]
    notes = tuple(contents("ancor")["notes"]["summary"])
    return Table("summary", "Overhead and speed by mode", tuple(columns), tuple(rows), notes, heading=5)


def _is_of(figure: Published, spec: Mapping[str, str]) -> bool:
    modes = (str(figure.at["write"]).replace("-", ""), str(figure.at["read"]).replace("-", ""))
    return modes == (spec["write"], spec["read"])


def _cpu_text(told: Mapping[str, Published]) -> str:
    both, receiver = told.get("cpu_over_comm_time"), told.get("receiver_cpu")
    return f"both about {both.printed} %" if both else f"receiver below {receiver.printed} %" if receiver else ""


def _fitted(stream: _Stream, told: Mapping[str, Published], reading: Reading) -> tuple[Measured, ...]:
    overhead, speed = told["system_overhead"].value, told["speed"].value
    last = next((one for one in stream.series if one.point.bytes == _SPEED_AT_BYTES), None)
    known = [one for one in stream.series if reading.figure(one) is not None]
    if not known:
        reason = reading.reason(stream.series[0])
        return tuple(blank(unit, reason) for unit in ("us", "MB/s", "MB/s", "%", "%"))
    slower = [max((_side(one, rank, reading) for rank in (0, 1)), key=lambda cell: cell.value or 0.0) for one in known]
    state = reading.one_state(known)
    used = [(one, cell) for one, cell in zip(known, slower, strict=True) if cell.state == state]
    fit = fit_line([one.point.bytes for one, _ in used], [1e3 * (cell.value or 0.0) for _, cell in used])
    crowded = any(cell.oversubscribed for _, cell in used)
    if isinstance(fit, NoFit):
        t0, asymptotic = blank("us", fit.reason, overhead), blank("MB/s", fit.reason)
    elif fit.r_inf_bytes_per_s is None:
        t0, asymptotic = blank("us", _NO_RATE, overhead), blank("MB/s", _NO_RATE)
    else:
        about = Measured("us", state=state, oversubscribed=crowded, computed=True)
        t0 = replace(about, value=fit.t0_ns.value / 1e3, published=overhead)
        asymptotic = replace(about, unit="MB/s", value=fit.r_inf_bytes_per_s.value / 1e6)
    if last is None or last not in known:
        reason = NOT_PLANNED if last is None else reading.reason(last)
        return (t0, blank("MB/s", reason, speed), asymptotic, blank("%", reason), blank("%", reason))
    of_last = replace(_speed(last, slower[known.index(last)]), published=speed)
    return (t0, of_last, asymptotic, *(_cpu(last, rank, reading) for rank in (stream.sender, 1 - stream.sender)))
