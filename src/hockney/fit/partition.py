"""Where a curve changes its line: the best division of sizes into straight segments, and the sizes that fit none.

Dynamic programming over segments (R. Bellman, On the approximation of curves by line segments using dynamic
programming, CACM 4 (1961) 284; J. Bai, P. Perron, Computation and analysis of multiple structural change models,
J. Applied Econometrics 18 (2003) 1-22). Errors are weighed relative to each time. How many segments and how many
outliers is told by Schwarz's criterion in the form for small samples (A. McQuarrie, A small-sample correction for the
Schwarz SIC model selection criterion, Statistics & Probability Letters 44 (1999) 79-86): each segment costs its line
and its place, each outlier its value and its place.

An outlier is a size taken out of its segment. Taking point k out of a least-squares fit lowers the sum of squares by
e_k^2 / (1 - h_k) (R. D. Cook, S. Weisberg, Residuals and Influence in Regression, 1982, section 2.2), so segments with
the best single point taken out cost no second fit. One pass so finds one outlier in each segment; passes are repeated
without the outliers until none is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hockney.model import FloatArray

SIZES_MIN = 3  # of a segment: two points lie on any line
SEGMENTS_MAX = 10
_OUTLIERS_MAX = 3  # new ones in one pass
_SUSPECTS = 12  # sizes that may be an outlier in one pass
_PASSES_MAX = 4
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
    """Relative sums of squares of segments [i, j] as one line: `whole[i, j]`, and `without[i, j]` with the best one
    of the suspects, `taken[i, j]`, left out. Infinite where a segment has too few sizes."""

    whole: FloatArray
    without: FloatArray
    taken: FloatArray


def partition(sizes: FloatArray, times: FloatArray, errors: FloatArray | None) -> Partition:
    """Divide ascending sizes into segments. `errors` are standard errors of the times, relative."""
    import numpy as np

    weights = np.ones(len(sizes)) if errors is None else _weights(errors)
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
    return Partition(starts, tuple(sorted(outliers)))


def _weights(errors: FloatArray) -> FloatArray:
    """What a size weighs by its own error: none more than twice the median one, so that no lucky interval rules."""
    import numpy as np

    middle = float(np.median(errors)) or 1.0
    weights: FloatArray = 2 / (1 + (errors / middle) ** 2)
    return weights


def _costs(x: FloatArray, t: FloatArray, weights: FloatArray) -> _Costs:
    """All segments at once, from differences of running sums."""
    import numpy as np

    n = len(x)
    x = x / (x[-1] or 1.0)
    w = weights / t**2
    sums = np.zeros((6, n + 1))
    np.cumsum([w, w * x, w * x * x, w * t, w * x * t, w * t * t], axis=1, out=sums[:, 1:])
    first, last = np.arange(n)[:, None], np.arange(n)[None, :]
    sw, sx, sxx, st, sxt, stt = sums[:, 1:][:, last] - sums[:, :-1][:, first]
    sw = np.where(last >= first, sw, 1.0)
    mx, mt = sx / sw, st / sw
    spread = sxx - mx * sx
    flat = spread <= 1e-10 * sxx  # sizes too close together to tell a slope
    slope = np.where(flat, 0.0, (sxt - mx * st) / np.where(flat, 1.0, spread))
    whole = np.maximum(stt - mt * st - slope * (sxt - mx * st), 0.0)
    count = last - first + 1
    short = (count < SIZES_MIN) | np.concatenate([[False], x[1:] == x[:-1]])[:, None]  # one size is never divided
    whole[short] = np.inf

    suspects = _suspects(x, t)[:, None, None]
    inside = (suspects >= first) & (suspects <= last) & (count > SIZES_MIN)
    miss = t[suspects] - mt - slope * (x[suspects] - mx)
    share = w[suspects] * (1 / sw + np.where(flat, 0.0, (x[suspects] - mx) ** 2 / np.where(flat, 1.0, spread)))
    gain = np.where(inside, w[suspects] * miss**2 / np.maximum(1 - share, 1e-6), -np.inf)
    best = gain.argmax(axis=0)
    without = np.maximum(whole - np.take_along_axis(gain, best[None], axis=0)[0], 0.0)
    without[short | (count <= SIZES_MIN)] = np.inf
    return _Costs(whole, without, suspects[best, 0, 0])


def _suspects(x: FloatArray, t: FloatArray) -> FloatArray:
    """The sizes that the line between their neighbours misses most, and both ends."""
    import numpy as np

    n = len(x)
    if n <= _SUSPECTS:
        return np.arange(n)
    part = (x[1:-1] - x[:-2]) / np.maximum(x[2:] - x[:-2], 1e-300)
    miss = np.abs(t[:-2] * (1 - part) + t[2:] * part - t[1:-1]) / t[1:-1]
    inner = np.argsort(miss)[-(_SUSPECTS - 2) :] + 1
    return np.concatenate([[0], inner, [n - 1]])


def _divide(costs: _Costs, scatter: float, prior: int, known: int) -> tuple[list[int], list[int]]:
    """The starts of the segments and the outliers of the division that the criterion prefers."""
    import numpy as np

    n = len(costs.whole)
    segments_max = min(SEGMENTS_MAX, n // SIZES_MIN)
    outliers_max = min(_OUTLIERS_MAX, max(0, n - SIZES_MIN))
    # best[o][j]: least sum of squares of the sizes before j in so many segments, o of the sizes taken out
    best = np.full((outliers_max + 1, n + 1), np.inf)
    best[0, 0] = 0.0
    trails = []
    chosen, chosen_value = (1, 0), np.inf
    for segments in range(1, segments_max + 1):
        stay = best[:, :-1, None] + costs.whole
        drop = np.full_like(stay, np.inf)
        drop[1:] = best[:-1, :-1, None] + costs.without
        dropped = drop < stay
        either = np.where(dropped, drop, stay)
        came = either.argmin(axis=1)
        best = np.full_like(best, np.inf)
        best[:, 1:] = np.take_along_axis(either, came[:, None], axis=1)[:, 0]
        trails.append((came, np.take_along_axis(dropped, came[:, None], axis=1)[:, 0]))
        for taken in range(outliers_max + 1):
            value = _criterion(best[taken, -1], n + known, segments, taken + known, scatter, prior)
            if value < chosen_value:
                chosen, chosen_value = (segments, taken), value
    segments, taken = chosen
    starts: list[int] = []
    outliers: list[int] = []
    last = n - 1
    for came, dropped in reversed(trails[:segments]):
        first, drops = int(came[taken, last]), bool(dropped[taken, last])
        starts.append(first)
        if drops:
            outliers.append(int(costs.taken[first, last]))
            taken -= 1
        last = first - 1
    return starts[::-1], outliers


def _criterion(squares: float, n: int, segments: int, outliers: int, scatter: float, prior: int) -> float:
    """Smaller is better; infinite where the data are too few for so many parameters."""
    import math

    parameters = 3 * segments - 1 + 2 * outliers
    total = n + prior
    if not math.isfinite(squares) or total - parameters <= 2:
        return math.inf
    return total * math.log((squares + prior * scatter) / total) + parameters * math.log(n) * total / (
        total - parameters - 2
    )
