"""The pattern `clocks`, on ranks whose clocks and delays are known exactly."""

from __future__ import annotations

import pytest
from tests.worker.test_native import measure, on_virtual

from hockney.analysis.clocks import added_up

S, R, W = 300, 200, 1000


@pytest.mark.parametrize("ranks", [2, 3, 8, 11])
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
