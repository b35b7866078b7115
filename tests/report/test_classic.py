"""The tables of the classic reports, from runs whose times are known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.cells import about, figure, measured, point, reason, report_of, row, shown, tables
from tests.report.runs import FACTS, Made, oversubscribed, store_run

from hockney import suites
from hockney.archive import Published, published, reports
from hockney.cli import execute
from hockney.model import Point
from hockney.report.classic.derived import jumps_of
from hockney.report.classic.layout import contents, layouts
from hockney.report.classic.values import Measured, format_figure
from hockney.report.classic.view import text_of, view_of
from hockney.worker.catalogue import load

# ---- atlas -----------------------------------------------------------------------------------------------------------


def test_a_published_row_has_the_point_of_its_size_and_the_ratio(tmp_path: Path) -> None:
    made = [Made(point("shm", "oneway", 2, 4, until="sent"), 330), Made(point("shm", "oneway", 2, 64), 1690)]
    table = tables(tmp_path, "atlas", made)["com-1.1"]
    assert [column.title for column in table.columns] == ["packet size", "published", "shm, until=sent", "shm"]
    _, published_there, sent, acked = row(table, "4")
    assert text_of(published_there) == "6.6"
    assert figure(sent) == about(0.33)
    assert isinstance(sent, Measured)
    assert sent.ratio == about(0.05)
    assert sent.unit == "us"
    assert sent.state == "near"
    assert sent.low is not None
    assert sent.high is not None
    assert sent.low <= figure(sent) <= sent.high
    assert reason(acked) == "not asked for in this run"
    assert isinstance(row(table, "64")[3], Measured)


def test_rows_that_were_not_measured_say_why(tmp_path: Path) -> None:
    made = [
        oversubscribed("shm", "alltoall", 4, 4),
        Made(point("shm", "alltoall", 8, 4), failed="rank 1 was killed by SIGKILL"),
        Made(point("shm", "alltoall", 8, 64), skipped="it has no all-to-all"),
        Made(point("shm", "alltoall", 8, 256), measurements=0),
        Made(point("shm", "barrier", 2, 0), 50),
    ]
    table = tables(tmp_path, "atlas", made)["com-1.3"]
    assert "--oversubscribe" in reason(row(table, "4", "4")[3])
    assert reason(row(table, "8", "4")[3]) == "failed: rank 1 was killed by SIGKILL"
    assert reason(row(table, "8", "64")[3]) == "skipped: it has no all-to-all"
    assert reason(row(table, "8", "256")[3]).startswith("not reached")
    assert reason(row(table, "62", "1024")[3]) == "not asked for in this run"


def test_basic_figures_are_in_no_table(tmp_path: Path) -> None:
    basic = replace(point("shm", "oneway", 2, 4, window=16), role="basic")
    table = tables(tmp_path, "atlas", [Made(basic, 100), Made(point("shm", "oneway", 2, 4), 330)])["com-1.1"]
    assert [column.title for column in table.columns] == ["packet size", "published", "shm"]


def test_rows_of_this_machine_alone_come_last_without_a_published_figure(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "alltoall", 2, 64), 500, timed="slowest"),
        Made(point("shm", "pushfarm", 3, 16), 900),
        Made(point("shm", "outfarm", 2, 4), 100),
    ]
    report = tables(tmp_path, "atlas", made)
    assert report["com-1.3"].rows[-1][:3] == ("2", "64", "")
    assert figure(report["com-1.3"].rows[-1][3]) == about(0.5)
    assert report["com-2.1"].rows[-1][:3] == ("1", "1", "")  # one sender is the default, and one receiver is left
    assert report["com-1.5"].rows[-1][:2] == ("1", "4")
    assert len(report["com-1.3"].rows) == 17


def test_more_ranks_than_a_row_asks_for_make_no_second_equal_row(tmp_path: Path) -> None:
    made = [Made(point("shm", "oneway", ranks, 4), 100 * ranks) for ranks in (2, 3, 4)]
    table = tables(tmp_path, "atlas", made)["com-1.1"]
    assert [cells[0] for cells in table.rows] == ["4", "64", "256", "1024"]
    assert figure(row(table, "4")[2]) == about(0.2)


def test_farms_are_found_by_senders_and_receivers(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "pushfarm", 7, 16, senders=2), 4088),
        Made(point("shm", "pushfarm", 7, 16, senders=4), 5091),
        Made(point("shm", "pullfarm", 5, 16, senders=2), 1),
        Made(point("shm", "funnel", 5, 64), 7630),
    ]
    report = tables(tmp_path, "atlas", made, oversubscribed=True)
    cell = measured(row(report["com-2.1"], "2", "4")[3])
    assert figure(cell) == about(4.088)
    assert cell.ratio == about(0.1)
    assert cell.oversubscribed
    assert figure(row(report["com-2.1"], "4", "2")[3]) == about(5.091)
    assert figure(row(report["com-2.2"], "2", "2")[3]) == about(0.001)
    assert figure(row(report["com-1.7"], "4", "64")[3]) == about(7.63)


def test_the_real_delay_is_next_to_the_given_one(tmp_path: Path) -> None:
    counters = {"delays": (0.0, 0.0, 20.0), "delay_ns": (0.0, 0.0, 20 * 110_000.0)}
    made = [
        Made(point("shm", "robpush", 3, 64, delay_us=100), 143_700, counters=counters),
        Made(point("shm", "robpush", 3, 64), 3710),
        Made(point("shm", "robpull", 3, 1024, delay_us=100), 56_120, counters=counters),
    ]
    report = tables(tmp_path, "atlas", made)
    _, _, _, published_there, time, taken = row(report["com-3.1"], "3", "64", "100")
    assert (text_of(published_there), figure(time), figure(taken)) == ("143.7", about(143.7), about(110))
    assert figure(row(report["com-3.1"], "3", "64", "0")[4]) == about(3.71)
    assert figure(row(report["com-3.2"], "3", "100")[3]) == about(56.12)  # the size is not stated there


def test_no_event_is_shorter_than_its_delay(tmp_path: Path) -> None:
    """Two events of 100 us and one of 160 us, with delays of 110 us in the mean: the median event would be shorter."""
    counters = {"delays": (0.0, 0.0, 20.0), "delay_ns": (0.0, 0.0, 20 * 110_000.0)}
    made = [Made(point("shm", "robpush", 3, 64, delay_us=100), 100_000, late_ns=60_000, counters=counters)]
    time, taken = row(tables(tmp_path, "atlas", made)["com-3.1"], "3", "64", "100")[4:]
    assert (figure(time), figure(taken)) == (about(120), about(110))


def test_configuration_is_this_machines(tmp_path: Path) -> None:
    table = tables(tmp_path, "atlas", [Made(point("shm", "oneway", 2, 4), 100)])["configuration"]
    here = {str(cells[0]): str(cells[2]) for cells in table.rows}
    assert here["Name"] == "host-a"
    assert here["Machine"] == "2 cores Test CPU at 2.00 GHz; L1 32 KiB, L3 4 MiB; 8.0 GiB"
    assert here["Options"] == "-O3 -std=c17"
    assert here["Library"] == "the library of shm"
    assert here["Date"] == "1 January 1970"
    assert list(here) == [item for item, *_ in contents("atlas")["block"][0]["rows"]]
    assert table.notes[0].startswith("GPMIMD machine: nodes of 20 MHz")


def test_every_published_atlas_figure_has_one_row(tmp_path: Path) -> None:
    report = tables(tmp_path, "atlas", [Made(point("shm", "oneway", 2, 4), 100)])
    shown = [
        cells[[column.kind for column in table.columns].index("published")]
        for name, table in report.items()
        if name != "configuration"
        for cells in table.rows
    ]
    assert sorted(map(text_of, shown)) == sorted(each.printed for each in published("atlas"))


# ---- scabench --------------------------------------------------------------------------------------------------------


def test_one_run_fills_rows_between_hosts_and_within_one(tmp_path: Path) -> None:
    """Rows that do not say where their ranks are have them on two hosts."""
    made = [
        Made(point("tcp", "oneway", 2, 0), 10_000),
        Made(point("tcp/2", "oneway", 2, 0), 5_000),
        Made(point("tcp/2", "barrier", 2, 0), 7_000),
        Made(point("tcp", "barrier", 2, 0), 30_000),
    ]
    report = tables(tmp_path, "scabench", made, hosts=("a", "b"))
    assert [column.title for column in report["one-way"].columns][3:] == ["tcp", "tcp: fastest"]
    assert figure(row(report["one-way"], "latency (zero byte)", "inter-node")[3]) == about(10)
    assert figure(row(report["one-way"], "latency (zero byte)", "intra-node")[3]) == about(5)
    assert figure(row(report["barrier"], "2")[2]) == about(30)


def test_data_sheet_has_best_rates_and_latencies_within_the_host(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "pingpong", 2, size), 100 + size, divisor=2, bytes_per_rep=2 * size)
        for size in (0, 32, 65536)
    ]
    made += [Made(point("shm", "twoway", 2, size), 100 + size, divisor=2, bytes_per_rep=2 * size) for size in (0, 4096)]
    made += [
        Made(point("shm", "oneway", 2, 0), 100),
        Made(point("shm", "oneway", 2, 4096), 4000, bytes_per_rep=4096),
        Made(point("shm", "oneway", 2, 4096, window=16), 2000, divisor=16, bytes_per_rep=16 * 4096),
    ]
    report = tables(tmp_path, "scabench", made)
    best = measured(row(report["one-way"], "bandwidth (peak)", "intra-node")[3])
    assert figure(best) == about(2048)
    assert (best.at_bytes, best.published) == (4096, 187.2)
    assert "--hosts" in reason(row(report["one-way"], "bandwidth (peak)", "inter-node")[3])
    assert figure(row(report["ping-pong"], "latency", "intra-node", "32")[4]) == about(0.132)
    assert figure(row(report["two-way"], "bandwidth (peak), both directions", "intra-node")[3]) == about(976)
    assert figure(row(report["two-way"], "bandwidth (peak), each direction", "intra-node")[3]) == about(488)
    assert figure(row(report["two-way"], "latency (zero byte), whole exchange", "intra-node")[3]) == about(0.2)
    assert figure(row(report["two-way"], "latency (zero byte), halved", "intra-node")[3]) == about(0.1)


def test_system_wide_figures_count_as_the_report_does(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "bisection", 16, 4096), 4096, divisor=2, bytes_per_rep=1, timed="slowest"),
        Made(point("shm", "alltoall", 4, 1000), 3000, bytes_per_rep=12_000, timed="slowest"),
        oversubscribed("shm", "barrier", 16, 0),
    ]
    report = tables(tmp_path, "scabench", made)
    assert figure(row(report["bisection"], "16")[2]) == about(8000)  # eight pairs, each 4096 B in 4096 ns
    assert figure(row(report["alltoall"], "4")[2]) == about(1000)  # (N - 1) m / t
    assert "--oversubscribe" in reason(row(report["barrier"], "16")[2])


def test_bisection_is_in_the_order_of_nodes(tmp_path: Path) -> None:
    made = [Made(point("shm", "bisection", ranks, 64), 100, divisor=2) for ranks in (4, 16, 2, 8)]
    table = tables(tmp_path, "scabench", made)["bisection"]
    assert [tuple(map(text_of, cells[:2])) for cells in table.rows] == [("2", ""), ("4", ""), ("8", ""), ("16", "601")]


def test_npb_is_compared_with_each_machine_by_class_and_nodes(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "ft", 2, 0, **{"class": "A"}), 7.1e9),
        Made(point("shm", "ft", 1, 0), 1e8),
        oversubscribed("shm", "ft", 4, 0, **{"class": "A"}),
    ]
    table = tables(tmp_path, "scabench", made)["npb-ft"]
    assert [column.title for column in table.columns] == ["machine", "class", "nodes", "published", "shm"]
    there = [text_of(row(table, "Cray T3E", "A", nodes)[3]) for nodes in ("2", "4", "8", "16")]
    assert there == ["na", "47.5", "46.5", "45.5"]
    here = measured(row(table, "Scali-1", "A", "2")[4])
    # NPB counts 7.1e9 operations in class A, so 7.1 s on two ranks are 500 Mop/s each.
    assert figure(here) == pytest.approx(500, rel=0.01)
    assert here.published == 48.1
    assert "--oversubscribe" in reason(row(table, "Scali-1", "A", "4")[4])
    assert figure(row(table, "", "S", "1")[4]) > 0


def test_system_description_is_this_machines(tmp_path: Path) -> None:
    report = tables(tmp_path, "scabench", [Made(point("shm", "barrier", 2, 0), 100)])
    assert row(report["hardware"], "Operating system")[2] == "Some Linux 1, Linux 6.1"
    assert row(report["hardware"], "Network interface")[2] == "eth0 (fast, 25 Gbit/s), not used within one host"
    assert row(report["hardware"], "Mother board")[2] == "Maker X1"
    assert row(report["software"], "Compiler")[1:] == ("Gnu gcc (egcs-2.91.66)", "cc 12.2")


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
    report = tables(tmp_path, "scabench", [Made(point("tcp", "barrier", 2, 0), 100)], facts={**FACTS, "hosts": hosts})
    assert row(report["hardware"], "Network interface")[2] == text


# ---- ancor -----------------------------------------------------------------------------------------------------------


def stream(size: int, **given: object) -> Made:
    """A write takes 1 us and 1 ns a byte, its reads 2 us and 1 ns a byte; the sender is rank `source`."""
    times, cpu = (1000 + size, 2000 + size), (1.0, 0.15)
    writes = 256 * 1000 * 3  # of the three samples of a measurement
    counted = {"write_would_block": (2.0 * writes, 0.0), "read_would_block": (0.0, 0.5 * writes)}
    if given.get("source"):
        times, cpu = times[::-1], cpu[::-1]
        counted = {name: values[::-1] for name, values in counted.items()}
    return Made(
        point("tcp", "stream", 2, size, **given), 0, 256, 256 * size, "slowest", times, counters=counted, cpu_share=cpu
    )


@pytest.mark.parametrize("source", [0, 1])
def test_both_sides_of_a_stream(source: int, tmp_path: Path) -> None:
    given = {"write": "nonblocking", **({"source": 1} if source else {})}
    report = tables(tmp_path, "ancor", [stream(size, **given) for size in (1, 1000, 65500)])
    transport = "tcp, source=1" if source else "tcp"
    sender_us, receiver_us, mb_s, sender, receiver, full, empty = row(report["figure 4"], transport, "1000")[3:]
    assert (figure(sender_us), figure(receiver_us), figure(mb_s)) == (about(2), about(3), about(1000 / 3))
    assert (figure(sender), figure(receiver)) == (about(100), about(15))
    assert (figure(full), figure(empty)) == (about(2), about(0.5))

    summary = report["summary"]
    modes = "nonblocking", "blocking"
    here = len(modes) + 2  # name, published, this machine
    assert [text_of(cells[3]) for cells in summary.rows if cells[:2] == modes] == ["615", "12.2", "", "", "20"]
    assert summary.columns[here].title == transport
    overhead = measured(row(summary, *modes, "overhead, us")[here])
    assert figure(overhead) == about(2)
    assert overhead.ratio == about(2 / 615)
    assert overhead.low is not None
    assert figure(row(summary, *modes, "speed of 65,500 B, MB/s")[here]) == about(65500 / 67.5)
    assert figure(row(summary, *modes, "asymptotic speed, MB/s")[here]) == about(1000)
    assert figure(row(summary, *modes, "CPU of the sender, %")[here]) == about(100)
    assert figure(row(summary, *modes, "CPU of the receiver, %")[here]) == about(15)


def test_the_line_of_the_overhead_goes_through_all_sizes_that_were_measured(tmp_path: Path) -> None:
    given = {"write": "nonblocking"}
    made = [
        stream(1, **given),
        replace(stream(1000, **given), floor_ns=200),
        replace(stream(65500, **given), measurements=2),
    ]
    summary = tables(tmp_path, "ancor", made)["summary"]
    assert figure(row(summary, "nonblocking", "blocking", "overhead, us")[4]) == about(2)


# ---- paragon ---------------------------------------------------------------------------------------------------------


def test_methods_compared_with_the_fastest_native_one(tmp_path: Path) -> None:
    def curve(transport: str, factor: float) -> list[Made]:
        return [
            Made(point(transport, "pingpong", 2, size), factor * (1000 + size), divisor=2, bytes_per_rep=2 * size)
            for size in (8, 1024, 65536)
        ]

    made = [*curve("pvm@3.4.6:raw-daemon", 8), *curve("tcp", 2), *curve("shm", 1), *curve("pvm@3.4.6:psend", 4)]
    report = tables(tmp_path, "paragon", made)
    raw, psend = "pvm@3.4.6:raw-daemon, PvmDataRaw, daemon route", "pvm@3.4.6:psend, psend/precv, direct"
    titles = [column.title for column in report["bandwidth"].columns]
    assert titles == ["what", "bytes", "published", raw, "tcp", "shm", psend]
    assert [column.title for column in report["ratio"].columns] == ["bytes", raw, "tcp", psend]
    assert [figure(cell) for cell in row(report["ratio"], "1024")[1:]] == [about(1 / 8), about(1 / 2), about(1 / 4)]
    assert "that of shm" in report["ratio"].notes[0]
    best = measured(row(report["bandwidth"], "best")[5])
    assert best.ratio == pytest.approx(65536 / 66536 * 1000 / 72, rel=2e-3)
    assert text_of(row(report["latency"], "place", "psend/precv")[2]) == "2"
    assert figure(row(report["latency"], "latency (8 bytes)")[3]) == about(8.064)
    assert [text_of(cells[1]) for cells in report["jumps"].rows[-2:]] == ["1", "1"]


def test_a_ratio_is_as_uncertain_as_both_its_rates(tmp_path: Path) -> None:
    made = [
        Made(point(transport, "pingpong", 2, 8), time_ns, divisor=2, bytes_per_rep=16, scatter=scatter)
        for transport, time_ns, scatter in (("shm", 1000, 0.05), ("tcp", 2000, 0.1))
    ]
    found = tables(tmp_path, "paragon", made)
    ratio = measured(row(found["ratio"], "8")[1])
    native, other = (measured(cell) for cell in found["bandwidth"].rows[1][3:])
    assert ratio.low == about((other.low or 0) / (native.high or 1))
    assert ratio.high == about((other.high or 0) / (native.low or 1))


def test_a_size_that_refinement_added_has_no_row(tmp_path: Path) -> None:
    made = [
        Made(Point("shm", "pingpong", 2, size, role=role), 1000 + size, divisor=2, bytes_per_rep=2 * size)
        for size, role in ((8, "asked"), (96, "refined"), (1024, "asked"))
    ]
    rows = tables(tmp_path, "paragon", made)["bandwidth"].rows
    assert [cells[:2] for cells in rows] == [("best", ""), ("", "8"), ("", "1024")]


SIZES = [1 << i for i in range(3, 23)]


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([300 + size / 10 for size in SIZES], [("", "none", "20 sizes lie on straight lines")]),
        ([300 + size**0.5 for size in SIZES], [("", "curved", "20 sizes lie on a smooth curve")]),
        (
            [300 + size / 10 + (9000 if size >= 65536 else 0) for size in SIZES],
            [("64 KiB", "jump", "173% slower than the line before")],
        ),
        (
            [300 + size / 10 + (900 if size == 4096 else 0) for size in SIZES],
            [("4 KiB", "outlier", "127% slower than the line before")],
        ),
        ([300.0, 400.0], [("", "", "fewer than three sizes have figures with an interval")]),
    ],
)
def test_jumps_and_outliers_of_a_curve(times: list[float], found: list[tuple[str, ...]]) -> None:
    assert jumps_of([(size, time, 0.001) for size, time in zip(SIZES, times, strict=False)]) == found


# ---- published figures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", sorted(reports()))
@pytest.mark.parametrize("is_measured", [True, False])
def test_every_published_figure_is_printed(
    suite: str, is_measured: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether or not its row was measured here."""
    made = ONE_OF_EACH[suite]
    report = report_of(tmp_path, suite, [made if is_measured else replace(made, failed="it was killed")])
    views = [view_of(table) for table in report.tables]
    cells = [cell for view in views for line in view.rows for cell in line if isinstance(cell, Published)]
    missing = [each for each in published(suite) if not any(each is cell for cell in cells)]
    assert not missing
    words = set(re.findall(r"[\w.]+", shown(tmp_path, capsys)))
    assert {each.printed or "na" for each in published(suite)} <= words


