"""The reports' configuration blocks for this machine, from the facts stored with a run."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from hockney.machine.files import format_cpus, named_cpus
from hockney.report.classic.layout import contents
from hockney.report.classic.values import Column, Table
from hockney.results.runs import Run
from hockney.units import counted, format_bytes, format_ns

_UNKNOWN = "unknown"


def atlas_configuration(run: Run) -> Table:
    """The configuration block of the ATLAS report."""
    facts, launches = run.facts, list(run.launches.values())
    software = facts.get("software", {})
    clock_ns = min((launch.clock_ns for launch in launches), default=None)
    clock = facts.get("clock", {}).get("source") or "clock"
    when = datetime.datetime.fromtimestamp(run.info.started_unix_s, tz=datetime.timezone.utc)
    commit = software.get("commit")
    here = {
        "Name": facts.get("hostname"),
        "Machine": _joined((_processors(facts), _caches(facts), _memory(facts))),
        "OS": _system(facts),
        "Compiler": software.get("c_compiler"),
        "Options": software.get("c_options"),
        "Library": _joined(_libraries(run)),
        "Time measurement": clock if clock_ns is None else f"{clock}, {format_ns(clock_ns)} to read",
        "Reported by": f"run {run.id}" + (f" ({run.label})" if run.label else ""),
        "Benchmark version": f"hockney {run.info.version}" + (f" ({commit})" if commit else ""),
        "Date": when.strftime("%-d %B %Y"),
    }
    published = contents("atlas")
    notes = (*published["notes"]["configuration"], *_placements(run))
    return _beside("configuration", "Configuration", published["configuration"], here, notes)


def scabench_descriptions(run: Run) -> tuple[Table, Table]:
    """The two tables at the end of the ScaBench data sheet."""
    facts = run.facts
    software = facts.get("software", {})
    hosts = sorted({host for launch in run.launches.values() for host in launch.hosts})
    surroundings = facts.get("surroundings", {})
    hardware = {
        "Operating system": _system(facts),
        "Network interface": _interfaces(facts, len(hosts)),
        "Network topology": f"{counted(len(hosts), 'host')}: {_joined(hosts)}" if hosts else None,
        "Mother board": _joined(
            text
            for text in (
                facts.get("board"),
                surroundings.get("hypervisor") and f"virtual machine ({surroundings['hypervisor']})",
                surroundings.get("container") and f"container ({surroundings['container']})",
            )
            if text
        )
        or None,
        "Processor(s)": _joined((_processors(facts), _caches(facts))),
        "Memory": _memory(facts),
    }
    installed = {
        "Test source": f"hockney {run.info.version}",
        "Software platform": _joined(_libraries(run)),
        "Compiler": software.get("c_compiler"),
        "Compiler switches": software.get("c_options"),
        "MPI monitor switches": _joined(f"{k}={v}" for k, v in facts.get("environment", {}).items()) or "none",
    }
    published = contents("scabench")
    return (
        _beside("hardware", "Hardware and OS", published["hardware"], hardware),
        _beside("software", "Installed software", published["software"], installed),
    )


def clock_hz(facts: Mapping[str, Any]) -> int | None:
    """The CPU's highest frequency, else the one at the start of the run; None: unknown."""
    cpu = facts.get("cpu", {})
    found: int | None = cpu.get("frequency_max_hz") or cpu.get("frequency_now_hz")
    return found


def data_caches(facts: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """(level, bytes, line size) of each data cache, the smallest first."""
    found = facts.get("topology", {}).get("caches", ())
    return sorted(
        (one["level"], one["size_bytes"], one.get("line_bytes") or 64) for one in found if one["kind"] != "instruction"
    )


def _beside(
    name: str, title: str, published: Mapping[str, str], here: Mapping[str, str | None], notes: tuple[str, ...] = ()
) -> Table:
    columns = (Column("item"), Column("published", "published"), Column("this machine"))
    rows = tuple((item, text, here.get(item) or _UNKNOWN) for item, text in published.items())
    return Table(name, title, columns, rows, notes)


def _joined(texts: Iterable[str | None]) -> str:
    return "; ".join(text for text in texts if text)


def _libraries(run: Run) -> list[str]:
    return sorted({launch.library for launch in run.launches.values() if launch.transport != "null"})


def _placements(run: Run) -> list[str]:
    """The placement of the ranks in one sentence."""
    placed: dict[tuple[str, tuple[str, ...]], set[int]] = {}
    for launch in run.launches.values():
        if launch.transport != "null":
            cpus = format_cpus(tuple(sorted({cpu for cpu in launch.cpus if cpu >= 0}))) or "unknown"
            placed.setdefault((cpus, tuple(dict.fromkeys(launch.hosts))), set()).add(launch.ranks)
    words = [
        f"{', '.join(map(str, sorted(ranks)))} ranks on {named_cpus(cpus)}"
        + (f" of {_joined(hosts)}" if len(hosts) > 1 else "")
        for (cpus, hosts), ranks in sorted(placed.items())
    ]
    return [f"Here: {'; '.join(words)}. Within a host a message crosses no switch."] if words else []


def _interfaces(facts: Mapping[str, Any], hosts: int) -> str | None:
    found = []
    for one in facts.get("network", {}).get("interfaces", ()):
        rate = one["bits_per_s"]
        more = [text for text in (one["driver"], rate and f"{rate / 1e9:g} Gbit/s") if text]
        found.append(f"{one['name']} ({', '.join(more)})" if more else one["name"])
    unused = "" if hosts > 1 else ", not used within one host"
    return ", ".join(found) + unused if found else None


def _processors(facts: Mapping[str, Any]) -> str | None:
    cpu = facts.get("cpu", {})
    hertz = clock_hz(facts)
    speed = f" at {hertz / 1e9:.2f} GHz" if hertz else ""
    return f"{cpu.get('cores') or 'unknown number of'} cores {cpu.get('model') or 'of an unknown model'}{speed}"


def _caches(facts: Mapping[str, Any]) -> str | None:
    return ", ".join(f"L{level} {format_bytes(size)}" for level, size, _ in data_caches(facts)) or None


def _memory(facts: Mapping[str, Any]) -> str | None:
    total = facts.get("memory", {}).get("total_bytes")
    return f"{total / (1 << 30):.1f} GiB" if total else None


def _system(facts: Mapping[str, Any]) -> str | None:
    system = facts.get("os", {})
    return ", ".join(text for text in (system.get("name"), system.get("kernel")) if text) or None
