"""The levels of the floor in a run, by single-linkage clusters of its sorted values (J. A. Hartigan, 1975).

A new level begins after a gap of a factor of 1.5 that holds at most a fifth of the number of floors on either side. It
also begins after an empty gap of 1.3 with at least 5 % of the floors on either side. All levels above 1 us are one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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


def levels_of(floors: Sequence[Floor], reference: str | None) -> list[str | None]:
    """The level of each measurement, "mixed" if it changed meanwhile; None without a floor.

    The floors are of one kind: of cache lines, or of the transport `reference`.
    """
    import numpy as np

    sliced_ns = _TIME_SLICED_NS if reference is None else math.inf
    known = [
        floor if floor and 0 < floor[0] < math.inf and 0 < floor[1] < math.inf else (math.nan, math.nan)
        for floor in floors
    ]
    values_ns = np.array(known, dtype=float).reshape(-1, 2)
    low, high = values_ns.min(axis=1), values_ns.max(axis=1)
    # A measurement during which the floor changed says nothing about levels.
    groups = list(_divided(np.sort(values_ns[(high < GAP * low) | (low >= sliced_ns)], axis=None)))
    sliced = [group for group in groups if np.median(group) >= sliced_ns]
    if sliced:
        groups[-len(sliced) :] = [np.concatenate(sliced)]
    medians_ns = [float(np.median(group)) for group in groups]
    words = [level_word(median_ns, reference) for median_ns in medians_ns]
    names = [
        word if words.count(word) == 1 else f"{word} {format_ns(median_ns)}"
        for word, median_ns in zip(words, medians_ns, strict=True)
    ]
    # The nearest level of each value, by its place; the last, "mixed", where none is nearer than GAP.
    lows_ns = np.array([*(group[0] for group in groups), math.inf])
    highs_ns = np.array([0.0, *(group[-1] for group in groups)])
    above = np.searchsorted(lows_ns[:-1], values_ns, side="right")
    with np.errstate(divide="ignore"):
        below_ratio, above_ratio = values_ns / highs_ns[above], lows_ns[above] / values_ns
    nearest = np.where(below_ratio <= above_ratio, above - 1, above)
    nearest[np.minimum(below_ratio, above_ratio) >= GAP] = -1
    names.append("mixed")
    return [
        None if math.isnan(floor[0]) else names[before if before == after else -1]
        for floor, (before, after) in zip(known, nearest.tolist(), strict=True)
    ]


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
