"""A classic report next to runs whose times are known: each published figure with the figure of its point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.cells import about, cell, groups, number, point, report_of, row, shown
from tests.report.runs import FACTS, Made, oversubscribed

from hockney import suites
from hockney.archive import blocks, published, reports
from hockney.archive.points import parse
from hockney.cli import execute
from hockney.report.classic.configuration import configuration_tables
from hockney.report.classic.quantities import QUANTITIES
from hockney.worker.catalogue import load

FAR_NS = 200.0

# ---- atlas -----------------------------------------------------------------------------------------------------------


def test_a_published_row_has_the_figure_of_its_point_and_the_ratio(tmp_path: Path) -> None:
    made = [Made(point("shm", "oneway", 2, 4, until="sent"), 330), Made(point("shm", "oneway", 2, 64), 1690)]
    group = groups(tmp_path, "atlas", made)["Com-1.1 one-way"]
    assert group.columns == ("shm, until sent", "shm")
    sent = cell(group, 4)
    assert (sent.value.number, sent.value.unit, sent.value.state) == (about(0.33), "us", "near")
    assert sent.ratio == about(0.05)
    assert sent.value.interval is not None
    assert sent.value.interval.low <= 0.33 <= sent.value.interval.high
    assert (row(group, 4).figure.printed, row(group, 4).published) == ("6.6", 6.6)
    assert row(group, 256).reason == "not asked for in this run"


def test_rows_that_were_not_measured_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat = {"algorithm": "flat"}
    made = [
        oversubscribed("shm", "alltoall", 4, 4, **flat),
        Made(point("shm", "alltoall", 8, 4, **flat), failed="rank 1 was killed by SIGKILL"),
        Made(point("shm", "alltoall", 8, 64, **flat), skipped="it has no all-to-all"),
        Made(point("shm", "alltoall", 8, 256, **flat), measurements=0),
        Made(point("shm", "oneway", 2, 4), 50),
    ]
    group = groups(tmp_path, "atlas", made)["Com-1.3 all-to-all"]
    assert "--oversubscribe" in str(row(group, 4, 4).reason)
    assert row(group, 8, 4).reason == "failed: rank 1 was killed by SIGKILL"
    assert row(group, 8, 64).reason == "skipped: it has no all-to-all"
    assert str(row(group, 8, 256).reason).startswith("not reached")
    assert row(group, 62, 1024).reason == "not asked for in this run"
    text = " ".join(shown(tmp_path, capsys, "--page").split())
    assert "1 of 208 rows has no figure here: failed: rank 1 was killed by SIGKILL." in text
    assert "a farm of S senders and R receivers S + R + 1 ranks" in text


def test_basic_figures_are_in_no_row(tmp_path: Path) -> None:
    basic = replace(point("shm", "oneway", 2, 4, window=16), role="basic")
    made = [Made(basic, 100), Made(point("shm", "oneway", 2, 4), 330)]
    assert groups(tmp_path, "atlas", made)["Com-1.1 one-way"].columns == ("shm",)


def test_farms_are_found_by_senders_and_receivers(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "pushfarm", 7, 16, senders=2), 4088),
        Made(point("shm", "pushfarm", 7, 16, senders=4), 5091),
        Made(point("shm", "pullfarm", 5, 16, senders=2), 1),
        Made(point("shm", "funnel", 5, 64), 7630),
    ]
    found = groups(tmp_path, "atlas", made, oversubscribed=True)
    push = cell(found["Com-2.1 push farm"], 2, 4)
    assert (push.value.number, push.ratio, push.value.is_oversubscribed) == (about(4.088), about(0.1), True)
    assert number(found["Com-2.1 push farm"], 4, 2) == about(5.091)
    assert number(found["Com-2.2 pull farm"], 2, 2) == about(0.001)
    assert number(found["Com-1.7 funnel"], 4, 64) == about(7.63)


def delayed(taken_us: float, size: int = 64, pattern: str = "robpush", **given: object) -> Made:
    counters = {"delays": (0.0, 0.0, 20.0), "delay_ns": (0.0, 0.0, 20 * taken_us * 1e3)}
    return Made(point("shm", pattern, 3, size, buffers=2, **given), 143_700, counters=counters)


def test_the_real_delay_is_next_to_the_given_one(tmp_path: Path) -> None:
    far = replace(delayed(500, delay_us=100), floor_ns=FAR_NS, measurements=7)
    made = [replace(delayed(110, delay_us=100), then=far), delayed(7), delayed(110, 1024, "robpull", delay_us=100)]
    found = groups(tmp_path, "atlas", made)
    both = cell(found["Com-3.1 active ROBs"], 3, 64, 100)
    assert both.also is not None
    assert (both.value.number, both.also.number, both.also.state) == (about(143.7), about(110), both.value.state)
    plain = cell(found["Com-3.1 active ROBs"], 3, 64, 0)  # the default is left out of a point
    assert (plain.also and plain.also.number) == about(7)
    assert number(found["Com-3.2 passive ROBs"], 3, 100) == about(143.7)  # the size is not stated there


def test_no_event_is_shorter_than_its_delay(tmp_path: Path) -> None:
    """Two events of 100 us and one of 160 us, with delays of 110 us in the mean: the median event would be shorter."""
    made = [replace(delayed(110, delay_us=100), time_ns=100_000, late_ns=60_000)]
    assert number(groups(tmp_path, "atlas", made)["Com-3.1 active ROBs"], 3, 64, 100) == about(120)


def test_configuration_is_this_machines(tmp_path: Path) -> None:
    run = report_of(tmp_path, "atlas", [Made(point("shm", "oneway", 2, 4), 100)]).run
    [table] = configuration_tables("atlas", run)
    here = {item: text for item, _, text in table.rows}
    assert here["Name"] == "host-a"
    assert here["Machine"] == "2 cores Test CPU at 2.00 GHz; L1 32 KiB, L3 4 MiB; 8.0 GiB"
    assert (here["Options"], here["Library"], here["Date"]) == ("-O3 -std=c17", "the library of shm", "1 January 1970")
    assert list(here) == [item for item, *_ in blocks("atlas")[0]["rows"]]
    [table] = configuration_tables("scabench", run)
    assert ["Network interface", "eth0 (fast, 25 Gbit/s), not used within one host"] in [row[::2] for row in table.rows]


@pytest.mark.parametrize(
    ("speeds", "text"),
    [
        ({"n1": 10, "n2": 10}, "eth0 (10 Gbit/s)"),
        ({"n1": 10, "n2": 1, "n3": 10}, "eth0 (10 Gbit/s) on n1, n3; eth0 (1 Gbit/s) on n2"),
        ({"n1": None}, "eth0"),
    ],
)
def test_the_network_interface_is_that_of_the_hosts(tmp_path: Path, speeds: dict[str, int | None], text: str) -> None:
    hosts = [
        {"name": name, "interfaces": [{"name": "eth0", "address": "10.0.0.1", "bits_per_s": speed and speed * 10**9}]}
        for name, speed in speeds.items()
    ]
    made = [Made(point("tcp", "barrier", 2, 0), 100)]
    [table] = configuration_tables(
        "scabench", report_of(tmp_path, "scabench", made, facts={**FACTS, "hosts": hosts}).run
    )
    assert ["Network interface", text] in [row[::2] for row in table.rows]


# ---- scabench --------------------------------------------------------------------------------------------------------


def oneway(size: int, time_ns: float, floor_ns: float = 30.0, measurements: int = 9) -> Made:
    return Made(
        point("shm", "oneway", 2, size), time_ns, bytes_per_rep=size, floor_ns=floor_ns, measurements=measurements
    )


def test_one_run_fills_rows_between_hosts_and_within_one(tmp_path: Path) -> None:
    """Rows that do not say where their ranks are have them on two hosts."""
    made = [
        Made(point("tcp", "oneway", 2, 0), 10_000),
        Made(point("tcp/2", "oneway", 2, 0), 5_000),
        Made(point("tcp/2", "barrier", 2, 0), 7_000),
        Made(point("tcp", "barrier", 2, 0), 30_000),
    ]
    found = groups(tmp_path, "scabench", made, hosts=("a", "b"))
    assert number(found["One-way (pingping)"], "inter-node", "time") == about(10)
    assert number(found["One-way (pingping)"], "intra-node", "time") == about(5)
    assert number(found["Barrier"], 2) == about(30)


def test_data_sheet_has_best_rates_and_latencies_within_the_host(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "pingpong", 2, size), 100 + size, divisor=2, bytes_per_rep=2 * size)
        for size in (0, 32, 65536)
    ]
    made += [Made(point("shm", "twoway", 2, size), 100 + size, divisor=2, bytes_per_rep=2 * size) for size in (0, 4096)]
    made += [Made(point("shm", "oneway", 2, 0), 100), Made(point("shm", "oneway", 2, 4096), 4000, bytes_per_rep=4096)]
    found = groups(tmp_path, "scabench", made)
    best = cell(found["One-way (pingping)"], "intra-node", "best rate")
    assert best.value.number == about(1024)
    assert (best.value.at_bytes, best.published) == (4096, 187.2)
    assert "--hosts" in str(row(found["One-way (pingping)"], "inter-node", "best rate").reason)
    assert number(found["Ping-pong"], "intra-node", "time", 32) == about(0.132)


def test_a_figure_that_can_be_read_in_two_ways_stands_twice(tmp_path: Path) -> None:
    made = [Made(point("tcp", "twoway", 2, size), 100 + size, divisor=2, bytes_per_rep=2 * size) for size in (0, 4096)]
    two = groups(tmp_path, "scabench", made, hosts=("a", "b"))["Two-way"]
    assert number(two, "inter-node", "best rate") == about(976)
    assert number(two, "inter-node", "best rate of each direction") == about(488)
    assert number(two, "inter-node", "whole time") == about(0.2)
    assert number(two, "inter-node", "time") == about(0.1)


def test_system_wide_figures_count_as_the_report_does(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "bisection", 16, 4096), 4096, divisor=2, bytes_per_rep=1, timed="slowest"),
        Made(point("shm", "alltoall", 4, 1000), 3000, bytes_per_rep=12_000, timed="slowest"),
        oversubscribed("shm", "barrier", 16, 0),
    ]
    found = groups(tmp_path, "scabench", made)
    assert number(found["Bisection"], 16) == about(8000)  # eight pairs, each 4096 B in 4096 ns
    assert number(found["All-to-all"], 4) == about(1000)  # (N - 1) m / t
    assert "--oversubscribe" in str(row(found["Barrier"], 16).reason)


def test_npb_is_compared_with_each_machine_by_nodes(tmp_path: Path) -> None:
    made = [Made(point("shm", "ft", 2, 0, **{"class": "A"}), 7.1e9), Made(point("shm", "ft", 1, 0), 1e8)]
    report = report_of(tmp_path, "scabench", made)
    ft = next(group for group in report.groups if group.benchmark.title.startswith("NPB"))
    assert row(ft, "Cray T3E", 2).published is None
    here = cell(ft, "Scali-1", 2)
    # NPB counts 7.1e9 operations in class A, so 7.1 s on two ranks are 500 Mop/s each.
    assert here.value.number == pytest.approx(500, rel=0.01)
    assert here.published == 48.1
    [detail] = report.details
    assert [dict(series.point.options).get("class", "S") for series, _ in detail.rows] == ["A", "S"]


@pytest.mark.parametrize(("per_node", "machine"), [(1, "Scali-1"), (2, "Scali-2")])
def test_nodes_of_scali_2_have_two_ranks(per_node: int, machine: str, tmp_path: Path) -> None:
    made = [Made(point("tcp", "ft", 4, 0, **{"class": "A"}), 1e10)]
    hosts = tuple(f"node {rank // per_node}" for rank in range(4))
    ft = groups(tmp_path, "scabench", made, hosts=hosts)["NPB FT, class A"]
    nodes = 4 // per_node
    assert number(ft, machine, nodes) == pytest.approx(per_node * 7.14e9 / 4 / 1e10 * 1e3, rel=0.01)
    other = "Scali-2" if per_node == 1 else "Scali-1"
    assert row(ft, other, 4 // (3 - per_node)).reason == "not asked for in this run"


def test_the_best_is_over_all_sizes_with_the_state_it_was_measured_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [oneway(0, 50), oneway(64, 100), oneway(1024, 1000), oneway(65536, 6553.6, FAR_NS)]
    best = cell(groups(tmp_path, "scabench", made)["One-way (pingping)"], "intra-node", "best rate").value
    assert (best.at_bytes, best.state, best.number) == (65536, "far", about(10000))
    assert "10,000 at 64 KiB (far) ±1%" in shown(tmp_path, capsys)


def test_of_one_size_the_figures_with_an_interval_count(tmp_path: Path) -> None:
    lucky = replace(oneway(1024, 1000), then=oneway(1024, 500, FAR_NS, measurements=1))
    best = cell(groups(tmp_path, "scabench", [lucky])["One-way (pingping)"], "intra-node", "best rate").value
    assert (best.state, best.number) == ("near", about(1024))


def test_median_and_fastest_sample_stand_side_by_side(tmp_path: Path) -> None:
    """mpptest reports the fastest pass. Samples of this measurement differ by one, over a batch of 1,000."""
    made = [replace(oneway(0, 100), then=oneway(0, 50, FAR_NS, measurements=1)), oneway(1024, 1000)]
    zero = cell(groups(tmp_path, "scabench", made)["One-way (pingping)"], "intra-node", "time")
    assert zero.also is not None
    assert (zero.value.number, zero.also.number) == (about(0.1), about(0.05))


# ---- ancor -----------------------------------------------------------------------------------------------------------


def stream(size: int, **given: object) -> Made:
    """A write takes 1 us and 1 ns a byte, its reads 2 us and 1 ns a byte; the sender is rank `source`."""
    times, cpu = (1000 + size, 2000 + size), (1.0, 0.15)
    writes = 256 * 1000 * 3  # of the three samples of a measurement
    counted = {"write_would_block": (2.0 * writes, 0.0), "read_would_block": (0.0, 0.5 * writes)}
    if given.get("source"):
        times, cpu = times[::-1], cpu[::-1]
        counted = {name: values[::-1] for name, values in counted.items()}
    given = {name: value for name, value in given.items() if (name, value) not in (("source", 0), ("read", "blocking"))}
    return Made(
        point("tcp", "stream", 2, size, **given), 0, 256, 256 * size, "slowest", times, counters=counted, cpu_share=cpu
    )


@pytest.mark.parametrize(
    ("source", "group", "given"),
    [(0, "The read blocks", {"write": "nonblocking"}), (1, "The write blocks", {"read": "nonblocking", "source": 1})],
)
def test_only_the_direction_of_the_published_figures_is_compared(
    source: int, group: str, given: dict[str, object], tmp_path: Path
) -> None:
    """Rank 0 stands for the 250, rank 1 for the 590."""
    wrong = {**given, "source": 1 - source}
    made = [stream(size, **given) for size in (1, 1000, 65500)] + [stream(65500, **wrong)]
    report = report_of(tmp_path, "ancor", made)
    of = next(each for each in report.groups if each.benchmark.title == group)
    names = ("590", "250") if source else ("250", "590")
    assert number(of, *names, "overhead") == about(2)
    assert number(of, *names, "rate") == about(65500 / 67.5)
    assert len(of.columns) == 1
    [detail] = report.details
    values = [value.number for series, some in detail.rows for value in some if series.point.bytes == 1000]
    assert values == [about(2), about(3), about(1000 / 3), about(100), about(15), about(2), about(0.5)]
    if not source:
        assert number(of, *names, "CPU of the receiver") == about(15)


def test_the_line_of_the_overhead_goes_through_all_sizes_that_were_measured(tmp_path: Path) -> None:
    given = {"write": "nonblocking"}
    made = [
        stream(1, **given),
        replace(stream(1000, **given), floor_ns=200),
        replace(stream(65500, **given), measurements=2),
    ]
    assert number(groups(tmp_path, "ancor", made)["The read blocks"], "250", "590", "overhead") == about(2)


def test_a_launch_counts_once_with_any_number_of_measurements(tmp_path: Path) -> None:
    """Two launches that differ: a rank's time and its CPU time vary from launch to launch, as times do."""
    last = replace(stream(1000), by_rank=(1100, 2200), cpu_share=(1.0, 0.11), measurements=3)
    first = replace(stream(1000), by_rank=(1000, 2000), cpu_share=(1.0, 0.1), measurements=3, then=last)
    [detail] = report_of(tmp_path, "ancor", [first], launches=({}, {})).details
    sender_us, _, rate, _, receiver_percent, *_ = detail.rows[0][1]
    assert (sender_us.number, receiver_percent.number) == (about(1.1**0.5), about(100 * 0.011**0.5))
    assert {value.over for value in (sender_us, rate, receiver_percent)} == {"launches"}


