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
from hockney.machine.limits import SHARED_BYTES_OF_RANK
from hockney.machine.placement import choose_cpus
from hockney.machine.topology import Topology
from hockney.machine.warned import text_of
from hockney.model import Measurement, Point, Warning_
from hockney.results.placement import cores_of_hosts, shared_cores, strayed
from hockney.results.store import Store, StoredRun
from hockney.units import counted, format_mebibytes, listed
from hockney.worker.build import FAMILY_SOURCES
from hockney.worker.catalogue import Catalogue
from hockney.worker.launch import YIELDS
from hockney.worker.programs import output_of

if TYPE_CHECKING:
    from hockney.measure.plan import Plan

_BUSY_CPUS_MAX = 0.2
_YIELDS_MIN = 0.5  # in a round trip: each has a wait, of which a few may end at the first look; who spins has none

_BUSY_DEVICE_MIN = 10  # percent
_NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index,name,utilization.gpu", "--format=csv,noheader,nounits")

OVERSUBSCRIBED = "If oversubscribed, prefer pipe and unix: their ranks sleep while they wait, others take CPU time."
"""The advice for more ranks than CPUs, and its reason."""


def warn_of(key: str, subject: str = "machine", **values: Any) -> Warning_:
    """The warning about a subject that has this key in machine/warnings.toml, with values in its text."""
    return Warning_(key.partition("-")[0], subject, *text_of(key, **values))


def warnings_before(
    facts: dict[str, Any],
    *,
    ranks: int = 2,
    moment: Moment | None = None,
    when: str = "when the run began",
    cpus: Sequence[int] = (),
    mapped: bool = False,
    uses: Collection[str] = ("mpi", "tcp"),
    needed_bytes: int = 0,
) -> list[Warning_]:
    """Known faults before `ranks` ranks are started, from `facts()` and a moment of watching.

    `cpus`: the user's placement of the ranks, in their order. `mapped`: the ranks place themselves, and warnings_of_map
    follows when they have. `uses`: the transports, `needed_bytes` the memory of all ranks. Without a `moment` it
    observes for 0.3 s; `when` names that time. Unknown facts cause no warning.
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
        when = "while the run went on" if goes_on else "while the run measured"
    else:
        when = f"during {len(busy)} of {len(launches)}{' more' if goes_on else ''} launches"
    used_s: defaultdict[str, float] = defaultdict(float)
    for moment in busy:
        for program in moment.programs:
            used_s[_called(program.name)] += program.cpus * moment.duration_s
    names = sorted(used_s, key=lambda name: -used_s[name])[:3]
    cpus = statistics.median(moment.busy_cpus or 0.0 for moment in busy)
    share = sum(used_s[name] for name in names) / sum((moment.busy_cpus or 0.0) * moment.duration_s for moment in busy)
    return [replace(_busy(when, cpus, names, share * cpus), kind="others")]


def _of_limits(facts: dict[str, Any], ranks: int, families: Collection[str], needed_bytes: int) -> Iterator[Warning_]:
    """Limits of the system that make ranks of these families slow, or end them."""
    limits = facts.get("limits") or {}
    on_loopback = {"mpi", "shmem", "pvm", "zmq", "tcp", "mptcp", "udp"}
    if limits.get("loopback") is False and not on_loopback.isdisjoint(families):
        yield warn_of("loopback")
    memory_bytes = limits.get("memory_bytes")
    if memory_bytes is not None and memory_bytes < needed_bytes:
        yield warn_of("memory", limit=format_mebibytes(memory_bytes), needed=format_mebibytes(needed_bytes))
    if {"mpi", "shmem"}.isdisjoint(families):
        return
    if limits.get("cma") is False:
        yield warn_of("cma")
    elif limits.get("ptrace_scope"):
        yield warn_of("cma-scope", scope=limits["ptrace_scope"])
    free_bytes, locked_bytes = limits.get("shared_memory_bytes"), limits.get("locked_memory_bytes")
    if free_bytes is not None and free_bytes < ranks * SHARED_BYTES_OF_RANK:
        yield warn_of("shm", free=format_mebibytes(free_bytes), ranks=ranks)
    if locked_bytes is not None and fact(facts, "network.rdma"):
        yield warn_of("memlock", locked=format_mebibytes(locked_bytes))


def _of_ranks(facts: dict[str, Any], usable: tuple[int, ...], ranks: int) -> Iterator[Warning_]:
    """Faults of this number of ranks on these CPUs."""
    if usable and ranks > len(usable):
        yield warn_of("oversubscription", ranks=ranks, cpus=counted(len(usable), "CPU"), advice=OVERSUBSCRIBED)
    quota = fact(facts, "limits.quota_cpus")
    if quota is not None and quota < min(ranks, len(usable) or ranks):
        yield warn_of("quota", quota=quota, ranks=ranks)


def _of_places(
    facts: dict[str, Any], usable: tuple[int, ...], ranks: int, cpus: Sequence[int] | None = None
) -> Iterator[Warning_]:
    """Faults of the CPUs of this number of ranks; None: hockney chooses them among the usable ones."""
    if not fact(facts, "topology.cores"):
        return
    topology = Topology.from_json(facts["topology"])
    chosen = set(choose_cpus(ranks, topology, usable) if cpus is None else cpus)
    if any(len(chosen.intersection(core)) > 1 for core in topology.cores):
        cores = sum(not set(usable).isdisjoint(core) for core in topology.cores)
        yield warn_of("smt", ranks=ranks, cores=counted(cores, "core"), fitting=counted(cores, "rank"))
    for what, groups in reversed(topology.levels.items()):
        used = [chosen.intersection(group) for group in groups if not chosen.isdisjoint(group)]
        if len(used) > 1 and max(map(len, used)) > 1:
            or_map = "" if cpus is None else " or --map core"
            yield warn_of("placement", ranks=ranks, count=len(used), what=what, or_map=or_map)
            return


def _of_others(moment: Moment, when: str) -> Iterator[Warning_]:
    if moment.steal is not None and moment.steal > 0.01:
        yield warn_of("steal", when=when, share=moment.steal)
    if moment.busy_cpus is not None and moment.busy_cpus >= _BUSY_CPUS_MAX:
        pids: defaultdict[str, list[str]] = defaultdict(list)
        for program in moment.programs:
            pids[_called(program.name)].append(str(program.pid))
        names = [f"{name} ({', '.join(each)})" for name, each in pids.items()]
        yield _busy(when, moment.busy_cpus, names, sum(program.cpus for program in moment.programs))


def _of_machine(facts: dict[str, Any]) -> Iterator[Warning_]:
    """Properties of the machine and its settings that disturb any measurement."""
    if fact(facts, "limits.can_pin") is False:
        yield warn_of("pinning")
    slow = [name for name in fact(facts, "cpu.governors") or [] if name != "performance"]
    if slow:
        yield warn_of("governor", names=listed(slow))
    clock = fact(facts, "clock.source")
    if clock in ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "xen"):  # the kernel is asked for the time
        yield warn_of("clock", name=clock)
    if fact(facts, "network.tcp_congestion_control") == "bbr":
        yield warn_of("congestion", "tcp")
    hypervisor, container = fact(facts, "surroundings.hypervisor"), fact(facts, "surroundings.container")
    if hypervisor:
        yield warn_of("virtual", name="a hypervisor" if hypervisor == "unknown" else hypervisor)
    elif container:
        yield warn_of("container", name=container)
    names = library_settings(facts.get("environment") or {})
    if names:
        yield warn_of("environment", names=", ".join(names))


def _busy(when: str, cpus: float, names: Sequence[str], named_cpus: float) -> Warning_:
    """`names` are those of the busiest programs, as far as they are known, which used `named_cpus` of the `cpus`."""
    if not names:
        return warn_of("load-unseen", when=when, cpus=cpus)
    return warn_of("load", when=when, cpus=cpus, names=listed([*names, *["others"] * (named_cpus < 0.9 * cpus)]))


def _called(program: str) -> str:
    """The printed name of a program. A worker's name contains a hash, which means nothing to a user."""
    return "another hockney" if re.fullmatch(rf"({'|'.join(FAMILY_SOURCES)})-[0-9a-f]+", program) else program


