"""Ratios of two programs that were measured in alternation, each as a quadruple: A, B, B, A.

The machine changes its state from second to second, and every time changes with it. So two programs are measured in
turns, as by `hockney compare --interleave` (docs/methods.md): drift cancels within a quadruple, and contention favours
neither side. Each measurement starts its program again, so a quadruple is also a launch pair. The ratio is the median
over quadruples, with its order-statistic interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.benchlib.table import INCONCLUSIVE, UNKNOWN, Row, Target

from hockney.stats import Interval, State, median
from hockney.units import counted, format_ns, format_rate

MIN_PAIRS = 6  # fewer give no 95 % interval of a median


@dataclass(frozen=True)
class Quadruple:
    """Times in ns of two programs, taken in alternation."""

    ours_ns: tuple[float, ...]
    theirs_ns: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Of our time to theirs."""
        ours, theirs = (statistics.fmean(map(math.log, side)) for side in (self.ours_ns, self.theirs_ns))
        return math.exp(ours - theirs)


@dataclass(frozen=True)
class Question:
    """The quantity of a series of quadruples, and its text.

    `rate_bytes`: the payload behind one value, if the ratio is one of speeds; 0 for times.
    `fractional`: show 1.003 and not 1.00, for a target within percents.
    """

    what: str
    target: Target
    ours: str
    theirs: str
    rate_bytes: int = 0
    fractional: bool = False


def row(question: Question, quadruples: Sequence[Quadruple]) -> Row:
    """The ratio over all quadruples, and whether it meets the target."""
    if not quadruples:
        return Row(question.what, question.target.text, "nothing was measured", UNKNOWN, INCONCLUSIVE)

    def show(times_ns: Sequence[float]) -> str:
        time_ns = statistics.median(times_ns)
        return format_rate(question.rate_bytes / time_ns * 1e9) if question.rate_bytes else format_ns(time_ns)

    ratio = median([1 / one.ratio if question.rate_bytes else one.ratio for one in quadruples])
    ours, theirs = (show([ns for one in quadruples for ns in side(one)]) for side in (_ours, _theirs))
    shown = show_interval(ratio, 3 if question.fractional else 2)
    measured = f"{shown}: {question.ours} {ours}, {question.theirs} {theirs}"
    count = counted(len(quadruples), "quadruple")
    return Row(question.what, question.target.text, measured, count, question.target.judge(ratio))


def _ours(one: Quadruple) -> tuple[float, ...]:
    return one.ours_ns


def _theirs(one: Quadruple) -> tuple[float, ...]:
    return one.theirs_ns


def show_interval(value: Interval, digits: int) -> str:
    """`1.003 (0.998–1.009)`, or that there is no interval."""
    if value.low is None or value.high is None:
        return f"{value.value:.{digits}f} (no interval)"
    return f"{value.value:.{digits}f} ({value.low:.{digits}f}–{value.high:.{digits}f})"


def show_state(state: State) -> str:
    """`near, 27.1 ns`, `near, 27.1 ns, one contended`."""
    level = state.name if state.floor_ns is None else f"{state.level.split()[0]}, {format_ns(state.floor_ns)}"
    return f"{level}, {state.contended}" if state.contended else level
