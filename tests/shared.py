"""What tests in several folders use: things that take seconds to make, and the end of programs they have started."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, AnyStr

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name that all processes share, filled by one of them. Tests must not change what is in it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"shared-{name}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            make(folder)
            (folder / "done").touch()
    return folder


def script(path: Path, *lines: str) -> Path:
    """A shell script that can be started; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


class Fakes:
    """Programs that a test puts in the place of real ones. Each notes its starts: one that nobody starts tests nothing.

    The fixture `fake` asserts at the end of a test that each was started.
    """

    def __init__(self) -> None:
        self._made: list[Path] = []

    def __call__(self, path: Path, *lines: str) -> Path:
        """A shell script, as `script` makes it, that is to be started."""
        self._made.append(path)
        return script(path, f"echo >>'{self._log(path)}'", *lines)

    def _log(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.started")

    def starts(self, path: Path) -> int:
        """How often a fake was started."""
        log = self._log(path)
        return len(log.read_text().splitlines()) if log.exists() else 0

    def never_started(self) -> list[Path]:
        """Those that nobody has started."""
        return [path for path in self._made if not self.starts(path)]


def finished(
    words: Sequence[str | Path], *, timeout_s: float = 120, check: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    """A program that has ended, with what it printed."""
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=check, **more)


@contextlib.contextmanager
def killed_at_the_end(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """A program that is killed if it still runs: after a failed test, `with Popen` alone would wait for it for ever.

    One that nobody waits for makes a later test fail, as a process that still runs.
    """
    with process:
        try:
            yield process
        finally:
            process.kill()
