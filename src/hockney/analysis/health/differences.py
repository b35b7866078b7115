"""What differs between hosts that should be alike, and clocks that are wrong, from what each host says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hockney.analysis.finding import Finding, Subject
from hockney.errors import Fix

Host = Mapping[str, Any]

# What should be the same on all hosts, and the fix where it is not.
_SAME = {"kernel": "same kernel", "cpu": "one kind", "libc": "same libraries", "congestion": "same congestion control"}


def differences(hosts: Sequence[Host]) -> list[Finding]:
    """A finding for each property that is not the same everywhere, and one for wrong clocks."""
    values: dict[str, dict[str, str]] = {
        name: {host["name"]: str(host[name]) for host in hosts if host.get(name)} for name in _SAME
    }
    fixes = dict(_SAME)
    for library in sorted({library for host in hosts for library in host.get("libraries", {})}):
        fixes[library] = "same version"
        values[library] = {host["name"]: str(host.get("libraries", {}).get(library)) for host in hosts}
    for name in sorted({interface["name"] for host in hosts for interface in host["interfaces"]}):
        for key, word, fix in (("mtu_bytes", "MTU", "same MTU"), ("bits_per_s", "speed", "inspect cable")):
            fixes[f"{word} of {name}"] = fix
            values[f"{word} of {name}"] = {
                host["name"]: str(interface[key])
                for host in hosts
                for interface in host["interfaces"]
                if interface["name"] == name and interface["address"] and interface[key]
            }
    found = [
        _difference(name, of_host, fixes[name]) for name, of_host in values.items() if len({*of_host.values()}) > 1
    ]
    return [*found, *_wrong_clocks(hosts)]


def _difference(name: str, of_host: Mapping[str, str], fix: str) -> Finding:
    """The hosts that differ from most; where none are most, all values."""
    counts = Counter(of_host.values())
    usual, count = counts.most_common(1)[0]
    is_usual = 2 * count > len(of_host)
    others = [f"{host} {value}" for host, value in of_host.items() if not (is_usual and value == usual)]
    facts = {"property": name, "differing": others, **({"usual": usual, "of": count} if is_usual else {})}
    return Finding("differing hosts", Subject(), facts, "", Fix(fix), 0.01)


def _wrong_clocks(hosts: Sequence[Host]) -> Iterator[Finding]:
    """Clocks that cannot show the time which most may (K. Marzullo, S. Owicki, 1983)."""
    spans = {
        host["name"]: (host["clock_offset_s"] - host["clock_error_s"], host["clock_offset_s"] + host["clock_error_s"])
        for host in hosts
        if host.get("clock_offset_s") is not None
    }
    if not spans:
        return
    at_s = max((low for low, _ in spans.values()), key=lambda s: sum(low <= s <= high for low, high in spans.values()))
    agreeing = [name for name, (low, high) in spans.items() if low <= at_s <= high]
    for host in hosts:
        if host["name"] in spans and host["name"] not in agreeing:
            ahead_s = host["clock_offset_s"] - at_s
            facts = {
                "host": host["name"],
                "off_ns": 1e9 * abs(ahead_s),
                "way": "ahead" if ahead_s > 0 else "behind",
                "error_ns": 1e9 * host["clock_error_s"],
                "agreeing": len(agreeing),
            }
            cause = "" if 2 * len(agreeing) > len(spans) else "unclear"
            yield Finding("wrong clock", Subject(), facts, cause, Fix("set clock"), 0.02)
