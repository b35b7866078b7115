"""The answers at the top of the page, on runs whose times are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.html.made import material, pingpong
from tests.report.runs import Made, options

from hockney.model import Point
from hockney.report.page.choices import choices_of, strips_of
from hockney.report.page.summary import summary_of

LIBRARIES = {"mpi@a": "MPI A", "mpi@b": "MPI B"}
CLASSES = ("MPI and other libraries", "sockets and pipes", "shared memory")


def test_headlines_are_those_of_your_own_library(tmp_path: Path) -> None:
    """An MPI where there is one, then sockets, then shared memory, which is the yardstick."""
    made = [pingpong("shm", 8, 50.0), pingpong("tcp", 8, 5000.0), pingpong("mpi@openmpi-4.1.4", 8, 100.0)]
    for among, time in ((made, "100 ns"), (made[:2], "5.00 us"), (made[:1], "50.0 ns")):
        folder = tmp_path / time
        folder.mkdir()
        with material(folder, *among) as known:
            summary = summary_of(known)
        (card,) = (card for card in summary.cards if card.question == "Latency")
        assert card.answer == time
        assert summary.verdict[0].startswith(f"A message of 8 B takes {time} ±1% on ")


@pytest.mark.parametrize(
    ("scatter", "measurements", "other_ns", "is_equal"),
    [
        (0.01, 9, 120.0, False),
        (0.4, 9, 120.0, True),
        (0.4, 2, 120.0, True),  # without an interval, by the range seen
        (0.01, 2, 250.0, True),  # ranges of two measurements do not overlap, but may hide as much
        (0.01, 2, 600.0, False),
    ],
)
def test_no_transport_is_called_fastest_where_bounds_overlap(
    tmp_path: Path, scatter: float, measurements: int, other_ns: float, is_equal: bool
) -> None:
    more: dict[str, Any] = {"scatter": scatter, "measurements": measurements}
    made = [pingpong(name, 8, time_ns, **more) for name, time_ns in (("mpi@a", 100.0), ("mpi@b", other_ns))]
    with material(tmp_path, *made, libraries=LIBRARIES) as known:
        summary, choices = summary_of(known), choices_of(known)
    assert choices is not None
    ((words, short, long),) = choices.rows
    named = "probably MPI A or MPI B" if is_equal else "MPI A"
    assert (words, short, long) == (CLASSES[0], f"{named} 100 ns at 8 B", "–")
    (card,) = (card for card in summary.cards if card.question == "Latency")
    place = ": MPI A and MPI B are equal within their intervals" if is_equal else " on MPI A"
    few = ", with too few measurements to say which"
    place = place if measurements > 2 else place.replace(" are equal within their intervals", few)
    assert card.detail.startswith(f"8 B{place}, ")
    if measurements > 2:
        assert f"{place};" in summary.verdict[0]
    advice = "`hockney compare --interleave pingpong --base-transport mpi@a --new-transport mpi@b`"
    assert any(advice in note for note in choices.notes) is is_equal


def test_the_fastest_of_a_class_is_that_at_most_sizes(tmp_path: Path) -> None:
    """Spans end halfway to where it changes, and cover only sizes that every transport of the class has."""
    times_ns = {
        "mpi@a": {8: 100.0, 64: 100.0, 2048: 480.0, 4096: 2130.0, 8192: 5000.0, 1 << 20: 1e5},
        "mpi@b": {8: 130.0, 64: 130.0, 2048: 500.0, 4096: 660.0, 8192: 4000.0, 1 << 20: 1.1e5},
        "shm": {8: 50.0},
    }
    made = [pingpong(name, size, time_ns) for name, of in times_ns.items() for size, time_ns in of.items()]
    with material(tmp_path, *made, libraries=LIBRARIES) as known:
        choices, (strip,) = choices_of(known), strips_of(known)
    assert choices is not None
    assert choices.rows == [
        [CLASSES[0], "MPI A 100 ns at 8 B; 4 KiB: MPI B", "MPI B 9.53 GB/s at 1 MiB; 1 MiB: MPI A"],
        [CLASSES[2], "shm 50.0 ns at 8 B", "–"],
    ]
    ends = [(round(low), round(high), text) for low, high, _, text in strip.spans]
    assert ends == [(8, 2896, "MPI A"), (2896, 92682, "MPI B"), (92682, 1 << 20, "MPI A")]


def test_a_size_at_which_another_is_equal_is_a_span_of_its_own(tmp_path: Path) -> None:
    made = [pingpong("mpi@a", 8, 100.0), pingpong("mpi@b", 8, 130.0)]
    made += [pingpong(name, 1024, 200.0, scatter=0.2) for name in LIBRARIES]
    with material(tmp_path, *made, libraries=LIBRARIES) as known:
        (strip,) = strips_of(known)
    assert [text for *_, text in strip.spans] == ["MPI A", "probably MPI A or MPI B"]


def test_a_rate_is_of_one_size(tmp_path: Path) -> None:
    """Where two transports reach equal rates at other sizes, each size is named."""
    rates = [("mpi@a", 1 << 18, 20000.0), ("mpi@b", 1 << 20, 80800.0)]
    made = [
        Made(Point(name, "oneway", 2, size, options(window=16)), time_ns, 16, 16 * size, scatter=0.1)
        for name, size, time_ns in rates
    ]
    with material(tmp_path, *made, libraries=LIBRARIES) as known:
        (card,) = (card for card in summary_of(known).cards if card.question == "Bandwidth")
    assert card.answer == "13.1 GB/s"
    assert card.detail.startswith("messages of 256 KiB: MPI A and MPI B (1 MiB) are equal within their intervals, ±")


def test_one_word_then_and_now(tmp_path: Path) -> None:
    """Two cores of this chip, two nodes of a Cray T3D (1.10 us, 126 MB/s), and the library here."""
    stream = Made(Point("shm", "oneway", 2, 65536, options(window=16)), 32768.0, 16, 16 * 65536)
    made = [pingpong("shm", 8, 50.0), stream, pingpong("mpi@a", 8, 100.0)]
    with material(tmp_path, *made, suite="quick", libraries=LIBRARIES) as known:
        (card,) = (card for card in summary_of(known).cards if card.question == "Then and now")
    assert card.answer == "50.0 ns ±1%, 2.00 GB/s ±1%"
    assert card.detail == (
        "between two cores of this chip, 1970. Two nodes of a Cray T3D, 1996: 1.10 us, 126 MB/s. "
        "MPI A here: 100 ns ±1%."
    )


def test_bandwidth_without_a_sheet_is_the_best_rate_of_all_sizes(tmp_path: Path) -> None:
    stream = Made(Point("shm", "oneway", 2, 65536, options(window=16)), 32768.0, 16, 16 * 65536)
    short = replace(stream, point=replace(stream.point, bytes=64), time_ns=1000, bytes_per_rep=16 * 64)
    made = [pingpong("shm", 1024, 1024.0), stream, short]
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
