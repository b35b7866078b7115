"""Straight lines by weighted least squares, one for each group of sizes, with intervals that include lack of fit.

The residuals give the scatter. If it is less than the known errors of the values, these count as three more sizes. If
neighbouring residuals are correlated by r, the curve is not straight, and variances grow by (1 + r) / (1 - r).

Sources: N. R. Draper, H. Smith, Applied Regression Analysis, 3rd ed., Wiley 1998, chapters 5 and 9; G. V. Bayley,
J. M. Hammersley, J. Royal Statistical Society Supplement 8 (1946) 184-197 (correlation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hockney.stats.interval import Estimate, middle, t_quantile

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True)
class NoFit:
    """Why there is no fit: a sentence."""

    reason: str


@dataclass(frozen=True)
class Lines:
    """One line per group: the value at the mean size and the slope, which err independently, with their variances."""

    mean_bytes: FloatArray
    mean: FloatArray
    slope: FloatArray
    mean_var: FloatArray
    slope_var: FloatArray
    freedom: int

    def at(self, which: int, size: float) -> tuple[float, float]:
        """The value at a size, and its variance."""
        off = size - self.mean_bytes[which]
        value = self.mean[which] + self.slope[which] * off
        return float(value), float(self.mean_var[which] + self.slope_var[which] * off**2)

    def estimate(self, value: float, variance: float) -> Estimate:
        """A value with the interval of Student's t."""
        half = t_quantile(self.freedom) * math.sqrt(variance)
        return Estimate(value, value - half, value + half)

    def value(self, which: int, size: float) -> Estimate:
        return self.estimate(*self.at(which, size))

    def slope_of(self, which: int) -> Estimate:
        return self.estimate(float(self.slope[which]), float(self.slope_var[which]))


def fit_lines(
    sizes: FloatArray,
    values: FloatArray,
    errors: FloatArray,
    kept: BoolArray,
    group: Int64Array,
    level: FloatArray | None = None,
) -> tuple[Lines, FloatArray, FloatArray]:
    """The lines of all groups through the sizes that are `kept`, and each size's relative residual and weight.

    Values scatter in proportion to their `level`, None for the line's own value. The residuals and the standard
    `errors` are relative to it.
    """
    import numpy as np

    known = middle(errors)
    scale, missed = values if level is None else level, 0.0
    for _ in range(3):  # weights depend on residuals, and residuals on weights
        weights = kept * weights_of(errors, missed)
        lines, fitted = _least_squares(sizes, values, scale, weights, group, known)
        if level is None:
            scale = fitted = np.maximum(fitted, 1e-3 * values)  # a line below zero is no level
        residuals = (values - fitted) / scale
        missed = math.sqrt(float(residuals[kept] @ residuals[kept]) / lines.freedom)
    return lines, residuals, weights


def _least_squares(
    sizes: FloatArray, values: FloatArray, level: FloatArray, weight: FloatArray, group: Int64Array, known: float
) -> tuple[Lines, FloatArray]:
    import numpy as np

    count = int(group[-1]) + 1

    def summed(terms: FloatArray) -> FloatArray:
        return cast("FloatArray", np.bincount(group, terms, count))

    weights = weight / level**2
    total = summed(weights)
    mean_bytes, mean = summed(weights * sizes) / total, summed(weights * values) / total
    off = sizes - mean_bytes[group]
    spread = summed(weights * off**2)
    slope = summed(weights * off * values) / spread
    fitted = mean[group] + slope[group] * off
    freedom = max(1, int(np.count_nonzero(weight)) - 2 * count)
    misses = np.sqrt(weights) * (values - fitted)
    squares = float(misses @ misses)
    scatter = squares / freedom
    if scatter < known**2:  # the known errors count as three more sizes
        scatter = (squares + 3 * known**2) / (freedom + 3)
    variance = scatter * _repeated(misses, group)
    return Lines(mean_bytes, mean, slope, variance / total, variance / spread, freedom), fitted


def _repeated(off_line: FloatArray, group: Int64Array) -> float:
    """The factor on variances: above 1 where neighbouring residuals of a group are correlated."""
    import numpy as np

    used = np.flatnonzero(off_line)
    misses, groups = off_line[used], group[used]
    squares = float(misses @ misses)
    if squares == 0.0:
        return 1.0
    alike = float(misses[1:] @ (misses[:-1] * (groups[1:] == groups[:-1]))) / squares
    # Each of a line's two parameters lowers the correlation of n residuals by 1 / n.
    alike += 2.0 * (int(group[-1]) + 1) / len(misses)
    most = max(1.0, len(misses) / 2)
    return min(most, (1 + alike) / (1 - alike)) if 0 < alike < 1 else most if alike >= 1 else 1.0


def weights_of(errors: FloatArray, missed: float = 0.0) -> FloatArray:
    """Weights by relative errors; the line's residual `missed` (root mean square) is an error common to all sizes.

    No size weighs more than twice the median one, so that no lucky interval rules the fit.
    """
    import numpy as np

    common = max(missed, middle(errors))
    return 2 / (1 + (errors / common) ** 2) if common else np.ones(len(errors))


# ---- latency over distance -------------------------------------------------------------------------------------------

Pair = tuple[int, int]  # source and target


@dataclass(frozen=True)
class DistanceFit:
    """The parameters; `change_ns` is None where routes have no directions. `rms_ns` is of measured - fitted."""

    base_ns: Estimate
    hop_ns: Estimate
    change_ns: Estimate | None
    rms_ns: float


def fit_distance(
    times_ns: Mapping[Pair, float], hops: Mapping[Pair, int], changes: Mapping[Pair, int] | None = None
) -> DistanceFit | NoFit:
    """Fit the latency of each pair to its route: t = base + a * hops + b * changes of direction (Cray T3D, 1996).

    Ordinary least squares, every pair with the same weight. `changes` is None where routes have no directions. Raises
    KeyError for a pair without a route.
    """
    import numpy as np
    from scipy.special import stdtrit

    pairs = sorted(times_ns)
    parameters = 2 if changes is None else 3
    if len(pairs) <= parameters:
        return NoFit(f"a fit of {parameters} parameters needs {parameters + 1} pairs")
    if not all(math.isfinite(times_ns[pair]) and times_ns[pair] > 0 for pair in pairs):
        return NoFit("a fit needs positive times")
    ways = np.array([[1.0, hops[pair], *([] if changes is None else [changes[pair]])] for pair in pairs])
    times = np.array([times_ns[pair] for pair in pairs])
    if np.linalg.matrix_rank(ways) < parameters:
        return NoFit("the pairs' routes do not separate hops, changes of direction and the base")
    values, *_ = np.linalg.lstsq(ways, times, rcond=None)
    residuals = times - ways @ values
    freedom = len(pairs) - parameters
    errors = np.sqrt(float(residuals @ residuals) / freedom * np.diag(np.linalg.inv(ways.T @ ways)))
    half_widths = stdtrit(freedom, 0.975) * errors
    fitted = [
        Estimate(*map(float, each)) for each in zip(values, values - half_widths, values + half_widths, strict=True)
    ]
    change = None if changes is None else fitted[2]
    return DistanceFit(fitted[0], fitted[1], change, float(np.sqrt(np.mean(residuals**2))))
