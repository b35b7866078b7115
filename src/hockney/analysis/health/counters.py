"""What the interfaces of hosts counted during a run: times without a carrier, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hockney.analysis.finding import Finding, Subject
from hockney.analysis.health.differences import used_interface
from hockney.errors import Fix

COUNTERS = "counters"  # in the stored facts: after the run, by host, as in the facts of each host before it
Counters = dict[str, dict[str, dict[str, int]]]
"""By host, interface and name."""

_CARRIER = {"carrier_changes": 2, "link_downed": 1}  # counters, and by how much they grow each time
ERRORS_MIN = 10  # fewer are of no weight


def counter_findings(
    hosts: Sequence[Mapping[str, Any]], after: Sequence[Counters], interface: str | None = None
) -> Iterator[Finding]:
    """A finding of each interface that was without a carrier, and of each with errors.

    Of `interface`, or the one in use, and of InfiniBand's ports. `hosts`: the facts of each before the run; `after`:
    the counters after it, none or one.
    """
    for host in hosts:
        used = (used_interface(host, interface) or {}).get("name")
        for name, counters in (host.get("counters") or {}).items():
            if name != used and "/" not in name:
                continue
            now = {key: value for each in after for key, value in each.get(host["name"], {}).get(name, {}).items()}
            grown = {key: now[key] - value for key, value in counters.items() if now.get(key, 0) > value}
            facts, fix = {"host": host["name"], "interface": name}, Fix("inspect cable")
            times = max((-(-grown[key] // each) for key, each in _CARRIER.items() if key in grown), default=0)
            if times:
                yield Finding("lost carrier", Subject(), {**facts, "times": times}, "", fix, 100.0 * times)
            errors = [f"{key} {count:,}" for key, count in grown.items() if key not in _CARRIER and count >= ERRORS_MIN]
            if errors:
                yield Finding("interface errors", Subject(), {**facts, "errors": errors}, "", fix, 50.0)
