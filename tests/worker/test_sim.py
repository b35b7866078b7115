"""Simulated machines: the effect of each cost on a time, by closed forms."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.worker.extra import ADDRESS
from tests.worker.sim import answer, lines, simulate, times
from tests.worker.test_native import PATTERNS, measure

from hockney.stats.npb import ft_operations
from hockney.worker.answers import parse


def test_hello_and_floor_on_a_model(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("pattern", ["pingpong", "prtt"])
@pytest.mark.parametrize("protocol", ["eager", "rendezvous"])
def test_synchronising_ranks_delays_no_sample(protocol: str, pattern: str, tmp_path: Path) -> None:
    """The first rank out of the barrier would wait for the other's receive, or for the pending token."""
    short = ["cost latency 300 0 0", "cost transfer 900 0 0", "cost send_cpu 100 0 0", "cost recv_cpu 20 0 0"]
    long = ["cost latency 2000 0 0", *short[1:]]
    model = ["topology switch", "class all any", "segment 8 eager 0", *short, f"segment 0 {protocol} 0", *long]
    assert times(tmp_path, model, 2, pattern, 64, samples=4)[0] == [2 * 3020] * 4


def protocol(name: str, **costs: Any) -> list[str]:
    return [line.replace("eager", name) for line in lines(**costs)]


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


@pytest.mark.parametrize("cost", ["in_", "node"])
def test_messages_that_arrive_together_are_taken_in_turn(tmp_path: Path, cost: str) -> None:
    costs: dict[str, Any] = {"latency": 1000, "transfer": 500, cost: 300}
    model = lines(**costs)
    assert times(tmp_path, model, 4, "funnel", 8, warmup=0)[0] == [1000 + 3 * 300]


def test_a_node_works_on_a_message_while_it_comes(tmp_path: Path) -> None:
    """Seven concurrent transfers: only the time of the node adds up."""
    model = protocol("synchronous", latency=50, transfer=1000, in_=200)
    (receiver, *_) = times(tmp_path, model, 8, "funnel", 8, batch=100)
    assert receiver[0] == pytest.approx(100 * 7 * 200, rel=0.02)


def test_a_rank_that_also_receives_sends_more_slowly(tmp_path: Path) -> None:
    for both, step in ((0, 100), (400, 400)):
        model = lines(out=100, both=both, latency=10)
        (rank0, *_) = times(tmp_path, model, 5, "alltoall", 8, batch=100)
        assert rank0[0] == pytest.approx(100 * 4 * step, rel=0.02)
        (_, receiver, *_) = times(tmp_path, model, 5, "outfarm", 8, batch=100)
        assert receiver[0] == pytest.approx(100 * 4 * 100, rel=0.02)


def test_an_exchange_takes_longer_than_half_a_round_trip(tmp_path: Path) -> None:
    """Also among three ranks in a ring. An answer, or a message of a stream, never meets another one."""
    more: list[dict[str, Any]] = [{}, {"in_": 5}]
    for costs in more:
        model = lines(send_cpu=100, recv_cpu=20, latency=1000, transfer=10, exchange=300, **costs)
        assert times(tmp_path, model, 2, "pingpong", 8, batch=100)[0] == [100 * 2 * 1130]
        for ranks in (2, 3):
            for elapsed in times(tmp_path, model, ranks, "ring", 8, batch=100):
                assert elapsed == [100 * 1430]
        assert times(tmp_path, model, 2, "oneway", 8, batch=100, until="sent")[0] == [100 * 100]


def test_messages_that_meet_take_longer(tmp_path: Path) -> None:
    for duplex in (0, 300):
        model = protocol("synchronous", latency=50, transfer=1000, duplex=duplex)
        assert times(tmp_path, model, 2, "twoway", 8, batch=100)[0][0] == 100 * (1050 + duplex)
        assert times(tmp_path, model, 2, "pingpong", 8, batch=100)[0][0] == pytest.approx(100 * 2 * 1050, rel=0.01)


