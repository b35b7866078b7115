"""Faults of hosts and links as findings: slow, late or lossy ones.

The pairs of hosts that show a fault tell its part: a host if most of its pairs do, else a link.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hockney.analysis.clusters import Pair, are_few
from hockney.analysis.finding import Finding, Subject
from hockney.analysis.health.matrices import Matrices, Sent, matrices_of
from hockney.analysis.health.stalls import culprits
from hockney.analysis.host_series import SUITE
from hockney.analysis.pairs import partners
from hockney.errors import Fix
from hockney.results.runs import Run
from hockney.stats.interval import CONFIDENCE, order_rank

SLOW = 0.85  # of the usual rate: a rate that is certainly below it is a fault
LOST = 0.001  # of the segments
BREAKS_MIN = 3  # fewer may be one event that several pairs saw
_FIXES = {"host": "inspect interface", "link": "inspect path", "uplink": "inspect uplink"}

# ---- the part of a fault ---------------------------------------------------------------------------------------------

Way = Literal["both", "sending", "receiving"]


@dataclass(frozen=True)
class FaultyPart:
    """A host, several hosts behind one uplink, or the link from a host to another one.

    `pairs` show the fault; `crossing`: of how many, that hosts have with others the way that it names.
    """

    hosts: tuple[int, ...]
    to: int | None
    way: Way  # of the hosts
    pairs: tuple[Pair, ...]
    crossing: int = 0


@dataclass(frozen=True)
class Located:
    """The parts of one kind of fault. `unclear`: pairs that may show it, or too many for faults of single links.

    `fast`: hosts that are better with each other than is usual, so that the others may show the fault, too.
    """

    parts: tuple[FaultyPart, ...] = ()
    unclear: tuple[Pair, ...] = ()
    are_many: bool = False
    fast: tuple[int, ...] = ()


def locate(
    pairs: Collection[Pair], is_bad: Callable[[Pair], bool | None], times: Callable[[Pair], int] = lambda _: 1
) -> Located:
    """The parts of a fault. `pairs` are directed; `is_bad` says whether one shows it.

    None: its value does, but its interval is too wide; `times`: how many measurements show it, if all do. A host is
    named if most of the pairs in which it sends, or receives, show the fault, two at least; a link if neither end
    is named. Hosts that do not show the fault among themselves share an uplink.
    """
    bad = {pair: is_bad(pair) for pair in pairs}
    sending, receiving = _named_hosts(bad, times)
    left = {pair: is_it for pair, is_it in bad.items() if pair[0] not in sending and pair[1] not in receiving}
    by_way: dict[Way, list[int]] = {"both": [], "sending": [], "receiving": []}
    for host in sorted(sending | receiving):
        by_way["both" if host in sending & receiving else "sending" if host in sending else "receiving"].append(host)
    parts = []
    for way, hosts in by_way.items():
        among = [is_it for (a, b), is_it in bad.items() if a in hosts and b in hosts]
        share_uplink = bool(among) and all(is_it is False for is_it in among)
        for group in [hosts] if share_uplink else [[host] for host in hosts]:
            ends = {"both": (0, 1), "sending": (0,), "receiving": (1,)}[way]
            crossing = {pair for pair in bad for end in ends if {pair[end]} == {*group}.intersection(pair)}
            shown = tuple(sorted(pair for pair in crossing if bad[pair] is not False))
            parts.append(FaultyPart(tuple(group), None, way, shown, len(crossing)))
    links = sorted({(min(pair), max(pair)) for pair, is_it in left.items() if is_it})
    unclear = sorted(pair for pair, is_it in left.items() if is_it is None)
    if not are_few(len(links), len({frozenset(pair) for pair in pairs})):
        return Located(tuple(parts), tuple(sorted({*unclear, *(pair for pair in left if left[pair])})), are_many=True)
    for a, b in links:
        shown = tuple(pair for pair in ((a, b), (b, a)) if left.get(pair))
        source, target = shown[0]
        parts.append(FaultyPart((source,), target, "both" if len(shown) == 2 else "sending", shown))
    return Located(tuple(parts), tuple(unclear))


def fast_hosts(pairs: Collection[Pair], fast: Collection[Pair]) -> tuple[int, ...]:
    """The hosts of `fast` pairs, if these are a tenth of all and most of theirs, and spare some host; else none.

    The usual value of four hosts of which two are slow is that of the slow ones. Where every host has fast pairs, these
    share a switch.
    """
    hosts = {host for pair in fast for host in pair}
    among = sum(hosts.issuperset(pair) for pair in pairs)
    are_some = hosts != {host for pair in pairs for host in pair}
    return tuple(sorted(hosts)) if are_some and len(fast) > max(among / 2, len(pairs) / 10) else ()


def _named_hosts(bad: Mapping[Pair, bool | None], times: Callable[[Pair], int]) -> tuple[set[int], set[int]]:
    """The hosts that send, and those that receive, most of whose pairs show the fault, without those named before.

    The host with the largest part comes first. Where pairs are too imprecise, enough of them must show it for the
    median over the pairs to do so with 95 % confidence, or all of them, in so many `times` that half of them cannot do
    so by accident.
    """
    named: tuple[set[int], set[int]] = set(), set()
    pairs_of: defaultdict[tuple[int, int], set[Pair]] = defaultdict(set)
    for pair, end in itertools.product(bad, (0, 1)):
        pairs_of[pair[end], end].add(pair)
    counts = {at: Counter(bad[pair] for pair in pairs) for at, pairs in pairs_of.items()}

    def is_always(at: tuple[int, int]) -> bool:
        other = 1 - at[1]
        left = [times(pair) for pair in pairs_of[at] if pair[other] not in named[other]]
        return _chance_of_half(left) <= 1 - CONFIDENCE

    while True:
        shares = {
            at: share for at, count in counts.items() if (share := _share(count, functools.partial(is_always, at)))
        }
        if not shares:
            return named
        host, end = worst = max(shares, key=shares.__getitem__)
        named[end].add(host)
        del counts[worst]
        for pair in pairs_of[worst]:
            if (other := (pair[1 - end], 1 - end)) in counts:
                counts[other][bad[pair]] -= 1


def _share(count: Mapping[bool | None, int], is_always: Callable[[], bool]) -> float:
    """The part of a host's pairs that show the fault, if that is most of them, else 0."""
    every, certain = sum(count.values()), count[True]
    suspected = every - count[False]
    rank, _ = order_rank(every)
    is_bad = (certain >= 2 and 2 * certain > every) or (rank > 0 and suspected > every - rank)
    return suspected / every if is_bad or (0 < every == suspected and is_always()) else 0.0


