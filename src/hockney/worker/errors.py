"""What can go wrong between the control plane and its workers.

WorkerError
├── BuildError              no worker executable could be made
│   ├── NoCompiler          there is no C compiler
│   ├── CompileFailed       the compiler refused; its own first errors are in the text
│   └── CacheUnusable       the folder for built workers can't be written, or its disk is full
├── LaunchFailed            the job never came up; what the launcher said is in the text
├── WorkerDied              a rank or the whole job ended in the middle
├── WorkerTimedOut          a time limit passed; the job has been ended
├── WorkerRefused           the worker understood and said no; it is ready for the next command
├── PayloadCorrupt          a message did not arrive as it was sent
└── ProtocolError           what came back is not the line protocol
"""

from __future__ import annotations

import signal as signals
from pathlib import Path

from hockney.errors import HockneyError


class WorkerError(HockneyError):
    """Base of everything that can happen to a worker: to build, start, ask or end it.

    The text is the `reason`, followed by the `remedy` where one is known.
    """

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
        self.compiler = compiler
        self.output = output
        super().__init__(f"{compiler} cannot {what}: {_first_errors(output)}")


class CacheUnusable(BuildError):
    """The folder for built workers can't be used; the text names it and the remedy. No `reason`: its disk is full."""

    def __init__(self, folder: Path, reason: str | None = None) -> None:
        self.folder = folder
        super().__init__(
            f"cannot keep built workers in {folder}: {reason or 'the disk is full'}",
            f"{'' if reason else 'make room there, or '}let XDG_CACHE_HOME name a folder that can be written",
        )


class LaunchFailed(WorkerError):
    """The job never came up. `said` is what its launcher wrote on standard error; `timed_out`: it did not answer."""

    def __init__(self, launcher: str, reason: str, said: str, *, timed_out: bool = False) -> None:
        self.said = said
        self.timed_out = timed_out
        text = f"{launcher} did not start the worker: {reason}"
        super().__init__(f"{text}; {launcher} said: {said}" if said else text)


class WorkerDied(WorkerError):
    """The job ended in the middle. `rank`, `signal` and its exit `status` are None where nobody knows them."""

    def __init__(self, rank: int | None, signal: int | None, status: int | None, last_line: str) -> None:
        self.rank = rank
        self.signal = signal
        self.status = status
        self.last_line = last_line
        who = "the worker" if rank is None else f"rank {rank}"
        how = f"was killed by {_signal_name(signal)}" if signal is not None else "ended"
        if signal is None and status is not None:
            how = f"ended with exit code {status}"
        super().__init__(f"{who} {how}: {last_line}" if last_line else f"{who} {how}")


class WorkerTimedOut(WorkerError):
    """A time limit passed, and the job has been ended. `limit_s` is the limit that was asked for, in s."""

    def __init__(self, doing: str, limit_s: float, last_line: str = "") -> None:
        self.doing = doing
        self.limit_s = limit_s
        text = f"no end after {limit_s:g} s in {doing}"
        super().__init__(f"{text}: {last_line}" if last_line else text)


class WorkerRefused(WorkerError):
    """The worker said no to one command and is ready for the next. `code` is a status word of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)

    @property
    def unsupported(self) -> bool:
        """True where this transport or machine can't do it: to be reported as skipped, because of `message`."""
        return self.code == "unsupported"


class PayloadCorrupt(WorkerError):
    """A message did not arrive as it was sent: byte `offset` of `bytes`, from rank `source` to rank `rank`.

    With -1 as the source it is a sum over all ranks, and wrong on `rank`.
    """

    def __init__(self, message: str, rank: int, source: int, bytes: int, offset: int) -> None:  # noqa: A002
        self.rank = rank
        self.source = source
        self.bytes = bytes
        self.offset = offset
        super().__init__(message)


class ProtocolError(WorkerError):
    """What came back is not the line protocol of this version; the job has been ended."""


def how_to_wait_longer(limit_s: float) -> str:
    """What to do about a time limit that passed; a stored run that is gone on with keeps its own."""
    return f"a new `hockney run` with `--limit` above {limit_s:g} s waits longer"


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _first_errors(output: str, most: int = 3) -> str:
    """The first lines that say `error`, else the first lines at all: a missing header is followed by pages of noise."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "undefined reference" in line]
    return " | ".join((errors or lines)[:most]) or "it gave no reason"