# ---- of a run --------------------------------------------------------------------------------------------------------


class Tally:
    """What is counted while a run measures, for its warnings."""

    def __init__(self) -> None:
        self.yields: Counter[str] = Counter()  # of rank 0 of each transport, in round trips of short messages
        self.round_trips: Counter[str] = Counter()  # the same
        self.lost: Counter[tuple[str, str]] = Counter()  # messages, by transport and pattern
        self.strangers: Counter[str] = Counter()  # refused connections, by transport
        self.limits: defaultdict[str, set[str]] = defaultdict(set)  # transports that met a limit, by its kind
        self.known: set[str] = set()  # kinds of warnings before the run

    def add(self, measurement: Measurement, *, oversubscribed: bool = False) -> None:
        """Count a measurement; a job that is `oversubscribed` should yield."""
        point, yields = measurement.point, measurement.counters.get("yields")
        self.lost[point.transport, point.pattern] += round(sum(measurement.counters.get("lost", ())))
        if point.pattern == "pingpong" and point.bytes <= 1024 and yields and not oversubscribed:
            self.yields[point.transport] += round(yields[0])
            self.round_trips[point.transport] += measurement.batch * measurement.elapsed_ns.shape[1]

    def warnings(self, catalogue: Catalogue, environment: Mapping[str, str]) -> Iterator[Warning_]:
        """Libraries that yield while they wait; lost messages; strangers. `environment` is that of the run."""
        libraries = {name: info.library for name, info in catalogue.transports.items() if info.library}
        yielding = [name for name in libraries if self.yields[name] >= max(1, _YIELDS_MIN * self.round_trips[name])]
        others = {each.id for each in libraries.values() if each.recipe.family == "mpi" and not each.is_wheel}
        other = " or ".join(sorted(others - {*yielding})) or "another MPI (apt install libopenmpi-dev openmpi-bin)"
        for name in yielding:
            if libraries[name].is_wheel:
                yield warn_of("yield-wheel", name, name=name, other=other)
            elif libraries[name].kind in ("openmpi", "oshrun") and (environment.get(YIELDS) or "0") != "0":
                yield warn_of("yield-set", name, name=name, variable=YIELDS)
            else:
                yield warn_of("yield", name, name=name)
        lost = sorted((+self.lost).items())
        for name in sorted({transport for (transport, _), _ in lost}):
            counts = ", ".join(f"{count:,} in {pattern}" for (transport, pattern), count in lost if transport == name)
            yield warn_of("loss", name, name=name, counts=counts)
        for kind, names in self.limits.items():
            if kind not in self.known:
                yield warn_of(kind if kind == "ipv4" else f"{kind}-met", min(names), names=listed(sorted(names)))
        for name, count in sorted((+self.strangers).items()):
            yield warn_of("stranger", name, name=name, connections=counted(count, "connection"))


