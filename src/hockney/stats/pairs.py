"""The ratio of two variants measured in alternation, from one logarithm of a ratio for each launch pair.

The launch pair is the unit: within one, memory layout and placement favour one side throughout. The interval is
Student's t over launch pairs. `chances` asks how often the largest statistic of any series would be as large by chance,
by flipping the sides of whole launch pairs (P. H. Westfall, S. S. Young, Resampling-Based Multiple Testing, Wiley
1993). With six launch pairs the observed assignment is one of 32, the fewest that decide at 95 %.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hockney.stats.interval import CONFIDENCE
from hockney.stats.shift import Shift
from hockney.stats.student import t_quantile

if TYPE_CHECKING:
    from hockney.model import FloatArray

PAIRS_MIN = 6
_FLIPS_MAX = 12  # launch pairs of which all assignments are tried; of more, 2,048 are drawn


def log_ratio(quadruples: Iterable[tuple[Sequence[float], Sequence[float]]]) -> float | None:
    """The value of a launch pair: the median over its quadruples of log(new / base), each of times on both sides.

    None where no quadruple has times on both.
    """
    logs = [
        statistics.fmean(map(math.log, new)) - statistics.fmean(map(math.log, base))
        for base, new in quadruples
        if base and new
    ]
    return statistics.median(logs) if logs else None


def shift_of_pairs(logs: Sequence[float]) -> Shift:
    """The ratio of new to base over launch pairs, with its 95 % interval where there are two or more."""
    n, mean = len(logs), statistics.fmean(logs)
    if n < 2:
        return Shift(math.exp(mean), None, None, None, n, n)
    half = t_quantile(n - 1) * statistics.stdev(logs) / math.sqrt(n)
    return Shift(math.exp(mean), math.exp(mean - half), math.exp(mean + half), CONFIDENCE, n, n)


def chances(logs: FloatArray, margin: float = 1.0) -> FloatArray:
    """For each series the probability that chance alone makes any series differ beyond `margin` as much as this one.

    `logs` has the shape (series, launch pairs), NaN where a series has no value in a launch pair. 1 where a series has
    fewer than two values.
    """
    import numpy as np

    known = np.isfinite(logs)
    values = np.where(known, logs, 0.0)
    n = known.sum(axis=1)
    means = _assignments(logs.shape[1]) @ values.T / np.maximum(n, 1)
    variance = ((values**2).sum(axis=1) - n * means**2).clip(0) / np.maximum(n - 1, 1)
    errors = np.sqrt(variance / np.maximum(n, 1))
    # The scatter of few values is sometimes small by luck: the usual one of all series is added (Tusher et al. 2001).
    enough = n > 1 if (n > 1).any() else n >= 0
    errors += np.maximum(np.median(errors[:, enough], axis=1, keepdims=True), 1e-9)
    beyond = np.abs(means)
    observed = np.maximum(beyond[0] - math.log(margin), 0.0) / errors[0]
    largest = (np.where(n > 1, beyond, 0.0) / errors).max(axis=1)
    largest[0] = np.where(n > 1, observed, 0.0).max()
    share = (largest[:, None] >= observed * (1 - 1e-9)).mean(axis=0)
    result: FloatArray = np.where((n > 1) & (observed > 0), share, 1.0)
    return result


def _assignments(pairs: int) -> FloatArray:
    """Ways to call one side of each launch pair new: rows of 1 and -1, the observed one first."""
    import numpy as np

    if pairs > _FLIPS_MAX:
        drawn = np.random.default_rng(0).choice([-1.0, 1.0], (2048, pairs))
        drawn[0] = 1.0
        return drawn
    # The first pair is never flipped: all flipped is the same as none.
    return np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=pairs - 1)])
