"""The health of hosts, from a run of the suite `health`: faults of hosts and links as findings."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.clocks import READINGS
from hockney.analysis.clusters import are_few
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject
from hockney.analysis.health import faults
from hockney.analysis.health.absolute import below_interfaces, expectations_of
from hockney.analysis.health.counters import COUNTERS, Counters, counter_findings, held_back, with_held_back
from hockney.analysis.health.differences import differences, wrong_clocks
from hockney.analysis.health.matrices import DEMAND, LOST, REMEDIES, UNUSABLE, Matrices, matrices_of
from hockney.analysis.health.nights import ALL, WORSE, Worse
from hockney.analysis.health.readable import readable
from hockney.analysis.health.stalls import STALLS, Stall, blamed
from hockney.analysis.health.topology import behind_a_switch, by_switch, switches_of
from hockney.analysis.repeat import longer_health
from hockney.errors import Fix
from hockney.model import PointStatus, RunInfo
from hockney.results.runs import Run

_FRAME_BYTES = 1400  # longer messages need frames of full size
UNSAID, AT_TIMES = "unsaid", "at times"
SMALL = (UNSAID, AT_TIMES)  # gaps that leave no fault of the network unseen


@dataclass(frozen=True)
class Health:
    """The faults of hosts, the worst first, and what is inconclusive."""

    matrices: Matrices
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]

    @property
    def has_fault(self) -> bool:
        """Whether a fault was found, besides hosts that could not be used."""
        return any(finding.code != "unusable host" for finding in self.findings)

    @property
    def is_clear(self) -> bool:
        """Whether nothing was found, and nothing of the network is left open."""
        return not self.findings and all(gap.why in SMALL for gap in self.not_checked)


def health_of(run: Run) -> Health:
    """Every fault that a run shows. Raises UsageError for a run of other hosts than the suite's."""
    known = matrices_of(run)
    switches = switches_of(run.info.plan)
    slow, late = (
        behind_a_switch(known, parts, switches) for parts in (faults.slow_parts(known), faults.late_parts(known))
    )
    hosts, interface = run.facts.get("hosts", []), run.info.plan.get("interface")
    differing, unsaid = differences(hosts, interface)
    after = readable(Counters, run.facts, COUNTERS)
    counted, held = list(counter_findings(hosts, after, interface)), held_back(hosts, after)
    named = {finding.facts["host"] for finding in counted}
    interrupted = faults.interrupted_parts(known, named, slow)
    lossy = behind_a_switch(known, faults.lossy_parts(known, slow, interrupted), switches)
    slow_hosts = faults.hosts_of_parts(known, slow)
    missed, near_limits, limited = expectations_of(run, faults.hosts_of_parts(known, slow, late))
    findings = [
        *_unusable(run),
        *_stuck(run, named),
        *faults.findings_of(known, slow, late, lossy, interrupted),
        *counted,
        *_worse(run, slow_hosts),
        *missed,
        *below_interfaces(known, hosts, interface, slow_hosts | limited),
        *differing,
        *wrong_clocks(hosts, run.facts.get(READINGS) or ()),
    ]
    located = {"bandwidth": slow, "latency": late, "lost messages": lossy}
    gaps = list(_failures(known, run))  # first: a host may have died
    gaps += [
        _unclear(known, what, parts, run.info)
        for what, parts in located.items()
        if any(held.keys().isdisjoint(known.hosts[end] for end in pair) for pair in parts.unclear)
    ]
    gaps += [
        NotChecked(Absence.INSUFFICIENT_DATA, what, *_two_kinds(known, what, parts.fast))
        for what, parts in located.items()
        if parts.fast
    ]
    gaps += near_limits
    if not (known.bytes_per_s or gaps):
        gaps.append(NotChecked(Absence.NOT_MEASURED, "bandwidth", "time was up"))
    if unsaid:
        gaps.append(NotChecked(Absence.NOT_MEASURED, "differences", UNSAID, {"properties": unsaid}))
    every = by_switch(findings, switches, {*known.hosts, *run.info.plan.get(UNUSABLE, {})})
    ordered = sorted(with_held_back(every, held), key=lambda finding: -finding.effect)
    return Health(matrices=known, findings=tuple(ordered), not_checked=tuple(gaps))


def died(lost: Mapping[str, str]) -> dict[str, str]:
    """Why hosts that answered at first cannot be used; `lost` says why they do not answer now."""
    return {host: f"it answered at first, but not later: {cause}" for host, cause in lost.items()}


def _lost(run: Run) -> dict[str, str]:
    return {host: cause for lost in run.facts.get(LOST, []) for host, cause in lost.items()}


def _unusable(run: Run) -> Iterator[Finding]:
    plan = run.info.plan
    reach = Fix("make reachable", facts={"demand": plan[DEMAND]} if plan.get(DEMAND) else {})
    fixes = {host: Fix("make usable", facts={"remedy": text}) for host, text in plan.get(REMEDIES, {}).items()}
    for host, cause in {**plan.get(UNUSABLE, {}), **died(_lost(run))}.items():
        yield Finding("unusable host", Subject(), {"host": host, "said": cause}, "", fixes.get(host, reach), 100.0)


