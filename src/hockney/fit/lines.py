"""Straight lines by weighted least squares, one for each of several groups of sizes, and what their intervals need.

N. R. Draper, H. Smith, Applied Regression Analysis, 3rd ed., Wiley 1998, chapters 5 and 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hockney.fit.student import t_quantile

if TYPE_CHECKING:
    from hockney.model import FloatArray, Int64Array


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


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
    sizes: FloatArray, values: FloatArray, level: FloatArray, own: FloatArray, group: Int64Array
) -> tuple[Lines, FloatArray]:
    """The lines of all groups, and each size's value on its line.

    A value's scatter is the same fraction of its `level` everywhere but for `own`, what a size weighs; 0 leaves it out.
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
    variance = float(np.sum(weights * (values - fitted) ** 2)) / freedom
    return Lines(mean_bytes, mean, slope, variance / total, variance / spread, freedom), fitted
