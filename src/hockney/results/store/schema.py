"""The tables, and how a store of an earlier version becomes one of this version: named steps, each in one transaction.

`application_id` in the file's head says that a database is a hockney store, `user_version` how many steps it has had.
Unknown is NULL, everywhere. Lists within a row (one number per rank, a command line) are JSON text. The SQL keeps to
what SQLite 3.25 knows, for the Pythons of older clusters link what their system has.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable

APPLICATION_ID = int.from_bytes(b"HKNY", "big")

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []


class NotAStore(Exception):
    """A database, but of another program."""


class NewerStore(Exception):
    """A store that has had steps which this version does not know; `version` counts them."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def migration(step: Migration) -> Migration:
    """Register a step; the order of registration is the order of versions, so steps are only ever added at the end."""
    MIGRATIONS.append(step)
    return step


def version_of(db: sqlite3.Connection) -> int:
    """Steps that the store has had; 0 for an empty file. Raises NotAStore, NewerStore."""
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application_id != APPLICATION_ID:
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application_id or version or tables:
            raise NotAStore
        return 0
    if version > len(MIGRATIONS):
        raise NewerStore(version)
    return int(version)


def migrate(db: sqlite3.Connection) -> None:
    """Bring an empty file or an earlier store up to date: all steps or none. Raises NotAStore, NewerStore.

    The write lock is taken before the version is read, so that of two programs that open a store at once one
    migrates and the other finds it done.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        missing = MIGRATIONS[version_of(db) :]
        for step in missing:
            step(db)
        if missing:  # else nothing is written: a store on a full disk can still be opened
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")  # pragmas take no bound parameters
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
            db.execute("ROLLBACK")
        raise


_M0001 = """
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
CREATE TABLE visit_samples (  -- apart from visit, so that a look at all medians reads no samples
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
"""


@migration
def m0001_runs_points_visits(db: sqlite3.Connection) -> None:
    """The first tables."""
    for statement in _M0001.split(";\n"):
        db.execute(statement)  # not executescript, which would commit first


@migration
def m0002_counters(db: sqlite3.Connection) -> None:
    """What patterns and transports count beside their times."""
    db.execute("ALTER TABLE visit ADD COLUMN counters TEXT")  # JSON, a list by name; NULL where nothing is counted


@migration
def m0003_state(db: sqlite3.Connection) -> None:
    """The rest of the machine's state: what the floor is one of, and the pace of each rank's CPU."""
    db.execute("ALTER TABLE visit ADD COLUMN floor_kind TEXT")  # NULL: no floor, or written before this, a line's
    db.execute("ALTER TABLE visit ADD COLUMN pace_ns TEXT")  # JSON, before and after, each a number per rank
    db.execute("ALTER TABLE visit ADD COLUMN solo_before_ns REAL")
    db.execute("ALTER TABLE visit ADD COLUMN solo_after_ns REAL")


@migration
def m0004_idle(db: sqlite3.Connection) -> None:
    """How long a run has lain between the times that it was measured."""
    db.execute("ALTER TABLE run ADD COLUMN idle_s REAL")  # NULL: written before this


@migration
def m0005_resumed(db: sqlite3.Connection) -> None:
    """When a run last went on: it may be killed again before its next visit."""
    db.execute("ALTER TABLE run ADD COLUMN resumed_unix_s REAL")  # NULL: never, or before this


@migration
def m0006_started(db: sqlite3.Connection) -> None:
    """When the samples of a visit began by the kernel's clock, to see its ticks across visits."""
    db.execute("ALTER TABLE visit ADD COLUMN started_ns INTEGER")  # NULL: virtual time, or written before this


@migration
def m0007_measurements(db: sqlite3.Connection) -> None:
    """What was called a visit is a measurement."""
    db.execute("ALTER TABLE visit RENAME TO measurement")
    db.execute("ALTER TABLE visit_samples RENAME TO measurement_samples")
    db.execute("ALTER TABLE measurement_samples RENAME COLUMN visit_id TO measurement_id")
