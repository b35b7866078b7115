"""How much longer one thing takes than another, from few values of each, and how sure that is among many things.

The shift between two samples is the median of all differences between a value of one and a value of the other, here of
logarithms, so that it is a ratio. Its interval lies between two of the ordered differences, whose places follow from
the exact distribution of the Mann-Whitney statistic: whatever the distribution of the values, all orders of m + n
exchangeable values are equally likely. Below a certain m and n (four and four at 95 %) no order is rare enough, and
then there is no interval, never a narrower guess.

Values that were taken under several conditions, states of the machine for example, are strata: only values of one
stratum are set against each other, the differences of all strata are pooled, and the distribution is that of the sum
of their Mann-Whitney statistics, the convolution of those of each. So few values in each may decide together.

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
from typing import TYPE_CHECKING

from hockney.stats.interval import CONFIDENCE

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray

_EXACT_MAX = 2500  # m * n; above, the normal approximation is right to the third digit
_DIVISIONS_MAX = 4000  # of the launches into two runs; where there are more, so many are drawn
_CHUNK = 2_000_000  # numbers at once
_LAUNCHES_MAX = 1000

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


def shift(base: Sequence[float], new: Sequence[float], confidence: float = CONFIDENCE) -> Shift:
    """The shift between positive values, one a launch. Raises ValueError where there is none on a side."""
    return shift_over([(base, new)], confidence)


def shift_over(strata: Sequence[Stratum], confidence: float = CONFIDENCE) -> Shift:
    """One shift over several strata, each with its values of base and of new; as `shift`."""
    import numpy as np

    if not strata or not all(len(base) and len(new) for base, new in strata):
        raise ValueError("a shift needs values on both sides")
    differences = np.sort(
        np.concatenate([np.subtract.outer(np.log(new), np.log(base)).ravel() for base, new in strata])
    )
    ratio = float(np.exp(np.median(differences)))
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
    return next(n for n in range(1, _LAUNCHES_MAX) if can_decide(n_base, n, confidence))


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
    known = np.isfinite(logs).astype(float)
    logs[known == 0] = 0.0
    divisions = _divisions(base.shape[1], new.shape[1])
    statistic = _statistics(logs, known, divisions[:1], math.log(margin), starts)[:, 0]
    largest = [statistic.max(initial=0.0)]
    step = max(1, _CHUNK // max(1, len(logs)))
    for start in range(1, len(divisions), step):
        chance = _statistics(logs, known, divisions[start : start + step], 0.0, starts)
        largest.extend(chance.max(axis=0, initial=0.0).tolist())
    largest.sort()
    as_large = len(largest) - np.searchsorted(largest, statistic * (1 - 1e-9))
    result: FloatArray = np.where(statistic > 0, as_large / len(largest), 1.0)
    return result


def _divisions(m: int, n: int) -> FloatArray:
    """Ways to call n of m + n launches new: shape (ways, launches), 1 for new. The observed one stands first."""
    import numpy as np

    observed = (0.0,) * m + (1.0,) * n
    if math.comb(m + n, n) > _DIVISIONS_MAX:
        draw = np.random.default_rng(0)
        return np.vstack([observed, draw.permuted(np.tile(observed, (_DIVISIONS_MAX - 1, 1)), axis=1)])
    rows = np.zeros((math.comb(m + n, n), m + n))
    for row, chosen in zip(rows, itertools.combinations(range(m + n - 1, -1, -1), n), strict=True):
        row[list(chosen)] = 1.0
    return rows


def _statistics(
    logs: FloatArray, known: FloatArray, divisions: FloatArray, margin: float, starts: Sequence[int] | None
) -> FloatArray:
    """How far new and base are apart beyond the margin, in standard errors: shape (series, ways)."""
    import numpy as np

    difference, scatter, weight = _differences(logs, known, divisions, starts)
    if not len(scatter):
        return scatter
    # Of each division its own: what is common to all series of a launch makes some divisions look calm.
    middle = np.maximum(np.isfinite(scatter).sum(axis=0, keepdims=True) - 1, 0) // 2
    usual = np.maximum(np.take_along_axis(np.sort(scatter, axis=0), middle, axis=0), 1e-9)
    result: FloatArray = np.maximum(np.abs(difference) - margin, 0.0) * weight / (scatter + usual)
    return result


def _differences(
    logs: FloatArray, known: FloatArray, divisions: FloatArray, starts: Sequence[int] | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of new less mean of base, the scatter within both, and 1 over the standard error of unit scatter.

    Each of shape (series, ways). Where a side has no value, or both have one: no difference, and infinite scatter.
    """
    import numpy as np

    n_new = known @ divisions.T
    n_base = known.sum(axis=1, keepdims=True) - n_new
    sum_new = logs @ divisions.T
    sum_base = logs.sum(axis=1, keepdims=True) - sum_new
    squares = (logs**2).sum(axis=1, keepdims=True)
    of_new, of_base, freedom = np.maximum(n_new, 1.0), np.maximum(n_base, 1.0), n_new + n_base - 2
    within = np.maximum(squares - sum_new**2 / of_new - sum_base**2 / of_base, 0.0)
    difference = sum_new / of_new - sum_base / of_base
    both = (n_new > 0) & (n_base > 0)
    weight = n_new * n_base / np.maximum(n_new + n_base, 1.0)
    if starts is not None:
        difference, within, weight, freedom = _over_strata(difference, within, weight, freedom, both, starts)
        both = weight > 0
    scatter = np.where(both & (freedom > 0), np.sqrt(within / np.maximum(freedom, 1.0)), np.inf)
    return difference, scatter, np.sqrt(weight)


def _over_strata(
    difference: FloatArray,
    within: FloatArray,
    weight: FloatArray,
    freedom: FloatArray,
    both: BoolArray,
    starts: Sequence[int],
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rows of strata -> rows of series: one difference for all, by least squares, and what it leaves of theirs.

    A stratum without values on one side says nothing of the difference.
    """
    import numpy as np

    def total(of_stratum: FloatArray) -> FloatArray:
        return np.add.reduceat(of_stratum, starts, axis=0)

    whole = total(weight)
    common = total(weight * difference) / np.maximum(whole, 1e-300)
    left = total(np.where(both, within + weight * difference**2, 0.0)) - whole * common**2
    return common, np.maximum(left, 0.0), whole, total(np.where(both, freedom + 1, 0.0)) - 1