# ---- paragon ---------------------------------------------------------------------------------------------------------


def curve(transport: str, factor: float, sizes: Sequence[int] = (8, 1024, 65536), **more: Any) -> list[Made]:
    return [
        Made(point(transport, "pingpong", 2, size), factor * (1000 + size), divisor=2, bytes_per_rep=2 * size, **more)
        for size in sizes
    ]


def test_native_is_the_wire_that_pvm_uses(tmp_path: Path) -> None:
    """Shared memory is faster than tcp, and no part of the comparison; nor is the route over daemons."""
    ways = {"shm": 1.0, "tcp": 2.0, "pvm@3.4.6:psend": 4.0, "pvm@3.4.6:raw": 8.0, "pvm@3.4.6:raw-daemon": 1.0}
    found = groups(tmp_path, "paragon", [made for name, factor in ways.items() for made in curve(name, factor)])
    native = cell(found["Native (csend, crecv)"], "best rate")
    assert list(row(found["Native (csend, crecv)"], "best rate").cells) == ["tcp"]
    assert native.ratio == pytest.approx(65536 / 66536 * 500 / 72, rel=2e-3)
    assert [number(found[way], "place") for way in ("psend/precv", "PvmDataRaw")] == [2, 3]
    assert number(found["psend/precv"], "ratio to the native library") == about(1 / 2)
    assert row(found["PvmDataInPlace"], "place").reason == "not asked for in this run"


