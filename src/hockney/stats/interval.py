"""Confidence intervals of medians, from order statistics, and of means over few launches, from Student's t.

Of n independent values, the number below the true median is binomial(n, 1/2). So the l-th smallest and the l-th
largest enclose it with probability P(l <= B <= n - l), for any distribution (H. A. David, H. N. Nagaraja, Order
Statistics, 3rd ed., Wiley 2003, section 7.1). Below six values a median has no 95 % interval. If neighbours correlate,
that number varies more, and the interval is wider.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hockney.model import FloatArray

CONFIDENCE = 0.95
_Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_CORRELATION_LEAST = 10  # values from which it is estimated
_EXCESS_MAX = 5.0  # that of a correlation by 2/3: no number of measurements in one launch outlasts a long drift
_CORRELATION_CARE = 3.0  # the larger, the more an interval allows for a correlation known from few values


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval, where both bounds are known.

    The interval of a result is the outermost one: wider than 95 %, never narrower.
    """

    value: float
    low: float
    high: float

    @classmethod
    def if_known(cls, value: float | None, low: float | None, high: float | None) -> Estimate | None:
        """None where one of them is not known."""
        return None if value is None or low is None or high is None else Estimate(value, low, high)

    @classmethod
    def of_all(cls, values: Sequence[Estimate]) -> Estimate:
        """The median of the values, with an interval that encloses all of theirs."""
        middle = statistics.median(value.value for value in values)
        return Estimate(middle, min(value.low for value in values), max(value.high for value in values))

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.low - other.high, self.high - other.low)

    def __mul__(self, factor: float) -> Estimate:
        """By a positive factor."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def __truediv__(self, other: Estimate) -> Estimate:
        """Of values above zero."""
        return Estimate(self.value / other.value, self.low / other.high, self.high / other.low)

    def __rtruediv__(self, number: float) -> Estimate:
        """A number above zero over a value above zero."""
        return Estimate(number / self.value, number / self.high, number / self.low)

    def mapped(self, of: Callable[[float], float]) -> Estimate:
        """The same in another unit; `of` is monotonic."""
        return Estimate(of(self.value), *sorted(map(of, (self.low, self.high))))

    def is_above(self, other: Estimate) -> bool:
        """Whether the whole interval is above the other's."""
        return self.low > other.high

    @property
    def relative(self) -> float:
        """The larger half-width of the interval as a fraction of the value."""
        return max(self.high - self.value, self.value - self.low) / abs(self.value) if self.value else math.inf


@dataclass(frozen=True)
class Interval:
    """A median or mean of `n` values; `low`, `high` and their `coverage` are None where n is too small for them."""

    value: float
    low: float | None
    high: float | None
    n: int
    coverage: float | None

    @property
    def estimate(self) -> Estimate | None:
        """The value with its bounds; None where there are none."""
        return Estimate.if_known(self.value, self.low, self.high)

    @property
    def precision(self) -> float | None:
        """The larger half-width over the value: 0.01 reads "known to 1 %". None without an interval."""
        known = self.estimate
        return None if known is None or known.value <= 0 else known.relative


def median(values: Sequence[float] | FloatArray) -> Interval:
    """The median of independent values with its interval. Raises ValueError without values, and for NaN."""
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    if n == 0 or np.isnan(ordered[-1]):  # NaN sorts last
        raise ValueError("a median needs at least one value, and no NaN")
    value = middle(ordered)
    rank, coverage = order_rank(n)
    if rank == 0:
        return Interval(value, None, None, n, None)
    return Interval(value, float(ordered[rank - 1]), float(ordered[n - rank]), n, coverage)


def median_in_order(values: Sequence[float]) -> Interval:
    """The median of values in the order of their measurement, with its interval. Raises ValueError as `median`.

    Where neighbours correlate it is as wide as that of fewer independent values, within the extremes; it is never
    narrower than `median`'s. Fewer than ten values do not show a correlation.
    """
    import numpy as np

    independent = median(values)
    n, excess = independent.n, 1.0 if independent.n < _CORRELATION_LEAST else _excess(values)
    if excess == 1:
        return independent
    half_span = _Z / 2 * math.sqrt(n * excess) * (1 + _CORRELATION_CARE * (excess - 1) / n)
    rank = max(1.0, min(float(order_rank(n)[0]), (n + 1) / 2 - half_span))
    low, high = np.interp((rank, n + 1 - rank), np.arange(1, n + 1), np.sort(values)).tolist()
    # The extremes miss it where all values are on one side of it, as neighbours are with this probability.
    alike = 0.5 + math.asin((excess - 1) / (excess + 1)) / math.pi
    return Interval(independent.value, low, high, n, CONFIDENCE if rank > 1 else 1 - alike ** (n - 1))


