"""Standard streams when nobody reads them any more, as after `hockney list | head -1`."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

from hockney.cli.copying import copyable
from hockney.errors import DamagedRowWarning
from hockney.units import printable

holds_document = ContextVar("holds_document", default=False)  # whether a JSON document was begun on standard output


def open_closed() -> None:
    """Standard streams that the caller has closed (`2>&-`) lead nowhere, instead of into the next file opened.

    Results that nobody can get are an error, so standard output can't be written then.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - it lives as long as we do


def silence(descriptor: int) -> None:
    """What is written from now on goes nowhere, also what Python still holds back and writes when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def print_line(text: str) -> None:
    """A line on standard output. A reader that has left is no error, and the command goes on to its exit code."""
    try:
        print(printable(text))
    except BrokenPipeError:
        silence(sys.stdout.fileno())


def remark(text: str) -> None:
    """A line on standard error beside the results: where it can't be written, the command goes on without it."""
    with contextlib.suppress(OSError):  # said at the end
        sys.stdout.flush()  # or it stands in the middle of a table where both go to one file
    try:
        print(printable(copyable(text)), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr.fileno())


@contextlib.contextmanager
def damage_told() -> Iterator[list[str]]:
    """Says on standard error which rows of a results file were left out, each once; gives the list of them."""
    told: list[str] = []

    def tell(message: Warning | str, category: type[Warning], *rest: object, **more: object) -> None:
        if not issubclass(category, DamagedRowWarning):
            before(message, category, *rest, **more)  # type: ignore[arg-type]
        elif str(message) not in told:
            told.append(str(message))
            remark(f"hockney: {message}")

    with warnings.catch_warnings():
        before = warnings.showwarning
        warnings.simplefilter("always", DamagedRowWarning)
        warnings.showwarning = tell
        yield told


def is_reader_gone() -> bool:
    """Whether nobody reads standard output any more."""
    poll = select.poll()
    try:
        poll.register(sys.stdout, 0)  # what is wrong with it is told unasked
    except (OSError, ValueError):
        return False  # it is closed, or no file of the system
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
