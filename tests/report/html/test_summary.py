"""The answers at the top of the page, on runs whose times are known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.html.made import material, pingpong
from tests.report.runs import Made, options

from hockney.model import Point
from hockney.report.html.summary import listed, short_messages, summary_of


@pytest.mark.parametrize(
    ("names", "text"),
    [(["shm"], "shm"), (["shm", "tcp"], "shm and tcp"), (["shm", "tcp", "udp"], "shm, tcp and udp")],
)
def test_names_are_listed(names: list[str], text: str) -> None:
    assert listed(names, "and") == text


def test_transports_are_ordered_by_the_shortest_message_that_all_have(tmp_path: Path) -> None:
    """Of 8 B, though some sent less; in the state of the fastest one."""
    made = [
        pingpong("tcp", 8, 5000.0),
        pingpong("shm", 0, 40.0),
        pingpong("shm", 8, 50.0, scatter=0.01),
        pingpong("threads", 8, 51.0, scatter=0.2),
        pingpong("shm:other", 8, 60.0, floor_ns=160.0),
        pingpong("mpi@openmpi-4.1.4", 8, 100.0, scatter=0.05),
        pingpong("mpi@openmpi-4.1.4", 64, 20.0),
    ]
    with material(tmp_path, *made) as known:
        shorts = short_messages(known)
    assert [(short.transport, short.kind, short.is_equal) for short in shorts] == [
        ("shm", "memory", True),
        ("threads", "memory", True),
        ("mpi@openmpi-4.1.4", "library", False),
        ("tcp", "kernel", False),
    ]
    assert [short.times_best for short in shorts] == pytest.approx([1.0, 1.02, 2.0, 100.0], rel=0.02)


def test_the_fastest_transport_alone_is_not_equal_to_a_slower_one(tmp_path: Path) -> None:
    with material(tmp_path, pingpong("shm", 8, 50.0), pingpong("threads", 8, 60.0)) as known:
        assert [short.is_equal for short in short_messages(known)] == [True, False]


@pytest.mark.parametrize(
    ("other_ns", "times"),
    [(74.0, "1.48"), (99.0, "1.98"), (105.0, "2.1"), (490.0, "9.8"), (505.0, "10"), (5e4, "1,000")],
)
def test_a_factor_has_two_or_three_digits(tmp_path: Path, other_ns: float, times: str) -> None:
    with material(tmp_path, pingpong("shm", 8, 50.0), pingpong("tcp", 8, other_ns)) as known:
        verdict = " ".join(summary_of(known).verdict)
    assert re.findall(r"([\d.,]+) times as long", verdict) == [times]


@pytest.mark.parametrize(("ns_1994", "words"), [(500.0, r"2\.2 times shorter"), (2192.2, r"2\.0 times longer")])
def test_the_latency_next_to_the_fastest_of_the_nineties(tmp_path: Path, ns_1994: float, words: str) -> None:
    """A Cray T3D took 1096 ns, and reached 126 MB/s."""
    with material(tmp_path, pingpong("tcp", 8, ns_1994, scatter=0.05), pingpong("tcp", 1 << 20, 4.16e6)) as known:
        (card,) = (card for card in summary_of(known).cards if card.question == "Latency now")
    assert re.fullmatch(words, card.answer)
    assert "; 2.0 times its bandwidth" in card.detail


def test_bandwidth_without_a_sheet_is_the_best_rate_of_all_sizes(tmp_path: Path) -> None:
    stream = Made(Point("shm", "oneway", 2, 65536, options(window=16)), 32768.0, 16, 16 * 65536)
    short = replace(stream, point=replace(stream.point, bytes=64), time_ns=1000, bytes_per_rep=16 * 64)
    made = [pingpong("tcp", 1024, 1024.0), stream, short]
    with material(tmp_path, *made) as known:
        (card,) = (card for card in summary_of(known).cards if card.question == "Bandwidth")
    assert card.answer == "2.00 GB/s"
    assert card.detail.startswith("messages of 64 KiB on shm")


@pytest.mark.parametrize(("launches", "is_within"), [(1, True), (2, False)])
def test_figures_of_one_launch_say_so(tmp_path: Path, launches: int, is_within: bool) -> None:
    own = tuple({"index": index} for index in range(launches))
    with material(tmp_path, pingpong("shm", 8, 50.0, scatter=0.05, measurements=18), launches=own) as known:
        verdict = summary_of(known).verdict[-1]
    assert ("within one launch" in verdict, f"over {launches} launches" in verdict) == (is_within, not is_within)
