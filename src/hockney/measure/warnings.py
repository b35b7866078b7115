"""Warnings with cause and remedy: limits to precision on this machine and its hosts, and what a run met."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hockney.machine.activity import Moment, observe
from hockney.machine.facts import fact, library_settings
from hockney.machine.files import format_cpus, named_cpus, parse_cpus
from hockney.machine.limits import FIXES, MET, SHARED_BYTES_OF_RANK
from hockney.machine.placement import choose_cpus
from hockney.machine.topology import Topology
from hockney.model import Measurement, Warning_
from hockney.results.placement import cores_of_hosts, shared_cores, strayed
from hockney.results.store import Store, StoredRun
from hockney.units import counted
from hockney.worker.build import FAMILY_SOURCES
from hockney.worker.catalogue import Catalogue
from hockney.worker.launch import YIELDS

if TYPE_CHECKING:
    from hockney.measure.plan import Plan

_BUSY_CPUS_MAX = 0.2

OVERSUBSCRIBED = "If oversubscribed, prefer pipe and unix: their ranks sleep while they wait, others take CPU time."
"""The advice for more ranks than CPUs, and its reason."""


def warnings_before(
    facts: dict[str, Any],
    *,
    ranks: int = 2,
    moment: Moment | None = None,
    when: str = "When the run began",
    cpus: Sequence[int] = (),
    mapped: bool = False,
    uses: Collection[str] = ("mpi", "tcp"),
    needed_bytes: int = 0,
) -> list[Warning_]:
    """Known faults before `ranks` ranks are started, from `facts()` and a moment of watching.

    `cpus`: the user's placement of the ranks, in their order. `mapped`: the ranks place themselves, and warnings_of_map
    follows when they have. `uses`: the transports, `needed_bytes` the memory of all ranks. Without a `moment` it
    observes for 0.3 s; `when` names that time. Facts that older versions did not store cause no warning.
    """
    usable = parse_cpus(fact(facts, "limits.usable_cpus"))
    moment = moment or observe(cpus=usable or None)
    usable = tuple(sorted(set(cpus[:ranks]))) or usable
    places = () if mapped else _of_places(facts, usable, ranks)
    limits = _of_limits(facts, ranks, frozenset(re.split("[@:]", name)[0] for name in uses), needed_bytes)
    return [*limits, *_of_ranks(facts, usable, ranks), *places, *_of_others(moment, when), *_of_machine(facts)]


def warnings_of_map(run: StoredRun) -> list[Warning_]:
    """Faults of where --map put the ranks of one host, of the launch with most of them."""
    info = run.info
    if info.plan.get("hosts") or info.plan.get("map_by", "core") == "core":
        return []
    placed = [launch.cpus for launch in run.launches.values() if min(launch.cpus, default=-1) >= 0]
    cpus = max(placed, key=len, default=())
    usable = parse_cpus(fact(info.facts, "limits.usable_cpus"))
    return list(_of_places(info.facts, usable, len(cpus), cpus)) if cpus else []


def warnings_during(launches: Sequence[Moment], *, goes_on: bool) -> list[Warning_]:
    """Load of other programs while each of these launches measured; `goes_on`: the run had launches before."""
    busy = [moment for moment in launches if (moment.busy_cpus or 0.0) >= _BUSY_CPUS_MAX]
    if not busy:
        return []
    if len(launches) == 1:
        when = "While the run went on" if goes_on else "While the run measured"
    else:
        when = f"During {len(busy)} of {len(launches)}{' more' if goes_on else ''} launches"
    used_s: defaultdict[str, float] = defaultdict(float)
    for moment in busy:
        for program in moment.programs:
            used_s[_called(program.name)] += program.cpus * moment.duration_s
    names = sorted(used_s, key=lambda name: -used_s[name])[:3]
    cpus = statistics.median(moment.busy_cpus or 0.0 for moment in busy)
    return [_warning("others", *_busy(when, cpus, names))]


def _warning(kind: str, cause: str, remedy: str) -> Warning_:
    return Warning_(kind, "tcp" if kind == "congestion" else "machine", cause, remedy)


def _of_limits(facts: dict[str, Any], ranks: int, families: Collection[str], needed_bytes: int) -> Iterator[Warning_]:
    """Limits of the system that make ranks of these families slow, or end them."""
    limits = facts.get("limits") or {}
    has_library = not {"mpi", "shmem"}.isdisjoint(families)
    if limits.get("loopback") is False and not {"mpi", "shmem", "pvm", "tcp", "udp"}.isdisjoint(families):
        yield _limit("loopback", "The loopback interface is down: sockets and libraries cannot start.")
    if limits.get("cma") is False and has_library:
        cause = "The kernel refuses copies from process to process (CMA): MPIs copy long messages twice, or fail."
        yield _limit("cma", cause)
    elif limits.get("ptrace_scope") and has_library:
        cause = f"kernel.yama.ptrace_scope is {limits['ptrace_scope']}, so MPICH copies long messages twice."
        yield _limit("cma", cause)
    free_bytes = limits.get("shared_memory_bytes")
    if free_bytes is not None and free_bytes < ranks * SHARED_BYTES_OF_RANK and has_library:
        cause = f"/dev/shm has {_mebibytes(free_bytes)} for {ranks} ranks: MPIs use sockets instead, or fail."
        yield _limit("shm", cause)
    locked_bytes = limits.get("locked_memory_bytes")
    if locked_bytes is not None and has_library and fact(facts, "network.rdma"):
        yield _limit("memlock", f"A process may lock {_mebibytes(locked_bytes)}: libraries cannot use all of RDMA.")
    memory_bytes = limits.get("memory_bytes")
    if memory_bytes is not None and memory_bytes < needed_bytes:
        cause = f"A cgroup limits memory to {_mebibytes(memory_bytes)}; this run needs {_mebibytes(needed_bytes)}."
        yield _limit("memory", cause)


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


def _limit(kind: str, cause: str) -> Warning_:
    fix = FIXES[kind]
    return _warning(kind, cause, f"{fix[0].upper()}{fix[1:]}.")


def _of_ranks(facts: dict[str, Any], usable: tuple[int, ...], ranks: int) -> Iterator[Warning_]:
    """Faults of this number of ranks on these CPUs."""
    if usable and ranks > len(usable):
        yield _warning(
            "oversubscription",
            f"Up to {ranks} ranks share {counted(len(usable), 'CPU')}: figures of more ranks than CPUs are "
            "scheduling times.",
            f"Use fewer ranks, or allow this process more CPUs (taskset, --cpuset-cpus, the size of the job). "
            f"{OVERSUBSCRIBED}",
        )
    quota = fact(facts, "limits.quota_cpus")
    if quota is not None and quota < min(ranks, len(usable) or ranks):
        yield _warning(
            "quota",
            f"A cgroup limits this process to {quota:.2g} CPUs: {ranks} spinning ranks are stopped in mid-message.",
            f"Raise the limit to at least {ranks} CPUs (docker --cpus, Kubernetes limits, systemd CPUQuota).",
        )


def _of_places(
    facts: dict[str, Any], usable: tuple[int, ...], ranks: int, cpus: Sequence[int] | None = None
) -> Iterator[Warning_]:
    """Faults of the CPUs of this number of ranks; None: hockney chooses them among the usable ones."""
    try:
        topology = Topology.from_json(facts.get("topology") or {})
    except KeyError:  # of another version
        return
    chosen = set(choose_cpus(ranks, topology, usable) if cpus is None else cpus)
    if any(len(chosen.intersection(core)) > 1 for core in topology.cores):
        cores = sum(not set(usable).isdisjoint(core) for core in topology.cores)
        yield _warning(
            "smt",
            f"{ranks} ranks on {counted(cores, 'core')} share hardware threads, so each slows another down.",
            f"Use at most {counted(cores, 'rank')}: each then has a separate core.",
        )
    nodes = tuple(node.cpus for node in topology.nodes)
    levels = {"packages": topology.packages, "NUMA nodes": nodes, "last-level caches": topology.last_level()}
    for what, groups in levels.items():
        used = [chosen.intersection(group) for group in groups if not chosen.isdisjoint(group)]
        if len(used) > 1 and max(map(len, used)) > 1:
            yield _warning(
                "placement",
                f"{ranks} ranks sit on {len(used)} {what}, so some pairs of ranks are more distant than others.",
                f"Use fewer ranks{'' if cpus is None else ' or --map core'} to keep them on one, or read these "
                "figures as a mixture.",
            )
            return


def _of_others(moment: Moment, when: str) -> Iterator[Warning_]:
    if moment.steal is not None and moment.steal > 0.01:
        yield _warning(
            "steal",
            f"{when}, the hypervisor took {moment.steal:.0%} of the CPU time for other virtual machines.",
            "Measure when they are idle, or on an instance with dedicated cores.",
        )
    if moment.busy_cpus is not None and moment.busy_cpus >= _BUSY_CPUS_MAX:
        names = [f"{_called(program.name)} ({program.pid})" for program in moment.programs]
        yield _warning("load", *_busy(when, moment.busy_cpus, names))


def _of_machine(facts: dict[str, Any]) -> Iterator[Warning_]:
    """Properties of the machine and its settings that disturb any measurement."""
    if fact(facts, "limits.can_pin") is False:
        yield _warning(
            "pinning",
            "Ranks cannot be pinned to CPUs here, so they move between them and figures scatter.",
            "Measure on Linux, outside a sandbox that forbids sched_setaffinity, for narrow intervals.",
        )
    slow = [name for name in fact(facts, "cpu.governors") or [] if name != "performance"]
    if slow:
        yield _warning(
            "governor",
            f"The frequency governor is {_list(slow)}: CPUs change speed while they are measured.",
            "As root: cpupower frequency-set -g performance (undo it afterwards).",
        )
    clock = fact(facts, "clock.source")
    if clock in ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "xen"):  # the kernel is asked for the time
        yield _warning(
            "clock",
            f"The clock is {clock}: reading it costs about 1 us instead of 25 ns, so batches must be long.",
            "See the kernel log (dmesg) for why the CPU's own counter (tsc) is not used; "
            "/sys/devices/system/clocksource/clocksource0/current_clocksource sets the clock.",
        )
    if fact(facts, "network.tcp_congestion_control") == "bbr":
        yield _warning(
            "congestion",
            "TCP's congestion control is bbr: rates of long messages vary from connection to connection.",
            "For steadier figures, as root: sysctl net.ipv4.tcp_congestion_control=cubic (undo it afterwards).",
        )
    hypervisor, container = fact(facts, "surroundings.hypervisor"), fact(facts, "surroundings.container")
    if hypervisor:
        name = "a hypervisor" if hypervisor == "unknown" else hypervisor
        yield _warning(
            "virtual",
            f"This is a virtual machine ({name}): its CPUs may move between cores, which changes figures.",
            "Compare figures within one machine state only; the command compare does that for two runs.",
        )
    elif container:
        yield _warning(
            "container",
            f"This is a container ({container}): programs outside it use the same CPUs, unseen from here.",
            "Compare figures within one machine state only, or measure on the host.",
        )
    names = library_settings(facts.get("environment") or {})
    if names:
        yield _warning(
            "environment",
            f"Environment variables change what is measured: {_list(names)}.",
            "Unset them for the libraries' own defaults; they are stored with the run.",
        )


def _busy(when: str, cpus: float, names: Sequence[str]) -> tuple[str, str]:
    """Cause and remedy; `names` are those of the busiest programs, as far as they are known."""
    cause = f"{when}, other programs kept {cpus:.1f} CPUs busy"
    if names:
        return f"{cause}: {_list(names)}.", "Stop them, or wait until they are done, and measure again."
    return (
        f"{cause}.",
        "They come and go, or cannot be seen from here: run top, also on the host; measure when it is idle.",
    )


def _called(program: str) -> str:
    """The printed name of a program. A worker's name contains a hash, which means nothing to a user."""
    return "another hockney" if re.fullmatch(rf"({'|'.join(FAMILY_SOURCES)})-[0-9a-f]+", program) else program


