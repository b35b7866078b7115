"""The parameters of a model that matter: the gain in time if one of them is twice as good."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hockney.analysis.predict.change import PARAMETERS, Change, parameters_of
from hockney.model import Point
from hockney.worker.machine_model import Model

Times = Mapping[Point, float]


@dataclass(frozen=True)
class Effect:
    """The gain in each point's time by a change of one parameter, as a fraction; `gain` is their geometric mean."""

    change: Change
    gain: float
    gains: Mapping[Point, float]


def improvements(models: Iterable[Model]) -> list[Change]:
    """A change for each parameter in a model: costs are halved, rates doubled."""
    # The bandwidth of messages and that of links are tried one by one.
    known = {name for model in models for name in parameters_of(model)} - {"bandwidth"}
    return [Change.by(name, 2.0 if PARAMETERS[name].is_rate else 0.5) for name in PARAMETERS if name in known]


def sensitivity(changes: Iterable[Change], plain: Times, times_with: Callable[[Change], Times]) -> list[Effect]:
    """The effect of each change, the largest first.

    `plain` are the times of the unchanged model, `times_with` gives those after a change.
    """
    effects = []
    for change in changes:
        times = times_with(change)
        ratios = {point: times[point] / plain[point] for point in plain if point in times and plain[point] > 0}
        is_positive = bool(ratios) and min(ratios.values()) > 0
        gain = 1 - statistics.geometric_mean(ratios.values()) if is_positive else 0.0
        effects.append(Effect(change, gain, {at: 1 - by for at, by in ratios.items()}))
    return sorted(effects, key=lambda effect: -effect.gain)
