"""The command line. One file for each command: parse, call one library function that returns data, render.

The exit codes of all commands are decided here: 0 done, 1 a check says worse, 2 wrong usage or an unusable file, 3
measured in part or not at all. An error is one sentence on standard error; HOCKNEY_DEBUG=1 shows a traceback.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from hockney.cli.commands import hockney
from hockney.errors import DamagedRowWarning, ExitCode, HockneyError, UsageError
from hockney.render.json import print_json
from hockney.render.streams import holds_document, is_reader_gone, open_closed, remark, silence
from hockney.render.terminal import wrapped
from hockney.report.commands import error_text, named_store, typed
from hockney.units import printable

_OF_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EBADF)
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_stopped_by = ["Ctrl-C"]


def main() -> NoReturn:
    """The command that standard arguments ask for, and the end of this process."""
    open_closed()
    for number in _STOPS[1:]:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, _stop)
    # Each thread of numpy's BLAS has a buffer: where memory is limited it ends this process with code 1.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(200_000)  # with the default, garbage collection makes reading a large run a fifth slower
    code = execute(sys.argv[1:])
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)  # all is done and said: a late Ctrl-C must not change how it ended
    sys.exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP act like Ctrl-C: measurements are stored, jobs are ended, and no folder is left."""
    _stopped_by.append(signal.Signals(number).name)
    raise KeyboardInterrupt


def execute(arguments: Sequence[str]) -> int:
    """Carry out one command line; gives the exit code. Prints every error; raises nothing."""
    holds_document.set(False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DamagedRowWarning)
        try:
            code = _carry_out(arguments)
        except BaseException as error:  # noqa: BLE001 - this is where all of them end
            code = explain_error(error, arguments)
        finally:
            named_store.set(None)
    damaged = dict.fromkeys(str(warning.message) for warning in caught if warning.category is DamagedRowWarning)
    for message in damaged:
        remark(f"hockney: {message}")
    return int(_flush(code or (ExitCode.INCOMPLETE if damaged else ExitCode.DONE)))


def _carry_out(arguments: Sequence[str]) -> int:
    if "_HOCKNEY_COMPLETE" in os.environ:
        _answer_shell()
    try:
        with hockney.make_context("hockney", list(arguments)) as context:
            result = hockney.invoke(context)
    except click.exceptions.Exit as end:  # --help and --version
        return end.exit_code
    return result if isinstance(result, int) else 0


def _answer_shell() -> NoReturn:
    """Answer the script of `hockney completion`, and exit. Raises UsageError for variables that are not its own."""
    try:
        hockney.main([], prog_name="hockney")
    except SystemExit as end:
        if not end.code:
            raise
    except (KeyError, ValueError, IndexError):
        pass
    raise UsageError("_HOCKNEY_COMPLETE is set without COMP_WORDS and COMP_CWORD of a shell: unset it")


# ---- how a command ends ---------------------------------------------------------------------------------------------


def explain_error(error: BaseException, arguments: Sequence[str]) -> int:
    """Print the error on standard error; returns the exit code. Only SystemExit is passed on."""
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError) and is_reader_gone():
        return ExitCode.DONE  # the reader has seen enough, as in `hockney list | head -1`
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        # An interrupt that passed through an exec (dataclasses use one) marks the interpreter to end by the signal,
        # with any exit code; the next exec removes the mark.
        exec("")
    code = error.exit_code if isinstance(error, (HockneyError, click.ClickException)) else ExitCode.INCOMPLETE
    sentence = _sentence(error)
    if sentence is None or os.environ.get("HOCKNEY_DEBUG") == "1":
        traceback.print_exception(error)
    if sentence is None:
        what = traceback.format_exception_only(error)[-1].strip().partition("\n")[0]
        sentence = f"a fault in hockney itself: {what}; please report it with the lines above"
    if isinstance(error, OSError) and error.filename is None and error.errno in _OF_OUTPUT:
        with contextlib.suppress(OSError, ValueError):
            silence(sys.stdout.fileno())  # buffered output would fail again
    if "--json" in arguments and not holds_document.get():
        with contextlib.suppress(OSError, ValueError):
            print_json("error", {"error": sentence, "exit_code": code})
    return _say(sentence, code)


def _sentence(error: BaseException) -> str | None:
    """The sentence for an error; None for an internal fault."""
    if isinstance(error, HockneyError):
        return error_text(error)
    if isinstance(error, click.ClickException):
        text = " ".join(error.format_message().split()).rstrip(".")
        context = getattr(error, "ctx", None)
        more = f" (see: {typed(*context.command_path.split()[1:], '--help')})" if context else ""
        return text[:1].lower() + text[1:] + more
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "; ".join(filter(None, (f"stopped by {_stopped_by[-1]}", str(error))))
    if isinstance(error, OSError) and error.errno is not None:
        return _system_sentence(error)
    return _limit_sentence(error)


def _limit_sentence(error: BaseException) -> str | None:
    """The sentence for an error of a process that may not have more memory or threads; None for an internal fault.

    Where memory is short, a library does not load, a thread does not start, or Python loses its error.
    """
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "no more threads can be started here: raise the limit of memory (ulimit -v) or of processes (ulimit -u)"
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_bytes != resource.RLIM_INFINITY and isinstance(error, (MemoryError, ImportError, SystemError)):
        return f"there is not enough memory for this: the limit is {limit_bytes >> 20} MiB; raise it (ulimit -v)"
    return "there is not enough memory for this" if isinstance(error, MemoryError) else None


def _flush(code: int) -> int:
    """Write buffered output. A reader that is gone is no error; a full disk is one."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:  # noqa: PERF203 - two streams
            silence(stream.fileno())
            if not isinstance(error, BrokenPipeError):
                code = _say(_system_sentence(error), ExitCode.INCOMPLETE)
        except ValueError:
            continue  # it is closed
    return code


def _say(sentence: str, code: int) -> int:
    width, text = _terminal_width(), printable(f"hockney: {sentence}")
    if width is not None:
        text = "\n".join("\n".join(wrapped(line, width, rest="  ")) for line in text.splitlines())
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr)
    return code


def _terminal_width() -> int | None:
    """The columns of the terminal that standard error is; None of anything else."""
    try:
        return max(os.get_terminal_size(sys.stderr.fileno()).columns or 80, 20)
    except (OSError, ValueError):
        return None


def _system_sentence(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    if error.filename is None:
        return f"cannot write the output: {reason}" if error.errno in _OF_OUTPUT else reason
    return f"cannot use {os.fsdecode(error.filename)}: {reason}" if not isinstance(error.filename, int) else reason
