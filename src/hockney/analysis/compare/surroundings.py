"""In what the surroundings of two runs differ: machine, system, libraries, placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hockney.analysis.compare.values import COMMIT, CPU, HOST, Difference, Disturbance
from hockney.model import RunStatus
from hockney.results.store import StoredRun
from hockney.worker.mpi_transport import split_library

# What a reader calls it -> where it stands in the facts (machine/facts.py), in the order in which it is shown.
_FACTS = {
    HOST: "hostname",
    CPU: "cpu.model",
    "microcode": "cpu.microcode",
    "cores": "cpu.cores",
    "logical CPUs": "cpu.logical",
    "usable CPUs": "limits.usable_cpus",
    "CPU quota": "limits.quota_cpus",
    "pinning possible": "limits.can_pin",
    "niceness": "limits.nice",
    "governor": "cpu.governors",
    "frequency driver": "cpu.driver",
    "highest frequency (Hz)": "cpu.frequency_max_hz",
    "boost": "cpu.boost",
    "deepest idle state ends after (us)": "cpu.idle_exit_max_us",
    "hypervisor": "surroundings.hypervisor",
    "container": "surroundings.container",
    "operating system": "os.name",
    "kernel": "os.kernel",
    "huge pages": "memory.huge_pages",
    "huge pages of shared memory": "memory.huge_pages_shared",
    "clock source": "clock.source",
    "TCP congestion control": "network.tcp_congestion_control",
    "libc": "software.libc",
    "C compiler": "software.c_compiler",
    "C options": "software.c_options",
    COMMIT: "software.commit",
}

_DISTURBING = ("load", "steal", "others")  # kinds of warnings
_AND = "; "  # between the values of one key
_STOPPED = (RunStatus.INTERRUPTED, RunStatus.KILLED)


def differences(base: StoredRun, new: StoredRun, renamed: Mapping[str, str]) -> tuple[Difference, ...]:
    """The most telling first. `renamed`: a transport of base -> what new calls it."""
    return (
        *_of_launches(base, new, renamed),
        *_of_version(base.info.version, new.info.version),
        *(
            Difference(what, _text(_look(base.info.facts, path)), _text(_look(new.info.facts, path)))
            for what, path in _FACTS.items()
            if _look(base.info.facts, path) != _look(new.info.facts, path)
        ),
        *_of_variables(base.info.facts.get("environment"), new.info.facts.get("environment")),
    )


def is_unchanged(found: Iterable[Difference]) -> bool:
    """Whether nothing is known to differ that could make anything faster or slower: then it may be a drift."""
    return all(one.what in (HOST, COMMIT) for one in found)


def disturbances(*runs: StoredRun) -> tuple[Disturbance, ...]:
    """What else ran on the machine of each: it may be different, or the same and yet disturb in another measure.

    Of each kind the last, for a run that goes on looks again; but what others did during launches stays true of those.
    And whether a run was stopped before its end.
    """
    last = {
        (run.id, warning.cause if warning.kind == "others" else warning.kind): warning.cause
        for run in runs
        for warning in run.warnings
        if warning.kind in _DISTURBING
    }
    stopped = [Disturbance(run.id, "It was stopped before its end") for run in runs if run.status in _STOPPED]
    return (*stopped, *(Disturbance(run_id, cause) for (run_id, _), cause in last.items()))


def _of_version(base: str, new: str) -> Iterable[Difference]:
    if base != new:
        yield Difference("hockney", base, new)


def _look(facts: Mapping[str, Any], path: str) -> Any:
    value: Any = facts
    for word in path.split("."):
        value = value.get(word) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or None
    return None if value is None else str(value)


def _of_variables(base: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterable[Difference]:
    """Where a run knows its environment, what is not in it was not set."""
    values = [{name: _variable(side, name) for name in sorted({*(base or {}), *(new or {})})} for side in (base, new)]
    for name, before in values[0].items():
        if before != values[1][name]:
            yield Difference(f"variable {name}", before, values[1][name])


def _variable(environment: Mapping[str, Any] | None, name: str) -> str | None:
    if environment is None:
        return None
    value = environment.get(name)
    return "not set" if value is None else _text(value) or "empty"


def _of_launches(base: StoredRun, new: StoredRun, renamed: Mapping[str, str]) -> Iterable[Difference]:
    """Libraries, CPUs and hosts of the transports that both have; what is the same for several is said once."""
    old_names = {after: before for before, after in renamed.items()}
    for what, read in (("library", _libraries), ("CPUs of ranks", _cpus), ("hosts of ranks", _hosts)):
        before, after = read(base), read(new)
        groups: dict[tuple[str, str], list[str]] = {}
        for key, value in after.items():
            earlier = before.get((old_names.get(key[0], key[0]), *key[1:]))
            if earlier is not None and not _are_same(earlier, value):
                groups.setdefault((earlier, value), []).append(str(key[0]))
        for (earlier, value), names in groups.items():
            yield Difference(f"{what}, {', '.join(dict.fromkeys(names))}", earlier, value)


def _are_same(before: str, after: str) -> bool:
    """Also where only one of them tells what carries the bytes: hockney did not always ask for it."""
    return before == after or before == _without_carriers(after) or _without_carriers(before) == after


def _without_carriers(libraries: str) -> str:
    return _AND.join(split_library(one)[0] for one in libraries.split(_AND))


_Key = tuple[Any, ...]  # a transport, and the number of ranks where that matters


def _libraries(run: StoredRun) -> dict[_Key, str]:
    return _gathered(((launch.transport,), launch.library) for launch in run.launches.values())


def _cpus(run: StoredRun) -> dict[_Key, str]:
    return _gathered(
        ((launch.transport, launch.ranks), " ".join(map(str, launch.cpus))) for launch in run.launches.values()
    )


def _hosts(run: StoredRun) -> dict[_Key, str]:
    return _gathered(
        ((launch.transport, launch.ranks), " ".join(dict.fromkeys(launch.hosts))) for launch in run.launches.values()
    )


def _gathered(pairs: Iterable[tuple[_Key, str]]) -> dict[_Key, str]:
    """All values of a key, each once, in an order that does not depend on which came first."""
    found: dict[_Key, set[str]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return {key: _AND.join(sorted(values)) for key, values in found.items()}
