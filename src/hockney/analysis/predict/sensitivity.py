"""Which parameter of a model matters: what is gained where each alone is twice as good."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.predict.change import PARAMETERS, Change, parameters_of
from hockney.model import Point
from hockney.worker.machine_model import Model

Times = Mapping[Point, float]
_TOGETHER = "bandwidth"  # of messages and links, which are tried one by one


@dataclass(frozen=True)
class Effect:
    """What a change of one parameter gains of each point's time, as a fraction; `gain` is of their geometric mean."""

    change: Change
    gain: float
    gains: Mapping[Point, float]


def improvements(models: Iterable[Model]) -> list[Change]:
    """One for each parameter that is in a model: costs are halved, rates doubled."""
    known = {name for model in models for name in parameters_of(model)} - {_TOGETHER}
    return [Change.by(name, 2.0 if PARAMETERS[name].is_rate else 0.5) for name in PARAMETERS if name in known]


def sensitivity(changes: Iterable[Change], plain: Times, times_with: Callable[[Change], Times]) -> list[Effect]:
    """The effect of each change, the largest first.

    `plain` are the times as they are, `times_with` gives those after a change.
    """
    effects = []
    for change in changes:
        times = times_with(change)
        ratios = {point: times[point] / plain[point] for point in plain if point in times and plain[point] > 0}
        effects.append(Effect(change, _gain(list(ratios.values())), {at: 1 - by for at, by in ratios.items()}))
    return sorted(effects, key=lambda effect: -effect.gain)


def _gain(ratios: Sequence[float]) -> float:
    return 1 - math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios and min(ratios) > 0 else 0.0
