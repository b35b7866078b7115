"""Drift of the machine between two runs, estimated from things that did not change.

The floor, the CPUs' pace and the other transports of the run show it. Drift moves all transports, so the one that moved
least is its estimate. A run of one transport uses its other series instead, unless floor and pace are known to be
steady and the ranks do not sleep while they wait: wake-up times drift without either. Times of transports whose ranks
sleep move as far as the wake-ups do, or less far: it depends on the share of waking in them.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hockney.model import MachineProbe, Point
from hockney.stats.shift import Shift, shifts

_DRIFT_MIN = math.log(1.01)  # less is scatter
WAKE_UPS = "wake-ups"
SHOWN_BY: Mapping[str, Callable[[MachineProbe], Iterable[float]]] = {
    # Without the floors of transports whose own round trip is the floor.
    "floor": lambda probe: (probe.floor_ns or ()) if probe.reference is None else (),
    "pace": lambda probe: itertools.chain.from_iterable(probe.pace_ns or ()),
    WAKE_UPS: lambda probe: probe.wake_ns or (),
}

Probes = Mapping[str, Mapping[int, Sequence[MachineProbe]]]  # by state, then launch number


class Drift:
    """The drift between two runs. `series`: the machine state that each was compared in, and its shift."""

    def __init__(
        self, base: Probes, new: Probes, sleeping: Collection[str], series: Mapping[Point, tuple[str, Shift]]
    ) -> None:
        self._series, self._sleeping = series, sleeping
        self._shown: dict[str, dict[str, Shift]] = {}  # by state, then what shows it
        for state in {state for state, _ in series.values()}:
            for what, values_of in SHOWN_BY.items():
                values = _medians(base[state], values_of), _medians(new[state], values_of)
                if all(values):
                    self._shown.setdefault(state, {})[what] = shifts([values])[0][0]

    def beside_wake_ups(self, point: Point, shift: Shift) -> Shift:
        """The shift; if ranks sleep there, its interval also holds the change compared with that of wake-ups."""
        wake_ups = self._wake_ups(point)
        if wake_ups is None or shift.low is None or shift.high is None:
            return shift
        low, high = wake_ups.low or wake_ups.ratio, wake_ups.high or wake_ups.ratio
        return replace(shift, low=shift.low / max(high, 1.0), high=shift.high / min(low, 1.0))

    def _wake_ups(self, point: Point) -> Shift | None:
        if point not in self._series or point.transport not in self._sleeping:
            return None
        return self._shown.get(self._series[point][0], {}).get(WAKE_UPS)

    def explaining(self, point: Point, margin: float) -> tuple[float, str] | None:
        """The drift that may explain a change, as a fraction, and its evidence; None if drift cannot explain it."""
        state, shift = self._series[point]
        sign = math.copysign(1.0, math.log(shift.ratio))
        wake_ups = self._wake_ups(point)
        if wake_ups is not None and not self.beside_wake_ups(point, shift).is_beyond(margin):
            far = (wake_ups.high if sign > 0 else wake_ups.low) or wake_ups.ratio
            return math.expm1(sign * math.log(far)), WAKE_UPS
        near = (shift.low if shift.ratio > 1 else shift.high) or 1.0  # the end of its interval next to 1
        seen = self._shown.get(state, {}).items()
        machine = {what: sign * math.log(drifted.ratio) for what, drifted in seen if what != WAKE_UPS}
        shown = machine | self._others(point, sign, machine)
        by = max(shown, key=lambda what: shown[what], default=None)
        if by is None or not _DRIFT_MIN <= shown[by] <= math.log(1.3):  # more is a change of everything
            return None
        # A series may move twice as far as the evidence of the drift.
        is_within = sign * math.log(near) <= math.log(margin) + 2 * shown[by]
        return (math.expm1(shown[by]), by) if is_within else None

    def _others(self, point: Point, sign: float, machine: Mapping[str, float]) -> dict[str, float]:
        logs: dict[str, list[float]] = {}
        for other, (_, shift) in self._series.items():
            if other != point:
                logs.setdefault(other.transport, []).append(sign * math.log(shift.ratio))
        same_transport = logs.pop(point.transport, [])
        medians = {name: statistics.median(of_transport) for name, of_transport in logs.items()}
        if medians:
            least = min(medians, key=lambda name: medians[name])
            return {least: medians[least]}
        is_steady = len(machine) == 2 and max(machine.values()) < _DRIFT_MIN
        is_known = point.transport not in self._sleeping or self._wake_ups(point) is not None
        if not same_transport or (is_steady and is_known):
            return {}
        return {"other series": statistics.median(same_transport)}


def _medians(
    launches: Mapping[int, Sequence[MachineProbe]], values_of: Callable[[MachineProbe], Iterable[float]]
) -> list[float]:
    """The median of each launch that has values."""
    import numpy as np

    listed = [[value for probe in probes for value in values_of(probe)] for probes in launches.values()]
    return [float(np.median(values)) for values in listed if values]
