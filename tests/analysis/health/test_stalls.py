"""Stalls say who keeps the others waiting: a host, two at once, a link, or nobody in particular."""

from __future__ import annotations

import itertools
import random

import pytest

from hockney.analysis.health.stalls import Stall, blamed, culprits, to_leave_out
from hockney.analysis.pairs import partners


def stall(*hosts: str, silent: bool = False) -> Stall:
    return Stall(hosts, "flows", 16384, 8.0, silent)


@pytest.mark.parametrize(
    ("stalls", "named", "left_out"),
    [
        ([], [], set()),
        ([stall("n2", "n5")], [("n2", "n5")], set()),
        ([stall("n2", "n5"), stall("n2", "n5")], [("n2", "n5")], set()),
        ([stall("n2", "n5"), stall("n2", "n4")], [("n2",)], {"n2"}),
        ([stall("n1", "n2", "n3", "n4"), stall("n1", "n2", "n5", "n6")], [("n1",), ("n2",)], {"n1", "n2"}),
        ([stall("n2", "n5"), stall("n2", "n4"), stall("n7", "n8")], [("n2",), ("n7", "n8")], {"n2"}),
        ([stall("n2", silent=True)], [("n2",)], set()),
        ([stall("n2", silent=True), stall("n2", silent=True)], [("n2",)], {"n2"}),
        ([stall("n1", "n2", "n3")], [], set()),
        ([stall("n1"), stall("n1")], [], set()),
    ],
    ids=[
        "none",
        "link",
        "link twice",
        "host",
        "two hosts",
        "host and link",
        "silent",
        "silent twice",
        "unclear",
        "late alone",
    ],
)
def test_who_keeps_the_others_waiting(stalls: list[Stall], named: list[tuple[str, ...]], left_out: set[str]) -> None:
    assert [who.hosts for who in blamed(stalls)] == named
    assert to_leave_out(stalls) == left_out


def test_faulty_hosts_are_known_after_a_few_rounds_wherever_they_are() -> None:
    """In each round all pairs with a faulty host stall; rounds come in any order."""
    draw = random.Random(1)
    for faulty in [*itertools.combinations(range(8), 1), *itertools.combinations(range(8), 2)]:
        rounds = draw.sample(range(1, 8), 7)
        events = [
            tuple(sorted(host for pair in partners(8, number) if {*pair} & {*faulty} for host in pair))
            for number in rounds
        ]
        together = next(n for n in range(2, 8) if culprits(events[:n]) == [(host,) for host in faulty])
        assert together <= 2 * len(faulty)
