"""A damaged results file: damage is named and left out, the rest is shown, and nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.builders import run_sql, set_columns
from tests.cli.support import fill
from tests.matrix import matrix

from hockney.cli import execute
from hockney.results.store.codec import encode
from hockney.results.store.schema import make

VALUES = ("x", -1, b"\x00\xff", '{"a":[1]}', float("inf"), None)
BELOW_ZERO = np.array([[40, -1], [40, 40]], dtype=np.int64)
COMMANDS = (
    ("runs", "--json"), ("show", "2"), ("export", "2", "--csv"), ("export", "2", "--json", "--samples"),
    ("explain", "2"), ("compare", "1", "2"),
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
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        make(db)
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        for (table,) in tables.fetchall():
            yield from ((table, row[1]) for row in db.execute(f"PRAGMA table_info({table})").fetchall())


def outcomes(
    path: Path, capsys: pytest.CaptureFixture[str], case: object, commands: tuple[tuple[str, ...], ...] = COMMANDS
) -> dict[tuple[str, ...], tuple[int, str]]:
    """The exit codes and outputs of commands; each must end as documented, with sentences."""
    known = {}
    for words in commands:
        code = execute([*words, "--store", str(path)])
        said = capsys.readouterr()
        assert "a fault in hockney" not in said.err, (case, words, said.err)
        assert "Traceback" not in said.err
        assert code in (0, 2, 3), (case, words)
        assert code == 0 or said.err or said.out
        known[words] = code, said.out
    return known


@pytest.mark.full
@pytest.mark.parametrize(("table", "column"), list(columns()))
def test_an_edited_field_changes_no_figure_without_a_word(
    table: str, column: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    sound = outcomes(path, capsys, "sound")
    for value in VALUES:
        shutil.copy(whole, path)
        with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error), db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT max(rowid) FROM {table})", (value,))
        assert_told(sound, outcomes(path, capsys, value), value)


def assert_told(
    sound: dict[tuple[str, ...], tuple[int, str]], damaged: dict[tuple[str, ...], tuple[int, str]], case: object
) -> None:
    """Exit code 0 means the same output as of the sound file."""
    changed = [words for words, (code, text) in damaged.items() if code == 0 and text != sound[words][1]]
    assert not changed, case


@pytest.mark.parametrize("part", matrix(range(8), short=[0, 3]))
def test_a_flipped_bit_is_no_traceback_and_changes_no_figure_without_a_word(
    part: int, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In 30 places a part, evenly over the whole file, and in one byte of the head of each page."""
    path = Path(shutil.copy(whole, tmp_path / "flipped.db"))
    data, sound = whole.read_bytes(), outcomes(path, capsys, "sound")
    heads = [page + offset for page in range(0, len(data), 4096) for offset in range(8)]
    step = len(data) / 240
    for place in [*(int((8 * i + part) * step) + part for i in range(30)), *heads[part::8]]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << place // 3 % 8
        path.write_bytes(flipped)
        assert_told(sound, outcomes(path, capsys, place, COMMANDS[:4]), place)


def test_a_message_of_sqlite_with_damaged_bytes_is_a_sentence(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "edited.db"
    path.write_bytes(whole.read_bytes().replace(b"measurement_by_point", b"measurement_by_poin\xff"))
    assert {code for code, _ in outcomes(path, capsys, "name of an index").values()} == {2}


@pytest.mark.parametrize(
    ("edit", "said", "left"),
    [
        ("UPDATE run SET status = 'x' WHERE id = 1", "run 1 is damaged and left out", "runs"),
        ("UPDATE run SET label = CAST(x'ff' AS TEXT) WHERE id = 1", "run 1 is damaged and left out", "runs"),
        ("UPDATE point SET bytes = 'x' WHERE id = 4", "a point of run 2 is damaged and left out", "show"),
        ("UPDATE point SET options = x'ff' WHERE id = 4", "a point of run 2 is damaged and left out", "show"),
        ("UPDATE launch SET cpus = '[' WHERE id = 2", "a launch of run 2 is damaged", "show"),
        ("UPDATE warning SET cause = x'00'", "a warning of run 2 is damaged", "show"),
        ("UPDATE measurement SET divisor = 2 * divisor WHERE id = 9", "a measurement of run 2 is damaged", "show"),
        (
            f"UPDATE measurement_samples SET elapsed_ns = x'{encode(BELOW_ZERO).hex()}' WHERE measurement_id = 9",
            "a measurement of pingpong",
            "show",
        ),
        ("DELETE FROM run WHERE id = 1", "a run is missing", "runs"),
        ("DELETE FROM store", "a run is missing", "runs"),
        ("DELETE FROM point WHERE id = 4", "a point of run 2 is missing", "show"),
        ("DELETE FROM launch WHERE id = 2", "a launch of run 2 is missing", "show"),
        ("DELETE FROM warning", "a warning of run 2 is missing", "show"),
        ("DELETE FROM measurement WHERE id = 9", "a measurement of pingpong of 8 B on shm, 2 ranks is missing", "show"),
        ("DELETE FROM measurement_samples WHERE measurement_id = 9", "a measurement of pingpong of 8 B on shm", "show"),
    ],
)
def test_a_damaged_or_missing_row_is_named_once_and_the_rest_is_shown(
    edit: str, said: str, left: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, edit)
    assert execute([left, "--store", str(path)]) == 3
    output = capsys.readouterr()
    assert output.err.count(f"hockney: results file {path}: {said}") == 1, output.err
    assert "mine" in output.out


@pytest.mark.parametrize("facts", ["[]", "7", '{"cpu": 3}', '{"cpu": {"model": ["x"]}, "transports": {"shm": 1}}', "x"])
def test_facts_of_wrong_types_are_damage(
    facts: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, f"UPDATE run SET facts = '{facts}' WHERE id = 2")
    assert {code for code, _ in outcomes(path, capsys, facts).values()} == {2, 3}


@pytest.mark.parametrize("facts", [
    *("[]", "7", '{"cpu": 3}', '{"transports": {"shm": 1}}', '{"hosts": [1]}', '{"environment": {"UCX_TLS": 1}}'),
    *('{"traits": {"patterns": {"pingpong": 3}}}', '{"accepted": 5}', '{"topology": {"caches": ["x"]}}'),
])  # fmt: skip
def test_facts_of_wrong_types_with_their_checksum_are_damage(
    facts: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As another program, or another version, may have stored them."""
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        set_columns(db, "run", "facts = ?", facts)
    known = outcomes(path, capsys, facts)
    assert {code for words, (code, _) in known.items() if words[0] != "runs"} == {2}
    assert known["runs", "--json"][0] == 0


def test_a_damaged_row_is_never_written_to(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new checksum would hide the damage."""
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, "UPDATE run SET seed = seed + 1 WHERE id = 2")
    assert execute(["runs", "--label", "2", "other", "--store", str(path)]) == 2
    assert "it is damaged; restore it from a copy" in capsys.readouterr().err
    assert execute(["show", "2", "--store", str(path)]) == 2


def test_a_damaged_run_is_wrong_usage_and_others_can_be_shown(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "edited.db"))
    run_sql(path, "UPDATE run SET plan = '[' WHERE id = 2")
    assert execute(["show", "2", "--store", str(path)]) == 2
    assert "run 2 is damaged; name another run" in capsys.readouterr().err
    assert execute(["show", "1", "--store", str(path)]) == 0