def steal_warning(store: Store, run_id: int) -> Iterator[Warning_]:
    """CPU time that a hypervisor took during the run."""
    known = [summary.steal for summary in store.summaries(run_id) if summary.steal is not None]
    share = sum(known) / len(known) if known else 0.0
    if share > 0.02:
        yield warn_of("steal-run", share=share)


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
        yield warn_of("smt-hosts", launch.transport, who=who, where=where, cpus=cpus, others=others)


def stray_warnings(run: StoredRun) -> Iterator[Warning_]:
    """Ranks that may run on CPUs that this process may not use; one warning for a transport."""
    places = ((launch.transport, strayed(launch, run.info.facts)) for launch in run.launches.values())
    for transport, outside in {name: cpus for name, cpus in places if cpus}.items():
        cpus = "; ".join(f"{named_cpus(format_cpus(each))} of {host}" for host, each in outside.items())
        yield warn_of("placement-strayed", transport, name=transport, cpus=cpus)


def device_warnings(run: StoredRun, points: Iterable[Point]) -> Iterator[Warning_]:
    """Processes that share a device; one warning for a transport.

    The library's line of `cuda` says so. Of others, those share one that have buffers on devices and are more on a host
    than it has GPUs, as far as Linux shows them: with `host:device` half of all ranks.
    """
    sharing = {launch.transport for launch in run.launches.values() if ", same device: " in launch.library}
    gpus = sum(device["kind"] == "gpu" for device in fact(run.info.facts, "hardware.devices") or ())
    with_buffers = [point for point in points if point.pattern != "devcopy" and "memory" in dict(point.options)]
    on_all = {(each.transport, each.ranks): ":" not in dict(each.options)["memory"] for each in with_buffers}
    for launch in run.launches.values() if gpus else ():
        ranks = max(Counter(launch.hosts).values(), default=launch.ranks)
        is_on_all = on_all.get((launch.transport, launch.ranks))
        if is_on_all is not None and (ranks if is_on_all else min(ranks, launch.ranks // 2)) > gpus:
            sharing.add(launch.transport)
    for transport in sorted(sharing):
        yield warn_of("placement-device", transport, name=transport)


def device_load_warnings(plan: Plan, when: str) -> Iterator[Warning_]:
    """Devices that other programs use, as nvidia-smi says before a plan that needs one."""
    if not any(point.pattern.startswith("dev") or point.transport.startswith("cuda") for point in plan.points):
        return
    rows = (re.split(r",\s*", line) for line in output_of(_NVIDIA_SMI).splitlines())
    for number, name, percent in (row for row in rows if len(row) == 3):
        if percent.isdecimal() and int(percent) >= _BUSY_DEVICE_MIN:
            yield warn_of("load-device", f"device {number}", number=number, name=name, percent=percent, when=when)


def interface_warnings(plan: Plan, catalogue: Catalogue) -> Iterator[Warning_]:
    """Libraries that --interface does not reach."""
    for name in sorted({point.transport for point in plan.points}) if plan.placement.interface else ():
        library = catalogue.transports[name].library
        if library is not None and library.kind == "mpiexec":
            yield warn_of("hosts-interface", name, name=name, interface=plan.placement.interface)


def host_warnings(hosts: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> Iterator[Warning_]:
    """Warnings of the pre-flight: a library of another version or without a launcher, workers that cannot run."""
    used = {info.library.id: info.library for info in catalogue.transports.values() if info.library}
    names_on: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        names_on[host.get("machine") or host["name"]].append(host["name"])
    for names in names_on.values():
        if len(names) > 1:
            yield warn_of("hosts-containers", names[0], names=listed(names))
    for host in hosts:
        name = host["name"]
        for its_id, version in host["libraries"].items():
            first = hosts[0]["libraries"].get(its_id)
            if version != first and its_id in used:
                program, library = used[its_id].program, used[its_id].name
                has = f"{program} is of version {version}" if version else f"there is no working {program}"
                others = {"first": hosts[0]["name"], "version": first or "none", "library": library}
                yield warn_of("hosts-version", name, name=name, has=has, **others)
        for worker, why in host["broken"].items():
            yield warn_of("hosts-broken", name, name=name, worker=worker, why=why)
