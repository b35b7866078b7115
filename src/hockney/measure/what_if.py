"""The gain of model changes in the times of points, and the tolerance of the points to changes.

How much latency may be added, or bandwidth lost, until a pattern is slower by a given fraction, is the question of
LLAMP (Shen et al., SC 2024), answered by running the pattern on changed models.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.predict.change import Change, changed, improvements, parameters_of
from hockney.analysis.predict.fit import Fit
from hockney.errors import HockneyError
from hockney.measure.overflow import Overflow
from hockney.measure.plan import Plan
from hockney.measure.predict import Models, ModelTimes, Prediction, Tick, Validation, times_of
from hockney.model import Point
from hockney.results.rates import HighestRates
from hockney.worker.machine_model import Model

SLOWDOWNS = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class Effect:
    """The gain in each point's time by a change of one parameter, as a fraction; `gain` is their geometric mean."""

    change: Change
    gain: float
    gains: Mapping[Point, float]


def effects_of(
    times_ns: Mapping[Point, float],
    models: Models,
    times_on: Callable[..., ModelTimes] = times_of,
    *,
    tick: Tick = lambda: None,
) -> list[Effect]:
    """The gain in these times by each parameter of the models, the largest first; `times_on` gave these."""
    effects = []
    for change in improvements(models.values()):
        after_ns = times_on(tuple(times_ns), changed(models, [change]), tick=tick).time_ns
        known = [
            point for point in after_ns if times_ns[point] > 0 and max(times_ns[point], after_ns[point]) < math.inf
        ]
        ratios = {point: after_ns[point] / times_ns[point] for point in known}
        is_positive = bool(ratios) and min(ratios.values()) > 0
        gain = 1 - statistics.geometric_mean(ratios.values()) if is_positive else 0.0
        effects.append(Effect(change, gain, {point: 1 - ratio for point, ratio in ratios.items()}))
    return sorted(effects, key=lambda effect: -effect.gain)


@dataclass(frozen=True)
class Tolerance:
    """`limits`: by slowdown the addition that causes it, None: none does. `curve`: additions and slowdowns.

    An addition is latency in ns, or the part of the bandwidth that is lost.
    """

    limits: dict[float, float | None]
    curve: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Tolerances:
    """How much latency may be added to each message of a point, and how much bandwidth it may lose."""

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
            time_with = functools.partial(_time_with, point, time_ns, {point.transport: models[point.transport]})
            tolerances.append(tolerances_to(point, time_ns, time_with, with_curves=with_curves))
        tick()
    return tolerances


def _time_with(point: Point, time_ns: float, models: Models, change: Change) -> float:
    if change.key == "bandwidth" and "bandwidth" not in parameters_of(models[point.transport]):
        return time_ns
    times = times_of([point], changed(models, [change]))
    if point in times.failed:
        raise HockneyError(f"{point} with {change.word}: {times.failed[point]}")
    return times.time_ns[point]


def tolerances_to(
    point: Point, plain_ns: float, time_with: Callable[[Change], float], *, with_curves: bool = False
) -> Tolerances:
    """The tolerances of a point that takes plain_ns, and with a change the time of the function."""

    def slower_by_latency(added_ns: float) -> float:
        return time_with(Change(f"L=+{added_ns:g}ns", "L", added_ns=added_ns)) / plain_ns - 1

    def slower_by_bandwidth(more: float) -> float:  # per byte; of messages and of links
        return time_with(Change.by("bandwidth", 1 / (1 + more))) / plain_ns - 1

    return Tolerances(
        point,
        _tolerance(slower_by_latency, plain_ns, lambda added_ns: added_ns, with_curve=with_curves),
        _tolerance(slower_by_bandwidth, 1.0, lambda more: more / (1 + more), with_curve=with_curves),
    )


def _tolerance(
    slowdown: Callable[[float], float], scale: float, shown: Callable[[float], float], *, with_curve: bool
) -> Tolerance:
    """The tolerance of `slowdown`, a function that grows with the added amount, about linearly in units of `scale`.

    If a thousand times that changes nothing, the tolerance is infinite.
    """
    known = functools.cache(slowdown)
    limits = {wanted: _least(known, wanted, wanted * scale, 1e3 * scale) for wanted in SLOWDOWNS}
    last = next((least for least in reversed(limits.values()) if least is not None), None)
    added = [] if last is None or not with_curve else [part * last for part in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)]
    return Tolerance(
        {wanted: None if least is None else shown(least) for wanted, least in limits.items()},
        ((0.0, 0.0), *((shown(each), known(each)) for each in added)) if added else (),
    )


def _least(slowdown: Callable[[float], float], wanted: float, first: float, most: float) -> float | None:
    """The smallest amount at which the slowdown reaches `wanted`, or None if that is beyond `most`."""
    from scipy.optimize import brentq

    high = first
    while slowdown(high) < wanted:
        if high >= most:
            return None
        high = min(most, 8 * high)
    reached = high

    def missing(added: float) -> float:
        nonlocal reached
        more = (slowdown(added) if added else 0.0) - wanted
        if more >= 0:
            reached = min(reached, added)
        return more

    brentq(missing, 0.0, high, rtol=1e-4)  # its root may lie just before a step
    return reached


# ---- all of a prediction ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Points, and the models of their transports; `model` is the plain one.

    `fit` is the source of a fitted model, `network` in words what was asked for; `checked` shows how wrong such models
    are on this transport, None: not known.
    """

    model: Model
    plan: Plan
    models: Mapping[str, Model]
    fit: Fit | None = None
    network: str = ""
    checked: Validation | None = None


@dataclass
class Predicted:
    """The times of a case, after `changes` of its models, too, and why points have none.

    `effects`, `tolerances` and `overflows` are of the changed models, as `rates`; None: not asked for. The times are
    then their periods. `intervals_s`: how long intervals take, if there was no time for them.
    """

    case: Case
    changes: Sequence[str]
    missing: dict[Point, str]
    predictions: Sequence[Prediction] = ()
    effects: Sequence[Effect] | None = None
    tolerances: Sequence[Tolerances] | None = None
    rates: HighestRates | None = None
    overflows: Sequence[Overflow] = ()
    intervals_s: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every point has a time that the plan does not skip."""
        return self.missing.keys() <= {skipped.point for skipped in self.case.plan.skipped}
