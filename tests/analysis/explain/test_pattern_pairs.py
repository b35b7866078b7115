"""Detectors that set patterns beside each other, on figures of known truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.analysis.explain.readings import SIZES, curve, found, lacking, line, near, reading

from hockney.analysis.explain.curve import Curve, Mark, Reading
from hockney.analysis.explain.finding import scaled
from hockney.model import Warning_

ONEWAY = "one-way messages beside half the round trip"
TWOWAY = "two-way messages beside half the round trip"


def pattern(name: str, start_ns: float, ns_per_byte: float = 0.1, **more: Any) -> Curve:
    return curve(line(start_ns, ns_per_byte), name, **more)


def test_streaming_faster_than_half_the_round_trip_is_said_to_be_no_latency() -> None:
    (faster,) = found(ONEWAY, reading(pattern("oneway", 200), pattern("pingpong", 500)))
    assert faster.kind == "one-way faster than half the round trip"
    assert "no latency" in faster.sentence


def test_streaming_slower_than_half_the_round_trip_is_odd() -> None:
    (slower,) = found(ONEWAY, reading(pattern("oneway", 600), pattern("pingpong", 500)))
    assert slower.kind == "one-way slower than half the round trip"
    assert slower.effect > 0.1


def test_what_can_not_be_told_apart_is_not_said() -> None:
    of = reading(pattern("oneway", 505, precision=0.02), pattern("pingpong", 500, precision=0.02))
    assert found(ONEWAY, of) == []
    assert found(ONEWAY, reading(pattern("oneway", 200, options={"window": 16}), pattern("pingpong", 500))) == []


def test_two_ways_at_once_faster_than_half_the_round_trip() -> None:
    (faster,) = found(TWOWAY, reading(pattern("twoway", 300), pattern("pingpong", 500)))
    assert faster.kind == "two-way faster than half the round trip"


def test_patterns_of_different_states_are_not_set_beside_each_other() -> None:
    of = reading(pattern("oneway", 200, state="near"), pattern("pingpong", 500, state="far"))
    assert "on one transport" in lacking(ONEWAY, of)


def test_the_duplex_ratio() -> None:
    (half,) = found("the duplex ratio", reading(pattern("twoway", 500), pattern("oneway", 500)))
    assert "take turns" in half.sentence
    (some,) = found("the duplex ratio", reading(pattern("twoway", 325, 0.065), pattern("oneway", 500)))
    assert "slow each other down" in some.sentence
    (less,) = found("the duplex ratio", reading(pattern("twoway", 100, 0.02), pattern("oneway", 500)))
    assert "one direction alone is the slow one" in less.sentence
    assert found("the duplex ratio", reading(pattern("twoway", 250, 0.05), pattern("oneway", 500))) == []


def test_loaded_faster_than_idle() -> None:
    (faster,) = found("loaded faster than idle", reading(pattern("pairs", 400, ranks=4), pattern("oneway", 500)))
    assert faster.sizes_bytes[0] == 8
    assert found("loaded faster than idle", reading(pattern("pairs", 600, ranks=4), pattern("oneway", 500))) == []
    nearly = reading(pattern("pairs", 490, 0.098, ranks=4), pattern("oneway", 500))
    assert found("loaded faster than idle", nearly) == []  # one comparison of a hundred errs by so much


def test_a_path_that_two_share() -> None:
    sizes = [*SIZES, 1 << 20]
    alone = pattern("oneway", 500, sizes=sizes)
    (shared,) = found("a path shared by several", reading(pattern("pairs", 500, 0.2, ranks=4, sizes=sizes), alone))
    assert "2 shared" in shared.sentence
    assert found("a path shared by several", reading(pattern("pairs", 500, 0.14, ranks=4, sizes=sizes), alone)) == []
    # Near a whole number by chance: too wide an interval, or more than there are pairs.
    wide = pattern("pairs", 500, 0.2, ranks=4, sizes=sizes, precision=0.03)
    assert found("a path shared by several", reading(wide, alone)) == []
    assert found("a path shared by several", reading(pattern("pairs", 500, 0.3, ranks=4, sizes=sizes), alone)) == []
    assert found("a path shared by several", reading(pattern("pairs", 500, 0.79, ranks=32, sizes=sizes), alone)) == []


def farms(beyond: float) -> list[Curve]:
    """Outfarm and multicast; where the data of all receivers exceed 16 KiB together, the former pays for it."""
    made = []
    for ranks in (3, 5, 9):

        def out_ns(size: int, receivers: int = ranks - 1) -> float:
            return (100 + 0.1 * size) * receivers * (beyond if size * receivers > 16384 else 1.01)

        def all_ns(size: int, receivers: int = ranks - 1) -> float:
            return (100 + 0.1 * size) * receivers

        made += [
            curve(out_ns, "outfarm", ranks=ranks, precision=0.001),
            curve(all_ns, "multicast", ranks=ranks, precision=0.001),
        ]
    return made


def test_different_data_that_leave_a_cache() -> None:
    (knee,) = found("different data beside the same data", reading(*farms(1.2)))
    assert knee.sizes_bytes == (16384, 32768)
    assert found("different data beside the same data", reading(*farms(1.01))) == []
    # A transport on which all of it costs more is no cache of another one.
    dear = [replace(one, transport="tcp") for one in farms(1.01)]
    dear = [scaled_curve(one, 1.6) if one.pattern == "outfarm" else one for one in dear]
    assert found("different data beside the same data", reading(*farms(1.01), *dear)) == []
    (knee,) = found("different data beside the same data", reading(*farms(1.2), *dear))
    assert (knee.transport, knee.sizes_bytes) == ("shm", (16384, 32768))


def scaled_curve(of: Curve, factor: float) -> Curve:
    marks = tuple(replace(mark, time_ns=scaled(mark.time_ns, factor)) for mark in of.marks)
    return replace(of, marks=marks)


def test_a_mode_that_costs_per_byte() -> None:
    blocking = pattern("stream", 1000, 0.10, options={"write": "blocking"})
    dearer = pattern("stream", 600, 0.08, options={"write": "nonblocking"})
    (mode,) = found("what a mode of writing costs", reading(blocking, dearer))
    (per_byte,) = [one.value for one in mode.evidence if one.what.startswith("per byte")]
    assert per_byte.low <= 1.25 <= per_byte.high
    same = pattern("stream", 600, 0.10, options={"write": "nonblocking"})
    assert found("what a mode of writing costs", reading(blocking, same)) == []


def test_operations_slower_than_their_parts() -> None:
    name = "operations slower than their parts"
    (barrier,) = found(name, reading(pattern("barrier", 2000, ranks=4, sizes=[0]), pattern("pingpong", 500)))
    assert barrier.sentence.startswith("barrier among 4 takes 2.00 us, ")
    assert "2 half round trips" in barrier.sentence
    own = pattern("barrier", 2000, ranks=4, sizes=[0], algorithm="portable")  # made of the parts by hockney itself
    assert found(name, reading(own, pattern("pingpong", 500))) == []
    assert found(name, reading(pattern("barrier", 1000, ranks=4, sizes=[0]), pattern("pingpong", 500))) == []
    own = pattern("multicast", 900, ranks=4, options={"algorithm": "native", "until": "sent"}, algorithm="native")
    by_hand = pattern("multicast", 500, ranks=4, options={"until": "sent"}, algorithm="portable")
    (multi,) = found(name, reading(own, by_hand))
    assert multi.sizes_bytes[0] == 8
    assert "a message to each" in multi.sentence
    assert (
        found(name, reading(pattern("multicast", 500, ranks=4, algorithm="native"), replace(by_hand, options=()))) == []
    )
    acked = replace(by_hand, options=())  # another end of the clock
    assert "beside the same by messages" in lacking(name, reading(own, acked))
    # A stream of messages hides what an exchange has to wait for, so it is no measure of one.
    streamed = reading(pattern("alltoall", 9000, ranks=4, algorithm="native"), pattern("pairs", 500, ranks=4))
    assert "beside the same by messages" in lacking(name, streamed)
    wide = reading(pattern("barrier", 1100, ranks=4, sizes=[0], precision=0.2), pattern("pingpong", 500))
    assert found(name, wide) == []


def test_a_point_slower_than_several_of_its_parts_is_one_point() -> None:
    name = "operations slower than their parts"
    barrier = pattern("barrier", 2000, ranks=4, sizes=[0])
    pingpongs = [pattern("pingpong", start_ns, options={"x": start_ns}) for start_ns in (400, 500, 600)]
    (one,) = found(name, reading(barrier, *pingpongs))
    assert "more of its points" not in one.sentence
    among = [replace(barrier, ranks=ranks) for ranks in (3, 4)]
    (both,) = found(name, reading(*among, *pingpongs))
    assert "; so it is at 1 more of its points." in both.sentence


def test_a_barrier_is_set_beside_the_one_by_messages_where_that_was_measured() -> None:
    name = "operations slower than their parts"
    own = pattern("barrier", 2000, ranks=4, sizes=[0], algorithm="native")
    by_hand = pattern("barrier", 1990, ranks=4, sizes=[0], options={"algorithm": "portable"}, algorithm="portable")
    assert found(name, reading(own, by_hand, pattern("pingpong", 500))) == []
    (slower,) = found(name, reading(own, replace(by_hand, marks=(Mark(0, near(1500)),)), pattern("pingpong", 500)))
    assert "dissemination over messages" in slower.sentence
    (stand_in,) = found(name, reading(own, pattern("pingpong", 500)))
    assert "2 half round trips of 8 B timed on one rank" in stand_in.sentence


def test_the_own_block_of_an_all_to_all_is_no_fault() -> None:
    """Among 2 a faultless library moves two blocks where messages move one; more than that is odd."""
    name = "operations slower than their parts"

    def all_to_all(start_ns: float, ns_per_byte: float, ranks: int, **more: Any) -> Reading:
        own = pattern("alltoall", start_ns, ns_per_byte, ranks=ranks, algorithm="native", **more)
        flat = pattern("alltoall", 500, 0.1 * (ranks - 1), ranks=ranks, options={"algorithm": "flat"},
                       algorithm="portable", **more)  # fmt: skip
        return reading(own, flat)

    for ranks in (2, 4):
        assert found(name, all_to_all(500, 0.1 * ranks, ranks)) == []
        (slower,) = found(name, all_to_all(500, 0.15 * ranks, ranks))
        assert "with a share for the own block" in slower.sentence
        (start,) = found(name, all_to_all(900, 0.1 * ranks, ranks))
        assert start.sizes_bytes[0] == 8
    # Without a short message nothing tells what bytes alone cost.
    assert found(name, all_to_all(0, 0.2, 2, sizes=[65536])) == []


def test_a_barrier_is_not_set_beside_one_of_many_pairs() -> None:
    between = pattern("pingpong", 500, ranks=4, options={"source": 2, "target": 3})
    of = reading(pattern("barrier", 2000, ranks=4, sizes=[0]), between)
    assert "barrier beside pingpong" in lacking("operations slower than their parts", of)


def test_an_allreduce_slower_than_a_reduction_and_a_broadcast() -> None:
    name = "allreduce slower than reduce and broadcast"
    parts = pattern("allreduce", 700, options={"algorithm": "parts"}, algorithm="native parts")

    def whole(start_ns: float) -> Curve:
        return pattern("allreduce", start_ns, algorithm="native")

    (slower,) = found(name, reading(whole(800), parts))
    assert slower.pattern == "allreduce"
    assert slower.effect == pytest.approx(800.8 / 700.8 - 1)  # at the shortest size, where the parts save most
    assert "a reduction and a broadcast" in slower.sentence
    of_mpich = [replace(one, transport="mpi@mpich-5.0.2") for one in (whole(800), parts)]
    (named,) = found(name, reading(*of_mpich))
    assert named.remedy == "`mpivars` lists the algorithms that the library has to choose from."
    launchers = {"mpi@mpich-5.0.2": "/opt/mpich/bin/mpiexec"}
    (beside,) = found(name, reading(*of_mpich, launchers=launchers))
    assert (beside.remedy or "").startswith("`/opt/mpich/bin/mpivars` lists")
    assert found(name, reading(whole(600), parts)) == []
    assert found(name, reading(whole(720), parts)) == []
    for alone in (whole(800), parts):
        assert "algorithm=parts" in lacking(name, reading(alone, pattern("pingpong", 500)))


def test_crowded_ranks_are_not_compared() -> None:
    of = reading(pattern("barrier", 2000, ranks=4, sizes=[0], oversubscribed=True), pattern("pingpong", 500))
    assert "barrier beside pingpong" in lacking("operations slower than their parts", of)


def test_a_short_message_far_above_the_floor() -> None:
    name = "figures far above the floor"
    floors = {("shm", 2): near(40.0), ("tcp", 2): near(40.0)}
    (above,) = found(name, reading(pattern("pingpong", 500), floors=floors))
    assert above.transport == "shm"
    assert found(name, reading(pattern("pingpong", 60, 0.01), floors=floors)) == []
    # An Open MPI that was told to leave shared memory out says so.
    mpi = "mpi@openmpi-4.1.4"
    for chosen, is_said in (
        ("ob1:vader:cma tcp", False),
        ("ob1:tcp", True),
        ("ob1:smcuda tcp", False),
        ("cm:ofi", True),
    ):
        slow = reading(pattern("pingpong", 5700, transport=mpi), floors={(mpi, 2): near(40.0)},
                       libraries={mpi: f"Open MPI 4.1.4 ({chosen})"})  # fmt: skip
        assert (
            f"through memory, but Open MPI chose {chosen} (docs/transports.md)" in found(name, slow)[0].sentence
        ) is is_said
    # Nor is it left open where the library was seen to yield.
    yields = Warning_("yield", mpi, f"{mpi} spends 60% of its time in the kernel", "Set it to spin.")
    slow = reading(pattern("pingpong", 5700, transport=mpi), floors={(mpi, 2): near(40.0)}, warnings=(yields,))
    (above,) = found(name, slow)
    assert above.sentence.endswith("It yields the CPU while it waits, so this is the time of system calls.")
    assert above.remedy == "Set it to spin."
    # What goes through the kernel has no usual factor.
    assert found(name, reading(pattern("pingpong", 20000, transport="tcp"), floors=floors)) == []
    assert "needs a floor" in lacking(name, reading(pattern("pingpong", 500)))
