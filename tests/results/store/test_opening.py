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
from tests.builders import make_info, make_measurement, make_point, run_sql

from hockney.errors import StoreError, WrongStoreError
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


def test_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "mine.db"))
    Store.open(str(tmp_path / "yours.db")).close()
    assert [each.name for each in tmp_path.iterdir()] == ["yours.db"]
    with Store.open() as store:
        assert store.path == tmp_path / "mine.db"


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
    expected = {"application_id": 0x484B4E59, "user_version": schema.VERSION, "journal_mode": "wal"}
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


@pytest.mark.parametrize("content", [b"x", b"size,time\n8,1.5\n" * 500, b"SQLite format 3\0"])
def test_not_a_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for readonly in (False, True):
        text = refused(path, readonly=readonly)
        assert text.startswith(f"results file {path}: not a results file of hockney; ")
        assert path.read_bytes() == content


MINE = f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version ="
OTHER = "written by another version of hockney; read it with that version, or name another file with --store"


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("CREATE TABLE mine (a)", "a database, but not one of hockney"),
        ("PRAGMA user_version = 1", "a database, but not one of hockney"),
        ("PRAGMA application_id = 9", "a database, but not one of hockney"),
        (f"{MINE} {schema.VERSION - 1}", OTHER),
        (f"{MINE} {schema.VERSION + 1}", OTHER),
    ],
)
def test_database_of_another_program_or_version_is_refused(path: Path, mark: str, said: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(mark)
    before = path.read_bytes()
    for readonly in (False, True):
        assert refused(path, readonly=readonly).startswith(f"results file {path}: {said}")
    assert path.read_bytes() == before


def test_tables_are_made_all_or_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = "CREATE TABLE half (a);\nINSERT INTO nowhere VALUES (1);\n"
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_TABLES", half)
        assert "no such table: nowhere" in refused(path)
    assert refused(path, readonly=True) == f"there are no results in {path} yet; measure some"
    fill(path)
    assert run_sql(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]


def test_changed_tables_are_damage(path: Path) -> None:
    fill(path)
    run_sql(path, "ALTER TABLE run RENAME COLUMN rounds TO sounds")
    for readonly in (False, True):
        assert "it is damaged; restore it from a copy" in refused(path, readonly=readonly)


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
