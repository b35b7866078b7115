"""How often a race of settings is right: `python -m tests.truth.tune_rates SEED RACES` generates races and counts.

A race has eight choices at six sizes. Of the choices 30 % are as fast as the default, 40 % slower by up to 3, 20 %
faster by 1.1 to 2, and 10 % cross it from size to size. Launches scatter by 1, 3 or 6 %, with heavy tails (Student's t
with 3 degrees of freedom), which the method does not assume. A cell with a gain of 10 % or more is right if it gets a
choice within 5 % of its best one.
"""

from __future__ import annotations

import math
import sys
from collections import Counter

import numpy as np

from hockney.analysis.tune.race import Referee
from hockney.model import Point
from hockney.worker.settings import Choice

_CHOICES, _LAUNCHES = 8, 40
_POINTS = [Point("mpi", "bcast", 4, 8 * 4**power) for power in range(6)]


def race(rng: np.random.Generator) -> Counter[str]:
    """The counts of one race; `whole`: measurements until all choices are known to 2 %."""
    true = {}
    for number in range(1, _CHOICES + 1):
        kind = rng.choice(["same", "slower", "faster", "crosses"], p=[0.3, 0.4, 0.2, 0.1])
        log = {"slower": math.log(rng.uniform(1.05, 3)), "faster": -math.log(rng.uniform(1.1, 2))}.get(kind, 0.0)
        tilt = rng.uniform(-0.15, 0.15) if kind == "crosses" else 0.0
        true.update({(number, point): math.exp(log + tilt * (at - 2.5)) for at, point in enumerate(_POINTS)})
    scatter = rng.choice([0.01, 0.03, 0.06])
    referee = Referee([Choice(str(number)) for number in range(_CHOICES)], _POINTS)
    ratios: dict[tuple[int, Point], list[float]] = {entry: [] for entry in true}
    left: set[tuple[int, Point]] = set()
    for _ in range(_LAUNCHES):
        for entry in (each for each in true if each not in left):
            ratios[entry].append(true[entry] * math.exp(scatter * rng.standard_t(3)))
        left |= referee.decide(ratios)
    whole = max(7, math.ceil((2 * 1.7 * scatter / 0.02) ** 2))  # launches: twice the deviation of t with 3 degrees
    counts = Counter(used=sum(map(len, ratios.values())), whole=whole * len(true))
    for point, cell in zip(_POINTS, referee.cells(), strict=True):
        best = min(true[number, point] for number in range(1, _CHOICES + 1))
        ratio = true[int(cell.winner.name) + 1, point] if cell.is_rule else 1.0
        counts.update(gains=best <= 1 / 1.1, right=best <= 1 / 1.1 and cell.is_rule and ratio <= 1.05 * best)
        counts.update(written=cell.is_rule, slower=ratio > 1)
    return counts


def main() -> None:
    """Print the counts."""
    rng, counts = np.random.default_rng(int(sys.argv[1])), Counter[str]()
    for _ in range(int(sys.argv[2])):
        counts.update(race(rng))
    print(
        f"right {counts['right']} of {counts['gains']} cells with a gain of 10 %; {counts['slower']} of "
        f"{counts['written']} written are slower; {counts['used'] / counts['whole']:.2f} of all measurements to 2 %"
    )


if __name__ == "__main__":
    main()