def test_the_rest_of_a_message_for_a_late_receive(tmp_path: Path) -> None:
    """The receiver computes for longer than a message takes; the rest of four packets is three of them."""
    delay = {"receiver_delay_us": 10, "until": "sent", "batch": 100}
    for costs, rest in (({}, 1000), ({"rest": "30 0 100"}, 330)):
        model = protocol("synchronous", latency=50, transfer=1000, **costs)
        receiver = times(tmp_path, model, 2, "oneway", 128, **delay)[1]
        assert receiver[0] == pytest.approx(100 * (10_000 + rest), rel=0.02)


def test_a_channel_continues_for_ranks_that_wait_for_several_requests(tmp_path: Path) -> None:
    """A synchronous send ends with its receive; several are all with their channels when each has its message."""
    model = protocol("synchronous", latency=100, transfer=900, out=50)
    (source, *_) = times(tmp_path, model, 5, "outfarm", 8, batch=1000, until="sent")
    assert source[0] == pytest.approx(1000 * 1000, rel=0.02)
    assert times(tmp_path, model, 2, "oneway", 8, batch=1000, until="sent")[0][0] == 1000 * 1000


def test_waiting_messages_cost_a_copy(tmp_path: Path) -> None:
    model = lines(latency=100, recv_cpu=10, late="5 1 0")
    assert times(tmp_path, model, 2, "oneway", 100, batch=10, until="sent")[1] == [10 * (10 + 5 + 100)]


def test_a_dissemination_barrier(tmp_path: Path) -> None:
    model = lines(send_cpu=10, recv_cpu=20, latency=300)
    for ranks, rounds in ((2, 1), (5, 3), (8, 3), (9, 4)):
        elapsed = times(tmp_path, model, ranks, "barrier", batch=7)
        assert elapsed == [[7 * rounds * 330]] * ranks


W: dict[str, Any] = {"class": "W"}


def test_ft_is_charged_by_its_operations(tmp_path: Path) -> None:
    """Seven exchanges and six sums, each one latency; without a rate it is skipped with the reason."""
    for ranks in (1, 4):
        model = ["flops_per_s 5e8", "barrier 0 0", *lines(latency=1e6)]
        point = answer(tmp_path, model, ranks, "ft", **W)
        computing_ns = 2 * ft_operations("W") / ranks
        expected = computing_ns + (13e6 if ranks > 1 else 0)
        assert point["elapsed_ns"][0][0] == pytest.approx(expected, abs=10)
        assert point["cpu_user_ns"][0] == pytest.approx(computing_ns, abs=10)
        assert not point["verified"]
    (refusal, _), _ = simulate(tmp_path, lines(), 2, measure("ft", 0))
    assert (refusal["kind"], refusal["code"]) == ("error", "unsupported")
    assert refusal["message"] == (
        "ft needs messages that really arrive, which sim does not offer; a model with cpu.flops_per_s needs none"
    )


def test_computing_is_cpu_time(tmp_path: Path) -> None:
    point = answer(tmp_path, lines(send_cpu=10), 2, "oneway", 8, batch=5, delay_us=3, until="sent")
    assert (point["cpu_user_ns"][0], point["wall_ns"][0]) == (5 * 3010, 5 * 3010)
    assert point["counters"]["delay_ns"][0] == 5 * 3000


def test_computing_takes_the_machines_time(tmp_path: Path) -> None:
    model = ["compute 8700 1.153", *lines()]
    assert times(tmp_path, model, 2, "robpush", 8, delay_us=100)[0] == [124_000]


def test_a_point_does_not_depend_on_those_before(tmp_path: Path) -> None:
    commands = [measure(pattern, 4097) for pattern in (*PATTERNS, *PATTERNS)]
    answers, done = simulate(tmp_path, lines(latency=100, in_=7, transfer="0 1 0"), 6, *commands)
    assert done.stderr == ""
    first, second = answers[: len(PATTERNS)], answers[len(PATTERNS) : -1]
    assert first == second
    assert {row["kind"] for row in first} == {"measure"}


# ---- protocols ------------------------------------------------------------------------------------------------------


