"""Where a curve changes its line: the best division of sizes into straight segments, and the sizes that fit none.

Dynamic programming over segments (R. Bellman, On the approximation of curves by line segments using dynamic
programming, CACM 4 (1961) 284; J. Bai, P. Perron, Computation and analysis of multiple structural change models,
J. Applied Econometrics 18 (2003) 1-22). Errors are weighed relative to each time. How many segments and how many
outliers is told by Schwarz's criterion in the form for small samples (A. McQuarrie, A small-sample correction for the
Schwarz SIC model selection criterion, Statistics & Probability Letters 44 (1999) 79-86). A place found by search uses
chance better than a parameter does (N. R. Zhang, D. O. Siegmund, A modified Bayes information criterion, Biometrics 63
(2007) 22-32), so switches and outliers cost a little more than the parameters that they are.

An outlier is a size taken out of its segment. Taking point k out of a least-squares fit lowers the sum of squares by
e_k^2 / (1 - h_k) (R. D. Cook, S. Weisberg, Residuals and Influence in Regression, 1982, section 2.2), so segments with
the best single point taken out cost no second fit. One pass so finds one outlier in each segment; passes are repeated
without the outliers until none is new.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray, Int64Array

SIZES_MIN = 3  # of a segment: two points lie on any line
SEGMENTS_MAX = 10
_OUTLIERS_MAX = 2  # new ones in one pass
_SUSPECTS = 8  # sizes that may be an outlier in one pass
_PASSES_MAX = 4
_PATIENCE = 2  # segments more without a gain, and the search is over
_SWITCH = 3.5  # parameters: a line, and the choice of its place, which chance may use; tests/fit/truth.py has the rates
_OUTLIER = 2.5  # parameters: a value and the choice of a size
_FLOOR = 0.005  # deviations of half a percent are never worth a segment
_PRIOR_KNOWN = 8  # how many sizes the intervals of the times weigh, where they are known, when scatter is judged
_PRIOR_UNKNOWN = 1


@dataclass(frozen=True)
class Partition:
    """`starts` holds the index of each segment's first size, `outliers` the indices taken out, both ascending."""

    starts: tuple[int, ...]
    outliers: tuple[int, ...]


@dataclass(frozen=True)
class _Costs:
    """Relative sums of squares of the segments from `first` to `last` as one line, at [last, first].

    In `without` the best one of the suspects, `taken`, is left out. Infinite where a segment has too few sizes.
    """

    whole: FloatArray
    without: FloatArray
    taken: Int64Array


def partition(sizes: FloatArray, times: FloatArray, errors: FloatArray | None) -> Partition:
    """Divide ascending sizes into segments. `errors` are standard errors of the times, relative."""
    import numpy as np

    weights = weights_of(errors, len(sizes))
    scatter = _FLOOR**2 + (0.0 if errors is None else float(np.mean(errors**2)))
    prior = _PRIOR_UNKNOWN if errors is None else _PRIOR_KNOWN
    outliers: set[int] = set()
    starts: tuple[int, ...] = (0,)
    for _ in range(_PASSES_MAX):
        kept = np.array([i for i in range(len(sizes)) if i not in outliers])
        costs = _costs(sizes[kept], times[kept], weights[kept])
        found, taken = _divide(costs, scatter, prior, len(outliers))
        starts = tuple(int(kept[i]) for i in found)
        if not taken:
            break
        outliers |= {int(kept[i]) for i in taken}
    return Partition((0, *starts[1:]), tuple(sorted(outliers)))


def weights_of(errors: FloatArray | None, count: int) -> FloatArray:
    """What a size weighs by its own error: none more than twice the median one, so that no lucky interval rules."""
    import numpy as np

    if errors is None or (middle := float(np.median(errors))) == 0:
        return np.ones(count)
    return 2 / (1 + (errors / middle) ** 2)


