"""The part of a fault, a host or a link, by the pairs that show it."""

from __future__ import annotations

import itertools

import pytest
from tests.analysis.health.test_health import both, sends

from hockney.analysis.clusters import Pair
from hockney.analysis.health.faults import fast_hosts, locate


def test_half_of_its_pairs_is_not_most_of_a_host() -> None:
    pairs = list(itertools.permutations(range(5), 2))
    for bad, named in (({(0, 1), (0, 2)}, False), ({(0, 1), (0, 2), (0, 3)}, True)):
        places = locate(pairs, lambda pair, bad=bad: pair in bad).parts  # type: ignore[misc]
        assert any(place.to is None for place in places) is named


def test_pairs_that_are_too_imprecise_are_unclear() -> None:
    pairs = list(itertools.permutations(range(5), 2))
    assert locate(pairs, lambda pair: None if pair == (1, 2) else False).unclear == ((1, 2),)
    assert locate(pairs, lambda pair: {(1, 2): None, (3, 4): True}.get(pair, False)).unclear == ((1, 2),)


@pytest.mark.parametrize(("slow", "are_many"), [(3, False), (4, True)])
def test_more_than_three_links_and_a_tenth_of_all_are_many(slow: int, are_many: bool) -> None:
    """Of the 28 pairs of eight hosts, each bad one with other hosts."""
    bad = {(2 * number, 2 * number + 1) for number in range(slow)}
    found = locate(list(itertools.permutations(range(8), 2)), lambda pair: pair in bad)
    assert (found.are_many, set(found.unclear)) == (are_many, bad if are_many else set())
    assert len(found.parts) == (0 if are_many else slow)


def test_the_host_with_the_largest_part_of_its_pairs_bad_comes_first() -> None:
    """n2 receives from two hosts only, badly from both; without these, n1 sends badly to two of four."""
    pairs = [(a, b) for a, b in itertools.permutations(range(6), 2) if b != 1 or a in (0, 2)]
    found = locate(pairs, lambda pair: pair in {(0, 1), (2, 1), (0, 2), (0, 3)})
    assert [(place.hosts, place.to, place.way) for place in found.parts] == [
        ((1,), None, "receiving"),
        ((0,), 2, "sending"),
        ((0,), 3, "sending"),
    ]


def test_hosts_come_in_order_and_of_one_host_all_bad_pairs_are_shown() -> None:
    pairs = list(itertools.permutations(range(8), 2))
    bad = {*sends(6, 8), *sends(1, 8)}
    first, second = locate(pairs, lambda pair: pair in bad).parts
    assert ((first.hosts, first.way), (second.hosts, second.way)) == (((1,), "sending"), ((6,), "sending"))
    assert [set(first.pairs), set(second.pairs)] == [{*sends(1, 8)}, {*sends(6, 8)}]


@pytest.mark.parametrize(
    ("hosts", "fast", "named"),
    [
        (8, both(itertools.combinations(range(3), 2)), (0, 1, 2)),
        (8, both([(0, 1), (1, 2)]), ()),  # 4 of 56 pairs are fewer than a tenth
        (8, both([(0, 1), (2, 3), (0, 3)]), ()),  # half of those among them
        (4, both(itertools.combinations(range(4), 2)), ()),  # there is no other host
        (4, both([(0, 1)]), (0, 1)),
    ],
)
def test_fast_hosts_have_most_of_their_pairs_fast(hosts: int, fast: list[Pair], named: tuple[int, ...]) -> None:
    assert fast_hosts(list(itertools.permutations(range(hosts), 2)), fast) == named
