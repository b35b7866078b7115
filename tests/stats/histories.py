"""Generated histories, and what `changes` finds in them: `python -m tests.stats.histories` prints the rates.

A history has 60 nights of six launches. The machine is in its usual state on four nights of five, else in another one,
where times are longer. Its pace has seasons and wanders, and in one history of four it steps by up to 12 % one night; a
series follows the pace less or more than in proportion. One night in ten is bad: all its launches are slower by 5 to
100 %, or some of them are, or quicker. Nights scatter by about 2 %, in ways that the method does not assume.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hockney.stats.changes import RUNS_MIN, LevelChange, changes
from hockney.stats.states import levels_of

Floats = NDArray[np.float64]
NIGHTS = 60
STEP = 1.1
_NEAR = 2  # nights


def _resembling(rng: np.random.Generator, count: int) -> Floats:
    """Neighbouring nights correlate by 0.5."""
    logs = rng.standard_normal(count)
    for night in range(1, count):
        logs[night] = 0.5 * logs[night - 1] + np.sqrt(0.75) * logs[night]
    return 0.02 * logs


NOISE: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, count: 0.02 * rng.standard_normal(count),
    "heavy tails (t, 2.5 degrees of freedom)": lambda rng, count: 0.014 * rng.standard_t(2.5, count),
    "to one side (exponential)": lambda rng, count: 0.02 * rng.exponential(1.0, count),
    "neighbours correlate by 0.5": _resembling,
    "two values, 3 % apart": lambda rng, count: (
        0.015 * rng.choice((-1.0, 1.0), count) + 0.005 * rng.standard_normal(count)
    ),
}


@dataclass(frozen=True)
class History:
    """The nights in the usual state: times, their scatter, floors and paces; where the step is, and its ratio."""

    times: Floats
    scatter: Floats
    floors: Floats
    paces: Floats
    step_at: int
    step: float

    def changes(self, count: int | None = None) -> tuple[LevelChange, ...]:
        """Those seen in the first nights (None: in all)."""
        machine = {"floor": self.floors[:count].tolist(), "pace": self.paces[:count].tolist()}
        return changes(self.times[:count].tolist(), self.scatter[:count].tolist(), machine).changes


def history(rng: np.random.Generator, kind: str, step: float = 1.0) -> History:
    """A history with this noise, and a step on one of the nights 10 to 49."""
    night, step_at = np.arange(NIGHTS), int(rng.integers(10, 50))
    pace = rng.uniform(0, 0.05) * np.sin(2 * np.pi * (night / rng.uniform(40, 120) + rng.random()))
    pace += np.cumsum(rng.standard_normal(NIGHTS)) * rng.uniform(0, 0.003)
    pace += (rng.random() < 0.25) * rng.uniform(-0.12, 0.12) * (night >= rng.integers(NIGHTS))
    other = rng.random(NIGHTS) < 0.2
    floor = np.log(40.0) + pace + other * np.log(4.0) + 0.02 * rng.standard_normal(NIGHTS)
    logs = np.log(1000.0) + rng.uniform(0.7, 1.5) * pace + other * np.log(1.8) + NOISE[kind](rng, NIGHTS)
    launches = (logs + np.log(step) * (night >= step_at))[:, None] + 0.01 * rng.standard_normal((NIGHTS, 6))
    for bad in np.flatnonzero(rng.random(NIGHTS) < 0.1):
        by = np.log1p(rng.uniform(0.05, 1.0)) if rng.random() < 0.9 else np.log1p(-rng.uniform(0.03, 0.2))
        launches[bad, : 6 if rng.random() < 0.5 else rng.integers(1, 6)] += by
    levels = levels_of([(float(each), float(each)) for each in np.exp(floor)], None)
    seen = np.array([level == max(set(levels), key=levels.count) for level in levels])
    scatter = launches.std(axis=1, ddof=1) / np.sqrt(6)
    paces = np.exp(pace + 0.003 * rng.standard_normal(NIGHTS))
    times, scatter, floors, paces = (
        each[seen] for each in (np.exp(launches.mean(axis=1)), scatter, np.exp(floor), paces)
    )
    return History(times, scatter, floors, paces, int(seen[:step_at].sum()), step)


@dataclass(frozen=True)
class Outcome:
    """Of a history without a step: false changes after all nights, and on any night. Of one with a step: whether it is
    dated to within two nights after all, the nights from it on until it is, and whether its interval holds it."""

    false_at_end: int
    false_ever: int
    is_found: bool
    delay: float
    holds: bool


def outcome(seed: int, kind: str) -> Outcome:
    rng = np.random.default_rng(seed)
    calm, made = history(rng, kind), history(rng, kind, float(rng.choice((STEP, 1 / STEP))))
    ever: list[int] = []
    for count in range(RUNS_MIN, len(calm.times) + 1):
        ever += [each.index for each in calm.changes(count) if not any(abs(each.index - at) <= _NEAR for at in ever)]

    def near(count: int | None = None) -> Sequence[LevelChange]:
        return [each for each in made.changes(count) if abs(each.index - made.step_at) <= _NEAR]

    after = range(1, min(20, len(made.times) - made.step_at) + 1)
    delay = next((nights for nights in after if near(made.step_at + nights)), np.inf)
    found = near()
    holds = any((each.shift.low or 0.0) <= made.step <= (each.shift.high or np.inf) for each in found)
    return Outcome(len(calm.changes()), len(ever), bool(found), delay, holds)


def main(histories: int = 1000) -> None:
    """Print the table."""
    print(
        "| noise | 10 % found | known after: half, 90 % | false in 10,000: at the end, on any night | interval holds |"
    )
    print("| --- | --- | --- | --- | --- |")
    total: list[Outcome] = []
    for number, kind in enumerate(NOISE):
        each = [outcome(100_000 * number + seed, kind) for seed in range(histories // len(NOISE))]
        total += each
        print(_row(kind, each), flush=True)
    print(_row("all", total))


def _row(name: str, each: Sequence[Outcome]) -> str:
    found = [one for one in each if one.is_found]
    half, most = (np.quantile([one.delay for one in each], part, method="higher") for part in (0.5, 0.9))
    at_end, ever = (
        10_000 * sum(counts) / (NIGHTS * len(each))
        for counts in ([one.false_at_end for one in each], [one.false_ever for one in each])
    )
    holds = np.mean([one.holds for one in found])
    cells = (f"{100 * len(found) / len(each):.1f} %", f"{half:.0f}, {most:.0f} nights", f"{at_end:.1f}, {ever:.1f}")
    return f"| {name} | {' | '.join(cells)} | {100 * holds:.0f} % |"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
