"""The tables, and how a store of an earlier version becomes one of this version.

`application_id` in the file's head marks a database as a hockney store, `user_version` counts its migrations. Unknown
is NULL, everywhere. Lists within a row (one number per rank, a command line) are JSON text. The SQL is limited to
SQLite 3.25: Pythons of older clusters link the system's library.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

APPLICATION_ID = int.from_bytes(b"HKNY", "big")

# Each is SQL; the order is that of the versions, so migrations are only ever added at the end.
MIGRATIONS = [
    """
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice: people write it down
        command TEXT NOT NULL,
        suite TEXT NOT NULL,
        label TEXT,
        started_unix_s REAL NOT NULL,
        finished_unix_s REAL,
        seed INTEGER NOT NULL,
        version TEXT NOT NULL,  -- of hockney
        status TEXT NOT NULL,
        rounds INTEGER NOT NULL DEFAULT 0,  -- written so far
        facts TEXT NOT NULL,  -- JSON
        plan TEXT NOT NULL  -- JSON
    );
    CREATE INDEX run_by_label ON run (label);
    CREATE TABLE launch (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES run (id),
        launch_index INTEGER NOT NULL,  -- which of the asked --launches
        transport TEXT NOT NULL,
        library TEXT NOT NULL,
        ranks INTEGER NOT NULL,
        started_unix_s REAL NOT NULL,
        argv TEXT NOT NULL,  -- JSON
        cpus TEXT NOT NULL,  -- JSON, a number per rank; -1 is unknown
        hosts TEXT NOT NULL,  -- JSON, a name per rank
        oversubscribed INTEGER NOT NULL,
        clock_ns REAL NOT NULL
    );
    CREATE INDEX launch_by_run ON launch (run_id);
    CREATE TABLE point (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES run (id),
        transport TEXT NOT NULL,
        pattern TEXT NOT NULL,
        ranks INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        options TEXT NOT NULL,  -- JSON object of text, names sorted
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT,
        UNIQUE (run_id, transport, pattern, ranks, bytes, options)
    );
    CREATE TABLE visit (
        id INTEGER PRIMARY KEY,
        point_id INTEGER NOT NULL REFERENCES point (id),
        launch_id INTEGER NOT NULL REFERENCES launch (id),
        round INTEGER NOT NULL,
        started_unix_s REAL NOT NULL,
        batch INTEGER NOT NULL,
        timed TEXT NOT NULL,
        divisor INTEGER NOT NULL,
        bytes_per_rep INTEGER NOT NULL,
        messages_per_rep INTEGER NOT NULL,
        algorithm TEXT,
        samples INTEGER NOT NULL,
        median_ns REAL,  -- of the pattern's time by its definition; NULL where there are no samples
        min_ns REAL,
        max_ns REAL,
        floor_before_ns REAL,
        floor_after_ns REAL,
        steal REAL,
        verified INTEGER NOT NULL,
        cpu_user_ns TEXT NOT NULL,  -- JSON, a number per rank; so are the next two
        cpu_system_ns TEXT NOT NULL,
        wall_ns TEXT NOT NULL
    );
    CREATE INDEX visit_by_point ON visit (point_id);
    CREATE TABLE visit_samples (  -- a separate table, so that reading all medians reads no samples
        visit_id INTEGER PRIMARY KEY REFERENCES visit (id),
        elapsed_ns BLOB NOT NULL  -- codec.py
    );
    CREATE TABLE warning (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES run (id),
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        cause TEXT NOT NULL,
        remedy TEXT NOT NULL,
        UNIQUE (run_id, kind, subject, cause, remedy)
    );
    """,
    # JSON, a list by name; NULL where nothing is counted.
    "ALTER TABLE visit ADD COLUMN counters TEXT",
    # floor_kind NULL: none, or written before this, a line's. pace_ns: JSON, before and after, each a number per rank.
    """
    ALTER TABLE visit ADD COLUMN floor_kind TEXT;
    ALTER TABLE visit ADD COLUMN pace_ns TEXT;
    ALTER TABLE visit ADD COLUMN solo_before_ns REAL;
    ALTER TABLE visit ADD COLUMN solo_after_ns REAL;
    """,
    # How long a run paused between its measured stretches; NULL: written before this.
    "ALTER TABLE run ADD COLUMN idle_s REAL",
    # When a run was last resumed: it may be killed again before its next measurement. NULL: never, or before this.
    "ALTER TABLE run ADD COLUMN resumed_unix_s REAL",
    # When the samples began by the kernel's clock; NULL: virtual time, or written before this.
    "ALTER TABLE visit ADD COLUMN started_ns INTEGER",
    """
    ALTER TABLE visit RENAME TO measurement;
    ALTER TABLE visit_samples RENAME TO measurement_samples;
    ALTER TABLE measurement_samples RENAME COLUMN visit_id TO measurement_id;
    """,
    # JSON, the CPUs that each rank may run on; empty: written before this.
    "ALTER TABLE launch ADD COLUMN bound TEXT NOT NULL DEFAULT '[]'",
    # Patterns called the same option by two names. The plan names options of curves.
    """
    UPDATE point SET options = replace(options, 'compute_us"', 'delay_us"') WHERE instr(options, 'compute_us"');
    UPDATE run SET plan = replace(plan, 'compute_us"', 'delay_us"') WHERE instr(plan, 'compute_us"');
    UPDATE run SET command = replace(command, 'compute_us=', 'delay_us=') WHERE instr(command, 'compute_us=');
    """,
]


# Messages of the sqlite3.DatabaseError for a database of another program, and of a later version.
NOT_A_STORE, NEWER_STORE = "not a store of hockney", "a store of a newer hockney"


def is_current(db: sqlite3.Connection) -> bool:
    """Whether the store has had all migrations. Raises sqlite3.DatabaseError."""
    return _version_of(db) == len(MIGRATIONS)


def _version_of(db: sqlite3.Connection) -> int:
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application_id != APPLICATION_ID:
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application_id or version or tables:
            raise sqlite3.DatabaseError(NOT_A_STORE)
    if version > len(MIGRATIONS):
        raise sqlite3.DatabaseError(NEWER_STORE)
    return int(version)


def migrate(db: sqlite3.Connection) -> None:
    """Bring an empty file or an earlier store up to date: all migrations or none. Raises sqlite3.DatabaseError.

    The write lock is taken before the version is read: if two programs open a store concurrently, one migrates and the
    other finds it done.
    """
    with transaction(db):
        missing = MIGRATIONS[_version_of(db) :]
        for migration in missing:
            for statement in migration.split(";\n"):  # not executescript, which would commit first
                db.execute(statement)
        if missing:  # else nothing is written: a store on a full disk can still be opened
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")  # pragmas take no bound parameters
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of the body or nothing; the write lock is taken at its begin. Raises sqlite3.Error."""
    db.execute("BEGIN IMMEDIATE")
    with contextlib.ExitStack() as undo:
        undo.callback(_roll_back, db)
        yield
        db.execute("COMMIT")
        undo.pop_all()


def _roll_back(db: sqlite3.Connection) -> None:
    with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
        db.execute("ROLLBACK")
