"""Warnings about a run's measurements: time in the kernel, lost messages, stolen CPU time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hockney.errors import UsageError
from hockney.machine.files import format_cpus, named_cpus
from hockney.model import Measurement, Warning_
from hockney.results.placement import cores_of_hosts, shared_cores, strayed
from hockney.results.store import Store, StoredRun
from hockney.units import counted
from hockney.worker.catalogue import Catalogue
from hockney.worker.launch import YIELDS

if TYPE_CHECKING:
    from hockney.measure.plan import Plan


class KernelShare:
    """How much of its time rank 0 of each transport spends in the kernel while it sends short messages."""

    def __init__(self) -> None:
        self.system_ns: Counter[str] = Counter()
        self.wall_ns: Counter[str] = Counter()

    def add(self, measurement: Measurement) -> None:
        point = measurement.point
        if point.pattern == "pingpong" and point.bytes <= 1024:
            self.system_ns[point.transport] += measurement.cpu_system_ns[0]
            self.wall_ns[point.transport] += measurement.wall_ns[0]

    def warnings(self, catalogue: Catalogue) -> Iterator[Warning_]:
        """A library that makes system calls although its transport needs none."""
        for name, wall_ns in self.wall_ns.items():
            share = self.system_ns[name] / max(1, wall_ns)
            info = catalogue.transports.get(name)
            # In less time one or two clock ticks would make a share; user-space spinning stays far below a fifth.
            if wall_ns < 50_000_000 or share < 0.2 or info is None or "syscalls" in info.caps:
                continue
            if info.library is not None:
                cause = f"{name} spends {share:.0%} of its time in system calls."
                others = sorted(
                    other.library.id
                    for other in catalogue.transports.values()
                    if other.library is not None and not other.library.is_wheel and other.name.startswith("mpi@")
                )
                remedy = f"Set the library to spin while it waits; for Open MPI, leave {YIELDS} unset."
                if info.library.is_wheel:
                    other = " or ".join(dict.fromkeys(others)) or "another MPI (apt install libopenmpi-dev openmpi-bin)"
                    remedy = f"Use {other}: no setting of the PyPI wheel of MPICH changes this."
                yield Warning_("yield", name, cause, remedy)


def loss_warnings(lost: Counter[tuple[str, str]]) -> Iterator[Warning_]:
    """`lost`: messages by transport and pattern."""
    for name in sorted({transport for transport, _ in +lost}):
        counts = ", ".join(
            f"{count:,} in {pattern}" for (transport, pattern), count in sorted((+lost).items()) if transport == name
        )
        yield Warning_(
            "loss",
            name,
            f"{name} lost messages ({counts}): its times count them, its rates do not.",
            "Shorter messages, a smaller window or longer socket buffers (net.core.rmem_max) lose fewer; the export "
            "has the losses of each measurement.",
        )


def stranger_warnings(strangers: Counter[str]) -> Iterator[Warning_]:
    """Connections to the ranks of a transport that did not know the job's token."""
    for name, count in sorted((+strangers).items()):
        yield Warning_(
            "stranger",
            name,
            f"{counted(count, 'connection')} to the ranks of {name} came from another program; the ranks refused them.",
            "A port scanner does this; if you run none, find out who connects (docs/security.md).",
        )


def steal_warning(store: Store, run_id: int) -> Iterator[Warning_]:
    """CPU time that a hypervisor took during the run."""
    known = [summary.steal for summary in store.summaries(run_id) if summary.steal is not None]
    share = sum(known) / len(known) if known else 0.0
    if share > 0.02:
        cause = f"While this run measured, the hypervisor took {share:.0%} of the CPU time."
        remedy = "Measure when other virtual machines are idle, or on an instance with dedicated cores."
        yield Warning_("steal", "machine", cause, remedy)


