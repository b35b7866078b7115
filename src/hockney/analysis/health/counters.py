"""What the interfaces of hosts counted during a run: times without a carrier, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hockney.analysis.finding import Finding, Subject
from hockney.errors import Fix

COUNTERS = "counters"  # in the stored facts: after the run, by host, as in the facts of each host before it
_CARRIER = {"carrier_changes": 2, "link_downed": 1}  # counters, and by how much they grow each time


def counter_findings(hosts: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """A finding of each interface that was without a carrier, and of each with errors.

    `hosts`: the facts of each before the run; `after`: the counters of each after it, none or one.
    """
    for host in hosts:
        for interface, counters in (host.get("counters") or {}).items():
            now = {name: value for of in after for name, value in of.get(host["name"], {}).get(interface, {}).items()}
            grown = {name: now[name] - value for name, value in counters.items() if now.get(name, 0) > value}
            facts = {"host": host["name"], "interface": interface}
            times = max((-(-grown[name] // each) for name, each in _CARRIER.items() if name in grown), default=0)
            fix = Fix("inspect cable")
            if times:
                yield Finding("lost carrier", Subject(), {**facts, "times": times}, "", fix, 100.0 * times)
            errors = {name: count for name, count in grown.items() if name not in _CARRIER}
            if errors:
                listed = [f"{name} {count:,}" for name, count in errors.items()]
                yield Finding("interface errors", Subject(), {**facts, "errors": listed}, "", fix, 50.0)
