"""Finds and opens the results file, and names its failures.

`border` is the only place where SQLite's exceptions become ours; everything that touches the database runs inside it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from hockney.errors import HockneyError, StoreError, WrongStoreError
from hockney.results.store import schema

BUSY_S = 30.0  # how long to wait for another writer; a round is written in milliseconds
_FULL = "database or disk is full"
_READONLY = "attempt to write a readonly database"
_CANT_OPEN = "unable to open database file"
_NOT_A_DATABASE = "file is not a database"
# SQLite's file format, "The Database Header".
_MAGIC, _HEAD_BYTES, _APPLICATION_ID = b"SQLite format 3\0", 100, slice(68, 72)
_ANOTHER = "name another file with --store or HOCKNEY_STORE"
# Part of SQLite's message -> the user's message after "results file PATH: ".
_SENTENCES = {
    _FULL: "the disk is full; make room",
    # SQLite reports a reached quota or size limit this way.
    "disk I/O error": "reading or writing it failed; check whether the disk is full or a quota is reached",
    "is locked": f"another program has kept it locked for {BUSY_S:.0f} s; wait for it, or name another with --store",
}
# Likewise of errors that say the wrong file was named, unless this program has written to it.
_WRONG_FILE = {
    _READONLY: "it may not be written;",
    _NOT_A_DATABASE: "not a results file of hockney;",
    schema.NOT_A_STORE: "a database, but not one of hockney;",
    schema.OTHER_STORE: "written by another version of hockney; read it with that version, or",
    schema.DAMAGED: "it is damaged; restore it from a copy, or",
    _CANT_OPEN: "it cannot be opened; check the permissions of the file and its folder, or",
}


def default_path() -> Path:
    """HOCKNEY_STORE where it is set, else `results.db` in the user's data folder."""
    named = os.environ.get("HOCKNEY_STORE")
    return Path(os.path.expanduser(named)) if named else _users_path()  # noqa: PTH111  # Path's raises


def _users_path() -> Path:
    from hockney.worker.cache import user_folder

    return user_folder("data") / "results.db"


@contextlib.contextmanager
def border(path: Path, saved: Callable[[], str] | None = None) -> Iterator[None]:
    """Turn SQLite's errors into StoreError. `saved`, for a store that is written to, says how much is stored.

    Without `saved` nothing is being measured, and a file that cannot be used is a WrongStoreError.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # SQLite quotes damaged bytes in its messages, which Python then cannot read.
        text = schema.DAMAGED if isinstance(error, UnicodeDecodeError) else str(error)
        wrong = next((f"{said} {_ANOTHER}" for part, said in _WRONG_FILE.items() if part in text), None)
        other = next((said for part, said in _SENTENCES.items() if part in text), f"SQLite says: {text}")
        kind, sentence = WrongStoreError if saved is None and wrong else StoreError, wrong or other
        raise kind(f"results file {path}: {sentence}{saved() if saved else ''}") from error


def _wrong(path: Path, why: str) -> WrongStoreError:
    return WrongStoreError(f"results file {path}: {why}; {_ANOTHER}")


def connect_to_write(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection to a store, which `create` makes where there is none."""
    refuse_mistyped(path)
    if create:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)  # the user's data folder
        except OSError as error:
            raise StoreError(f"results file {path}: cannot make its folder ({error.strerror}); {_ANOTHER}") from error
    else:
        _need_results(path)
    with border(path):
        # SQLite would refuse the first write only, after an hour of measuring.
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise sqlite3.OperationalError(_READONLY)
        db = _connect(path, "rwc" if create else "rw")
        with _closed_on_error(db):
            schema.make(db)
            # Readers and the writer then do not wait for each other. Some network file systems do without, and so
            # does a store that another program opens just now.
            try:
                db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _FULL in str(error):
                    raise
            # A kill loses nothing that was committed; a power cut may cost the last rounds, never the file.
            # FULL would wait for the disk in every round: tens of ms on a network home.
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    refuse_mistyped(path)
    _need_results(path)
    with border(path):
        db = _connect_to_read(path)
        with _closed_on_error(db):
            if not schema.is_made(db):
                raise _nothing_in(path)
    return db


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """In a folder that may not be written SQLite cannot make its lock file, and reads only with `immutable`."""
    db = _connect(path, "ro")
    with _closed_on_error(db):
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return db
        except sqlite3.OperationalError as error:
            log = path.with_name(path.name + "-wal")
            if str(error) not in (_CANT_OPEN, _READONLY) or (log.exists() and log.stat().st_size):
                raise  # immutable reading would miss data that only the log has
    db.close()
    return _connect(path, "ro&immutable=1")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # SQLite treats a file shorter than a page as empty, and would write over it. Only its size is read: opening and
    # closing it here would drop the locks of this program's other connections (POSIX).
    with contextlib.suppress(OSError):  # SQLite reports a file that cannot be read
        if path.is_file() and 0 < path.stat().st_size < 512:
            raise sqlite3.DatabaseError(_NOT_A_DATABASE)
    # Autocommit (None): transactions are begun and ended by name, in one place.
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=BUSY_S, isolation_level=None)
    db.create_function("crc32", 1, lambda blob: zlib.crc32(blob) if isinstance(blob, bytes) else None)
    db.text_factory = lambda stored: stored.decode(errors="surrogateescape")  # damaged text has another checksum
    return db


@contextlib.contextmanager
def _closed_on_error(db: sqlite3.Connection) -> Iterator[None]:
    with contextlib.ExitStack() as undo:
        undo.callback(db.close)
        yield
        undo.pop_all()


def refuse_mistyped(path: Path) -> None:
    """Raises WrongStoreError if no such file can be: the only folder to be created is the user's data folder."""
    # Those of Path raise where the folder may not be searched.
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        raise _wrong(path, "it is not a file")
    if os.path.isdir(path.parent):  # noqa: PTH112
        return
    with contextlib.suppress(HockneyError):
        if path == _users_path():
            return
    raise _wrong(path, f"there is no folder {path.parent}: make it first")


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, which stay where it is given another name; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_results_file(path: Path) -> bool:
    """Whether a file holds results. It must not be open here: see _connect."""
    return is_database(path) and _head(path)[_APPLICATION_ID] == schema.APPLICATION_ID.to_bytes(4, "big")


def is_database(path: Path) -> bool:
    """Whether a file is one of SQLite. It must not be open here, either."""
    return _head(path).startswith(_MAGIC)


def _head(path: Path) -> bytes:
    try:
        if not path.is_file():  # opening a pipe would wait for a writer
            return b""
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _need_results(path: Path) -> None:
    """Raises WrongStoreError without a file. A program that is killed while it makes the file leaves an empty one."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:  # noqa: PTH110, PTH202  # Path's raise
        raise _nothing_in(path)


def _nothing_in(path: Path) -> WrongStoreError:
    return WrongStoreError(f"there are no results in {path} yet; measure some", argv=("hockney", "quick"))
