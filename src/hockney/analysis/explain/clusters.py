"""Pairs of ranks of whose places nothing is known, told apart by their times.

Where a machine is built of places (core complexes, packages, switches), ranks are near within a place and farther off
between places. So times lie on levels, with gaps between them, and faster pairs link the ranks of a place with each
other. A slow pair, or a slow rank, has times on a level of its own too; what it lacks is the place: its ranks are
linked by faster pairs all the same, or it is linked with no other rank. A slow place (a switch, or a group of ranks)
has a level of its own with all its pairs within, all those out of it, or both.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

Pair = tuple[int, int]
Reach = Literal["each other", "all others", "each other and all others"]

_APART = 1.25  # from one level to the next: neighbours in a sorted list that differ by more
_FEW, _FEW_PART = 3, 0.1  # pairs within a place, or this part of them: so few slow ones make no other place


def clusters(times_ns: Mapping[Pair, float], nearer: Collection[Pair]) -> list[list[Pair]]:
    """Groups of pairs by their times, the fastest first; slow ones are in the group that they stand out from.

    `nearer` are pairs that are known to share more than these do.
    """
    groups: list[list[Pair]] = []
    linked = set(nearer)
    for level in _levels(times_ns):
        new = [pair for pair in level if pair not in linked]
        if new and not (groups and _is_of_one_rank(new, groups[-1], linked)):
            groups.append([])
        linked.update(new)
        slow = _slow_within(times_ns, linked)
        linked.update(slow)
        groups[-1] += [*new, *slow]
    return groups


def slow_place(groups: Sequence[list[Pair]], nearer: Collection[Pair]) -> tuple[tuple[int, ...], Reach] | None:
    """The ranks of a slow place and with whom they are slow, if the last group is just that; `groups` as of `clusters`.

    Ranks that `nearer` pairs link, a host for example, are one node. Two nodes or places alone are no slow one: nobody
    can say which one is odd.
    """
    node = _places(nearer)
    node.update((rank, rank) for group in groups for pair in group for rank in pair if rank not in node)
    nodes = set(node.values())
    *levels, level = ({(min(node[a], node[b]), max(node[a], node[b])) for a, b in group} for group in groups)
    faster = set[Pair]().union(*levels)
    if not faster or level & faster:
        return None
    every = set(itertools.combinations(sorted(nodes), 2))
    linked, place = _places(faster), _places(set[Pair]().union(*levels[:-1]))
    fresh = frozenset(nodes - linked.keys())

    def ranks_of(some: Collection[int]) -> tuple[int, ...]:
        return tuple(sorted(rank for rank, at in node.items() if at in some))

    if level == {pair for pair in every if fresh.issuperset(pair)}:
        return ranks_of(fresh), "each other"
    touching = {pair for pair in every if fresh & set(pair)}
    if level == touching and len(level) < len(faster) and len(ranks_of(fresh)) > 1:
        return ranks_of(fresh), "each other and all others" if len(fresh) > 1 else "all others"
    places = {frozenset(at for at in nodes if place.get(at, at) == one) for one in {place.get(at, at) for at in nodes}}
    several = {own for own in places if len(ranks_of(own)) > 1}
    for own in several:
        rest = nodes - own
        is_linked = len({linked.get(at, at) for at in rest}) == 1 and sum(one <= rest for one in several) > 2
        if is_linked and level == {pair for pair in every if len(own.intersection(pair)) == 1}:
            return ranks_of(own), "all others"
    return None


def _levels(times_ns: Mapping[Pair, float]) -> Iterator[list[Pair]]:
    level: list[Pair] = []
    for pair in sorted(times_ns, key=lambda pair: times_ns[pair]):
        if level and times_ns[pair] > _APART * times_ns[level[-1]]:
            yield level
            level = []
        level.append(pair)
    if level:
        yield level


def _slow_within(pairs: Collection[Pair], linked: Collection[Pair]) -> list[Pair]:
    """The few pairs whose ranks faster ones link: up to three in a place, or a tenth of its pairs."""
    place = _places(linked)
    inside = [pair for pair in pairs if place.get(pair[0], -1) == place.get(pair[1], -2)]
    slow = [pair for pair in inside if pair not in linked]
    of_place, slow_of_place = (Counter(place[a] for a, _ in some) for some in (inside, slow))
    return [(a, b) for a, b in slow if slow_of_place[place[a]] <= max(_FEW, _FEW_PART * of_place[place[a]])]


def _is_of_one_rank(new: Collection[Pair], before: Collection[Pair], linked: Collection[Pair]) -> bool:
    """Whether these are fewer than those before, all of one rank, and not between two places of several ranks."""
    if len(new) >= len(before) or not set.intersection(*(set(pair) for pair in new)):
        return False
    place = _places(linked)
    return not all(a in place and b in place and place[a] != place[b] for a, b in new)


def _places(linked: Collection[Pair]) -> dict[int, int]:
    """For each rank that is linked with another the place of both, which the lowest rank there stands for."""
    place: dict[int, int] = {}
    for a, b in linked:
        one, other = sorted((place.setdefault(a, a), place.setdefault(b, b)))
        if one != other:
            place.update((rank, one) for rank, at in place.items() if at == other)
    return place
