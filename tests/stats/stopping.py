"""Whether the intervals of precise points contain the truth: `python -m tests.stats.stopping [SERIES [KIND ...]]`.

A point ends when its interval is narrow enough, which favours lucky ones. A row of the table is a kind of noise, in
which neighbouring measurements correlate: over four distributions and two precisions, in how many series the interval
contains the true median, with this rule and with the former one, and how many measurements that takes, compared with
the former one (order statistics as of independent values, narrow at two checks in a row). Each series has its own
scatter, from 1.5 to 6 %.

The method assumes none of these kinds, except the first. Noise is symmetric around zero, and a monotonic function of it
makes the times, so that the true median is known.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hockney.measure.estimate import MIN_MEASUREMENTS
from hockney.stats.interval import median_in_order, order_rank

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, float, int, int], Floats]  # of a correlation: series of a length

LENGTH = 3000  # no series goes on for longer
CORRELATIONS = (0.0, 0.16, 0.5, 0.8)
PRECISIONS = (0.01, 0.05)


def _autoregressive(shocks: Floats, correlation: float) -> Floats:
    values: Floats = shocks.copy()
    for at in range(1, shocks.shape[1]):
        values[:, at] = correlation * values[:, at - 1] + math.sqrt(1 - correlation**2) * shocks[:, at]
    return np.asarray(values[:, 100:])


def _normal(rng: np.random.Generator, correlation: float, series: int, length: int) -> Floats:
    return _autoregressive(rng.standard_normal((series, length + 100)), correlation)


def _wild(rng: np.random.Generator, correlation: float, series: int, length: int) -> Floats:
    """With shocks of Student's t with three degrees of freedom."""
    return _autoregressive(rng.standard_t(3, (series, length + 100)) / math.sqrt(3), correlation)


def _with_white(rng: np.random.Generator, slow: Floats, slow_correlation: float, correlation: float) -> Floats:
    """Slow noise and white noise, each with its share of the variance."""
    share = min(1.0, correlation / slow_correlation)
    return math.sqrt(share) * slow + math.sqrt(1 - share) * rng.standard_normal(slow.shape)


def _averages(rng: np.random.Generator, correlation: float, series: int, length: int) -> Floats:
    """Moving averages of two shocks, or of as many as make the correlation."""
    window = max(2, math.ceil(round(1 / (1 - correlation), 6)))
    sums = np.cumsum(rng.standard_normal((series, length + window)), axis=1)
    averages = (sums[:, window:] - sums[:, :-window]) / math.sqrt(window)
    return _with_white(rng, averages, 1 - 1 / window, correlation)


def _levels(rng: np.random.Generator, stay: float, series: int, length: int) -> Floats:
    """Levels that stay for so many measurements on average."""
    is_new = rng.random((series, length)) < 1 / stay
    begins = np.maximum.accumulate(np.where(is_new, np.arange(length), 0), axis=1)
    return np.take_along_axis(rng.standard_normal((series, length)), begins, axis=1)


def _jumps(rng: np.random.Generator, correlation: float, series: int, length: int) -> Floats:
    return _levels(rng, 1 / (1 - correlation), series, length)


def _regimes(rng: np.random.Generator, correlation: float, series: int, length: int) -> Floats:
    """Levels that stay for ten measurements, with white noise."""
    return _with_white(rng, _levels(rng, 10, series, length), 0.9, correlation)


def _sine(rng: np.random.Generator, correlation: float, series: int, length: int) -> Floats:
    """A wave of 25 measurements that begins anywhere, with white noise."""
    angle = 2 * math.pi / 25
    waves = math.sqrt(2) * np.sin(angle * np.arange(length) + rng.uniform(0, 2 * math.pi, (series, 1)))
    return _with_white(rng, waves, math.cos(angle), correlation)


KINDS: dict[str, Noise] = {
    "autoregressive": _normal,
    "wild": _wild,
    "averages": _averages,
    "jumps": _jumps,
    "regimes": _regimes,
    "sine": _sine,
}


