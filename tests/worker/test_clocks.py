"""The patterns `clocks` and `owd`, on ranks whose clocks and delays are known exactly."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worker.extra import EXTRA
from tests.worker.test_native import converse, measure, on_virtual, shared

from hockney.analysis.clocks import added_up
from hockney.worker.build import build_worker

S, R, W, B = 300, 200, 1000, 2  # of sending, of receiving, on the way, and of each byte
TRIP_NS = 2 * (S + W + R + 8 * B)


def owd(ahead_ns: int, upward_ns: int, *points: tuple[int, str]) -> tuple[list[dict[str, Any]], str]:
    """The answers for sizes and directions, and the standard error. A message to rank 0 takes `upward_ns` longer."""
    commands = [measure("owd", size, batch=5, samples=3, warmup=2, direction=direction) for size, direction in points]
    costs = {"HOCKNEY_VIRTUAL": f"{S} {R} {W} {B} {ahead_ns} {upward_ns}"}
    answers, done = converse(build_worker(EXTRA), commands, "-t", "virtual", *shared(), env=costs)
    return answers[:-1], done.stderr


@pytest.mark.parametrize("ahead_ns", [0, 123, 5_000_000])
@pytest.mark.parametrize("upward_ns", [0, 700])
def test_a_delay_is_known_within_the_error_of_the_clocks(ahead_ns: int, upward_ns: int) -> None:
    """Half of a delay of one direction alone is lost, as the error allows; without one the time is exact."""
    answers, said = owd(ahead_ns, upward_ns, (4096, "up"), (4096, "down"))
    seen_ns = S + W + R + 4096 * B + upward_ns // 2
    for source, answer in enumerate(answers):
        assert answer["kind"] == "measure", said
        true_ns = S + W + R + 4096 * B + upward_ns * source
        assert answer["verified"]
        assert answer["timed"] == ("root" if source == 0 else "rank 1")
        assert answer["elapsed_ns"][source] == [5 * seen_ns] * 3
        assert answer["counters"]["clock_error_ns"][source] == (TRIP_NS + upward_ns) / 2 >= abs(seen_ns - true_ns)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_delay_up_to_twice_the_error_fails_with_both(direction: str) -> None:
    """The delay of 8 B is the error itself, however unequal the directions are."""
    (answer,), said = owd(5_000_000, 90_000, (8, direction))
    assert (answer["kind"], answer["code"]) == ("error", "corrupt")
    delay_us = (TRIP_NS + 90_000) / 2 / 1000
    rank = 0 if direction == "up" else 1
    assert f"rank {rank}: owd: a one-way delay of {delay_us:.2f} us is not more than twice" in said
    assert f"the clocks' error of {delay_us:.2f} us: send longer messages (--bytes)" in said
    longest = (TRIP_NS // 2 - 8 * B) // B + 16  # the last that fails without an upward delay
    answers, _ = owd(0, 0, (longest, direction), (longest + 1, direction))
    assert [each["kind"] for each in answers] == ["error", "measure"]


@pytest.mark.parametrize("ranks", [2, 3, 11])
@pytest.mark.parametrize(("ahead_ns", "upward_ns"), [(0, 0), (5_000_000, 0), (123, 700), (5_000_000, 90_000)])
def test_clocks_are_known_within_their_error(ranks: int, ahead_ns: int, upward_ns: int) -> None:
    """Rank r is r times as much ahead. A delay of one direction alone is wrong by half of it, as the error allows."""
    command = measure("clocks", 0, batch=5, samples=4, warmup=2)
    counters = on_virtual(f"{S} {R} {W} 0 {ahead_ns} {upward_ns}", command, ranks)["counters"]
    steps = [bin(rank).count("1") for rank in range(ranks)]  # to rank 0
    error_ns = (2 * (S + W + R) + upward_ns) / 2
    assert counters["clock_error_ns"] == [0.0, *[error_ns] * (ranks - 1)]
    ahead = added_up(counters["clock_ahead_ns"])
    assert ahead == [rank * ahead_ns - steps[rank] * upward_ns / 2 for rank in range(ranks)]
    errors = added_up(counters["clock_error_ns"])
    assert all(abs(ahead[rank] - rank * ahead_ns) <= errors[rank] for rank in range(ranks))
