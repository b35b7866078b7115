"""How far the machine itself moved between two runs, shown by what nobody changed.

The floor and the pace of the CPUs show it, and the other transports of the run: of those the one that moved least,
because a drift moves all. In a run of one transport the other series show it, unless floor and pace are known to be
steady and the ranks do not sleep while they wait (waking up drifts without either).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hockney.model import Point
from hockney.stats.shift import Shift, shifts
from hockney.stats.states import MachineProbe

_DRIFT_MIN = math.log(1.01)  # less is scatter
_DRIFT_MAX = math.log(1.3)  # more is no drift but a change of everything
_TIMES_AS_FAR = 2.0  # a series may move so much farther than what shows the drift

Probes = Mapping[str, Mapping[int, Sequence[MachineProbe]]]  # by state, then launch number


@dataclass(frozen=True)
class Moved:
    """A series: the state it is compared in, and the logarithm of its ratio."""

    point: Point
    state: str
    log: float


class Drift:
    """The drift between two runs."""

    def __init__(self, base: Probes, new: Probes, series: Sequence[Moved], sleeping: Collection[str]) -> None:
        self._series, self._sleeping = series, sleeping
        self._machine: dict[str, dict[str, float]] = {}
        for state in {moved.state for moved in series}:
            for what, values_of in (("floor", _floors_ns), ("pace", _paces_ns)):
                values = _medians(base[state], values_of), _medians(new[state], values_of)
                if all(values):
                    of_state = self._machine.setdefault(state, {})
                    of_state[what] = math.log(shifts([values])[0][0].ratio)

    def explaining(self, moved: Moved, shift: Shift, margin: float) -> tuple[float, str] | None:
        """The drift that may be all there is to a change, as a fraction, and what shows it."""
        sign = math.copysign(1.0, moved.log)
        near = (shift.low if shift.ratio > 1 else shift.high) or 1.0  # the end of its interval next to 1
        shown = {what: sign * log for what, log in self._machine.get(moved.state, {}).items()} | self._others(
            moved, sign
        )
        by = max(shown, key=lambda what: shown[what], default=None)
        if by is None or not _DRIFT_MIN <= shown[by] <= _DRIFT_MAX:
            return None
        is_within = sign * math.log(near) <= math.log(margin) + _TIMES_AS_FAR * shown[by]
        return (math.expm1(shown[by]), by) if is_within else None

    def _others(self, moved: Moved, sign: float) -> dict[str, float]:
        logs: dict[str, list[float]] = {}
        for other in self._series:
            if other.point != moved.point:
                logs.setdefault(other.point.transport, []).append(sign * other.log)
        same_transport = logs.pop(moved.point.transport, [])
        medians = {name: statistics.median(of_transport) for name, of_transport in logs.items()}
        if medians:
            least = min(medians, key=lambda name: medians[name])
            return {least: medians[least]}
        machine = self._machine.get(moved.state, {}).values()
        is_steady = len(machine) == 2 and all(sign * log < _DRIFT_MIN for log in machine)
        if not same_transport or (is_steady and moved.point.transport not in self._sleeping):
            return {}
        return {"other series": statistics.median(same_transport)}


def _floors_ns(probe: MachineProbe) -> Iterable[float]:
    """Not of transports whose own round trip is the floor."""
    return (probe.floor_ns or ()) if probe.reference is None else ()


def _paces_ns(probe: MachineProbe) -> Iterable[float]:
    return itertools.chain.from_iterable(probe.pace_ns or ())


def _medians(
    launches: Mapping[int, Sequence[MachineProbe]], values_of: Callable[[MachineProbe], Iterable[float]]
) -> list[float]:
    """The median of each launch that has values."""
    import numpy as np

    listed = [[value for probe in probes for value in values_of(probe)] for probes in launches.values()]
    return [float(np.median(values)) for values in listed if values]
