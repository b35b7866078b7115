"""Floors on one level or on two, and the accuracy of `classify`: `python -m tests.stats.levels` prints the table.

A run has 40 or 300 measurements, each with a floor before and after it. A level scatters evenly, normally, with wild
values, to one side, drifts by a third, or is disturbed in bursts. Of two levels the other one is 1.2 to 2 times as
high and holds a fifth, or half, of the measurements, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hockney.model import MachineProbe
from hockney.stats import MIXED, classify

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, int], Floats]  # logs of floors, one after the other

ONE: dict[str, Shape] = {
    "normal, 3 %": lambda rng, count: 0.03 * rng.standard_normal(count),
    "normal, 8 %": lambda rng, count: 0.08 * rng.standard_normal(count),
    "even, over a third": lambda rng, count: rng.uniform(0, np.log(4 / 3), count),
    "wild, 4 %": lambda rng, count: 0.04 * rng.standard_t(2, count),
    "to one side, 10 %": lambda rng, count: rng.exponential(0.1, count),
    "drifting by a third": lambda rng, count: np.linspace(0, np.log(4 / 3), count) + 0.02 * rng.standard_normal(count),
    "disturbed in bursts": lambda rng, count: (
        0.02 * rng.standard_normal(count)
        + np.repeat(rng.random(-(-count // 8)) < 0.2, 8)[:count] * rng.uniform(0.03, 0.35, count)
    ),
}
RATIOS = (1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0)


def run(rng: np.random.Generator, logs: Floats) -> list[MachineProbe]:
    floors = 30.0 * np.exp(logs)
    return [
        MachineProbe((float(before), float(after))) for before, after in zip(floors[::2], floors[1::2], strict=True)
    ]


def of_one(rng: np.random.Generator, shape: str, measurements: int) -> tuple[bool, float]:
    """Whether all measurements have one state, and which part of them is mixed."""
    states = classify(run(rng, ONE[shape](rng, 2 * measurements)))
    return len({state for state in states if state != MIXED}) == 1, states.count(MIXED) / measurements


def of_two(
    rng: np.random.Generator, ratio: float, scatter: float, share: float, measurements: int
) -> tuple[bool, float]:
    """Whether the states are those two, and which part of the measurements is mixed though it is not."""
    upper = np.arange(measurements) < share * measurements
    upper = np.roll(upper, int(rng.integers(measurements)))
    logs = np.repeat(upper, 2) * np.log(ratio) + scatter * rng.standard_normal(2 * measurements)
    states = classify(run(rng, logs))
    low, high = (
        {state for state, at in zip(states, upper, strict=True) if at == side and state != MIXED} for side in (0, 1)
    )
    return len(low) == len(high) == 1 and low != high, states.count(MIXED) / measurements


def main() -> None:
    """Print the table."""
    runs = 200
    print("| floors | 40 measurements | 300 measurements |\n| --- | --- | --- |")
    for shape in ONE:
        cells = []
        for measurements in (40, 300):
            results = [of_one(np.random.default_rng(seed), shape, measurements) for seed in range(runs)]
            cells.append(_cell(results))
        print(f"| one level: {shape} | {' | '.join(cells)} |", flush=True)
    for scatter in (0.02, 0.05):
        for ratio in RATIOS:
            cells = []
            for measurements in (40, 300):
                results = [
                    of_two(np.random.default_rng(seed), ratio, scatter, (0.2, 0.5)[seed % 2], measurements)
                    for seed in range(runs)
                ]
                cells.append(_cell(results))
            print(f"| two levels, ratio {ratio}, {100 * scatter:.0f} % | {' | '.join(cells)} |", flush=True)


def _cell(found: list[tuple[bool, float]]) -> str:
    right, mixed = zip(*found, strict=True)
    return f"{100 * np.mean(right):.1f} % ({100 * np.mean(mixed):.1f} %)"


if __name__ == "__main__":
    main()
