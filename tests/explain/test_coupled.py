"""A slow rank, link or switch among ranks that run side by side: named where its time shows, and else not guessed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.builders import make_launch, make_point, make_visit
from tests.explain.coupled import KINDS, RANKS, named, score
from tests.explain.readings import found, lacking, reading
from tests.report.runs import Made, options, store_run

from hockney.explain import read_run
from hockney.explain.curve import Reading
from hockney.library import open_results
from hockney.machine.topology import Cache, Topology
from hockney.model import Point
from hockney.stats import State

SLOW = "a slow rank or pair"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["ring", "barrier", "alltoall"])
def test_where_all_wait_for_the_slowest_nobody_is_named(pattern: str, kind: str) -> None:
    """Three to ten times as slow a rank takes little longer than those that wait for it."""
    made = score(pattern, kind, 5)
    assert made.silent == made.machines
    assert made.apart < 1.10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["putring", "pairs", "bisection"])
def test_where_each_rank_times_its_own_link_the_slow_ones_are_named(pattern: str, kind: str) -> None:
    made = score(pattern, kind, 10)
    assert (made.right, made.accused) == (made.machines, 0)


def visits(by_rank: list[int], pattern: str = "putring", batch: int = 8) -> Reading:
    samples = np.repeat(np.array(by_rank)[:, None], 20, axis=1)
    point = make_point(pattern=pattern, ranks=len(by_rank))
    made = [(make_visit(point, samples, batch=batch), State("near", 30.0))] * 9
    return reading(samples=lambda most, patterns=(): [one for one in made if pattern in patterns])


def test_several_slow_links_are_one_finding_and_a_rank_in_all_of_them_is_named() -> None:
    (slow,) = found(SLOW, visits([1000, 1500, 1500, 1000, 1000, 1000]))
    assert named([slow]) == {(1, 2), (2, 3)}
    assert slow.sentence.endswith("Rank 2 is in each of them.")


def test_one_slow_link_names_both_of_its_ranks() -> None:
    (slow,) = found(SLOW, visits([1000, 1300, 1000, 1000], "pairs"))
    assert "1 link (ranks 1 and 3) takes 1.30 times" in slow.sentence


def test_who_starts_first_waits_longer_and_is_not_slow_for_that() -> None:
    """One repetition a sample: 8 us on one side, 25 us on the other, as sockets have it; in 25 ms it counts."""
    assert "eight repetitions" in lacking(SLOW, visits([8_000, 25_000], batch=1))
    assert found(SLOW, visits([8_000_000, 25_000_000], batch=1))
