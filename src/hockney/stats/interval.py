"""Confidence intervals of quantiles, from order statistics, and of means over few launches, from Student's t.

Of n independent values, the number below the true q-quantile is binomial(n, q). So the l-th and u-th smallest enclose
it with probability P(l <= B <= u - 1), whatever the distribution (H. A. David, H. N. Nagaraja, Order Statistics, 3rd
ed., Wiley 2003, section 7.1). Below six values a median has no 95 % interval.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hockney.model import FloatArray

CONFIDENCE = 0.95
_MANY = 10_000  # launches: t is then the normal distribution


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval, where both bounds are known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Interval:
    """A quantile or mean of `n` values; `low`, `high` and their `coverage` are None where n is too small for them."""

    value: float
    low: float | None
    high: float | None
    n: int
    coverage: float | None

    @property
    def estimate(self) -> Estimate | None:
        """The value with its bounds; None where there are none."""
        return None if self.low is None or self.high is None else Estimate(self.value, self.low, self.high)

    @property
    def precision(self) -> float | None:
        """The larger half-width over the value: 0.01 reads "known to 1 %". None without an interval."""
        if self.low is None or self.high is None or self.value <= 0:
            return None
        return max(self.high - self.value, self.value - self.low) / self.value


def median(values: Sequence[float] | FloatArray, confidence: float = CONFIDENCE) -> Interval:
    """The median of independent values with its interval. Raises ValueError without values, and for NaN."""
    return quantile(values, 0.5, confidence)


def geometric_mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The geometric mean of independent values, with its interval from two values on.

    The median without an interval where a value is not positive. Raises ValueError without values.
    """
    if not values or min(values) <= 0:
        return Interval(statistics.median(values), None, None, len(values), None)
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    if len(logs) == 1:
        return Interval(math.exp(mean), None, None, 1, None)
    half = t_quantile(len(logs) - 1, confidence) * statistics.stdev(logs, mean) / math.sqrt(len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs), confidence)


@functools.lru_cache(maxsize=1024)
def t_quantile(dof: float, confidence: float = CONFIDENCE) -> float:
    """The value that |t| exceeds with probability 1 - confidence. At 95 % and whole `dof`: within 0.2 % above.

    At 95 % without scipy, which takes half a second to load.

    Cornish-Fisher expansion: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 1964, 26.7.5.
    """
    if confidence != CONFIDENCE or dof != int(dof):
        from scipy.special import stdtrit

        return float(stdtrit(dof, (1 + confidence) / 2))
    if dof == 1:
        return math.tan(math.pi * 0.475)
    if dof == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    x = 1.959963984540054  # the 97.5 % quantile of the normal distribution
    return (
        x
        + (x**3 + x) / (4 * dof)
        + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * dof**2)
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * dof**3)
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / (92160 * dof**4)
    )


def launches_needed(deviation: float, precision: float) -> int:
    """How many launches, at least two, reach a precision, if their logarithms have this standard deviation."""
    wanted = math.log1p(precision)
    count = max(2, math.floor((t_quantile(1_000_000) * deviation / wanted) ** 2))
    while count < _MANY and t_quantile(count - 1) * deviation > wanted * math.sqrt(count):
        count += 1
    return count


def quantile(values: Sequence[float] | FloatArray, q: float, confidence: float = CONFIDENCE) -> Interval:
    """The q-quantile (0 < q < 1, linear between order statistics) with its interval. Raises ValueError as `median`."""
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    if n == 0 or np.isnan(ordered[-1]):  # NaN sorts last
        raise ValueError("a quantile needs at least one value, and no NaN")
    value = _between(ordered, (n - 1) * q)
    ranks = order_ranks(n, q, confidence)
    if ranks is None:
        return Interval(value, None, None, n, None)
    low, high, coverage = ranks
    return Interval(value, float(ordered[low - 1]), float(ordered[high - 1]), n, coverage)


def _between(ordered: FloatArray, place: float) -> float:
    """The value at a fractional index, as numpy.quantile, which takes longer than sorting ten values."""
    below = int(place)
    part = place - below
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


@functools.lru_cache(maxsize=4096)
def order_ranks(n: int, q: float = 0.5, confidence: float = CONFIDENCE) -> tuple[int, int, float] | None:
    """The ranks l, u (1 is the smallest of n) that enclose the q-quantile, and their coverage; None: n is too small.

    Each side misses with at most half of 1 - confidence.
    """
    if not (0 < q < 1 and 0 < confidence < 1):
        raise ValueError(f"not between 0 and 1: quantile {q}, confidence {confidence}")
    tail = (1 - confidence) / 2
    low, missed_below = _rank_with_tail(n, q, tail)
    from_top, missed_above = _rank_with_tail(n, 1 - q, tail)
    if low == 0 or from_top == 0:
        return None
    return low, n + 1 - from_top, 1 - missed_below - missed_above


def _rank_with_tail(n: int, q: float, tail: float) -> tuple[int, float]:
    """The largest k with P(binomial(n, q) < k) <= tail, or 0, and that probability.

    The sum begins ten standard deviations below the mean, so that a million values take 5,000 terms.
    """
    start = max(0, math.floor(n * q - 10 * math.sqrt(n * q * (1 - q))))
    term = math.exp(
        math.lgamma(n + 1)
        - math.lgamma(start + 1)
        - math.lgamma(n - start + 1)
        + start * math.log(q)
        + (n - start) * math.log1p(-q)
    )
    k, below = start, 0.0
    while k < n and below + term <= tail:
        below += term
        term *= (n - k) / (k + 1) * q / (1 - q)
        k += 1
    return k, below
