"""The Cray T3D report's model of latency over distance: t = base + a * hops + b * changes of direction.

Ordinary least squares, every pair with the same weight (N. R. Draper, H. Smith, Applied Regression Analysis, 3rd ed.,
Wiley 1998, chapter 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hockney.stats.fit.lines import NoFit

Pair = tuple[int, int]  # source and target


@dataclass(frozen=True)
class DistanceFit:
    """The parameters with their standard errors (`_se`); those of a change are None where routes have no directions.

    `reach` standard errors are a 95 % interval. `rms_ns` and `worst_pair` show what the model does not explain.
    """

    base_ns: float
    base_se_ns: float
    hop_ns: float
    hop_se_ns: float
    change_ns: float | None
    change_se_ns: float | None
    reach: float
    rms_ns: float  # of measured - fitted
    worst_pair: Pair
    pairs: int

    def time_ns(self, hops: int, changes: int) -> float:
        """The fitted latency."""
        return self.base_ns + self.hop_ns * hops + (self.change_ns or 0.0) * changes


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
    return DistanceFit(
        base_ns=float(values[0]),
        base_se_ns=float(errors[0]),
        hop_ns=float(values[1]),
        hop_se_ns=float(errors[1]),
        change_ns=None if changes is None else float(values[2]),
        change_se_ns=None if changes is None else float(errors[2]),
        reach=float(stdtrit(freedom, 0.975)),
        rms_ns=float(np.sqrt(np.mean(residuals**2))),
        worst_pair=pairs[int(np.abs(residuals).argmax())],
        pairs=len(pairs),
    )
