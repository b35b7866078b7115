"""Where a curve changes its line: the best division of sizes into straight segments, and the sizes that fit none.

Dynamic programming over segments (R. Bellman, On the approximation of curves by line segments using dynamic
programming, CACM 4 (1961) 284; J. Bai, P. Perron, Computation and analysis of multiple structural change models,
J. Applied Econometrics 18 (2003) 1-22). Errors are weighed relative to each time. How many segments and how many
outliers is told by Schwarz's criterion in the form for small samples (A. McQuarrie, A small-sample correction for the
Schwarz SIC model selection criterion, Statistics & Probability Letters 44 (1999) 79-86). A place found by search uses
chance better than a parameter does (N. R. Zhang, D. O. Siegmund, A modified Bayes information criterion, Biometrics 63
(2007) 22-32), so switches and outliers cost a little more than the parameters that they are.

An outlier is a size taken out of its segment. Taking a set of points out of a least-squares fit lowers the sum of
squares by e' (1 - H)^-1 e, with the residuals e and the part H of the hat matrix of these points alone (R. D. Cook,
S. Weisberg, Residuals and Influence in Regression, 1982, sections 2.2 and 3.6), so segments with the best one or two
points taken out cost no second fit. Two at once, because two neighbours that err alike hide each other: with one of
them left in, a short segment through it looks better. Passes are repeated without the outliers until none is new.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.stats.fit.lines import weights_of

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray, Int64Array

SIZES_MIN = 3  # of a segment: two points lie on any line
SEGMENTS_MAX = 10
_OUTLIERS_MAX = 2  # new ones in one pass
_SUSPECTS = 12
_PASSES_MAX = 4
_PATIENCE = 2  # segments more without a gain, and the search is over
_SWITCH = 4.0  # parameters: a line, and the choice of its place, which chance may use; rates: tests/stats/fit/truth.py
_OUTLIER = 3.0  # parameters: a value and the choice of a size
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
    """Relative sums of squares of the segments from `first` to `last` as one line, at [taken, last, first].

    So many suspects are left out, those whose absence helps most: `whom` has them at [last, first], an array for each
    number. Infinite where a segment has too few sizes.
    """

    squares: FloatArray
    whom: tuple[Int64Array, ...]


def partition(sizes: FloatArray, times: FloatArray, errors: FloatArray | None) -> Partition:
    """Divide ascending sizes into segments. `errors` are standard errors of the times, relative."""
    import numpy as np

    weights = weights_of(errors, len(sizes))
    # The median, as for the weights: one time that is hardly known must not hide every switch.
    scatter = _FLOOR**2 + (0.0 if errors is None else float(np.median(errors)) ** 2)
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

    who = _suspects(x, t)
    at = who[:, None]
    off = x[at] - x[first] - mu
    spare = 1 / w[at]
    suspects = _Suspects(
        who=who,
        off=off,
        miss=t[at] - t[first] - mv - slope * off,
        left=np.maximum(spare - 1 / sw - off * off / spread, 1e-9 * spare),
        inside=(at >= first) & (at <= last),
    )
    spare_sizes = last - first + 1 - SIZES_MIN
    outs = [_one_out(suspects, spare_sizes >= 1), _two_out(suspects, spare_sizes >= 2, sw, spread)]
    costs = np.full((_OUTLIERS_MAX + 1, n, n), np.inf)
    costs[0, last, first] = np.maximum(squares, 0.0)
    whom = [np.zeros((n, n, number), dtype=np.int64) for number in range(_OUTLIERS_MAX + 1)]
    for number, (gain, taken) in enumerate(outs, start=1):
        costs[number, last, first] = np.maximum(squares - gain, 0.0)
        whom[number][last, first] = taken
    return _Costs(costs, tuple(whom))


@dataclass(frozen=True)
class _Suspects:
    """Sizes that may be outliers, ascending, each beside every segment, of which it may be `inside`, or not.

    How far `off` the segment's mean size it is, what the segment's line makes it `miss`, and what is `left` of its own
    variance by fitting the line to it too.
    """

    who: Int64Array
    off: FloatArray
    miss: FloatArray
    left: FloatArray
    inside: BoolArray


def _one_out(suspects: _Suspects, able: BoolArray) -> tuple[FloatArray, Int64Array]:
    """Of each segment how much its sum of squares falls without the best one of the suspects, and which that is."""
    import numpy as np

    gain = np.where(suspects.inside & able, suspects.miss**2 / suspects.left, -np.inf)
    best = gain.argmax(axis=0)
    return gain[best, np.arange(len(best))], suspects.who[best][:, None]


def _two_out(
    suspects: _Suspects, able: BoolArray, total: FloatArray, spread: FloatArray
) -> tuple[FloatArray, Int64Array]:
    """The same of the best two. `total` is a segment's sum of weights, `spread` that of squared distances in size."""
    import numpy as np

    gain, who = np.full(len(total), -np.inf), np.zeros((len(total), 2), dtype=np.int64)
    for i in range(len(suspects.who) - 1):
        here = np.flatnonzero(suspects.inside[i] & suspects.inside[i + 1] & able)
        others = slice(i + 1, None), here
        miss, left = suspects.miss[i, here], suspects.left[i, here]
        shared = 1 / total[here] + suspects.off[i, here] * suspects.off[others] / spread[here]
        both = left * suspects.left[others]
        apart = both - shared * shared
        sure = suspects.inside[others] & (apart > 1e-9 * both)
        falls = (
            suspects.left[others] * miss**2 + (2 * shared * miss + left * suspects.miss[others]) * suspects.miss[others]
        )
        falls = np.where(sure, falls / np.where(sure, apart, 1.0), -np.inf)
        best = falls.argmax(axis=0)
        most = falls[best, np.arange(len(best))]
        better = most > gain[here]
        gain[here[better]] = most[better]
        who[here[better], 0], who[here[better], 1] = suspects.who[i], suspects.who[i + 1 + best[better]]
    return gain, who


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
    """The sizes that the line between their neighbours, or those beyond, misses most, and both ends."""
    import numpy as np

    n = len(x)
    if n <= _SUSPECTS:
        return np.arange(n)
    miss = np.zeros(n)
    for reach in (1, 2):
        part = (x[reach:-reach] - x[: -2 * reach]) / np.maximum(x[2 * reach :] - x[: -2 * reach], 1e-300)
        line = t[: -2 * reach] * (1 - part) + t[2 * reach :] * part
        miss[reach:-reach] = np.maximum(miss[reach:-reach], np.abs(line / t[reach:-reach] - 1))
    inner = np.sort(np.argsort(miss[1:-1])[-(_SUSPECTS - 2) :]) + 1
    found: Int64Array = np.concatenate([[0], inner, [n - 1]])
    return found


