"""The Cray T3D report's model of latency over distance: t = base + a * hops + b * changes of direction.

Ordinary least squares, every pair with the same weight (N. R. Draper, H. Smith, Applied Regression Analysis, 3rd ed.,
Wiley 1998, chapter 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hockney.stats.fit.lines import NoFit
from hockney.stats.interval import Estimate

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
    """Fit the latency of each pair to its route; `changes` is None where routes have no directions.

    Raises KeyError for a pair without a route.
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