def test_a_ratio_is_as_uncertain_as_both_its_rates(tmp_path: Path) -> None:
    made = [*curve("tcp", 1, (8,), scatter=0.05), *curve("pvm@3.4.6:raw", 2, (8,), scatter=0.1)]
    found = groups(tmp_path, "paragon", made)
    ratio = cell(found["PvmDataRaw"], "ratio to the native library").value.interval
    native = cell(found["Native (csend, crecv)"], "best rate").value.interval
    assert ratio is not None
    assert native is not None
    assert ratio.high / ratio.low > 1.25 * native.high / native.low


SIZES = tuple(1 << i for i in range(3, 23))


@pytest.mark.parametrize(
    ("later_ns", "outlier", "jump"), [(0, 0, None), (900_000, 0, 32768), (0, 65536, 32768), (0, -1, "curve")]
)
def test_the_jump_of_a_curve_is_the_last_size_before_it(
    later_ns: float, outlier: int, jump: int | str | None, tmp_path: Path
) -> None:
    made = [
        replace(
            one, time_ns=one.time_ns + later_ns * (one.point.bytes >= 65536) + 50_000 * (one.point.bytes == outlier)
        )
        if outlier >= 0
        else replace(one, time_ns=300 + one.point.bytes**0.5)
        for one in curve("pvm@3.4.6:inplace", 1, SIZES)
    ]
    found = row(groups(tmp_path, "paragon", made)["PvmDataInPlace"], "jump")
    value = found.cells["pvm@3.4.6:inplace"].value
    if isinstance(jump, int):
        assert value.number == about(jump / 1e6)
    else:
        assert "a smooth curve" in str(value.reason) if jump else str(value.reason).endswith("sizes lie on lines")


