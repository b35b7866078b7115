"""Runs of another results file are copied whole and once, and damaged ones are not."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point, run_sql
from tests.cli.support import PINGPONG, fill

from hockney.cli import execute
from hockney.errors import DamagedRowWarning, StoreError, UsageError
from hockney.results.store import Store, merging, schema
from hockney.results.store.lock import alone
from hockney.results.store.merging import DAMAGED, FEWER, HERE, MEASURED, OTHER, Merged, merge


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A file with two runs."""
    fill(tmp_path / "other.db")
    return tmp_path / "other.db"


def merged(path: Path, other: Path) -> list[Merged]:
    with Store.open(path) as store:
        return merge(store, other)


def exported(path: Path, run: int, capsys: pytest.CaptureFixture[str]) -> Any:
    """Everything of a run, with its samples, but its number and those of its launches."""
    assert execute(["export", str(run), "--json", "--samples", "--store", str(path)]) == 0
    document = json.loads(capsys.readouterr().out)
    document["run"].pop("id")
    order = {launch.pop("id"): number for number, launch in enumerate(document["launches"])}
    for series in document["series"]:
        for measurement in series.get("measurements", ()):
            measurement["launch_id"] = order[measurement["launch_id"]]
    return document


def test_a_run_is_copied_whole(path: Path, other: Path, run_id: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert merged(path, other) == [Merged(1, run_id + 1), Merged(2, run_id + 2)]
    for run in (1, 2):
        assert exported(path, run_id + run, capsys) == exported(other, run, capsys)
    with Store.open(path) as store:
        assert store.find_run("base") == run_id + 1
        assert [run.warnings for run in map(store.run, (1, 2, 3))][-1]


def test_a_run_is_copied_once(path: Path, other: Path) -> None:
    merged(path, other)
    assert merged(path, other) == [Merged(1, 1, HERE), Merged(2, 2, HERE)]
    with Store.open(other) as store:
        store.create_run(make_info(started_unix_s=1_770_000_000.0), [make_point()])
    assert merged(path, other) == [Merged(1, 1, HERE), Merged(2, 2, HERE), Merged(3, 3)]


def test_a_run_that_was_resumed_there_is_named(path: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged(path, other)
    with Store.open(other) as store:
        launch = store.add_launch(2, make_launch())
        store.write_round(2, [make_measurement(PINGPONG, launch_id=launch, round_=16)])
    assert merged(path, other) == [Merged(1, 1, HERE), Merged(2, 2, FEWER)]
    assert execute(["import", str(other), "--store", str(path)]) == 3
    assert f"{other}: 1 run not copied, here with fewer measurements: 2\n" in capsys.readouterr().out
    assert merged(other, path) == [Merged(1, 1, HERE), Merged(2, 2, HERE)]


def test_a_run_that_was_resumed_on_both_sides_is_named(path: Path, other: Path) -> None:
    """With as many measurements."""
    merged(path, other)
    for file, elapsed_ns in ((path, 100), (other, 200)):
        with Store.open(file) as store:
            launch = store.add_launch(2, make_launch())
            one = make_measurement(PINGPONG, launch_id=launch, round_=16)
            store.write_round(2, [replace(one, elapsed_ns=one.elapsed_ns * 0 + elapsed_ns)])
    assert merged(path, other) == [Merged(1, 1, HERE), Merged(2, 2, OTHER)]
    assert merged(other, path) == [Merged(1, 1, HERE), Merged(2, 2, OTHER)]


def test_a_copy_moves_no_baseline(path: Path, other: Path) -> None:
    with Store.open(other) as store:
        store.accept_run(2, "ana")
    assert merged(path, other) == [Merged(1, 1), Merged(2, 2)]
    with Store.open(path) as store:
        assert store.accepted() is None
        assert [run.accepted for run in store.runs()] == [None, None]


def test_copies_are_in_the_order_of_their_dates(path: Path, other: Path) -> None:
    with Store.open(other) as store:
        store.create_run(make_info(started_unix_s=1_755_000_000.0), [make_point()])
    assert merged(path, other) == [Merged(1, 1), Merged(3, 2), Merged(2, 3)]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE point SET bytes = 9 WHERE id = 3",
        "DELETE FROM point WHERE id = 4",
        "DELETE FROM launch WHERE id = 1",
        "DELETE FROM warning",
        "UPDATE measurement SET median_ns = 1.0 WHERE id = 7",
        "DELETE FROM measurement WHERE id = 7",
        "DELETE FROM measurement_samples WHERE measurement_id = 7",
        "UPDATE measurement_samples SET elapsed_ns = x'01' WHERE measurement_id = 7",
    ],
)
def test_a_damaged_run_is_left_out(edit: str, path: Path, other: Path) -> None:
    run_sql(other, edit)
    assert merged(path, other) == [Merged(1, 1), Merged(2, None, DAMAGED)]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("UPDATE run SET seed = 99 WHERE id = 2", "run 2 is damaged and left out"),
        ("DELETE FROM run WHERE id = 2", "a run is missing"),
    ],
)
def test_a_lost_run_is_named(edit: str, said: str, path: Path, other: Path) -> None:
    run_sql(other, edit)
    with pytest.warns(DamagedRowWarning, match=f"{other}: {said}"):
        assert merged(path, other) == [Merged(1, 1)]


