"""Which file is opened, and the sentence where it can't be."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point, run_sql

from hockney.errors import StoreError, WrongStoreError
from hockney.model import RunStatus
from hockney.results.store import Store, default_path, opening, schema

NOBODY = 65534


@contextlib.contextmanager
def without_root() -> Iterator[None]:
    """Root may write everything; permissions are tested as somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


def fill(path: Path, label: str = "kept") -> None:
    with Store.open(path) as store:
        store.create_run(make_info(label), [])


def refused(path: Path, *, readonly: bool = False, create: bool = True) -> str:
    with pytest.raises(StoreError) as caught:
        Store.open(path, readonly=readonly, create=create)
    return str(caught.value)


def test_default_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOCKNEY_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = default_path()
    assert (path.name, path.parent.name) == ("results.db", "hockney")
    assert tmp_path in path.parents


def test_environment_names_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "mine.db"))
    with Store.open() as store:
        assert store.path == tmp_path / "mine.db"
    assert (tmp_path / "mine.db").exists()


def test_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "mine.db"))
    Store.open(str(tmp_path / "yours.db")).close()
    assert [each.name for each in tmp_path.iterdir()] == ["yours.db"]


def test_only_the_users_own_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOCKNEY_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user" / "data"))
    Store.open().close()
    assert default_path().is_file()
    mistyped = tmp_path / "resutls" / "r.db"
    monkeypatch.setenv("HOCKNEY_STORE", str(mistyped))
    for path in (mistyped, None):
        with pytest.raises(WrongStoreError, match=f"there is no folder {mistyped.parent}: make it first"):
            Store.open(path)
    assert not mistyped.parent.exists()


@pytest.mark.parametrize("how", [{"readonly": True}, {"create": False}, {}])
def test_opening_that_creates_nothing(path: Path, how: dict[str, bool]) -> None:
    os.mkfifo(path)
    for one in (Path("/dev/null"), path):
        with pytest.raises(WrongStoreError, match=f"results file {one}: it is not a file"):
            Store.open(one, **how)


def test_names_with_unusual_characters(tmp_path: Path) -> None:
    path = tmp_path / "a b" / "100%?#" / "results.db"
    path.parent.mkdir(parents=True)
    fill(path)
    assert path.exists()
    with Store.open(path, readonly=True) as store:
        assert len(store.runs()) == 1


def test_file_has_an_application_id(path: Path) -> None:
    fill(path)
    expected = {"application_id": 0x484B4E59, "user_version": len(schema.MIGRATIONS), "journal_mode": "wal"}
    assert {name: run_sql(path, f"PRAGMA {name}")[0][0] for name in expected} == expected


def test_closed_store_is_one_file(path: Path) -> None:
    fill(path)
    assert [each.name for each in path.parent.iterdir()] == ["results.db"]


@pytest.mark.parametrize("how", [{"readonly": True}, {"create": False}])
@pytest.mark.parametrize("empty", [False, True])
def test_nothing_there_yet(path: Path, how: dict[str, bool], empty: bool) -> None:
    if empty:
        path.touch()
    assert refused(path, **how) == f"there are no results in {path} yet; measure some"
    assert path.exists() == empty


def test_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    fill(path)
    with Store.open(path, create=False) as store:
        assert len(store.runs()) == 1


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("content", [b"x", b"size,time\n8,1.5\n" * 500, b"SQLite format 3\0"])
def test_not_a_database(path: Path, content: bytes, readonly: bool) -> None:
    path.write_bytes(content)
    text = refused(path, readonly=readonly)
    assert text.startswith(f"results file {path}: not a results file of hockney; ")
    assert path.read_bytes() == content


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("mark", ["CREATE TABLE mine (a)", "PRAGMA user_version = 1", "PRAGMA application_id = 9"])
def test_database_of_another_program(path: Path, mark: str, readonly: bool) -> None:
    run_sql(path, mark)
    before = path.read_bytes()
    assert "a database, but not one of hockney" in refused(path, readonly=readonly)
    assert path.read_bytes() == before