def _divide(costs: _Costs, scatter: float, prior: int, known: int) -> tuple[list[int], list[int]]:
    """The starts of the segments and the outliers of the division that the criterion prefers."""
    import numpy as np

    n = costs.squares.shape[1]
    # best[o, j]: the least sum of squares of the sizes before j in so many segments, o of the sizes taken out
    best = np.full((_OUTLIERS_MAX + 1, n + 1), np.inf)
    best[0, 0] = 0.0
    trails = []
    chosen, least = (1, 0), math.inf
    for segments in range(1, min(SEGMENTS_MAX, n // SIZES_MIN) + 1):
        either = best[:, None, :-1] + costs.squares[0]
        dropped = np.zeros(either.shape, dtype=np.int64)
        for number in range(1, _OUTLIERS_MAX + 1):
            drop = best[:-number, None, :-1] + costs.squares[number]
            better = drop < either[number:]
            either[number:][better], dropped[number:][better] = drop[better], number
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
    return _trace(trails[: chosen[0]], chosen[1], costs.whom)


def _trace(
    trails: Sequence[tuple[Int64Array, Int64Array]], taken: int, whom: Sequence[Int64Array]
) -> tuple[list[int], list[int]]:
    """The starts and the outliers, from the last segment back to the first."""
    starts: list[int] = []
    outliers: list[int] = []
    last = len(whom[0]) - 1
    for came, dropped in reversed(trails):
        first = int(came[taken, last])
        starts.append(first)
        number = int(dropped[taken, last, first])
        outliers.extend(whom[number][last, first].tolist())
        taken -= number
        last = first - 1
    return starts[::-1], outliers


def _criterion(squares: float, n: int, segments: int, outliers: int, scatter: float, prior: int) -> float:
    """Smaller is better; infinite where the data are too few for so many parameters."""
    price = 2 + _SWITCH * (segments - 1) + _OUTLIER * outliers
    parameters = 2 * segments + outliers  # what a small sample is used up by: not by the choice of places
    total = n + prior
    if not math.isfinite(squares) or total - parameters <= 2:
        return math.inf
    likelihood = total * math.log((squares + prior * scatter) / total)
    return likelihood + price * math.log(n) * total / (total - parameters - 2)