def _chance_of_half(times: Sequence[int]) -> float:
    """How likely half of these pairs, whose median is on the other side of a limit, show only values beyond it.

    An upper bound, from the half with the fewest values. 1 for a single pair.
    """
    half = (len(times) + 1) // 2
    return math.comb(len(times), half) * 0.5 ** sum(sorted(times)[:half]) if len(times) > 1 else 1.0


# ---- slow, late and lossy parts --------------------------------------------------------------------------------------


def hosts_of_parts(known: Matrices, *located: Located) -> set[str]:
    """The names of hosts with a fault, also of those behind one uplink."""
    return {known.hosts[host] for each in located for part in each.parts if part.to is None for host in part.hosts}


def weak_hosts(*runs: Run) -> set[str]:
    """The hosts that are slow or late in any of the runs that are of health."""
    every = [matrices_of(run) for run in runs if run.info.suite == SUITE]
    return {name for known in every for name in hosts_of_parts(known, slow_parts(known), late_parts(known))}


def slow_parts(known: Matrices) -> Located:
    """Where rates are below the usual one. Latency alone costs a flow some of its rate, so late pairs may have half."""
    usual_rate, late = known.usual_bytes_per_s or 0.0, _late_pairs(known)

    def limit_of(pair: Pair) -> float:
        return (0.5 if pair in late else SLOW) * usual_rate

    def is_slow(pair: Pair) -> bool | None:
        rate, limit = known.bytes_per_s[pair], limit_of(pair)
        if rate.value >= limit:
            return False
        return True if rate.high is not None and rate.high < limit else None

    def times_slow(pair: Pair) -> int:
        return known.bytes_per_s[pair].n if known.most_bytes_per_s[pair] < limit_of(pair) else 0

    # Pairs so fast that the usual rate is slow compared with theirs; without an interval the value counts.
    rates = known.bytes_per_s.items()
    fast = [pair for pair, rate in rates if SLOW * (rate.value if rate.low is None else rate.low) > usual_rate]
    located = _unless_shared(known, locate(known.bytes_per_s, is_slow, times_slow))
    return replace(located, fast=fast_hosts(known.bytes_per_s, fast))


