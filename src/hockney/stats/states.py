"""The state of the machine at each measurement: the level of its floor, and which ranks had less than a whole core.

Levels of the floor. On shared and virtual machines the floor (half a round trip of one cache line) stays on a level for
minutes and then jumps by a factor, and every latency with it. The floors of all measurements are sorted. A new level
begins after a stretch of a factor of 1.5 that holds at most a fifth as many floors as lie on either side, and at an
empty one of 1.3 with 5 % of the floors or more on either side. Levels are "near" below 80 ns, "far" below 1 us,
"time-sliced" above (always one level), and "reference" where the floor is a transport's own round trip. Two levels of
one name carry their floors. A measurement is "mixed" if its floors before and after are on different levels, and
"unknown" without a floor.

Contention. A CPU is slower while the other hardware thread of its core works for somebody else: its pace, the time of
a fixed loop of independent additions, shows it. All paces of a CPU are parted in two where the squares within both are
least. They count as two if the medians differ by 12 % (30 % of few) and by six standard deviations of the quick part,
something is missing in between, and a hundredth of them are quick. Beyond four standard deviations and 6 %, or half
way, a pace is contended. A level's name counts the contended ranks: ", one contended", ", some contended", ", all
contended"; ", same core" means that ranks 0 and 1 were threads of one core. A measurement during which that changed is
mixed, and so are all with the same ranks contended where a tenth of them may be there by chance: if a share p of all
looks sees it, p^2 of the measurements see it on both sides and 2 p (1 - p) on one.

Levels are those of one run. To compare runs, classify their measurements together. docs/methods.md has the reasons and
the rates. Methods: single-linkage clusters (J. A. Hartigan, Clustering Algorithms, Wiley 1975); two classes of least
squares (W. D. Fisher, On Grouping for Maximum Homogeneity, JASA 53, 1958).
"""

from __future__ import annotations

import itertools
import math
import operator
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hockney.errors import UsageError, unknown
from hockney.model import Place
from hockney.units import format_ns, parse_time_ns

GAP = 1.5
_EMPTY = 1.3  # parts levels too, where nothing lies in between
_EMPTY_LEAST = 0.05  # of the floors, on either side: fewer are the ends of a level that scatters
_ODD = 0.2  # of the floors of a level, that may lie between it and the next one
FAR_NS = 80.0
TIME_SLICED_NS = 1000.0
SAME_CORE = 1.25
_PACES_MAX = 2000  # so many tell the levels of a CPU's pace; more only cost time
_APART = math.log(1.12)
_APART_FEW = math.log(1.3)  # where fewer than so many paces are known:
_FEW = 40
_APART_SPREADS = 6.0
_QUICK_SPREADS = 4.0
_TENTHS = 2.563  # standard deviations of a normal distribution between its tenth and ninetieth percentile
_QUICK = math.log(1.06)
_RESOLUTION = 0.002  # of a pace, as a log: a spread below is the clock's coarseness
_LEAST = 0.01  # of all paces: fewer are odd ones
_BAND = math.log(1.03)
_HOLLOW = 0.5
_HOLLOW_SIGMAS = 2.5
_CHANCE_MAX = 0.1  # of the measurements with the same ranks contended, that may be there by chance
_CONTENDED = ("", "one contended", "some contended", "all contended", "same core")

Floor = tuple[float, float] | None
Paces = tuple[tuple[float, ...], tuple[float, ...]] | None
_Look = tuple[bool, ...] | str  # for each rank whether its CPU was contended, or the word for two ranks on one core
_Ranks = tuple[
    tuple[Place, ...], int
]  # where the ranks of a measurement run, as MachineProbe has it, and how many there are


class MachineProbe(NamedTuple):
    """What was seen of the machine just before and just after a measurement, each None where it was not measured.

    `floor_ns` and `solo_ns` hold (before, after), `pace_ns` the same with a number for each rank. `reference` names the
    transport whose own round trip the floor is; None for a cache line's. `places` are the ranks' hosts and CPUs; empty:
    not known, and each rank then counts as a CPU.
    """

    floor_ns: Floor
    pace_ns: Paces = None
    solo_ns: Floor = None
    reference: str | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class State:
    """A state of the machine; `floor_ns` is the median floor of its own measurements.

    None where there is not one floor.

    Where two runs are classified together, the measurements are those of both.
    """

    name: str
    floor_ns: float | None

    @property
    def level(self) -> str:
        """The name without what the paces say."""
        return self.name.partition(", ")[0]

    @property
    def contended(self) -> str:
        """What the paces say: nothing, or "one contended" and so on."""
        return self.name.partition(", ")[2]


