"""Hosts of a run: where its ranks ran, clocks before and after it, and the tables of the suites clocks and health."""

from __future__ import annotations

from collections.abc import Iterator

from hockney.machine.files import format_cpus
from hockney.model import Launch
from hockney.report.document import Block, Column, Table, Text, Title
from hockney.results.placement import Cores, cores_of_hosts, shared_cores
from hockney.results.runs import Run


def bindings(run: Run) -> Iterator[Block]:
    """A row for each host of each job; launches that are alike are one."""
    cores = cores_of_hosts(run.facts)
    jobs = {
        (each.transport, each.hosts, each.cpus, each.bound): each
        for each in run.launches.values()
        if each.hosts and max(each.cpus, default=-1) >= 0
    }
    rows = [row for launch in jobs.values() for row in _rows(launch, cores)]
    if not rows:
        return
    yield Title("Where ranks ran")
    columns = [Column(name, key=name == "transport") for name in ("transport", "host", "ranks", "CPUs")]
    yield Table(columns, rows)
    if any("*" in row[-1] for row in rows):
        yield Text("*: on a core with another rank.", tone="quiet")


def _rows(launch: Launch, cores: Cores) -> Iterator[list[str]]:
    """A row for each host: its ranks, and their CPUs in that order."""
    shared = {rank for ranks in shared_cores(launch, cores) for rank in ranks}
    for host in dict.fromkeys(launch.hosts):
        ranks = [rank for rank, name in enumerate(launch.hosts) if name == host]
        cpus = [_cpu_text(launch, rank) + "*" * (rank in shared) for rank in ranks]
        yield [launch.transport, host, format_cpus(ranks), ", ".join(cpus)]


def _cpu_text(launch: Launch, rank: int) -> str:
    """`3`, or `3 of 0-7` of a rank that may move."""
    cpu = launch.cpus[rank]
    bound = launch.bound[rank] if rank < len(launch.bound) else ""
    text = "unknown" if cpu < 0 else str(cpu)
    return text if not bound or bound == text else f"{text} of {bound}"
