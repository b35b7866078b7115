"""The command line. One file for each command: parse, call one library function that returns data, render.

How a command ends is decided here, for all of them: 0 done, 1 a check says worse, 2 wrong usage or a file that is not
usable, 3 measured in part or not at all. An error is one sentence on standard error; only HOCKNEY_DEBUG=1 shows a
traceback.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from hockney.cli import streams

_MEMORY_MIN_BYTES = 256 << 20


def main() -> NoReturn:
    """The command that standard arguments ask for, and the end of this process."""
    streams.open_closed()
    gc.set_threshold(200_000)  # by default reading a large run looks for garbage so often that it takes a fifth longer
    code = execute(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done and said: a late Ctrl-C must not change how it ended
    sys.exit(code)


def execute(arguments: Sequence[str]) -> int:
    """Carry out one command line; gives the exit code. Prints every error; raises nothing."""
    from hockney.cli import exit_codes, rerun
    from hockney.errors import ExitCode

    streams.holds_document.set(False)

    try:
        with streams.damage_told() as damaged:
            code = _carry_out(arguments)
        code = code or (ExitCode.INCOMPLETE if damaged else ExitCode.DONE)
    except BaseException as error:  # noqa: BLE001 - this is where all of them end
        code = exit_codes.explain(error, arguments)
    finally:
        rerun.named_store.set(None)
    return int(exit_codes.flush(code))


def _prepare_for_memory_limit() -> None:
    """Raises HockneyError under a limit too low to load what figures are computed with."""
    from hockney.cli.exit_codes import limit_bytes
    from hockney.errors import HockneyError

    limit = limit_bytes()
    if limit is None:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread takes memory, and without it OpenBLAS ends us
    if limit < _MEMORY_MIN_BYTES:
        raise HockneyError(
            f"the memory limit here is {limit >> 20} MiB, and hockney needs {_MEMORY_MIN_BYTES >> 20} MiB; raise it, "
            "for example: ulimit -v unlimited"
        )


def _carry_out(arguments: Sequence[str]) -> int:
    _prepare_for_memory_limit()
    import click

    from hockney.cli.commands import hockney

    if "_HOCKNEY_COMPLETE" in os.environ:
        hockney.main(list(arguments), prog_name="hockney")  # answers the shell and exits
    try:
        with hockney.make_context("hockney", list(arguments)) as context:
            result = hockney.invoke(context)
    except click.exceptions.Exit as end:  # --help and --version
        return end.exit_code
    return result if isinstance(result, int) else 0
