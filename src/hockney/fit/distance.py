"""What distance in a network adds to a latency, from latencies between pairs.

Model: t = base + a * hops + b * changes, with the hops between two ranks and how often the way changes its direction.
Every pair weighs the same. What the model can't say (shared links, one slow node) shows in `rms_ns` and
`worst_pair`. Ordinary least squares and the errors of its parameters: N. R. Draper, H. Smith, Applied Regression
Analysis, 3rd ed., Wiley 1998, chapter 5. The model is that of the Cray T3D report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hockney.fit.fit import NoFit

Pair = tuple[int, int]  # source and target


@dataclass(frozen=True)
class DistanceFit:
    """Parameters, each with its standard error (`_se`, one standard deviation), given that the model holds."""

    base_ns: float
    base_se_ns: float
    hop_ns: float
    hop_se_ns: float
    change_ns: float
    change_se_ns: float
    rms_ns: float  # of measured - fitted
    worst_pair: Pair  # the one that is farthest from the model
    pairs: int

    def time_ns(self, hops: int, changes: int) -> float:
        """The fitted latency."""
        return self.base_ns + self.hop_ns * hops + self.change_ns * changes


def fit_distance(
    times_ns: Mapping[Pair, float], hops: Mapping[Pair, int], changes: Mapping[Pair, int]
) -> DistanceFit | NoFit:
    """Fit the latency of each pair to its way. Raises KeyError for a pair whose way is not given."""
    import numpy as np

    pairs = sorted(times_ns)
    if len(pairs) < 4:
        return NoFit(
            f"a fit of three parameters needs four pairs, there {'is' if len(pairs) == 1 else 'are'} {len(pairs)}"
        )
    if not all(math.isfinite(times_ns[pair]) and times_ns[pair] > 0 for pair in pairs):
        return NoFit("a fit needs positive times")
    ways = np.array([[1.0, hops[pair], changes[pair]] for pair in pairs])
    times = np.array([times_ns[pair] for pair in pairs])
    if np.linalg.matrix_rank(ways) < 3:
        return NoFit("the pairs' ways don't tell hops and changes of direction apart from each other or from the base")
    values, *_ = np.linalg.lstsq(ways, times, rcond=None)
    residuals = times - ways @ values
    variance = float(residuals @ residuals) / (len(pairs) - 3)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(ways.T @ ways)))
    return DistanceFit(
        base_ns=float(values[0]),
        base_se_ns=float(errors[0]),
        hop_ns=float(values[1]),
        hop_se_ns=float(errors[1]),
        change_ns=float(values[2]),
        change_se_ns=float(errors[2]),
        rms_ns=float(np.sqrt(np.mean(residuals**2))),
        worst_pair=pairs[int(np.abs(residuals).argmax())],
        pairs=len(pairs),
    )