LEVELS = ("near", "far", "time-sliced", "reference", "unknown")
MIXED = State("mixed", None)
UNKNOWN = State("unknown", None)
_PLACES = (*LEVELS[:-1], MIXED.name, UNKNOWN.name)


def place(name: str, floor_ns: float | None = None) -> tuple[int, float, int, float]:
    """To sort states by: level by level from the nearest, in each the less contended first; "mixed" and "unknown" last.

    Levels of one name without a floor in it, as transports between hosts have, are sorted by the floor given.
    """
    state = State(name, None)
    level, _, floor = state.level.partition(" ")
    kind = _PLACES.index(level) if level in _PLACES else len(_PLACES)
    contended = _CONTENDED.index(state.contended) if state.contended in _CONTENDED else len(_CONTENDED)
    return kind, parse_time_ns(floor) if floor else 0.0, contended, floor_ns or 0.0


def parse_state(text: str) -> State:
    """`near`, `far, one contended`: a name as measurements have it, of a level without its floor. Raises UsageError."""
    state = State(text.replace(" slowed", " contended"), None)  # as files of earlier versions call it
    if state.level == MIXED.name:
        raise UsageError(
            "figures are made of no measurement of the state mixed, for which no one state of the machine is known"
        )
    if state.level not in LEVELS:
        raise unknown("state", state.level, LEVELS)
    if state.name != state.level and state.contended not in _CONTENDED[1:]:
        raise unknown("addition to a state", state.contended, _CONTENDED[1:])
    return state


def is_state(name: str, wanted: State) -> bool:
    """Whether a state has this name, whatever its floor where two levels of one name carry theirs."""
    state = State(name, None)
    return state.contended == wanted.contended and state.level.partition(" ")[0] == wanted.level


def classify(seen: Sequence[MachineProbe]) -> list[State]:
    """The state of each measurement, in order.

    Give all measurements of a run at once: the more measurements, the surer the levels, and only then do names agree.
    """
    return classify_all([seen])[0]


def classify_all(runs: Sequence[Sequence[MachineProbe]]) -> list[list[State]]:
    """The state of each measurement of several runs.

    Levels of floor and pace are those of all their measurements together. What is by chance is told run by run, for
    what comes and goes in one of them may stay in another.
    """
    seen = list(itertools.chain.from_iterable(runs))
    scales = {key: _Scale(key, floors) for key, floors in _by_reference(seen).items()}
    limits = _pace_limits(seen)
    found = [MIXED] * len(seen)
    alike: dict[tuple[int, str | None, str, int], _Measurements] = {}  # by run, level and number of ranks
    run_of = itertools.chain.from_iterable(itertools.repeat(run, len(own)) for run, own in enumerate(runs))
    for number, (run, signs) in enumerate(zip(run_of, seen, strict=True)):
        level = scales[signs.reference].level(signs.floor_ns)
        if level is None:
            found[number] = UNKNOWN
        elif level != MIXED.name:
            key = run, signs.reference, level, 0 if signs.pace_ns is None else len(signs.pace_ns[0])
            measurements = alike.get(key)
            if measurements is None:
                measurements = alike[key] = _Measurements()
            measurements.add(number, *_looks(signs, limits))
    states: dict[tuple[str | None, str, str], list[int]] = {}
    for (_, reference, level, _), measurements in alike.items():
        for contended, numbers in measurements.by_name().items():
            states.setdefault((reference, level, contended), []).extend(numbers)
    for (_, level, contended), numbers in states.items():
        floors_ns = itertools.chain.from_iterable(seen[number].floor_ns or () for number in numbers)
        state = State(f"{level}, {contended}" if contended else level, statistics.median(floors_ns))
        for number in numbers:
            found[number] = state
    one_by_one = iter(found)
    return [list(itertools.islice(one_by_one, len(own))) for own in runs]


