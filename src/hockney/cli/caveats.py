"""Caveats of a screen: what limits its figures, in at most five lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from hockney.cli import render
from hockney.cli.rerun import typed
from hockney.model import Warning_
from hockney.results.runs import Run
from hockney.units import printable

Caveat = tuple[str, str]
"""A sentence in short, and in full with its fix."""

_LINES_MAX = 5


def caveat_lines(caveats: Iterable[Caveat], *, verbose: bool = False) -> tuple[list[str], int]:
    """One line for each of the first five, and how many are left out; `verbose`: all in full."""
    if verbose:
        return [line for _, full in caveats for line in render.wrapped(f"! {full}", rest="  ")], 0
    lines = [
        textwrap.shorten(printable(f"! {short}"), render.line_width(), placeholder=" …", break_on_hyphens=False)
        for short, _ in caveats
    ]
    return lines[:_LINES_MAX], len(lines[_LINES_MAX:])


def of_warnings(seen: Sequence[Warning_]) -> list[Caveat]:
    """The caveats of warnings, each kind once; the load before the run is left out if there was load during it."""
    by_kind = {(warning.kind, warning.subject): warning for warning in seen}
    if ("others", "machine") in by_kind:
        by_kind.pop(("load", "machine"), None)
    return [(warning.cause, str(warning)) for warning in by_kind.values()]


def print_caveats(run: Run, *, verbose: bool = False) -> None:
    """Print those of a run below a heading, and the command that prints all with their fixes; nothing without any."""
    caveats = of_warnings(run.warnings)
    lines, left = caveat_lines(caveats, verbose=verbose)
    if lines:
        render.title("Caveats")
        render.lines(lines)
    if not verbose and (left or any(short != full for short, full in caveats)):
        render.note(f"Fixes{f' and {left} more' if left else ''}: {typed('show', run.id, '-v')}", style="dim")
