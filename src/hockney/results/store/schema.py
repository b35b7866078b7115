"""The tables, and the checksums that show damage by a disk or an editor.

`application_id` in the file's head marks a database as a hockney store, `user_version` is its version. Unknown is NULL,
everywhere. Lists within a row (one number per rank, a command line) are JSON text. The SQL is limited to SQLite 3.25:
Pythons of older clusters link the system's library.

Each row has a checksum of all its columns, and a row with others of its own has the sum of their ids, so that a lost or
moved row shows as well: `run_ids` of the store, `point_ids` of a run, `measurement_ids` of a point, and so on.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

APPLICATION_ID = int.from_bytes(b"HKNY", "big")
VERSION = 12
PARENTS = {"run": "store", "launch": "run", "point": "run", "warning": "run", "measurement": "point"}

# The checksum is the last column. An open compares the tables with this text, so each blank in it counts.
_TABLES = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")

# Messages of the sqlite3.DatabaseError for a database of another program, of another version, and for a damaged one.
NOT_A_STORE, OTHER_STORE, DAMAGED = "not a store", "a store of another hockney", "malformed"
_JSON = json.JSONEncoder(separators=(",", ":"))


def checksum(*values: object) -> int:
    """The CRC-32 of a row without its last column, as JSON. Raises TypeError for a blob, which no such row has."""
    return zlib.crc32(_JSON.encode(values).encode())


def is_sound(row: tuple[object, ...]) -> bool:
    """Whether a whole row of a table is as hockney wrote it."""
    try:
        return checksum(*row[:-1]) == row[-1]
    except TypeError:
        return False


def seal(db: sqlite3.Connection, table: str, row_id: int) -> None:
    """Write the checksum of a row."""
    db.execute(f"UPDATE {table} SET checksum = checksum({_reference()[1][table]}) WHERE id = ?", (row_id,))


def is_made(db: sqlite3.Connection) -> bool:
    """Whether the database has the tables; False for an empty one. Raises sqlite3.DatabaseError for any other."""
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    tables = _tables(db)
    if application_id != APPLICATION_ID:
        if application_id or version or tables:
            raise sqlite3.DatabaseError(NOT_A_STORE)
        return False
    if version != VERSION:
        raise sqlite3.DatabaseError(OTHER_STORE)
    if tables != _reference()[0]:
        raise sqlite3.DatabaseError(DAMAGED)
    return True


def make(db: sqlite3.Connection) -> None:
    """Make the tables in an empty database: all or none. Raises sqlite3.DatabaseError for that of another program.

    The write lock is taken before it looks: if two programs open a store concurrently, one makes the tables.
    """
    db.create_function("checksum", -1, checksum)
    with transaction(db):
        if is_made(db):  # then nothing is written: a store on a full disk can still be opened
            return
        _create(db)
        seal(db, "store", 1)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")  # pragmas take no bound parameters
        db.execute(f"PRAGMA user_version = {VERSION}")


def _create(db: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):  # not executescript, which would commit first
        db.execute(statement)


def _tables(db: sqlite3.Connection) -> list[tuple[str, str]]:
    return db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@functools.cache
def _reference() -> tuple[list[tuple[str, str]], dict[str, str]]:
    """What `_tables` gives for a sound store, and the columns of each table that a checksum is of."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        _create(db)
        described = {name: db.execute(f"PRAGMA table_info({name})").fetchall() for name in ("store", *PARENTS)}
        return _tables(db), {name: ", ".join(row[1] for row in rows[:-1]) for name, rows in described.items()}


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of the body or nothing; the write lock is taken at its begin. Raises sqlite3.Error."""
    db.execute("BEGIN IMMEDIATE")
    with contextlib.ExitStack() as undo:
        undo.callback(roll_back, db)
        yield
        db.execute("COMMIT")
        undo.pop_all()


def roll_back(db: sqlite3.Connection) -> None:
    """End a transaction without its changes."""
    with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
        db.execute("ROLLBACK")
