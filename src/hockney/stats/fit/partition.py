"""Divides a curve's sizes into straight segments, and finds the outliers among them.

Dynamic programming over segments (R. Bellman, CACM 4 (1961) 284; J. Bai, P. Perron, J. Applied Econometrics 18 (2003)
1-22) with errors relative to each time. Schwarz's criterion for small samples chooses the numbers of segments and
outliers (A. McQuarrie, Statistics & Probability Letters 44 (1999) 79-86). Up to 64 sizes every division is tried. With
more, a coarse grid of starts is searched first, then ever finer ones around the best starts, so the time grows with n
log n. docs/methods.md explains the method, tests/stats/fit/truth.py has the rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hockney.stats.fit.lines import weights_of
from hockney.stats.interval import middle

if TYPE_CHECKING:
    from hockney.model import FloatArray, Int64Array

SIZES_MIN = 3  # of a segment: two points lie on any line
SEGMENTS_MAX = 10
_OUTLIERS_MAX = 2  # new ones in a pass, at most one in a segment
_SUSPECTS = 12
_PRIOR = 8  # sizes
_SMOOTH = 6  # terms of a smooth curve: powers of the size, from 0 to 1 in equal steps


@dataclass(frozen=True)
class Partition:
    """`starts` holds the index of each segment's first size, `outliers` the indices taken out, both ascending.

    `between`: of each switch, between which sizes it may be.
    `curved`: a smooth curve describes the sizes better than these segments, or there are as many as were allowed.
    `value` is the criterion's.
    """

    starts: tuple[int, ...]
    between: tuple[tuple[int, int], ...]
    outliers: tuple[int, ...]
    value: float
    curved: bool = False


def partition(sizes: FloatArray, times: FloatArray, errors: FloatArray) -> Partition:
    """The best division of ascending sizes into segments. `errors` are relative standard errors of the times."""
    import numpy as np

    weights = weights_of(errors)
    # The median, as for the weights: a single uncertain time must not hide every switch. Half a percent is never worth
    # a segment.
    scatter = 0.005**2 + middle(errors) ** 2
    kept = np.arange(len(sizes))
    outliers: list[int] = []
    for _ in range(4):
        best = _Search(sizes[kept], times[kept], weights[kept], scatter, len(outliers)).best()
        starts = [int(kept[start]) for start in best.starts]
        outliers += [int(kept[at]) for at in best.outliers]
        kept = np.delete(kept, best.outliers)
        if not best.outliers:
            break
    smooth_squares = _smooth_squares(sizes[kept], times[kept], weights[kept])
    is_smooth = _criterion(scatter, smooth_squares, len(sizes), 0, len(outliers)) < best.value
    is_curved = len(starts) == SEGMENTS_MAX or (len(starts) > 1 and is_smooth)
    between = []
    for before, at, end in zip(starts, starts[1:], [*starts[2:], len(sizes)], strict=False):
        around = kept[(kept >= before) & (kept < end)]
        search = _Search(sizes[around], times[around], weights[around], scatter, 0)
        last, first = search.bounds_of(int(np.searchsorted(around, at)))
        between.append((int(around[last]), int(around[first])))
    return Partition((0, *starts[1:]), tuple(between), tuple(sorted(outliers)), best.value, is_curved)


def _criterion(scatter: float, squares: float, n: int, segments: int, outliers: int) -> float:
    """Schwarz's criterion with a prior of eight more sizes that scatter by the variance `scatter`: smaller is better.

    No segments: the smooth curve. Infinite where n sizes are too few for the parameters.
    """
    terms = 2 * segments or _SMOOTH
    # A switch counts as four parameters (a line and its size), an outlier as three (a value and its size).
    price = (2 + 4 * (segments - 1) if segments else terms) + 3 * outliers
    total = n + _PRIOR
    spare = total - terms - outliers - 2
    if not math.isfinite(squares) or spare <= 0:
        return math.inf
    likelihood = total * math.log((squares + _PRIOR * scatter) / total)
    return likelihood + price * math.log(n) * total / spare


class _Search:
    """The search for the best division, of which `known` outliers have been taken out before."""

    def __init__(self, x: FloatArray, t: FloatArray, weights: FloatArray, scatter: float, known: int) -> None:
        self.x, self.t, self.w = x, t, weights / _level(t) ** 2
        self.suspects = _suspects(x, t)
        self.scatter, self.known = scatter, known

    def best(self) -> Partition:
        import numpy as np

        n = len(self.x)
        step = -(-n // 64)  # 64 starts are searched at once
        best = self._among(np.arange(0, n, step))
        while step > 1:
            reach, step = step, -(-step // 3)
            starts = {0, *(start + off for start in best.starts for off in range(-reach, reach + 1, step))}
            best = self._among(np.array(sorted(start for start in starts if 0 <= start < n)))
        return best

    def _among(self, starts: Int64Array) -> Partition:
        """The best division whose segments begin at some of these starts."""
        import numpy as np

        costs, removed = self._costs(starts)
        n, bounds = len(self.x), len(starts) + 1
        # least[o, b]: the sum of squares of the sizes before bound b, with o of them taken out
        least = np.full((_OUTLIERS_MAX + 1, bounds), np.inf)
        least[0, 0] = 0.0
        trails: list[Int64Array] = []
        chosen, value = (1, 0), math.inf
        for segments in range(1, min(SEGMENTS_MAX, n // SIZES_MIN) + 1):
            ways = np.full((_OUTLIERS_MAX + 1, 2 * bounds, bounds), np.inf)
            ways[:, :bounds] = least[:, :, None] + costs[0]
            ways[1:, bounds:] = least[:-1, :, None] + costs[1]
            trails.append(ways.argmin(axis=1))
            least = ways.min(axis=1)
            for taken, squares in enumerate(least[:, -1].tolist()):
                here = _criterion(self.scatter, squares, n + self.known, segments, taken + self.known)
                if here < value:
                    chosen, value = (segments, taken), here
            if segments - chosen[0] >= 2:  # two more without a gain
                break
        segments, taken = chosen
        begins: list[int] = []
        outliers: list[int] = []
        bound = bounds - 1
        for trail in reversed(trails[:segments]):
            drops, before = divmod(int(trail[taken, bound]), bounds)
            outliers += [int(removed[before, bound])] * drops
            begins.append(int(starts[before]))
            taken, bound = taken - drops, before
        return Partition(tuple(begins[::-1]), (), tuple(outliers), value)

    def bounds_of(self, at: int) -> tuple[int, int]:
        """The last size below a single switch, and the first above it, with 95 % confidence, if `at` is its best start.

        The likelihood ratio excludes no size between: 7.35 is the quantile of B. E. Hansen,
        Econometrica 68 (2000) 575-603, for any distribution of errors.
        """
        import numpy as np

        starts = np.array([0, *range(max(1, at - 31), min(len(self.x), at + 32))])
        costs, _ = self._costs(starts, sizes_min=1)
        squares = costs[0, 0, 1:-1] + costs[0, 1:-1, -1]
        least = float(squares.min())
        variance = max(self.scatter, least / max(1, len(self.x) - 4))
        possible = starts[1:][squares <= least + 7.35 * variance]
        return min(at, int(possible[0])) - 1, max(at, int(possible[-1]))

    def _costs(self, starts: Int64Array, sizes_min: int = SIZES_MIN) -> tuple[FloatArray, Int64Array]:
        """Relative sums of squares of the line from one bound to another, and the outlier of the best one without it.

        Shape (2, bounds, bounds): all sizes, and without the suspect that helps most. The gain of leaving a suspect out
        is e^2 / (1 - h), with its residual e and leverage h (R. D. Cook, S. Weisberg, Residuals and Influence, 1982).
        """
        import numpy as np

        x, t, w, n, bounds = self.x, self.t, self.w, len(self.x), len(starts) + 1
        ends = np.append(starts[1:], n)
        first, last = np.nonzero(ends - starts[:, None] >= sizes_min)
        # Counted from each segment's start: differences of sums over the whole curve would cancel to noise.
        u, v = x - x[starts, None], t - t[starts, None]
        from_here = np.where(np.arange(n) >= starts[:, None], w, 0.0)
        wu, wv = from_here * u, from_here * v
        terms = (from_here, wu, wu * u, wv, wu * v, wv * v)
        sw, su, suu, sv, suv, svv = (np.cumsum(term, axis=1)[:, ends - 1][first, last] for term in terms)
        mu, mv = su / sw, sv / sw
        spread = suu - mu * su
        spread[spread <= 1e-12 * suu] = np.inf  # sizes too close together for a slope
        slope = (suv - mu * sv) / spread
        squares = svv - mv * sv - slope * (suv - mu * sv)

        begin, end = starts[first], ends[last]
        at = self.suspects[:, None]
        off = x[at] - x[begin] - mu
        miss = t[at] - t[begin] - mv - slope * off
        left = np.maximum(1 / w[at] - 1 / sw - off * off / spread, 1e-9 / w[at])
        is_able = (at >= begin) & (at < end) & (end - begin > SIZES_MIN)
        gain = np.where(is_able, miss**2 / left, -np.inf)
        costs = np.full((2, bounds, bounds), np.inf)
        costs[0, first, last + 1] = np.maximum(squares, 0.0)
        costs[1, first, last + 1] = np.maximum(squares - gain.max(axis=0), 0.0)
        removed = np.zeros((bounds, bounds), dtype=np.int64)
        removed[first, last + 1] = self.suspects[gain.argmax(axis=0)]
        return costs, removed


def _level(t: FloatArray) -> FloatArray:
    """The median of each time and its two neighbours: a time that errs must not set its own weight."""
    import numpy as np

    level: FloatArray = t.copy()
    level[1:-1] = np.sort([t[:-2], t[1:-1], t[2:]], axis=0)[1]
    return level


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
    inner = np.argsort(miss[1:-1])[-(_SUSPECTS - 2) :] + 1
    return cast("Int64Array", np.concatenate([[0], inner, [n - 1]]))


def _smooth_squares(x: FloatArray, t: FloatArray, weights: FloatArray) -> float:
    """The relative sum of squares that the best smooth curve leaves."""
    import numpy as np

    scale = np.sqrt(weights) / _level(t)
    columns = (x[:, None] / x[-1]) ** np.linspace(0, 1, _SMOOTH) * scale[:, None]
    best, *_ = np.linalg.lstsq(columns, t * scale, rcond=None)
    return float(np.sum((t * scale - columns @ best) ** 2))
