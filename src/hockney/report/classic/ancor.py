"""The tables of the Ancor note: a byte stream by its modes, seen from both sides."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from hockney.model import Measurement
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import QUANTITIES, Reading, options_text
from hockney.report.classic.values import Field, Measured, Table, table_of
from hockney.results.runs import Series
from hockney.units import format_bytes

_OWN_OPTIONS = ("write", "read", "source")
_WORDS = {"blocking": "blocking", "nonblocking": "non-blocking"}


def tables(reading: Reading) -> list[Table]:
    """A table for each figure of the note, transport and direction."""
    found = []
    for spec in contents("ancor")["figure"]:
        streams: dict[tuple[str, int], list[Series]] = {}
        for series in reading.series("stream"):
            options = reading.options(series.point)
            if (options["write"], options["read"], options["compute_us"]) == (spec["write"], spec["read"], "0"):
                others = options_text(pair for pair in series.point.options if pair[0] not in _OWN_OPTIONS)
                name = f"{series.point.transport} {others}".strip()
                streams.setdefault((name, int(options["source"])), []).append(series)
        found += [_curve(spec, *way, members, reading) for way, members in streams.items()]
    return found


def _curve(spec: Mapping[str, str], transport: str, sender: int, members: Sequence[Series], reading: Reading) -> Table:
    receiver = 1 - sender

    def cell(quantity: str) -> Field[Series]:
        title = "MB/s" if quantity == "rate" else f"{quantity.removeprefix('CPU of the ')}: CPU, %"
        return Field(title, lambda series: reading.cell(series, QUANTITIES[quantity]), "measured")

    fields: list[Field[Series]] = [
        Field("size", lambda series: format_bytes(series.point.bytes)),
        Field("sender: time, us", lambda series: reading.of_rank(series, sender), "measured"),
        Field("receiver: time, us", lambda series: reading.of_rank(series, receiver), "measured"),
        cell("rate"),
        cell("CPU of the sender"),
        cell("CPU of the receiver"),
        Field("write would block", lambda one: _per_write(one, "write_would_block", sender, reading), "measured"),
        Field("read would block", lambda one: _per_write(one, "read_would_block", receiver, reading), "measured"),
    ]
    modes = f"{_WORDS[spec['write']]} write, {_WORDS[spec['read']]} read"
    return table_of(
        f"{spec['name']}: {transport}, source={sender}",
        f"{modes} ({spec['name']}): {transport}, {_direction(members, sender)}",
        fields,
        sorted(members, key=lambda series: series.point.bytes),
        contents("ancor")["notes"]["curve"],
    )


def _direction(members: Sequence[Series], sender: int) -> str:
    hosts = next((launch.hosts for series in members for launch in series.launches), ())
    names = hosts if len(set(hosts)) > 1 else ()
    source, target = (names[rank] if rank < len(names) else f"rank {rank}" for rank in (sender, 1 - sender))
    return f"{source} to {target}"


def _per_write(series: Series, name: str, rank: int, reading: Reading) -> Measured:
    return reading.median(series, "", functools.partial(_count_per_write, name, rank))


def _count_per_write(name: str, rank: int, measurement: Measurement) -> float | None:
    writes = measurement.elapsed_ns.shape[1] * measurement.batch * measurement.definition.messages_per_rep
    return measurement.counters[name][rank] / writes if name in measurement.counters and writes else None
