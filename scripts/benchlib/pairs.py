"""Pairs of measurements taken one right after the other, and their ratio in each state of the machine.

The machine changes its state for seconds to minutes, and every latency changes with it. So what is compared is measured
in pairs, the floor is taken before, between and after, and only a pair that lies in one state as a whole counts. The
ratio is the median over the ratios of such pairs, with its order-statistic interval: whatever drifts slowly is the same
on both sides of a pair.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.benchlib.table import UNDECIDED, UNKNOWN, Row, Target

from hockney.stats import MIXED, Interval, State, classify, median
from hockney.units import format_ns, format_rate

MIN_PAIRS = 6  # fewer give no 95 % interval of a median


@dataclass(frozen=True)
class Taken:
    """One measurement in ns, and the floor just before and just after it; None where there is no floor."""

    value_ns: float
    floor_ns: tuple[float, float] | None


@dataclass(frozen=True)
class Pair:
    """Two measurements, one right after the other."""

    ours: Taken
    theirs: Taken


@dataclass(frozen=True)
class Compared:
    """All pairs of one state. `ratio` is ours over theirs in time, or theirs over ours where speeds are compared."""

    state: State
    ratio: Interval
    ours_ns: float
    theirs_ns: float


@dataclass(frozen=True)
class Question:
    """What is asked of a series of pairs, and how the answer reads.

    `rate_bytes`: the payload behind one value, where the ratio is one of speeds; 0 where it is one of times.
    `fractional`: show 1.003 and not 1.00, where a target is a matter of percents.
    """

    what: str
    target: Target
    ours: str
    theirs: str
    rate_bytes: int = 0
    fractional: bool = False


def by_state(pairs: Sequence[Pair], *, speeds: bool = False) -> tuple[list[Compared], int]:
    """The pairs of each state in ascending order of the floor, and how many pairs lie in no single state."""
    states = iter(classify([taken.floor_ns for pair in pairs for taken in (pair.ours, pair.theirs)]))
    groups: dict[State, list[Pair]] = {}
    left_out = 0
    for pair in pairs:
        first, second = next(states), next(states)
        if first == second and first != MIXED:
            groups.setdefault(first, []).append(pair)
        else:
            left_out += 1
    return [
        _compare(state, groups[state], speeds) for state in sorted(groups, key=lambda one: one.floor_ns or 0.0)
    ], left_out


def _compare(state: State, pairs: Sequence[Pair], speeds: bool) -> Compared:
    ratios = [
        pair.theirs.value_ns / pair.ours.value_ns if speeds else pair.ours.value_ns / pair.theirs.value_ns
        for pair in pairs
    ]
    ours_ns = statistics.median(pair.ours.value_ns for pair in pairs)
    theirs_ns = statistics.median(pair.theirs.value_ns for pair in pairs)
    return Compared(state, median(ratios), ours_ns, theirs_ns)


def rows(question: Question, pairs: Sequence[Pair]) -> list[Row]:
    """One row for each state that was seen. A state with too few pairs for an interval has a row only if no other has
    enough: it is no more than a glimpse."""
    compared, left_out = by_state(pairs, speeds=question.rate_bytes > 0)
    if not compared:
        why = f"the state changed within each of {left_out} pairs" if left_out else "no pair was measured"
        return [Row(question.what, question.target.text, why, UNKNOWN, UNDECIDED)]
    enough = [one for one in compared if one.ratio.n >= MIN_PAIRS]
    return [_row(question, one) for one in enough or compared]


def _row(question: Question, one: Compared) -> Row:
    def show(time_ns: float) -> str:
        return format_rate(question.rate_bytes / time_ns * 1e9) if question.rate_bytes else format_ns(time_ns)

    measured = f"{show_interval(one.ratio, 3 if question.fractional else 2)}: {question.ours} {show(one.ours_ns)}"
    measured += f", {question.theirs} {show(one.theirs_ns)}"
    state = f"{show_state(one.state)}; {one.ratio.n} pairs"
    return Row(question.what, question.target.text, measured, state, question.target.judge(one.ratio))


def show_interval(value: Interval, digits: int) -> str:
    """`1.003 (0.998–1.009)`, or that there is no interval."""
    if value.low is None or value.high is None:
        return f"{value.value:.{digits}f} (no interval)"
    return f"{value.value:.{digits}f} ({value.low:.{digits}f}–{value.high:.{digits}f})"


def show_state(state: State) -> str:
    """`near, 27.1 ns`."""
    return state.name if state.floor_ns is None else f"{state.name.split()[0]}, {format_ns(state.floor_ns)}"