# ---- the form of tables ---------------------------------------------------------------------------------------------

ONE_OF_EACH = {
    "atlas": Made(point("shm", "oneway", 2, 4), 660),
    "scabench": Made(point("shm", "pingpong", 2, 0), 320, divisor=2),
    "t3d": Made(point("shm", "putpong", 2, 8), 208, divisor=2),
    "ancor": stream(65500),
    "paragon": Made(point("shm", "pingpong", 2, 65536), 6000, divisor=2, bytes_per_rep=131072),
}


@pytest.mark.parametrize("suite", ONE_OF_EACH)
def test_show_prints_the_tables_and_json_carries_them(
    suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", suite, [ONE_OF_EACH[suite]])
    text = shown(tmp_path, capsys)
    assert text.startswith("The tables of: ")
    assert "published" in text
    assert "ratio" in text
    document = json.loads(shown(tmp_path, capsys, "--json"))
    cells = [cell for table in document["tables"]["of"] for line in table["rows"] for cell in line]
    assert any(isinstance(cell, dict) and cell["value"] is not None and cell["ratio"] for cell in cells)
    assert document["tables"]["source"]["name"] == suite
    assert document["series"]
    for table in document["tables"]["of"]:
        assert all(len(line) == len(table["columns"]) for line in table["rows"]), table["name"]
    assert execute(["--store", str(tmp_path / "r.db"), "show", "last", "--json"]) == 0
    assert "tables" not in json.loads(capsys.readouterr().out)


def test_the_machine_state_is_named_once_for_tables_of_one_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, barrier = Made(point("shm", "pingpong", 2, 0), 320, divisor=2), Made(point("shm", "barrier", 2, 0), 900)
    for after, states in ((barrier, ["near"]), (replace(barrier, floor_ns=184.0), ["near", "far"])):
        store_run(tmp_path / "r.db", "scabench", [short, after])
        assert sorted(re.findall(r"State of the machine: (\w+)\.", shown(tmp_path, capsys))) == sorted(states)


def test_published_and_measured_figures_are_in_one_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [Made(point("shm", "oneway", 2, size), 300 + size) for size in (4, 64, 256, 1024)]
    made += [Made(point("shm", "alltoall", 8, size), 9000 + size) for size in (4, 64)]
    store_run(tmp_path / "r.db", "atlas", made)
    text = shown(tmp_path, capsys, "--plot")
    assert "Com-1.1 (one-way), us" in text
    assert "Com-1.3 (all-to-all), us: processors 8" in text
    assert text.count("o published   x shm") == 2
    store_run(tmp_path / "r.db", "ancor", [ONE_OF_EACH["ancor"]])
    assert execute(["show", "last", "--tables", "--plot", "--store", str(tmp_path / "r.db")]) == 2
    assert "no published curve" in capsys.readouterr().err


@pytest.mark.parametrize("suite", ONE_OF_EACH)
def test_every_report_has_plots_or_says_that_it_has_none(
    suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", suite, [ONE_OF_EACH[suite]])
    code = execute(["show", "last", "--tables", "--plot", "--store", str(tmp_path / "r.db")])
    output = capsys.readouterr()
    assert (code, bool(output.out)) in ((0, True), (2, False))


def test_every_state_is_refused_where_each_figure_names_its_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", "atlas", [ONE_OF_EACH["atlas"]])
    assert execute(["--store", str(tmp_path / "r.db"), "show", "last", "--tables", "--states"]) == 2
    assert "`hockney show 1 --states" in capsys.readouterr().err


def test_an_oversubscribed_figure_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "r.db", "atlas", [ONE_OF_EACH["atlas"]], oversubscribed=True)
    text = shown(tmp_path, capsys)
    assert "0.660* ±" in text
    assert "more ranks than CPUs, so this is a scheduling time" in text


def test_a_rate_has_the_bounds_of_its_time_the_other_way_round() -> None:
    rate = Measured("us", 2.0, 1.0, 4.0).converted("MB/s", lambda time_us: 8 / time_us)
    assert rate == Measured("MB/s", 4.0, 2.0, 8.0)


def test_a_run_of_something_else_has_no_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.db"
    store_run(path, "oneway", [ONE_OF_EACH["atlas"]])
    assert execute(["--store", str(path), "show", "last", "--tables"]) == 2
    assert "atlas, scabench, t3d, ancor, paragon" in capsys.readouterr().err
    store_run(path, "atlas", [ONE_OF_EACH["atlas"]])
    assert execute(["--store", str(path), "show", "last", "--tables", "--pattern", "oneway"]) == 0
    assert execute(["--store", str(path), "show", "1", "--tables", "--pattern", "nothing"]) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (23167.0, "23,167"),
        (99.96, "100"),
        (99.94, "99.9"),
        (6.6, "6.60"),
        (0.0158, "0.0158"),
        (0.00868, "0.00868"),
        (0.0, "0"),
    ],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert format_figure(value) == text


# ---- the files -------------------------------------------------------------------------------------------------------

PATTERNS = load(libraries=()).patterns


@pytest.mark.parametrize("suite", reports())
def test_the_files_name_options_that_patterns_have_with_their_defaults(suite: str) -> None:
    named = {
        (pattern, name)
        for layout in layouts(suite)
        for part in layout.parts
        for pattern in part.patterns
        for name in part.options
    }
    for pattern, name in named:
        PATTERNS[pattern].option(name)  # raises where there is none
    for pattern, values in contents(suite).get("defaults", {}).items():
        assert {name: PATTERNS[pattern].option(name).default for name in values} == values, pattern


def test_a_run_of_a_classic_suite_ends_with_its_tables(
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
    assert text.startswith("The tables of: Roger Heeley")
    assert f"`hockney show 1 --all --store {tmp_path / 'r.db'}`" in text
    assert execute([*words, "--json"]) in (0, 3)
    document = json.loads(capsys.readouterr().out)
    assert [table["name"] for table in document["tables"]["of"]][:2] == ["configuration", "com-1.1"]
