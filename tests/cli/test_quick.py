"""`hockney quick` and its data sheet: measured, shown again, gone on with."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import Cli, document
from tests.measure.test_run import command
from tests.report.runs import store_quick
from tests.shared import finished

from hockney.cli import execute
from hockney.cli.measuring import OutputOptions
from hockney.render.json import JSON_VERSION
from hockney.suites import Suite, load_suite
from hockney.worker.libraries import MPI
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions

FIGURES = ("latency_ns", "bandwidth_bytes_per_s", "bidirectional_bytes_per_s", "barrier_ns")
LINE = ("r_inf_bytes_per_s", "n_half_bytes")


def missing(sheet: dict[str, Any]) -> set[tuple[str, str]]:
    """The figures that no row has, by kind of transport, in any machine state; likewise its layer.

    r_inf and n_1/2 must be somewhere on the sheet: the line of a single transport may honestly give none.
    """
    kinds = ("shm", "tcp", "mpi")
    wanted = {(kind, name) for kind in kinds for name in FIGURES} | {("any", name) for name in LINE}
    wanted |= {(kind, "layer") for kind in kinds if kind != "shm"}
    for row in sheet["rows"]:
        kind = row["transport"].partition("@")[0]
        wanted -= {(kind, name) for name in FIGURES if row[name]}
        wanted -= {("any", name) for name in LINE if row[name]}
    return wanted - {(layer["upper"].partition("@")[0], "layer") for layer in sheet["layers"]}


def check_rows(sheet: dict[str, Any]) -> None:
    for row in sheet["rows"]:
        assert row["state"]
        assert row["floor_ns"] > 0
        for name in (*FIGURES, *LINE):
            assert row[name] is None or 0 < row[name]["low"] <= row[name]["value"] <= row[name]["high"]


def test_the_sheet_of_a_recorded_quick_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_quick(tmp_path / "r.db")
    sheet = document(capsys, "show", "--tables", "--json", "--store", str(tmp_path / "r.db"))
    assert missing(sheet) == set()
    check_rows(sheet)


@pytest.mark.full
def test_quick_measures_every_series_of_its_sheet(tmp_path: Path) -> None:
    """A contended machine may leave a figure without an interval."""
    argv = command("quick", "--time", "15s", "--json", store=tmp_path / "r.db")
    done = finished(argv, timeout_s=250)
    sheet = json.loads(done.stdout)
    assert done.returncode in ((0, 3) if sheet["rows"] else (3,)), done.stderr  # 3: no interval in so little time
    looks = re.findall(r"^  first figure: (.*): [\d.]+ [mnu]?s$", done.stderr, re.MULTILINE)
    assert looks[0] == "pingpong 8 B on shm"  # not the cost of the harness
    assert any(look.endswith(" on null") for look in looks)
    assert (sheet["format"], sheet["version"], sheet["run"], sheet["launches_per_job"]) == (
        "hockney-quick",
        JSON_VERSION,
        1,
        1,
    )
    kinds = {"shm", "tcp", *(("mpi",) if MPI()[0] else ())}
    measured = {(each["transport"].partition("@")[0], each["pattern"]) for each in sheet["series"] if each["figures"]}
    assert measured >= {(kind, name) for kind in kinds for name in ("pingpong", "oneway", "twoway", "barrier")}
    check_rows(sheet)
    assert {launch["transport"] for launch in sheet["launches"]} >= {"null", "shm", "tcp"}
    check_shown_again(tmp_path / "r.db", sheet)


def check_shown_again(path: Path, sheet: dict[str, Any]) -> None:
    """In the same figures, for programs and for people."""
    document = json.loads(subprocess.check_output(command("show", "--tables", "--json", store=path), text=True))
    same = ("rows", "layers", "states", "also_ready")
    assert {name: document[name] for name in same} == {name: sheet[name] for name in same}
    assert len(document["series"]) == len(sheet["series"]) > 0
    wide = {**os.environ, "COLUMNS": "100"}
    shown = subprocess.check_output(command("show", store=path), text=True, env=wide)
    for row in sheet["rows"]:
        assert re.search(rf"^{re.escape(row['name'])} +", shown, re.MULTILINE)
    assert len(shown.splitlines()) <= 40
    assert "pingpong on shm, 2 ranks" in subprocess.check_output(command("show", "--all", store=path), text=True)


def test_a_sheet_is_shown_again_and_by_a_resumed_run(cli: Cli) -> None:
    def say(*arguments: str) -> str:
        done = cli(*arguments)
        assert done.returncode in (0, 3), done.stderr  # 3: with so little time, maybe nothing is on the sheet
        return done.stdout

    first = say("run", "quick", "-t", "shm", "--bytes", "8,64K", "--precision", "0.01%", "--time", "200ms")
    again = say("show", "--tables")
    on = say("run", "--resume")
    assert first.splitlines()[:10] == again.splitlines()[:10]
    for said in (first, again, on):
        assert "run 1" in said.splitlines()[0]
        assert "pingpong on shm, 2 ranks" not in said


def test_a_sheet_without_intervals_shows_medians_and_what_to_do(cli: Cli) -> None:
    for _ in range(5):
        done = cli("run", "quick", "-t", "shm", "--bytes", "8,64K", "--time", "100ms")
        assert done.returncode == 3, done.stderr  # nothing on the sheet: measured in part
        if "No figure yet: the machine changed" not in done.stdout:  # on a busy machine a round may be in mixed states
            break
    assert "±?" not in done.stdout
    assert re.search(r"^shm +[\d.]+ ns ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "output", "where", "label"),
    [
        ([], {}, Placement(), None),
        (["-v"], {"verbose": True}, Placement(), None),
        (["-q", "--json"], {"as_json": True, "quiet": True}, Placement(), None),
        (["--report", "r.html"], {"report": Path("r.html")}, Placement(), None),
        (["--map", "node"], {}, Placement(map_by="node"), None),
        (["--time", "20s", "--cpus", "0", "-l", "x"], {}, Placement(cpus=(0,)), "x"),
    ],
)
def test_every_option_of_quick_has_its_effect(
    words: list[str], output: dict[str, Any], where: Placement, label: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[Any, ...]] = []

    def measure_and_show(suite: Suite, asked: RunOptions, output: OutputOptions, **how: Any) -> int:
        called.append((output, suite.name, asked, how["label"]))
        return 0

    monkeypatch.setattr("hockney.cli.measuring.measure_and_show", measure_and_show)
    assert execute(["quick", "--store", "r.db", *words]) == 0
    limits = load_suite("quick").limits(time_s=20.0 if "20s" in words else None)
    shown = OutputOptions("quick", Path("r.db"), **{"as_json": False, **output})
    assert called == [(shown, "quick", RunOptions(placement=where, limits=limits), label)]
