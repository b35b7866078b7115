"""Standard streams that are closed, or that nobody reads any more, as after `hockney list | head -1`."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from contextvars import ContextVar

from hockney.units import printable

holds_document = ContextVar("holds_document", default=False)  # whether a JSON document was begun on standard output


def open_closed() -> None:
    """Open standard streams that the caller has closed (`2>&-`), or the next file opened would take their place.

    Standard output is opened for reading only, so that a result that cannot be printed is an error.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:  # the lowest number that is free is its own
            os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - open until the process ends


def silence(descriptor: int) -> None:
    """Discard everything written from now on, including Python's buffered output."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def print_line(text: str) -> None:
    """Print a line. If the reader has left, the command continues to its exit code."""
    try:
        print(printable(text))
    except BrokenPipeError:
        silence(sys.stdout.fileno())


def remark(text: str) -> None:
    """Print a line on standard error, if possible."""
    with contextlib.suppress(OSError):  # reported at the end
        sys.stdout.flush()  # keeps the order where both streams go to one file
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr.fileno())


@contextlib.contextmanager
def passing(text: str) -> Iterator[None]:
    """Show a line on standard error until the end of the block, if that is a terminal."""
    is_shown = sys.stderr.isatty()
    with contextlib.suppress(OSError):
        print(f"{text} ..." if is_shown else "", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            print(f"\r{' ' * (len(text) + 4)}\r" if is_shown else "", end="", file=sys.stderr, flush=True)


def is_reader_gone() -> bool:
    """Whether the reader of standard output is gone."""
    poll = select.poll()
    try:
        poll.register(sys.stdout, 0)  # errors are reported without asking
    except (OSError, ValueError):
        return False  # closed, or not a file of the system
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
