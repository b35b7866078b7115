"""A damaged results file: damage is named and left out, the rest is shown, and nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.builders import run_sql
from tests.cli.support import fill

from hockney.cli import execute
from hockney.results.store.codec import encode

VALUES = ("x", -1, b"\x00\xff", '{"a":[1]}', float("inf"), None)
BELOW_ZERO = np.array([[40, -1], [40, 40]], dtype=np.int64)
COMMANDS = (
    ("runs", "--json"), ("show", "2"), ("explain", "2"), ("compare", "1", "2"),
    ("export", "2", "--csv"), ("export", "2", "--json", "--samples"),
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "whole.db"
    fill(path)
    run_sql(path, "PRAGMA journal_mode = DELETE")  # everything is in one file
    return path


@pytest.fixture(autouse=True)
def no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def columns() -> Iterator[tuple[str, str]]:
    """Of every table."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        from hockney.results.store.schema import migrate

        db.isolation_level = None
        migrate(db)
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        for (table,) in tables.fetchall():
            yield from ((table, row[1]) for row in db.execute(f"PRAGMA table_info({table})").fetchall())


def codes(path: Path, capsys: pytest.CaptureFixture[str], case: object) -> set[int]:
    """The exit codes of all commands; each must end as documented, with sentences."""
    exit_codes = set()
    for words in COMMANDS:
        code = execute([*words, "--store", str(path)])
        said = capsys.readouterr()
        assert "a fault in hockney" not in said.err, (case, words, said.err)
        assert "Traceback" not in said.err
        assert code in (0, 2, 3), (case, words)
        assert code == 0 or said.err or said.out
        exit_codes.add(code)
    return exit_codes


@pytest.mark.full
@pytest.mark.parametrize(("table", "column"), list(columns()))
def test_an_edited_field_is_no_traceback(
    table: str, column: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in VALUES:
        path = Path(shutil.copy(whole, tmp_path / "edited.db"))
        with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error), db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT max(rowid) FROM {table})", (value,))
        codes(path, capsys, value)


@pytest.mark.full
def test_a_flipped_bit_is_no_traceback(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, data = random.Random(15), whole.read_bytes()
    path = tmp_path / "flipped.db"
    for _ in range(40):
        flipped, place = bytearray(data), source.randrange(100, len(data))
        flipped[place] ^= 1 << source.randrange(8)
        path.write_bytes(flipped)
        codes(path, capsys, place)


@pytest.mark.parametrize(
    ("edit", "said", "left"),
    [
        ("UPDATE run SET status = 'x' WHERE id = 1", "run 1 is damaged and left out", "runs"),
        ("UPDATE point SET bytes = 'x' WHERE id = 4", "a point of run 2 is damaged and left out", "show"),
        ("UPDATE launch SET cpus = '[' WHERE id = 2", "launch 2 of run 2 is damaged", "show"),
        ("UPDATE measurement SET batch = 0 WHERE id = 9", "a measurement of pingpong", "show"),
        ("UPDATE warning SET cause = x'00'", "a warning of run 2 is damaged", "show"),
        ("UPDATE measurement SET steal = 1.01 WHERE id = 9", "a measurement of pingpong", "show"),
        ("UPDATE measurement SET floor_after_ns = 0 WHERE id = 9", "a measurement of pingpong", "show"),
        ("UPDATE measurement SET divisor = 0 WHERE id = 9", "a measurement of pingpong", "show"),
        ("UPDATE measurement SET timed = 'rank 2' WHERE id = 9", "a measurement of pingpong", "show"),
        ("UPDATE measurement SET samples = 0 WHERE id = 9", "a measurement of run 2 is damaged", "show"),
        ("UPDATE measurement SET median_ns = -1 WHERE id = 9", "a measurement of run 2 is damaged", "show"),
        (
            f"UPDATE measurement_samples SET elapsed_ns = x'{encode(BELOW_ZERO).hex()}' WHERE measurement_id = 9",
            "a measurement of pingpong",
            "show",
        ),
        ("UPDATE point SET ranks = 0 WHERE id = 4", "a point of run 2 is damaged and left out", "show"),
        ("UPDATE point SET ranks = 1048577 WHERE id = 4", "a point of run 2 is damaged and left out", "show"),
        ("UPDATE launch SET clock_ns = -1 WHERE id = 2", "launch 2 of run 2 is damaged", "show"),
    ],
)
def test_a_damaged_row_is_named_once_and_the_rest_is_shown(
    edit: str, said: str, left: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, edit)
    assert execute([left, "--store", str(path)]) == 3
    output = capsys.readouterr()
    lines = [line for line in output.err.splitlines() if said in line]
    assert len(lines) == 1, output.err
    assert lines[0].startswith(f"hockney: results file {path}: ")
    assert "mine" in output.out


@pytest.mark.parametrize(
    "edit",
    [
        "measurement SET steal = 1 WHERE id = 9",
        "measurement SET steal = 0 WHERE id = 9",
        "measurement SET floor_after_ns = 0.001 WHERE id = 9",
        "measurement SET timed = 'rank 1' WHERE id = 9",
        "measurement SET batch = 1 WHERE id = 9",
        "point SET ranks = 1048576 WHERE id = 4",
        "launch SET clock_ns = 0 WHERE id = 2",
        "launch SET ranks = 1 WHERE id = 2",
    ],
)
def test_a_value_at_its_limit_is_no_damage(
    edit: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, f"UPDATE {edit}")
    assert execute(["show", "2", "--store", str(path)]) == 0
    assert "damaged" not in capsys.readouterr().err


def test_a_damaged_run_is_wrong_usage_and_others_can_be_shown(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, "UPDATE run SET plan = '[' WHERE id = 2")
    assert execute(["show", "2", "--store", str(path)]) == 2
    assert "run 2 is damaged; name another run" in capsys.readouterr().err
    assert execute(["show", "1", "--store", str(path)]) == 0