def classify_both(base: Sequence[MachineProbe], new: Sequence[MachineProbe]) -> tuple[list[State], list[State]]:
    """The states of the measurements of two runs, found among those of both, so that a name means the same in both.

    Where runs have few measurements, one between two levels may still hold them together. A level in which the floors
    of the runs lie apart by the gap of two levels is therefore not one: each run has its own, with its floor in the
    name.
    """
    states = classify_all([base, new])
    floors_ns = [_floors_of_levels(*of_run) for of_run in zip((base, new), states, strict=True)]
    apart = {
        key
        for key in floors_ns[0].keys() & floors_ns[1].keys()
        if key[1] != "time-sliced" and not 1 / GAP < floors_ns[0][key] / floors_ns[1][key] < GAP
    }
    for of_run, seen, own_ns in zip(states, (base, new), floors_ns, strict=True) if apart else ():
        for number, (state, signs) in enumerate(zip(of_run, seen, strict=True)):
            key = signs.reference, state.level
            if key in apart:
                level = f"{_word(own_ns[key], signs.reference)} {format_ns(own_ns[key])}"
                of_run[number] = State(f"{level}, {state.contended}" if state.contended else level, own_ns[key])
    return states[0], states[1]


def _floors_of_levels(seen: Iterable[MachineProbe], states: Iterable[State]) -> dict[tuple[str | None, str], float]:
    """The median floor of the measurements in each level, by reference and name."""
    of_states: dict[tuple[str | None, str], list[float]] = {}
    for signs, state in zip(seen, states, strict=True):
        if signs.floor_ns is not None and state is not MIXED and state is not UNKNOWN:
            of_states.setdefault((signs.reference, state.name), []).extend(signs.floor_ns)
    of_levels: dict[tuple[str | None, str], list[float]] = {}
    for (reference, name), floors_ns in of_states.items():
        of_levels.setdefault((reference, State(name, None).level), []).extend(floors_ns)
    return {key: statistics.median(floors_ns) for key, floors_ns in of_levels.items()}


def _by_reference(seen: Iterable[MachineProbe]) -> dict[str | None, list[tuple[float, float]]]:
    groups: dict[str | None, list[tuple[float, float]]] = {}
    for signs in seen:
        of_reference = groups.setdefault(signs.reference, [])
        if signs.floor_ns is not None and _is_known(signs.floor_ns):
            of_reference.append(signs.floor_ns)
    return groups


def _is_known(floor: tuple[float, float]) -> bool:
    return 0 < floor[0] < math.inf and 0 < floor[1] < math.inf


# ---- floors ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Level:
    low_ns: float
    high_ns: float
    median_ns: float


class _Scale:
    """The levels of floors of one kind: cache lines, or the round trips of a transport."""

    def __init__(self, reference: str | None, floors: Sequence[tuple[float, float]]) -> None:
        self._sliced_ns = TIME_SLICED_NS if reference is None else math.inf
        self._levels = self._found(sorted(value for floor in floors if self._is_steady(floor) for value in floor))
        self._lows_ns = [level.low_ns for level in self._levels]
        self._names = _named(self._levels, reference)

    def level(self, floor: Floor) -> str | None:
        """The name of the level, or "mixed"; None where no floor is known."""
        if floor is None or not _is_known(floor):
            return None
        before, after = self._owner(floor[0]), self._owner(floor[1])
        return self._names[before] if before is not None and before == after else MIXED.name

    def _owner(self, value_ns: float) -> int | None:
        """Which level is the nearest, if nearer than the gap that parts levels."""
        above = bisect_right(self._lows_ns, value_ns)
        if above and value_ns <= self._levels[above - 1].high_ns:
            return above - 1
        below_ratio = value_ns / self._levels[above - 1].high_ns if above else math.inf
        above_ratio = self._lows_ns[above] / value_ns if above < len(self._levels) else math.inf
        if min(below_ratio, above_ratio) >= GAP:
            return None
        return above - 1 if below_ratio <= above_ratio else above

    def _is_steady(self, floor: tuple[float, float]) -> bool:
        low, high = floor if floor[0] < floor[1] else (floor[1], floor[0])
        return high < low * GAP or low >= self._sliced_ns

    def _found(self, ordered: Sequence[float]) -> list[_Level]:
        groups = list(_parted(ordered))
        levels = [_Level(group[0], group[-1], statistics.median(group)) for group in groups]
        sliced = [group for group, level in zip(groups, levels, strict=True) if level.median_ns >= self._sliced_ns]
        if len(sliced) > 1:
            whole = list(itertools.chain.from_iterable(sliced))
            levels[-len(sliced) :] = [_Level(whole[0], whole[-1], statistics.median(whole))]
        return levels


