"""The command line. One file for each command: parse, call one library function that returns data, render.

The exit codes of all commands are decided here: 0 done, 1 a check says worse, 2 wrong usage or an unusable file, 3
measured in part or not at all. An error is one sentence on standard error; HOCKNEY_DEBUG=1 shows a traceback.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from hockney.cli import streams

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    """The command that standard arguments ask for, and the end of this process."""
    streams.open_closed()
    for number in _STOPS[1:]:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, _stop)
    gc.set_threshold(200_000)  # with the default, garbage collection makes reading a large run a fifth slower
    code = execute(sys.argv[1:])
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)  # all is done and said: a late Ctrl-C must not change how it ended
    sys.exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP act like Ctrl-C: measurements are stored, jobs are ended, and no folder is left."""
    raise KeyboardInterrupt


def execute(arguments: Sequence[str]) -> int:
    """Carry out one command line; gives the exit code. Prints every error; raises nothing."""
    from hockney.cli import exit_codes, rerun
    from hockney.errors import DamagedRowWarning, ExitCode

    streams.holds_document.set(False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DamagedRowWarning)
        try:
            code = _carry_out(arguments)
        except BaseException as error:  # noqa: BLE001 - this is where all of them end
            code = exit_codes.explain(error, arguments)
        finally:
            rerun.named_store.set(None)
    damaged = dict.fromkeys(str(warning.message) for warning in caught if warning.category is DamagedRowWarning)
    for message in damaged:
        streams.remark(f"hockney: {message}")
    return int(exit_codes.flush(code or (ExitCode.INCOMPLETE if damaged else ExitCode.DONE)))


def _carry_out(arguments: Sequence[str]) -> int:
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
