"""Patterns of applications on a virtual clock, where every time is known exactly, and their grids.

S and R occupy the sender and the receiver, W is the way of a message without its bytes, all in ns (virtual.c).
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.worker.extra import EXTRA
from tests.worker.test_native import converse, measure, measured, on_virtual, shared, why_unsupported

from hockney.worker.build import build_worker

S, R, W, BYTE = 300, 200, 1000, 2
SAMPLES, BATCH, WARMUP = 3, 4, 8
BYTES = 48
WAY = W + BYTES * BYTE
COMPUTE_US = 5


def slowest(pattern: str, ranks: int, size: int = BYTES, **options: Any) -> list[float]:
    """The time of a repetition in each sample: that of the slowest rank."""
    command = measure(pattern, size, samples=SAMPLES, batch=BATCH, warmup=WARMUP, **options)
    answer = on_virtual(f"{S} {R} {W} {BYTE}", command, ranks)
    assert answer["verified"] is True
    return [max(of_ranks) / BATCH for of_ranks in zip(*answer["elapsed_ns"], strict=True)]


def steady(pattern: str, ranks: int, size: int = BYTES, **options: Any) -> float:
    """The time of a repetition once the stream flows, and that it is the same in every sample."""
    times = slowest(pattern, ranks, size, **options)
    assert len({*times[1:]}) == 1
    return times[-1]


@pytest.mark.parametrize(
    ("pattern", "ranks", "faces", "options"),
    [
        ("halo2d", 2, 2, {}),
        ("halo2d", 4, 4, {}),
        ("halo2d", 6, 4, {}),
        ("halo2d", 6, 2, {"nx": 6}),
        ("halo3d", 8, 6, {}),
        ("halo3d", 12, 6, {}),
        ("halo3d", 4, 4, {}),
        ("halo4d", 16, 8, {}),
    ],
)
def test_a_halo_is_its_sends_the_way_and_its_receives(
    pattern: str, ranks: int, faces: int, options: dict[str, int]
) -> None:
    """All neighbours send in one order, so message k arrives k sends and a way after the beginning of its exchange.

    With eight of them a rank is never idle.
    """
    received = max(faces * (S + R), *((k + 1) * S + WAY + (faces - k) * R for k in range(faces)))
    assert steady(pattern, ranks, **options) == received
    assert steady(pattern, ranks, delay_us=COMPUTE_US, **options) == received + COMPUTE_US * 1000


def swept(nx: int, ny: int, blocks: int, compute_ns: int, repetitions: int) -> list[int]:
    """When each repetition of a sweep ends on the last rank to end it, by the rules of the wavefront alone."""
    clock = {(x, y): 0 for x in range(nx) for y in range(ny)}
    ends = []
    for _ in range(repetitions):
        for dx, dy in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
            order = sorted(clock, key=lambda at: (at[0] * dx + at[1] * dy, at[0] * dx))
            arrivals: dict[tuple[tuple[int, int], int, str], int] = {}
            for block in range(blocks):
                for x, y in order:
                    now = clock[x, y]
                    for axis in "xy":
                        if ((x, y), block, axis) in arrivals:
                            now = max(now, arrivals[(x, y), block, axis]) + R
                    now += compute_ns
                    for axis, there in (("x", (x + dx, y)), ("y", (x, y + dy))):
                        if there in clock:
                            now += S
                            arrivals[there, block, axis] = now + WAY
                    clock[x, y] = now
        ends.append(max(clock.values()))
    return ends


@pytest.mark.parametrize(("nx", "ny"), [(2, 1), (2, 2), (3, 2), (4, 3)])
@pytest.mark.parametrize("blocks", [1, 5])
def test_a_sweep_is_a_wavefront_from_each_corner(nx: int, ny: int, blocks: int) -> None:
    compute_ns = COMPUTE_US * 1000
    ends = swept(nx, ny, blocks, compute_ns, 10)
    assert ends[-1] - ends[-2] == ends[-2] - ends[-3]
    assert steady("sweep", nx * ny, nx=nx, ny=ny, blocks=blocks, delay_us=COMPUTE_US) == ends[-1] - ends[-2]
    stages = 4 * (blocks * compute_ns)  # of one rank, which computes one block at a time
    assert ends[-1] - ends[-2] >= stages


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_ring_allreduce_is_two_rounds_of_parts(ranks: int) -> None:
    size = ranks * BYTES
    assert steady("ringreduce", ranks, size) == 2 * (ranks - 1) * (S + WAY + R)


@pytest.mark.parametrize("size", [8, 16, 72])
def test_a_vector_with_fewer_words_than_ranks_or_uneven_parts_is_added_up(size: int) -> None:
    assert slowest("ringreduce", 5, size)  # verified, with parts of nothing


@pytest.mark.parametrize("pattern", ["ring", "ringreduce", "alltoall", "halo2d", "halo3d"])
@pytest.mark.parametrize("ranks", [2, 5])
def test_the_messages_of_a_repetition_are_those_that_leave(pattern: str, ranks: int) -> None:
    """All ranks send alike, so rank 0's count for all; meetings are as many with any batch."""
    left = []
    for batch in (1, 3):
        command = measure(pattern, 80, samples=1, batch=batch, warmup=0, verify="no")
        arguments = ["-t", "fault", *shared(ranks)]
        (answer, _), done = converse(build_worker(EXTRA), [command], *arguments, env={"HOCKNEY_FAULT": "list 0 0"})
        left.append(done.stderr.count("fault: sends "))
    assert answer["messages_per_rep"] == ranks * (left[1] - left[0]) / 2


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_parameter_server_waits_for_all_workers_and_answers_them_in_turn(workers: int) -> None:
    """The last worker has its answer last, and so is the one for which the server waits; R is less than S."""
    period = COMPUTE_US * 1000 + S + WAY + R + workers * S + WAY + R
    assert steady("paramserver", workers + 1, delay_us=COMPUTE_US) == period


