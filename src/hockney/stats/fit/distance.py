"""What distance in a network adds to a latency, from latencies between pairs.

Model: t = base + a * hops + b * changes, with the hops between two ranks and how often the way changes its direction;
where ways have no directions, t = base + a * hops. Every pair weighs the same. What the model can't say (shared links,
one slow node) shows in `rms_ns` and `worst_pair`. Ordinary least squares and the errors of its parameters: N. R.
Draper, H. Smith, Applied Regression Analysis, 3rd ed., Wiley 1998, chapter 5. The model is that of the Cray T3D report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hockney.stats.fit.lines import NoFit

Pair = tuple[int, int]  # source and target


@dataclass(frozen=True)
class DistanceFit:
    """Parameters, each with its standard error (`_se`, one standard deviation), given that the model holds.

    Those of a change of direction are None where the model has none.
    """

    base_ns: float
    base_se_ns: float
    hop_ns: float
    hop_se_ns: float
    change_ns: float | None
    change_se_ns: float | None
    reach: float  # how many standard errors a parameter's 95 % interval reaches to either side (Student's t)
    rms_ns: float  # of measured - fitted
    worst_pair: Pair  # the one that is farthest from the model
    pairs: int

    def time_ns(self, hops: int, changes: int) -> float:
        """The fitted latency."""
        return self.base_ns + self.hop_ns * hops + (self.change_ns or 0.0) * changes


def fit_distance(
    times_ns: Mapping[Pair, float], hops: Mapping[Pair, int], changes: Mapping[Pair, int] | None = None
) -> DistanceFit | NoFit:
    """Fit the latency of each pair to its way. Raises KeyError for a pair whose way is not given.

    `changes` None: ways have no directions that they could change.
    """
    import numpy as np
    from scipy.special import stdtrit

    pairs = sorted(times_ns)
    parameters = 2 if changes is None else 3
    if len(pairs) <= parameters:
        words = "two parameters needs three" if changes is None else "three parameters needs four"
        return NoFit(f"a fit of {words} pairs, there {'is' if len(pairs) == 1 else 'are'} {len(pairs)}")
    if not all(math.isfinite(times_ns[pair]) and times_ns[pair] > 0 for pair in pairs):
        return NoFit("a fit needs positive times")
    ways = np.array([[1.0, hops[pair], *([] if changes is None else [changes[pair]])] for pair in pairs])
    times = np.array([times_ns[pair] for pair in pairs])
    if np.linalg.matrix_rank(ways) < parameters:
        return NoFit(
            "all pairs are equally far apart"
            if changes is None
            else "the pairs' ways don't tell hops and changes of direction apart from each other or from the base"
        )
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
