"""How often smooth curves get a protocol switch: `python -m tests.analysis.explain.smooth` prints the rates.

24 sizes up to 4 MiB. Times scatter by normal noise. The error of each is its noise, or the uncertainty after two
launches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from tests.analysis.explain.readings import found, near, reading

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve
from hockney.stats import interval
from hockney.stats.fit import Estimate

SIZES = (0, *(1 << n for n in range(23)))
NOISES = (0.003, 0.01, 0.03, 0.1)
Times = Callable[[int], float]


def straight(random: np.random.Generator) -> Times:
    start_ns, slope = 10 ** random.uniform(1.5, 4.3), 10 ** random.uniform(-2, 0)
    return lambda size: start_ns + slope * size


def knee(random: np.random.Generator, last_power: float = 6.3) -> Times:
    """Bytes that cost up to five times as much once a cache has filled, gradually."""
    start_ns, slope = 10 ** random.uniform(1.5, 4.3), 10 ** random.uniform(-2, 0)
    cache = 10 ** random.uniform(3.2, last_power)
    more, sharp = slope * (10 ** random.uniform(0.1, 0.7) - 1), random.uniform(1, 4)
    return lambda size: start_ns + size * slope + size * more / (1 + (cache / max(size, 1)) ** sharp)


def power(random: np.random.Generator) -> Times:
    start_ns, exponent, knee_bytes = (
        10 ** random.uniform(1.5, 4.3),
        random.uniform(0.4, 0.8),
        10 ** random.uniform(2, 4),
    )
    return lambda size: start_ns * (1 + (size / knee_bytes) ** exponent)


def of_two_launches(time_ns: float, noise: float, random: np.random.Generator) -> Estimate:
    """A time whose launches scatter by the noise."""
    launches = [time_ns * math.exp(noise * random.standard_normal()) for _ in range(2)]
    figure = interval.geometric_mean(launches).estimate
    assert figure is not None
    return figure


def curve_of(times: Times, noise: float, random: np.random.Generator, *, is_of_two: bool) -> MeasuredCurve:
    """A curve of noisy times."""

    def figure(size: int) -> Estimate:
        if is_of_two:
            return of_two_launches(times(size), noise, random)
        return near(times(size) * (1 + noise * random.standard_normal()), 1.96 * noise)

    points = tuple(CurvePoint(size, figure(size), float(size) or None) for size in SIZES)
    return MeasuredCurve("udp", "pingpong", 2, (), "near", points)


def answers(
    made: Callable[[np.random.Generator], Times], noise: float, curves: int, *, is_of_two: bool
) -> Counter[str]:
    """The numbers of random curves with a confirmed, and with a suspected switch."""
    count: Counter[str] = Counter()
    for seed in range(curves):
        random = np.random.default_rng(seed)
        curve = curve_of(made(random), noise, random, is_of_two=is_of_two)
        count.update({str(each.facts.get("answer")) for each in found("protocol switches", reading(curve))})
    return count


def main(curves: int = 300) -> None:
    print(f"of {curves} curves with a confirmed / a suspected switch, at noise {NOISES}")
    for is_of_two in (False, True):
        for made in (straight, knee, power):
            counts = [answers(made, noise, curves, is_of_two=is_of_two) for noise in NOISES]
            cells = ", ".join(f"{count['confirmed']} / {count['suspected']}" for count in counts)
            print(f"{made.__name__:8} {'two launches' if is_of_two else 'noise known':12} {cells}")


if __name__ == "__main__":
    main()
