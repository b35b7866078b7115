"""Simulated machines: what each cost does to a time, by closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.worker.sim import answer, lines, simulate, times
from tests.worker.test_native import PATTERNS, measure


def test_who_lives_on_a_model(tmp_path: Path) -> None:
    answers, done = simulate(tmp_path, ["name tiny", *lines()], 3, "hello id=5", "floor id=6", "quit id=7")
    hello, floor, bye = answers
    assert (hello["family"], hello["library"], hello["size"], len(hello["ranks"])) == ("sim", "model tiny", 3, 3)
    assert (floor["kind"], floor["code"]) == ("error", "unsupported")
    assert (bye["kind"], bye["id"], done.returncode, done.stderr) == ("bye", 7, 0, "")


def test_half_a_round_trip_is_the_sum_of_its_costs(tmp_path: Path) -> None:
    model = lines(send_cpu=100, recv_cpu=20, latency="1000 0.5 0", transfer="30 2 3")
    for size, packets in ((0, 1), (1, 1), (32, 1), (33, 2), (1000, 32)):
        expected = 100 + 20 + 1000 + 0.5 * size + 30 + 2 * size + 3 * packets
        ((rank0, _), _) = times(tmp_path, model, 2, "pingpong", size, batch=100, samples=2)
        assert rank0 == 100 * 2 * expected


def synchronous(**costs: Any) -> list[str]:
    return [line.replace("eager", "synchronous") for line in lines(**costs)]


@pytest.mark.parametrize("cost", ["transfer", "out", "in", "node"])
def test_a_stream_runs_at_its_slowest_part(tmp_path: Path, cost: str) -> None:
    """Occupancies delay the next message only; for a node's own, an answer is the next one."""
    parts: dict[str, Any] = {"send_cpu": 10, "recv_cpu": 20, "latency": 3000, cost: "700 0 0"}
    alone = {"transfer": 3730, "node": 3700}.get(cost, 3030)
    assert times(tmp_path, lines(**parts), 2, "pingpong", 8)[0] == [2 * alone]
    elapsed = times(tmp_path, lines(**parts), 2, "oneway", 8, batch=1000, until="acked")
    # The last message and its acknowledgement follow 999 steps.
    assert elapsed[0][0] == pytest.approx(999 * 700 + 2 * alone, abs=2 * 700)


def test_cpu_costs_bound_a_stream(tmp_path: Path) -> None:
    ((sender,), (receiver,)) = times(tmp_path, lines(send_cpu=50, recv_cpu=400), 2, "oneway", batch=1000, until="sent")
    assert (sender, receiver) == (1000 * 50, 1000 * 400)


def test_a_funnel_waits_for_the_receiver(tmp_path: Path) -> None:
    """Six senders: their messages come through one port, or are handled by one CPU."""
    slow: list[dict[str, Any]] = [{"in_": 500}, {"recv_cpu": 500}]
    for costs in slow:
        elapsed = times(tmp_path, lines(send_cpu=10, latency=100, **costs), 7, "funnel", 8, batch=100)
        assert elapsed[0][0] / 600 == pytest.approx(500, rel=0.01)


def test_a_node_works_on_a_message_while_it_comes(tmp_path: Path) -> None:
    """Seven transfers at once: only the time of the node adds up."""
    model = synchronous(latency=50, transfer=1000, in_=200)
    (receiver, *_) = times(tmp_path, model, 8, "funnel", 8, batch=100)
    assert receiver[0] == pytest.approx(100 * 7 * 200, rel=0.02)


def test_whoever_receives_too_sends_more_slowly(tmp_path: Path) -> None:
    for both, step in ((0, 100), (400, 400)):
        model = lines(out=100, both=both, latency=10)
        (rank0, *_) = times(tmp_path, model, 5, "alltoall", 8, batch=100)
        assert rank0[0] == pytest.approx(100 * 4 * step, rel=0.02)
        (_, receiver, *_) = times(tmp_path, model, 5, "outfarm", 8, batch=100)
        assert receiver[0] == pytest.approx(100 * 4 * 100, rel=0.02)


def test_messages_that_meet_take_longer(tmp_path: Path) -> None:
    for duplex in (0, 300):
        model = synchronous(latency=50, transfer=1000, duplex=duplex)
        assert times(tmp_path, model, 2, "twoway", 8, batch=100)[0][0] == 100 * (1050 + duplex)
        assert times(tmp_path, model, 2, "pingpong", 8, batch=100)[0][0] == pytest.approx(100 * 2 * 1050, rel=0.01)


def test_what_is_left_for_a_late_receive(tmp_path: Path) -> None:
    """The receiver computes for longer than a message takes; the rest of four packets is three of them."""
    delay = {"receiver_compute_us": 10, "until": "sent", "batch": 100}
    for costs, rest in (({}, 1000), ({"rest": "30 0 100"}, 330)):
        model = synchronous(latency=50, transfer=1000, **costs)
        receiver = times(tmp_path, model, 2, "oneway", 128, **delay)[1]
        assert receiver[0] == pytest.approx(100 * (10_000 + rest), rel=0.02)


def test_a_channel_carries_on_for_those_who_wait_for_several(tmp_path: Path) -> None:
    """A synchronous send ends with its receive; several are all with their channels when each has its message."""
    model = synchronous(latency=100, transfer=900, out=50)
    (source, *_) = times(tmp_path, model, 5, "outfarm", 8, batch=1000, until="sent")
    assert source[0] == pytest.approx(1000 * 1000, rel=0.02)
    assert times(tmp_path, model, 2, "oneway", 8, batch=1000, until="sent")[0][0] == 1000 * 1000


def test_messages_that_lie_there_cost_a_copy(tmp_path: Path) -> None:
    model = lines(latency=100, recv_cpu=10, late="5 1 0")
    assert times(tmp_path, model, 2, "oneway", 100, batch=10, until="sent")[1] == [10 * (10 + 5 + 100)]


def test_a_dissemination_barrier(tmp_path: Path) -> None:
    model = lines(send_cpu=10, recv_cpu=20, latency=300)
    for ranks, rounds in ((2, 1), (5, 3), (8, 3), (9, 4)):
        elapsed = times(tmp_path, model, ranks, "barrier", batch=7)
        assert elapsed == [[7 * rounds * 330]] * ranks


def test_computing_is_cpu_time(tmp_path: Path) -> None:
    point = answer(tmp_path, lines(send_cpu=10), 2, "oneway", 8, batch=5, compute_us=3, until="sent")
    assert (point["cpu_user_ns"][0], point["wall_ns"][0]) == (5 * 3010, 5 * 3010)
    assert point["counters"]["delay_ns"][0] == 5 * 3000


def test_computing_takes_what_the_machine_needs(tmp_path: Path) -> None:
    model = ["compute 8700 1.153", *lines()]
    assert times(tmp_path, model, 2, "robpush", 8, delay_us=100)[0] == [124_000]


def test_a_point_does_not_depend_on_those_before(tmp_path: Path) -> None:
    commands = [measure(pattern, 4097) for pattern in (*PATTERNS, *PATTERNS)]
    answers, done = simulate(tmp_path, lines(latency=100, in_=7, transfer="0 1 0"), 6, *commands)
    assert done.stderr == ""
    first, second = answers[: len(PATTERNS)], answers[len(PATTERNS) : -1]
    assert first == second
    assert {row["kind"] for row in first} == {"measure"}