def _worse(run: Run, named: Collection[str]) -> Iterator[Finding]:
    """Those that did better in earlier runs, without hosts that are `named` slow anyway."""
    for worse in readable(Worse, run.facts, WORSE):
        of_all = {"rate_bytes_per_s": worse.now, "usual_bytes_per_s": worse.usual, "runs": worse.runs}
        shares = {"now_share": worse.now, "before_share": worse.before, "usual_share": worse.usual}
        of_host = {"host": worse.host, "way": worse.way, **shares, "runs": worse.runs}
        effect = worse.usual / worse.now - 1
        if worse.host == ALL:
            yield Finding("all slower", Subject(), of_all, "", Fix("inspect uplink"), effect)
        elif worse.host not in named:
            yield Finding("slower host", Subject(), of_host, "", Fix("inspect interface"), effect)


def _stuck(run: Run, named: Collection[str]) -> Iterator[Finding]:
    """Hosts and links that kept all others waiting, without links of hosts that are `named` by their own counters."""
    for who in blamed(readable(Stall, run.info.plan, STALLS) + readable(Stall, run.facts, STALLS)):
        host, stalls = who.hosts[0], who.stalls
        least = min(stalls, key=lambda stall: stall.bytes)
        others = list(dict.fromkeys(other for stall in stalls for other in stall.hosts if other not in who.hosts))
        facts: dict[str, Any] = {"host": host, "pattern": least.pattern, "size_bytes": least.bytes}
        facts |= {"limit_ns": 1e9 * least.limit_s, "times": len(stalls)}
        is_long = facts["size_bytes"] > _FRAME_BYTES
        cause = "long messages" if is_long else ""
        if len(who.hosts) == 2 and not {*named}.isdisjoint(who.hosts):
            continue
        if len(who.hosts) == 2:
            code, facts = "stuck link", {**facts, "other": who.hosts[1]}
            fix = Fix("inspect frames" if is_long else "inspect path", facts={"host": who.hosts[1]})
        elif all(stall.is_silent for stall in stalls):
            code, cause, fix = "silent host", "", Fix("inspect worker")
        else:
            code, facts = "stuck host", {**facts, "others": others}
            fix = Fix("inspect frames" if is_long else "inspect interface", facts={"host": host})
        yield Finding(code, Subject(), facts, cause, fix, 100.0)


def _failures(known: Matrices, run: Run) -> Iterator[NotChecked]:
    """Why pairs failed or have fewer measurements; each reason once, without those that another reason includes.

    Nothing if a host was lost, or kept others waiting, after each pair had been measured: that is a finding.
    """
    if known.measured == known.pairs and (_lost(run) or run.facts.get(STALLS)):
        return
    reasons = dict.fromkeys(series.reason or "" for series in run.series if series.status is PointStatus.FAILED)
    absence = Absence.INSUFFICIENT_DATA if known.bytes_per_s else Absence.NOT_MEASURED
    for reason in reasons:
        if not any(reason in other for other in reasons if other != reason):
            yield NotChecked(absence, "all pairs", "failed", {"said": reason or "unknown"})


def _unclear(known: Matrices, what: str, located: faults.Located, info: RunInfo) -> NotChecked:
    """Pairs that may show a fault; not a few that were as fast as usual in a measurement, as on a busy network."""
    unclear, least = located.unclear, faults.SLOW * (known.usual_bytes_per_s or 0.0)
    is_open = what != "bandwidth" or any(known.most_bytes_per_s[pair] < least for pair in unclear)
    if not (located.are_many or is_open) and are_few(len(unclear), len(known.bytes_per_s)):
        facts: dict[str, Any] = {"directions": len(unclear), "of": len(known.bytes_per_s)}
        return NotChecked(Absence.INSUFFICIENT_DATA, what, AT_TIMES, facts)
    facts = {"unclear": [f"{known.hosts[a]} to {known.hosts[b]}" for a, b in unclear]}
    if located.are_many:
        return NotChecked(Absence.INSUFFICIENT_DATA, what, "uneven network", facts)
    # With all other hosts, which show the usual values.
    return NotChecked(Absence.INSUFFICIENT_DATA, what, "few measurements", facts, longer_health(info))


def _two_kinds(known: Matrices, what: str, fast: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """Why the result is inconclusive if some hosts are faster with each other than is usual, and the facts."""
    among = [pair for pair in known.bytes_per_s if set(pair) <= {*fast}]
    facts: dict[str, Any] = {"fast": [known.hosts[host] for host in fast]}
    if what == "latency":
        fast_ns = statistics.median(known.fastest_ns[pair] for pair in among)
        return "two times", {**facts, "fast_ns": fast_ns, "usual_ns": known.usual_fastest_ns}
    rate = statistics.median(known.bytes_per_s[pair].value for pair in among)
    facts |= {"fast_bytes_per_s": rate, "usual_bytes_per_s": known.usual_bytes_per_s}
    return "two rates" if what == "bandwidth" else "slow pairs", facts
