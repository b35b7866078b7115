"""Pairs of measurements taken one right after the other, and their ratio in each state of the machine.

The machine changes its state for seconds to minutes, and every latency changes with it. So what is compared is measured
in pairs, and before, between and after the two the machine is looked at: the floor, and the paces of both CPUs, as in
every visit. Only a pair that lies in one state as a whole counts. The ratio is the median
over the ratios of such pairs, with its order-statistic interval: whatever drifts slowly is the same on both sides.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.benchlib.table import UNDECIDED, UNKNOWN, Row, Target

from hockney.stats import MIXED, Interval, Signs, State, classify, median, place
from hockney.stats import UNKNOWN as NO_STATE
from hockney.units import format_ns, format_rate

MIN_PAIRS = 6  # fewer give no 95 % interval of a median
_CORES = {"": "cores alone", "one slowed": "a core shared", "all slowed": "both cores shared", "same core": "same core"}


@dataclass(frozen=True)
class Look:
    """The machine at one moment: the floor, the pace of each of the two CPUs, and the first's while the other rests."""

    floor_ns: float
    pace_ns: tuple[float, ...]
    solo_ns: float


@dataclass(frozen=True)
class Taken:
    """One measurement in ns, and the machine just before and just after it."""

    value_ns: float
    before: Look
    after: Look

    @property
    def signs(self) -> Signs:
        """What tells its state."""
        before, after = self.before, self.after
        return Signs(
            (before.floor_ns, after.floor_ns), (before.pace_ns, after.pace_ns), (before.solo_ns, after.solo_ns)
        )


@dataclass(frozen=True)
class Pair:
    """Two measurements, one right after the other."""

    ours: Taken
    theirs: Taken


@dataclass(frozen=True)
class Compared:
    """All pairs of one state. `ratio` is ours over theirs in time, or theirs over ours where speeds are compared.

    `state` is without what the paces say where pairs of any pace are together.
    """

    state: State
    paces_apart: bool
    ratio: Interval
    ours_ns: float
    theirs_ns: float


@dataclass(frozen=True)
class Question:
    """What is asked of a series of pairs, and how the answer reads.

    `rate_bytes`: the payload behind one value, where the ratio is one of speeds; 0 where it is one of times.
    `fractional`: show 1.003 and not 1.00, where a target is a matter of percents. `paces_apart`: one row for each state
    of the paces too, where both sides of the ratio don't suffer alike.
    """

    what: str
    target: Target
    ours: str
    theirs: str
    rate_bytes: int = 0
    fractional: bool = False
    paces_apart: bool = False


def by_state(pairs: Sequence[Pair], *, speeds: bool = False, paces_apart: bool = False) -> tuple[list[Compared], int]:
    """The pairs of each state in ascending order of the floor, and how many pairs lie in no single state."""
    signs = [taken.signs for pair in pairs for taken in (pair.ours, pair.theirs)]
    states = iter(classify(signs))
    levels = iter(classify(signs if paces_apart else [one._replace(pace_ns=None) for one in signs]))
    groups: dict[State, list[Pair]] = {}
    for pair in pairs:
        first, second = next(states), next(states)
        level, _ = next(levels), next(levels)
        if first == second and first not in (MIXED, NO_STATE):
            groups.setdefault(level, []).append(pair)
    left_out = len(pairs) - sum(map(len, groups.values()))
    order = sorted(groups, key=lambda state: place(state.name, state.floor_ns))
    return [_compare(state, paces_apart, groups[state], speeds) for state in order], left_out


def _compare(state: State, paces_apart: bool, pairs: Sequence[Pair], speeds: bool) -> Compared:
    ratios = [
        pair.theirs.value_ns / pair.ours.value_ns if speeds else pair.ours.value_ns / pair.theirs.value_ns
        for pair in pairs
    ]
    ours_ns = statistics.median(pair.ours.value_ns for pair in pairs)
    theirs_ns = statistics.median(pair.theirs.value_ns for pair in pairs)
    return Compared(state, paces_apart, median(ratios), ours_ns, theirs_ns)


def rows(question: Question, pairs: Sequence[Pair]) -> list[Row]:
    """One row for each state that was seen. A state with too few pairs for an interval has a row only if no other has
    enough: it is no more than a glimpse."""
    compared, left_out = by_state(pairs, speeds=question.rate_bytes > 0, paces_apart=question.paces_apart)
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
    cores = f", {_CORES.get(one.state.slowed, one.state.slowed)}" if one.paces_apart else ""
    state = f"{_show_level(one.state)}{cores}; {one.ratio.n} pairs"
    return Row(question.what, question.target.text, measured, state, question.target.judge(one.ratio))


def show_interval(value: Interval, digits: int) -> str:
    """`1.003 (0.998–1.009)`, or that there is no interval."""
    if value.low is None or value.high is None:
        return f"{value.value:.{digits}f} (no interval)"
    return f"{value.value:.{digits}f} ({value.low:.{digits}f}–{value.high:.{digits}f})"


def show_state(state: State) -> str:
    """`near, 27.1 ns`, `near, 27.1 ns, one slowed`."""
    return f"{_show_level(state)}, {state.slowed}" if state.slowed else _show_level(state)


def _show_level(state: State) -> str:
    return state.name if state.floor_ns is None else f"{state.level.split()[0]}, {format_ns(state.floor_ns)}"
