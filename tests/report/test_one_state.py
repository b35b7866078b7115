"""Tables compare and combine figures of one state only, and name their omissions."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.cells import about, figure, measured, point, reason, row, shown, tables
from tests.report.runs import Made, options, store_run
from tests.report.test_classic import stream

from hockney.model import Point
from hockney.report.classic.values import NOTHING
from hockney.suites import load_suite

FAR_NS = 200.0


def oneway(size: int, time_ns: float, floor_ns: float = 30.0, measurements: int = 9) -> Made:
    return Made(
        point("shm", "oneway", 2, size), time_ns, bytes_per_rep=size, floor_ns=floor_ns, measurements=measurements
    )


def shown_run(path: Path, suite: str, made: list[Made], capsys: pytest.CaptureFixture[str]) -> str:
    store_run(path / "r.db", suite, made)
    return shown(path, capsys)


# ---- too few measurements --------------------------------------------------------------------------------------------


def test_the_reason_for_missing_intervals_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = (0, 32, 65536)
    seldom = [oneway(size, 100.0, measurements=1) for size in sizes]
    text = shown_run(tmp_path, "scabench", seldom, capsys)
    advice = re.compile(r"measurements\s+for\s+an\s+interval\.\s+Continue:\s+`hockney\s+run\s+--resume\s+1`")
    assert len(advice.findall(text)) == 1
    often = [oneway(size, 100.0) for size in sizes]
    assert not advice.search(shown_run(tmp_path, "scabench", often, capsys))


# ---- the best of several --------------------------------------------------------------------------------------------


def test_the_best_is_over_all_sizes_with_the_state_it_was_measured_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [oneway(0, 50), oneway(64, 100), oneway(1024, 1000), oneway(65536, 6553.6, FAR_NS)]
    best = measured(row(tables(tmp_path, "scabench", made)["one-way"], "bandwidth (peak)", "intra-node")[3])
    assert (best.at_bytes, best.state, best.value) == (65536, "far", about(10000))
    assert "10,000 ±0.1% at 64 KiB " in shown_run(tmp_path, "scabench", made, capsys)


def test_of_one_size_the_figures_with_an_interval_count(tmp_path: Path) -> None:
    lucky = replace(oneway(1024, 1000), then=oneway(1024, 500, FAR_NS, measurements=1))
    best = measured(row(tables(tmp_path, "scabench", [lucky])["one-way"], "bandwidth (peak)", "intra-node")[3])
    assert (best.state, best.value) == ("near", about(1024))


def test_median_and_fastest_sample_stand_side_by_side(tmp_path: Path) -> None:
    """mpptest reports the fastest pass. Samples of this measurement differ by one, over a batch of 1,000."""
    made = [replace(oneway(0, 100), then=oneway(0, 50, FAR_NS, measurements=1)), oneway(1024, 1000)]
    table = tables(tmp_path, "scabench", made)["one-way"]
    assert [column.title for column in table.columns[3:]] == ["shm", "shm: fastest"]
    zero = row(table, "latency (zero byte)", "intra-node")
    assert [figure(cell) for cell in zero[3:]] == [about(0.1), about(0.05)]
    assert figure(zero[4]) < 0.05  # the sample below the median
    assert [figure(cell) for cell in row(table, "bandwidth (peak)", "intra-node")[3:]] == [about(1024)] * 2


def test_an_empty_message_has_no_best_rate(tmp_path: Path) -> None:
    made = [oneway(0, 50), oneway(1024, 1000, measurements=2)]
    best = measured(row(tables(tmp_path, "scabench", made)["one-way"], "bandwidth (peak)", "intra-node")[3])
    assert (best.at_bytes, best.lacks_measurements) == (1024, True)


def curve(transport: str, factor: float, floor_ns: float = 30.0) -> list[Made]:
    return [
        Made(
            point(transport, "pingpong", 2, size),
            factor * (1000 + size),
            divisor=2,
            bytes_per_rep=2 * size,
            floor_ns=floor_ns,
        )
        for size in (8, 1024, 65536)
    ]


def test_native_is_the_fastest_and_a_ratio_is_within_one_state(tmp_path: Path) -> None:
    made = [*curve("tcp", 4), *curve("unix", 2), *curve("shm", 1, FAR_NS), *curve("pvm@3.4.6:raw", 8, FAR_NS)]
    report = tables(tmp_path, "paragon", made)
    assert "that of shm" in report["ratio"].notes[0]
    _, tcp, _, raw = row(report["ratio"], "1024")
    assert figure(raw) == about(1 / 8)
    assert "one machine state" in reason(tcp)


# ---- pairs of ranks -------------------------------------------------------------------------------------------------


def test_if_all_send_together_each_rank_and_its_target_are_a_pair(tmp_path: Path) -> None:
    """Largest and smallest are of one rank to one target, and not of a mean over the ranks."""
    made = [
        Made(point("shm", "putring", 3, 8, **given), 0, timed="mean", by_rank=times)
        for given, times in (({}, (100, 200, 300)), ({"distance": 2}, (400, 500, 900)))
    ]
    table = tables(tmp_path, "t3d", made)["multiple_pairs"]
    assert figure(row(table, "min latency")[2]) == about(0.1)
    assert figure(row(table, "max latency")[2]) == about(0.9)
    assert figure(row(table, "average latency")[2]) == about(0.4)
    assert measured(row(table, "max latency")[2]).pairs == (6, 6)


def test_an_average_lies_between_the_smallest_and_the_largest(tmp_path: Path) -> None:
    """Each rank is late in another sample: medians of both are 100 ns, and that of their means 125 ns."""
    made = [replace(Made(point("shm", "putring", 2, 8), 100, timed="mean", by_rank=(100, 100)), late_ns=50)]
    table = tables(tmp_path, "t3d", made)["multiple_pairs"]
    low, high, mean = (figure(row(table, f"{what} latency")[2]) for what in ("min", "max", "average"))
    assert low <= mean <= high


def test_n_half_of_the_t3d_is_found_among_the_sizes_of_the_suite(tmp_path: Path) -> None:
    """A line of known start and rate, with the report's 10 and 22 words as the first size of half the best rate."""
    for pattern, name, words in (("putring", "multiple_pairs", 10), ("put", "single_pairs", 22)):
        series = [member for member in load_suite("t3d").series if member.pattern == pattern and not member.options]
        sizes = sorted({size for member in series for size in member.bytes if isinstance(size, int)})
        start_ns = 0.1 * (8 * words - 4)  # half of the rate of long puts, 0.1 ns a byte, is reached 4 B below
        made = [Made(point("shm", pattern, 2, size), start_ns + 0.1 * size) for size in sizes]
        assert figure(row(tables(tmp_path, "t3d", made)[name], "N 1/2")[2]) == words


