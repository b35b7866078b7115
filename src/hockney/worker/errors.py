"""Failures between the control plane and its workers. One more is preflight.HostsUnusable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hockney.errors import HockneyError
from hockney.units import counted


class WorkerError(HockneyError):
    """Base of all that can happen to a worker. Its text is the `reason`, and the `remedy` where one is known."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}" if remedy else reason)


class BuildError(WorkerError):
    """No worker executable could be made."""


class NoCompiler(BuildError):
    """There is no C compiler; the text says how to get one."""


class CompileFailed(BuildError):
    """The compiler refused a source file or the link. `output` is all it said."""

    def __init__(self, compiler: str, what: str, output: str) -> None:
        self.output = output
        super().__init__(f"{compiler} cannot {what}: {_first_errors(output)}")


class CacheUnusable(BuildError):
    """A folder for what is built can't be used; the text names it and the remedy."""

    def __init__(self, folder: Path, reason: str, remedy: str = "") -> None:
        remedy += "let XDG_CACHE_HOME name a folder that only you can write"
        super().__init__(f"cannot keep builds in {folder}: {reason}", remedy)


class LaunchFailed(WorkerError):
    """The job never came up. `said` is its launcher's standard error; `timed_out`: it did not answer.

    `missed`: the launcher says that it could not reach a host, which it may at the next start.
    """

    def __init__(
        self,
        launcher: str,
        reason: str,
        said: str = "",
        *,
        timed_out: bool = False,
        missed: bool = False,
        remedy: str = "",
    ) -> None:
        self.timed_out, self.missed = timed_out, missed
        text = f"{launcher} did not start the ranks: {reason}"
        said = said.removeprefix(f"{launcher}: ")
        super().__init__(f"{text}; {launcher} said: {said}" if said else text, remedy)


class WorkerDied(WorkerError):
    """The job ended in the middle."""


class WorkerTimedOut(WorkerError):
    """A time limit passed, and the job has been ended. `limit_s` is the limit that was asked for, in s.

    `silent` names the ranks that do not answer; empty if all do, or none. `ranks`: these, else those that were not done
    while others waited. `waits`: a message that did not come.
    """

    def __init__(
        self,
        doing: str,
        limit_s: float,
        last_line: str,
        silent: str = "",
        ranks: Sequence[int] = (),
        waits: str = "",
    ) -> None:
        self.limit_s, self.silent, self.ranks = limit_s, silent, ranks
        text = f"no end after {limit_s:g} s in {doing}{f'; {waits}' if waits else ''}"
        last_line = "" if "no end after" in last_line else last_line  # a rank that says the same
        super().__init__(f"{silent}: {text}" if silent else f"{text}: {last_line}" if last_line else text)


class WorkerRefused(WorkerError):
    """The worker said no to one command and is ready for the next. `code` is a status word of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)

    @property
    def unsupported(self) -> bool:
        """True where this transport or machine can't do it: to be reported as skipped, because of the message."""
        return self.code == "unsupported"


class ProtocolError(WorkerError):
    """The answer does not follow this version's line protocol; the job has been ended."""


def how_to_wait_longer(limit_s: float) -> str:
    """The remedy for a time limit that passed. A resumed run keeps its stored limit."""
    return f"to wait longer, measure again with --limit above {limit_s:g} s"


def _first_errors(output: str) -> str:
    """The first lines that say `error`, else the first lines at all: a missing header is followed by pages of noise."""
    if absent := dict.fromkeys(re.findall(r"undefined reference to `([^']+)'", output)):
        first, *others = absent
        more = f" and {counted(len(others), 'more function')} are" if others else " is"
        return f"{first}{more} not in the library"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marks = ("error", "cannot find")
    errors = [line for line in lines if any(mark in line.lower() for mark in marks)]
    return " | ".join((errors or lines)[:3]) or "it gave no reason"
