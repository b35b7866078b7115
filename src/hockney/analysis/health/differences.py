"""Differences between hosts that should be alike, and wrong clocks, from each host's description of itself."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hockney.analysis.clocks import Seen
from hockney.analysis.finding import Finding, Subject
from hockney.errors import Fix

Host = Mapping[str, Any]

# What should be the same on all hosts, and the fix where it is not.
_SAME = {"kernel": "same kernel", "cpu": "one kind", "libc": "same libraries", "congestion": "same congestion control"}
_OF_INTERFACE = {"MTU": ("mtu_bytes", "same MTU"), "speed": ("bits_per_s", "inspect cable")}
# NTP keeps clocks within 1 ms of a server on the same network, and within some ms of one on the internet.
_OFF_NS = 10e6


def differences(hosts: Sequence[Host], interface: str | None = None) -> tuple[list[Finding], list[str]]:
    """A finding for each property that is not the same everywhere, and the properties that hosts do not report.

    MTU and speed are those of `interface`, or of the one in use.
    """
    of_hosts = [
        (name, fix, {host["name"]: str(host[name]) for host in hosts if host.get(name)}) for name, fix in _SAME.items()
    ]
    used = {host["name"]: used_interface(host, interface) for host in hosts}
    names = " and ".join(sorted({each["name"] for each in used.values() if each}))
    for word, (key, fix) in _OF_INTERFACE.items():
        title = f"{word} of {names}" if names else word
        of_hosts.append((title, fix, {name: str(each[key]) for name, each in used.items() if each and each[key]}))
    unsaid = [
        title.partition(" of ")[0] + (f" ({', '.join(missing)})" if values else "")
        for title, _, values in of_hosts
        if (missing := [host["name"] for host in hosts if host["name"] not in values])
    ]
    for library in sorted({library for host in hosts for library in host.get("libraries", {})}):
        versions = {host["name"]: str(host.get("libraries", {}).get(library)) for host in hosts}
        of_hosts.append((library, "same version", versions))
    found = [_difference(title, values, fix) for title, fix, values in of_hosts if len({*values.values()}) > 1]
    return found, unsaid


def used_interface(host: Host, name: str | None) -> Mapping[str, Any] | None:
    """The interface of that name, or with the address that leads to the host, or the only one; None: not known."""
    every: Sequence[Mapping[str, Any]] = host.get("interfaces") or ()
    if name is not None:
        return next((each for each in every if each["name"] == name), None)
    with_address = [each for each in every if each["address"]] or every
    led = [each for each in with_address if each["address"] and each["address"] == host.get("address")]
    return next(iter(led or with_address), None) if led or len(with_address) == 1 else None


def flow_bits_per_s(interface: Mapping[str, Any] | None) -> float:
    """What one connection may reach: of a bond one link; 0 where it is not known, as of virtual interfaces."""
    known = interface or {}
    return float(known.get("link_bits_per_s") or known.get("bits_per_s") or 0)


def _difference(name: str, of_host: Mapping[str, str], fix: str) -> Finding:
    """The hosts that differ from the majority; without a majority, all values."""
    counts = Counter(of_host.values())
    usual, count = counts.most_common(1)[0]
    is_usual = 2 * count > len(of_host)
    others = [f"{host} {value}" for host, value in of_host.items() if not (is_usual and value == usual)]
    facts = {"property": name, "differing": others, **({"usual": usual, "of": count} if is_usual else {})}
    return Finding("differing hosts", Subject(), facts, "", Fix(fix), 0.01)


def wrong_clocks(hosts: Sequence[Host], readings: Sequence[Mapping[str, Mapping[str, float]]]) -> Iterator[Finding]:
    """Clocks that cannot show the time which most may (K. Marzullo, S. Owicki, 1983).

    By the best of `readings`, which compare all hosts around a run; without any by the logins, which are less precise.
    """
    seen: dict[str, Seen] = {}
    for reading in readings:
        for name, values in reading.items():
            seen[name] = min(seen.get(name, Seen(**values)), Seen(**values), key=lambda each: each.error_ns)
    slack_ns = _OFF_NS / 2 if seen else 0.0  # of each of two clocks
    seen = seen or {
        host["name"]: Seen(0.0, 1e9 * host["clock_offset_s"], 1e9 * host["clock_error_s"])
        for host in hosts
        if host.get("clock_offset_s") is not None
    }
    if not seen:
        return
    spans = {
        name: (clock.ahead_ns - clock.error_ns - slack_ns, clock.ahead_ns + clock.error_ns + slack_ns)
        for name, clock in seen.items()
    }
    at_ns = max(
        (low for low, _ in spans.values()), key=lambda ns: sum(low <= ns <= high for low, high in spans.values())
    )
    agreeing = [name for name, (low, high) in spans.items() if low <= at_ns <= high]
    agreed_ns = statistics.median(seen[name].ahead_ns for name in agreeing)
    for name, clock in seen.items():
        if name not in agreeing:
            ahead_ns = clock.ahead_ns - agreed_ns
            facts = {
                "host": name,
                "off_ns": abs(ahead_ns),
                "way": "ahead" if ahead_ns > 0 else "behind",
                "error_ns": clock.error_ns,
                "agreeing": len(agreeing),
            }
            cause = "" if 2 * len(agreeing) > len(seen) else "unclear"
            yield Finding("wrong clock", Subject(), facts, cause, Fix("set clock"), 0.02)
