"""The screens, documents and errors of `hockney compare`, on made-up runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.analysis.compare.made import add_run, curve, slower
from tests.builders import make_point
from tests.cli.support import call_here, command_line, environment, write_model
from tests.report.runs import LIBRARIES, Made, recorded_quick, store_run

from hockney.cli import execute
from hockney.model import Warning_
from hockney.render import terminal
from hockney.results.store import Store

OPENMPI = "mpi@openmpi-4.1.4"
BUDGET = 6  # sentences and heads besides one line for each range


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a store of four runs: base, slow in a changed environment, of few launches, and in another state."""
    where = tmp_path_factory.mktemp("compare")
    libraries = {OPENMPI: "Open MPI 4.1.4 (ob1:vader:cma tcp)"}
    sizes = [2**n for n in range(3, 17)]
    jump = {point: ns + 2000 * (point.bytes > 2048) for point, ns in curve(OPENMPI, sizes).items()}
    stream, lost = make_point(8, "tcp", pattern="oneway"), make_point(64, "tcp", pattern="oneway")
    points = curve("tcp") | jump | {stream: 5000.0, lost: 5100.0, make_point(0, "tcp", pattern="barrier"): 900.0}
    facts = [{"hostname": "a", "sleeping": ["tcp"], "os": {"kernel": f"Linux {version}"}} for version in ("6.1", "6.6")]
    with Store.open(where / "results.db") as opened:
        add_run(opened, points, label="base", libraries=libraries, facts=facts[0])
        changed = slower(slower(points, 1.25, 8192, 16384), 3.0, 32768, 65536) | curve("pipe", (8, 64))
        del changed[lost]
        slow = add_run(
            opened, changed, label="slow", failed={lost: "rank 1 hung"}, libraries=libraries, seed=2, facts=facts[1]
        )
        load = Warning_("load", "machine", "Other programs used 1.0 CPUs when the run began.", "Stop them.")
        opened.add_warning(slow, load)
        add_run(opened, points, label="few", launches=2, libraries=libraries, seed=3, facts=facts[0])
        add_run(opened, points, label="far", floor_ns=180.0, libraries=libraries, seed=4, facts=facts[0])
    return where


def slower_made(made: Made, factor: float) -> Made:
    """The same with times longer by this factor, in all machine states."""
    return replace(made, time_ns=factor * made.time_ns, then=made.then and slower_made(made.then, factor))


def screen(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert execute(["compare", *arguments, "--store", str(folder / "results.db")]) == code
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.replace(str(folder), "")


@pytest.mark.parametrize(
    ("runs", "code"), [(("base", "slow"), 0), (("base", "few"), 3), (("base", "far"), 3), (("slow", "base"), 0)]
)
def test_screen(
    folder: Path, capsys: pytest.CaptureFixture[str], runs: tuple[str, str], code: int, snapshot: SnapshotAssertion
) -> None:
    said = screen(folder, capsys, *runs, code=code)
    assert said == snapshot
    ranges = json.loads(screen(folder, capsys, *runs, "--json", code=code))["ranges"]
    assert len(said.splitlines()) <= len(ranges) + BUDGET


@pytest.mark.parametrize("arguments", [("--all",), ("--margin", "12.5 %")], ids=lambda words: words[0])
def test_screen_with_options(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    assert screen(folder, capsys, "base", "slow", *arguments) == snapshot


@pytest.mark.parametrize(("launches", "code"), [(1, 3), (9, 0)])
def test_recorded_runs_of_quick_take_one_line_for_each_range_and_few_more(
    launches: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = recorded_quick()
    new = [slower_made(made, 1.25 if made.point.bytes > 8192 else 1.0) for made in base]
    for run in (base, new):
        of_all = tuple({"index": number} for number in range(launches))
        store_run(tmp_path / "results.db", "quick", run, pinned=True, libraries=LIBRARIES, launches=of_all)
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    lines = screen(tmp_path, capsys, "1", "2", code=code).splitlines()
    ranges = json.loads(screen(tmp_path, capsys, "1", "2", "--json", code=code))["ranges"]
    assert max(map(len, lines)) <= 100
    ends = ("  slower", "  no difference", "  inconclusive")
    assert sum(line.endswith(ends) for line in lines) == len(ranges)
    assert len(lines) <= len(ranges) + 2 * BUDGET  # of 100 columns
    assert sum(line.startswith("Inconclusive: ") for line in lines) == (launches < 9)
    assert ("inconclusive" in lines[-1]) <= (launches >= 9)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (("4.1.4", "5.0.1"), "pingpong on Open MPI 4.1.4 -> Open MPI 5.0.1, 8-64 B "),
        (("5.0.1", "5.0.1"), "pingpong on mpi@openmpi-4.1.4 -> mpi@openmpi-5.0.1, 8-64 B "),  # it says a wrong version
    ],
)
def test_a_row_names_the_transports_of_both_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], versions: tuple[str, str], said: str
) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        for transport, version in zip((OPENMPI, "mpi@openmpi-5.0.1"), versions, strict=True):
            add_run(opened, curve(transport, (8, 64)), libraries={transport: f"Open MPI {version} (ob1)"})
    assert said in screen(tmp_path, capsys, "1", "2")


