"""`hockney runs`: the facts of each run, and new labels of runs."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.analysis.compare.delayed import plan
from tests.analysis.compare.made import add_run, curve
from tests.builders import make_info, make_launch, make_measurement, make_point
from tests.cli.support import Cli, command_line, environment
from tests.measure.test_run import wait_for_rounds

from hockney.cli import execute
from hockney.model import IMPORTED, PointStatus, RunStatus
from hockney.results.store import Store


def test_a_run_is_labelled_while_it_is_measured_and_a_killed_one_says_how_long_it_was(cli: Cli, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command_line("run", "barrier", "-t", "shm", "--precision", "0.0001%", "--time", "60s"),
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_rounds(tmp_path / "results.db", 1)
        named = cli("runs", "--label", "1", "live")
        shown = cli("runs").stdout.splitlines()[-1]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert named.returncode == 0
    assert "running" in shown
    killed = cli("runs").stdout.splitlines()[-1].split()
    assert killed[1] == "live"
    assert "killed" in killed
    assert killed[-3:] == ["or", "more", "shm"]  # measured until its last measurement, at the least
    assert "`hockney run --resume 1`" in cli("show", "live").stdout


def test_points_are_counted_alike_however_a_run_ends(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    points = [make_point(size) for size in (8, 16, 32)]
    with Store.open(path) as store:
        for status in (RunStatus.DONE, RunStatus.STOPPED, RunStatus.KILLED):
            run_id = store.create_run(make_info(), points, {make_point(64): "too long"})
            launch_id = store.add_launch(run_id, make_launch())
            for round_ in range(2):
                measurements = [make_measurement(point, launch_id=launch_id, round_=round_) for point in points[:2]]
                store.write_round(run_id, measurements)
            store.set_status(run_id, points[0], PointStatus.PRECISE)
            if status is RunStatus.DONE:
                store.set_status(run_id, points[2], PointStatus.FAILED, "rank 1 was killed")
            if status is not RunStatus.KILLED:
                store.finish_run(run_id, status)
    listed = cli("runs").stdout.splitlines()[-3:]
    assert ["2/3" in line.split() for line in listed] == [True] * 3
    runs = json.loads(cli("runs", "--json").stdout)["runs"]
    assert [(run["measured_points"], run["planned_points"]) for run in runs] == [(2, 3)] * 3


def test_the_document_of_a_run_has_the_stored_facts(cli: Cli, path: Path) -> None:
    with Store.open(path, readonly=True) as store:
        stored = store.runs()
    documents = json.loads(cli("runs", "--json").stdout)["runs"]
    names = ("label", "command", "suite", "started_unix_s", "finished_unix_s", "measured_s", "rounds")
    assert [{name: document[name] for name in names} for document in documents] == [
        {name: getattr(run, name) for name in names} for run in stored
    ]
    assert all(document["started_unix_s"] < document["finished_unix_s"] for document in documents)


def test_a_label_is_given_taken_over_and_taken_away(cli: Cli, path: Path) -> None:
    ended = cli("runs", "--label", "last", "new one")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "run 2 has the label 'new one' now\n", "")
    longest = cli("runs", "--label", "last", "x" * 40)
    assert longest.returncode == 0
    shared = cli("runs", "--label", "2", "base", "--json")
    assert json.loads(shared.stdout)["labelled"] == 2
    away = cli("runs", "--label", "2", "")
    assert (away.returncode, away.stdout, away.stderr) == (0, "run 2 has no label now\n", "")
    with Store.open(path, readonly=True) as store:
        assert [run.label for run in store.runs()] == ["base", None]


@pytest.mark.parametrize("label", ["12", "last", "a~1", "-x", "x" * 41, " ", "two\nlines"])
def test_a_label_that_could_name_no_run_is_refused(label: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["runs", "--store", str(path), "--label", "1", label]) == 2
    assert "label" in capsys.readouterr().err
    with Store.open(path, readonly=True) as store:
        assert store.runs()[0].label == "base"


@pytest.fixture
def bases(path: Path) -> tuple[str, str]:
    """Two runs that can be a baseline, the first with a label."""
    with Store.open(path) as store:
        made = [add_run(store, curve("shm", (8,)), plan=plan("shm").as_json(), label=label) for label in ("good", None)]
    return str(made[0]), str(made[1])


def test_a_baseline_moves_only_when_another_is_accepted(cli: Cli, path: Path, bases: tuple[str, str]) -> None:
    one, two = bases
    none = cli("check")
    assert none.returncode == 2
    assert "no run is accepted as the baseline: " in none.stderr
    assert "hockney baseline accept last" in none.stderr
    assert cli("baseline").stdout.startswith("no run is accepted as the baseline: ")
    accepted = cli("baseline", "accept", one, LOGNAME="ana").stdout
    assert accepted.startswith(f"run {one} (good) is the baseline: accepted by ana, 20")
    assert cli("baseline", "accept", "last", LOGNAME="bo").stdout.endswith(f", in place of run {one}\n")
    assert cli("baseline").stdout in cli("runs").stdout
    assert cli("baseline").stdout.startswith(f"run {two}")
    assert json.loads(cli("baseline", "--json").stdout)["replaces"] == int(one)
    again = json.loads(cli("baseline", "accept", one, "--json").stdout)  # back again
    assert (again["accepted"], again["replaces"]) == (int(one), int(two))
    first, second = (run["accepted"] for run in json.loads(cli("runs", "--json").stdout)["runs"][-2:])
    assert (second["by"], second["replaces"], second["replaced_by"]) == ("bo", int(one), int(one))
    assert (first["replaces"], first["replaced_by"]) == (int(two), None)
    assert cli("show", "accepted", "--json").stdout == cli("show", one, "--json").stdout
    deleted = json.loads(cli("delete", "--keep", "0", "--yes", "--json").stdout)["deleted"]
    assert not {int(one), int(two)}.intersection(deleted)
    cli("runs", "--label", two, "accepted")
    with Store.open(path, readonly=True) as store:
        assert store.find_run("accepted") == int(two)  # a label that someone gave


def test_a_deleted_baseline_is_replaced_by_none(cli: Cli, bases: tuple[str, str]) -> None:
    for run in bases:
        cli("baseline", "accept", run)
    cli("delete", bases[1], "--yes")
    assert cli("baseline").stdout.startswith("no run is accepted as the baseline: ")
    assert cli("check").returncode == 2
    assert cli("show", "accepted").returncode == 2
    accepted = json.loads(cli("baseline", "accept", bases[0], "--json").stdout)
    assert (accepted["accepted"], accepted["replaces"]) == (int(bases[0]), None)


def test_what_no_check_can_measure_again_is_not_accepted(cli: Cli, path: Path) -> None:
    with Store.open(path) as store:
        few = add_run(store, curve("shm", (8,)), launches=2, plan=plan("shm", launches=2).as_json())
        imported = add_run(store, curve("shm", (8,)), plan={IMPORTED: []})
    for run, why in ((few, "it has 2 launches"), (imported, "it was imported"), (1, "none of its points has samples")):
        refused = cli("baseline", "accept", str(run))
        assert refused.returncode == 2
        assert why in refused.stderr
        assert refused.stderr == cli("check", "--baseline", str(run)).stderr
    assert cli("baseline").stdout.startswith("no run is accepted as the baseline: ")


def test_half_a_sentence_accepts_nothing(cli: Cli) -> None:
    for words in (("accept",), ("reject", "1")):
        refused = cli("baseline", *words)
        assert refused.returncode == 2
        assert len(refused.stderr.splitlines()) == 1


def test_completion_knows_runs_to_label(cli: Cli, filled_store: Path) -> None:
    asked = {"_HOCKNEY_COMPLETE": "bash_complete", "HOCKNEY_STORE": str(filled_store)}
    names = cli(**asked, COMP_WORDS="hockney runs --label b", COMP_CWORD="3")
    assert names.stdout == "plain,base\n"


def test_lines_of_show_are_folded_where_reasons_are_long(cli: Cli, path: Path) -> None:
    reason = "the launcher said: " + "there are not enough slots for all of the ranks; " * 8
    with Store.open(path) as store:
        store.set_status(2, make_point(1024, transport="tcp"), PointStatus.FAILED, reason)
    shown = cli("show", "last").stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert " ".join(shown.split()).count("there are not enough") == 8
