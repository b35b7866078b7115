"""How much longer one thing takes than another, from few values of each, and how sure that is among many things.

The shift between two samples is the median of all differences between a value of one and a value of the other, here of
logarithms, so that it is a ratio. Its interval lies between two of the ordered differences, whose places follow from
the exact distribution of the Mann-Whitney statistic: whatever the distribution of the values, all orders of m + n
exchangeable values are equally likely. Below a certain m and n (four and four at 95 %) no order is rare enough, and
then there is no interval, never a narrower guess.

Values that were taken under several conditions, states of the machine for example, are strata: only values of one
stratum are set against each other, the differences of all strata are pooled, and the distribution is that of the sum
of their Mann-Whitney statistics, the convolution of those of each. So few values in each may decide together.

Many shifts at once: of a hundred intervals at 95 % some five miss, so a shift of one series among many must also stand
out from all of them. `family_p` permutes the launches of both runs, all series of a launch together (they share its
luck), and asks how often the largest statistic of any series would be as large by chance. Unlike a correction by the
number of series, it costs no launches: with four and four, one of 35 divisions is the observed one, however many series
there are. The statistic is a mean difference over its scatter plus the median scatter of all series, because the
scatter of a few launches is sometimes small by luck.

Sources: J. L. Hodges, E. L. Lehmann, Estimates of Location Based on Rank Tests, Ann. Math. Stat. 34, 1963;
M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed., Wiley 2014, section 4.3 (the
interval, after Moses); E. L. Lehmann, Nonparametrics, Holden-Day 1975, section 3.3 (strata); P. H. Westfall,
S. S. Young, Resampling-Based Multiple Testing, Wiley 1993 (max T); V. G. Tusher, R. Tibshirani, G. Chu, PNAS 98, 2001
(the added scatter).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from hockney.stats.interval import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hockney.model import FloatArray

_EXACT_MAX = 2500  # m * n; above, the normal approximation is right to the third digit
_DIVISIONS_MAX = 4000  # of the launches into two runs; where there are more, so many are drawn
_CHUNK = 20_000  # numbers at once: they stay in the cache of a core, and are too few for BLAS to wake threads for

Stratum = tuple[Sequence[float], Sequence[float]]  # values of base and of new, taken under one condition


@dataclass(frozen=True)
class Shift:
    """The ratio of new times to base times: 1.1 is 10 % longer. `low` and `high` are None where there are too few."""

    ratio: float
    low: float | None
    high: float | None
    coverage: float | None
    n_base: int
    n_new: int


def shift_over(strata: Sequence[Stratum], confidence: float = CONFIDENCE) -> Shift:
    """The shift between positive values, one a launch, over one stratum or more, each with those of base and of new.

    Raises ValueError where a stratum has none on a side.
    """
    import numpy as np

    if not strata or not all(len(base) and len(new) for base, new in strata):
        raise ValueError("a shift needs values on both sides")
    differences = np.sort(
        np.concatenate([np.subtract.outer(np.log(new), np.log(base)).ravel() for base, new in strata])
    )
    middle = len(differences) // 2
    ratio = float(np.exp((differences[~middle] + differences[middle]) / 2))
    sizes = tuple((len(base), len(new)) for base, new in strata)
    n_base, n_new = (sum(of_side) for of_side in zip(*sizes, strict=True))
    found = _left_out(sizes, confidence)
    if found is None:
        return Shift(ratio, None, None, None, n_base, n_new)
    left_out, coverage = found
    low, high = differences[left_out], differences[-1 - left_out]
    return Shift(ratio, float(np.exp(low)), float(np.exp(high)), coverage, n_base, n_new)


def can_decide(n_base: int, n_new: int, confidence: float = CONFIDENCE) -> bool:
    """Whether so many launches on each side can show a difference at all, however large it is."""
    return n_base > 0 and n_new > 0 and can_decide_over([(n_base, n_new)], confidence)


def can_decide_over(sizes: Iterable[tuple[int, int]], confidence: float = CONFIDENCE) -> bool:
    """The same of strata, each with its numbers of launches."""
    return 2 / math.prod(math.comb(m + n, n) for m, n in sizes) <= 1 - confidence + 1e-12


def launches_needed(n_base: int, confidence: float = CONFIDENCE) -> int:
    """The least number of new launches beside so many of the base (one or more)."""
    return next(n for n in itertools.count(1) if can_decide(n_base, n, confidence))


@functools.lru_cache(maxsize=1024)
def _left_out(sizes: tuple[tuple[int, int], ...], confidence: float) -> tuple[int, float] | None:
    """How many of the ordered differences lie outside the interval on each side, and the coverage reached."""
    if not can_decide_over(sizes, confidence):
        return None
    tail = (1 - confidence) / 2
    pairs = sum(m * n for m, n in sizes)
    if pairs > _EXACT_MAX:
        deviation = math.sqrt(sum(m * n * (m + n + 1) for m, n in sizes) / 12)
        return max(0, math.floor(pairs / 2 - NormalDist().inv_cdf(1 - tail) * deviation) - 1), confidence
    total, below, left_out = math.prod(math.comb(m + n, m) for m, n in sizes), 0, 0
    for count in _convolved([_orders_by_statistic(m, n) for m, n in sizes]):
        if (below + count) / total > tail + 1e-15:
            break
        below += count
        left_out += 1
    return left_out - 1, 1 - 2 * below / total


def _convolved(counts: Sequence[list[int]]) -> list[int]:
    """How many orders of all strata have the sum 0, 1, 2 … of their statistics; exact, for the numbers are large."""
    import numpy as np

    whole = np.array([1], dtype=object)
    for of_stratum in counts:
        whole = np.convolve(whole, np.array(of_stratum, dtype=object))
    found: list[int] = whole.tolist()
    return found


def _orders_by_statistic(m: int, n: int) -> list[int]:
    """How many orders of m + n values have the Mann-Whitney statistic 0, 1, 2 …: a Gaussian binomial coefficient."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for place in range(m * n, n + i - 1, -1):
            counts[place] -= counts[place - n - i]
        for place in range(i, m * n + 1):
            counts[place] += counts[place - i]
    return counts


