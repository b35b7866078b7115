"""Where the ranks of a run were: the CPUs and the network interfaces of each host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hockney.machine.facts import fact
from hockney.machine.files import parse_cpus
from hockney.machine.topology import Cpus
from hockney.model import Launch, RunInfo

Cores = Mapping[str, Sequence[Cpus]]


def cores_of_hosts(facts: Mapping[str, Any]) -> Cores:
    """The hardware threads of each core, by each name of its host, as far as the facts of a run have them."""
    here = {facts.get("hostname"): fact(facts, "topology.cores") or ()}
    listed = here | {name: host.get("cores", ()) for name, host in _named(facts)}
    return {host: [parse_cpus(core) for core in cores] for host, cores in listed.items() if host}


def _named(facts: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Each host of several by its own name and by that of --hosts: launches have the latter where names are alike."""
    return [(host[key], host) for key in ("hostname", "name") for host in facts.get("hosts", ()) if key in host]


def shared_cores(launch: Launch, cores: Cores) -> list[list[int]]:
    """The ranks on each core that has several of them; ranks that are not bound to one CPU are on none."""
    ranks: defaultdict[tuple[str, Cpus], list[int]] = defaultdict(list)
    for rank, (host, cpu, bound) in enumerate(zip(launch.hosts, launch.cpus, launch.bound, strict=False)):
        if bound == str(cpu):
            core = next((core for core in cores.get(host, ()) if cpu in core), (cpu,))
            ranks[host, core].append(rank)
    return [together for together in ranks.values() if len(together) > 1]


def strayed(launch: Launch, facts: Mapping[str, Any]) -> dict[str, Cpus]:
    """The CPUs that ranks may run on beyond those that hockney may use there, by host, as far as both are known."""
    allowed = {facts.get("hostname"): fact(facts, "limits.usable_cpus")}
    allowed |= {name: host.get("cpus") for name, host in _named(facts)}
    outside: defaultdict[str, set[int]] = defaultdict(set)
    for host, bound in zip(launch.hosts, launch.bound, strict=False):
        usable = parse_cpus(allowed.get(host))
        outside[host].update(set(parse_cpus(bound)).difference(usable) if usable else ())
    return {host: tuple(sorted(cpus)) for host, cpus in outside.items() if cpus}


def used_interfaces(info: RunInfo) -> dict[str, list[dict[str, Any]]]:
    """By host: the network interfaces that messages may use, those with an address; of --interface that one."""
    name = info.plan.get("interface")
    return {
        host["name"]: [each for each in host["interfaces"] if each["address"] and name in (None, each["name"])]
        for host in info.facts.get("hosts") or ()
    }
