"""The matrices of a run of `hockney health`, also as texts: bandwidth and latency from each host to each other one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hockney.analysis.clusters import Pair
from hockney.analysis.health import Health
from hockney.stats.interval import Interval
from hockney.units import format_ns, format_rate

HOSTS_MAX = 16
"""More have no matrix that can be read as text."""


@dataclass(frozen=True)
class HostTable:
    """A row for each host: its name, and the value to each; empty where nothing was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class HostMatrix:
    """What was measured between hosts, by pairs of their places; `text` prints a value of this unit."""

    title: str
    unit: str
    usual: float
    values: Mapping[Pair, Interval]
    text: Callable[[float], str]

    @property
    def usually(self) -> str:
        """The usual value."""
        return f"usually {self.text(self.usual)}"


def host_matrices(health: Health) -> Iterator[HostMatrix]:
    """The bandwidth, then the latency; each only if it was measured."""
    known = health.matrices
    usual_bytes_per_s, usual_ns = known.usual_bytes_per_s, known.usual_ns
    if usual_bytes_per_s is not None:
        title = "Bandwidth, all pairs of a round at once"
        yield HostMatrix(title, "bytes/s", usual_bytes_per_s, known.bytes_per_s, format_rate)
    if usual_ns is not None:
        yield HostMatrix("Latency of 8 B, half a round trip", "ns", usual_ns, known.latency_ns, format_ns)


def host_tables(health: Health) -> Iterator[HostTable]:
    """The matrices as texts."""
    hosts = health.matrices.hosts
    places = range(len(hosts))
    for matrix in host_matrices(health):
        yield HostTable(
            f"{matrix.title}: {matrix.usually}",
            ("from", *(f"to {name}" for name in hosts)),
            tuple(
                (hosts[a], *(matrix.text(matrix.values[a, b].value) if (a, b) in matrix.values else "" for b in places))
                for a in places
            ),
        )