@pytest.mark.parametrize("readonly", [False, True])
def test_store_of_a_newer_version(path: Path, readonly: bool) -> None:
    fill(path)
    run_sql(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    text = refused(path, readonly=readonly)
    assert text == (
        f"results file {path}: written by a newer hockney; update hockney, or name another file with --store or "
        "HOCKNEY_STORE"
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("readonly", [False, True])
def test_store_of_an_earlier_version_is_brought_up_to_date(
    path: Path, monkeypatch: pytest.MonkeyPatch, readonly: bool
) -> None:
    fill(path)

    new = "ALTER TABLE run ADD COLUMN overhead_ns REAL"
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, new])
    with Store.open(path, readonly=readonly) as store:
        assert [run.label for run in store.runs()] == ["kept"]
    assert run_sql(path, "SELECT overhead_ns FROM run") == [(None,)]
    assert run_sql(path, "PRAGMA user_version") == [(len(schema.MIGRATIONS),)]


def test_how_long_a_run_of_an_earlier_version_was_measured_is_not_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been resumed, which was not noted."""
    db = sqlite3.connect(path, isolation_level=None)
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:3])
        schema.migrate(db)
    columns = "command, suite, started_unix_s, finished_unix_s, seed, version, status, facts, plan"
    row = ("hockney quick", "quick", 1000.0, 2000.0, 1, "0.0.9", "interrupted", "{}", "{}")
    db.execute(f"INSERT INTO run ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.close()
    with Store.open(path) as store:
        assert [run.measured_s for run in store.runs()] == [None]
        store.resume_run(1)
        store.finish_run(1, RunStatus.DONE)
        new = store.create_run(make_info(), [])
        store.finish_run(new, RunStatus.DONE)
        old, fresh = store.runs()
        assert old.measured_s is None
        assert fresh.measured_s is not None


def test_when_measurements_of_an_earlier_version_began_is_not_known(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "fresh.db"
    with Store.open(fresh) as store:
        run_id = store.create_run(make_info(), [make_point()])
        store.add_launch(run_id, make_launch())
        store.write_round(run_id, [make_measurement(started_ns=70)])
    db = sqlite3.connect(path, isolation_level=None)
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:5])
        schema.migrate(db)
    db.execute("ATTACH ? AS fresh", (str(fresh),))
    for table in ("run", "launch", "point", "visit", "visit_samples"):  # their earlier names
        columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
        today = columns.replace("visit", "measurement"), table.replace("visit", "measurement")
        db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {today[0]} FROM fresh.{today[1]}")
    db.close()
    with Store.open(path) as store:
        store.write_round(run_id, [make_measurement(started_ns=71)])
        measurements = store.measurements(store.points(run_id)[0]).values()
        assert [measurement.started_ns for measurement in measurements] == [None, 71]


def test_computing_has_one_name_in_runs_of_earlier_versions_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options, the curves of the plan and the command, which `run` may print again."""
    db = sqlite3.connect(path, isolation_level=None)
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:8])
        schema.migrate(db)
    columns = "command, suite, started_unix_s, seed, version, status, facts, plan"
    command = "hockney run oneway -o compute_us=10 -o receiver_compute_us=5"
    options = '{"compute_us":"10","receiver_compute_us":"5","until":"sent"}'
    plan = '{"refine":[["shm","oneway",2,[["compute_us","10"]]]]}'
    row = (command, "oneway", 1000.0, 1, "0.0.9", "done", "{}", plan)
    db.execute(f"INSERT INTO run ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    columns = "run_id, transport, pattern, ranks, bytes, options, role, status"
    db.execute(f"INSERT INTO point ({columns}) VALUES (1, 'shm', 'oneway', 2, 8, '{options}', 'asked', 'precise')")
    db.close()
    with Store.open(path) as store:
        run = store.run(1)
        assert store.points(1)[0].point.options == (("delay_us", "10"), ("receiver_delay_us", "5"), ("until", "sent"))
        assert run.info.plan == {"refine": [["shm", "oneway", 2, [["delay_us", "10"]]]]}
        assert run.info.command == "hockney run oneway -o delay_us=10 -o receiver_delay_us=5"


def test_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)

    half = "CREATE TABLE half (a);\nINSERT INTO nowhere VALUES (1);\n"
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, half])
        assert "no such table: nowhere" in refused(path)
    with Store.open(path) as store:
        assert [run.label for run in store.runs()] == ["kept"]
    assert run_sql(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]