def test_rendezvous_waits_for_the_receive(tmp_path: Path) -> None:
    model = protocol("rendezvous", send_cpu=100, recv_cpu=20, latency=1000, handshake=400, transfer="0 2 0")
    alone = 100 + 400 + 1000 + 200 + 20
    assert times(tmp_path, model, 2, "pingpong", 100)[0] == [2 * alone]
    # A receiver that computes for 5 us after each message comes late: then 400 + 1000 + 200 + 20 follow.
    sender, receiver = times(tmp_path, model, 2, "oneway", 100, batch=10, receiver_delay_us=5, until="sent")
    assert receiver == [10 * (5000 + 400 + 1000 + 200 + 20)]
    assert sender == receiver  # a send returns when its bytes have left


def test_a_synchronous_message_is_there_when_the_receive_comes(tmp_path: Path) -> None:
    model = protocol("synchronous", latency=1000, transfer="0 2 0", ack=300)
    assert times(tmp_path, model, 2, "pingpong", 100)[0] == [2 * 1200]
    assert times(tmp_path, model, 2, "oneway", 100, batch=10, until="sent")[0] == [10 * 1500]
    late = times(tmp_path, model, 2, "oneway", 100, batch=10, receiver_delay_us=5, until="sent")
    assert late == [[10 * 5200]] * 2  # only the transfer follows the receive


def test_segments_by_size(tmp_path: Path) -> None:
    model = ["topology switch", "class all any", "segment 64 eager 0", "cost latency 100 0 0", "segment 0 eager 0"]
    model += ["cost latency 5000 0 0"]
    for size, latency in ((0, 100), (64, 100), (65, 5000), (1 << 30, 5000)):
        assert times(tmp_path, model, 2, "pingpong", size)[0] == [2 * latency]


def test_classes_by_place(tmp_path: Path) -> None:
    """Two ranks a node, two nodes a switch."""
    classes = [("near", "same_node", 100), ("switch", "switches 1 1", 1000), ("far", "any", 5000)]
    model = ["ranks_per_node 2", "node_cpus 2", "topology tree 2 down:2,2 width:1,1"]
    for name, condition, latency in classes:
        model += [f"class {name} {condition}", "segment 0 eager 0", f"cost latency {latency} 0 0"]
    for target, latency in ((1, 100), (2, 1000), (3, 1000), (4, 5000), (7, 5000)):
        assert times(tmp_path, model, 8, "pingpong", 8, target=target)[0] == [2 * latency]
    placed = [*model, *(f"place {rank} {node}" for rank, node in enumerate((0, 3, 0, 1)))]
    for target, latency in ((1, 5000), (2, 100), (3, 1000)):
        assert times(tmp_path, placed, 4, "pingpong", 8, target=target)[0] == [2 * latency]


def test_classes_count_the_switches_of_the_shorter_way_round(tmp_path: Path) -> None:
    model = ["topology torus 5 3"]
    for switches in range(2, 5):
        model += [f"class c{switches} switches {switches} {switches}", "segment 0 eager 0"]
        model += [f"cost latency {switches * 1000} 0 0"]
    model += ["class far any", "segment 0 eager 0", "cost latency 9000 0 0"]
    for target, switches in ((1, 2), (2, 3), (3, 3), (4, 2), (10, 2), (12, 4), (14, 3)):
        assert times(tmp_path, model, 15, "pingpong", 8, target=target)[0] == [2 * switches * 1000]


# ---- CPUs -----------------------------------------------------------------------------------------------------------


def test_ranks_of_a_node_share_its_cpu(tmp_path: Path) -> None:
    """Both pairs send from one node, whose CPU is busy for 700 ns with each message."""
    for cpus, step in ((1, 1400), (2, 700)):
        model = [f"node_cpus {cpus}", *(f"place {rank} {node}" for rank, node in enumerate((0, 0, 1, 2)))]
        model += lines(send_cpu=700, latency=100)
        elapsed = times(tmp_path, model, 4, "pairs", 8, batch=100, until="sent")
        assert elapsed[0] == elapsed[1] == [100 * step]


@pytest.mark.parametrize(("pattern", "asked_ns"), [("robpush", 0), ("robpull", 20_000)])
def test_receiving_during_computing(tmp_path: Path, pattern: str, asked_ns: int) -> None:
    """With one ROB an event is read while the previous one is computed: within a slice only as far as one request."""
    model = protocol("synchronous", transfer=20_000)
    for delay_us in (1, 400):
        elapsed = times(tmp_path, model, 2, pattern, 8, batch=10, samples=2, delay_us=delay_us, buffers=2)
        assert elapsed[0][0] == 10 * max(20_000 + asked_ns, 1000 * delay_us + asked_ns)


