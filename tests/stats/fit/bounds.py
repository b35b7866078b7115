"""Reference values for the rates of truth.py, made from the truth that a fit does not know.

Parameters: the least error of any unbiased method, the bound of Cramer and Rao (C. R. Rao, Linear Statistical Inference
and Its Applications, 2nd ed., Wiley 1973, 5a). It assumes that the segments, the outliers and the noise are known. A
value with that bound as standard error is within 2 % of the truth with a normal probability.

Switches: the least squares of all divisions, relative to the true times. This assumes that the noise, the least number
of sizes of a segment, the absence of outliers, and perhaps the number of switches are known. That is no bound, but far
more than a fit knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SEGMENTS_MAX = 5
PRICE = 13.0  # of all from 8 to 23, that by which most switches of truth.py's curves are placed


def chance_within(standard_error: float, part: float = 0.02) -> float:
    """That a normal value of this relative standard error lies within `part` of the truth."""
    return math.erf(part / standard_error / math.sqrt(2))


def errors_of_line(sizes: Floats, t0: float, slope: float, covariance: Floats) -> tuple[float, float, float]:
    """The least relative standard errors of t_0, of the slope (of r_inf, too) and of n_1/2, their ratio.

    `covariance` is that of the times, relative to the line.
    """
    times = t0 + slope * sizes
    parts = np.stack([t0 / times, slope * sizes / times], axis=1)
    best = np.linalg.inv(parts.T @ np.linalg.solve(covariance, parts))
    return math.sqrt(best[0, 0]), math.sqrt(best[1, 1]), math.sqrt(best[0, 0] + best[1, 1] - 2 * best[0, 1])


def noise_of(sizes: int, noise: float | Floats) -> Floats:
    """The covariance of times with normal noise of this fraction each, or a different one for each.

    Noise that grows with the time is itself informative.
    """
    covariance: Floats = np.eye(sizes) * noise**2 / (1 + 2 * noise**2)
    return covariance


@dataclass(frozen=True)
class Division:
    """A division of a curve into segments: the sum of squares left by its lines, relative to the true times."""

    starts: list[int]
    squares: float


def best_divisions(sizes: Floats, times: Floats, true_times: Floats, sizes_min: int) -> list[Division]:
    """The best division into one segment of at least this many sizes, into two, and so on up to SEGMENTS_MAX."""
    n = len(sizes)
    costs = np.full((n, n + 1), np.inf)
    for first in range(n):
        for end in range(first + sizes_min, n + 1):
            costs[first, end] = _squares(*(each[first:end] for each in (sizes, times, true_times)))
    least, trails = costs[0], []
    divisions = [Division([0], least[n])]
    for _ in range(SEGMENTS_MAX - 1):
        either = least[:n, None] + costs
        trails.append(either.argmin(axis=0))
        least = either.min(axis=0)
        starts = [n]
        for trail in reversed(trails):
            starts.append(int(trail[starts[-1]]))
        divisions.append(Division([0, *reversed(starts[1:])], least[n]))
    return divisions


def best_division(divisions: Sequence[Division], noise: float) -> Division:
    """For who does not know how many segments there are: a switch has to lower the sum of squares by PRICE."""
    return min(divisions, key=lambda one: one.squares / noise**2 + PRICE * len(one.starts))


def _squares(sizes: Floats, times: Floats, true_times: Floats) -> float:
    columns = np.stack([np.ones(len(sizes)), sizes / sizes[-1]], axis=1) / true_times[:, None]
    values = times / true_times
    best, *_ = np.linalg.lstsq(columns, values, rcond=None)
    return float(np.sum((columns @ best - values) ** 2))


def errors_of_loggp(sizes: Floats, truth: Sequence[float], messages: int, noise: float | Floats) -> tuple[float, ...]:
    """The least relative standard errors of L, o_s, o_r, g and G, of which `truth` has the values in that order.

    From all four times of all sizes, for who knows that o_s and o_r don't depend on the size, and that L grows by G.
    """
    ones, zeros = np.ones(len(sizes)), np.zeros(len(sizes))
    # The number of times that the parameters occur in PRTT(1, 0), PRTT(n, 0), PRTT(1, d) and PRTT(n, d) less its
    # delays.
    counts = [
        (2 * ones, 2 * ones, 2 * ones, zeros, 2 * sizes),
        (2 * ones, 2 * ones, 2 * ones, (messages - 1) * ones, (messages + 1) * sizes),
        (zeros, ones, ones, zeros, zeros),
        (zeros, messages * ones, ones, zeros, zeros),
    ]
    values = np.array(truth)
    parts = np.concatenate([np.stack(each, axis=1) * values for each in counts])
    every = parts / parts.sum(axis=1, keepdims=True)
    best = np.linalg.inv(every.T @ np.linalg.solve(noise_of(len(every), noise), every))
    return tuple(np.sqrt(np.diag(best)).tolist())
