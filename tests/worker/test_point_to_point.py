"""Point-to-point as OSU and IMB have it: known times on models, refusals, and what only MPI does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.matrix import matrix
from tests.worker.sim import lines, times
from tests.worker.test_native import all_unsupported, measure, measured, shared
from tests.worker.test_session import EVERY_MPI, opened
from tests.worker.test_session import shared_job as job
from tests.worker.test_threads import ends_with_its_name, faulty

from hockney.worker.catalogue import load
from hockney.worker.errors import WorkerRefused
from hockney.worker.libraries import Library

COSTS: dict[str, Any] = {"send_cpu": 100, "recv_cpu": 20, "latency": 1000, "transfer": 10}
MESSAGE, EXCHANGED = 100 + 1000 + 10 + 20, 300  # ns: a message alone, and what it takes longer if two meet

# Layouts of a message of 5,600 B: its blocks, and their distance.
LAYOUTS = [
    *((layout, "8", "16") for layout in ("contiguous", "vector", "indexed", "struct")),
    *((layout, "56", "80") for layout in ("vector", "indexed", "struct")),
    ("vector", "56", "56"),  # without gaps
]

# Options of patterns that only MPI can do, and the call that receives their data.
CALLS = [
    ("pingpong", {"receive": "any-source"}, "Recv"),
    ("pingpong", {"receive": "any-tag"}, "any"),
    ("pingpong", {"receive": "any"}, "any"),
    ("pingping", {"receive": "any-source"}, "Recv"),
    ("pingping", {"receive": "any-tag"}, "any"),
    ("pingping", {"receive": "any"}, "any"),
    ("ring", {"call": "exchange"}, "Sendrecv"),
    ("ring", {"call": "in-place"}, "Sendrecv_replace"),
    ("ring", {"receive": "any-tag"}, "any"),
    ("ring", {"receive": "any-tag", "ways": "both"}, "any"),
    ("ring", {"receive": "any-tag", "call": "exchange"}, "any"),
    ("ring", {"receive": "any-tag", "call": "in-place"}, "any"),
    *(
        ("datatype", {"pack": "library", "layout": layout}, "Recv")
        for layout in ("contiguous", "vector", "struct")  # byte 3 of an indexed one is in a gap
    ),
]


# ---- known times on a model --------------------------------------------------------------------------------------


@pytest.mark.parametrize("receive", ["blocking", "posted"])
def test_a_ping_ping_is_an_exchange_of_all_pairs(tmp_path: Path, receive: str) -> None:
    model = lines(exchange=EXCHANGED, **COSTS)
    for elapsed in times(tmp_path, model, 4, "pingping", 8, batch=100, receive=receive):
        assert elapsed == [100 * (MESSAGE + EXCHANGED)]


@pytest.mark.parametrize("way", ["two-way", "ring"])
def test_two_ranks_have_only_each_other_at_random(tmp_path: Path, way: str) -> None:
    """Two exchanges in a repetition, or one round of the ring."""
    model = lines(exchange=EXCHANGED, **COSTS)
    for elapsed in times(tmp_path, model, 2, "random", 8, batch=10, way=way):
        assert elapsed == [10 * (2 if way == "two-way" else 1) * (MESSAGE + EXCHANGED)]


def test_a_window_of_one_message_and_its_answer_is_a_round_trip(tmp_path: Path) -> None:
    ((source,), _) = times(tmp_path, lines(**COSTS), 2, "oneway", 1, batch=10, answer="window")
    assert source == 10 * 2 * MESSAGE


def test_an_answer_to_each_window_costs_its_way_back(tmp_path: Path) -> None:
    """The sender is the slowest part of a window."""
    for window in (4, 16):
        ((source,), _) = times(tmp_path, lines(**COSTS), 2, "oneway", 8, batch=10, window=window, answer="window")
        assert source == 10 * ((window - 1) * 100 + 2 * MESSAGE)


def test_a_barrier_before_each_repetition_does_not_count(tmp_path: Path) -> None:
    for elapsed in times(tmp_path, lines(**COSTS), 4, "bisection", 8, batch=10, start="barrier")[:2]:
        assert elapsed == [10 * 2 * MESSAGE]
    for elapsed in times(tmp_path, lines(**COSTS), 4, "pairs", 1, batch=10, start="barrier", answer="window")[:2]:
        assert elapsed == [10 * 2 * MESSAGE]


@pytest.mark.parametrize("pattern", ["fanin", "fanout"])
def test_a_parent_handles_the_windows_of_its_children_in_turn(tmp_path: Path, pattern: str) -> None:
    """Ranks have no costs but those of their CPU: three children, each with four messages and an answer."""
    model = lines(send_cpu=100, recv_cpu=100)
    for elapsed in times(tmp_path, model, 8, pattern, 8, batch=50, window=4, parents=2):
        assert elapsed[0] / 50 == pytest.approx(3 * (4 + 1) * 100, rel=0.15)


def test_a_halo_has_as_many_messages_as_its_grid_has_neighbours() -> None:
    """The mean per message is the time of an exchange by the messages of a rank."""
    for pattern, messages in (("halo2d", 4), ("halo3d", 6), ("halo4d", 8)):
        (answer,) = measured([measure(pattern, 8, time="message")], "-t", "shm", *shared(16 if messages == 8 else 8))
        faces = answer["messages_per_rep"] / answer["size"]
        assert (answer["timed"], answer["divisor"], faces) == ("mean", messages, messages)


# ---- refusals ---------------------------------------------------------------------------------------------------


def test_options_that_do_not_suit_each_other_or_the_transport_are_refused_in_a_sentence() -> None:
    asked = {
        measure("oneway", 8, until="sent", answer="window"): "leave until=sent out",
        measure("pairs", 8, until="sent", answer="window"): "leave until=sent out",
        measure("oneway", 8, delay_us=1, answer="window"): "leave answer=window out",
        measure("pingpong", 8, receive="any"): "receive=any needs receives from any rank or with any tag, which shm",
        measure("pingping", 8, receive="any-tag"): "receive=any-tag needs receives from any rank or with any tag",
        measure("ring", 8, receive="any-tag"): "receive=any-tag needs receives from any rank or with any tag",
        measure("pingpong", 8, unexpected=1): "unexpected= needs messages with tags, which shm does not offer",
        measure("pingpong", 8, preposted=1): "preposted= needs messages with tags, which shm does not offer",
        measure("ring", 8, call="exchange"): "call=exchange needs one call that sends and receives",
        measure("ring", 8, call="in-place"): "which shm does not offer: use call=parts",
        measure("fanin", 8, parents=3): "4 ranks do not make 3 parents with as many children each",
        measure("fanout", 8, parents=4): "4 ranks do not make 4 parents with as many children each",
        measure("datatype", 8, pack="library"): "which shm does not offer: use pack=hand or none",
        measure("datatype", 24, block=12): "block=12 and stride=16: both are multiples of 8",
        measure("datatype", 48, block=24): "a stride is no smaller than a block",
        measure("datatype", 24, block=16): "datatype accepts multiples of 16 B, not 24 B",
        measure("halo4d", 8, nt=3): "does not hold 4 ranks: give factors of 4",
    }
    for sentence, culprit in zip(all_unsupported(list(asked), "shm", 4), asked.values(), strict=True):
        assert culprit in sentence


# ---- what only MPI does -----------------------------------------------------------------------------------------


@EVERY_MPI
def test_only_plain_mpi_has_tags_exchanges_and_layouts(mpi: Library) -> None:
    transports = load(libraries=[mpi]).transports
    own = {"matching", "exchange", "layouts"}
    assert own <= transports[mpi.id].caps
    assert all(not own & transports[f"{mpi.id}:{variant}"].caps for variant in ("sync", "persistent", "rma"))


@EVERY_MPI
def test_all_that_only_mpi_does_is_verified(mpi: Library) -> None:
    with opened(job(mpi, "mpi")) as session:
        for pattern, options, _ in CALLS:
            for size in (8, 100_000):
                assert session.measure(pattern, bytes=size, batch=2, samples=3, options=options.items()).verified
        for layout, block, stride in LAYOUTS:
            options = {"layout": layout, "block": block, "stride": stride}
            answer = session.measure("datatype", bytes=5600, batch=2, samples=3, options=options.items())
            assert (answer.verified, answer.algorithm) == (True, "library")
    assert not session.channel.noise


@EVERY_MPI
@pytest.mark.parametrize(
    "options", matrix([{"unexpected": "300"}, {"preposted": "300"}], short=[{"unexpected": "300"}])
)
def test_messages_and_receives_wait_while_others_pass(mpi: Library, options: dict[str, str]) -> None:
    """Before the next point they are gone: a receive with any tag finds its own message."""
    with opened(job(mpi, "mpi")) as session:
        for receive in ("blocking", "any-source", "late", "probe"):
            more = {**options, "receive": receive}
            assert session.measure("pingpong", bytes=8, batch=2, samples=3, options=more.items()).verified
            assert session.measure("pingpong", bytes=8, samples=3, options=[("receive", "any")]).verified
        with pytest.raises(WorkerRefused, match="a receive with any tag would take"):
            session.measure("pingpong", bytes=8, options=[("unexpected", "1"), ("receive", "any")])
    assert not session.channel.noise


@EVERY_MPI
@pytest.mark.parametrize("rank", [0, 1])
def test_a_wrong_byte_that_a_call_received_is_named(mpi: Library, rank: int, tmp_path: Path) -> None:
    for call in dict.fromkeys(call for _, _, call in CALLS):
        with opened(faulty(mpi, "mpi", f"wrong {call} {rank} 24", tmp_path)) as session:
            for pattern, options, received_by in CALLS:
                if received_by == call:
                    with pytest.raises(WorkerRefused, match=f"rank {rank} got a corrupted message of 24 B"):
                        session.measure(pattern, bytes=24, samples=2, options=options.items())


@EVERY_MPI
def test_a_wrong_byte_in_a_gap_or_in_a_queue_fails_the_point(mpi: Library, tmp_path: Path) -> None:
    for call, least, pattern, size, option, culprit in [
        ("Recv", 24, "datatype", 24, ("layout", "indexed"), "byte 3 was received into a gap of the data"),
        ("Recv", 8, "pingpong", 0, ("unexpected", "30"), "the message with tag 1 from rank 0 holds tag 1 of rank"),
        ("Irecv", 8, "pingpong", 0, ("preposted", "30"), "the message with tag 8193 from rank 0 holds tag 8193"),
    ]:
        command = faulty(mpi, "mpi", f"wrong {call} 1 {least}", tmp_path)
        with opened(command) as session, pytest.raises(WorkerRefused, match=f"rank 1: {culprit}"):
            session.measure(pattern, bytes=size, samples=2, options=[option])


# What waits in queues, how the pattern receives meanwhile, and the call that fails: its name, where, and which time.
BROKEN = [
    ("unexpected", "blocking", "Send 0 3"),
    ("unexpected", "blocking", "Barrier 1 1"),
    ("unexpected", "posted", "Recv 1 1"),  # nothing else is received so
    ("preposted", "blocking", "Irecv 1 3"),
    ("preposted", "blocking", "Waitall 0 1"),
]


@EVERY_MPI
@pytest.mark.parametrize(("queue", "receive", "call"), BROKEN)
def test_a_message_of_a_queue_that_fails_ends_the_job(
    mpi: Library, queue: str, receive: str, call: str, tmp_path: Path
) -> None:
    """Before the samples or after them."""
    ends_with_its_name(mpi, "mpi", call, tmp_path, "pingpong", f"{queue}=30 receive={receive}")
