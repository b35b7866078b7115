"""Faults of hosts and links as findings: slow, late or lossy ones."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from hockney.analysis.clusters import Pair
from hockney.analysis.finding import Finding, Subject
from hockney.analysis.health.matrices import Matrices, Sent
from hockney.analysis.health.places import Located, Place, fast_hosts, locate
from hockney.analysis.pairs import partners
from hockney.errors import Fix

SLOW = 0.85  # of the usual rate: a rate that is certainly below it is a fault
LOST = 0.001  # of the segments
_FIXES = {"host": "inspect interface", "link": "inspect path", "uplink": "inspect uplink"}


def usual(values: Mapping[Pair, float]) -> float | None:
    """The usual rate: the median over hosts of the median rate at which each sends; None without rates.

    With four hosts, a slow one is in half of the pairs, but is the sender in only a quarter.
    """
    rows: dict[int, list[float]] = {}
    for (host, _), value in values.items():
        rows.setdefault(host, []).append(value)
    return statistics.median_high(map(statistics.median_high, rows.values())) if rows else None


def usual_bytes_per_s(known: Matrices) -> float | None:
    """The usual rate."""
    return usual({pair: rate.value for pair, rate in known.bytes_per_s.items()})


def usual_ns(known: Matrices) -> float | None:
    """The usual latency."""
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

    located = locate(known.bytes_per_s, is_slow)
    slow = {pair for place in located.places for pair in place.pairs if is_slow(pair)}
    located = _unless_shared(known, located, slow | _losing(known), _single_hosts(located))
    return replace(located, fast=fast_hosts(known.bytes_per_s, _fast_pairs(known)))


def _fast_pairs(known: Matrices) -> list[Pair]:
    """Pairs so fast that the usual rate is slow compared with theirs; without an interval the value counts."""
    limit = (usual_bytes_per_s(known) or 0.0) / SLOW
    rates = known.bytes_per_s.items()
    return [pair for pair, rate in rates if (rate.value if rate.low is None else rate.low) > limit]


def slow_findings(known: Matrices, located: Located) -> list[Finding]:
    """Findings of slow places, with their share of lost segments: it is the cause, or the effect of a full queue."""
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
    """Pairs so fast that the usual latency is late compared with theirs."""
    middle_ns = usual_of_times_ns(known.fastest_ns) or 0.0
    return [pair for pair, time_ns in known.fastest_ns.items() if _is_late(middle_ns, time_ns)]


def _is_late(time_ns: float, usual_ns: float) -> bool:
    return time_ns > max(2 * usual_ns, usual_ns + 50_000)  # a host whose CPU is shared is late by tens of us


def late_findings(known: Matrices, located: Located) -> list[Finding]:
    """Findings of late places, by the fastest messages. A round trip has no direction."""
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

    located = locate(known.sent, is_lossy)
    return _unless_shared(known, located, _losing(known), _single_hosts(located) | _single_hosts(slow))


def _losing(known: Matrices) -> set[Pair]:
    """Those that lose segments, if only in two measurements."""
    return {
        pair for pair, sent in known.sent.items() if sent.lost_share >= LOST and sent.times >= min(2, sent.measurements)
    }


# ---- shared ----------------------------------------------------------------------------------------------------------


def _single_hosts(located: Located) -> set[int]:
    """The hosts that are named each for itself."""
    return {place.hosts[0] for place in located.places if place.to is None and len(place.hosts) == 1}


def _pairs_of(known: Matrices, place: Place) -> set[Pair]:
    """All pairs of a place's hosts, the way that it names."""
    hosts, way = {*place.hosts}, place.way
    return {
        pair
        for pair in known.bytes_per_s
        if (way != "receiving" and pair[0] in hosts) or (way != "sending" and pair[1] in hosts)
    }


def _unless_shared(known: Matrices, located: Located, signs: Collection[Pair], named: Collection[int]) -> Located:
    """Nothing is named where half of the pairs of a host or a link show the fault only while other pairs do.

    Two groups of hosts behind a narrow uplink are slow, or lose segments, in rounds in which many pairs cross it.
    `signs` are of pairs; those of `named` hosts are theirs. A host all of whose pairs show the fault is named: among
    many hosts some pair loses segments in almost every round.
    """
    others = {pair for pair in signs if not {*pair} & {*named}}
    shared: set[Pair] = set()
    for round_ in range(1, len(known.hosts) + len(known.hosts) % 2):
        met = partners(len(known.hosts), round_)
        for at_once in ({*met}, {(b, a) for a, b in met}):
            also = at_once & others
            shared |= at_once if len(also) > 1 else at_once - also if also else set()

    def is_alone(place: Place) -> bool:
        is_whole = place.to is None and {*place.pairs} >= _pairs_of(known, place)
        return len(place.hosts) > 1 or is_whole or 2 * len(shared.intersection(place.pairs)) < len(place.pairs)

    if all(map(is_alone, located.places)):
        return located
    pairs = {pair for place in located.places for pair in place.pairs}
    return Located(unclear=tuple(sorted({*located.unclear, *pairs})), are_many=True)


def lossy_findings(known: Matrices, located: Located) -> list[Finding]:
    """Findings of lossy places, by the segments that senders had to send again and that had not arrived."""
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
