"""Machine states: the speed of a job's CPUs during each measurement (docs/methods.md has the reasons).

A state is a level, quiet or contended: "near" or "far, contended". The floor gives the level: half a round trip of one
cache line between ranks 0 and 1, before and after each measurement. The pace of each rank's CPU, the time of a fixed
loop, gives the contention of any rank. A measurement during which the level changed is "mixed"; without a floor it is
"unknown". Two levels of one name carry their floors, "far 184 ns".

Levels are relative to the run. To compare runs, classify their measurements together.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hockney.errors import UsageError, unknown
from hockney.model import MachineProbe, Place
from hockney.stats.interval import middle
from hockney.units import format_ns, parse_time_ns

if TYPE_CHECKING:
    from hockney.model import FloatArray

GAP = 1.5  # a new level begins after a gap of this factor
_TIME_SLICED_NS = 1000.0
REFERENCE = "reference"
LEVELS = ("near", "far", "time-sliced", REFERENCE)

Floor = tuple[float, float] | None  # before and after a measurement
CONTENDED, CONTENTION = "contended", "another program or VM shares a core that a rank uses"  # a word, its meaning


@dataclass(frozen=True)
class State:
    """A machine state; `floor_ns` is the median floor of its measurements, None for "mixed" and "unknown"."""

    name: str
    floor_ns: float | None

    @property
    def level(self) -> str:
        """The name without contention."""
        return self.name.partition(", ")[0]

    @property
    def is_reference(self) -> bool:
        """Whether its floor is half a round trip between hosts, not one of a cache line."""
        return self.level.partition(" ")[0] == REFERENCE

    @property
    def is_contended(self) -> bool:
        """Whether another program or VM shared a core that a rank used."""
        return self.name.endswith(f", {CONTENDED}")


MIXED = State("mixed", None)
UNKNOWN = State("unknown", None)
_Level = tuple[str | None, str]  # the reference of its floor, and its name
_ORDER = (*LEVELS, MIXED.name, UNKNOWN.name)


def state_order(name: str, floor_ns: float | None = None) -> tuple[int, float, bool, float]:
    """A sort key for states: from the nearest level to the farthest, then by contention; mixed and unknown last.

    `floor_ns` decides among levels of one name that do not carry a floor, as transports between hosts have.
    """
    state = State(name, None)
    level, _, floor = state.level.partition(" ")
    number = _ORDER.index(level) if level in _ORDER else len(_ORDER)
    return number, parse_time_ns(floor) if floor else 0.0, state.is_contended, floor_ns or 0.0


def state_name(text: str) -> str:
    """A name as hockney writes it: `near,contended` -> `near, contended`."""
    return ", ".join(part.strip() for part in text.split(","))


def parse_state(text: str) -> State:
    """The state of a name such as "far, contended", whose level carries no floor. Raises UsageError."""
    state = State(state_name(text), None)
    if state == MIXED:
        raise UsageError("the state mixed has no figures: the machine changed during its measurements")
    if state.level not in (*LEVELS, UNKNOWN.name):
        raise unknown("state", state.level, (*LEVELS, UNKNOWN.name))
    if state.name != state.level and not state.is_contended:
        raise unknown("addition to a state", state.name.partition(", ")[2], [CONTENDED])
    return state


def is_state(name: str, wanted: State) -> bool:
    """Whether a state has this name, with or without the floor of its level."""
    state = State(name, None)
    return state.is_contended == wanted.is_contended and state.level.partition(" ")[0] == wanted.level


def classify(probes: Sequence[MachineProbe]) -> list[State]:
    """The state of each measurement, in order. Levels depend on each other, so one call gets all measurements."""
    levels: list[str | None] = [None] * len(probes)
    for reference in {probe.reference for probe in probes}:
        numbers = [number for number, probe in enumerate(probes) if probe.reference == reference]
        floors = [probes[number].floor_ns for number in numbers]
        for number, level in zip(numbers, levels_of(floors, reference), strict=True):
            levels[number] = level
    states = [UNKNOWN] * len(probes)
    members: dict[tuple[str | None, str], list[int]] = {}
    for number, (probe, level, is_contended) in enumerate(zip(probes, levels, contended(probes), strict=True)):
        if level is not None:
            is_quiet = level == MIXED.name or not is_contended
            members.setdefault((probe.reference, level if is_quiet else f"{level}, {CONTENDED}"), []).append(number)
    for (_, name), numbers in members.items():
        floors_ns = (floor_ns for number in numbers for floor_ns in probes[number].floor_ns or ())
        state = MIXED if name == MIXED.name else State(name, statistics.median(floors_ns))
        for number in numbers:
            states[number] = state
    return states


def classify_both(base: Sequence[MachineProbe], new: Sequence[MachineProbe]) -> tuple[list[State], list[State]]:
    """The states of the measurements of two runs, with the same names in both.

    A measurement between two levels may join them if runs have few. So if the floors of the two runs within a level
    differ by GAP, each run gets a separate level, named by its floor.
    """
    probes, sides = [*base, *new], [0] * len(base) + [1] * len(new)
    states = classify(probes)
    floors: tuple[dict[_Level, list[float]], dict[_Level, list[float]]] = {}, {}
    for side, state, probe in zip(sides, states, probes, strict=True):
        if state.floor_ns is not None:
            floors[side].setdefault((probe.reference, state.level), []).extend(probe.floor_ns or ())
    medians_ns = [{key: statistics.median(floors_ns) for key, floors_ns in of_run.items()} for of_run in floors]
    separate = {
        key
        for key in floors[0].keys() & floors[1].keys()
        if key[1] != "time-sliced" and not 1 / GAP < medians_ns[0][key] / medians_ns[1][key] < GAP
    }
    for number, (side, state, probe) in enumerate(zip(sides, states, probes, strict=True)):
        key = probe.reference, state.level
        if key in separate:
            floor_ns = medians_ns[side][key]
            level = f"{level_word(floor_ns, probe.reference)} {format_ns(floor_ns)}"
            states[number] = State(f"{level}, {CONTENDED}" if state.is_contended else level, floor_ns)
    return states[: len(base)], states[len(base) :]


# ---- levels of the floor ---------------------------------------------------------------------------------------------

# The levels of the floor in a run, by single-linkage clusters of its sorted values (J. A. Hartigan, 1975).
# A new level begins after a gap of a factor of 1.5 that holds at most a fifth of the number of floors on either side.
# It also begins after an empty gap of 1.3 with at least 5 % of the floors on either side. All levels above 1 us are
# one.


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
    sliced = [group for group in groups if middle(group) >= sliced_ns]
    if sliced:
        groups[-len(sliced) :] = [np.concatenate(sliced)]
    medians_ns = [middle(group) for group in groups]
    words = [level_word(median_ns, reference) for median_ns in medians_ns]
    names = [
        word if words.count(word) == 1 else f"{word} {format_ns(median_ns)}"
        for word, median_ns in zip(words, medians_ns, strict=True)
    ]
    # The nearest level of each value, by its index; the last, "mixed", where none is nearer than GAP.
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


# ---- contention of CPUs ----------------------------------------------------------------------------------------------

# The ranks that had less than a whole core, by the paces of their CPUs.
# Least squares divide the paces of a CPU in a run into two classes (W. D. Fisher, JASA 53, 1958). They are two levels
# under three conditions. The medians differ by 12 % (30 % for fewer than 40 paces) and by six standard deviations of
# the quick class. Each class has 1 % of the paces, or eight. Values are missing between the medians: a drifting clock
# leaves no gap. A pace is contended if it is 6 % and four standard deviations above the quick median, or half way to
# the slow one.


def contended(probes: Sequence[MachineProbe]) -> list[bool]:
    """Whether any rank had less than a whole core just before or just after each measurement; False without paces."""
    import numpy as np

    alike: dict[tuple[Place, ...], list[int]] = {}  # by the CPUs of the ranks; where they are not known, each is one
    for number, probe in enumerate(probes):
        if probe.pace_ns is not None:
            ranks = len(probe.pace_ns[0])
            cpus = probe.places if len(probe.places) == ranks else tuple(("", -1 - rank) for rank in range(ranks))
            alike.setdefault(cpus, []).append(number)
    known: list[tuple[tuple[Place, ...], list[int], FloatArray, Any]] = []
    of_cpus: dict[Place, list[FloatArray]] = {}
    for cpus, numbers in alike.items():
        paces_ns = np.array([probes[number].pace_ns for number in numbers], dtype=float)  # measurement, when, rank
        solo_ns = np.array([probes[number].solo_ns or (math.nan, math.nan) for number in numbers])
        shares_core = paces_ns[:, :, 0] >= 1.25 * solo_ns  # ranks 0 and 1 were threads of one
        known.append((cpus, numbers, paces_ns, shares_core))
        for rank, cpu in enumerate(cpus):
            of_cpus.setdefault(cpu, []).append(paces_ns[:, :, rank][~shares_core])
    limits_ns = {cpu: pace_limit(np.concatenate(paces_ns)) for cpu, paces_ns in of_cpus.items()}
    found = [False] * len(probes)
    for cpus, numbers, all_ns, is_shared in known:
        is_slow = (all_ns > [limits_ns[cpu] for cpu in cpus]).any(axis=2) | is_shared
        for number, is_contended in zip(numbers, is_slow.any(axis=1).tolist(), strict=True):
            found[number] = is_contended
    return found


def pace_limit(paces_ns: FloatArray) -> float:
    """The pace above which a CPU is contended; infinite where its paces have one level."""
    import numpy as np

    # Sorted before some are left out: the result must not depend on which run came first.
    known = np.sort(paces_ns[(paces_ns > 0) & (paces_ns < math.inf)])
    logs = [math.log(pace_ns) for pace_ns in known[:: 1 + len(known) // 2000].tolist()]  # more only cost time
    n = len(logs)
    cut = _best_cut(logs)
    if min(cut, n - cut) < min(max(2, 0.01 * n), 8):
        return math.inf
    quick, slow = statistics.median(logs[:cut]), statistics.median(logs[cut:])
    # The quick class may hold contended paces, or steps of a coarse clock: the smaller of two estimates counts.
    deviation = statistics.median(abs(log - quick) for log in logs[:cut])
    sigma = min(1.483 * deviation, (logs[cut - 1 - cut // 10] - logs[cut // 10]) / 2.563)
    different = max(math.log(1.12 if n >= 40 else 1.3), 6 * sigma)
    if slow - quick < different or not _is_hollow(logs, cut, quick, slow):
        return math.inf
    return math.exp(quick + min(max(math.log(1.06), 4 * sigma), (slow - quick) / 2))


def _best_cut(ordered: Sequence[float]) -> int:
    """How many values the lower of two classes has, where the squares within both are least."""
    n, total, lower = len(ordered), math.fsum(ordered), 0.0
    best, cut = -math.inf, 0
    for i in range(1, n):
        lower += ordered[i - 1]
        between = (lower / i - (total - lower) / (n - i)) ** 2 * i * (n - i)
        if between > best:
            best, cut = between, i
    return cut


def _is_hollow(ordered: Sequence[float], cut: int, quick: float, slow: float) -> bool:
    """Whether values are missing between the medians of the two classes.

    Either half of the range is empty, or a band of it holds at most half as many values as usual bands of the slow
    class, and significantly fewer.
    """
    way = [quick, *ordered[bisect_right(ordered, quick) : bisect_left(ordered, slow)], slow]
    if max(above - below for below, above in itertools.pairwise(way)) >= (slow - quick) / 2:
        return True
    slow_part = ordered[cut:]
    step = math.log(1.03)
    span = slow_part[9 * (len(slow_part) - 1) // 10] - slow_part[0]
    for width in (step, 2 * step, 4 * step):
        usual = len(slow_part) * width / max(span, width)
        lows = [quick + step * number for number in range(1, int((slow - quick - width) / step) + 1)]
        counts = [bisect_right(ordered, low + width) - bisect_right(ordered, low) for low in lows]
        if min(counts, default=math.inf) <= min(usual / 2, usual - 2.5 * math.sqrt(usual)):
            return True
    return False
