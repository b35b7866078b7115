"""Where ranks go: which CPUs this process may use, and which of them n ranks are pinned to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache

from hockney.errors import UsageError
from hockney.machine.files import format_cpus, named_cpus
from hockney.machine.topology import Cpus, Topology, read_topology

_this_machine = lru_cache(maxsize=1)(read_topology)  # it does not change while hockney runs


def usable_cpus() -> Cpus:
    """The CPUs that this process may run on, ascending: those of its affinity mask, which cgroups narrow too."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def can_pin() -> bool:
    """Whether a process can be pinned here. It can't on macOS, and in some sandboxes."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True


def choose_cpus(ranks: int, topology: Topology | None = None, usable: Iterable[int] | None = None) -> Cpus:
    """The CPU of each rank: `ranks` of them, or none if nothing can be pinned.

    Separate cores come first, further hardware threads of a used core only then. All are under one last-level cache if
    they fit, else in one NUMA node, else in one package. Fast kinds of core come before slow ones. With more ranks than
    CPUs it begins again with the first: then the job is oversubscribed.
    """
    if usable is None:
        usable = usable_cpus() if can_pin() else ()
    topology = topology or _this_machine()
    cores = _cores(topology, frozenset(usable))
    if not cores or ranks < 1:
        return ()
    fitting = _fitting(topology, cores, ranks)
    deepest = max(len(core) for core in fitting)
    cpus = [core[thread] for thread in range(deepest) for core in fitting if thread < len(core)]
    return tuple(cpus[rank % len(cpus)] for rank in range(ranks))


def refuse_unusable(cpus: Iterable[int]) -> None:
    """Refuse CPUs of the user's placement that this process may not use. Raises UsageError."""
    asked = set(cpus)
    if asked and not can_pin():
        raise UsageError("ranks can't be placed on CPUs here, because the system refuses to pin them: leave out --cpus")
    unusable = asked.difference(usable_cpus())
    if unusable:
        raise UsageError(
            f"no rank can run on {named_cpus(format_cpus(unusable))}: this process may use "
            f"{named_cpus(format_cpus(usable_cpus()))}"
        )


def _cores(topology: Topology, usable: frozenset[int]) -> list[Cpus]:
    """The usable hardware threads of each core, in the order in which cores are taken."""
    cores = [tuple(cpu for cpu in core if cpu in usable) for core in topology.cores]
    known = {cpu for core in cores for cpu in core}
    cores = [core for core in cores if core] + [(cpu,) for cpu in usable - known]

    def order(core: Cpus) -> tuple[object, ...]:
        shared = ([core[0] not in group for group in level] for level in reversed(topology.levels.values()))
        return core[0] in topology.slower, *shared, core

    return sorted(cores, key=order)


def _fitting(topology: Topology, cores: list[Cpus], ranks: int) -> list[Cpus]:
    """The first group of cores, from the closest kind to the widest, that holds a core for each rank; else all."""
    for level in topology.levels.values():
        # In the order in which cores are taken: the group of the first core is tried first.
        for group in dict.fromkeys(group for core in cores for group in level if core[0] in group):
            inside = [core for core in cores if core[0] in group]
            if len(inside) >= ranks:
                return inside
    return cores
