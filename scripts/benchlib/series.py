"""Series that are measured round after round: each adds one measurement, or one quadruple for each size.

All series go through the same rounds in random order, so that all see the same states of the machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scripts.benchlib.pairs import Quadruple, Question, row
from scripts.benchlib.table import Row, Target, not_measured

from hockney.errors import HockneyError

_FAILURES_MAX = 3  # after more failures a contest is not worth its time limit

Measured = Mapping[int, float]
"""ns by key; the key is a size in bytes."""


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
    for a short run with scatter, more of them are better than longer runs.
    """

    name: str
    questions: Mapping[int, Question]
    ours: Callable[[], Measured]
    theirs: Callable[[], Measured]
    repeats: int = 1
    quadruples: dict[int, list[Quadruple]] = field(default_factory=dict)

    def measure(self, number: int) -> None:
        for place in range(self.repeats):
            self._measure(we_begin=(number + place) % 2 == 0)

    def _measure(self, *, we_begin: bool) -> None:
        sides = (self.ours, self.theirs) if we_begin else (self.theirs, self.ours)
        taken = [side() for side in (*sides, *reversed(sides))]
        outer, inner = (taken[0], taken[3]), (taken[1], taken[2])
        for key in self.questions:
            first, second = (tuple(one[key] for one in ends) for ends in (outer, inner))
            one = Quadruple(first, second) if we_begin else Quadruple(second, first)
            self.quadruples.setdefault(key, []).append(one)

    def rows(self) -> list[Row]:
        return [row(question, self.quadruples.get(key, [])) for key, question in self.questions.items()]


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
    failures: dict[str, int] = {}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        between()
        chance.shuffle(order)
        for one in list(order):
            error = _measure(one, number)
            if error is None:
                continue
            say(f"{one.name}: {error}")
            failures[one.name] = failures.get(one.name, 0) + 1
            if failures[one.name] >= _FAILURES_MAX:
                order.remove(one)
                say(f"{one.name}: given up")


def _measure(one: Series, number: int) -> HockneyError | None:
    try:
        one.measure(number)
    except HockneyError as error:
        return error
    return None