def late_parts(known: Matrices) -> Located:
    """Where even the fastest message takes a multiple of the usual fastest: a busy CPU delays only some.

    It may delay all of a few: a link is named by as many measurements as give an interval.
    """
    late, usual_ns, times_ns = _late_pairs(known), known.usual_fastest_ns or 0.0, known.latency_ns
    early = [pair for pair, time_ns in known.fastest_ns.items() if _is_late(usual_ns, time_ns)]
    is_late = {pair: pair in late and (times_ns[pair].high is not None or None) for pair in known.fastest_ns}
    located = locate(known.fastest_ns, is_late.__getitem__, lambda pair: times_ns[pair].n)
    return replace(located, fast=fast_hosts(known.fastest_ns, early))


def _late_pairs(known: Matrices) -> set[Pair]:
    usual_ns = known.usual_fastest_ns or 0.0
    return {pair for pair, time_ns in known.fastest_ns.items() if _is_late(time_ns, usual_ns)}


def _is_late(time_ns: float, usual_ns: float) -> bool:
    return time_ns > max(2 * usual_ns, usual_ns + 50_000)  # a host whose CPU is shared is late by tens of us


def lossy_parts(known: Matrices, slow: Located, interrupted: Sequence[FaultyPart] = ()) -> Located:
    """Where segments are lost. Slow pairs do not count: a full queue in front of something slow loses them.

    Nor do those of `interrupted` parts. So nothing is named where the slow ones may be most.
    """
    if slow.fast:
        return Located(fast=slow.fast)
    full = {pair for part in (*slow.parts, *interrupted) for pair in part.pairs} | {*slow.unclear}

    def is_lossy(pair: Pair) -> bool | None:
        sent = known.sent[pair]
        if pair in full or sent.lost_share < LOST:
            return False
        if sent.measurements == 1:
            return None
        return sent.times >= min(3, sent.measurements)  # a burst is no fault

    return _unless_shared(known, locate(known.sent, is_lossy), slow.parts)


def interrupted_parts(known: Matrices, named: Collection[str], slow: Located) -> list[FaultyPart]:
    """Hosts and links that are down for moments, in three measurements at least.

    Slow pairs, or those that may be, do not count, nor those of hosts that are `named` by their own counters.
    """
    if slow.fast:  # the others, which may be most, are slow
        return []
    other = {pair for part in slow.parts for pair in part.pairs} | {*slow.unclear}
    numbers = {number for number, host in enumerate(known.hosts) if host in named}
    breaks = {
        pair: sent.breaks
        for pair, sent in known.sent.items()
        if sent.is_interrupted and pair not in other and numbers.isdisjoint(pair)
    }
    parts = []
    for hosts in culprits((min(pair), max(pair)) for pair in breaks):
        pairs = tuple(sorted(pair for pair in breaks if {*hosts} <= {*pair}))
        if sum(breaks[pair] for pair in pairs) >= BREAKS_MIN:
            every = sum({*hosts} <= {*pair} for pair in known.sent)
            parts.append(FaultyPart(hosts[:1], hosts[1] if len(hosts) == 2 else None, "both", pairs, every))
    return parts


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


def findings_of(
    known: Matrices, slow: Located, late: Located, lossy: Located, interrupted: Sequence[FaultyPart] = ()
) -> Iterator[Finding]:
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
    for part in interrupted:
        breaks = _sum(known, part).breaks
        ends = {*part.hosts} if part.to is None else {*part.hosts, part.to}
        every = [sent for pair, sent in known.sent.items() if ends <= {*pair}]
        measurements = sum(sent.measurements for sent in every)
        facts = {"breaks": breaks, "measurements": measurements}
        yield _finding("interrupted", known, part, facts, 100 * breaks / measurements)


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
    who |= {"crossing": part.crossing} if kind == "uplink" else {}
    return Finding(
        code=f"{what} {kind}",
        subject=Subject(ranks=len(known.hosts)),
        facts={**who, **facts},
        cause=cause,
        fix=Fix(_FIXES[kind] if (what, kind) != ("late", "host") else "inspect latency"),
        effect=effect,
    )
