"""The lock of a run: one program at a time measures it, and an unfinished run without a lock was killed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hockney.errors import UsageError


@contextlib.contextmanager
def alone(store: Path, run_id: int) -> Iterator[None]:
    """Only one program, until it ends, measures a run: else UsageError. A file system without locks is trusted."""
    path = _path(store, run_id)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(path))
            stack.callback(path.unlink, missing_ok=True)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise UsageError(
                    f"run {run_id} is being measured by another hockney: wait until it is done, or stop it"
                ) from None
        yield


def _locked(path: Path) -> IO[str]:
    """The open and locked file; raises BlockingIOError after 0.2 s without the lock.

    Waits, because a program that only asks whether the run is measured holds the lock for some microseconds. The
    program that measured the run removes the file: a lock on a removed file would keep no other program out.
    """
    for _ in range(20):
        with contextlib.ExitStack() as closing:
            file = closing.enter_context(path.open("w"))
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    closing.pop_all()
                    return file
        time.sleep(0.01)
    raise BlockingIOError(errno.EWOULDBLOCK, "the run has a lock")


def is_measured_now(store: Path, run_id: int) -> bool:
    """Whether a program has this run's lock. True if that is unknown: a file system without locks."""
    try:
        with _path(store, run_id).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _path(store: Path, run_id: int) -> Path:
    return store.with_name(f"{store.name}-run{run_id}")