def _costs(x: FloatArray, t: FloatArray, weights: FloatArray) -> _Costs:
    """All segments at once, from running sums."""
    import numpy as np

    n = len(x)
    first, last = _segments(n)
    # Counted from each segment's own start: differences of sums over the whole curve would cancel to noise.
    w = weights / _level(t) ** 2
    u, v = x - x[:, None], t - t[:, None]
    from_here = np.triu(np.broadcast_to(w, (n, n)))
    wu, wv = from_here * u, from_here * v
    sums = np.cumsum([from_here, wu, wu * u, wv, wu * v, wv * v], axis=2)
    sw, su, suu, sv, suv, svv = sums[:, first, last]
    mu, mv = su / sw, sv / sw
    spread = suu - mu * su
    spread[spread <= 1e-12 * suu] = np.inf  # sizes too close together to tell a slope
    together = suv - mu * sv
    slope = together / spread
    squares = svv - mv * sv - slope * together

    suspects = _suspects(x, t)[:, None]
    off = x[suspects] - x[first] - mu
    miss = t[suspects] - t[first] - mv - slope * off
    spare = 1 / w[suspects]
    left = np.maximum(spare - 1 / sw - off * off / spread, 1e-9 * spare)
    gain = miss * miss / left
    gain[(suspects < first) | (suspects > last) | (last - first < SIZES_MIN)] = -np.inf
    best = gain.argmax(axis=0)
    whole, without = np.full((n, n), np.inf), np.full((n, n), np.inf)
    taken = np.zeros((n, n), dtype=np.int64)
    whole[last, first] = np.maximum(squares, 0.0)
    without[last, first] = np.maximum(squares - gain[best, np.arange(len(best))], 0.0)
    taken[last, first] = suspects[best, 0]
    return _Costs(whole, without, taken)


def _level(t: FloatArray) -> FloatArray:
    """The median of each time and its two neighbours: a time that errs must not set its own weight."""
    import numpy as np

    level: FloatArray = t.copy()
    level[1:-1] = np.sort([t[:-2], t[1:-1], t[2:]], axis=0)[1]
    return level


@functools.lru_cache(maxsize=64)
def _segments(n: int) -> tuple[Int64Array, Int64Array]:
    """The first and the last size of every segment of enough sizes."""
    import numpy as np

    last, first = np.tril_indices(n, 1 - SIZES_MIN)
    return first, last


def _suspects(x: FloatArray, t: FloatArray) -> Int64Array:
    """The sizes that the line between their neighbours misses most, and both ends."""
    import numpy as np

    n = len(x)
    if n <= _SUSPECTS:
        return np.arange(n)
    part = (x[1:-1] - x[:-2]) / np.maximum(x[2:] - x[:-2], 1e-300)
    miss = np.abs(t[:-2] * (1 - part) + t[2:] * part - t[1:-1]) / t[1:-1]
    inner = np.argsort(miss)[-(_SUSPECTS - 2) :] + 1
    found: Int64Array = np.concatenate([[0], inner, [n - 1]])
    return found


def _divide(costs: _Costs, scatter: float, prior: int, known: int) -> tuple[list[int], list[int]]:
    """The starts of the segments and the outliers of the division that the criterion prefers."""
    import numpy as np

    n = len(costs.whole)
    # best[o, j]: the least sum of squares of the sizes before j in so many segments, o of the sizes taken out
    best = np.full((min(_OUTLIERS_MAX, n - SIZES_MIN) + 1, n + 1), np.inf)
    best[0, 0] = 0.0
    trails = []
    chosen, least = (1, 0), math.inf
    for segments in range(1, min(SEGMENTS_MAX, n // SIZES_MIN) + 1):
        either = best[:, None, :-1] + costs.whole
        drop = best[:-1, None, :-1] + costs.without
        dropped = drop < either[1:]
        np.minimum(either[1:], drop, out=either[1:])
        came = either.argmin(axis=2)
        best[:, 1:] = np.take_along_axis(either, came[:, :, None], axis=2)[:, :, 0]
        best[:, 0] = np.inf
        trails.append((came, dropped))
        for taken, squares in enumerate(best[:, -1].tolist()):
            value = _criterion(squares, n + known, segments, taken + known, scatter, prior)
            if value < least:
                chosen, least = (segments, taken), value
        if segments - chosen[0] >= _PATIENCE:
            break
    return _trace(trails[: chosen[0]], chosen[1], costs.taken)


def _trace(trails: Sequence[tuple[Int64Array, BoolArray]], taken: int, whom: Int64Array) -> tuple[list[int], list[int]]:
    """The starts and the outliers, from the last segment back to the first."""
    starts: list[int] = []
    outliers: list[int] = []
    last = len(whom) - 1
    for came, dropped in reversed(trails):
        first = int(came[taken, last])
        starts.append(first)
        if taken and dropped[taken - 1, last, first]:
            outliers.append(int(whom[last, first]))
            taken -= 1
        last = first - 1
    return starts[::-1], outliers


def _criterion(squares: float, n: int, segments: int, outliers: int, scatter: float, prior: int) -> float:
    """Smaller is better; infinite where the data are too few for so many parameters."""
    parameters = 2 + _SWITCH * (segments - 1) + _OUTLIER * outliers
    total = n + prior
    if not math.isfinite(squares) or total - parameters <= 2:
        return math.inf
    likelihood = total * math.log((squares + prior * scatter) / total)
    return likelihood + parameters * math.log(n) * total / (total - parameters - 2)
