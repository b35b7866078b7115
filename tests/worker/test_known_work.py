"""CPU times and the cost of the clock, against work that is known. CPU time does not grow on a busy machine."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest
from tests.worker.test_native import converse, measure, measured, shared

from hockney.worker.build import build_worker

EVENTS, DELAY_US = 100, 2000


def computed(transport: str, kind: str) -> dict[str, Any]:
    """Rank 0's answer for 100 delays of 2 ms each, between messages that take microseconds.

    The kernel divides CPU time into user and system time by what its ticks find, so it takes many ticks.
    """
    command = measure("robpush", 8, batch=20, samples=5, warmup=0, verify="no", delay_us=DELAY_US, delay_kind=kind)
    (answer,) = measured([command], "-t", transport, *shared())
    assert answer["counters"]["delays"][0] == EVENTS
    return answer


@pytest.mark.parametrize("transport", ["unix", "threads"])
def test_computing_is_user_time(transport: str) -> None:
    answer = computed(transport, "loop")
    user_ns, system_ns = answer["cpu_user_ns"][0], answer["cpu_system_ns"][0]
    assert user_ns + system_ns >= 0.5 * EVENTS * DELAY_US * 1000
    assert system_ns < user_ns  # on a busy machine the kernel switches often
    assert user_ns + system_ns <= 1.1 * answer["wall_ns"][0]


def test_a_rank_that_sleeps_uses_no_cpu() -> None:
    answer = computed("unix", "sleep")
    assert answer["wall_ns"][0] >= EVENTS * DELAY_US * 1000
    assert answer["cpu_user_ns"][0] + answer["cpu_system_ns"][0] <= 0.3 * answer["wall_ns"][0]
    waiting_ns = answer["cpu_user_ns"][1] + answer["cpu_system_ns"][1]
    assert waiting_ns <= 0.3 * answer["wall_ns"][0]  # the other has nothing to do meanwhile


def test_a_rank_that_spins_uses_its_cpu_however_short_the_measurement() -> None:
    """Shorter than a tick of the kernel, which counts a running thread's time."""
    command = measure("pingpong", 8, batch=100, samples=5, warmup=0, verify="no")
    answers = measured([command] * 10, "-t", "shm", *shared())
    used_ns = [map(sum, zip(answer["cpu_user_ns"], answer["cpu_system_ns"], strict=True)) for answer in answers]
    assert 0 not in [*itertools.chain(*used_ns)]


def test_bytes_that_the_kernel_moves_are_system_time() -> None:
    command = measure("oneway", 1 << 20, batch=10, samples=20, window=4, verify="no")
    (answer,) = measured([command], "-t", "tcp", *shared())
    system_ns, user_ns = sum(answer["cpu_system_ns"]), sum(answer["cpu_user_ns"])
    assert system_ns > user_ns, answer


def test_the_cost_of_the_clock_is_that_of_one_call() -> None:
    costs = []
    for _ in range(3):
        (hello, _), _ = converse(build_worker(), ["hello"], "-t", "null", *shared())
        costs.append(hello["clock_ns"])
    assert 1 <= min(costs) <= 2000


def test_counters_are_exact() -> None:
    command = measure("robpush", 8, batch=617, samples=2, warmup=0, verify="no", delay_us=1, delay_kind="clock")
    (answer,) = measured([command], "-t", "shm", *shared())
    assert answer["counters"]["delays"] == [1234, 0]


@pytest.mark.parametrize("pattern", ["pingpong", "twoway"])
def test_both_buffers_of_a_rank_must_fit_its_share_of_the_memory(pattern: str) -> None:
    """Each alone would."""
    share_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 // 2
    command = measure(pattern, share_bytes * 6 // 10)
    answers, _ = converse(build_worker(), [f"shm 2 2 {command}", f"shm 2 2 {measure(pattern, 8)}"], "--fits")
    assert "above a rank's share" in answers[0]["why"]
    assert answers[1]["why"] is None