def test_all_lists_series_without_a_common_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = screen(folder, capsys, "base", "far", "--all", code=3).splitlines()
    assert sum(line.endswith("no common state  inconclusive") for line in lines) == 4
    assert sum(line.startswith("inconclusive: 24 series have no common machine state") for line in lines) == 1


def test_series_of_too_few_launches_are_listed_without_a_verdict(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in ((), ("--all",)):
        lines = screen(folder, capsys, "base", "few", *arguments, code=3).splitlines()
        assert sum(line.endswith("%  inconclusive") for line in lines) >= 4
        assert sum("Fix: Measure run 3 again with 6 launches" in line for line in lines) == 1


def test_screen_of_sixty_columns(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    said = screen(folder, capsys, "base", "slow")
    assert said == snapshot
    table = said.partition("Machine state:")[0]
    assert max(map(len, table.splitlines())) <= 60


def test_the_option_that_shows_all_notes_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(folder / "results.db", tmp_path)
    with Store.open(tmp_path / "results.db") as opened:
        opened.add_warning(2, Warning_("others", "machine", "Others kept the CPUs busy.", "Stop them."))
    assert "(1 more: --all)" in screen(tmp_path, capsys, "base", "slow")
    everything = screen(tmp_path, capsys, "base", "slow", "--all")
    assert "Others kept the CPUs busy." in everything
    assert "more: --all" not in everything


def test_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(screen(folder, capsys, "base", "slow", "--json"))
    assert document["format"] == "hockney-compare"
    assert document["counts"]["slower"] == 8
    ranges = {(each["transport"], *each["bytes"]): each for each in document["ranges"] if each["verdict"] == "slower"}
    assert next(iter(ranges)) == ("tcp", 8192, 16384)
    decided = [member for member in document["series"] if member["verdict"] != "inconclusive"]
    assert all(one["shift"]["low"] < one["shift"]["ratio"] < one["shift"]["high"] for one in decided)
    assert all(one["base_ns"] > 0 and one["new_ns"] > 0 for one in decided)
    assert [each["point"]["pattern"] for each in document["series"] if each["short"]] == ["oneway", "barrier", "oneway"]
    (lost,) = [member for member in document["series"] if member["reason_codes"]]
    assert (lost["reason_codes"], lost["reason"]) == (["failed"], "failed in run 2: rank 1 hung")
    few = json.loads(screen(folder, capsys, "base", "few", "--json", code=3))
    assert few["commands"] == ["hockney run quick --launches 6 --label few --store /results.db"]


def test_a_label_of_several_runs_is_the_newest(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        for seed in (1, 2, 3):
            add_run(opened, curve(), label="twice" if seed < 3 else "new", seed=seed)
    done = call_here(tmp_path, "compare", "twice", "new", "--json")
    assert json.loads(done.stdout)["base"] == 2


def test_a_closed_standard_error_does_not_stop_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        for seed in (1, 2):
            add_run(opened, curve(), label="twice", seed=seed)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command_line("compare", "twice", "1", "--json"),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=writing,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert json.loads(done.stdout)["base"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["base", "base"], "can't be compared with itself"),
        (["base", "bas"], "did you mean 'base'"),
        (["base", "slow", "--margin", "much"], "write for example 1%"),
        (["base", "slow", "--margin", "2"], "'2' has no unit: write 2%"),
        (["base"], "name two runs, BASE and NEW"),
        ([], "name two runs, BASE and NEW"),
        (["--interleave"], "with --interleave one pattern or suite to measure"),
    ],
)
def test_errors(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert execute(["compare", *arguments, "--store", str(folder / "results.db")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_quiet_prints_no_progress(tmp_path: Path) -> None:
    for name, latency_ns in (("a", 1000), ("b", 2000)):
        write_model(tmp_path / f"{name}.toml", latency_ns)
    sides = ("--base-transport", "sim@a.toml", "--new-transport", "sim@b.toml")
    ended = call_here(tmp_path, "compare", "--interleave", "pingpong", "--bytes", "8", *sides, "-q")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "sim@b.toml" in ended.stdout
