"""What hosts counted during a run: interfaces without a carrier, their errors, and CPU time that a host did not get."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hockney.analysis.finding import Finding, Subject
from hockney.analysis.health.differences import used_interface
from hockney.errors import Fix

COUNTERS = "counters"  # in the stored facts: after the run, by host, as in the facts of each host before it
Counters = dict[str, dict[str, dict[str, int]]]
"""By host, interface and name."""

_CARRIER = {"carrier_changes": 2, "link_downed": 1}  # counters, and by how much they grow each time
ERRORS_MIN = 10  # fewer are of no weight
_CPU = "cpu"  # among interfaces: what hosts_sh/describe.sh says of CPU time
# Shares of a time, by the key of the fact: the two counters, and what makes them alike.
_LACKS = {"held_share": ("held_back_us", "uptime_cs", 1e-4), "stolen_share": ("stolen_ticks", "wanted_ticks", 1.0)}
_EXPLAINED = {"slow", "late", "lossy", "stuck", "silent", "interrupted", "slower"}  # with host or link
_HELD_MIN = 0.1  # of the time: less explains no fault


def counter_findings(
    hosts: Sequence[Mapping[str, Any]], after: Sequence[Counters], interface: str | None = None
) -> Iterator[Finding]:
    """A finding of each interface that was without a carrier, and of each with errors.

    Of `interface`, or the one in use, and of InfiniBand's ports. `hosts`: the facts of each before the run; `after`:
    the counters after it, none or one.
    """
    for host in hosts:
        used = (used_interface(host, interface) or {}).get("name")
        for name in host.get("counters") or {}:
            if name != used and "/" not in name:
                continue
            grown = _grown(host, name, after)
            facts, fix = {"host": host["name"], "interface": name}, Fix("inspect cable")
            times = max((-(-grown[key] // each) for key, each in _CARRIER.items() if key in grown), default=0)
            if times:
                yield Finding("lost carrier", Subject(), {**facts, "times": times}, "", fix, 100.0 * times)
            errors = [f"{key} {count:,}" for key, count in grown.items() if key not in _CARRIER and count >= ERRORS_MIN]
            if errors:
                yield Finding("interface errors", Subject(), {**facts, "errors": errors}, "", fix, 50.0)


def _grown(host: Mapping[str, Any], name: str, after: Sequence[Counters]) -> dict[str, int]:
    """By how much each counter of a name has grown."""
    now = {key: value for each in after for key, value in each.get(host["name"], {}).get(name, {}).items()}
    before = (host.get("counters") or {}).get(name, {})
    return {key: now[key] - value for key, value in before.items() if now.get(key, 0) > value}


# ---- CPU time -------------------------------------------------------------------------------------------------------


def held_back(hosts: Sequence[Mapping[str, Any]], after: Sequence[Counters]) -> dict[str, dict[str, Any]]:
    """The hosts that got less CPU time than others, with the facts: for a cgroup's quota, or a hypervisor.

    They were held back for a tenth of the time, and twice as long as is usual among the hosts.
    """
    found: dict[str, dict[str, Any]] = {}
    grown = {host["name"]: _grown(host, _CPU, after) for host in hosts}
    for key, (name, of_time, scale) in _LACKS.items():
        shares = {host: min(1.0, scale * of.get(name, 0) / of[of_time]) for host, of in grown.items() if of_time in of}
        usual = statistics.median_low(shares.values()) if shares else 0.0
        for host, share in shares.items():
            if share > max(_HELD_MIN, 2 * usual):
                found.setdefault(host, {})[key] = share
    for host in (host for host in hosts if "held_share" in found.get(host["name"], {})):
        found[host["name"]]["quota_cpus"] = host["counters"][_CPU]["quota_mcpus"] / 1000
    return found


def with_held_back(findings: Iterable[Finding], held: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """The findings, with one of each host that is `held` back in place of its slow, late, stuck and lossy pairs.

    It has the facts of the first of those.
    """
    explained: dict[str, Finding] = {}
    for finding in findings:
        names = [finding.facts.get("host"), finding.facts.get("other")]
        host = next((name for name in names if name in held), None)
        if host is None or finding.code.split()[0] not in _EXPLAINED:
            yield finding
        elif None in names:
            explained.setdefault(host, finding)
    for host, facts in held.items():
        known = explained.get(host, Finding("", Subject(), {"host": host}, "", None, 10.0))
        fix = Fix("more CPU time" if "quota_cpus" in facts else "another hypervisor")
        yield replace(known, code="throttled host", facts={**known.facts, **facts}, cause="", fix=fix)
