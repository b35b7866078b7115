"""Ratios of two programs that are measured in alternation, round after round, each as a quadruple: A, B, B, A.

The machine changes its state from second to second, and every time changes with it. So two programs are measured in
turns, as by `hockney compare --interleave` (docs/methods.md): drift cancels within a quadruple, and contention favours
neither side. Each measurement starts its program again, so a quadruple is also a launch pair. The ratio is the median
over quadruples, with its order-statistic interval. All series go through the same rounds in random order, so that all
see the same states of the machine.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scripts.benchlib.table import INCONCLUSIVE, UNKNOWN, Row, Target, not_measured, show_interval

from hockney.errors import HockneyError
from hockney.stats import median
from hockney.units import counted, format_ns, format_rate

_FAILURES_MAX = 3  # after more failures a contest is not worth its time limit

Measured = Mapping[int, float]
"""ns by key; the key is a size in bytes."""


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

    def row(self, quadruples: Sequence[Quadruple], why: str = "") -> Row:
        """The ratio over all quadruples, and whether it meets the target; without any, `why`."""
        if not quadruples:
            nothing = ": ".join(filter(None, ("nothing was measured", why)))
            return Row(self.what, self.target.text, nothing, UNKNOWN, INCONCLUSIVE)

        def show(sides: Sequence[tuple[float, ...]]) -> str:
            time_ns = statistics.median([ns for side in sides for ns in side])
            return format_rate(self.rate_bytes / time_ns * 1e9) if self.rate_bytes else format_ns(time_ns)

        ratio = median([1 / one.ratio if self.rate_bytes else one.ratio for one in quadruples])
        ours, theirs = show([one.ours_ns for one in quadruples]), show([one.theirs_ns for one in quadruples])
        measured = f"{show_interval(ratio, 3 if self.fractional else 2)}: {self.ours} {ours}, {self.theirs} {theirs}"
        count = counted(len(quadruples), "quadruple")
        return Row(self.what, self.target.text, measured, count, self.target.judge(ratio))


class Series(Protocol):
    """Something to measure once in every round."""

    name: str

    def measure(self, number: int) -> None:
        """The measurement of round `number`. Raises HockneyError."""
        ...

    def rows(self) -> list[Row]:
        """The rows of the table."""
        ...


@dataclass
class Contest:
    """Two programs that do the same, measured in alternation; who begins changes from round to round.

    `ours` and `theirs` run once and give a time for each size in `questions`. A measurement makes `repeats` quadruples:
    for a short run with scatter, more of them are better than longer runs. It takes part in `rounds_max` rounds; `why`:
    its last failure.
    """

    name: str
    questions: Mapping[int, Question]
    ours: Callable[[], Measured]
    theirs: Callable[[], Measured]
    repeats: int = 1
    rounds_max: int = sys.maxsize
    quadruples: dict[int, list[Quadruple]] = field(default_factory=dict)
    why: str = ""

    def measure(self, number: int) -> None:
        try:
            for place in range(self.repeats if number < self.rounds_max else 0):
                self._measure(we_begin=(number + place) % 2 == 0)
        except HockneyError as error:
            self.why = str(error)
            raise

    def _measure(self, *, we_begin: bool) -> None:
        sides = (self.ours, self.theirs) if we_begin else (self.theirs, self.ours)
        taken = [side() for side in (*sides, *reversed(sides))]
        for key in self.questions:
            outer, inner = (taken[0][key], taken[3][key]), (taken[1][key], taken[2][key])
            one = Quadruple(outer, inner) if we_begin else Quadruple(inner, outer)
            self.quadruples.setdefault(key, []).append(one)

    def rows(self) -> list[Row]:
        return [question.row(self.quadruples.get(key, []), self.why) for key, question in self.questions.items()]


@dataclass
class Absent:
    """A series that can't be measured here, and why."""

    name: str
    what: str
    target: Target
    why: str

    def measure(self, number: int) -> None:
        return

    def rows(self) -> list[Row]:
        return [not_measured(self.what, self.target, self.why)]


def go_round(
    series: Sequence[Series],
    rounds: int,
    *,
    seed: int,
    say: Callable[[str], None],
    between: Callable[[], None] = lambda: None,
) -> None:
    """Measure every series once in each round, in random order; `between` is called before each round.

    A series that fails again and again is left out.
    """
    order = list(series)
    chance = random.Random(seed)
    failures: Counter[str] = Counter()
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        between()
        chance.shuffle(order)
        for one in list(order):
            try:
                one.measure(number)
            except HockneyError as error:  # noqa: PERF203  # each series by itself
                say(f"{one.name}: {error}")
                failures[one.name] += 1
                if failures[one.name] >= _FAILURES_MAX:
                    order.remove(one)
                    say(f"{one.name}: given up")
