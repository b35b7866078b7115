"""The part of a fault, from the pairs of hosts that show it: a host if most of its pairs do, else a link."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from hockney.analysis.clusters import Pair, are_few
from hockney.stats.interval import order_rank

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


def locate(pairs: Collection[Pair], is_bad: Callable[[Pair], bool | None]) -> Located:
    """The parts of a fault. `pairs` are directed; `is_bad` says whether one shows it.

    None: its value does, but its interval is too wide. A host is named if most of the pairs in which it sends, or
    receives, show the fault, two at least; a link if neither end is named. Hosts that do not show the fault among
    themselves share an uplink.
    """
    bad = {pair: is_bad(pair) for pair in pairs}
    left = dict(bad)
    named: tuple[set[int], set[int]] = set(), set()
    while (worst := _worst_host(left)) is not None:
        host, end = worst
        named[end].add(host)
        left = {pair: is_it for pair, is_it in left.items() if pair[end] != host}
    sending, receiving = named
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


def _worst_host(bad: Mapping[Pair, bool | None]) -> tuple[int, Literal[0, 1]] | None:
    """The host and the end at which the largest part of its pairs shows the fault, if that is most of them.

    Where pairs are too imprecise, enough of them must show it for the median over the pairs to do so with 95 %
    confidence.
    """
    of_end: dict[tuple[int, Literal[0, 1]], list[bool | None]] = {}
    for (source, target), is_it in bad.items():
        of_end.setdefault((source, 0), []).append(is_it)
        of_end.setdefault((target, 1), []).append(is_it)
    shares = {}
    for end, values in of_end.items():
        certain = sum(is_it is True for is_it in values)
        suspected = sum(is_it is not False for is_it in values)
        rank, _ = order_rank(len(values))
        if (certain >= 2 and 2 * certain > len(values)) or (rank > 0 and suspected > len(values) - rank):
            shares[end] = suspected / len(values)
    return max(shares, key=lambda end: shares[end], default=None)
