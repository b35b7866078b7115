"""`hockney predict --from` and `--validate`: on a run of a machine whose parameters are known, and on real CPUs."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.analysis.predict.known import LATENCY, RECEIVE, SEND, call_it_validate, copied
from tests.cli.support import Cli, document
from tests.report.runs import Made, options, store_run

from hockney.cli import execute
from hockney.measure.predict import Checked
from hockney.model import Point, Warning_
from hockney.results.store import Store
from hockney.worker.machine_model import load_model

PREDICT = ("predict", "alltoall,barrier,pushfarm", "--from", "last", "-n", "4", "--bytes", "8,4M")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory)


def test_predictions_are_close_to_measurements(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(capsys, "predict", "--validate", "--from", "last", "--store", str(known), "--json")
    (validation,) = shown["validation"]
    points = validation["points"]
    assert len(points) > 60
    assert {row["point"]["ranks"] for row in points} == {2, 3, 4, 5}
    errors = sorted(abs(row["error"]) for row in points)
    assert (validation["median_error"], validation["within_10_percent"]) == (
        statistics.median(errors),
        sum(error <= 0.1 for error in errors) / len(errors),
    )
    assert statistics.median(errors) < 0.01
    # The switch at 8000 B is documented nowhere, so 6000 B are on its wrong side.
    assert {row["point"]["bytes"] for row in points if abs(row["error"]) > 0.02} == {6000}
    assert errors[-1] < 0.12


def test_a_barrier_of_more_ranks_follows_from_two(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("predict", "barrier", "-n", "16", "--store", str(known), "--json")
    (row,) = document(capsys, *words)["predictions"]
    assert row["time_ns"] == pytest.approx(4 * (SEND + LATENCY + RECEIVE), rel=0.01)
    assert row["low_ns"] is None  # the run was on a model, so that its figures have no interval


def test_a_topology_adds_its_links(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "way.toml").write_text(
        '[topology]\nkind = "torus"\ndimensions = [8]\nsource = "x"\n[[link]]\nlatency_ns = 5000\nsource = "x"\n'
    )
    words = ("predict", "ring", "-n", "8", "--bytes", "8", "--store", str(known), "--json")
    more: list[tuple[str, ...]] = [(), ("--topology", "torus:8"), ("--topology", str(tmp_path / "way.toml"))]
    times = [document(capsys, *words, *each)["predictions"][0]["time_ns"] for each in more]
    assert times[1] == pytest.approx(times[0], rel=0.02)
    assert times[2] == pytest.approx(times[0] + 5000, rel=0.01)


def test_a_link_adds_its_latency_twice_and_limits_the_rate(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the switch and from it."""
    words = ("predict", "ring", "-n", "8", "--bytes", "8,1M", "--store", str(known), "--json", "--link")
    fast, late, slow = (
        [row["time_ns"] for row in document(capsys, *words, link)["predictions"]]
        for link in ("1TB/s", "5us", "100MB/s,5us")
    )
    assert late == [pytest.approx(time_ns + 10_000, rel=1e-3) for time_ns in fast]
    assert slow == [pytest.approx(late[0], rel=0.02), pytest.approx((1 << 20) * 10, rel=0.02)]


