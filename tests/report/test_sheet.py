"""The data sheet: a row per transport in one machine state, with figures of fixed definitions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.builders import make_launch
from tests.report.cells import shown
from tests.report.runs import FACTS, LIBRARIES, Made, options, store_quick, store_run

from hockney.analysis.explain import explain_run
from hockney.analysis.finding import Finding, Subject
from hockney.errors import Fix, HockneyError
from hockney.model import Point, PointStatus
from hockney.render.text import show
from hockney.report.classic.values import format_figure
from hockney.report.columns import COLUMNS
from hockney.report.documents.plan import idle_hosts_text
from hockney.report.documents.sheet import sheet_as_json, sheet_document
from hockney.report.sheet import Failure, Row, Sheet, make_sheet
from hockney.report.words import figure_text, percent_text, readable_name, readable_names
from hockney.results.runs import open_results
from hockney.results.store import Store
from hockney.stats.interval import Estimate
from hockney.units import format_bytes, format_ns, format_rate
from hockney.worker.libraries import Missing

DOCS = Path(__file__).parents[2] / "docs"
SIZES = (8, 64, 512, 1024, 2048, 4096, 8192, 16384, 65536, 1 << 18, 1 << 20)
LATENCY = Made(Point("shm", "pingpong", 2, 8, ()), 50.0, divisor=2, bytes_per_rep=16)
THREADS = replace(LATENCY, point=Point("threads", "pingpong", 2, 8, ()))


def sheet_of(path: Path, *made: Made, every_state: bool = False, **more: object) -> Sheet:
    store_run(path / "r.db", "quick", made, **more)  # type: ignore[arg-type]
    with open_results(path / "r.db") as results:
        return make_sheet(results.run(), every_state=every_state)


def row(path: Path, *made: Made) -> Row:
    (only,) = sheet_of(path, *made).rows
    return only


def oneway(size: int, window: int = 16, **more: object) -> Made:
    point = Point("shm", "oneway", 2, size, options(window=window))
    return Made(point, 1000.0, divisor=window, bytes_per_rep=window * size, **more)  # type: ignore[arg-type]


def pingpong(size: int, time_ns: float, **more: object) -> Made:
    return Made(Point("shm", "pingpong", 2, size, ()), time_ns, divisor=2, bytes_per_rep=2 * size, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [100, 60])
def test_screen(
    width: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    store_quick(tmp_path / "r.db", label="monday")
    findings = [
        Finding("made-up thing", Subject("mpi@mpich-5.0.2"), {"times_ratio": 20.5}, "Bad luck", Fix("Try again")),
        Finding("other thing", Subject("shm", "pingpong"), {"first_ns": 50.0}),
    ]
    with open_results(tmp_path / "r.db") as results:
        run = results.run()
        show(sheet_document(make_sheet(run), run, [Missing("pvm", "no PVM here", "install it")], findings))
    output = capsys.readouterr().out
    assert output == snapshot
    assert max(map(len, output.splitlines())) <= width
    assert width < 100 or len(output.splitlines()) <= 40


def test_a_full_sheet_fits_one_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine transports, seven caveats, and more findings than there is room for: the weakest go, never the strongest."""
    monkeypatch.setenv("COLUMNS", "100")
    store_quick(tmp_path / "r.db")
    failures = [Failure("pipe", PointStatus.FAILED, number, f"rank {number} ended") for number in range(1, 5)]
    long = "with a long name " * 15
    findings = [Finding(f"kind {number} {long}", Subject("shm"), {"cost_ns": 9.0}) for number in reversed(range(9))]
    with open_results(tmp_path / "r.db") as results:
        run = results.run()
        show(
            sheet_document(
                replace(make_sheet(run), failures=tuple(failures)), run, [Missing("pvm", "no PVM", "-")], findings
            )
        )
        assert len(run.warnings) > 1
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) <= 38
    caveats = printed[printed.index("Caveats") + 1 : printed.index("Caveats") + 6]
    assert all(line.startswith("! ") for line in caveats)
    assert "Definitions, 2 more caveats and fixes: `hockney show 1 -v`" in " ".join(printed)
    assert any("kind 8" in line for line in printed)
    assert not any("kind 5" in line for line in printed)


