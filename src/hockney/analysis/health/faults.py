"""Faults of hosts and links as findings: slow, late or lossy ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hockney.analysis.clusters import Pair
from hockney.analysis.finding import Finding, Subject
from hockney.analysis.health.matrices import Matrices, Sent
from hockney.analysis.health.parts import FaultyPart, Located, fast_hosts, locate
from hockney.analysis.pairs import partners
from hockney.errors import Fix

SLOW = 0.85  # of the usual rate: a rate that is certainly below it is a fault
LOST = 0.001  # of the segments
_FIXES = {"host": "inspect interface", "link": "inspect path", "uplink": "inspect uplink"}


# ---- parts ----------------------------------------------------------------------------------------------------------


def slow_parts(known: Matrices) -> Located:
    """Where rates are below the usual one. Latency alone costs a flow some of its rate, so late pairs may have half."""
    usual_rate, late = known.usual_bytes_per_s or 0.0, _late_pairs(known)

    def is_slow(pair: Pair) -> bool | None:
        rate, limit = known.bytes_per_s[pair], (0.5 if pair in late else SLOW) * usual_rate
        if rate.value >= limit:
            return False
        return True if rate.high is not None and rate.high < limit else None

    # Pairs so fast that the usual rate is slow compared with theirs; without an interval the value counts.
    rates = known.bytes_per_s.items()
    fast = [pair for pair, rate in rates if SLOW * (rate.value if rate.low is None else rate.low) > usual_rate]
    located = _unless_shared(known, locate(known.bytes_per_s, is_slow))
    return replace(located, fast=fast_hosts(known.bytes_per_s, fast))


def late_parts(known: Matrices) -> Located:
    """Where even the fastest message takes a multiple of the usual fastest: a busy CPU delays only some."""
    late, usual_ns = _late_pairs(known), known.usual_fastest_ns or 0.0
    early = [pair for pair, time_ns in known.fastest_ns.items() if _is_late(usual_ns, time_ns)]
    return replace(locate(known.fastest_ns, late.__contains__), fast=fast_hosts(known.fastest_ns, early))


def _late_pairs(known: Matrices) -> set[Pair]:
    usual_ns = known.usual_fastest_ns or 0.0
    return {pair for pair, time_ns in known.fastest_ns.items() if _is_late(time_ns, usual_ns)}


def _is_late(time_ns: float, usual_ns: float) -> bool:
    return time_ns > max(2 * usual_ns, usual_ns + 50_000)  # a host whose CPU is shared is late by tens of us


def lossy_parts(known: Matrices, slow: Located) -> Located:
    """Where segments are lost. Slow pairs do not count: a full queue in front of something slow loses them.

    So nothing is named where the slow ones may be most.
    """
    if slow.fast:
        return Located(fast=slow.fast)
    full = {pair for part in slow.parts for pair in part.pairs} | {*slow.unclear}

    def is_lossy(pair: Pair) -> bool | None:
        sent = known.sent[pair]
        if pair in full or sent.lost_share < LOST:
            return False
        if sent.measurements == 1:
            return None
        return sent.times >= min(3, sent.measurements)  # a burst is no fault

    return _unless_shared(known, locate(known.sent, is_lossy), slow.parts)


def _unless_shared(known: Matrices, located: Located, slow: Sequence[FaultyPart] = ()) -> Located:
    """Nothing is named where pairs of a part, half or more, show a fault only while pairs of other parts do.

    Two groups of hosts behind a narrow uplink are slow, or lose segments, in rounds in which many pairs cross it. Hosts
    that show the fault in three quarters of their pairs are named, and no reason for doubt: they are in all rounds.
    Nor are hosts that are so slow, and lose segments for that.
    """
    certain = {
        host
        for part in (*located.parts, *slow)
        if part.to is None and 4 * len(part.pairs) >= 3 * part.crossing
        for host in part.hosts
    }
    signs = {pair for part in located.parts for pair in part.pairs} | {
        pair for pair, sent in known.sent.items() if sent.lost_share >= LOST and sent.times >= min(2, sent.measurements)
    }
    shared: set[Pair] = set()
    for round_ in range(1, len(known.hosts) + len(known.hosts) % 2):
        met = partners(len(known.hosts), round_)
        for at_once in (met, [(b, a) for a, b in met]):
            showing = [pair for pair in at_once if pair in signs and certain.isdisjoint(pair)]
            shared.update(showing if len(showing) > 1 else ())
    if all(2 * len(shared.intersection(part.pairs)) < len(part.pairs) for part in located.parts):
        return located
    pairs = {pair for part in located.parts for pair in part.pairs}
    return Located(unclear=tuple(sorted({*located.unclear, *pairs})), are_many=True)


# ---- findings --------------------------------------------------------------------------------------------------------


def findings_of(known: Matrices, slow: Located, late: Located, lossy: Located) -> Iterator[Finding]:
    """The findings of all parts.

    Slow ones have their share of lost segments: it is the cause, or the effect of a full queue. Late ones are by the
    fastest messages: a round trip has no direction. Lossy ones are by the segments that senders had to send again and
    that had not arrived.
    """
    usual_rate, usual_ns = known.usual_bytes_per_s or 0.0, known.usual_fastest_ns or 0.0
    for part in slow.parts:
        rate = statistics.median(known.bytes_per_s[pair].value for pair in part.pairs)
        lost_share = _sum(known, part).lost_share
        facts = {
            "rate_bytes_per_s": rate,
            "usual_bytes_per_s": usual_rate,
            "of_usual_share": rate / usual_rate,
            **({"lost_share": lost_share} if lost_share >= LOST else {}),
        }
        cause = "loss or a full queue" if "lost_share" in facts else ""
        yield _finding("slow", known, part, facts, usual_rate / rate - 1, cause)
    for part in late.parts:
        time_ns = statistics.median(known.fastest_ns[pair] for pair in part.pairs)
        facts = {"fastest_ns": time_ns, "usual_ns": usual_ns, "of_usual_ratio": time_ns / usual_ns}
        yield _finding("late", known, part, facts, time_ns / usual_ns - 1)
    for part in lossy.parts:
        sent = _sum(known, part)
        facts = {"lost_share": sent.lost_share, "lost": round(sent.lost), "segments": round(sent.segments)}
        yield _finding("lossy", known, part, facts, 100 * sent.lost_share)


def _sum(known: Matrices, part: FaultyPart) -> Sent:
    return sum((known.sent[pair] for pair in part.pairs), Sent())


def _finding(
    what: str, known: Matrices, part: FaultyPart, facts: Mapping[str, Any], effect: float, cause: str = ""
) -> Finding:
    """A fault of a host, as `slow host`, of the uplink that several share, or of the link between two."""
    names = [known.hosts[host] for host in part.hosts]
    who: dict[str, Any] = {"hosts": names} if len(names) > 1 else {"host": names[0]}
    met = {host for pair in known.bytes_per_s if set(pair) & {*part.hosts} for host in pair} - {*part.hosts}
    others = {host for pair in part.pairs for host in pair} - {*part.hosts}
    who |= {"way": part.way, "pairs": len(part.pairs), "others": len(others), "met": len(met)}
    if part.to is not None:
        who |= {"other": known.hosts[part.to]}
    kind = "link" if part.to is not None else "uplink" if len(names) > 1 else "host"
    return Finding(
        code=f"{what} {kind}",
        subject=Subject(ranks=len(known.hosts)),
        facts={**who, **facts},
        cause=cause,
        fix=Fix(_FIXES[kind] if (what, kind) != ("late", "host") else "inspect latency"),
        effect=effect,
    )