def test_a_fitted_machine_has_its_highest_rate(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That of its receiver, which computes for 100 us; with a slow link that of the link."""
    words = (
        "pushfarm",
        "--store",
        str(known),
        "-n",
        "3",
        "-o",
        "rate=max",
        "-o",
        "deadline=50ms",
        "-o",
        "delay_us=100",
    )
    (*_, rate) = document(capsys, "predict", *words, "-o", "in_flight=4,8", "--json")["rates"]
    assert rate["sustained_hz"] == pytest.approx(10_000, rel=0.03)
    (rate,) = document(capsys, "predict", *words, "-o", "in_flight=8", "--link", "1MB/s", "--json")["rates"]
    assert rate["sustained_hz"] == pytest.approx(1e6 / 1024, rel=0.03)


@pytest.mark.parametrize(("measurements", "title"), [(3, "range"), (9, "95 % interval")])
def test_a_highest_rate_has_the_bounds_of_the_fitted_figures(
    measurements: int, title: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # no title is broken
    monkeypatch.setattr("hockney.measure.predict.DRAWS", 10)
    made = [
        Made(Point("tcp", *of), 1000 + of[2], divisor, measurements=measurements, scatter=0.1)
        for of, divisor in ((("pingpong", 2, 1024), 2), (("oneway", 2, 1024, options(window=16)), 16))
    ]
    store_run(tmp_path / "r.db", "quick", made)
    search = ("-n", "3", "-o", "rate=max", "-o", "deadline=50ms", "-o", "in_flight=8")
    words = ("predict", "pushfarm", *search, "--store", str(tmp_path / "r.db"))
    (rate,) = document(capsys, *words, "--json")["rates"]
    assert rate["low_hz"] < rate["sustained_hz"] < rate["high_hz"]
    assert rate["high_hz"] / rate["low_hz"] > 1.1  # more than the 2 % that a search leaves open
    (faster,) = document(capsys, *words, "--json", "--set", "g=0.1x")["rates"]
    assert faster["low_hz"] > rate["low_hz"]  # the bounds are those of the changed machine, too
    assert execute(words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert f" events {title} rate " in screen
    assert f"The {title.split()[-1]} has only the noise of the input." in screen
    assert execute([*words, "--time", "1ms"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert (f" events {title} " in screen, f"For {title.split()[-1]}s: --time " in screen) == (False, True)


@pytest.mark.parametrize(
    ("factor", "word", "most"),
    [
        (1.0, "Optimistic", "up to 0% too fast and 10% too slow on"),
        (3.0, "Assumed", "up to 0% too fast and 3.3 times too slow on"),
        (0.4, "Optimistic", "up to 2.5 times too fast and 0% too slow on"),
    ],
)
def test_it_says_in_which_direction_and_how_far_the_model_was_off(
    factor: float,
    word: str,
    most: str,
    known: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model that was too slow anywhere is not called optimistic."""
    store = str(shutil.copy(known, tmp_path))
    call_it_validate(Path(store))
    error = property(lambda row: factor * row.predicted_ns / row.measured_ns.value - 1)
    monkeypatch.setattr(Checked, "error", error)
    for words in ((), ("--link", "10Gbit/s")):
        assert execute(["predict", "pingpong", "--bytes", "8", "--store", store, *words]) == 0
        screen = " ".join(capsys.readouterr().out.split())
        assert f"{word}: {'memory and NIC are' if words else 'every pair is as fast as'}" in screen
        assert most in screen


def test_it_quotes_the_error_that_validate_found(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the newest run of the suite validate; without one it names the command that finds the error."""
    store = str(shutil.copy(known, tmp_path))
    words = ("predict", "pingpong", "--bytes", "8", "--store", store)
    assert document(capsys, *words, "--json")["model_error"] is None
    assert execute(words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "How far off such models are: `" in screen
    assert (
        "Optimistic: every pair is as fast as these two ranks alone; memory, NIC and switch are never full." in screen
    )
    assert "Name a network: --topology, --link." in screen
    call_it_validate(Path(store))
    found = document(capsys, "predict", "--validate", "--from", "1", "--store", store, "--json")["validation"][0]
    largest = max((row["error"] for row in found["points"]), key=abs)
    error = document(capsys, *words, "--json")["model_error"]
    assert error == {"run": 1, "median": found["median_error"], "largest": largest}
    assert execute([*words, "--link", "10Gbit/s"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    median, up_to = f"{error['median']:.0%} in the median", f"up to 0% too fast and {largest:.0%} too slow"
    assert f"The model itself was off by {median}, {up_to} on sim@known.toml (run 1)." in screen
    assert "Optimistic: memory and NIC are never full. The network is one switch, links of 10Gbit/s." in screen


def test_a_fitted_machine_is_extended_to_a_switch_that_loses(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve readouts that send to one builder at once overflow its port, which is named."""
    words = ("predict", "eventbuilder", "-n", "14", "--bytes", "64K", "-o", "senders=12", "--store", str(known))
    file, times_ns, ports = tmp_path / "net.toml", {}, {}
    for buffer in (65_536, 1 << 24):
        file.write_text(
            'topology = { kind = "switch", nodes = 14, source = "planned" }\n'
            'link = [{ bytes_per_s = 125e6, latency_ns = 2000, source = "planned" }]\n'
            f'switch = {{ buffer_bytes = {buffer}, source = "planned" }}\ntcp = {{ source = "Linux" }}\n'
        )
        shown = document(capsys, *words, "--topology", str(file), "--json")
        (row,), (port,) = shown["predictions"], shown["overflows"]
        times_ns[buffer], ports[buffer] = row["time_ns"], (port["rank"], port["role"], port["drops"] > 0)
    assert times_ns[65_536] > 2 * times_ns[1 << 24]
    assert ports == {65_536: (13, "builder 1", True), 1 << 24: (None, None, False)}
    assert execute([*words, "--topology", str(file)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert f"The network is {file}, TCP over ports with buffers." in screen
    assert "First overflow No port drops a segment; each holds 16 MiB." in screen
    assert execute([*words, "--topology", str(file), "--set", "switch.buffer_bytes=65536", "--sensitivity"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "The port of builder 1 (rank 13) drops most of " in screen
    assert "buffers of switches (buffer) doubled" in screen
    assert "bandwidth of links (link.bandwidth) doubled" in screen


def test_the_fitted_model_can_be_kept(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("pingpong", "--bytes", "8", "--json")
    path = tmp_path / "mine.toml"
    fit = document(capsys, "predict", *words, "--store", str(known), "--write", str(path))
    again = document(capsys, "predict", *words, "--machine", str(path))
    assert again["predictions"][0]["time_ns"] == pytest.approx(fit["predictions"][0]["time_ns"], rel=1e-4)
    assert load_model(str(path)).machine.title == "fitted to run 1"


@pytest.mark.parametrize("width", [60, 100])
def test_screen(
    width: int,
    known: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert execute([*PREDICT, "--set", "L=0.5x", "--store", str(known)]) == 0
    screen = capsys.readouterr().out.replace(str(known), "r.db")
    assert max(len(line) for line in screen.splitlines() if "`" not in line) <= width
    assert screen == snapshot
    assert execute(["predict", "--validate", "--from", "1", "--store", str(known)]) == 0
    screen = capsys.readouterr().out
    assert max(map(len, screen.splitlines())) <= width
    assert screen == snapshot


@pytest.mark.full
def test_real_cpus_are_measured_and_predicted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("predict", "--validate", "-t", "shm", "--time", "1s", "--json", "--store", str(tmp_path / "r.db"))
    assert execute(words) == 0
    shown = json.loads(capsys.readouterr().out)
    (validation,) = shown["validation"]
    assert validation["transport"] == "shm"
    assert validation["points"]  # of the one state that counts
    assert all(row["predicted_ns"] > 0 for row in validation["points"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("pingpong", "-t", "tcp"),
            "unknown transport of run 1 'tcp': known are sim@known.toml; --from names another run",
        ),
        (("pingpong", "--topology", "ring:8"), "write torus:4x4x4, mesh:8x8"),
        (("pingpong", "-n", "16", "--topology", "torus:2x2"), "on torus:2x2 has 4 nodes, so 16 ranks"),
    ],
)
def test_questions_that_a_run_cannot_answer(
    words: tuple[str, ...], said: str, known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["predict", *words, "--store", str(known)]) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_basic_figures_says_how_to_measure_them(cli: Cli) -> None:
    assert cli("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "0.2s", "--quiet").returncode in (0, 3)
    ended = cli("predict", "alltoall")
    assert ended.stdout == ""
    assert "run 1 shows no machine on shm" in ended.stderr
    assert "hockney run basics -t shm" in ended.stderr
    assert "hockney predict --validate" in cli("predict", "--validate", "--from", "1").stderr


def test_a_run_without_the_transport_is_not_the_one_that_has_no_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for transport in ("tcp", "shm"):
        store_run(tmp_path / "r.db", "quick", [Made(Point(transport, "pingpong", 2, 8), 1000, 2)])
    words = ["predict", "alltoall", "--store", str(tmp_path / "r.db"), "-t"]
    assert execute([*words, "tcp"]) == 3
    assert "run 1 shows no machine on tcp" in capsys.readouterr().err
    assert execute([*words, "tpc"]) == 2
    assert "unknown transport of run 2 'tpc'" in capsys.readouterr().err


def test_messages_shorter_than_all_measured_ones_are_not_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Made(Point("tcp:spin", "pingpong", 2, size), 1000 + size, 2) for size in (8, 65536, 1 << 20)]
    stream = options(window=16)
    made += [Made(Point("tcp:spin", "oneway", 2, size, stream), 500 + size, 16) for size in (65536, 1 << 20)]
    store_run(tmp_path / "r.db", "quick", made)
    words = ("predict", "alltoall", "-n", "4", "--bytes", "8,64K", "--store", str(tmp_path / "r.db"), "--json")
    assert execute(words) == 3  # in part
    shown = json.loads(capsys.readouterr().out)
    assert [row["point"]["bytes"] for row in shown["predictions"]] == [65536]
    (missing,) = shown["not_predicted"]
    assert missing["reason"] == "the run has no oneway (window=16) below 64 KiB: the suite basics measures it"


def test_messages_longer_than_those_of_the_only_size_are_not_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is known of their time per byte."""
    made = [Made(Point("tcp:spin", "pingpong", 2, 65536), 60000, 2)]
    made += [Made(Point("tcp:spin", "oneway", 2, 65536, options(window=16)), 60000, 16)]
    store_run(tmp_path / "r.db", "quick", made)
    words = ("predict", "alltoall", "-n", "4", "--bytes", "64K,4M", "--store", str(tmp_path / "r.db"), "--json")
    assert execute(words) == 3
    shown = json.loads(capsys.readouterr().out)
    assert [row["point"]["bytes"] for row in shown["predictions"]] == [65536]
    (missing,) = shown["not_predicted"]
    assert (missing["point"]["bytes"], "above 64 KiB" in missing["reason"]) == (4 << 20, True)


def test_notes_are_printed_once_for_all_transports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [
        Made(Point(transport, *of), 1000 + of[2], divisor)
        for transport in ("shm", "tcp", "unix")
        for of, divisor in ((("pingpong", 2, 65536), 2), (("oneway", 2, 65536, options(window=16)), 16))
    ]
    store_run(tmp_path / "r.db", "quick", made)
    assert execute(["predict", "pingpong", "--bytes", "8,64K", "--store", str(tmp_path / "r.db")]) == 3
    screen = capsys.readouterr().out
    assert screen.count("(fitted to run 1") == 3
    assert [screen.count(note) for note in ("Not predicted", "no oneway", "Optimistic: ")] == [1, 1, 1]
    assert screen.count("predict --validate -t shm,tcp,unix") == 1


def test_without_time_for_intervals_it_says_which_time_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [
        Made(Point(transport, *of), 1000 + of[2], divisor)
        for transport in ("shm", "tcp")
        for of, divisor in ((("pingpong", 2, 65536), 2), (("oneway", 2, 65536, options(window=16)), 16))
    ]
    store_run(tmp_path / "r.db", "quick", made)
    words = ["predict", "pingpong", "--bytes", "64K", "--store", str(tmp_path / "r.db")]
    assert execute([*words, "--time", "1ms"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert len(re.findall(r"For intervals: --time (?:\d+m)?\d+s\.", screen)) == 1
    assert execute([*words, "--time", "10m"]) == 0
    assert "For intervals" not in capsys.readouterr().out


def test_a_run_of_basic_figures_alone_is_not_validated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [
        Made(Point("tcp", "pingpong", 2, 65536), 66536, 2),
        Made(Point("tcp", "oneway", 2, 65536, options(window=16)), 66036, 16),
    ]
    store_run(tmp_path / "r.db", "basics", made)
    assert execute(["predict", "--validate", "--from", "1", "--store", str(tmp_path / "r.db")]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "run 1 cannot be validated: it has no figures besides those that the fit uses." in printed.err
    assert "predict --validate" in printed.err


@pytest.mark.parametrize(("measurements", "is_range"), [(3, True), (9, False)])
def test_what_is_fitted_to_ranges_is_a_range(
    measurements: int, is_range: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [
        Made(Point("tcp", *of), 1000 + of[2], divisor, measurements=measurements, scatter=0.1)
        for of, divisor in ((("pingpong", 2, 65536), 2), (("oneway", 2, 65536, options(window=16)), 16))
    ]
    store_run(tmp_path / "r.db", "quick", made)
    words = ["predict", "pingpong", "--bytes", "64K", "--store", str(tmp_path / "r.db")]
    (row,) = document(capsys, *words, "--json")["predictions"]
    assert row["is_range"] is is_range
    assert row["low_ns"] <= row["time_ns"] <= row["high_ns"]
    low_ns, _, high_ns = (66_536 * (1 + 0.1 * (2 * number - 2) * 2 / 3) for number in range(3))
    assert not is_range or low_ns * 0.99 < row["low_ns"] < row["high_ns"] < high_ns * 1.01
    assert execute(words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert (" range " in screen, "‡: ranges, as figures of the fitted run are." in screen) == (is_range,) * 2
    assert ("95 % interval " in screen) is not is_range


def test_by_default_it_takes_the_newest_run_that_has_the_figures(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(shutil.copy(known, tmp_path))
    words = ("predict", "pingpong", "--bytes", "8,64", "--store", store)
    stream = Made(Point("tcp", "oneway", 2, 65536, options(window=16)), 500, 16)
    store_run(Path(store), "quick", [Made(Point("tcp", "pingpong", 2, 65536), 1000, 2), stream])  # no short messages
    store_run(Path(store), "quick", [Made(Point("shm", "pingpong", 2, 8), 1000, 2)])
    assert execute(words) == 0
    printed = capsys.readouterr()
    assert "Predicting 2 points on sim@known.toml, fitted to run 1." in printed.err
    assert "interval" not in printed.out  # its figures are exact
    assert execute([*words, "--from", "last"]) == 3
    assert "run 3 shows no machine on shm" in capsys.readouterr().err
    assert execute([*words, "-t", "tcp"]) == 3
    assert "on tcp, fitted to run 2" in capsys.readouterr().err


def test_a_run_with_short_messages_on_one_transport_is_taken(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(shutil.copy(known, tmp_path))
    sizes = {"shm": 64, "tcp": 65536}
    made = [Made(Point(name, "pingpong", 2, size), 1000, 2) for name, size in sizes.items()]
    made += [Made(Point(name, "oneway", 2, size, options(window=16)), 500, 16) for name, size in sizes.items()]
    store_run(Path(store), "quick", made)
    assert execute(["predict", "pingpong", "--bytes", "64K", "--time", "1ms", "--store", store]) in (0, 3)
    said = capsys.readouterr().err
    assert re.findall(r"on (\w+), fitted to run 2", said) == ["shm", "tcp"]


def test_quiet_prints_no_progress(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["predict", "pingpong", "--bytes", "8", "-q", "--store", str(known)]) == 0
    assert capsys.readouterr().err == ""


def test_an_error_that_was_found_on_a_busy_machine_says_so(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(shutil.copy(known, tmp_path))
    call_it_validate(Path(store))
    with Store.open(store) as results:
        results.add_warning(1, Warning_("load", "machine", "Other programs use 1.5 of 2 CPUs.", "Stop them."))
    assert execute(["predict", "pingpong", "--bytes", "8", "--store", store]) == 0
    assert "on sim@known.toml (run 1, on a busy machine)." in " ".join(capsys.readouterr().out.split())
