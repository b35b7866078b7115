"""`hockney runs`: what is known of each run, and runs that are named or taken away."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from tests.builders import make_info, make_launch, make_point, make_visit
from tests.cli.support import Cli, command_line, environment

from hockney.cli import run
from hockney.model import PointStatus, RunStatus
from hockney.store import Store

TABLES = ("run", "launch", "point", "visit", "visit_samples", "warning")


@pytest.fixture
def path(tmp_path: Path, filled_store: Path) -> Path:
    """A results file of one's own: run 1 has the label base, run 2 all that a run can have."""
    return Path(shutil.copy(filled_store, tmp_path / "results.db"))


def rows(path: Path) -> dict[str, int]:
    db = sqlite3.connect(path)
    try:
        return {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    finally:
        db.close()


def test_a_run_is_deleted_with_all_that_hangs_on_it(cli: Cli, path: Path) -> None:
    assert all(rows(path).values())
    with Store.open(path) as store:
        kept = store.create_run(make_info("kept"))
        store.add_points(kept, [make_point(8)])
        store.add_launch(kept, make_launch())
        launch_id = max(store.run(kept).launches)
        store.write_round(kept, [make_visit(make_point(8), launch_id=launch_id)])
        store.finish_run(kept, RunStatus.DONE)
    before = rows(path)
    asked = cli("runs", "--delete", "2")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "run 2 (mine, " in asked.stderr
    assert f"would be deleted from {path} for good: --yes does it" in " ".join(asked.stderr.split())
    assert rows(path) == before
    ended = cli("runs", "--delete", "2", "--yes")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert " ".join(ended.stdout.split()) == f"run 2 is deleted from {path}"
    assert rows(path) == {"run": 2, "launch": 1, "point": 1, "visit": 1, "visit_samples": 1, "warning": 0}
    with Store.open(path) as store:
        assert [one.id for one in store.runs()] == [1, kept]
        assert len(store.visits(store.points(kept)[0])) == 1
        assert store.find_run("last~1") == 1
    assert cli("runs", "--delete", str(kept), "--yes").returncode == 0
    with Store.open(path) as store:
        assert store.find_run("last") == 1
        assert store.create_run(make_info()) == kept + 1  # no number is given twice


def test_only_a_number_deletes_and_a_wrong_one_deletes_nothing(cli: Cli, path: Path) -> None:
    before = rows(path)
    for words, said in (
        (["last"], "'last' does not always name the same: it is 2"),
        (["base"], "'base' does not always name the same: it is 1"),
        (["7"], "there is no run 7: the nearest is 2, the newest\n"),
        (["1", "nosuch"], "unknown run 'nosuch'"),
    ):
        ended = cli("runs", *(part for word in words for part in ("--delete", word)))
        assert (ended.returncode, ended.stdout) == (2, "")
        assert said in ended.stderr
    assert rows(path) == before
    assert cli("runs", "--delete", "1", "--yes", "--store", "missing.db").returncode == 3


def test_several_are_deleted_at_once_and_what_their_label_names_now_is_said(cli: Cli, path: Path) -> None:
    with Store.open(path) as store:
        newer = [store.create_run(make_info("base")) for _ in range(2)]
    ended = cli(
        "runs", "--json", "--yes", *(word for number in (*newer, newer[0]) for word in ("--delete", str(number)))
    )
    assert (ended.returncode, ended.stderr) == (0, "the label 'base' names run 1 now\n")
    assert json.loads(ended.stdout)["deleted"] == newer


def test_a_run_that_another_program_measures_is_not_deleted(cli: Cli, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command_line("run", "barrier", "-t", "shm", "--precision", "0.0001%", "--time", "60s"),
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_a_round(tmp_path / "results.db")
        refused = cli("runs", "--delete", "1", "--yes")
        named = cli("runs", "--label", "1", "live")
        shown = cli("runs").stdout.splitlines()[-1]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "run 1 is being measured by another hockney: wait until it is done, or stop it" in refused.stderr
    assert named.returncode == 0
    assert "running" in shown
    killed = cli("runs").stdout.splitlines()[-1].split()
    assert killed[1] == "live"
    assert "killed" in killed
    assert killed[-3:] == ["or", "more", "shm"]  # measured until its last visit, at the least
    assert "`hockney run --resume 1` goes on with it" in cli("show", "live").stdout
    assert cli("runs", "--delete", "1", "--yes").returncode == 0
    assert [one.name for one in tmp_path.glob("results.db-run*")] == []


def wait_for_a_round(path: Path) -> None:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if path.exists():
            with Store.open(path) as store:
                if store.runs() and store.runs()[0].rounds:
                    return
        time.sleep(0.05)
    raise AssertionError("the run does not get on")


def test_a_label_is_given_taken_over_and_taken_away(cli: Cli, path: Path) -> None:
    ended = cli("runs", "--label", "last", "new one")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "run 2 has the label 'new one' now\n", "")
    shared = cli("runs", "--label", "2", "base", "--json")
    assert json.loads(shared.stdout)["labelled"] == 2
    assert shared.stderr == "2 runs have the label 'base': it names the newest of them, run 2\n"
    away = cli("runs", "--label", "2", "")
    assert (away.returncode, away.stdout) == (0, "run 2 has no label now\n")
    with Store.open(path, readonly=True) as store:
        assert [one.label for one in store.runs()] == ["base", None]


@pytest.mark.parametrize("label", ["12", "last", "a~1", "-x", "x" * 41, " ", "two\nlines"])
def test_a_label_that_could_name_no_run_is_refused(label: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--store", str(path), "--label", "1", label]) == 2
    assert "label" in capsys.readouterr().err
    with Store.open(path, readonly=True) as store:
        assert store.runs()[0].label == "base"


def test_completion_knows_what_can_be_deleted_and_named(cli: Cli, filled_store: Path) -> None:
    asked = {"_HOCKNEY_COMPLETE": "bash_complete", "HOCKNEY_STORE": str(filled_store)}
    numbers = cli(**asked, COMP_WORDS="hockney runs --delete ", COMP_CWORD="3")
    assert numbers.stdout == "plain,2\nplain,1\n"
    names = cli(**asked, COMP_WORDS="hockney runs --label b", COMP_CWORD="3")
    assert names.stdout == "plain,base\n"


def test_lines_of_show_are_folded_where_reasons_are_long(cli: Cli, path: Path) -> None:
    reason = "the launcher said: " + "there are not enough slots for all of the ranks; " * 8
    with Store.open(path) as store:
        store.set_status(2, make_point(1024, transport="tcp"), PointStatus.FAILED, reason)
    shown = cli("show", "last").stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert " ".join(shown.split()).count("there are not enough") == 8
