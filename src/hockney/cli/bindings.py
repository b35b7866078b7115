"""Where the ranks of a run's launches were: host, CPU, and the CPUs that they may run on."""

from __future__ import annotations

from collections.abc import Iterator

from hockney.cli import render
from hockney.cli.render import TableColumn
from hockney.machine.files import format_cpus
from hockney.model import Launch
from hockney.results.placement import Cores, cores_of_hosts, shared_cores
from hockney.results.runs import Run


def print_bindings(run: Run) -> None:
    """Print a row for each host of each job; launches that are alike are one."""
    cores = cores_of_hosts(run.facts)
    jobs = {
        (each.transport, each.hosts, each.cpus, each.bound): each for each in run.launches.values() if _has_cpu(each)
    }
    rows = [row for launch in jobs.values() for row in _rows(launch, cores)]
    if not rows:
        return
    render.title("Where ranks ran")
    columns = [TableColumn(name, key=name == "transport") for name in ("transport", "host", "ranks", "CPUs")]
    render.table(columns, rows)
    if any("*" in row[-1] for row in rows):
        render.note("*: on a core with another rank.", style="dim")


def _has_cpu(launch: Launch) -> bool:
    return bool(launch.hosts) and any(cpu >= 0 for cpu in launch.cpus)


def _rows(launch: Launch, cores: Cores) -> Iterator[list[str]]:
    """A row for each host: its ranks, and their CPUs in that order."""
    shared = {rank for ranks in shared_cores(launch, cores) for rank in ranks}
    for host in dict.fromkeys(launch.hosts):
        ranks = [rank for rank, name in enumerate(launch.hosts) if name == host]
        cpus = [_cpu_text(launch, rank) + "*" * (rank in shared) for rank in ranks]
        yield [launch.transport, host, format_cpus(ranks), ", ".join(cpus)]


def _cpu_text(launch: Launch, rank: int) -> str:
    """`3`, or `3 of 0-7` of a rank that may move."""
    cpu = launch.cpus[rank] if rank < len(launch.cpus) else -1
    bound = launch.bound[rank] if rank < len(launch.bound) else ""
    text = "unknown" if cpu < 0 else str(cpu)
    return text if not bound or bound == text else f"{text} of {bound}"
