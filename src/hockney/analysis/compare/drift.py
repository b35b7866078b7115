"""How far the machine itself drifted between two runs: what moved without being changed says so.

Three things show it, in the direction of the change that is judged: the floor, the pace of the CPUs, in the same state
of the machine, and the other transports of the run. Of these transports the one that moved least counts, because a
drift moves all. A run of one transport has no others. What got slower may then be all of its series, so they count only
where the machine is not known to be steady: where floor or pace moved or are not known, or where ranks sleep while they
wait, which neither of them shows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hockney.model import Point
from hockney.stats.shift import shifts
from hockney.stats.states import MachineProbe

SEEN_MIN = 0.01  # less is no drift but the scatter of what shows it
SEEN_MAX = 0.3  # more is a change of all series: floors half as large again are another state of the machine
MOVED_AT_MOST = 2.0  # how many times as far a series may move as what shows the drift

DRIFTED = "the machine drifted by"  # how the reason of what a drift may explain begins

SignsOf = Mapping[str, Mapping[int, Sequence[MachineProbe]]]  # by state, then launch


@dataclass(frozen=True)
class Moved:
    """A series that can be judged: the state it is compared in, and the logarithm of its ratio."""

    point: Point
    state: str
    log: float


@dataclass(frozen=True)
class Drift:
    """By how much the machine drifted, as a logarithm of times above zero, and what shows it."""

    log: float
    shown_by: str

    @property
    def reason(self) -> str:
        """Why a change decides nothing."""
        return (
            f"{DRIFTED} {100 * math.expm1(self.log):.0f} % between the runs, as {self.shown_by} shows, "
            f"and a series may move {MOVED_AT_MOST:g} times as far: measure both in alternation, "
            "`hockney compare --interleave`"
        )


class Drifts:
    """The drift between two runs, for each of their series."""

    def __init__(self, base: SignsOf, new: SignsOf, moved: Iterable[Moved], sleeping: Collection[str]) -> None:
        self._moved = list(moved)
        self._sleeping = sleeping
        states = {one.state for one in self._moved}
        self._machine = {
            state: {
                what: math.log(shifts([(values(base[state]), values(new[state]))])[0][0].ratio)
                for what, values in (("the floor", _floors), ("the pace of the CPUs", _paces))
                if values(base[state]) and values(new[state])
            }
            for state in states
        }

    def explains(self, one: Moved, near: float, margin: float) -> Drift | None:
        """The drift that may be all there is to a series whose interval ends, on the side of 1, at the ratio `near`."""
        sign = math.copysign(1.0, one.log)
        shown = [Drift(sign * log, what) for what, log in self._machine[one.state].items()]
        is_known = len(shown) == 2 and one.point.transport not in self._sleeping
        others = self._others(
            one, sign, is_steady=is_known and all(drift.log < math.log1p(SEEN_MIN) for drift in shown)
        )
        if others is not None:
            shown.append(others)
        found = max(shown, key=lambda drift: drift.log, default=None)
        if found is None or not math.log1p(SEEN_MIN) <= found.log <= math.log1p(SEEN_MAX):
            return None
        return found if sign * math.log(near) <= math.log(margin) + MOVED_AT_MOST * found.log else None

    def _others(self, one: Moved, sign: float, *, is_steady: bool) -> Drift | None:
        logs: dict[str, list[float]] = {}
        for other in self._moved:
            logs.setdefault(other.point.transport, []).append(sign * other.log)
        own = [sign * other.log for other in self._moved if other.point != one.point]
        medians = {name: statistics.median(of) for name, of in logs.items() if name != one.point.transport}
        if medians:
            least = min(medians, key=lambda name: medians[name])
            return Drift(medians[least], least)
        return Drift(statistics.median(own), "the median of the other series") if own and not is_steady else None


def _floors(launches: Mapping[int, Sequence[MachineProbe]]) -> list[float]:
    """The floor of each launch, of cache lines: a transport's own round trip is what is compared."""
    each = ([sum(s.floor_ns) / 2 for s in seen if s.floor_ns and s.reference is None] for seen in launches.values())
    return [value for value in map(statistics.median, filter(None, each)) if 0 < value < math.inf]


def _paces(launches: Mapping[int, Sequence[MachineProbe]]) -> list[float]:
    """The mean pace of all ranks of each launch."""
    each = ([statistics.fmean((*s.pace_ns[0], *s.pace_ns[1])) for s in seen if s.pace_ns] for seen in launches.values())
    return [value for value in map(statistics.median, filter(None, each)) if 0 < value < math.inf]
