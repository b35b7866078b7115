"""The matrices of a run of `hockney health` as texts: the bandwidth and the latency from each host to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hockney.analysis.health import Health
from hockney.units import format_ns, format_rate

HOSTS_MAX = 16
"""More have no matrix that can be read as text."""


@dataclass(frozen=True)
class HostTable:
    """A row for each host: its name, and the value to each; empty where nothing was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def host_tables(health: Health) -> Iterator[HostTable]:
    """The bandwidth, then the latency; each only if it was measured."""
    known = health.matrices
    places = range(len(known.hosts))
    parts = (
        ("Bandwidth, all pairs of a round at once", known.bytes_per_s, health.usual_bytes_per_s, format_rate),
        ("Latency of 8 B, half a round trip", known.latency_ns, health.usual_ns, format_ns),
    )
    for title, values, usual, text in parts:
        if usual is not None:
            yield HostTable(
                f"{title}: usually {text(usual)}",
                ("from", *(f"to {name}" for name in known.hosts)),
                tuple(
                    (known.hosts[a], *(text(values[a, b].value) if (a, b) in values else "" for b in places))
                    for a in places
                ),
            )
