"""Bare programs to compare hockney with. Built with the same compiler, run with a limit on every wait."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hockney.errors import HockneyError
from hockney.worker.processes import MARK, end_job, new_mark

SOURCES = Path(__file__).resolve().parent.parent / "bench_bare"
# No less optimised than the worker's timed sources are.
_FLAGS = ("-O3", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread")


class BareFailed(HockneyError):
    """A program can't be built, fails, hangs, or prints something unknown."""


def build(compiler: Sequence[str], source: str, executable: Path) -> Path:
    """The executable made of one source file. Raises BareFailed with the compiler's words."""
    argv = [*compiler, *_FLAGS, "-o", str(executable), str(SOURCES / source)]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BareFailed(f"{source} cannot be built: {done.stderr.strip()[:500]}")
    return executable


def run(argv: Sequence[str], environment: Mapping[str, str | None] | None = None, limit_s: float = 60.0) -> list[str]:
    """The output of a program, line by line; `environment` has changes to ours, None removes a variable.

    All its processes are ended if it takes longer than limit_s. Raises BareFailed.
    """
    mark = new_mark()
    merged: dict[str, str | None] = {**os.environ, **(environment or {}), MARK: mark}
    process = subprocess.Popen(
        argv,
        env={name: value for name, value in merged.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException as error:  # Ctrl-C too: nothing may go on spinning
        end_job([process], mark)
        if isinstance(error, subprocess.TimeoutExpired):
            raise BareFailed(f"{Path(argv[0]).name} did not end within {limit_s:g} s") from error
        raise
    if process.returncode != 0:
        said = err.decode(errors="replace").strip()[-300:]
        raise BareFailed(f"{Path(argv[0]).name} ended with {process.returncode}: {said}")
    return out.decode(errors="replace").splitlines()


def numbers(lines: Sequence[str], count: int) -> list[list[float]]:
    """The lines with exactly `count` numbers; other output of a library is ignored."""
    found = []
    for line in lines:
        try:
            values = [float(word) for word in line.split()]
        except ValueError:
            continue
        if len(values) == count:
            found.append(values)
    return found
