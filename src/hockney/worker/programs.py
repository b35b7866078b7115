"""Runs other programs with a time limit, and ends all that they have started when it passes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence


def how_it_ended(exit_code: int | None) -> str:
    """`ended with exit code 3`. The code is negative for a signal: `was killed by SIGSEGV`; None and 0 say nothing."""
    if not exit_code:
        return "ended"
    if exit_code > 0:
        return f"ended with exit code {exit_code}"
    name = next((known.name for known in signal.Signals if known == -exit_code), f"signal {-exit_code}")
    return f"was killed by {name}"


Words = Sequence[str | os.PathLike[str]]


def run_program(
    argv: Words, limit_s: float, *, data: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that reads `data`, and return its output and exit code.

    It has no terminal, so it cannot ask for a password. Raises OSError if it cannot be started, TimeoutExpired at the
    limit.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    ) as process:
        try:
            out, said = process.communicate(data, timeout=limit_s)
        finally:
            if process.returncode is None:  # not reaped yet, so the number is still its own
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(argv, process.returncode, out, said)


class ProgramFailed(Exception):
    """Why a program gave no answer: the last line of what it said, or how it ended. `said` is all of it."""

    def __init__(self, why: str, said: str = "", *, exit_code: int | None = None) -> None:
        super().__init__(why)
        self.said, self.exit_code = said or why, exit_code


def answer_of(argv: Words, limit_s: float, *, data: bytes = b"", environment: Mapping[str, str] | None = None) -> str:
    """The standard output of a program that ends well. Raises ProgramFailed."""
    try:
        done = run_program(argv, limit_s, data=data, environment=environment)
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"no answer within {limit_s:g} s") from None
    except OSError as error:
        raise ProgramFailed((error.strerror or str(error)).lower()) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        last = said.rpartition("\n")[2].removeprefix(f"{os.fspath(argv[0])}: ")
        raise ProgramFailed(last or f"it {how_it_ended(done.returncode)}", said, exit_code=done.returncode)
    return done.stdout.decode(errors="replace")


def output_of(argv: Words) -> str:
    """All that a program says on both streams; empty where it cannot be run, or does not end within 10 s."""
    try:
        done = run_program(argv, limit_s=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")