def _heavy(noise: Floats) -> Floats:
    """Student's t with two degrees of freedom, of normal noise."""
    share = 2 * special.ndtr(np.clip(noise, -5, 5)) - 1
    return np.asarray(share * np.sqrt(2 / (1 - share**2)))


SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda noise: noise,
    "heavy tails": _heavy,
    "skewed": lambda noise: np.exp(noise) - 1,
    "two levels": lambda noise: 0.3 * noise + 3 * (noise > 0.5244),  # 30 % are on the upper one
}


def series_of(kind: str, shape: str, correlation: float, series: int, length: int) -> Floats:
    """Series of times whose true median is 1, one a row."""
    seed = [list(KINDS).index(kind), list(SHAPES).index(shape), round(100 * correlation)]
    rng = np.random.default_rng(seed)
    scatter = np.exp(rng.uniform(math.log(0.015), math.log(0.06), (series, 1)))
    return np.asarray(np.maximum(0.01, 1 + scatter * SHAPES[shape](KINDS[kind](rng, correlation, series, length))))


class Ends:
    """How many measurements each series had when it ended, and whether its interval then contained the truth."""

    def __init__(self, series: int) -> None:
        self.after = np.zeros(series, dtype=int)  # 0: it goes on
        self.right = np.zeros(series, dtype=bool)

    def end(self, each: int, n: int, low: float, high: float) -> None:
        self.after[each], self.right[each] = n, low <= 1 <= high

    @property
    def share(self) -> float:
        """Of those that ended, in per cent."""
        return 100 * int(self.right.sum()) / max(1, int(np.count_nonzero(self.after)))

    @property
    def measurements(self) -> int:
        return int(np.where(self.after, self.after, LENGTH).sum())


def stopped(times: Floats, precision: float) -> tuple[Ends, Ends]:
    """The ends of series by this rule and by the former one; looks come as the sampler's do."""
    ends, former = Ends(len(times)), Ends(len(times))
    in_a_row = np.zeros(len(times), dtype=int)
    going, n = np.arange(len(times)), MIN_MEASUREMENTS
    while n <= times.shape[1] and len(going):
        ordered, rank = np.sort(times[going, :n], axis=1), order_rank(n)[0]
        values = (ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2
        lows, highs = ordered[:, rank - 1], ordered[:, n - rank]
        is_narrow = np.maximum(highs - values, values - lows) <= precision * values
        in_a_row[going] = np.where(is_narrow, in_a_row[going] + 1, 0)
        for at in np.flatnonzero(is_narrow):  # of this rule intervals are no narrower
            each = int(going[at])
            if in_a_row[each] >= 2 and not former.after[each]:
                former.end(each, n, float(lows[at]), float(highs[at]))
            if not ends.after[each]:
                time = median_in_order(times[each, :n].tolist()).estimate
                if time is not None and time.relative <= precision:
                    ends.end(each, n, time.low, time.high)
        going = going[(ends.after[going] == 0) | (former.after[going] == 0)]
        n = max(n + 1, math.ceil(1.02 * n))
    return ends, former


def main() -> None:
    """Print the table."""
    series, kinds = int([*sys.argv, "1500"][1]), sys.argv[2:] or list(KINDS)
    print("| noise | correlation | contains the truth | with the former rule | measurements | did not end |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in kinds:
        for correlation in CORRELATIONS:
            results = [
                stopped(times, precision)
                for times in (series_of(kind, shape, correlation, series, LENGTH) for shape in SHAPES)
                for precision in PRECISIONS
            ]
            ends, former = zip(*results, strict=True)
            factors = [one.measurements / other.measurements for one, other in results]
            cells = [_span([each.share for each in all_of]) for all_of in (ends, former)]
            unended = sum(np.count_nonzero(each.after == 0) for each in ends)
            print(f"| {kind} | {correlation} | {' | '.join(cells)} | {_span(factors, 2)} | {unended} |", flush=True)


def _span(values: list[float], digits: int = 1) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}, mean {np.mean(values):.{digits}f}"


if __name__ == "__main__":
    main()
