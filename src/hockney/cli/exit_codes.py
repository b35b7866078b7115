"""How a command ends: every exception becomes a sentence and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from hockney.cli.rerun import error_text
from hockney.cli.streams import holds_document, is_reader_gone, silence
from hockney.errors import ExitCode, HockneyError
from hockney.units import printable

_OF_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EBADF)


def explain(error: BaseException, arguments: Sequence[str]) -> int:
    """Say on standard error what happened; gives the exit code. Only SystemExit is passed on."""
    if isinstance(error, SystemExit):
        raise error
    if os.environ.get("HOCKNEY_DEBUG") == "1":
        traceback.print_exception(error)
    if isinstance(error, BrokenPipeError) and is_reader_gone():
        return ExitCode.DONE  # the reader has seen enough, as in `hockney list | head -1`
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        # An interrupt that passed through an exec (dataclasses are made by one) marks the interpreter to end by the
        # signal, whatever exit code it is given; the next exec takes the mark away.
        exec("")
    code = error.exit_code if isinstance(error, (HockneyError, click.ClickException)) else ExitCode.INCOMPLETE
    sentence = _sentence(error, arguments)
    if isinstance(error, OSError) and error.filename is None and error.errno in _OF_OUTPUT:
        with contextlib.suppress(OSError, ValueError):
            silence(sys.stdout.fileno())  # what is still buffered would fail again
    _say_in_json(sentence, code, arguments)
    return _say(sentence, code)


def _sentence(error: BaseException, arguments: Sequence[str]) -> str:
    if isinstance(error, HockneyError):
        return error_text(error)
    if isinstance(error, click.ClickException):
        return _with_hint(error)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return f"stopped by Ctrl-C; {error}" if str(error) else "stopped by Ctrl-C"
    if isinstance(error, OSError) and error.errno is not None:
        return _system_sentence(error)
    if is_for_memory(error):
        limit = limit_bytes()
        of = f" within the limit of {limit >> 20} MiB; raise it, for example: ulimit -v unlimited" if limit else ""
        return f"there is not enough memory for this{of}"
    return _fault(error, arguments)


def limit_bytes() -> int | None:
    """What this process may use of memory at most (`ulimit -v`); None without a limit."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def is_for_memory(error: BaseException) -> bool:
    """Whether memory is what is missing: under a limit the system's loader and threads say so in other words."""
    if isinstance(error, MemoryError):
        return True
    return limit_bytes() is not None and (isinstance(error, ImportError) or "can't start new thread" in str(error))


def flush(code: int) -> int:
    """Let out what is still buffered. A reader that is gone is no error; a full disk is one."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # noqa: PERF203 - two streams
            silence(stream.fileno())
        except OSError as error:
            silence(stream.fileno())
            code = _say(_system_sentence(error), ExitCode.INCOMPLETE)
        except ValueError:
            continue  # it is closed
    return code


def _say(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(printable(f"hockney: {sentence}"), file=sys.stderr)
    return code


def _say_in_json(sentence: str, code: int, arguments: Sequence[str]) -> None:
    """Who asked for JSON gets the error as a document too, unless there is one already."""
    if "--json" not in arguments or holds_document.get():
        return
    from hockney.cli.render import print_json

    with contextlib.suppress(OSError, ValueError):
        print_json("error", {"error": sentence, "exit_code": code})


def _with_hint(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    text = text[:1].lower() + text[1:]
    return f"{text} (see: {context.command_path} --help)" if context else text


def _system_sentence(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    if error.filename is None:
        return f"cannot write the output: {reason}" if error.errno in _OF_OUTPUT else reason
    return f"cannot use {os.fsdecode(error.filename)}: {reason}" if not isinstance(error.filename, int) else reason


def _fault(error: BaseException, arguments: Sequence[str]) -> str:
    """What only a fault of ours brings about: the details go to a file, for whoever mends it."""
    what = traceback.format_exception_only(error)[-1].strip().partition("\n")[0]
    path = _write_report(error, arguments)
    where = f"the details are in {path}, please report them" if path else "HOCKNEY_DEBUG=1 shows the details"
    return f"a fault in hockney itself: {what}; {where}"


def _write_report(error: BaseException, arguments: Sequence[str]) -> Path | None:
    from hockney import __version__
    from hockney.worker.cache import user_folder

    lines = [
        f"hockney {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
        f"arguments: {list(arguments)}\n\n",
        *traceback.format_exception(error),
    ]
    try:
        folder = user_folder("state")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"fault-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        path.write_text("".join(lines), encoding="utf-8")
    except (OSError, HockneyError):
        return None
    return path
