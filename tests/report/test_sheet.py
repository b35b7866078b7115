"""The data sheet's figures have fixed definitions, whatever else a run has measured."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.runs import FACTS, Made, options, store_run

from hockney.analysis.explain.curve import started_once
from hockney.cli.sheet import print_sheet
from hockney.model import Point, Warning_
from hockney.report.sheet import Row, Sheet, make_sheet
from hockney.results.runs import open_results


def row(path: Path, *made: Made) -> Row:
    store_run(path / "r.db", "quick", made)
    with open_results(path / "r.db") as results:
        (found,) = make_sheet(results.run()).rows
    return found


def oneway(size: int, window: int) -> Made:
    point = Point("shm", "oneway", 2, size, options(window=window))
    return Made(point, 1000.0, divisor=window, bytes_per_rep=window * size)


LATENCY = Made(Point("shm", "pingpong", 2, 8, ()), 50.0, divisor=2, bytes_per_rep=16)


def test_with_more_ranks_than_cpus_every_figure_is_marked_and_no_layer_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = replace(LATENCY, point=Point("threads", "pingpong", 2, 8, ()))
    for crowded, stars, layers in ((False, [], True), (True, ["latency", "stream"], False)):
        path = tmp_path / f"{crowded}.db"
        store_run(path, "quick", [LATENCY, threads, oneway(1 << 16, 16)], oversubscribed=crowded)
        with open_results(path) as results:
            sheet = make_sheet(results.run())
        print_sheet(sheet)
        said = capsys.readouterr().out
        shm = next(line for line in said.splitlines() if line.startswith("shm "))
        assert shm.count("*") == len(stars)
        assert ("* more ranks than CPUs" in said) is crowded
        assert bool(sheet.layers) is layers


def test_stream_is_of_long_messages_sixteen_under_way(tmp_path: Path) -> None:
    found = row(tmp_path, LATENCY, oneway(1 << 16, 16), oneway(1 << 16, 3), oneway(1 << 22, 16))
    assert found.stream_bytes_per_s is not None
    assert found.stream_bytes_per_s.value == pytest.approx(65536 / 1e-6, rel=0.01)
    assert found.stream_bytes_per_s.at_bytes == 1 << 16


def test_the_best_rate_is_of_all_lengths_or_none(tmp_path: Path) -> None:
    """While the CPUs were near, messages of 1 MiB were seen too seldom to say that those of 64 KiB are best."""
    longer = replace(oneway(1 << 20, 16), measurements=3, then=replace(oneway(1 << 20, 16), floor_ns=160.0))
    shorter = replace(oneway(1 << 16, 16), then=replace(oneway(1 << 16, 16), floor_ns=160.0))
    store_run(tmp_path / "r.db", "quick", [LATENCY, shorter, longer])
    with open_results(tmp_path / "r.db") as results:
        near, far = make_sheet(results.run()).rows
    assert (near.state, near.stream_bytes_per_s) == ("near", None)
    assert far.stream_bytes_per_s is not None
    assert far.stream_bytes_per_s.at_bytes == 1 << 20


def test_there_is_no_best_rate_where_a_length_failed(tmp_path: Path) -> None:
    longer = replace(oneway(1 << 20, 16), failed="rank 1 hung")
    assert row(tmp_path, LATENCY, oneway(1 << 16, 16), longer).stream_bytes_per_s is None


def test_in_a_run_of_several_launches_the_sheet_names_figures_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six launches: the first five saw the CPUs near, the last far; of threads, all six saw them near."""
    often = replace(LATENCY, measurements=18)
    threads = replace(often, point=Point("threads", "pingpong", 2, 8, ()))
    shm = replace(LATENCY, measurements=40, then=replace(LATENCY, measurements=8, floor_ns=160.0))
    store_run(tmp_path / "r.db", "quick", [shm, threads], launches=[{"index": index} for index in range(6)])
    with open_results(tmp_path / "r.db") as results:
        sheet = make_sheet(results.run())
    overs = {(row.transport, row.state): row.latency_ns.over for row in sheet.rows if row.latency_ns is not None}
    assert overs == {("shm", "near"): "launches", ("shm", "far"): "within one launch", ("threads", "near"): "launches"}
    print_sheet(sheet)
    said = capsys.readouterr().out
    assert re.search(r"^threads .* 50\.0 ns ±\d", said, re.MULTILINE)
    assert "The ± of some figures hold within one launch, the only one in that state: shm (far)." in said


@pytest.mark.parametrize("other", [oneway(7, 16), oneway(1 << 16, 3)])
def test_what_is_no_stream_is_not_shown_as_one(tmp_path: Path, other: Made) -> None:
    assert row(tmp_path, LATENCY, other).stream_bytes_per_s is None


