"""Straight lines by weighted least squares, one for each of several groups of sizes, and what their intervals need.

Intervals carry what the lines miss. The scatter is that of the residuals; where that is less than the values' own
errors, so few sizes may lie on a line by luck, and the errors count as some more sizes. Where
neighbours are missed alike, the curve is no line there, and so many sizes tell less than as many independent ones:
variances are multiplied by (1 + r) / (1 - r) with r the correlation of neighbouring residuals, and what makes a value
weigh less than others, its own error, counts only as far as it is not small beside what the line misses.

Least squares: N. R. Draper, H. Smith, Applied Regression Analysis, 3rd ed., Wiley 1998, chapters 5 and 9. Correlation:
G. V. Bayley, J. M. Hammersley, The "effective" number of independent observations in an autocorrelated time series, J.
Royal Statistical Society Supplement 8 (1946) 184-197. Errors beside a common one: R. C. Paule, J. Mandel, Consensus
values and weighting factors, J. Research National Bureau of Standards 87 (1982) 377-385.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hockney.stats.interval import Estimate
from hockney.stats.student import t_quantile

if TYPE_CHECKING:
    from hockney.model import FloatArray, Int64Array

_KNOWN = 3  # as so many sizes more count the values' own errors where the scatter is less
_BENT = 2.0  # a line's parameters: each makes the correlation of n independent neighbours 1 / n less
_STEPS = 100  # of Newton's, at most: on random curves it took 20 or fewer
_ENOUGH = 1e-3  # by so little the sum may be off: far less than what its own scatter is


@dataclass(frozen=True)
class NoFit:
    """There is no fit, and `reason` is why, as a sentence."""

    reason: str


@dataclass(frozen=True)
class Lines:
    """One line a group, as arrays: value at the mean size and slope, which err independently, with their variances."""

    mean_bytes: FloatArray
    mean: FloatArray
    slope: FloatArray
    mean_var: FloatArray
    slope_var: FloatArray
    freedom: int

    def at(self, which: int, size: float) -> tuple[float, float]:
        """A line's value at a size, and its variance."""
        off = size - self.mean_bytes[which]
        return (
            float(self.mean[which] + self.slope[which] * off),
            float(self.mean_var[which] + self.slope_var[which] * off**2),
        )

    def estimate(self, value: float, variance: float) -> Estimate:
        """With the interval of Student's t."""
        arm = t_quantile(self.freedom) * math.sqrt(variance)
        return Estimate(value, value - arm, value + arm)

    def value(self, which: int, size: float) -> Estimate:
        """A line's value at a size."""
        return self.estimate(*self.at(which, size))

    def slope_of(self, which: int) -> Estimate:
        """A line's slope."""
        return self.estimate(float(self.slope[which]), float(self.slope_var[which]))


def fit_lines(
    sizes: FloatArray, values: FloatArray, level: FloatArray, own: FloatArray, group: Int64Array, known: float = 0.0
) -> tuple[Lines, FloatArray]:
    """The lines of all groups, and each size's value on its line.

    A value's scatter is the same fraction of its `level` everywhere but for `own`, what a size weighs; 0 leaves it out.
    `known` is that fraction as the values' own errors have it, where these are known.
    """
    import numpy as np

    count = int(group[-1]) + 1

    def summed(terms: FloatArray) -> FloatArray:
        return cast("FloatArray", np.bincount(group, terms, count))

    weights = own / level**2
    total = summed(weights)
    mean_bytes, mean = summed(weights * sizes) / total, summed(weights * values) / total
    off = sizes - mean_bytes[group]
    spread = summed(weights * off**2)
    slope = summed(weights * off * values) / spread
    fitted = mean[group] + slope[group] * off
    freedom = max(1, int(np.count_nonzero(own)) - 2 * count)
    off_line = np.sqrt(weights) * (values - fitted)
    squares = float(off_line @ off_line)
    scatter = squares / freedom
    if scatter < known**2:
        scatter = (squares + _KNOWN * known**2) / (freedom + _KNOWN)
    variance = scatter * _repeated(off_line, group)
    return Lines(mean_bytes, mean, slope, variance / total, variance / spread, freedom), fitted


def _repeated(off_line: FloatArray, group: Int64Array) -> float:
    """How many sizes tell as much as an independent one: more than 1 where neighbours of a group are missed alike."""
    import numpy as np

    used = np.flatnonzero(off_line)
    misses, groups = off_line[used], group[used]
    squares = float(misses @ misses)
    if squares == 0.0:
        return 1.0
    alike = float(misses[1:] @ (misses[:-1] * (groups[1:] == groups[:-1]))) / squares
    # A line bends towards its values, which leaves neighbours less alike than they are.
    alike += _BENT * (int(group[-1]) + 1) / len(misses)
    most = max(1.0, len(misses) / 2)
    return min(most, (1 + alike) / (1 - alike)) if 0 < alike < 1 else most if alike >= 1 else 1.0


def weights_of(errors: FloatArray | None, count: int, missed: float = 0.0) -> FloatArray:
    """What a size weighs by its own error, beside what the line misses; none more than twice the median one.

    So no lucky interval rules, nor a few of them a line that misses their neighbours by far more.
    """
    import numpy as np

    if errors is None or (common := max(missed, float(np.median(errors)))) == 0:
        return np.ones(count)
    return 2 / (1 + (errors / common) ** 2)


def missed_by(residuals: FloatArray, errors: FloatArray, freedom: int) -> float:
    """The error that all values share beside their own: with both, relative residuals are as large as they should be.

    Not below the median of the own errors, where the search begins.
    """
    import numpy as np

    common = float(np.median(errors)) ** 2
    for _ in range(_STEPS if common > 0 else 0):  # Newton's; from below it never goes too far
        both = errors**2 + common
        parts = residuals**2 / both
        over = float(np.sum(parts)) - freedom
        if over <= _ENOUGH * freedom:
            break
        common += over / float(np.sum(parts / both))
    return math.sqrt(common)