# ---- models ----------------------------------------------------------------------------------------------------------

RECORD: dict[str, Any] = {
    "name": "gpmimd",
    "variant": "",
    "key": "0123",
    "title": "GPMIMD machine",
    "machine": "gpmimd",
    "exact": True,
    "torus": None,
    "parameters": [["cpu.slice_ns", "256000", "the T9000's time slice"]],
    "used": [{"where": {"benchmark": "Com-1.1", "bytes": [4, 64, 1024]}, "for": "transfer"}],
    "structure": [
        {"what": "one event is in flight", "read_from": "Com-2.1"},
        {"pattern": ["pairs"], "ranks": [], "options": {}, "variants": ["boards"], "read_from": "Com-1.4"},
    ],
    "not_modelled": [{"where": {"benchmark": "Com-1.7", "senders": 4}, "why": "its row is doubtful"}],
}
SIM = "sim@gpmimd"


def on_model(path: Path, suite: str, made: Sequence[Made], models: dict[str, Any] | None = None) -> Any:
    models = models or dict.fromkeys((SIM, f"{SIM}:boards"), RECORD)
    virtual = {one.point.transport: True for one in made}
    return report_of(path, suite, made, facts={**FACTS, "models": models}, plan={"virtual": virtual})


def modelled() -> list[Made]:
    times = {4: 6_600, 256: 50_000, 1024: 222_000}
    made = [Made(point(SIM, "oneway", 2, size), time, measurements=1) for size, time in times.items()]
    made += [Made(point(f"{SIM}:boards", "pairs", 4, size), 13_000, measurements=1) for size in (4, 256)]
    return [*made, Made(point(SIM, "funnel", 5, 4), 20_000, measurements=1)]


