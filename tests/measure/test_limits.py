"""How long a measurement between hosts may take, from those before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_placement

from hockney.measure.estimate import LearnedLimits
from hockney.measure.plan import make_plan
from hockney.model import PatternTraits, Point
from hockney.suites import load_suite
from hockney.worker.catalogue import load
from hockney.worker.points import RunOptions

MOST_S = 60
SMALL = Point("tcp", "pingpong", 2, 8, traits=PatternTraits(links="ends"))


def limit_after(took_s: float, before: Point, point: Point, repetitions: int = 1) -> int:
    limits = LearnedLimits()
    limits.note(before, took_s, took_s / 10)
    return limits.limit_s(point, repetitions, MOST_S)


@pytest.mark.parametrize(("took_s", "limit_s"), [(0.01, 4), (0.4, 4), (0.5, 5), (0.51, 6), (10, MOST_S)])
def test_a_point_may_take_ten_times_its_longest_measurement(took_s: float, limit_s: int) -> None:
    assert limit_after(took_s, SMALL, SMALL) == limit_s


def test_the_longest_measurement_counts() -> None:
    limits = LearnedLimits()
    for took_s in (0.01, 1.0, 0.01):
        limits.note(SMALL, took_s, 1e-5)
    assert limits.limit_s(SMALL, 10, MOST_S) == 10


def test_more_repetitions_than_before_may_take_longer() -> None:
    stream = replace(SMALL, pattern="stream", bytes=4 << 20, traits=PatternTraits(stream=True, links="ends"))
    assert limit_after(0.2, stream, stream, repetitions=64) == 13  # ten times 64 of 20 ms each


@pytest.mark.parametrize(
    "other", [{"transport": "udp"}, {"pattern": "oneway"}, {"ranks": 4}, {"options": (("delay_ns", "9"),)}]
)
def test_the_first_measurement_of_its_kind_has_the_limit_of_the_plan(other: dict[str, Any]) -> None:
    assert limit_after(0.01, SMALL, replace(SMALL, **other)) == MOST_S


def test_a_new_size_may_take_as_long_as_its_messages_on_a_slow_network() -> None:
    assert limit_after(0.01, SMALL, replace(SMALL, bytes=1024)) == 5
    assert limit_after(0.01, SMALL, replace(SMALL, bytes=4 << 20)) == 4 + 17  # there and back, twice, at 1 MB/s
    assert limit_after(0.01, SMALL, replace(SMALL, bytes=1 << 30)) == MOST_S


@pytest.mark.parametrize(("traits", "limit_s"), [(PatternTraits(), 4 + 5), (PatternTraits(links="ends"), 4 + 2)])
def test_messages_of_all_ranks_are_counted_unless_a_pair_sends_alone(traits: PatternTraits, limit_s: int) -> None:
    """Of 8 ranks each sends 256 KiB, or two do; twice, at 1 MB/s."""
    short = Point("tcp", "alltoall", 8, 8, traits=traits)
    assert limit_after(0.01, short, replace(short, bytes=1 << 18)) == limit_s


def test_another_pair_is_alike() -> None:
    first, other = (replace(SMALL, options=(("source", "0"), ("target", target))) for target in "12")
    assert limit_after(0.01, first, other) == 5


@pytest.mark.parametrize(
    ("hosts", "limit_s", "adapts"), [((), None, False), (("n1", "n2"), None, True), (("n1", "n2"), 30, False)]
)
def test_limits_adapt_between_hosts_unless_one_is_asked_for(
    hosts: tuple[str, ...], limit_s: int | None, *, adapts: bool
) -> None:
    limits = load_suite("health").limits(timeout_s=limit_s)
    asked = RunOptions(("tcp",), placement=make_placement(hosts), limits=limits)
    assert make_plan(load_suite("health"), asked, load(["tcp"])).limits.limit_adapts is adapts
