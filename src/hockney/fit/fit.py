"""Hockney's two figures of a link, from times over message sizes.

Model: t(m) = t_0 + m / r_inf. r_inf is the rate that ever longer messages approach, n_1/2 = t_0 * r_inf the length at
which half of it is reached. Sizes span six decades, so errors are weighed relative to each time: else the largest
message alone would decide t_0. What a straight line can't say (protocol switches, caches) shows in `relative_rms`.

Source: R. W. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel Computing 20 (1994)
389-398. Weighted least squares and the errors of its parameters: N. R. Draper, H. Smith, Applied Regression Analysis,
3rd ed., Wiley 1998, chapter 9; the error of n_1/2 by first-order propagation with the covariance of slope and
intercept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class HockneyFit:
    """Parameters, each with its standard error (`_se`, one standard deviation), given that the straight line holds."""

    t0_ns: float
    t0_se_ns: float
    r_inf_bytes_per_s: float
    r_inf_se_bytes_per_s: float
    n_half_bytes: float
    n_half_se_bytes: float
    relative_rms: float  # of (measured - fitted) / measured: how far the curve is from a straight line
    sizes: int

    def time_ns(self, size_bytes: float) -> float:
        """The fitted time of a message."""
        return self.t0_ns + size_bytes / self.r_inf_bytes_per_s * 1e9


@dataclass(frozen=True)
class NoFit:
    """There is no fit, and `reason` is why, as a sentence."""

    reason: str


def fit_hockney(sizes_bytes: Sequence[float], times_ns: Sequence[float]) -> HockneyFit | NoFit:
    """Fit (size, time) pairs, in any order, weighed on relative error.

    For r_inf of a pattern whose time stands for more or less than one message of that size, give the bytes that the
    time stands for: bytes_per_rep / divisor.
    """
    pairs = list(zip(sizes_bytes, times_ns, strict=True))
    distinct = len({size for size, _ in pairs})
    if distinct < 3:
        return NoFit(f"a fit needs three sizes, there {'is' if distinct == 1 else 'are'} {distinct}")
    if not all(math.isfinite(size) and size >= 0 and math.isfinite(time) and time > 0 for size, time in pairs):
        return NoFit("a fit needs positive times")

    # Weighted means first: sums of squared sizes up to 1e18 would otherwise cancel to noise.
    weights = [1 / time**2 for _, time in pairs]
    total = sum(weights)
    mean_size = sum(weight * size for weight, (size, _) in zip(weights, pairs, strict=True)) / total
    mean_time = sum(weight * time for weight, (_, time) in zip(weights, pairs, strict=True)) / total
    spread = sum(weight * (size - mean_size) ** 2 for weight, (size, _) in zip(weights, pairs, strict=True))
    slope = sum(w * (size - mean_size) * (time - mean_time) for w, (size, time) in zip(weights, pairs, strict=True))
    slope /= spread
    t0_ns = mean_time - slope * mean_size
    if slope <= 0:
        return NoFit("times do not grow with the size, so there is no rate to approach")
    if t0_ns <= 0:
        return NoFit("the line through the times meets size 0 below zero: they grow faster than the size")

    residuals = [(time - t0_ns - slope * size) / time for size, time in pairs]
    variance = sum(residual**2 for residual in residuals) / (len(pairs) - 2)
    slope_var = variance / spread
    t0_var = variance / total + mean_size**2 * slope_var
    covariance = -mean_size * slope_var
    n_half = t0_ns / slope
    n_half_var = (t0_var - 2 * n_half * covariance + n_half**2 * slope_var) / slope**2
    return HockneyFit(
        t0_ns=t0_ns,
        t0_se_ns=math.sqrt(t0_var),
        r_inf_bytes_per_s=1e9 / slope,
        r_inf_se_bytes_per_s=1e9 * math.sqrt(slope_var) / slope**2,
        n_half_bytes=n_half,
        n_half_se_bytes=math.sqrt(max(0.0, n_half_var)),
        relative_rms=math.sqrt(sum(residual**2 for residual in residuals) / len(pairs)),
        sizes=distinct,
    )
