"""The folder that keeps slow results: built workers, and answers of programs about themselves.

Everything in it may be deleted at any time. Files appear by an atomic rename, so two processes that make the same file
concurrently are harmless: the last one wins, and both files are complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError
from hockney.worker.errors import CacheUnusable


def default_folder() -> Path:
    """The folder of this user's workers: `~/.cache/hockney/workers` on Linux, unless XDG_CACHE_HOME is set."""
    return user_folder("cache") / "workers"


def user_folder(kind: str) -> Path:
    """The user's folder for hockney's "cache", "data" or "state". Raises HockneyError for a user without a home."""
    import platformdirs  # 8 ms

    try:
        return Path(getattr(platformdirs, f"user_{kind}_dir")("hockney", appauthor=False))
    except RuntimeError as error:
        raise HockneyError("this user has no home folder; let HOME name a folder that can be written") from error


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """An own empty folder inside `folder`, on the same file system, removed at the end.

    Raises CacheUnusable if `folder` can't be made or written, also when that shows only later, inside the block.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder) as room:
            yield Path(room)
    except OSError as error:
        raise CacheUnusable(folder, error.strerror or str(error)) from error


def touch(path: Path) -> bool:
    """Whether a file is there and not empty; if so, it counts as used now."""
    try:
        if path.stat().st_size == 0:  # a rename that reached the disk before the content did
            return False
    except OSError:
        return False
    with suppress(OSError):  # a folder that may only be read still serves
        os.utime(path)
    return True


def forget_unused(folder: Path) -> None:
    """Remove files unused for a month, and remnants of killed builders. Errors don't matter here."""
    limit_s = time.time() - 30 * 86400
    for entry in [*folder.glob("*-*"), *folder.glob("objects/*"), *folder.glob("probes/*")]:
        with suppress(OSError):
            if entry.stat().st_mtime < limit_s:
                if entry.is_dir():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()


# ---- answers of programs about themselves ---------------------------------------------------------------------------


def resolve(program: str) -> Path | None:
    """The file that a program's name or path leads to now, symbolic links followed; None if there is none."""
    path = shutil.which(program)
    return Path(path).resolve() if path else None


def stamp(name: str) -> list[str | int] | None:
    """The identity of a file, or of the program that a bare name leads to, now; None if there is none."""
    path = Path(name).resolve() if name.startswith("/") else resolve(name)
    try:
        facts = path.stat() if path else None
    except OSError:
        return None
    return [str(path), facts.st_mtime_ns, facts.st_size] if facts else None


class Probes:
    """Answers that were expensive to get, valid as long as the files they depend on are the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "probes"

    def _path(self, key: Iterable[str]) -> Path:
        return self._folder / (hashlib.sha256("\0".join(key).encode()).hexdigest()[:20] + ".json")

    def get(self, key: Iterable[str], *texts: str) -> dict[str, Any] | None:
        """The stored answer, or None if there is none or a file that it depends on has changed.

        An answer without the `texts` that it must have was edited: it counts as none.
        """
        try:
            record = json.loads(self._path(key).read_bytes())
            unchanged = all(stamp(name) == seen for name, seen in record["stamps"].items())
            answer: dict[str, Any] = record["answer"]
            unchanged &= all(isinstance(answer[name], str) for name in texts)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return answer if unchanged else None

    def put(self, key: Iterable[str], answer: Mapping[str, Any], files: Iterable[str]) -> None:
        """Keep an answer. A folder that can't be written only costs time here: the next call asks again."""
        record = {"answer": answer, "stamps": {name: stamp(name) for name in files}}
        with suppress(CacheUnusable), scratch(self._folder) as room:
            (room / "answer").write_text(json.dumps(record), encoding="ascii")
            (room / "answer").replace(self._path(key))