def test_reproduced_is_a_used_figure_within_two_percent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = on_model(tmp_path, "atlas", modelled())
    found = {group.benchmark.title: group for group in report.groups}
    one_way = found["Com-1.1 one-way"]
    cells = {size: cell(one_way, size) for size in (4, 256, 1024)}
    assert [each.is_reproduced for each in cells.values()] == [True, False, False]  # 256 B was not used, 1 KiB is off
    assert cells[1024].is_used
    assert cells[256].error == about(50 / 56.9 - 1)
    assert found["Com-1.4 pairs"].columns == ("model",)  # under any variant
    assert row(found["Com-1.7 funnel"], 4, 4).reason == "not modelled: its row is doubtful"
    text = " ".join(shown(tmp_path, capsys).split())
    assert re.search(r"1024 216.9 222 \+2.4%", text)
    assert "reproduced" in text
    assert "±" not in text.partition("Com-1.1")[2].partition("What decided")[0]
    for part in ("slice_ns 256000", "one event is in flight", "pairs: variant boards", "Com-1.1, bytes 4, 64"):
        assert part in text, part
    assert "slice_ns" not in shown(tmp_path, capsys, "--page")


@pytest.mark.parametrize(("machine", "has_error"), [("gpmimd", True), (None, False), ("t3d", False)])
def test_a_model_of_another_machine_than_the_report_has_ratios(
    machine: str | None, has_error: bool, tmp_path: Path
) -> None:
    models = {SIM: {**RECORD, "machine": machine}}
    report = on_model(tmp_path, "atlas", modelled()[:3], models)
    [one_way] = [group for group in report.groups if group.benchmark.title == "Com-1.1 one-way"]
    assert cell(one_way, 256).ratio == about(50 / 56.9)
    assert (cell(one_way, 256).error is not None) == has_error