def _parted(ordered: Sequence[float]) -> Iterator[Sequence[float]]:
    """The floors of each level, without the odd ones in between. Floors and levels ascend."""
    import numpy as np

    values = np.asarray(ordered, dtype=float)
    begins = np.arange(1, len(values) + 1)
    ends = np.searchsorted(values, values * GAP)  # a stretch begins after each floor
    odd = ends - begins
    parts = (ends < len(values)) & (odd <= _ODD * begins) & (odd <= _ODD * (len(values) - ends))
    if not parts.any():
        is_empty = np.append(values[1:] >= _EMPTY * values[:-1], np.zeros(min(1, len(values)), dtype=bool))
        parts = is_empty & (np.minimum(begins, len(values) - begins) >= _EMPTY_LEAST * len(values))
        ends, odd = begins, odd * 0
    if parts.any():
        best = int(np.argmin(np.where(parts, odd, len(values))))
        yield from _parted(ordered[: begins[best]])
        yield from _parted(ordered[ends[best] :])
    elif ordered:
        yield ordered


def _named(levels: Sequence[_Level], reference: str | None) -> list[str]:
    names = [_word(level.median_ns, reference) for level in levels]
    count = Counter(names)
    return [
        name if count[name] == 1 else f"{name} {format_ns(level.median_ns)}"
        for name, level in zip(names, levels, strict=True)
    ]


def _word(floor_ns: float, reference: str | None) -> str:
    if reference is not None:
        return "reference"
    return "near" if floor_ns < FAR_NS else "far" if floor_ns < TIME_SLICED_NS else "time-sliced"


# ---- paces ----------------------------------------------------------------------------------------------------------


class _Measurements:
    """The measurements of a run in one level of the floor and with one number of ranks, by what their paces say."""

    def __init__(self) -> None:
        self._steady: dict[_Look, list[int]] = {}
        self._changed: Counter[_Look] = Counter()  # what was seen on one side of a measurement only

    def add(self, number: int, before: _Look, after: _Look) -> None:
        """A measurement, and what the two looks beside it saw."""
        if before == after:
            self._steady.setdefault(before, []).append(number)
        else:
            self._changed.update((before, after))

    def by_name(self) -> dict[str, list[int]]:
        """The numbers of the measurements of each state.

        What the most saw on both sides is a state whatever happened beside it, or a level might have none.
        """
        count = sum(map(len, self._steady.values())) + self._changed.total() // 2
        most = max(map(len, self._steady.values()), default=0)
        by_name: dict[str, list[int]] = {}
        for look, numbers in self._steady.items():
            by_chance = count * _share(self._changed[look] / count) ** 2
            if by_chance <= _CHANCE_MAX * len(numbers) or len(numbers) == most:
                by_name.setdefault(_look_word(look), []).extend(numbers)
        return by_name


def _share(on_one_side: float) -> float:
    """The lesser p with 2 p (1 - p) on one side only; a half where no p has as much."""
    return (1 - math.sqrt(max(0.0, 1 - 2 * on_one_side))) / 2


def _looks(signs: MachineProbe, limits_ns: Mapping[_Ranks, Sequence[float]]) -> tuple[_Look, _Look]:
    """Which ranks were contended just before and just after a measurement."""
    if signs.pace_ns is None:
        return (), ()
    before, after = signs.pace_ns
    limits = limits_ns[signs.places, len(before)]
    looks = tuple(map(operator.gt, before, limits)), tuple(map(operator.gt, after, limits))
    if signs.solo_ns is None:
        return looks
    same, same_too = before[0] >= SAME_CORE * signs.solo_ns[0], after[0] >= SAME_CORE * signs.solo_ns[1]
    return _CONTENDED[-1] if same else looks[0], _CONTENDED[-1] if same_too else looks[1]


def _look_word(look: _Look) -> str:
    if isinstance(look, str):
        return look
    slow = sum(look)
    return _CONTENDED[0 if slow == 0 else 3 if slow == len(look) else 1 if slow == 1 else 2]


def _cpus(places: tuple[Place, ...], ranks: int) -> tuple[Place, ...]:
    return places if len(places) == ranks else tuple(("", -1 - rank) for rank in range(ranks))