def core_warnings(run: StoredRun) -> Iterator[Warning_]:
    """Ranks that shared a core on one of several hosts, from where they were found; one warning for a transport."""
    if "hosts" not in run.info.facts:
        return
    cores = cores_of_hosts(run.info.facts)
    warned = set()
    for launch in sorted(run.launches.values(), key=lambda launch: launch.ranks):
        shared = shared_cores(launch, cores)
        if not shared or launch.transport in warned:
            continue
        warned.add(launch.transport)
        ranks, where = shared[0], launch.hosts[shared[0][0]]
        cpus = named_cpus(format_cpus(launch.cpus[rank] for rank in ranks))
        who = f"{' and '.join(map(str, ranks))} of the {counted(launch.ranks, 'rank')} of {launch.transport}"
        others = f", and so do others on {counted(len(shared) - 1, 'core')}" if shared[1:] else ""
        yield Warning_(
            "smt",
            launch.transport,
            f"Ranks {who} share a core of {where} ({cpus}){others}: each slows the others down.",
            "Put fewer ranks on each host (-n, --per-node), so that each has a separate core.",
        )


def stray_warnings(run: StoredRun) -> Iterator[Warning_]:
    """Ranks that may run on CPUs that this process may not use; one warning for a transport."""
    places = ((launch.transport, strayed(launch, run.info.facts)) for launch in run.launches.values())
    for transport, outside in {name: cpus for name, cpus in places if cpus}.items():
        cpus = "; ".join(f"{named_cpus(format_cpus(each))} of {host}" for host, each in outside.items())
        yield Warning_(
            "placement",
            transport,
            f"Ranks of {transport} were on CPUs that hockney may not use: {cpus}.",
            "Allow hockney the CPUs of its ranks (taskset, cgroup, job), or choose another --launcher.",
        )


def interface_warnings(plan: Plan, catalogue: Catalogue) -> Iterator[Warning_]:
    """Libraries that --interface does not reach."""
    for name in sorted({point.transport for point in plan.points}) if plan.interface else ():
        library = catalogue.transports[name].library
        if library is not None and library.kind == "mpiexec":
            yield Warning_(
                "hosts",
                name,
                f"{name} chooses its network interface itself: hockney cannot tell it to use {plan.interface}.",
                "Set the variable that its manual names, or measure another transport.",
            )


class InterfaceMissing(UsageError):
    """Some hosts do not have the interface of --interface; `causes` and `demand` as of HostsUnusable."""

    def __init__(self, causes: Mapping[str, str], name: str) -> None:
        self.causes, self.demand = causes, f"reachable on {name}"
        host, cause = next(iter(causes.items()))
        super().__init__(f"{host} has {cause}: name one with --interface that all hosts have")


def refuse_without_interface(hosts: Sequence[Mapping[str, Any]], name: str) -> None:
    """Raises InterfaceMissing for hosts that have no interface of this name with an address."""
    causes = {}
    for host in hosts:
        known = [interface["name"] for interface in host["interfaces"] if interface["address"]]
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            causes[host["name"]] = f"no network interface {name} with an IPv4 address ({has})"
    if causes:
        raise InterfaceMissing(causes, name)


def host_warnings(hosts: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> Iterator[Warning_]:
    """Warnings of the pre-flight: a library of another version or without a launcher, workers that cannot run."""
    used = {info.library.id: info.library for info in catalogue.transports.values() if info.library}
    for host in hosts:
        for its_id, version in host["libraries"].items():
            first = hosts[0]["libraries"].get(its_id)
            if version != first and its_id in used:
                program = used[its_id].program
                has = f"{program} is of version {version}" if version else f"there is no working {program}"
                yield Warning_(
                    "hosts",
                    host["name"],
                    f"On {host['name']} {has}; {hosts[0]['name']} has {first or 'none'}.",
                    f"Install the same version of {used[its_id].name} on all hosts.",
                )
        for worker, why in host["broken"].items():
            yield Warning_(
                "hosts",
                host["name"],
                f"On {host['name']} the worker {worker} does not run: {why}.",
                "Install the library that it needs there.",
            )
