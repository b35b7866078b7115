"""How often detectors are right on runs of known truth; `python -m tests.analysis.explain.rates` prints the table.

Curves are random lines. A figure is the median of 10 to 40 measurements with its interval; measurements have normal
noise, and one in twenty takes 1.2 to 2 times as long. In every second run the machine alternates between two states,
and only the measurements of one of them, half of all or more, count. The effect to find is three times the detector's
threshold; without an effect it is up to half of the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tests.analysis.explain.readings import SIZES, reading

from hockney.analysis.explain import caches, pattern_pairs
from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading
from hockney.analysis.explain.layers import layers_of
from hockney.analysis.explain.pattern_pairs import slower_than_parts
from hockney.analysis.explain.ranks import above_floor
from hockney.analysis.finding import Finding, NotChecked
from hockney.stats import median
from hockney.stats.fit import Estimate

NOISES = (0.01, 0.03, 0.1)
_MEASUREMENTS = (10, 40)  # of a figure: the sampler makes ten at least in the state that it sees most
Floats = NDArray[np.float64]


class Made:
    """One run: the probes of its measurements, by formulas for its times."""

    def __init__(self, rng: np.random.Generator, noise: float) -> None:
        self.rng, self.noise = rng, noise
        self.in_state = rng.uniform(0.5, 0.9) if rng.random() < 0.5 else 1.0
        self.start_ns = 10 ** rng.uniform(2, 4.3)
        self.per_byte_ns = 10 ** rng.uniform(-1.3, 0.3)

    def line(self, size: int) -> float:
        return self.start_ns + self.per_byte_ns * size

    def late(self, count: int) -> Floats:
        """The delays of some of this many measurements."""
        return np.where(self.rng.random(count) < 0.05, self.rng.uniform(1.2, 2, count), 1.0)

    def seen(self, time_ns: float) -> Estimate:
        count = max(
            _MEASUREMENTS[0], self.rng.binomial(int(self.rng.integers(*_MEASUREMENTS, endpoint=True)), self.in_state)
        )
        interval = median(time_ns * self.late(count) * (1 + self.noise * self.rng.standard_normal(count)))
        assert interval.low is not None
        assert interval.high is not None
        return Estimate(interval.value, interval.low, interval.high)

    def curve(
        self,
        pattern: str,
        time_ns: Callable[[int], float],
        *,
        transport: str = "mpi@x",
        ranks: int = 2,
        algorithm: str = "native",
        options: tuple[tuple[str, str], ...] = (),
    ) -> MeasuredCurve:
        points = tuple(CurvePoint(size, self.seen(time_ns(size)), float(size)) for size in SIZES)
        return MeasuredCurve(transport, pattern, ranks, options, "near", points, algorithm=algorithm)

    def lines(self, *factors: tuple[str, float, int]) -> Reading:
        """Patterns, each with its factor of the line's time, on its number of ranks."""
        return reading(
            *(self.curve(name, lambda size, by=by: by * self.line(size), ranks=ranks) for name, by, ranks in factors)  # type: ignore[misc]
        )


# ---- input of each detector; `least` is the effect over the detector's threshold ------------------------------------


def duplex(made: Made, least: float) -> Reading:
    return made.lines(("twoway", 0.5 + 0.05 * least * made.rng.choice([-1, 1]), 2), ("oneway", 1.0, 2))


def broadcast(made: Made, least: float) -> Reading:
    by_hand = made.curve("bcast", made.line, ranks=4, algorithm="chain", options=(("algorithm", "chain"),))
    return reading(made.curve("bcast", lambda size: made.line(size) * (1 + 0.05 * least), ranks=4), by_hand)


def allreduce(made: Made, least: float) -> Reading:
    by_hand = made.curve("allreduce", made.line, algorithm="parts", options=(("algorithm", "parts"),))
    return reading(made.curve("allreduce", lambda size: made.line(size) * (1 + 0.05 * least)), by_hand)


def layer(made: Made, least: float) -> Reading:
    """The cost that a library adds to shared memory at any size; or nothing, as half of it is a difference too."""
    added = made.curve("pingpong", lambda size: made.line(size) * (1 + 0.03 * (least if least > 1 else 0)))
    return reading(made.curve("pingpong", made.line, transport="shm"), added)


def flat(made: Made, least: float) -> Reading:
    """Level to 64 B; or a time that has grown by three times the tolerance at four times the size."""
    made.per_byte_ns = made.start_ns * 3 * 0.03 / 24
    return reading(made.curve("pingpong", lambda size: made.line(max(size - 64, 0) if least > 1 else size - 8)))


def floor(made: Made, least: float) -> Reading:
    """A library is usual up to 10 floors."""
    curve = made.curve("pingpong", made.line)
    return reading(curve, floors={curve.job: made.seen(made.line(curve.points[0].bytes) / (10 * least))})


# ---- how often it is found -------------------------------------------------------------------------------------------


def _told(find: Callable[[Reading], list[Finding] | NotChecked]) -> Callable[[Reading], bool]:
    return lambda of: not isinstance(found := find(of), NotChecked) and bool(found)


@dataclass(frozen=True)
class Case:
    """A detector and its effect. With more noise than `noise` the intervals are often too wide to find it."""

    what: str
    make: Callable[[Made, float], Reading]
    told: Callable[[Reading], bool]
    noise: float = 0.1

    def rates(self, noise: float, runs: int) -> tuple[float, float]:
        """The shares of runs in which it is found: of those without the effect, and of those with it."""
        false = right = 0
        for seed in range(runs):
            nothing, there = (Made(np.random.default_rng((seed, kind)), noise) for kind in (0, 1))
            false += self.told(self.make(nothing, nothing.rng.uniform(0, 0.5)))
            right += self.told(self.make(there, 3.0))
        return false / runs, right / runs


CASES = (
    Case("duplex ratio of 0.65 or 0.35", duplex, _told(pattern_pairs.duplex)),
    Case("broadcast 15 % slower than its parts", broadcast, _told(slower_than_parts), 0.03),
    Case("allreduce 15 % slower than its parts", allreduce, _told(slower_than_parts), 0.03),
    Case("a layer that adds 9 %", layer, lambda of: any(one.is_seen for one in layers_of(of)), 0.03),
    Case("latency independent of size", flat, _told(caches.flat), 0.01),
    Case("30 times the floor", floor, _told(above_floor)),
)


def main() -> None:
    """Print a row for each case: false findings and found effects at each noise."""
    columns = [f"{name} at {100 * noise:.0f} %" for name in ("false", "found") for noise in NOISES]
    print(f"| what | {' | '.join(columns)} |\n|{' --- |' * (1 + len(columns))}")
    for case in CASES:
        rates = [case.rates(noise, 1000) for noise in NOISES]
        cells = [f"{100 * rate:.1f} %" for column in zip(*rates, strict=True) for rate in column]
        print(f"| {case.what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
