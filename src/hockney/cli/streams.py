"""Standard output when nobody reads it any more, as after `hockney list | head -1`."""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Standard streams that the caller has closed (`2>&-`) lead nowhere, instead of into the next file opened."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
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
        print(text)
    except BrokenPipeError:
        silence(sys.stdout.fileno())
