"""Which state the machine was in, visit by visit, read off the floor measured before and after each.

On shared and virtual machines the cost of moving one cache line between the same two CPUs stays on a level for
minutes and then jumps by a factor of several, and every latency jumps with it. Levels are found on the log scale,
where their spread does not depend on the level: the floors of all *steady* visits (before and after within a ratio of
1.5) are sorted, and a ratio of 1.5 or more between neighbours parts two levels. A floor that was disturbed once (a
clock tick, a stolen slice) makes its visit unsteady, so it can neither found a level nor bridge two. An unsteady
visit is "mixed", unless both of its floors lie in or next to the same level.

Names tell what a floor means on today's machines, for cache lines between CPUs of one host: "near" below 80 ns (a
shared cache), "far" below 1 us (another cache, socket or hypervisor mood), "time-sliced" above (two ranks take turns
on a CPU; the floor is then a scheduler's choice, so everything above counts as one level). Two levels of one name
carry their floor. Visits without a floor are "unknown". Names depend on what else a run has seen; to compare runs,
compare floors.

Method: one-dimensional single-linkage clustering (J. A. Hartigan, Clustering Algorithms, Wiley 1975) with its cut at
a fixed ratio. 1.5 has room on both sides: a level was seen to spread by 1.2 (27 to 33 ns), the next to lie at 184 ns.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hockney.units import format_ns

GAP = 1.5
FAR_NS = 80.0
TIME_SLICED_NS = 1000.0

Floor = tuple[float, float] | None


@dataclass(frozen=True)
class State:
    """A state of the machine; `floor_ns` is the median of its visits' floors, None where there is not one floor."""

    name: str
    floor_ns: float | None


MIXED = State("mixed", None)
UNKNOWN = State("unknown", None)


@dataclass(frozen=True)
class _Level:
    low_ns: float
    high_ns: float
    median_ns: float


def classify(floors: Sequence[Floor]) -> list[State]:
    """The state of each visit, in order. `floors` holds (before, after) in ns, or None where there is no floor.

    Give all visits of a run at once: the more visits, the surer the levels, and only then do names agree.
    """
    known = [floor for floor in floors if floor is not None and _is_known(floor)]
    levels = _levels(sorted(value for floor in known if _is_steady(floor) for value in floor))
    states = dict(zip(levels, _named(levels), strict=True))
    found: list[State] = []
    for floor in floors:
        if floor is None or not _is_known(floor):
            found.append(UNKNOWN)
            continue
        before, after = (_level_of(value, levels) for value in floor)
        found.append(states[before] if before is not None and before == after else MIXED)
    return found


def _is_known(floor: tuple[float, float]) -> bool:
    return all(math.isfinite(value) and value > 0 for value in floor)


def _is_steady(floor: tuple[float, float]) -> bool:
    low, high = sorted(floor)
    return high < low * GAP or low >= TIME_SLICED_NS


def _levels(ordered: list[float]) -> list[_Level]:
    groups: list[list[float]] = []
    for value in ordered:
        if groups and value < groups[-1][-1] * GAP:
            groups[-1].append(value)
        else:
            groups.append([value])
    sliced = [value for group in groups if statistics.median(group) >= TIME_SLICED_NS for value in group]
    groups = [group for group in groups if statistics.median(group) < TIME_SLICED_NS]
    if sliced:
        groups.append(sliced)
    return [_Level(group[0], group[-1], statistics.median(group)) for group in groups]


def _level_of(value: float, levels: list[_Level]) -> _Level | None:
    """The nearest level, if nearer than the gap that parts levels."""

    def ratio(level: _Level) -> float:
        return max(level.low_ns / value, value / level.high_ns, 1.0)

    nearest = min(levels, key=ratio, default=None)
    return nearest if nearest is not None and ratio(nearest) < GAP else None


def _named(levels: list[_Level]) -> list[State]:
    names = [
        "near" if level.median_ns < FAR_NS else "far" if level.median_ns < TIME_SLICED_NS else "time-sliced"
        for level in levels
    ]
    count = Counter(names)
    return [
        State(name if count[name] == 1 else f"{name} {format_ns(level.median_ns)}", level.median_ns)
        for name, level in zip(names, levels, strict=True)
    ]