def event_ns(robs: int, message_ns: int, asked_ns: int, delay_ns: int, slice_ns: int, events: int = 256) -> float:
    """An independent simulation, of two processes on one CPU: the time of an event in the long run.

    The receiver takes a message from each ROB in turn. It needs no CPU while one is on its way, but does before the
    next; then it hands the event over and continues. The computing process yields at the second tick after it began.
    """
    now, ends, left, is_handed_over = 0, [0], 0, False
    ready_at, step, steps = 0, 0, robs * (2 if asked_ns else 1)
    queue: list[str] = []
    while len(ends) <= events:
        is_read = step > steps  # its last step, too, has been handled
        if is_read and left == 0 and not is_handed_over:
            is_handed_over, left, step, ready_at = True, delay_ns, 1, now + (asked_ns or message_ns)
            queue.append("compute")
        if not queue and not is_read:
            now = max(now, ready_at)
            queue.append("receive")
        if queue[0] == "receive":
            queue.pop(0)
            step += 1
            ready_at = now + (message_ns if not asked_ns or step % 2 == 0 else asked_ns) if step <= steps else 1 << 62
            continue
        until = min((now // slice_ns + 2) * slice_ns, now + left)
        if now < ready_at <= until and "receive" not in queue and step <= steps:
            queue.append("receive")
        left -= until - now
        now = until
        queue.append(queue.pop(0))
        if left == 0:
            queue.remove("compute")
            is_handed_over = False
            ends.append(now)
    return (ends[-1] - ends[events // 4]) / (events - events // 4)


@pytest.mark.parametrize(("pattern", "asked_ns"), [("robpush", 0), ("robpull", 13_000)])
@pytest.mark.parametrize(("robs", "delay_us"), [(1, 100), (8, 100), (8, 400), (16, 900), (40, 400)])
def test_time_slices(tmp_path: Path, pattern: str, asked_ns: int, robs: int, delay_us: int) -> None:
    model = ["slice_ns 64000", *protocol("synchronous", transfer=13_000)]
    elapsed = times(tmp_path, model, robs + 1, pattern, 8, batch=128, samples=2, delay_us=delay_us, buffers=2)
    expected = event_ns(robs, 13_000, asked_ns, 1000 * delay_us, 64_000)
    assert elapsed[0][0] / 128 == pytest.approx(expected, rel=0.01)


# ---- links ----------------------------------------------------------------------------------------------------------


def ring(a: int, b: int, length: int) -> int:
    return min((a - b) % length, (b - a) % length)


def test_hops_and_turns_on_a_torus(tmp_path: Path) -> None:
    model = lines("link 0 0 50", "turn 7", topology="torus 4 3 2")
    for target in range(1, 24):
        places = (target % 4, 4), (target // 4 % 3, 3), (target // 12, 2)
        hops = [ring(0, place, length) for place, length in places]
        turns = sum(map(bool, hops)) - 1
        for source, end in ((0, target), (target, 0)):
            assert times(tmp_path, model, 24, "pingpong", 8, source=source, target=end)[end and source] == [
                2 * (50 * sum(hops) + 7 * turns)
            ]


def test_levels_of_a_tree_and_a_dragonfly(tmp_path: Path) -> None:
    tree = lines("link 1 0 1", "link 2 0 10", "link 3 0 100", topology="tree 3 down:2,3,2 width:1,2,2")
    for target, one_way in ((1, 2), (2, 22), (5, 22), (6, 222), (11, 222)):
        assert times(tmp_path, tree, 12, "pingpong", 8, target=target)[0] == [2 * one_way]
    # 3 groups of 2 routers of 2 nodes, one global link each: group 0 reaches group 1 by router 0, group 2 by router 1.
    fly = lines("link 1 0 1", "link 2 0 10", "link 3 0 100", topology="dragonfly 3 2 2 1")
    for target, one_way in ((1, 2), (2, 12), (4, 112), (6, 102), (8, 112), (10, 122)):
        assert times(tmp_path, fly, 12, "pingpong", 8, target=target)[0] == [2 * one_way], target


def test_routes_of_a_graph(tmp_path: Path) -> None:
    """Five switches in a ring, a node on each; one pair goes the long way round."""
    edges = [f"edge {node} {5 + node}" for node in range(5)]
    edges += [f"edge {5 + place} {5 + (place + 1) % 5}" for place in range(4)] + ["edge 9 5 0 1000"]
    model = lines("link 0 0 50", *edges, "via 0 2 5 9 8 7", topology="graph 5 5")
    there, back = 2 * 50 + 1000 + 50 + 50 + 0, 4 * 50
    assert times(tmp_path, model, 5, "pingpong", 8, target=2)[0] == [there + back]
    assert times(tmp_path, model, 5, "pingpong", 8, target=1)[0] == [2 * 150]
    assert times(tmp_path, model, 5, "pingpong", 8, target=4)[0] == [2 * (100 + 1000)]


@pytest.mark.parametrize("topology", ["tree 2 down:2,2 width:1,1", "graph 2 4"])
def test_two_flows_over_one_link_take_twice_as_long(tmp_path: Path, topology: str) -> None:
    edges = [f"edge {a} {b}" for a, b in ((0, 4), (1, 4), (2, 5), (3, 5), (4, 5))] if "graph" in topology else []
    model = lines("link 0 1e9 10", *edges, topology=topology)
    for first, flows in (("oneway", 1), ("pairs", 2)):
        options = {"target": 2} if first == "oneway" else {}
        short, long = (times(tmp_path, model, 4, first, 1000, batch=batch, **options)[0][0] for batch in (100, 200))
        assert long - short == 100 * 1000 * flows


def test_wider_trees_carry_more(tmp_path: Path) -> None:
    for width, flows in ((1, 4), (2, 2), (4, 1)):
        model = lines("link 1 0 10", "link 2 1e9 10", topology=f"tree 2 down:4,2 width:1,{width}")
        short, long = (times(tmp_path, model, 8, "pairs", 1000, batch=batch)[0][0] for batch in (100, 200))
        assert long - short == 100 * 1000 * flows


def test_the_slowest_link_bounds_a_transfer_once(tmp_path: Path) -> None:
    model = lines("link 1 1e9 10", "link 2 5e8 10", topology="tree 2 down:1,2 width:1,1", transfer="0 0.5 0")
    assert times(tmp_path, model, 2, "pingpong", 1000)[0] == [2 * (4 * 10 + 2000)]


def test_a_send_lasts_as_long_as_its_message_waits_on_all_links(tmp_path: Path) -> None:
    """The last of three waits for two others on the first link, and for one of them on the slow one behind."""
    slow = ("link 1 1e9 10", "link 2 1e8 10")
    model = [line.replace("eager", "rendezvous") for line in lines(*slow, topology="tree 2 down:2,2 width:1,1")]
    short, long = (times(tmp_path, model, 4, "outfarm", 1000, batch=batch)[0][0] for batch in (1, 3))
    assert (long - short) / 2 == 2 * 1000 + (10_000 - 1000) + 10_000


# ---- one-sided, collectives of a machine -----------------------------------------------------------------------------


def one_sided(**costs: Any) -> list[str]:
    """Puts with these costs; gets ask for 300 ns and take 1000 ns and 2 ns a byte."""
    model = lines()
    model += [line.replace("class all", "class put:all") for line in lines(**costs)[1:]]
    return [*model, "class get:all any", "segment 0 eager 0", "cost handshake 300 0 0", "cost latency 1000 2 0"]


def test_puts_and_gets(tmp_path: Path) -> None:
    model = one_sided(send_cpu=100, latency=1000, transfer="0 1 0", ack=50, recv_cpu=20)
    assert times(tmp_path, model, 2, "putpong", 8, batch=10)[0] == [10 * 2 * (100 + 1000 + 8 + 20)]
    assert times(tmp_path, model, 2, "get", 100, batch=10)[0] == [10 * (300 + 1000 + 200)]
    each = times(tmp_path, model, 2, "put", 100, batch=10, quiet="each")[0]
    assert each == [10 * (100 + 1000 + 100 + 50)]
    (last,) = times(tmp_path, model, 2, "put", 400, batch=100, quiet="batch")[0]
    assert last == 100 + 100 * 400 + 1000 + 50  # one after another through the channel
    assert times(tmp_path, model, 4, "putring", 100, batch=10, quiet="each") == [each] * 4
    there = 100 + 1000 + 8 + 20
    assert times(tmp_path, model, 2, "put", 8, batch=10, quiet="seen")[0] == [10 * 2 * there]
    assert (
        times(tmp_path, model, 3, "putring", 8, batch=10, quiet="seen") == [[10 * 2 * there + 50 - 20]] * 3
    )  # the last flag's ack


def test_puts_of_many_words_end_with_one(tmp_path: Path) -> None:
    model = one_sided(latency=1000, transfer="0 1 0", ack=50)
    assert times(tmp_path, model, 2, "putpong", 64, batch=10)[0] == [10 * 2 * (1000 + 56 + 50 + 1000 + 8)]


def test_a_synchronous_put_returns_when_it_is_there(tmp_path: Path) -> None:
    model = [line.replace("eager", "synchronous") for line in one_sided(latency=1000, transfer="0 1 0", ack=50)]
    assert times(tmp_path, model, 2, "put", 100, batch=10, quiet="batch")[0] == [10 * 1150]


def test_a_machine_without_puts(tmp_path: Path) -> None:
    answers, _ = simulate(tmp_path, lines(), 2, measure("put", 8))
    assert answers[0]["message"] == "put needs put and get, which sim does not offer"
    answers, done = simulate(tmp_path, one_sided()[:-4], 2, measure("get", 8), measure("put", 8))
    assert answers[0]["message"] == "the point failed; standard error has the reason"
    assert done.stderr == "hockney worker: rank 0: the model model has no get\n"
    assert answers[1]["kind"] == "measure"


def test_collectives_of_the_machine(tmp_path: Path) -> None:
    model = ["barrier 500 100", "alltoall 2", *lines(latency=1000, transfer="0 1 0")]
    for ranks, rounds in ((2, 1), (5, 3), (64, 6)):
        assert times(tmp_path, model, ranks, "barrier", batch=10) == [[10 * (500 + 100 * rounds)]] * ranks
        portable = times(tmp_path, model, ranks, "barrier", batch=10, algorithm="dissemination")
        assert portable == [[10 * 1000 * rounds]] * ranks
    assert times(tmp_path, model, 5, "alltoall", 100, batch=10) == [[10 * (1100 + 200)]] * 5
    assert times(tmp_path, model, 5, "alltoall", 100, batch=10, algorithm="flat") == [[10 * 1100]] * 5


def test_slower_nodes(tmp_path: Path) -> None:
    model = ["node_factor 2 1 3", *lines(send_cpu=100, recv_cpu=10, latency=1000)]
    assert times(tmp_path, model, 4, "pingpong", 8)[0] == [100 + 1000 + 20 + 200 + 1000 + 10]
    assert times(tmp_path, model, 4, "pingpong", 8, source=1, target=3)[1] == [2 * (200 + 1000 + 20)]


# ---- noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "mean"), [("lognormal 0.5", 1000 * 1.1331), ("exponential 250", 1250)])
def test_noise(tmp_path: Path, noise: str, mean: float) -> None:
    """By the seed, and with the law's mean: exp(sigma^2 / 2) is 1.133."""
    model = [f"noise {noise}", *lines(latency=1000)]
    first = times(tmp_path, model, 2, "pingpong", 8, batch=4000, samples=2, seed=1)[0]
    assert sum(first) / 8000 / 2 == pytest.approx(mean, rel=0.03)
    assert first == times(tmp_path, model, 2, "pingpong", 8, batch=4000, samples=2, seed=1)[0]
    assert first != times(tmp_path, model, 2, "pingpong", 8, batch=4000, samples=2, seed=2)[0]
    answers, _ = simulate(tmp_path, model, 2, *[measure("pingpong", 8)] * 2)
    assert answers[0]["elapsed_ns"] != answers[1]["elapsed_ns"]


# ---- very many ranks -------------------------------------------------------------------------------------------------


def test_a_summary_of_many_ranks(tmp_path: Path) -> None:
    """One row for all: the pattern's figure, with the least and the most of any rank."""
    model = lines(send_cpu=100, recv_cpu=20, latency=1000)
    commands = [measure(name, 8, batch=1, samples=2) for name in ("barrier", "ring", "funnel", "pairs", "oneway")]
    far = measure("pingpong", 8, batch=1, samples=2, source=4095, target=5)
    answers, done = simulate(tmp_path, model, 4098, "hello", *commands, far)
    hello, barrier, ring, funnel, pairs, oneway, pingpong = answers[:-1]
    assert (hello["size"], hello["ranks"], done.returncode) == (4098, [], 0)
    for row in answers[1:-1]:
        parse(json.dumps(row).encode())
        assert (row["ranks"], len(row["elapsed_ns"]), len(row["wall_ns"])) == ("summary", 1, 1)
        assert row["least_ns"] <= row["elapsed_ns"][0] <= row["most_ns"]
    assert barrier["elapsed_ns"] == [[13 * 1120] * 2]
    assert ring["elapsed_ns"] == [[1120] * 2]
    assert pairs["elapsed_ns"] == [[2 * 1120] * 2]
    assert oneway["elapsed_ns"] == [oneway["most_ns"]]
    assert oneway["least_ns"] == [0, 0]  # ranks that have nothing to do
    assert funnel["elapsed_ns"] == [funnel["most_ns"]]
    assert (pingpong["timed"], pingpong["elapsed_ns"]) == ("root", [[2 * 1120] * 2])  # the only row is the source's


def test_counters_of_many_ranks_are_sums(tmp_path: Path) -> None:
    point = answer(tmp_path, lines(), 4098, "halo2d", 8, samples=2, delay_us=3)
    assert point["counters"] == {"delays": [2 * 4098], "delay_ns": [2 * 4098 * 3000]}


def test_wall_and_cpu_times_of_many_ranks_are_means(tmp_path: Path) -> None:
    """Two of 4,098 are busy, the others only meet before the sample."""
    point = answer(tmp_path, lines(send_cpu=100, latency=1000), 4098, "pingpong", 8, batch=4000)
    for mean_ns in (*point["wall_ns"], *point["cpu_user_ns"]):
        assert 0 < mean_ns < point["elapsed_ns"][0][0] / 100


def test_more_ranks_than_memory(tmp_path: Path) -> None:
    answers, done = simulate(tmp_path, lines(), 100_000, measure("alltoall", 8), "hello")
    assert (answers[0]["kind"], answers[0]["code"]) == ("error", "memory")
    assert re.search("100000 ranks with their requests need .* MiB, above three quarters", answers[0]["message"])
    assert (answers[1]["kind"], done.returncode) == ("hello", 0)


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["eager", "rendezvous", "synchronous"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_pattern_under_sanitizers(compiler: str, protocol: str, tmp_path: Path) -> None:
    """Two ranks share a CPU, all share links; and results are the same without sanitizers."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    costs = {"send_cpu": 10, "recv_cpu": 20, "latency": 100, "out": 5, "in_": 6, "node": 7, "transfer": "0 1 1"}
    model = ["slice_ns 2000", "noise lognormal 0.1", "place 0 0", "place 1 0", "place 2 1", "place 3 5"]
    model += lines("link 0 1e9 10", topology="torus 3 2", late=3, ack=4, handshake=5, **costs)
    model = [line.replace("eager", protocol) for line in model]
    commands = [measure(pattern, size) for pattern in PATTERNS for size in (0, 1000)]
    commands.append(measure("robpull", 100, delay_us=20, buffers=2))
    checked, done = simulate(tmp_path, model, 4, *commands, recipe=replace(ADDRESS, family="sim", compiler=(compiler,)))
    assert (done.returncode, done.stderr) == (0, "")
    assert {answer["kind"] for answer in checked[:-1]} == {"measure"}
    plain, _ = simulate(tmp_path, model, 4, *commands)
    assert plain == checked