def test_folder_in_place_of_the_file(tmp_path: Path) -> None:
    assert "it is not a file; name another file" in refused(tmp_path)


def test_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "there is no folder" in refused(tmp_path / "file" / "results.db")
    assert "there is no folder" in refused(tmp_path / "file" / "results.db", readonly=True)


def test_damaged_file(path: Path) -> None:
    fill(path)
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996  # the root of the list of tables
    path.write_bytes(content)
    assert "damaged" in refused(path)
    assert "damaged" in refused(path, readonly=True)


@pytest.mark.parametrize("of_folder", [0o777, 0o555])
def test_file_that_may_not_be_written_can_be_read(shared: Path, of_folder: int) -> None:
    path = shared / "results.db"
    fill(path)
    path.chmod(0o444)
    shared.chmod(of_folder)
    with without_root():
        assert "it may not be written" in refused(path)
        with Store.open(path, readonly=True) as store:
            assert [run.label for run in store.runs()] == ["kept"]


def test_folder_that_may_not_be_made(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOCKNEY_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(shared))
    shared.chmod(0o555)
    with without_root():
        assert "cannot make its folder (Permission denied)" in refused(default_path())
        assert "check the permissions of the file and its folder" in refused(shared / "results.db")


def test_store_opened_to_read_can_not_be_written(path: Path) -> None:
    fill(path)
    with Store.open(path, readonly=True) as store, pytest.raises(StoreError, match="it may not be written"):
        store.create_run(make_info(), [])


def test_waiting_for_a_lock_ends_with_a_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    monkeypatch.setattr(opening, "BUSY_S", 0.01)
    store = Store.open(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another program has kept it locked"):
        store.create_run(make_info(), [])
    other.execute("ROLLBACK")
    assert store.create_run(make_info(), []) == 2
    other.close()
    store.close()


def test_reader_does_not_wait_for_a_writer(path: Path) -> None:
    with Store.open(path) as store:
        run_id = store.create_run(make_info(), [make_point()])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with Store.open(path, readonly=True) as reader:
            assert len(reader.points(run_id)) == 1
        other.execute("ROLLBACK")
        other.close()
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            store.write_round(run_id, [make_measurement()])  # launch 1 is not there: keys are enforced


OPENER = """
import sys
from hockney.results.store import Store
from tests.builders import make_info
sys.stdin.readline()
with Store.open() as store:
    store.create_run(make_info(), [])
"""


def test_programs_that_create_the_store_concurrently(tmp_path: Path, child_environment: dict[str, str]) -> None:
    """Its folder too."""
    path = tmp_path / "data" / "hockney" / "results.db"
    environment = {name: value for name, value in child_environment.items() if name != "HOCKNEY_STORE"}
    environment["XDG_DATA_HOME"] = str(tmp_path / "data")
    children = [
        subprocess.Popen([sys.executable, "-c", OPENER], stdin=subprocess.PIPE, env=environment, text=True)
        for _ in range(6)
    ]
    for child in children:
        child.communicate("go\n", timeout=120)
    assert [child.returncode for child in children] == [0] * 6
    with Store.open(path, readonly=True) as store:
        assert [run.id for run in store.runs()] == [1, 2, 3, 4, 5, 6]


def test_only_a_file_that_holds_results_is_one(tmp_path: Path) -> None:
    """Neither another program's database, nor a file with the right number in the right place by chance."""
    fill(tmp_path / "results")
    head = (tmp_path / "results").read_bytes()[:100]
    run_sql(tmp_path / "database", "CREATE TABLE t (x)")
    (tmp_path / "number").write_bytes(b"-" * 16 + head[16:])
    (tmp_path / "short").write_bytes(head[:16])
    names = ("results", "database", "number", "short", "nothing", ".")
    assert [name for name in names if opening.is_results_file(tmp_path / name)] == ["results"]