def test_the_rate_of_puts_without_completion_is_a_store_rate(tmp_path: Path) -> None:
    made = [Made(point("shm", "put", 2, 8), 3), Made(point("shm", "put", 2, 8, quiet="seen"), 60)]
    table = tables(tmp_path, "t3d", made)["single_pairs"]
    titles = [column.title for column in table.columns[2:]]
    assert titles == ["shm, put (store rate), 2 ranks", "shm, put with completion, 2 ranks"]
    assert [figure(cell) for cell in row(table, "average latency")[2:]] == [about(0.003), about(0.06)]


def test_a_launch_counts_once_with_any_number_of_measurements(tmp_path: Path) -> None:
    """Two launches that differ: a rank's time and its CPU time vary from launch to launch, as times do."""
    last = replace(stream(1000), by_rank=(1100, 2200), cpu_share=(1.0, 0.11), measurements=3)
    first = replace(stream(1000), by_rank=(1000, 2000), cpu_share=(1.0, 0.1), measurements=3, then=last)
    report = tables(tmp_path, "ancor", [first], launches=({}, {}))
    [only] = report["figure 6"].rows
    sender_us, _, rate, _, receiver_percent, *_ = map(measured, only[3:])
    assert (sender_us.value, receiver_percent.value) == (about(1.1**0.5), about(100 * 0.011**0.5))
    assert {cell.interval_over for cell in (sender_us, rate, receiver_percent)} == {"launches"}


def pairs_of_ranks() -> list[Made]:
    return [
        Made(point("shm", "putpong", 3, 8), 200, divisor=2),
        Made(point("shm", "putpong", 3, 8, target=2), 220, divisor=2),
        Made(point("shm", "putpong", 3, 8, source=1, target=2), 900, divisor=2, floor_ns=FAR_NS),
        Made(point("shm", "putpong", 3, 8, source=2, target=1), failed="rank 1 was killed by SIGKILL"),
    ]


