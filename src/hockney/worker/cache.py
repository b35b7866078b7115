"""The folder that keeps slow results: built workers, and answers of programs about themselves.

Everything in it may be deleted at any time. Files appear by an atomic rename, so two processes that make the same file
concurrently are harmless: the last one wins, and both files are complete.

Its files are run, so nobody else may be able to change them: a folder that others own or may write is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError
from hockney.worker.errors import CacheUnusable

_NOBODY, _ALL_UIDS = 65534, "4294967295"


def default_folder() -> Path:
    """The folder of workers, `~/.cache/hockney/workers` or in XDG_CACHE_HOME. Raises CacheUnusable if shared."""
    return refuse_shared(user_folder("cache") / "workers")


def user_folder(kind: str) -> Path:
    """The user's folder for hockney's "cache", "data" or "state". Raises HockneyError for a user without a home."""
    import platformdirs  # 8 ms

    try:
        return Path(getattr(platformdirs, f"user_{kind}_dir")("hockney", appauthor=False))
    except RuntimeError as error:
        raise HockneyError("this user has no home folder; let HOME name a folder that can be written") from error


def refuse_shared(folder: Path) -> Path:
    """The folder, which need not be there yet. Raises CacheUnusable if others can change its files."""
    try:
        with suppress(FileNotFoundError):
            folder.stat()  # raises for links that go round in circles
        _refuse_shared(folder, folder)
    except OSError as error:
        raise CacheUnusable(folder, error.strerror or str(error)) from error
    return folder


def _refuse_shared(path: Path, folder: Path) -> None:
    """Look at each folder and link on the way to a path, and at where links lead."""
    for each in (*reversed(path.parents), path):
        try:
            facts = each.lstat()
        except FileNotFoundError:
            return  # new files there belong to this user
        if not _is_trusted(facts.st_uid):
            raise CacheUnusable(folder, f"{each} belongs to user {facts.st_uid}")
        if stat.S_ISLNK(facts.st_mode):
            _refuse_shared(each.parent / each.readlink(), folder)
        elif facts.st_mode & 0o022 and not (facts.st_mode & stat.S_ISVTX and each != path):
            raise CacheUnusable(folder, f"others may write {each}", f"run chmod go-w {shlex.quote(str(each))}, or ")


def _is_trusted(uid: int) -> bool:
    """Whether files of a user are as safe as our own: ours and root's. In a user namespace root may be nobody."""
    with suppress(OSError):
        if uid == _NOBODY and Path("/proc/self/uid_map").read_text(encoding="ascii").split()[2:] != [_ALL_UIDS]:
            return True
    return uid in (0, os.geteuid())


def make_private(folder: Path) -> None:
    """Make a folder, and those above it, that only this user may enter. Raises OSError."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """An own empty folder inside `folder`, on the same file system, removed at the end.

    Raises CacheUnusable if `folder` can't be made or written, also when that shows only later, inside the block, or if
    others can change its files.
    """
    try:
        make_private(folder)
        refuse_shared(folder)
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder) as room:
            yield Path(room)
    except OSError as error:
        raise CacheUnusable(folder, error.strerror or str(error)) from error


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
        """The stored answer; None if there is none, a file it depends on has changed, or one of its `texts` is gone."""
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

    # ---- files --------------------------------------------------------------------------------------------------

    def keep(self, path: Path, files: Iterable[str] = ()) -> None:
        """Remember what a file contains. It is made again when one of the `files` that it depends on changes."""
        self.put(["file", path.name], {"sha256": digest(path)}, files)

    def has(self, path: Path) -> bool:
        """Whether a file is the one that was kept, may be run, and cannot be changed by others; it counts as used now.

        Any other was damaged, edited or planted, or is of a library that has changed.
        """
        kept = self.get(["file", path.name], "sha256")
        try:
            facts = path.lstat()
            is_ours = stat.S_ISREG(facts.st_mode) and _is_trusted(facts.st_uid) and not facts.st_mode & 0o022
        except OSError:
            return False
        if kept is None or not is_ours or not os.access(path, os.X_OK) or digest(path) != kept["sha256"]:
            return False
        with suppress(OSError):  # a folder that may only be read still serves
            os.utime(path)
        return True


def digest(path: Path) -> str | None:
    """The SHA-256 of a file's content; None for a file that cannot be read."""
    known = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                known.update(part)
    except OSError:
        return None
    return known.hexdigest()