def test_a_run_that_is_being_measured_is_left_out(path: Path, other: Path) -> None:
    with alone(other, 2):
        assert merged(path, other) == [Merged(1, 1), Merged(2, None, MEASURED)]
    assert merged(path, other) == [Merged(1, 1, HERE), Merged(2, 2)]


def test_a_copy_that_fails_leaves_whole_runs_and_goes_on(
    path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inserted = merging._insert

    def fails(store: Store, run: Any, rows: Any) -> int:
        number = inserted(store, run, rows)
        if run["id"] == 2:
            raise sqlite3.OperationalError("database or disk is full")
        return number

    monkeypatch.setattr(merging, "_insert", fails)
    with Store.open(path) as store:
        with pytest.raises(StoreError, match="the disk is full"):
            merge(store, other)
        assert [run.id for run in store.runs()] == [1]
        monkeypatch.undo()
        assert merge(store, other) == [Merged(1, 1, HERE), Merged(2, 2)]


def test_another_program_writes_between_two_copies(
    path: Path, other: Path, run_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is measured here meanwhile, and another copy of the same file."""
    rows_of = merging._rows_of

    def interrupted(of: Store, number: int) -> Any:
        with Store.open(path) as second:
            launch = second.add_launch(run_id, make_launch())
            second.write_round(run_id, [make_measurement(PINGPONG, launch_id=launch, round_=number)])
            if number == 2:
                monkeypatch.undo()
                assert merge(second, of.path) == [Merged(1, run_id + 1, HERE), Merged(2, run_id + 2)]
        return rows_of(of, number)

    monkeypatch.setattr(merging, "_rows_of", interrupted)
    assert merged(path, other) == [Merged(1, run_id + 1), Merged(2, run_id + 2, HERE)]
    with Store.open(path) as store:
        assert [run.id for run in store.runs()] == [run_id, run_id + 1, run_id + 2]
        assert store.run(run_id).rounds == 2


def test_the_file_itself_is_refused(other: Path) -> None:
    with Store.open(other) as store, pytest.raises(UsageError, match="is the results file itself"):
        merge(store, other)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (f"PRAGMA user_version = {schema.VERSION + 1}", "written by another version of hockney"),
        ("PRAGMA application_id = 7", "a database, but not one of hockney"),
        ("DROP TABLE warning", "it is damaged"),
    ],
)
def test_another_database_is_one_sentence(
    edit: str, said: str, path: Path, other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_sql(other, edit)
    assert execute(["import", str(other), "--store", str(path)]) == 2
    output = capsys.readouterr().err
    assert f"results file {other}: {said}" in output
    assert output.count("\n") == 1


def test_the_command_names_what_it_does_not_copy(path: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["import", str(other), "--store", str(path)]
    assert execute(words) == 0
    assert capsys.readouterr().out.startswith("2 of 2 runs copied. Next: `hockney history --store ")
    run_sql(other, "UPDATE measurement SET median_ns = 1.0 WHERE id = 7")
    with Store.open(path) as store:
        store.delete_runs([2])
    assert execute(words) == 3
    said = f"{other}: 1 run not copied, here already: 1\n{other}: 1 run not copied, damaged: 2\n0 of 2 runs copied."
    assert said in capsys.readouterr().out
    for option in (("-t", "tcp"), ("-l", "x"), (str(path.with_name("output.txt")),)):
        assert execute([*words, *option]) == 2
        assert "holds runs of hockney" in capsys.readouterr().err
