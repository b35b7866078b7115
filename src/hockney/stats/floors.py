"""The levels of the floor in a run, by single-linkage clusters of its sorted values (J. A. Hartigan, 1975).

A new level begins after a gap of a factor of 1.5 that holds at most a fifth as many floors as lie on either side, or
after an empty gap of 1.3 with at least 5 % of the floors on either side. All levels above 1 us are one.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from hockney.units import format_ns

GAP = 1.5
_EMPTY_GAP = 1.3
_EMPTY_LEAST = 0.05  # of the floors, on either side of an empty gap
_BETWEEN = 0.2  # of the floors on either side may lie in a gap
_FAR_NS = 80.0
_TIME_SLICED_NS = 1000.0
LEVELS = ("near", "far", "time-sliced", "reference")

Floor = tuple[float, float] | None  # before and after a measurement


def level_word(floor_ns: float, reference: str | None) -> str:
    """The name of a level with this median floor; `reference` as in MachineProbe."""
    if reference is not None:
        return "reference"
    return "near" if floor_ns < _FAR_NS else "far" if floor_ns < _TIME_SLICED_NS else "time-sliced"


class _Level(NamedTuple):
    low_ns: float
    high_ns: float
    median_ns: float


class FloorLevels:
    """The levels of the floors of one kind: of cache lines, or of a transport's round trips."""

    def __init__(self, floors: Iterable[Floor], reference: str | None) -> None:
        sliced_ns = _TIME_SLICED_NS if reference is None else math.inf
        # A measurement during which the floor changed says nothing about levels.
        steady = [
            floor for floor in floors if _is_known(floor) and (max(floor) < GAP * min(floor) or min(floor) >= sliced_ns)
        ]
        groups = list(_divided(sorted(itertools.chain.from_iterable(steady))))
        sliced = [group for group in groups if statistics.median(group) >= sliced_ns]
        if sliced:
            groups[-len(sliced) :] = [list(itertools.chain.from_iterable(sliced))]
        self._levels = [_Level(group[0], group[-1], statistics.median(group)) for group in groups]
        words = [level_word(level.median_ns, reference) for level in self._levels]
        count = Counter(words)
        self._names = [
            word if count[word] == 1 else f"{word} {format_ns(level.median_ns)}"
            for word, level in zip(words, self._levels, strict=True)
        ]
        self._lows_ns = [level.low_ns for level in self._levels]

    def level(self, floor: Floor) -> str | None:
        """The name of the level before and after a measurement, "mixed" if they differ; None without a floor."""
        if not _is_known(floor):
            return None
        before, after = self._nearest(floor[0]), self._nearest(floor[1])
        return self._names[before] if before is not None and before == after else "mixed"

    def _nearest(self, value_ns: float) -> int | None:
        """The index of the nearest level, if it is nearer than GAP."""
        above = bisect_right(self._lows_ns, value_ns)
        if above and value_ns <= self._levels[above - 1].high_ns:
            return above - 1
        below_ratio = value_ns / self._levels[above - 1].high_ns if above else math.inf
        above_ratio = self._lows_ns[above] / value_ns if above < len(self._levels) else math.inf
        if min(below_ratio, above_ratio) >= GAP:
            return None
        return above - 1 if below_ratio <= above_ratio else above


def _is_known(floor: Floor) -> TypeGuard[tuple[float, float]]:
    return floor is not None and 0 < floor[0] < math.inf and 0 < floor[1] < math.inf


def _divided(floors_ns: Sequence[float]) -> Iterator[Sequence[float]]:
    """The floors of each level, without outliers in gaps. Floors and levels ascend."""
    import numpy as np

    if not floors_ns:
        return
    values, n = np.array(floors_ns), len(floors_ns)
    below = np.arange(1, n + 1)  # floors up to each one, after which a gap may begin
    ends = np.searchsorted(values, GAP * values)
    inside = ends - below
    is_gap = (ends < n) & (inside <= _BETWEEN * np.minimum(below, n - ends))
    if not is_gap.any():
        is_empty = np.append(values[1:] >= _EMPTY_GAP * values[:-1], False)
        is_gap = is_empty & (np.minimum(below, n - below) >= _EMPTY_LEAST * n)
        ends, inside = below, np.zeros(n, dtype=np.int64)
    if is_gap.any():
        best = int(np.argmin(np.where(is_gap, inside, n)))
        yield from _divided(floors_ns[: below[best]])
        yield from _divided(floors_ns[ends[best] :])
    else:
        yield floors_ns