def test_a_statistic_over_some_of_the_pairs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tables(tmp_path, "t3d", pairs_of_ranks())["ping_pong"]
    for what in ("max latency", "min latency", "average latency", "average rate"):
        assert measured(row(table, what)[2]).pairs == (2, 4), what
    assert "0.220 ±0.1% of 2 of 4 pairs" in shown_run(tmp_path, "t3d", pairs_of_ranks(), capsys)
    assert "of 2 pairs" not in shown_run(tmp_path, "t3d", pairs_of_ranks()[:2], capsys)


def test_best_rates_say_how_many_pairs_they_are_over(tmp_path: Path) -> None:
    made = [Made(point("shm", "put", 3, size), 100 + size / 10) for size in (8, 4096)]
    made += [Made(point("shm", "put", 3, size, target=2), failed="it was killed") for size in (8, 4096)]
    table = tables(tmp_path, "t3d", made)["single_pairs"]
    assert [measured(row(table, what)[2]).pairs for what in ("Rmax (Rinf)", "N 1/2", "N 1/2: rate there")] == [
        (1, 2)
    ] * 3


# ---- counters -------------------------------------------------------------------------------------------------------


def delayed(taken_us: float, **given: object) -> Made:
    counters = {"delays": (0.0, 0.0, 20.0), "delay_ns": (0.0, 0.0, 20 * taken_us * 1e3)}
    return Made(point("shm", "robpush", 3, 64, **given), 143_700, counters=counters)


def test_a_quotient_of_counters_is_of_its_measurements(tmp_path: Path) -> None:
    in_two_states = replace(
        delayed(110, delay_us=100), then=replace(delayed(500, delay_us=100), floor_ns=FAR_NS, measurements=7)
    )
    table = tables(tmp_path, "atlas", [in_two_states], oversubscribed=True)["com-3.1"]
    time, taken = row(table, "3", "64", "100")[4:]
    assert (measured(taken).value, measured(taken).state) == (about(110), measured(time).state)
    assert measured(taken).low is not None
    assert measured(taken).oversubscribed


def test_a_quotient_of_counters_is_of_its_series(tmp_path: Path) -> None:
    made = [delayed(500, delay_us=0), delayed(7)]  # the second is the plainer way to ask for the same
    taken = row(tables(tmp_path, "atlas", made)["com-3.1"], "3", "64", "0")[5]
    assert figure(taken) == about(7)


# ---- figures without an interval ------------------------------------------------------------------------------------


def stepped(few: int | None = None, far: int | None = None) -> list[Made]:
    """A straight ping-pong, except one size that took three times as long."""
    return [
        Made(
            Point("shm", "pingpong", 2, size, options()),
            (1000 + size) * (3 if size in (few, far) else 1),
            divisor=2,
            bytes_per_rep=2 * size,
            measurements=2 if size == few else 9,
            floor_ns=FAR_NS if size == far else 30.0,
        )
        for size in (1 << i for i in range(6, 14))
    ]


def test_a_size_without_an_interval_is_no_jump(tmp_path: Path) -> None:
    made = [*stepped(few=512, far=2048), Made(Point("shm", "pingpong", 2, 8), measurements=0)]
    made += [replace(each, point=replace(each.point, transport="tcp"), measurements=3) for each in stepped(few=512)]
    table = tables(tmp_path, "paragon", made)["jumps"]
    assert [cells[3] for cells in table.rows[:-2]] == [
        "6 sizes lie on straight lines", "fewer than three sizes have figures with an interval",
    ]  # fmt: skip


def test_too_few_measurements_have_a_different_mark_from_computed_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [stream(size) for size in (1, 1000, 65500)]
    text = shown_run(tmp_path, "ancor", made, capsys)
    assert "‡" not in text
    text = shown_run(tmp_path, "ancor", [replace(one, measurements=3) for one in made], capsys)
    assert "‡: a range, as one machine state has too few measurements for an interval." in " ".join(text.split())
    lines = [line for line in text.splitlines() if f" {NOTHING}" not in line]
    overhead, speed = (next(line for line in lines if what in line) for what in ("overhead, us", "speed of"))
    assert "2.00 ±0.1%" in overhead  # of a line through several sizes
    assert "970 ‡" in speed
