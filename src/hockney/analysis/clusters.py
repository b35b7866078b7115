"""Groups of pairs of ranks by their times, for ranks whose topology is not known.

A machine is built of parts (core complexes, packages, switches): pairs within a part are faster than pairs between
parts, so times lie on levels with gaps between them. docs/methods.md, "Places by times", has the rates.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

Pair = tuple[int, int]
Reach = Literal["each other", "all others", "each other and all others"]


def clusters(times_ns: Mapping[Pair, float], nearer: Collection[Pair]) -> list[list[Pair]]:
    """Groups of pairs by level, the fastest first. A slow pair stays in the group that it is slower than.

    `nearer` are pairs that share more than these do by the topology.
    """
    groups: list[list[Pair]] = []
    linked = set(nearer)
    for level in _levels(times_ns):
        new = [pair for pair in level if pair not in linked]
        if new and not (groups and _is_slow_rank(new, groups[-1], linked)):
            groups.append([])
        linked.update(new)
        slow = _slow_within(times_ns, linked)
        linked.update(slow)
        groups[-1] += [*new, *slow]
    return groups


def slow_part(groups: Sequence[list[Pair]], nearer: Collection[Pair]) -> tuple[tuple[int, ...], Reach] | None:
    """The ranks of a slow switch or group and the ranks it is slow with, if the last of `groups` is exactly its pairs.

    Ranks that `nearer` pairs link, such as those of a host, count as one node. The answer is None if the others are not
    in the majority or have not all met: then either side could be the slow one.
    """
    ranks = {rank for group in groups for pair in group for rank in pair}
    node_of = {rank: rank for rank in ranks} | _parts(nearer)
    nodes = set(node_of.values())

    def pair_of_nodes(a: int, b: int) -> Pair:
        return min(node_of[a], node_of[b]), max(node_of[a], node_of[b])

    *levels, level = ({pair_of_nodes(a, b) for a, b in group} for group in groups)
    faster = set[Pair]().union(*levels)
    if not faster or level & faster:
        return None
    every = set(itertools.combinations(sorted(nodes), 2))
    linked = _parts(faster)
    fresh = nodes - linked.keys()
    before = _parts(set[Pair]().union(*levels[:-1]))
    parts = [{node for node in nodes if before.get(node) == part} for part in set(before.values())]
    for part in (fresh, *(parts if len(parts) > 3 else ())):
        inner = {pair for pair in every if part.issuperset(pair)}
        outer = {pair for pair in every if len(part.intersection(pair)) == 1}
        members = tuple(sorted(rank for rank, node in node_of.items() if node in part))
        if part is fresh and level == inner:
            return members, "each other"
        if part is fresh and level == inner | outer and len(members) > 1 and len(level) < len(faster):
            return members, "each other and all others" if inner else "all others"
        if part is not fresh and level == outer and len({linked.get(node, node) for node in nodes - part}) == 1:
            return members, "all others"
    return None


def group_name(pairs: Collection[Pair], hosts: Sequence[str]) -> str:
    """The hosts of a group of pairs: `n1, n2 / n3, n4` within these, `n3 and others`, or some pairs."""
    names = list(dict.fromkeys(hosts))
    met = sorted({(names.index(hosts[a]), names.index(hosts[b])) for a, b in pairs})
    common = set.intersection(*map(set, met))
    if len(common) == 1:
        return f"{names[common.pop()]} and others"
    members: dict[int, list[str]] = {}
    for host, part in sorted(_parts(met).items()):
        members.setdefault(part, []).append(names[host])
    if len(members) > 1 or sum(map(len, members.values())) < len(names):
        return _first(4, [_first(6, group, ", ") for group in members.values()], " / ")
    return _first(3, [f"{names[a]}-{names[b]}" for a, b in met], ", ")


def _first(count: int, texts: Sequence[str], mark: str) -> str:
    return mark.join(texts[:count]) + (f" and {len(texts) - count} more" if len(texts) > count else "")


def _levels(times_ns: Mapping[Pair, float]) -> Iterator[list[Pair]]:
    """A time that is longer by a quarter begins the next level."""
    level: list[Pair] = []
    for pair in sorted(times_ns, key=lambda pair: times_ns[pair]):
        if level and times_ns[pair] > 1.25 * times_ns[level[-1]]:
            yield level
            level = []
        level.append(pair)
    if level:
        yield level


def _slow_within(pairs: Collection[Pair], linked: Collection[Pair]) -> list[Pair]:
    """Unlinked pairs whose ranks faster pairs link, if these are few of their part."""
    part = _parts(linked)
    inside = [(a, b) for a, b in pairs if a in part and part[a] == part.get(b)]
    slow = [pair for pair in inside if pair not in linked]
    count, slow_count = (Counter(part[a] for a, _ in some) for some in (inside, slow))
    return [(a, b) for a, b in slow if are_few(slow_count[part[a]], count[part[a]])]


def are_few(slow: int, pairs: int) -> bool:
    """Whether slow pairs are exceptions: at most three, or a tenth of all. More form a level."""
    return slow <= max(3, pairs / 10)


def _is_slow_rank(new: Collection[Pair], before: Collection[Pair], linked: Collection[Pair]) -> bool:
    """Whether these are pairs of one rank, fewer than those before, and not between two parts of several ranks."""
    if len(new) >= len(before) or not set.intersection(*(set(pair) for pair in new)):
        return False
    part = _parts(linked)
    return not all(a in part and b in part and part[a] != part[b] for a, b in new)


def _parts(linked: Collection[Pair]) -> dict[int, int]:
    """The part of each rank that is linked with another one, named by its lowest rank."""
    part: dict[int, int] = {}
    for a, b in linked:
        low, high = sorted((part.setdefault(a, a), part.setdefault(b, b)))
        if low != high:
            part.update((rank, low) for rank, at in part.items() if at == high)
    return part
