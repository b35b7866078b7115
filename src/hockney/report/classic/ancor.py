"""The tables of the Ancor note: a byte stream by its modes, seen from both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hockney.model import Measurement
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import QUANTITIES, Reading, blank, options_text
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.results.runs import Series
from hockney.units import format_bytes

_OWN_OPTIONS = ("write", "read", "source")
_SIDES = ("sender", "receiver")


def tables(reading: Reading) -> list[Table]:
    """A table for each figure of the note, transport and direction."""
    found = []
    for spec in contents("ancor")["figure"]:
        streams: dict[tuple[str, int], list[Series]] = {}
        for series in reading.series("stream"):
            options = reading.options(series.point)
            if (options["write"], options["read"], options["compute_us"]) == (spec["write"], spec["read"], "0"):
                told = options_text(pair for pair in series.point.options if pair[0] not in _OWN_OPTIONS)
                sender = int(options["source"])
                streams.setdefault((f"{series.point.transport} {told}".strip(), sender), []).append(series)
        found += [_curve(spec, *way, members, reading) for way, members in streams.items()]
    return found


def _direction(members: Sequence[Series], sender: int) -> str:
    hosts = next((launch.hosts for one in members for launch in one.launches), ())
    names = hosts if len(set(hosts)) > 1 else ()
    ends = [names[rank] if rank < len(names) else f"rank {rank}" for rank in (sender, 1 - sender)]
    return f"{ends[0]} to {ends[1]}"


def _curve(spec: Mapping[str, str], transport: str, sender: int, members: Sequence[Series], reading: Reading) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (format_bytes(series.point.bytes), *_cells(series, sender, reading))
        for series in sorted(members, key=lambda one: one.point.bytes)
    ]
    columns = [Column("size")]
    columns += [Column(f"{side}: time, us", "measured") for side in _SIDES]
    columns += [Column("MB/s", "measured")]
    columns += [Column(f"{side}: CPU, %", "measured") for side in _SIDES]
    columns += [Column("write would block", "measured"), Column("read would block", "measured")]
    title = f"{_modes(spec)} ({spec['name']}): {transport}, {_direction(members, sender)}"
    name = f"{spec['name']}: {transport}, source={sender}"
    return Table(name, title, tuple(columns), tuple(rows), tuple(contents("ancor")["notes"]["curve"]))


def _modes(spec: Mapping[str, str]) -> str:
    words = {"blocking": "blocking", "nonblocking": "non-blocking"}
    return f"{words[spec['write']]} write, {words[spec['read']]} read"


def _cells(series: Series, sender: int, reading: Reading) -> tuple[Measured, ...]:
    ranks = (sender, 1 - sender)
    units = ("us", "us", "MB/s", "%", "%", "", "")
    if reading.figure(series) is None:
        return tuple(blank(unit, reading.reason(series)) for unit in units)
    times = [reading.of_rank(series, rank) for rank in ranks]
    speed = reading.cell(series, QUANTITIES["rate"])
    cpu = [reading.cell(series, QUANTITIES[f"CPU of the {side}"]) for side in _SIDES]
    blocked = [
        _per_write(series, name, rank, reading)
        for name, rank in zip(("write_would_block", "read_would_block"), ranks, strict=True)
    ]
    return (*times, speed, *cpu, *blocked)


def _per_write(series: Series, name: str, rank: int, reading: Reading) -> Measured:
    def per_write(measurement: Measurement) -> float | None:
        writes = measurement.elapsed_ns.shape[1] * measurement.batch * measurement.definition.messages_per_rep
        return measurement.counters[name][rank] / writes if name in measurement.counters and writes else None

    return reading.median(series, "", per_write)
