"""A fake machine with contended cores, independent of any method: measurements at moments, and their times.

Other programs come and go on each core in bursts of a tenth of a second to some seconds; meanwhile ranks take longer.
The two CPUs are near or far for tens of seconds, which changes every time by a factor. Speed drifts over minutes. Each
launch of a job has a different memory layout.
"""

from __future__ import annotations

import bisect
import math
import random
from dataclasses import dataclass, field

Quadruples = dict[int, dict[int, tuple[list[float], list[float]]]]


@dataclass
class ContendedMachine:
    """Times in s; `busy` is the share of time in which a core has a burst, `layout` the scatter between launches."""

    seed: int
    length_s: float = 130.0
    busy: float = 0.35
    layout: float = 0.015
    drift: float = 0.0015  # a root of a second
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self._bursts = [self._make_bursts() for _ in range(2)]
        self._far = self._switches(25.0)
        self._far_factor = self.chance.uniform(1.5, 4.0)
        level, self._levels = 0.0, []
        for _ in range(int(self.length_s) + 2):
            level += self.chance.gauss(0, self.drift)
            self._levels.append(level)

    def _make_bursts(self) -> list[tuple[float, float, float]]:
        """(begin, end, factor)"""
        at_s, bursts = 0.0, []
        while at_s < self.length_s:
            length_s = min(5.0, self.chance.lognormvariate(math.log(0.4), 1.0))
            at_s += self.chance.expovariate(self.busy / (1 - self.busy) / 0.66)
            bursts.append((at_s, at_s + length_s, self.chance.uniform(1.15, 2.5)))
            at_s += length_s
        return bursts

    def _switches(self, mean_s: float) -> list[float]:
        at_s, times_s = 0.0, []
        while at_s < self.length_s:
            at_s += self.chance.expovariate(1 / mean_s)
            times_s.append(at_s)
        return times_s

    def takes(self, at_s: float) -> float:
        """How many times as long as on the quiet machine one measurement takes now."""
        factor = math.exp(self._levels[int(at_s)] + self.chance.gauss(0, 0.01))
        if self.chance.random() < 0.02:  # an interrupt
            factor *= self.chance.uniform(1.2, 3.0)
        return factor * self.distance(at_s) * math.prod(self.slowness(at_s))

    def distance(self, at_s: float) -> float:
        """By how much the floor is above that of near CPUs."""
        return self._far_factor if bisect.bisect(self._far, at_s) % 2 else 1.0

    def slowness(self, at_s: float) -> tuple[float, float]:
        """How many times as long as on a core alone each of the two CPUs takes for a step."""
        factors = []
        for bursts in self._bursts:
            place = bisect.bisect(bursts, (at_s, math.inf, math.inf)) - 1
            factors.append(bursts[place][2] if place >= 0 and at_s < bursts[place][1] else 1.0)
        return factors[0], factors[1]

    def quadruples(self, ratios: list[float], launches: int = 8, step_s: float = 0.02) -> list[Quadruples]:
        """Two variants measured in alternation: of each series new takes `ratios` times as long as base."""
        quadruples: list[Quadruples] = [{} for _ in ratios]
        at_s, round_ = 0.0, 0
        for launch in range(launches):
            until_s = self.length_s * (launch + 1) / (launches + 1)
            layouts = [[math.exp(self.chance.gauss(0, self.layout)) for _ in ratios] for _ in range(2)]
            at_s += 0.3
            while at_s < until_s:
                order = list(range(len(ratios)))
                self.chance.shuffle(order)
                for series in order:
                    sides = self.chance.choice(((0, 1, 1, 0), (1, 0, 0, 1)))
                    times: tuple[list[float], list[float]] = ([], [])
                    for side in sides:
                        true = ratios[series] if side else 1.0
                        times[side].append(1000 * true * layouts[side][series] * self.takes(min(at_s, self.length_s)))
                        at_s += self.chance.uniform(0.5, 1.5) * step_s
                    quadruples[series].setdefault(launch, {})[round_] = times
                round_ += 1
        return quadruples
