"""Times of points, each on the model of its transport; what changes them, and how much change they bear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.analysis.predict import (
    Change,
    Effect,
    Tolerance,
    bandwidth_tolerance,
    changed,
    latency_tolerance,
    parameters_of,
    sensitivity,
)
from hockney.errors import HockneyError
from hockney.measure.on_model import ModelTimes, times_on
from hockney.model import Point

if TYPE_CHECKING:
    from hockney.worker.machine_model import Model

Models = Mapping[str, "Model"]
"""By the names of transports."""


def times_of(points: Iterable[Point], models: Models) -> ModelTimes:
    """The times of points on the models of their transports. Raises as times_on."""
    times, points = ModelTimes(), tuple(points)
    for transport in dict.fromkeys(point.transport for point in points):
        of_model = times_on(models[transport], [point for point in points if point.transport == transport])
        times.time_ns |= of_model.time_ns
        times.measured |= of_model.measured
        times.failed |= of_model.failed
    times.time_ns = {point: times.time_ns[point] for point in points if point in times.time_ns}
    return times


def effects_of(times_ns: Mapping[Point, float], models: Models) -> list[Effect]:
    """What each parameter of the models gains of these times."""
    return sensitivity(models.values(), times_ns, lambda change: times_of(times_ns, changed(models, [change])).time_ns)


@dataclass(frozen=True)
class Tolerances:
    """How much latency may be added to a point, and how much bandwidth it may lose."""

    point: Point
    latency: Tolerance
    bandwidth: Tolerance


def tolerances_of(times_ns: Mapping[Point, float], models: Models, *, with_curves: bool) -> list[Tolerances]:
    """Those of points with these times, which are above 0."""
    return [
        Tolerances(
            point,
            latency_tolerance(time_ns, _time_with(point, time_ns, models), with_curve=with_curves),
            bandwidth_tolerance(time_ns, _time_with(point, time_ns, models), with_curve=with_curves),
        )
        for point, time_ns in times_ns.items()
        if time_ns > 0
    ]


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
