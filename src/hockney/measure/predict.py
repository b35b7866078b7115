"""Predictions for the points of a plan, each on the model that its transport stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hockney.measure.on_model import ModelTimes, times_on
from hockney.model import Point
from hockney.worker.catalogue import Catalogue

if TYPE_CHECKING:
    from hockney.worker.machine_model import Model


def times_of(
    points: Sequence[Point], catalogue: Catalogue, change: Callable[[Model], Model] = lambda model: model
) -> ModelTimes:
    """The times of points, after a change of their models. Raises as times_on."""
    times = ModelTimes()
    for transport in dict.fromkeys(point.transport for point in points):
        model = catalogue.transports[transport].model
        assert model is not None, transport
        of_model = times_on(change(model), [point for point in points if point.transport == transport])
        times.time_ns |= of_model.time_ns
        times.failed |= of_model.failed
    return times