def share_longer(base: Sequence[float], new: Sequence[float]) -> float:
    """How often a value of new is larger than one of base, over all pairs; a tie counts half.

    The size of a difference for who sees one value at a time (A. Vargha, H. D. Delaney, A Critique and Improvement of
    the CL Common Language Effect Size Statistics, J. Educ. Behav. Stat. 25, 2000).
    """
    import numpy as np

    ordered = np.sort(base)
    below, upto = np.searchsorted(ordered, new), np.searchsorted(ordered, new, side="right")
    return float((below + upto).mean() / (2 * len(ordered)))


# ---- many series ----------------------------------------------------------------------------------------------------


def family_p(base: FloatArray, new: FloatArray, margin: float = 1.0, starts: Sequence[int] | None = None) -> FloatArray:
    """For each series the probability that chance alone makes any series differ as much as this one.

    `base` and `new` have the shape (series, launches) and hold positive times, NaN where a series has none in a launch.
    Of series with strata each stratum has a row, and `starts` is the first row of each series.
    Asked is whether the ratio of times is more than `margin` or less than its inverse. 1 where a series has fewer than
    three values, or none on a side.
    """
    import numpy as np

    logs = np.log(np.hstack([base, new]))
    logs -= np.nanmean(np.where(np.isnan(logs).all(axis=1, keepdims=True), 0.0, logs), axis=1, keepdims=True)
    family = _Family.of(logs, starts)
    divisions = _divisions(base.shape[1], new.shape[1])
    statistic = family.statistics(divisions[:1], math.log(margin))[0]
    largest = [statistic.max(initial=0.0)]
    step = max(1, _CHUNK // max(1, len(logs)))
    for start in range(1, len(divisions), step):
        largest.extend(family.statistics(divisions[start : start + step]).max(axis=1, initial=0.0).tolist())
    largest.sort()
    as_large = len(largest) - np.searchsorted(largest, statistic * (1 - 1e-9))
    result: FloatArray = np.where(statistic > 0, as_large / len(largest), 1.0)
    return result


def _divisions(m: int, n: int) -> FloatArray:
    """Ways to call n of m + n launches new: shape (ways, launches), 1 for new, -1 for base; the observed one first."""
    import numpy as np

    observed = (-1.0,) * m + (1.0,) * n
    if math.comb(m + n, n) > _DIVISIONS_MAX:
        draw = np.random.default_rng(0)
        return np.vstack([observed, draw.permuted(np.tile(observed, (_DIVISIONS_MAX - 1, 1)), axis=1)])
    rows = np.full((math.comb(m + n, n), m + n), -1.0)
    for row, chosen in zip(rows, itertools.combinations(range(m + n - 1, -1, -1), n), strict=True):
        row[list(chosen)] = 1.0
    return rows


@dataclass(frozen=True)
class _Family:
    """Series whose launches are divided in one way after the other, all of them at once.

    A row is a series, or a stratum of one; `starts` are then the first rows. `logs` have the shape (launches, series):
    each row has the mean 0, and 0 where a launch has no value. `squares` are the sums of squares of each row. Rows with
    values of the same launches are of one kind: `kinds` has a row of 1 and 0 for each, `kind_of` the number of it.
    """

    logs: FloatArray
    squares: FloatArray
    kinds: FloatArray
    kind_of: NDArray[np.intp]
    starts: Sequence[int] | None

    @classmethod
    def of(cls, logs: FloatArray, starts: Sequence[int] | None) -> _Family:
        """Of logarithms of shape (rows, launches) whose mean is 0, NaN where a launch has no value."""
        import numpy as np

        known = np.isfinite(logs)
        kinds, kind_of = np.unique(known, axis=0, return_inverse=True)
        values = np.where(known, logs, 0.0)
        of_series = values if starts is None else np.add.reduceat(values, starts, axis=0)
        squares = (values**2).sum(axis=1)
        return cls(np.ascontiguousarray(of_series.T), squares, kinds.astype(float), kind_of.reshape(-1), starts)

    def statistics(self, divisions: FloatArray, margin: float = 0.0) -> FloatArray:
        """How far new and base are apart beyond the margin, in standard errors: shape (ways, series).

        One difference for all strata of a series, by least squares. Since the mean of a row is 0, the sum of base is
        the one of new but for its sign: half of their difference gives both means, and the square of the difference of
        means over its standard error is what the division explains of the squares. A stratum without values on one side
        says nothing. Where none has them on both, or there is no value more than needed: 0.
        """
        import numpy as np

        n = self.kinds.sum(axis=1)
        n_new = (n + divisions @ self.kinds.T) / 2
        both = (n_new > 0) & (n_new < n)
        # Where the scatter is 1: 1 over the square of the standard error of the difference of means.
        weight = self._summed(self._of_rows(n_new * (n - n_new) / np.maximum(n, 1.0)))
        freedom = self._summed(self._of_rows(np.where(both, n - 1, 0.0))) - 1
        squares = self._summed(self._of_rows(both) * self.squares)
        enough = (weight > 0) & (freedom > 0)
        apart = divisions @ self.logs
        apart *= np.where(enough, 0.5 / np.sqrt(np.where(enough, weight, 1.0)), 0.0)
        scatter = np.sqrt(np.maximum(squares - apart**2, 0.0) / np.maximum(freedom, 1.0))
        if not enough.all():
            scatter = np.where(enough, scatter, np.inf)
        beyond = np.abs(apart)
        if margin:
            beyond = np.maximum(beyond - margin * np.sqrt(weight), 0.0)
        result: FloatArray = beyond / (scatter + _usual(scatter))
        return result

    def _of_rows(self, of_kinds: NDArray[Any]) -> NDArray[Any]:
        """What is known of each kind, for each row; of one kind alone once for all, which broadcasting does."""
        return of_kinds if len(self.kinds) == 1 and self.starts is None else of_kinds.take(self.kind_of, axis=-1)

    def _summed(self, of_rows: NDArray[Any]) -> NDArray[Any]:
        """Over the strata of each series."""
        import numpy as np

        return of_rows if self.starts is None else np.add.reduceat(of_rows, self.starts, axis=-1)


def _usual(scatter: FloatArray) -> FloatArray:
    """The median (the lower of two) of what is finite in each row, as a column.

    Of each division its own: what is common to all series of a launch makes some divisions look calm.
    """
    import numpy as np

    if not scatter.shape[1]:
        return np.ones((len(scatter), 1))
    middle = np.maximum(np.isfinite(scatter).sum(axis=1, keepdims=True) - 1, 0) // 2
    parted = np.partition(scatter, np.unique(middle), axis=1)
    result: FloatArray = np.maximum(np.take_along_axis(parted, middle, axis=1), 1e-9)
    return result
