"""The levels of the floor in a run, by single-linkage clusters of its sorted values (J. A. Hartigan, 1975).

A new level begins after a gap of a factor of 1.5 that holds at most a fifth of the number of floors on either side. It
also begins after an empty gap of 1.3 with at least 5 % of the floors on either side. All levels above 1 us are one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeGuard

from hockney.units import format_ns

if TYPE_CHECKING:
    from hockney.model import FloatArray

GAP = 1.5
_TIME_SLICED_NS = 1000.0
REFERENCE = "reference"
LEVELS = ("near", "far", "time-sliced", REFERENCE)

Floor = tuple[float, float] | None  # before and after a measurement


def level_word(floor_ns: float, reference: str | None) -> str:
    """The name of a level with this median floor; `reference` as in MachineProbe."""
    if reference is not None:
        return REFERENCE
    return "near" if floor_ns < 80 else "far" if floor_ns < _TIME_SLICED_NS else "time-sliced"


class FloorLevels:
    """The levels of the floors of one kind: of cache lines, or of a transport's round trips."""

    def __init__(self, floors: Iterable[Floor], reference: str | None) -> None:
        import numpy as np

        sliced_ns = _TIME_SLICED_NS if reference is None else math.inf
        known = np.array([floor for floor in floors if _is_known(floor)], dtype=float).reshape(-1, 2)
        low, high = known.min(axis=1), known.max(axis=1)
        # A measurement during which the floor changed says nothing about levels.
        groups = list(_divided(np.sort(known[(high < GAP * low) | (low >= sliced_ns)], axis=None)))
        sliced = [group for group in groups if np.median(group) >= sliced_ns]
        if sliced:
            groups[-len(sliced) :] = [np.concatenate(sliced)]
        medians_ns = [float(np.median(group)) for group in groups]
        words = [level_word(median_ns, reference) for median_ns in medians_ns]
        count = Counter(words)
        self._names = [
            word if count[word] == 1 else f"{word} {format_ns(median_ns)}"
            for word, median_ns in zip(words, medians_ns, strict=True)
        ]
        self._lows_ns = np.array([*(group[0] for group in groups), math.inf])
        self._highs_ns = np.array([0.0, *(group[-1] for group in groups)])

    def levels(self, floors: Iterable[Floor]) -> list[str | None]:
        """The name of the level before and after each measurement, "mixed" if they differ; None without a floor."""
        import numpy as np

        known = [floor if _is_known(floor) else (math.nan, math.nan) for floor in floors]
        before, after = self._nearest(np.array(known, dtype=float).reshape(-1, 2)).T.tolist()
        names = [*self._names, "mixed"]
        return [
            None if math.isnan(floor[0]) else names[first if first == second else -1]
            for floor, first, second in zip(known, before, after, strict=True)
        ]

    def _nearest(self, values_ns: FloatArray) -> FloatArray:
        """The index of the nearest level of each value, -1 where none is nearer than GAP."""
        import numpy as np

        above = np.searchsorted(self._lows_ns[:-1], values_ns, side="right")
        with np.errstate(divide="ignore"):
            below_ratio, above_ratio = values_ns / self._highs_ns[above], self._lows_ns[above] / values_ns
        nearest = np.where(below_ratio <= above_ratio, above - 1, above)
        result: FloatArray = np.where(np.minimum(below_ratio, above_ratio) < GAP, nearest, -1)
        return result


def _is_known(floor: Floor) -> TypeGuard[tuple[float, float]]:
    return floor is not None and 0 < floor[0] < math.inf and 0 < floor[1] < math.inf


def _divided(values: FloatArray) -> Iterator[FloatArray]:
    """The floors of each level, without outliers in gaps. Floors and levels ascend."""
    import numpy as np

    n = len(values)
    if not n:
        return
    below = np.arange(1, n + 1)  # floors up to each one, after which a gap may begin
    ends = np.searchsorted(values, GAP * values)
    inside = ends - below
    is_gap = (ends < n) & (inside <= 0.2 * np.minimum(below, n - ends))
    if not is_gap.any():
        is_empty = np.append(values[1:] >= 1.3 * values[:-1], False)
        is_gap = is_empty & (np.minimum(below, n - below) >= 0.05 * n)
        ends, inside = below, np.zeros(n, dtype=np.int64)
    if is_gap.any():
        best = int(np.argmin(np.where(is_gap, inside, n)))
        yield from _divided(values[: below[best]])
        yield from _divided(values[ends[best] :])
    else:
        yield values