def _pace_limits(seen: Iterable[MachineProbe]) -> dict[_Ranks, list[float]]:
    """For each rank's CPU the pace above which it is contended."""
    paces_ns: dict[Place, list[float]] = {}
    of_ranks: dict[_Ranks, list[list[float]]] = {}
    for signs in seen:
        if signs.pace_ns is None:
            continue
        key = signs.places, len(signs.pace_ns[0])
        of_each = of_ranks.get(key)
        if of_each is None:
            of_each = of_ranks[key] = [paces_ns.setdefault(cpu, []) for cpu in _cpus(*key)]
        for when, paces in enumerate(signs.pace_ns):
            if signs.solo_ns is None or paces[0] < SAME_CORE * signs.solo_ns[when]:
                for pace_ns, of_cpu in zip(paces, of_each, strict=True):
                    of_cpu.append(pace_ns)
    limits_ns = {cpu: _pace_limit(of_cpu) for cpu, of_cpu in paces_ns.items()}
    return {key: [limits_ns[cpu] for cpu in _cpus(*key)] for key in of_ranks}


def _pace_limit(paces_ns: Sequence[float]) -> float:
    """Where the quick part of a CPU's paces ends; infinite where they are all of one level."""
    # Sorted before some are taken: they must not depend on which run came first.
    known = sorted(pace_ns for pace_ns in paces_ns if 0 < pace_ns < math.inf)
    logs = [math.log(pace_ns) for pace_ns in known[:: 1 + len(known) // _PACES_MAX]]
    if len(logs) < 2:
        return math.inf
    cut = _best_cut(logs)
    quick, slow = statistics.median(logs[:cut]), statistics.median(logs[cut:])
    spread = _spread(logs[:cut])
    apart = max(_APART if len(logs) >= _FEW else _APART_FEW, _APART_SPREADS * spread)
    if slow - quick < apart or cut < max(2, _LEAST * len(logs)) or not _is_hollow(logs, cut, slow):
        return math.inf
    return math.exp(quick + min(max(_QUICK, _QUICK_SPREADS * spread), (slow - quick) / 2))


def _best_cut(ordered: Sequence[float]) -> int:
    """How many values the lower of two classes holds, if the squares within both shall be least."""
    n, total, lower = len(ordered), math.fsum(ordered), 0.0
    best, cut = -math.inf, 1
    for i in range(1, n):
        lower += ordered[i - 1]
        between = (lower / i - (total - lower) / (n - i)) ** 2 * i * (n - i)
        if between > best:
            best, cut = between, i
    return cut


def _is_hollow(ordered: Sequence[float], cut: int, upto: float) -> bool:
    """Whether something is missing between the medians of the quick part and the rest: a drifting clock leaves no hole.

    Either half of the way is empty, and the rest is more than some odd paces; or some band of it holds half as much as
    such bands of the rest do, or less, and by more than chance.
    """
    middle, rest = round((cut - 1) / 2), ordered[cut:]
    begin = ordered[middle]
    way = [*ordered[middle : bisect_left(ordered, upto)], upto]
    gap = max(above - below for below, above in itertools.pairwise(way))
    if gap >= (upto - begin) / 2 and len(rest) >= max(2, _LEAST * len(ordered)):
        return True
    span = rest[round(9 * (len(rest) - 1) / 10)] - rest[0]
    for width in (_BAND, 2 * _BAND, 4 * _BAND):
        lows = [begin + _BAND * (1 + step) for step in range(int((upto - begin - width) / _BAND))]
        counts = [bisect_right(ordered, low + width) - bisect_right(ordered, low) for low in lows]
        usual = len(rest) * width / max(span, width)
        if counts and min(counts) <= min(_HOLLOW * usual, usual - _HOLLOW_SIGMAS * math.sqrt(usual)):
            return True
    return False


def _spread(ordered: Sequence[float]) -> float:
    """The standard deviation in the middle, by absolute deviations or by percentiles, whichever is less.

    Where a clock is coarse either may be far too small: then _QUICK is what counts. Where some of the values belong
    elsewhere, percentiles are too large.
    """
    middle = statistics.median(ordered)
    deviation = 1.4826 * statistics.median(abs(value - middle) for value in ordered)
    tenth = round((len(ordered) - 1) / 10)
    return max(_RESOLUTION, min(deviation, (ordered[-1 - tenth] - ordered[tenth]) / _TENTHS))
