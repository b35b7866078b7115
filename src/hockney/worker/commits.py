"""The commits of a git repository, and builds of them that are kept.

Each build is a folder of its own in the user's cache, named by the repository, the command and the commit; the names
are equally long, as the length of a path alone moves times. The last file of a build, `built.json`, appears by a
rename: without it a build is half done, and is done again. A build has a checkout of its own, so the user's working
tree is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hockney.errors import HockneyError, UsageError, notice
from hockney.units import format_duration_s
from hockney.worker import cache
from hockney.worker.processes import MARK, end_job
from hockney.worker.programs import ProgramFailed, answer_of, how_it_ended

_GIT_LIMIT_S = 600.0
_OF_ANOTHER = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}  # repository
_FLAGS = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")  # variables that change what a build makes


@dataclass(frozen=True)
class Commit:
    """One commit; `date` is its author's."""

    id: str
    author: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """The first digits of its number."""
        return self.id[:10]


class Repository:
    """A repository, which is only read. Raises UsageError where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if shutil.which("git") is None:
            raise UsageError("there is no git here: install it, for example: apt install git")
        try:
            self.folder = self._ask("rev-parse", "--absolute-git-dir").strip()
        except ProgramFailed as error:
            raise UsageError(f"cannot use --repo {path}: {error}; name the folder of a git repository") from error

    def _ask(self, *words: str) -> str:
        return _git("-C", str(self.path), "--no-optional-locks", *words)

    def commit(self, word: str) -> Commit:
        """The commit of a number, a branch or a tag. Raises UsageError."""
        try:
            found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
            # `git log` would obey the user's settings, such as log.showSignature.
            form = ("--encoding=UTF-8", "--date=short", "--format=%an <%ae>%n%ad%n%s")
            first, *said = self._ask("rev-list", "-1", *form, found.split()[-1]).split("\n")
        except (ProgramFailed, IndexError) as error:
            hint = "name one that `git log` lists (git fetch gets new ones)"
            if self.is_shallow:
                hint = "it is a shallow clone; git fetch --unshallow gets all commits"
            raise UsageError(f"{self.path} has no commit '{word}': {hint}") from error
        return Commit(first.removeprefix("commit "), *said[:3])

    @property
    def is_shallow(self) -> bool:
        """Whether old commits are missing here."""
        return self._ask("rev-parse", "--is-shallow-repository").strip() == "true"

    @property
    def is_dirty(self) -> bool:
        """Whether files that git knows have changes that no commit has."""
        with contextlib.suppress(ProgramFailed):  # without a working tree
            return bool(self._ask("status", "--porcelain", "--untracked-files=no").strip())
        return False

    def has_in(self, old: str, new: str) -> bool:
        """Whether a commit contains an older one, or is the same."""
        return self._history("merge-base", "--independent", old, new).split() == [new]

    def ranked(self, bad: str, good: Sequence[str]) -> list[str]:
        """The commits of which one may be the first bad one, those first that split them best; `bad` is among them.

        As `git bisect` ranks them, but without commits that do not contain a good one: on a branch that began before
        it, times may differ for other reasons. Such a branch is judged by its merge.
        """
        without = (f"^{commit}" for commit in good)
        listed = self._history("rev-list", "--bisect-all", "--ancestry-path", bad, *without)
        return [line.split()[0] for line in listed.splitlines()]

    def parent(self, commit: str, good: str) -> str:
        """The first parent of a commit that contains a good one, or is it."""
        _, *parents = self._history("rev-list", "--parents", "-1", commit).split()
        for parent in parents:
            if self.has_in(good, parent):
                return parent
        raise HockneyError(f"no parent of {commit[:10]} contains {good[:10]}: the history of {self.path} has changed")

    def _history(self, *words: str) -> str:
        """What git prints about commits that are there. Raises HockneyError."""
        try:
            return self._ask(*words)
        except ProgramFailed as error:
            raise HockneyError(f"git cannot read the history of {self.path}: {error}; try git fsck there") from error


def _git(*words: str) -> str:
    """What a call of git prints. Raises ProgramFailed."""
    try:
        return answer_of(["git", *words], _GIT_LIMIT_S, environment=_environment())
    except ProgramFailed as error:
        raise ProgramFailed(str(error).removeprefix("fatal: ")) from error


def _environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | more


# ---- builds ---------------------------------------------------------------------------------------------------------


def builds_folder() -> Path:
    """The folder of all builds, which may be deleted at any time. Raises CacheUnusable if others can change it."""
    folder = cache.refuse_shared(cache.user_folder("cache") / "builds")
    cache.make_private(folder)
    cache.forget_unused(folder)
    return folder


@dataclass(frozen=True)
class Builder:
    """Builds commits with a command of a shell, for which COMMIT and PREFIX are set, each within a limit."""

    repository: Repository
    command: str
    limit_s: float
    folder: Path  # of all builds

    @functools.cached_property
    def key(self) -> str:
        """What builds depend on besides the commit: the repository, the command with the files it names, and flags."""
        files = map(_digest, re.split(r"[\s;&|()<>=`'\"]+", self.command))
        parts = (self.repository.folder, self.command, *files, *(os.environ.get(name, "") for name in _FLAGS))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    @functools.cached_property
    def _script(self) -> Path | None:
        """The command's program if that is named by its path from the current folder, and is there."""
        path = Path(self._words[0])
        return path.absolute() if "/" in self._words[0] and not path.is_absolute() and path.is_file() else None

    @property
    def _words(self) -> list[str]:
        """The command's program, and the rest as one text."""
        return self.command.split(maxsplit=1)

    def place(self, commit: str) -> Path:
        """The folder of a build: its `prefix`, and the `log` of the command."""
        return self.folder / f"{self.key}-{commit[:16]}"

    def prefix(self, commit: str) -> Path:
        return self.place(commit) / "prefix"

    def is_tried(self, commit: str) -> bool:
        """Whether a build has ended, well or not."""
        return (self.place(commit) / "built.json").is_file()

    def error(self, commit: str) -> str | None:
        """Why a commit whose build has ended cannot be built; None if it was built. It counts as used now."""
        os.utime(self.place(commit))
        said = json.loads((self.place(commit) / "built.json").read_text(encoding="utf-8"))["error"]
        return said and f"{said} (the log: {self.place(commit) / 'log'})"

    def retry(self, commits: Sequence[str]) -> None:
        """Let those that could not be built be built again."""
        for commit in commits:
            if self.is_tried(commit) and self.error(commit):
                (self.place(commit) / "built.json").unlink()

    def build(self, commits: Sequence[str]) -> None:
        """Build those of the commits that are not built yet, side by side. In any case no process of them is left."""
        with contextlib.ExitStack() as ends:
            for wait in [ends.enter_context(self._built(commit)) for commit in sorted({*commits})]:
                wait()

    @contextlib.contextmanager
    def _built(self, commit: str) -> Iterator[Callable[[], None]]:
        """Begins a build unless there is one, and gives what waits for its end. Another process with it comes first."""
        place = self.place(commit)
        cache.make_private(place)
        with (place / "lock").open("w") as lock, contextlib.ExitStack() as ends:
            self._wait_for(lock, commit)
            if self.is_tried(commit):
                yield lambda: None
                return
            for part in filter(Path.exists, (place / "source", place / "prefix")):
                shutil.rmtree(part)
            ends.callback(shutil.rmtree, place / "source", ignore_errors=True)
            notice.get()(f"building {commit[:10]}; log: {place / 'log'}")
            try:
                self._check_out(commit, place / "source")
            except ProgramFailed as error:
                _store(place, f"git cannot check it out: {error}")
                yield lambda: None
                return
            mark = uuid.uuid4().hex
            process = self._start(commit, place, mark)
            ends.callback(end_job, [process], mark)
            until_s = time.monotonic() + self.limit_s
            yield lambda: self._finish(process, place, until_s)

    def _wait_for(self, lock: IO[str], commit: str) -> None:
        """Lock a build. Raises HockneyError if another process keeps it for longer than a build may take."""
        until_s = time.monotonic() + self.limit_s
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            notice.get()(f"waiting for another process that builds {commit[:10]}")  # printed once
            if time.monotonic() > until_s:
                limit = format_duration_s(self.limit_s)
                raise HockneyError(f"another process still builds {commit[:10]} after {limit}: end it, or wait for it")
            time.sleep(0.1)

    def _check_out(self, commit: str, source: Path) -> None:
        """Raises ProgramFailed. Submodules are for the command to fetch, from where those of the repository come."""
        _git("clone", "--quiet", "--origin=origin", "--shared", "--no-checkout", self.repository.folder, str(source))
        with contextlib.suppress(ProgramFailed):
            origin = _git(f"--git-dir={self.repository.folder}", "config", "--get", "remote.origin.url").strip()
            _git("-C", str(source), "config", "remote.origin.url", origin)
        _git("-C", str(source), "checkout", "--quiet", "--detach", commit)

    def _start(self, commit: str, place: Path, mark: str) -> subprocess.Popen[bytes]:
        program, *rest = self._words
        (place / "prefix").mkdir()
        if self._script is not None and not (place / "source" / program).exists():
            program = shlex.quote(str(self._script))
        with (place / "log").open("wb") as log:
            return subprocess.Popen(
                ["sh", "-c", " ".join([program, *rest])],
                cwd=place / "source",
                env=_environment(COMMIT=commit, PREFIX=str(place / "prefix"), **{MARK: mark}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _finish(self, process: subprocess.Popen[bytes], place: Path, until_s: float) -> None:
        """Wait for a build, and store how it ended. One that takes too long is ended when its context is left."""
        try:
            code = process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            _store(place, f"the build did not end within {format_duration_s(self.limit_s)}")
            return
        if code == 0:
            is_empty = not (place / "prefix").is_dir() or not any((place / "prefix").iterdir())
            _store(place, "the build put nothing into $PREFIX" if is_empty else None)
            return
        lines = (place / "log").read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        _store(place, f"the build {how_it_ended(code)}: {last[:200]}")


def _digest(word: str) -> str:
    """The digest of the file that a word of a command names, or nothing."""
    with contextlib.suppress(OSError, RuntimeError):
        path = Path(os.path.expandvars(word)).expanduser()
        return (path.is_file() and cache.digest(path)) or ""
    return ""


def _store(place: Path, error: str | None) -> None:
    (place / "built.new").write_text(json.dumps({"error": error}), encoding="utf-8")
    (place / "built.new").replace(place / "built.json")