def _excess(values: Sequence[float]) -> float:
    """How many times as much a number of values below their median varies as that of independent ones; at least 1.

    From the ranks' correlation at distance one, as if it fell geometrically, and from the sum of those at a few
    distances, without the bias of short series (F. H. C. Marriott, J. A. Pope, Bias in the Estimation of
    Autocorrelations, Biometrika 41, 1954).
    """
    import numpy as np

    n, array = len(values), np.asarray(values, dtype=float)
    ordered = np.sort(array)
    ranks = ordered.searchsorted(array, "left") + ordered.searchsorted(array, "right") - n  # ties share theirs
    variation = int(ranks @ ranks)
    if not variation:
        return 1.0
    distances = max(2, int(n ** (1 / 3)))
    correlations = [int(ranks[by:] @ ranks[:-by]) / variation for by in range(1, distances + 1)]
    first = min(0.9, (n * correlations[0] + 1) / (n - 4))
    return min(_EXCESS_MAX, max(1.0, (1 + first) / (1 - first), 1 + 2 * (sum(correlations) + distances / n)))


def middle(values: FloatArray) -> float:
    """The median alone, of one value or more without NaN. np.median is slower for few, and loads masked arrays."""
    import numpy as np

    n, ordered = len(values), np.sort(values)
    return float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2


@functools.lru_cache(maxsize=4096)
def order_rank(n: int) -> tuple[int, float]:
    """The rank l (1 is the smallest and the largest of n) that encloses the median, and its coverage.

    It is the largest with P(binomial(n, 1/2) < l) <= 2.5 %; 0 where n is too small. The sum begins ten
    standard deviations below the mean, so that a million values take 5,000 terms.
    """
    rank, missed = max(0, math.floor(n / 2 - 5 * math.sqrt(n))), 0.0
    term = math.exp(math.lgamma(n + 1) - math.lgamma(rank + 1) - math.lgamma(n - rank + 1) - n * math.log(2))
    while rank < n and missed + term <= (1 - CONFIDENCE) / 2:
        missed += term
        term *= (n - rank) / (rank + 1)
        rank += 1
    return rank, 1 - 2 * missed


def geometric_mean(values: Sequence[float]) -> Interval:
    """The geometric mean of independent values, with its interval from two values on.

    The median without an interval where a value is not positive. Raises ValueError without values.
    """
    if not values or min(values) <= 0:
        return Interval(statistics.median(values), None, None, len(values), None)
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    if len(logs) == 1:
        return Interval(math.exp(mean), None, None, 1, None)
    deviation = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1))  # a tenth of stdev's time
    half = t_quantile(len(logs) - 1) * deviation / math.sqrt(len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs), CONFIDENCE)


@functools.lru_cache(maxsize=1024)
def t_quantile(dof: int) -> float:
    """The value that |t| exceeds with a probability of 5 %, within 0.2 % above; scipy takes half a second to load.

    Cornish-Fisher expansion: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 1964, 26.7.5.
    """
    if dof == 1:
        return math.tan(math.pi * 0.475)
    if dof == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    x = _Z
    return (
        x
        + (x**3 + x) / (4 * dof)
        + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * dof**2)
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * dof**3)
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / (92160 * dof**4)
    )


LAUNCHES_USEFUL = 50  # if a precision needs more, the machine is too noisy for it


def launches_needed(deviation: float, precision: float) -> int:
    """How many launches, at least two, reach a precision, if their logarithms have this standard deviation."""
    wanted = math.log1p(precision)
    count = max(2, math.floor((t_quantile(1_000_000) * deviation / wanted) ** 2))
    while count < 10_000 and t_quantile(count - 1) * deviation > wanted * math.sqrt(count):
        count += 1
    return count
