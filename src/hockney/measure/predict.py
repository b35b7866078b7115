"""The gain of model changes in the times of points, and the tolerance of the points to changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hockney.analysis.predict.change import Change, changed, parameters_of
from hockney.analysis.predict.sensitivity import Effect, improvements, sensitivity
from hockney.analysis.predict.tolerance import Tolerance, bandwidth_tolerance, latency_tolerance
from hockney.errors import HockneyError
from hockney.measure.on_model import Models, Tick, times_of
from hockney.model import Point


def effects_of(times_ns: Mapping[Point, float], models: Models, *, tick: Tick = lambda: None) -> list[Effect]:
    """The gain in these times by each parameter of the models."""

    def times_with(change: Change) -> Mapping[Point, float]:
        return times_of(times_ns, changed(models, [change]), tick=tick).time_ns

    return sensitivity(improvements(models.values()), times_ns, times_with)


@dataclass(frozen=True)
class Tolerances:
    """How much latency may be added to a point, and how much bandwidth it may lose."""

    point: Point
    latency: Tolerance
    bandwidth: Tolerance


def tolerances_of(
    times_ns: Mapping[Point, float], models: Models, *, with_curves: bool, tick: Tick = lambda: None
) -> list[Tolerances]:
    """The tolerances of points with these times, which are above 0."""
    tolerances = []
    for point, time_ns in times_ns.items():
        if time_ns > 0:
            latency, bandwidth = (
                tolerance_of(time_ns, _time_with(point, time_ns, models), with_curve=with_curves)
                for tolerance_of in (latency_tolerance, bandwidth_tolerance)
            )
            tolerances.append(Tolerances(point, latency, bandwidth))
        tick()
    return tolerances


def _time_with(point: Point, time_ns: float, models: Models) -> Callable[[Change], float]:
    models = {point.transport: models[point.transport]}
    has_bandwidth = "bandwidth" in parameters_of(models[point.transport])

    def time_with(change: Change) -> float:
        if change.key == "bandwidth" and not has_bandwidth:
            return time_ns
        times = times_of([point], changed(models, [change]))
        if point in times.failed:
            raise HockneyError(f"{point} with {change.word}: {times.failed[point]}")
        return times.time_ns[point]

    return time_with
