"""Faults of hosts and links as findings: slow, late or lossy ones."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hockney.analysis.explain.clusters import Pair
from hockney.analysis.finding import Finding, Subject
from hockney.analysis.health.matrices import Matrices, Sent
from hockney.analysis.health.places import Located, Place, fast_hosts, locate
from hockney.errors import Fix

SLOW = 0.85  # of the usual rate: what is certainly below it is a fault
LOST = 0.001  # of the segments
_FIXES = {"host": "inspect interface", "link": "inspect path", "uplink": "inspect uplink"}


def usual(values: Mapping[Pair, float]) -> float | None:
    """The rate of most hosts: the median over hosts of what each sends to most others; None without any.

    Half of a matrix of four hosts is of a slow one, but only one of its rows.
    """
    rows: dict[int, list[float]] = {}
    for (host, _), value in values.items():
        rows.setdefault(host, []).append(value)
    return statistics.median_high(map(statistics.median_high, rows.values())) if rows else None


def usual_bytes_per_s(known: Matrices) -> float | None:
    """The rate of most hosts."""
    return usual({pair: rate.value for pair, rate in known.bytes_per_s.items()})


def usual_ns(known: Matrices) -> float | None:
    """The latency of most hosts."""
    return usual_of_times_ns({pair: time.value for pair, time in known.latency_ns.items()})


def usual_of_times_ns(times_ns: Mapping[Pair, float]) -> float | None:
    """The time that is usual, as rates are."""
    per_ns = usual({pair: 1 / time_ns for pair, time_ns in times_ns.items()})
    return None if per_ns is None else 1 / per_ns


# ---- slow ------------------------------------------------------------------------------------------------------------


def slow_places(known: Matrices) -> Located:
    """Where rates are below the usual one. Latency alone costs a flow some of its rate, so late pairs may have half."""
    usual_rate, late = usual_bytes_per_s(known) or 0.0, _late_pairs(known)

    def is_slow(pair: Pair) -> bool | None:
        rate, limit = known.bytes_per_s[pair], (0.5 if pair in late else SLOW) * usual_rate
        if rate.value >= limit:
            return False
        return True if rate.high is not None and rate.high < limit else None

    return replace(locate(known.bytes_per_s, is_slow), fast=fast_hosts(known.bytes_per_s, _fast_pairs(known)))


def _fast_pairs(known: Matrices) -> list[Pair]:
    """Those next to which the usual rate is slow; by their values where measurements are too few for intervals."""
    limit = (usual_bytes_per_s(known) or 0.0) / SLOW
    rates = known.bytes_per_s.items()
    return [pair for pair, rate in rates if (rate.value if rate.low is None else rate.low) > limit]


def slow_findings(known: Matrices, located: Located) -> list[Finding]:
    """With the share of the segments that were lost: the cause, or the effect of a full queue."""
    middle = usual_bytes_per_s(known) or 0.0
    findings = []
    for place in located.places:
        rate = statistics.median(known.bytes_per_s[pair].value for pair in place.pairs)
        lost_share = _sum(known, place).lost_share
        facts = {
            "rate_bytes_per_s": rate,
            "usual_bytes_per_s": middle,
            "of_usual_share": rate / middle,
            **({"lost_share": lost_share} if lost_share >= LOST else {}),
        }
        cause = "loss or a full queue" if "lost_share" in facts else ""
        findings.append(_finding("slow", known, place, facts, middle / rate - 1, cause))
    return findings


# ---- late ------------------------------------------------------------------------------------------------------------


def late_places(known: Matrices) -> Located:
    """Where even the fastest message takes a multiple of the usual fastest: a busy CPU delays only some."""
    late = _late_pairs(known)
    located = locate(known.fastest_ns, lambda pair: pair in late)
    return replace(located, fast=fast_hosts(known.fastest_ns, _early_pairs(known)))


def _late_pairs(known: Matrices) -> set[Pair]:
    middle_ns = usual_of_times_ns(known.fastest_ns) or 0.0
    return {pair for pair, time_ns in known.fastest_ns.items() if _is_late(time_ns, middle_ns)}


def _early_pairs(known: Matrices) -> list[Pair]:
    """Those next to which the usual latency is late."""
    middle_ns = usual_of_times_ns(known.fastest_ns) or 0.0
    return [pair for pair, time_ns in known.fastest_ns.items() if _is_late(middle_ns, time_ns)]


def _is_late(time_ns: float, usual_ns: float) -> bool:
    return time_ns > max(2 * usual_ns, usual_ns + 50_000)  # a host whose CPU is shared is late by tens of us


def late_findings(known: Matrices, located: Located) -> list[Finding]:
    """By the fastest messages. A round trip has no direction."""
    middle_ns = usual_of_times_ns(known.fastest_ns) or 0.0
    findings = []
    for place in located.places:
        time_ns = statistics.median(known.fastest_ns[pair] for pair in place.pairs)
        facts = {"fastest_ns": time_ns, "usual_ns": middle_ns, "of_usual_ratio": time_ns / middle_ns}
        findings.append(_finding("late", known, place, facts, time_ns / middle_ns - 1))
    return findings


# ---- lossy -----------------------------------------------------------------------------------------------------------


def lossy_places(known: Matrices, slow: Located) -> Located:
    """Where segments are lost. Slow pairs do not count: a full queue in front of something slow loses them.

    So nothing is named where the slow ones may be most.
    """
    if slow.fast:
        return Located(fast=slow.fast)
    full = {pair for place in slow.places for pair in place.pairs} | {*slow.unclear}

    def is_lossy(pair: Pair) -> bool | None:
        sent = known.sent[pair]
        if pair in full or sent.lost_share < LOST:
            return False
        if sent.measurements == 1:
            return None
        return sent.times >= min(3, sent.measurements)  # a burst is no fault

    return locate(known.sent, is_lossy)


def lossy_findings(known: Matrices, located: Located) -> list[Finding]:
    """By what the senders had to send again, but not for nothing."""
    findings = []
    for place in located.places:
        sent = _sum(known, place)
        facts = {"lost_share": sent.lost_share, "lost": round(sent.lost), "segments": round(sent.segments)}
        findings.append(_finding("lossy", known, place, facts, 100 * sent.lost_share))
    return findings


# ---- all -------------------------------------------------------------------------------------------------------------


def _sum(known: Matrices, place: Place) -> Sent:
    return sum((known.sent[pair] for pair in place.pairs), Sent())


def _finding(
    what: str, known: Matrices, place: Place, facts: Mapping[str, Any], effect: float, cause: str = ""
) -> Finding:
    """A fault of a host, as `slow host`, of the uplink that several share, or of the link between two."""
    names = [known.hosts[host] for host in place.hosts]
    who: dict[str, Any] = {"hosts": names} if len(names) > 1 else {"host": names[0]}
    met = {host for pair in known.bytes_per_s if set(pair) & {*place.hosts} for host in pair} - {*place.hosts}
    others = {host for pair in place.pairs for host in pair} - {*place.hosts}
    who |= {"way": place.way, "pairs": len(place.pairs), "others": len(others), "met": len(met)}
    if place.to is not None:
        who |= {"other": known.hosts[place.to]}
    kind = "link" if place.to is not None else "uplink" if len(names) > 1 else "host"
    return Finding(
        code=f"{what} {kind}",
        subject=Subject(ranks=len(known.hosts)),
        facts={**who, **facts},
        cause=cause,
        fix=Fix(_FIXES[kind] if (what, kind) != ("late", "host") else "inspect latency"),
        effect=effect,
    )