def _list(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


# ---- of a run --------------------------------------------------------------------------------------------------------


class Tally:
    """What is counted while a run measures, for its warnings."""

    def __init__(self) -> None:
        self.system_ns: Counter[str] = Counter()  # of rank 0 of each transport, while it sends short messages
        self.wall_ns: Counter[str] = Counter()  # of the same
        self.lost: Counter[tuple[str, str]] = Counter()  # messages, by transport and pattern
        self.strangers: Counter[str] = Counter()  # refused connections, by transport
        self.limits: defaultdict[str, set[str]] = defaultdict(set)  # transports that met a limit, by its kind
        self.known: set[str] = set()  # kinds of warnings before the run

    def add(self, measurement: Measurement, *, in_kernel: bool = False) -> None:
        """Count a measurement; `in_kernel`: its job is expected to make system calls."""
        point = measurement.point
        self.lost[point.transport, point.pattern] += round(sum(measurement.counters.get("lost", ())))
        if point.pattern == "pingpong" and point.bytes <= 1024 and not in_kernel:
            self.system_ns[point.transport] += measurement.cpu_system_ns[0]
            self.wall_ns[point.transport] += measurement.wall_ns[0]

    def warnings(self, catalogue: Catalogue) -> Iterator[Warning_]:
        """Libraries that make system calls although their transport needs none; lost messages; strangers."""
        for name, wall_ns in self.wall_ns.items():
            share = self.system_ns[name] / max(1, wall_ns)
            info = catalogue.transports.get(name)
            # In less time one or two clock ticks would make a share; user-space spinning stays far below a fifth.
            if wall_ns < 50_000_000 or share < 0.2 or info is None or "syscalls" in info.caps or info.library is None:
                continue
            remedy = f"Set the library to spin while it waits; for Open MPI, leave {YIELDS} unset."
            if info.library.is_wheel:
                others = sorted(
                    other.library.id
                    for other in catalogue.transports.values()
                    if other.library is not None and not other.library.is_wheel and other.name.startswith("mpi@")
                )
                other = " or ".join(dict.fromkeys(others)) or "another MPI (apt install libopenmpi-dev openmpi-bin)"
                remedy = f"Use {other}: no setting of the PyPI wheel of MPICH changes this."
            yield Warning_("yield", name, f"{name} spends {share:.0%} of its time in system calls.", remedy)
        for name in sorted({transport for transport, _ in +self.lost}):
            counts = ", ".join(
                f"{count:,} in {pattern}"
                for (transport, pattern), count in sorted((+self.lost).items())
                if transport == name
            )
            yield Warning_(
                "loss",
                name,
                f"{name} lost messages ({counts}): its times count them, its rates do not.",
                "Shorter messages, a smaller window or longer socket buffers (net.core.rmem_max) lose fewer; the "
                "export has the losses of each measurement.",
            )
        for kind, names in self.limits.items():
            if kind not in self.known:
                yield replace(_limit(kind, f"{_list(sorted(names))} {MET[kind]}."), subject=min(names))
        for name, count in sorted((+self.strangers).items()):
            yield Warning_(
                "stranger",
                name,
                f"{counted(count, 'connection')} to the ranks of {name} came from another program; the ranks refused "
                "them.",
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


def host_warnings(hosts: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> Iterator[Warning_]:
    """Warnings of the pre-flight: a library of another version or without a launcher, workers that cannot run."""
    used = {info.library.id: info.library for info in catalogue.transports.values() if info.library}
    names_on: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        names_on[host["machine"]].append(host["name"])
    for names in names_on.values():
        if len(names) > 1:
            yield Warning_(
                "hosts",
                names[0],
                f"{_list(names)} are containers on one machine: they share its CPUs and memory.",
                "Give each its own CPUs (docker --cpuset-cpus); for the figures of a network, use separate machines.",
            )
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
