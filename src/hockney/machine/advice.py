"""What limits precision on this machine, before and during measuring: warnings with cause and remedy."""

from __future__ import annotations

import platform
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hockney.machine.activity import Moment, observe
from hockney.machine.facts import library_settings
from hockney.machine.files import parse_cpus
from hockney.machine.placement import choose_cpus
from hockney.machine.topology import Topology
from hockney.model import Warning_
from hockney.units import counted

_STEAL_MAX = 0.01
_BUSY_CPUS_MAX = 0.2
_NAMED_MAX = 3
# Clocks that are read without the kernel: the CPU's own counters, then those that need one more look at memory.
_FAST_CLOCKS = ("tsc", "arch_sys_counter", "timebase", "riscv_clocksource", "tod", "stp")
_FAIR_CLOCKS = ("kvm-clock", "hyperv_clocksource_tsc_page")


OVERSUBSCRIBED = "Oversubscribed, prefer pipe and unix: their waiting ranks sleep, while spinning ones take CPU time."
"""What to measure with more ranks than CPUs, and why."""


def warnings_before(
    facts: dict[str, Any],
    *,
    ranks: int = 2,
    moment: Moment | None = None,
    look: Callable[..., Moment] = observe,
    when: str = "When the run began",
    cpus: Sequence[int] = (),
) -> list[Warning_]:
    """What is known to be wrong before `ranks` ranks are started, from `facts()` and a moment of watching.

    `cpus`: where the user placed the ranks, in their order. Without a `moment` it calls `look`, for 0.3 s; `when` says
    when that was. Facts that an older hockney did not store cause no warning.
    """
    usable = parse_cpus(_get(facts, "limits", "usable_cpus"))
    moment = moment or look(cpus=usable or None)
    usable = tuple(sorted(set(cpus[:ranks]))) or usable
    return [
        *_pinning(facts),
        *_too_few(facts, usable, ranks),
        *_placement(facts, usable, ranks),
        *_governor(facts),
        *_others(moment, when),
        *_clock(facts),
        *_congestion(facts),
        *_surroundings(facts),
        *_environment(facts),
    ]


def warnings_during(launches: Sequence[Moment], *, goes_on: bool) -> list[Warning_]:
    """What other programs used while each of these launches measured; `goes_on`: the run had launches before."""
    disturbed = [moment for moment in launches if moment.busy_cpus is not None and moment.busy_cpus >= _BUSY_CPUS_MAX]
    if not disturbed:
        return []
    if len(launches) == 1:
        when = "While the run went on" if goes_on else "While the run measured"
    else:
        when = f"During {len(disturbed)} of {len(launches)}{' more' if goes_on else ''} launches"
    cpus = statistics.median(moment.busy_cpus or 0.0 for moment in disturbed)
    middle = " in the median" if len(disturbed) > 1 else ""
    used_s: defaultdict[str, float] = defaultdict(float)
    for moment in disturbed:
        for program in moment.programs:
            used_s[_called(program.name)] += program.cpus * moment.duration_s
    names = sorted(used_s, key=lambda name: -used_s[name])[:_NAMED_MAX]
    return [_load("others", f"{when}, other programs kept {cpus:.1f} CPUs busy{middle}", names)]


def _warning(kind: str, cause: str, remedy: str) -> Warning_:
    return Warning_(kind, "machine", cause, remedy)


def _get(facts: dict[str, Any], *names: str) -> Any:
    value: Any = facts
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


# ---- where ranks run ------------------------------------------------------------------------------------------------


def _pinning(facts: dict[str, Any]) -> Iterator[Warning_]:
    if _get(facts, "limits", "can_pin") is False:
        system = (_get(facts, "os", "kernel") or platform.system()).partition(" ")[0]
        yield _warning(
            "pinning",
            f"Ranks cannot be pinned to CPUs here ({system}), so they move between them and figures scatter.",
            "Measure on Linux, outside a sandbox that forbids sched_setaffinity, for narrow intervals.",
        )


def _too_few(facts: dict[str, Any], usable: tuple[int, ...], ranks: int) -> Iterator[Warning_]:
    if usable and ranks > len(usable):
        use = f"Use at most {len(usable)} ranks, or allow" if len(usable) > 1 else "Allow"
        yield _warning(
            "oversubscription",
            f"Up to {ranks} ranks share {counted(len(usable), 'CPU')}: figures of more ranks than CPUs are "
            "scheduling times.",
            f"{use} this process more CPUs (taskset, --cpuset-cpus, the size of the job). {OVERSUBSCRIBED}",
        )
    quota = _get(facts, "limits", "quota_cpus")
    if quota is not None and quota < min(ranks, len(usable) or ranks):
        yield _warning(
            "quota",
            f"A cgroup limits this process to {quota:.2g} CPUs' worth of time, less than {ranks} spinning ranks need; "
            "they are stopped in the middle of a message.",
            f"Raise the limit to at least {ranks} CPUs (docker --cpus, Kubernetes limits, systemd CPUQuota).",
        )


