"""The reports' configuration blocks for this machine, from the facts stored with a run."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hockney.archive import blocks
from hockney.machine.facts import data_caches
from hockney.report.classic.quantity import clock_hz
from hockney.report.classic.values import table_section
from hockney.report.document import Section
from hockney.results.placement import used_interfaces
from hockney.results.runs import Run
from hockney.units import counted, format_bytes, format_ns


def configuration_tables(report: str, run: Run) -> list[Section]:
    """What a report says of its machine: each item in the report, and on this machine."""
    here, columns = _texts(run), ("item", "published", "this machine")
    return [
        table_section(
            block["title"],
            columns,
            [(item, text, here[name] or "unknown") for item, text, name in block["rows"]],
            notes=block.get("notes", ()),
        )
        for block in blocks(report)
    ]


def _texts(run: Run) -> dict[str, str | None]:
    """Texts that the last column of a block may name."""
    facts, launches = run.facts, list(run.launches.values())
    software, system, surroundings = (facts.get(name, {}) for name in ("software", "os", "surroundings"))
    hosts = sorted({host for launch in launches for host in launch.hosts})
    clock_ns = min((launch.clock_ns for launch in launches), default=None)
    clock = facts.get("clock", {}).get("source") or "clock"
    when = datetime.datetime.fromtimestamp(run.info.started_unix_s, tz=datetime.timezone.utc)
    commit = software.get("commit")
    total = facts.get("memory", {}).get("total_bytes")
    memory = f"{total / (1 << 30):.1f} GiB" if total else None
    around = [("virtual machine", surroundings.get("hypervisor")), ("container", surroundings.get("container"))]
    return {
        "hostname": facts.get("hostname"),
        "machine": _joined((_processors(facts), memory)),
        "processors": _processors(facts),
        "memory": memory,
        "system": ", ".join(filter(None, (system.get("name"), system.get("kernel")))),
        "compiler": software.get("c_compiler"),
        "options": software.get("c_options"),
        "libraries": _joined(sorted({library for name, library in run.libraries.items() if name not in run.harness})),
        "clock": clock if clock_ns is None else f"{clock}, {format_ns(clock_ns)} to read",
        "run": run.name,
        "version": f"hockney {run.info.version}" + (f" ({commit})" if commit else ""),
        "date": when.strftime("%-d %B %Y"),
        "network": _between_hosts(used_interfaces(run.info)) or _interfaces(facts, len(hosts)),
        "hosts": f"{counted(len(hosts), 'host')}: {_joined(hosts)}" if hosts else None,
        "board": _joined((facts.get("board"), *(f"{what} ({name})" for what, name in around if name))),
        "environment": _joined(f"{k}={v}" for k, v in facts.get("environment", {}).items()) or "none",
    }


def _joined(texts: Iterable[str | None]) -> str:
    return "; ".join(text for text in texts if text)


def _interfaces(facts: Mapping[str, Any], hosts: int) -> str:
    texts = []
    for interface in facts.get("network", {}).get("interfaces", ()):
        rate = interface["bits_per_s"]
        more = ", ".join(filter(None, (interface["driver"], rate and f"{rate / 1e9:g} Gbit/s")))
        texts.append(f"{interface['name']} ({more})" if more else interface["name"])
    return ", ".join(texts) + ("" if hosts > 1 or not texts else ", not used within one host")


def _between_hosts(interfaces: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """`eth0 (10 Gbit/s)`; with the names of hosts where they differ."""
    hosts: defaultdict[str, list[str]] = defaultdict(list)
    for host, known in interfaces.items():
        rates = [f" ({each['bits_per_s'] / 1e9:g} Gbit/s)" if each["bits_per_s"] else "" for each in known]
        hosts[", ".join(each["name"] + rate for each, rate in zip(known, rates, strict=True))].append(host)
    if len(hosts) == 1:
        return next(iter(hosts))
    return "; ".join(f"{text or 'unknown'} on {', '.join(names)}" for text, names in hosts.items())


def _processors(facts: Mapping[str, Any]) -> str:
    cpu, hertz = facts.get("cpu", {}), clock_hz(facts)
    speed = f" at {hertz / 1e9:.2f} GHz" if hertz else ""
    cores = f"{cpu.get('cores') or 'unknown number of'} cores {cpu.get('model') or 'of an unknown model'}{speed}"
    return _joined((cores, ", ".join(f"L{level} {format_bytes(size)}" for level, size in data_caches(facts))))