def test_r_inf_and_n_half_are_of_the_longest_messages(tmp_path: Path) -> None:
    """Eager up to 4 KiB, 10 GB/s; then 2 us more to begin with, and 20 GB/s."""
    made = [
        Made(
            Point("shm", "pingpong", 2, size, ()),
            500 + 0.1 * size if size <= 4096 else 2500 + 0.05 * size,
            divisor=2,
            bytes_per_rep=2 * size,
        )
        for size in (8, 64, 512, 1024, 2048, 4096, 8192, 16384, 65536, 1 << 18, 1 << 20)
    ]
    found = row(tmp_path, *made)
    assert found.r_inf_bytes_per_s is not None
    assert found.n_half_bytes is not None
    assert found.r_inf_bytes_per_s.value == pytest.approx(2e10, rel=0.01)
    assert found.n_half_bytes.value == pytest.approx(50000, rel=0.01)
    assert found.fit_from_bytes == 8192


def test_the_sheet_says_from_which_size_to_which_its_lines_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The longest message, three times as slow as the others' line says, is an outlier and no part of it."""
    made = [
        Made(
            Point("shm", "pingpong", 2, size, ()),
            (500 + 0.1 * size) * (3 if size == 1 << 20 else 1),
            divisor=2,
            bytes_per_rep=2 * size,
        )
        for size in (8, 64, 512, 1024, 2048, 4096, 8192, 16384, 65536, 1 << 18, 1 << 20)
    ]
    store_run(tmp_path / "r.db", "quick", made)
    with open_results(tmp_path / "r.db") as results:
        sheet = make_sheet(results.run())
    assert (sheet.rows[0].fit_from_bytes, sheet.rows[0].fit_to_bytes) == (8, 1 << 18)
    print_sheet(sheet, ())
    said = " ".join(capsys.readouterr().out.split())
    assert "of the last straight line through the ping-pong's times, from 8 B to 256 KiB on shm." in said


def test_the_sheet_says_that_its_intervals_are_of_one_start_and_which_floor_shm_adds_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", "quick", [LATENCY])
    with open_results(tmp_path / "r.db") as results:
        once = started_once(results.run())
        sheet = make_sheet(results.run())

    def said(of: Sheet) -> str:
        print_sheet(of, ())
        return " ".join(capsys.readouterr().out.split())

    text = said(sheet)
    assert "Intervals hold within one launch." in once
    assert once in text
    assert "what shm adds to it, below, is to that beside its own 8 B alone" in text
    several = said(replace(sheet, started_once="", layers=()))
    assert "Intervals hold" not in several
    assert "what shm adds" not in several


def test_the_sheet_names_what_was_ready_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As words that `-t` takes: a star only where it names nothing that is on the sheet."""
    both = ("mpi@a-1", "mpi@b-2")
    ready = ["null", "shm", "tcp", "tcp:spin", "tcp:poll", "pipe:spin", "pipe:poll", "udp:spin", *both]
    ready += [f"{name}:{variant}" for name in both for variant in ("sync", "rma")]
    made = [LATENCY, replace(LATENCY, point=Point("tcp:spin", "pingpong", 2, 8, ()))]
    store_run(tmp_path / "r.db", "quick", made, facts=FACTS | {"transports": ready})
    with open_results(tmp_path / "r.db") as results:
        sheet = make_sheet(results.run())
    assert set(sheet.also_ready) == set(ready) - {"null", "shm", "tcp:spin"}
    print_sheet(sheet)
    said = " ".join(capsys.readouterr().out.split())
    assert "also ready, and not in this run: tcp, tcp:poll, pipe:*, udp:spin, mpi, mpi:*; `hockney run quick -t" in said
    print_sheet(replace(sheet, also_ready=()))
    assert "also ready" not in capsys.readouterr().out


@pytest.mark.parametrize("crowded", [False, True])
def test_where_nothing_has_an_interval_fewer_cpus_than_ranks_are_named_as_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], crowded: bool
) -> None:
    store_run(tmp_path / "r.db", "quick", [LATENCY])
    with open_results(tmp_path / "r.db") as results:
        sheet = make_sheet(results.run())
    shared = Warning_("oversubscription", "machine", "2 ranks share 1 CPU.", "Use at most 1 rank.")
    print_sheet(replace(sheet, rows=(), warnings=(shared,) if crowded else ()))
    said = " ".join(capsys.readouterr().out.split())
    assert "No point was measured often enough for an interval" in said
    assert ("each message waits for the scheduler: give this process more CPUs" in said) == crowded
    assert "measure longer (--time)" in said


@pytest.mark.parametrize(
    ("missed", "told"), [((), True), ((8192,), False), ((1 << 20,), False), ((4096, 65536), False)]
)
def test_a_line_over_sizes_that_a_state_has_not_seen_is_not_shown(
    tmp_path: Path, missed: tuple[int, ...], told: bool
) -> None:
    """Some sizes were measured while the machine was in another state."""
    made = []
    for size in (8, 64, 512, 1024, 2048, 4096, 8192, 16384, 65536, 1 << 18, 1 << 20):
        floor_ns = 160.0 if size in missed else 30.0
        point = Point("shm", "pingpong", 2, size, ())
        made.append(Made(point, 500 + 0.1 * size, divisor=2, bytes_per_rep=2 * size, floor_ns=floor_ns))
    store_run(tmp_path / "r.db", "quick", made)
    with open_results(tmp_path / "r.db") as results:
        near = next(one for one in make_sheet(results.run()).rows if one.state == "near")
    assert (near.r_inf_bytes_per_s is not None) == told
    assert (near.n_half_bytes is not None) == told