def _placement(facts: dict[str, Any], usable: tuple[int, ...], ranks: int) -> Iterator[Warning_]:
    try:
        topology = Topology.from_json(_get(facts, "topology") or {})
    except KeyError:
        return
    chosen = set(choose_cpus(ranks, topology, usable))
    cores = sum(1 for core in topology.cores if set(usable).intersection(core))
    if any(len(chosen.intersection(core)) > 1 for core in topology.cores):
        yield _warning(
            "smt",
            f"{ranks} ranks on {counted(cores, 'core')} share hardware threads, so each slows another down.",
            f"Use at most {counted(cores, 'rank')}: each then has a core of its own.",
        )
    nodes = tuple(node.cpus for node in topology.nodes)
    levels = ((topology.packages, "packages"), (nodes, "NUMA nodes"), (topology.last_level(), "last-level caches"))
    for groups, what in levels:
        used = [group for group in groups if chosen.intersection(group)]
        room = max((len(set(usable).intersection(group)) for group in used), default=0)
        if len(used) > 1 and room > 1:
            yield _warning(
                "placement",
                f"{ranks} ranks sit on {len(used)} {what}, so some pairs of ranks are farther apart than others.",
                "Use fewer ranks to keep them on one, or read these figures as a mixture.",
            )
            return


# ---- what disturbs --------------------------------------------------------------------------------------------------


def _governor(facts: dict[str, Any]) -> Iterator[Warning_]:
    slow = [name for name in _get(facts, "cpu", "governors") or [] if name != "performance"]
    if slow:
        yield _warning(
            "governor",
            f"The frequency governor is {_list(slow)}: CPUs change speed while they are measured.",
            "As root: cpupower frequency-set -g performance (and afterwards back).",
        )


def _others(moment: Moment, when: str) -> Iterator[Warning_]:
    if moment.steal is not None and moment.steal > _STEAL_MAX:
        yield _warning(
            "steal",
            f"{when}, the hypervisor took {moment.steal:.0%} of the CPU time: other virtual machines share these "
            "cores.",
            "Measure when they are idle, or on an instance with dedicated cores.",
        )
    if moment.busy_cpus is not None and moment.busy_cpus >= _BUSY_CPUS_MAX:
        names = [f"{_called(program.name)} ({program.pid})" for program in moment.programs]
        yield _load("load", f"{when}, other programs kept {moment.busy_cpus:.1f} CPUs busy", names)


def _load(kind: str, cause: str, names: Sequence[str]) -> Warning_:
    """`names` are those of the busiest programs, as far as they are known."""
    if names:
        remedy = "Stop them, or wait until they are done, and measure again."
        return _warning(kind, f"{cause}, above all {_list(names)}.", remedy)
    remedy = "They come and go, or cannot be seen from here: run top, also on the host; measure when it is idle."
    return _warning(kind, f"{cause}.", remedy)


def _called(program: str) -> str:
    """A worker's program is named after what it was built from, which means nothing to a user."""
    return "another hockney" if re.fullmatch(r"(native|mpi)-[0-9a-f]+", program) else program


def _clock(facts: dict[str, Any]) -> Iterator[Warning_]:
    source = _get(facts, "clock", "source")
    if source is None or source in _FAST_CLOCKS or source in _FAIR_CLOCKS:
        return
    better = next((name for name in _get(facts, "clock", "available") or [] if name in _FAST_CLOCKS), None)
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    yield _warning(
        "clock",
        f"The clock is {source}: reading it costs about a microsecond instead of 25 ns, so batches must be long.",
        f"As root, if the kernel log does not call it unstable: echo {better} > {path}."
        if better
        else "See the kernel log (dmesg) for why the CPU's own counter was found unstable.",
    )


def _congestion(facts: dict[str, Any]) -> Iterator[Warning_]:
    if _get(facts, "network", "tcp_congestion_control") == "bbr":
        yield Warning_(
            "congestion",
            "tcp",
            "TCP's congestion control is bbr, so figures of long messages over the loopback change from one connection "
            "to the next.",
            "For steadier figures, as root: sysctl net.ipv4.tcp_congestion_control=cubic (and afterwards back).",
        )


def _surroundings(facts: dict[str, Any]) -> Iterator[Warning_]:
    hypervisor, container = (_get(facts, "surroundings", name) for name in ("hypervisor", "container"))
    if hypervisor:
        name = "a hypervisor" if hypervisor == "unknown" else hypervisor
        yield _warning(
            "virtual",
            f"This is a virtual machine ({name}): its CPUs may move between cores, and every figure moves with them.",
            "Compare figures within one machine state only, and two runs with `hockney compare`.",
        )
    elif container:
        yield _warning(
            "container",
            f"This is a container ({container}): programs outside it share the machine and cannot be seen from here.",
            "Compare figures within one machine state only, or measure on the host.",
        )


def _environment(facts: dict[str, Any]) -> Iterator[Warning_]:
    names = list(library_settings(_get(facts, "environment") or {}))
    if names:
        yield _warning(
            "environment",
            f"Environment variables change what is measured: {_list(names)}.",
            "Unset them for the libraries' own defaults; they are stored with the run.",
        )
