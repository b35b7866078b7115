"""Hosts that are slow by themselves: below half of what the interface carries, or below a limit of the user's."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hockney.analysis.expect import Expectation, Outcome, judge_hosts
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject
from hockney.analysis.health.differences import flow_bits_per_s, used_interface
from hockney.analysis.health.matrices import Matrices
from hockney.analysis.health.readable import readable
from hockney.analysis.host_series import series_of
from hockney.analysis.repeat import longer_health
from hockney.errors import Fix
from hockney.model import TO
from hockney.results.runs import Run
from hockney.stats.interval import Interval
from hockney.units import ordinal
from hockney.worker.hosts import Host, fold_hosts

EXPECTED = "expected"  # in the stored plan: the tables of an expectation file
SHARE = 0.5  # of what the interface carries: what is certainly below it is a fault
_FLOW_BITS_PER_S = 1e10  # one flow reaches that on any CPU of today; how much more depends on the CPU
_PAIRS_ENOUGH = 6  # all below a limit, without an interval: by chance once in 64


def below_interfaces(
    known: Matrices, hosts: Sequence[Mapping[str, Any]], interface: str | None, spared: Collection[str]
) -> Iterator[Finding]:
    """A finding for each kind of interface: hosts of which no pair, sending or receiving, reaches its share of it.

    `hosts`: the facts of each. Pairs with a slower interface do not count, nor those without a speed.
    """
    used = {host["name"]: used_interface(host, interface) or {} for host in hosts}
    bits_per_s = {name: speed for name, each in used.items() if (speed := flow_bits_per_s(each))}
    rates: dict[str, list[Interval]] = {}
    for pair, rate in known.bytes_per_s.items():
        speeds = {name: bits_per_s.get(name, 0) for name in (known.hosts[end] for end in pair)}
        for name, own in speeds.items():
            if own and own == min(speeds.values()):
                rates.setdefault(name, []).append(rate)
    kinds: dict[tuple[str, float], dict[str, list[float]]] = {}
    for name, of_host in rates.items():
        most = SHARE * min(bits_per_s[name], _FLOW_BITS_PER_S) / 8
        is_certain = len(of_host) >= _PAIRS_ENOUGH or any(
            rate.high is not None and rate.high < most for rate in of_host
        )
        if is_certain and name not in spared and all(rate.value < most for rate in of_host):
            kinds.setdefault((used[name]["name"], bits_per_s[name]), {})[name] = [rate.value for rate in of_host]
    for (device, speed), of_kind in kinds.items():
        rate_bytes_per_s = statistics.median(value for values in of_kind.values() for value in values)
        of_hosts = [name for name in known.hosts if name in of_kind]
        facts: dict[str, Any] = {"hosts": of_hosts, "names": _folded(of_hosts), "interface": device}
        share = 8 * rate_bytes_per_s / speed
        facts |= {"rate_bytes_per_s": rate_bytes_per_s, "speed_bytes_per_s": speed / 8, "of_speed_share": share}
        yield Finding("below interface", Subject(), facts, "", Fix("inspect speed"), 1 / share - 1)


def expectations_of(run: Run, weak: Collection[str]) -> tuple[list[Finding], list[NotChecked], set[str]]:
    """The limits of the user's that hosts miss, those that are inconclusive, and the hosts with a limit of the rate.

    `weak`: see series_of.
    """
    found, gaps, limited = list[Finding](), list[NotChecked](), set[str]()
    if EXPECTED not in run.info.plan:
        return found, gaps, limited
    series = series_of(run, weak)
    for number, table in enumerate(readable(Expectation, run.info.plan, EXPECTED), start=1):
        unclear: dict[str, list[str]] = {}
        for limit in judge_hosts(series, number, table):
            if limit.point is None:
                facts: dict[str, Any] = {"place": limit.place, "names": _folded(table.hosts)}
                gaps.append(NotChecked(Absence.NOT_MEASURED, limit.what, "no such host", facts))
                continue
            ((end, host),), is_rate = limit.point.options, limit.what == "bandwidth"
            limited |= {host} if is_rate else set()
            if limit.outcome is Outcome.INCONCLUSIVE:
                unclear.setdefault(limit.what, []).append(host)
            seen = limit.figure and (limit.figure.bytes_per_s if is_rate else limit.figure.time)
            if limit.outcome is Outcome.MISSED and seen:
                facts = {"host": host, "place": limit.place, "way": {TO: "receives"}.get(end, "sends")}
                keys = ("rate_bytes_per_s", "limit_bytes_per_s") if is_rate else ("time_ns", "limit_ns")
                facts |= dict(zip(keys, (seen.value, limit.limit), strict=True))
                ratio, fix = seen.value / limit.limit, "inspect interface" if is_rate else "inspect latency"
                found.append(Finding("missed limit", Subject(), facts, "", Fix(fix), max(ratio, 1 / ratio) - 1))
        for what, hosts in unclear.items():
            facts = {"place": f"the {ordinal(number)} [[expect]]", "names": _folded(dict.fromkeys(hosts))}
            how = longer_health(run.info)
            gaps.append(NotChecked(Absence.INSUFFICIENT_DATA, what, "near limit", facts, how))
    return found, gaps, limited


def _folded(hosts: Iterable[str]) -> str:
    return fold_hosts(map(Host, hosts))
