"""Standard output when nobody reads it any more, as after `hockney list | head -1`."""

from __future__ import annotations

import os
import sys


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
