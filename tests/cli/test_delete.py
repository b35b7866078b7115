"""`hockney delete`: deleted runs, kept runs, and refusals."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.support import FACTS, PINGPONG, Cli, call_here, command_line, environment
from tests.shared import finished

from hockney.model import RunInfo, RunStatus
from hockney.results.store import Store
from hockney.results.store.lock import alone


def rows_in(path: Path) -> dict[str, int]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        tables = ("run", "point", "launch", "measurement", "measurement_samples", "warning")
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


def test_a_deleted_run_is_gone_with_its_measurements_and_no_other(cli: Cli, path: Path) -> None:
    other = cli("show", "1", "--json").stdout
    ended = cli("delete", "last")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("deleted run 2: mine, ")
    assert cli("show", "1", "--json").stdout == other
    with Store.open(path, readonly=True) as store:
        assert [run.id for run in store.runs()] == [1]
    assert cli("delete", "base", "1", "--yes").returncode == 0
    assert set(rows_in(path).values()) == {0}


def test_numbers_of_deleted_runs_are_not_used_again(cli: Cli, path: Path) -> None:
    assert json.loads(cli("delete", "2", "1", "--json").stdout)["deleted"] == [1, 2]
    assert cli("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "0.2s").returncode in (0, 3)
    with Store.open(path, readonly=True) as store:
        assert [run.id for run in store.runs()] == [3]


def test_a_run_under_way_is_refused_and_nothing_is_deleted(cli: Cli, path: Path) -> None:
    before = rows_in(path)
    with alone(path, 2):
        ended = cli("delete", "1", "2", "--yes")
    assert ended.returncode == 2
    assert "run 2 is being measured" in ended.stderr
    assert rows_in(path) == before


def test_an_unknown_run_is_refused_and_nothing_is_deleted(cli: Cli, path: Path) -> None:
    before = rows_in(path)
    ended = cli("delete", "1", "77", "--yes")
    assert ended.returncode == 2
    assert "there is no run 77" in ended.stderr
    assert rows_in(path) == before


@pytest.mark.parametrize(("answer", "left"), [("n", 2), ("y", 1)])
def test_on_a_terminal_it_asks(path: Path, tmp_path: Path, answer: str, left: int) -> None:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = finished(command_line("delete", "1"), env=environment(tmp_path), stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0
    assert ("nothing was deleted" in done.stderr) is (answer == "n")
    assert "Ctrl-C" not in done.stderr
    assert "Delete 1 run?" in done.stderr
    assert rows_in(path)["run"] == left


@pytest.fixture
def aged(path: Path) -> list[int]:
    """Runs of 1, 2, … 6 days ago, the oldest first; the third has a label, and the fourth that of bisect.

    The sixth is being measured.
    """
    info = RunInfo("hockney quick", "quick", None, 0.0, 1, "0.1.0", FACTS, {"launches": 1})
    made = []
    with Store.open(path) as store:
        store.delete_runs([run.id for run in store.runs()])
        for days in range(6, 0, -1):
            label = {4: "kept", 3: "bisect"}.get(days)
            begun_unix_s = time.time() - 86400 * days
            made.append(store.create_run(replace(info, label=label, started_unix_s=begun_unix_s), [PINGPONG]))
            if days > 1:
                store.finish_run(made[-1], RunStatus.DONE)
    return made


@pytest.mark.parametrize(
    ("arguments", "deleted"),
    [
        (("--older", "90d"), []),
        (("--older", "60h"), [0, 1, 3]),  # 6, 5 and 3 days old; the label of 4 days ago stays
        (("--keep", "4"), [0, 1]),
        (("--keep", "30"), []),
        (("--keep", "0"), [0, 1, 3, 4]),
        (("--older", "60h", "--keep", "5"), [0]),
        (("--older", "5.5d", "--keep", "1"), [0]),
    ],
)
def test_old_runs_go_and_labelled_ones_stay(
    aged: list[int], path: Path, tmp_path: Path, arguments: tuple[str, ...], deleted: list[int]
) -> None:
    with alone(path, aged[-1]):
        ended = call_here(tmp_path, "delete", *arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["deleted"] == [aged[place] for place in deleted]
    assert ("nothing was deleted" in ended.stderr) == (not deleted)
    with Store.open(path, readonly=True) as store:
        assert len(store.runs()) == 6 - len(deleted)


@pytest.mark.parametrize("arguments", [(), ("last", "--older", "1d"), ("1", "--keep", "3")])
def test_runs_are_named_or_chosen(cli: Cli, path: Path, arguments: tuple[str, ...]) -> None:
    before = rows_in(path)
    ended = cli("delete", *arguments)
    assert ended.returncode == 2
    assert "name the runs to delete, or choose them with --older 90d, --keep 30 or both" in ended.stderr
    assert rows_in(path) == before