def test_a_caveat_is_a_sentence_with_count_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "r.db", "quick", [LATENCY])
    reason = "the transport works within one host; across hosts use -t mpi or tcp or udp"
    names = ("null", "pipe", "shm", "threads", "unix")
    failures = tuple(Failure(name, PointStatus.SKIPPED, 10 + at, reason) for at, name in enumerate(names))
    with open_results(tmp_path / "r.db") as results:
        run = results.run()
        show(sheet_document(replace(make_sheet(run), failures=failures), run))
        assert "\n! 5 transports: 60 points skipped: the transport works within one host;" in capsys.readouterr().out
        show(sheet_document(replace(make_sheet(run), failures=failures), run, verbose=True))
    assert f"! {', '.join(names)}: 60 points skipped: {reason}." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("count", [0, 3, 5])
def test_three_missing_libraries_are_named_and_the_others_counted(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", "quick", [LATENCY])
    missing = [Missing(f"lib{place}", "not here", "install it") for place in range(count)]
    with open_results(tmp_path / "r.db") as results:
        show(sheet_document(make_sheet(results.run()), results.run(), missing))
    printed = " ".join(capsys.readouterr().out.split())
    assert re.findall(r"lib\d", printed) == [f"lib{place}" for place in range(min(count, 3))]
    assert re.findall(r" and (\d+) more ", printed) == (["2"] if count > 3 else [])


def two_hosts() -> list[Made]:
    """Two ranks between n1 and n2, and within n1."""
    made = []
    for transport, time_ns, floor_kind, floor_ns in (
        ("tcp", 25_000.0, "transport", 24_000.0),
        ("mpi@openmpi-4.1.4", 37_500.0, "transport", 36_000.0),
        ("tcp/2", 8_000.0, "line", 30.0),
        ("mpi@openmpi-4.1.4/2", 240.0, "line", 30.0),
    ):
        point = Point(transport, "pingpong", 2, 8)
        known = Made(point, time_ns, divisor=2, bytes_per_rep=16, floor_kind=floor_kind, floor_ns=floor_ns)
        for pattern in ("oneway", "twoway"):
            stream = replace(point, pattern=pattern, bytes=65536, options=options(window=16))
            made.append(replace(known, point=stream, time_ns=20 * time_ns, divisor=16, bytes_per_rep=16 * 65536))
        made.append(known)
    return made


def store_two_hosts(path: Path) -> None:
    speeds = {"n1": 25_000_000_000, "n2": 10_000_000_000}
    interfaces = {
        name: [{"name": "eth0", "bits_per_s": speed, "address": "10.0.0.1"}, {"bits_per_s": None, "address": None}]
        for name, speed in speeds.items()
    }
    facts = {**FACTS, "hosts": [{"name": name, "interfaces": of_host} for name, of_host in interfaces.items()]}
    store_run(path, "quick", two_hosts(), hosts=("n1", "n2"), facts=facts, libraries=LIBRARIES)


def test_rows_between_hosts_and_within_one_are_separate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache line is the reference of the rows within a host alone."""
    monkeypatch.setenv("COLUMNS", "100")
    store_two_hosts(tmp_path / "r.db")
    assert shown(tmp_path, capsys) == snapshot
    with open_results(tmp_path / "r.db") as results:
        sheet = make_sheet(results.run())
    assert [(row.name, row.placement, row.hosts) for row in sheet.rows] == [
        ("tcp", "between n1 and n2", ("n1", "n2")),
        ("Open MPI 4.1.4", "between n1 and n2", ("n1", "n2")),
        ("tcp", "within n1", ("n1", "n1")),
        ("Open MPI 4.1.4", "within n1", ("n1", "n1")),
    ]
    assert sheet.network is not None
    assert (sheet.network.transport, sheet.network.bytes_per_s) == ("tcp", 1.25e9)
    assert [(layer.upper, layer.lower) for layer in sheet.layers] == [("mpi@openmpi-4.1.4", "tcp")]


def test_hosts_without_a_rank_are_named() -> None:
    plan = {"hosts": ["n1", "n2:4", "n3", "n4"], "interface": "eth1"}
    assert idle_hosts_text(plan, 2) == (
        "No rank on n3, n4. To compare every host: `hockney health --hosts 'n[1-4]' --interface eth1`"
    )
    assert idle_hosts_text({"hosts": ["n1", "n2"]}, 2) is None
    assert idle_hosts_text({}, 2) is None


def test_screen_with_every_state_and_definition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_quick(tmp_path / "r.db")
    text = shown(tmp_path, capsys, "--states", "-v")
    assert re.search(r"^Open MPI 4.1.4 +near, contended +46.8 ns ", text, re.MULTILINE)
    for column in COLUMNS:
        assert column.title in text
        assert column.definition in " ".join(text.split())


def test_columns_are_documented() -> None:
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    for column in COLUMNS:
        line = f"  {column.key:<28}  Value?    {column.title}: {column.definition}\n"
        assert line in page, f"docs/json.md should have: {line}"


def test_rows_are_of_the_uncontended_state_with_most_measurements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contended cores are more frequent, far ones less; threads has measurements in that state alone."""
    near = replace(LATENCY, measurements=20, pace_ns=(0.5, 0.5))
    far = replace(near, measurements=7, floor_ns=160.0)
    contended = replace(near, measurements=40, pace_ns=(0.5, 0.9), then=far)
    only_far = replace(far, point=THREADS.point)
    made = (replace(near, then=contended), only_far)
    sheet = sheet_of(tmp_path, *made)
    assert [(row.transport, row.state) for row in sheet.rows] == [("shm", "near"), ("threads", "far")]
    assert sheet.state == "near"
    assert re.search(
        r"^threads° .*\n(.*\n)*°: in another machine state \(far\)\.", shown(tmp_path, capsys), re.MULTILINE
    )
    rows = sheet_of(tmp_path, *made, every_state=True).rows
    assert [row.state for row in rows] == ["near", "near, contended", "far", "far"]


def test_oversubscribed_figures_are_marked_and_have_no_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sheet_of(tmp_path, LATENCY, THREADS).layers
    assert not sheet_of(tmp_path, LATENCY, THREADS, oversubscribed=True).layers
    text = shown(tmp_path, capsys)
    assert re.search(r"^shm .*\*", text, re.MULTILINE)
    assert "scheduling times" in text


def test_the_times_of_several_numbers_of_ranks_are_those_of_the_first(tmp_path: Path) -> None:
    """As of `hockney run quick -n 2,4`: a column is about two ranks."""
    barriers = (Made(Point("shm", "barrier", ranks, 0), 100.0 * ranks, timed="slowest") for ranks in (2, 4))
    time = row(tmp_path, LATENCY, *barriers).values["barrier_ns"]
    assert time is not None
    assert time.value == pytest.approx(200.0, rel=0.01)


@pytest.mark.parametrize(
    "others", [(oneway(1 << 16, 3), oneway(1 << 22)), (oneway(1 << 20, skipped="messages have up to 64 KiB"),)]
)
def test_bandwidth_is_that_of_the_best_size_that_can_be_sent(tmp_path: Path, others: tuple[Made, ...]) -> None:
    best = row(tmp_path, LATENCY, oneway(1 << 16), *others).values["bandwidth_bytes_per_s"]
    assert best is not None
    assert best.value == pytest.approx(65536 / 1e-6, rel=0.01)
    assert best.at_bytes == 1 << 16


def test_bandwidth_of_short_messages_alone(tmp_path: Path) -> None:
    """As on udp, of whose messages one in four is lost: those that arrived count."""
    one = oneway(1 << 15)
    lossy = replace(one, counters={"lost": (0.0, 0.25 * 3 * one.batch * 16)})
    skipped = (oneway(size, skipped="udp sends at most 65491 B") for size in (1 << 16, 1 << 20))
    best = row(tmp_path, LATENCY, oneway(1 << 14), lossy, *skipped).values["bandwidth_bytes_per_s"]
    assert best is not None
    assert best.at_bytes == 1 << 15
    assert best.value == pytest.approx(0.75 * 32768 / 1e-6, rel=0.01)


@pytest.mark.parametrize(
    "other",
    [
        (oneway(1 << 16), oneway(1 << 20, failed="rank 1 hung")),
        (oneway(1 << 16), oneway(1 << 20, measurements=3)),
        (oneway(7),),
        (oneway(1 << 16, 3),),
    ],
)
def test_no_bandwidth_without_both_sizes(tmp_path: Path, other: tuple[Made, ...]) -> None:
    value = row(tmp_path, LATENCY, *other).values["bandwidth_bytes_per_s"]
    assert value is None or not value.has_interval


def test_short_streams_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample of a barrier is one repetition."""
    barrier = Made(Point("shm", "barrier", 2, 0, ()), 5000.0, timed="slowest", batch=1)
    value = row(tmp_path, LATENCY, barrier).values["barrier_ns"]
    assert value is not None
    assert value.is_short
    assert "†: fewer than 8 events" in shown(tmp_path, capsys)


def test_values_within_one_launch_are_mentioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of six launches five saw the CPUs near, the last far."""
    often = replace(THREADS, measurements=18)
    shm = replace(LATENCY, measurements=40, then=replace(LATENCY, measurements=8, floor_ns=160.0))
    sheet = sheet_of(tmp_path, shm, often, every_state=True, launches=[{"index": index} for index in range(6)])
    overs = {(row.transport, row.state): value.over for row in sheet.rows if (value := row.values["latency_ns"])}
    assert overs == {("shm", "near"): "launches", ("shm", "far"): "within one launch", ("threads", "near"): "launches"}
    assert "; ± of one launch in places" in " ".join(shown(tmp_path, capsys, "--states").split())


def test_r_inf_and_n_half_are_of_the_longest_messages(tmp_path: Path) -> None:
    """Eager up to 4 KiB, 10 GB/s; then 2 us more to begin with, and 20 GB/s."""
    sheet_row = row(tmp_path, *(pingpong(n, 500 + 0.1 * n if n <= 4096 else 2500 + 0.05 * n) for n in SIZES))
    r_inf, n_half = sheet_row.values["r_inf_bytes_per_s"], sheet_row.values["n_half_bytes"]
    assert r_inf is not None
    assert n_half is not None
    assert r_inf.value == pytest.approx(2e10, rel=0.01)
    assert n_half.value == pytest.approx(50000, rel=0.01)
    assert sheet_row.fit_from_bytes == 8192


def test_an_outlier_at_the_longest_message_is_not_on_the_line(tmp_path: Path) -> None:
    sheet_row = row(tmp_path, *(pingpong(n, (500 + 0.1 * n) * (3 if n == 1 << 20 else 1)) for n in SIZES))
    assert (sheet_row.fit_from_bytes, sheet_row.fit_to_bytes) == (8, 1 << 18)


@pytest.mark.parametrize("missed", [(), (8192,), (4096, 65536)])
def test_a_line_is_over_the_sizes_that_its_state_has(tmp_path: Path, missed: tuple[int, ...]) -> None:
    made = [pingpong(n, 500 + 0.1 * n, floor_ns=160.0 if n in missed else 30.0) for n in SIZES]
    found = row(tmp_path, *made)
    rate = found.values["r_inf_bytes_per_s"]
    assert rate is not None
    assert rate.value == pytest.approx(1e10)
    assert found.fit_to_bytes == 1 << 20


def test_no_line_where_longer_messages_were_measured_in_another_state_only(tmp_path: Path) -> None:
    """There messages are five times as fast: the rate of shorter ones is not r_inf."""
    made = [pingpong(n, 500 + 0.1 * n) for n in SIZES if n <= 8192]
    made += [pingpong(n, 1200 + 0.02 * n, floor_ns=160.0) for n in SIZES if n > 8192]
    values = row(tmp_path, *made).values
    assert values["latency_ns"] is not None
    assert (values["r_inf_bytes_per_s"], values["n_half_bytes"]) == (None, None)


def test_ready_transports_that_were_not_measured_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = sheet_of(tmp_path, LATENCY, facts=FACTS | {"transports": ["null", "shm", "tcp:spin", "tcp"]})
    assert sheet.also_ready == ("tcp", "tcp:spin")
    assert "also ready: 2 other transports, listed by `hockney list transports`" in " ".join(
        shown(tmp_path, capsys, "-v").split()
    )


def test_a_sheet_without_intervals_has_ranges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = sheet_of(tmp_path, replace(LATENCY, measurements=2))
    (row_of_shm,) = sheet.rows
    latency = row_of_shm.values["latency_ns"]
    assert latency is not None
    assert (latency.has_interval, latency.is_range) == (False, True)
    text = shown(tmp_path, capsys)
    assert re.search(r"^shm +50\.0 ns ‡ *$", text, re.MULTILINE)
    assert "‡: a range, as one machine state has too few measurements for an interval; ‡ alone: a single" in text


def test_a_sheet_without_a_figure_of_one_state_is_shown_without_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three measurements in each of two states: together they have an interval, alone none."""
    made = [pingpong(n, 500 + 0.1 * n, measurements=3) for n in SIZES]
    made = [replace(one, then=replace(one, time_ns=3 * one.time_ns, floor_ns=160.0)) for one in made]
    (row_of_shm,) = sheet_of(tmp_path, *made).rows
    latency = row_of_shm.values["latency_ns"]
    assert latency is not None
    assert (latency.is_mixed, latency.has_interval, row_of_shm.values["r_inf_bytes_per_s"]) == (True, True, None)
    with open_results(tmp_path / "r.db") as results, pytest.raises(HockneyError, match="in one machine state"):
        explain_run(results.run())
    text = shown(tmp_path, capsys)
    assert re.search(r"^shm +\S+ \S+ \(\S+–\S+\)", text, re.MULTILINE)
    assert "indings" not in text


def test_a_failed_point_has_no_figure(tmp_path: Path) -> None:
    """Its samples may be wrong; those of its first rounds are stored."""
    sheet_of(tmp_path, LATENCY, THREADS, oneway(1 << 18))
    with Store.open(tmp_path / "r.db") as store:
        store.set_status(1, LATENCY.point, PointStatus.FAILED, "byte 7 is wrong")
    with open_results(tmp_path / "r.db") as results:
        sheet = make_sheet(results.run())
    assert [(row.transport, row.values["latency_ns"] is None) for row in sheet.rows] == [
        ("shm", True),
        ("threads", False),
    ]


def test_a_point_measured_only_in_another_state_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    barrier = Made(Point("shm", "barrier", 2, 0, ()), 5000.0, timed="slowest", floor_ns=160.0)
    made = [LATENCY, barrier, oneway(1 << 16), oneway(1 << 20, floor_ns=160.0)]
    sheet = sheet_of(tmp_path, *made)
    (line,) = (line for line in shown(tmp_path, capsys).splitlines() if line.startswith("shm "))
    assert re.search(r"50\.0 ns ±1% .* GB/s ±1% *° .* 5\.00 us ±1% *°", line)
    row_json = sheet_as_json(sheet)["rows"][0]
    assert [row_json["state"], *(row_json[key]["state"] for key in ("latency_ns", "bandwidth_bytes_per_s"))] == [
        *("near", "near", "far")
    ]
    near, far = sheet_of(tmp_path, *made, every_state=True).rows
    assert [near.values["barrier_ns"] is None, far.values["latency_ns"] is None] == [True, True]


@pytest.mark.parametrize(
    ("transport", "library", "name"),
    [
        ("shm", "shared mapping, 16-byte SSE stores", "shm"),
        ("tcp:spin", "TCP over loopback", "tcp:spin"),
        ("mpi@openmpi-4.1.4", "Open MPI 4.1.4 (ob1:vader)", "Open MPI 4.1.4"),
        ("mpi@openmpi-4.1.4:rma", "Open MPI 4.1.4 (ob1:vader)", "Open MPI 4.1.4 rma"),
        ("shmem@openmpi-4.1.4", "Open MPI 4.1.4 (ob1)", "Open MPI 4.1.4 OpenSHMEM"),
        ("pvm@3.4.6", "", "pvm@3.4.6"),
    ],
)
def test_readable_name(transport: str, library: str, name: str) -> None:
    assert readable_name(transport, library) == name


def test_transports_with_the_same_readable_name_keep_their_exact_names() -> None:
    libraries = {
        "mpi@openmpi-4": "Open MPI 4.1.4 (ob1)",
        "mpi@openmpi-5": "Open MPI 4.1.4 (ucx)",
        "mpi@mpich": "MPICH 5",
    }
    names = readable_names([make_launch(name, library=library) for name, library in libraries.items()] * 2)
    assert names == {"mpi@openmpi-4": "mpi@openmpi-4", "mpi@openmpi-5": "mpi@openmpi-5", "mpi@mpich": "MPICH 5"}


def test_the_harness_takes_a_whole_repetition_of_its_ping_pong(tmp_path: Path) -> None:
    """Half of one takes 50 ns, give or take 10 %; shm keeps its row."""
    null = replace(LATENCY, point=Point("null", "pingpong", 2, 8), scatter=0.1)
    sheet = sheet_of(tmp_path, null, LATENCY)
    assert [row.transport for row in sheet.rows] == ["shm"]
    with open_results(tmp_path / "r.db") as results:
        (half,) = results.run().select(transport="null").figures()
    assert half.time.value == pytest.approx(50, rel=0.05)
    harness = sheet.harness_ns
    assert harness is not None
    assert [harness.value, harness.low, harness.high] == [
        2 * time_ns for time_ns in (half.time.value, half.time.low, half.time.high)
    ]


@pytest.mark.parametrize("status", [PointStatus.TIME_UP, PointStatus.PRECISE])
def test_two_launches_ask_for_a_third_unless_all_were_asked_for_and_are_precise(
    status: PointStatus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that has made its launches, and whose points are all precise, cannot be resumed."""
    store_run(
        tmp_path / "r.db",
        "quick",
        [replace(LATENCY, measurements=18, scatter=0.3)],
        launches=[{}, {"index": 2}],
        plan={"launches": 2},
    )
    with Store.open(tmp_path / "r.db") as store:
        store.set_status(1, LATENCY.point, status)
    text = shown(tmp_path, capsys)
    wide = "After 2 launches an interval is about 6 times as wide as after 3."
    assert (wide in text, "hockney run --resume 1" in text) == ((status is PointStatus.TIME_UP,) * 2)


@pytest.mark.parametrize(
    ("time", "is_range", "texts"),
    [
        (Estimate(8320.0, 8240.0, 8400.0), False, ("8.32 us", "±1%")),
        (Estimate(8320.0, 4160.0, 8400.0), False, ("8.32 us", "±50%")),
        (Estimate(8320.0, 4150.0, 8400.0), False, ("8.3 us", "(4.2–8.4)")),
        (Estimate(8320.0, 8240.0, 8400.0), True, ("8.32 us", "(8.24–8.40)‡")),
        (Estimate(194.0, 160.0, 194.65), True, ("194 ns", "(160–195)‡")),
        (Estimate(800e3, 800e3, 812e3), True, ("800 us", "(800–812)‡")),
        (Estimate(58.9, 58.5, 63.1), True, ("58.9 ns", "(58.5–63.1)‡")),
        (Estimate(100_000.0, 99_990.0, 100_010.0), True, ("100 us", "‡")),
        (Estimate(8320.0, 8320.0, 8320.0), True, ("8.32 us", "‡")),
        (Estimate(8320.0, 125.0, 2.1e6), False, ("8.3 us", "(0.12–2,100)")),
        (Estimate(8320.0, 8320.0, 8320.0), False, ("8.32 us", "")),
        (Estimate(0.0, 0.0, 12.0), True, ("0 ns", "(0–12)‡")),
    ],
)
def test_a_wide_interval_is_printed_with_both_ends(time: Estimate, is_range: bool, texts: tuple[str, str]) -> None:
    assert figure_text(time, format_ns, is_range=is_range) == texts


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.012, "±2%"), (0.5, "±50%"), (0.6, "a factor of 1.60"), (9.92, "a factor of 10.9")],
)
def test_the_precision_of_a_run_is_no_more_than_50_percent_either(fraction: float, text: str) -> None:
    assert percent_text(fraction) == text


@pytest.mark.parametrize(
    ("text", "scale"),
    [(format_ns, 1.0), (format_rate, 1e6), (format_figure, 1e-2), (lambda value: format_bytes(round(value)), 1.0)],
)
def test_a_value_is_within_its_ends_as_printed(text: Callable[[float], str], scale: float) -> None:
    for number in range(1, 3000):
        value = scale * 1.0123**number if number < 1200 else scale * (number - 1199) * 512
        for below, above in ((1.0, 1.0014), (0.996, 1.0), (0.93, 1.04), (0.1, 1.0), (0.9, 30.0)):
            shown, bounds = figure_text(Estimate(value, value * below, value * above), text, is_range=True)
            if bounds == "‡":
                assert shown == text(value)
            else:
                ends = bounds.removeprefix("(").removesuffix(")‡").split("–")
                digits = [shown.partition(" ")[0], *ends]
                low, high = (float(end.replace(",", "")) for end in ends)
                assert low <= float(digits[0].replace(",", "")) <= high, (shown, bounds)
                assert all(re.fullmatch(r"\d{1,3}(,\d{3})*(\.\d+)?", each) for each in digits), (shown, bounds)