@pytest.mark.parametrize(
    ("pattern", "ranks", "messages"),
    [
        ("halo2d", 6, 24), ("halo2d", 7, 14), ("halo2d", 36, 144), ("halo3d", 30, 180), ("halo3d", 27, 162),
        ("halo3d", 7, 14), ("halo4d", 24, 192), ("halo4d", 7, 14),
        ("sweep", 6, 4 * 8 * (2 * 2 + 3 * 1)), ("sweep", 16, 4 * 8 * 24),
    ],
)  # fmt: skip
def test_grids_are_near_square(pattern: str, ranks: int, messages: int) -> None:
    (answer,) = measured([measure(pattern, 8)], "-t", "null", *shared(ranks))
    assert answer["messages_per_rep"] == messages


@pytest.mark.parametrize(
    ("pattern", "options", "why"),
    [
        ("halo2d", {"nx": 4}, "a grid of 4 x 1 does not hold 6 ranks"),
        ("halo3d", {"nx": 2, "nz": 2}, "a grid of 2 x 1 x 2 does not hold 6 ranks"),
        ("sweep", {"nx": 2, "ny": 2}, "a grid of 2 x 2 does not hold 6 ranks"),
        ("paramserver", {"servers": 6}, "paramserver with servers=6 on 6 ranks has no workers: it needs 7 or more"),
    ],
)
def test_options_that_fit_no_grid_or_leave_no_worker_are_refused(
    pattern: str, options: dict[str, int], why: str
) -> None:
    message = why_unsupported(measure(pattern, 8, **options), "null", 6)
    assert message.removesuffix(": give factors of 6, or 0 for automatic") == why


@pytest.mark.parametrize(
    ("pattern", "delays"),
    [("halo2d", [1] * 4), ("halo3d", [1] * 4), ("sweep", [4 * 8] * 4), ("paramserver", [0, 1, 1, 1])],
)
def test_where_nothing_is_sent_only_computing_is_left(pattern: str, delays: list[int]) -> None:
    command = measure(pattern, 8, batch=2, samples=3, warmup=0, delay_us=COMPUTE_US)
    (answer,) = measured([command], "-t", "null", *shared(4))
    assert answer["counters"]["delays"] == [2 * 3 * each for each in delays]
    for elapsed_ns, each in zip(answer["elapsed_ns"], delays, strict=True):
        assert all(ns >= 2 * each * COMPUTE_US * 1000 for ns in elapsed_ns)