def test_a_figure_of_another_machine_is_not_compared(tmp_path: Path) -> None:
    made = [Made(point(SIM, "ft", 4, 0, **{"class": "A"}), 1e9, measurements=1)]
    report = on_model(tmp_path, "scabench", made, {SIM: {**RECORD, "machine": "scali", "title": "Scali cluster"}})
    ft = report.groups[-1]
    assert row(ft, "Cray T3E", 4).reason == "a figure of the Cray T3E; the model is of the Scali cluster"
    assert cell(ft, "Scali-1", 4).error is not None


# ---- the files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", reports())
def test_points_and_quantities_of_the_archive_are_known(suite: str) -> None:
    patterns = load(libraries=()).patterns
    for figure in published(suite):
        assert set(figure.quantities) <= QUANTITIES.keys()
        assert figure.also in ("", "fastest", *QUANTITIES)
        for pattern in figure.spec.patterns if figure.spec else ():
            for name, value in (figure.spec.options if figure.spec else {}).items():
                assert patterns[pattern].option(name).default != value, "a point leaves its defaults out"


def test_a_point_is_parsed_into_what_a_row_needs() -> None:
    spec = parse("put|oneway ranks=16 bytes=8 on=psend quiet=each per_node=2")
    assert spec is not None
    assert (spec.patterns, spec.ranks, spec.bytes, spec.on, spec.per_node) == (("put", "oneway"), 16, 8, "psend", 2)
    assert spec.options == {"quiet": "each"}
    assert parse("") is None


def test_a_run_of_a_classic_suite_ends_with_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "_FOLDER", tmp_path)
    (tmp_path / "atlas.toml").write_text(
        'name = "atlas"\ntitle = "short"\ntransports = ["shm"]\ntime = "200ms"\n'
        '[[series]]\npattern = "oneway"\nbytes = 4\n'
    )
    words = ["--store", str(tmp_path / "r.db"), "run", "atlas", "--oversubscribe"]
    assert execute(words) in (0, 3)  # 3: no interval in so little time
    text = capsys.readouterr().out
    assert text.startswith("Roger Heeley")
    assert f"`hockney show 1 --all --store {tmp_path / 'r.db'}`" in text
