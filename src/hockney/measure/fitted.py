"""Predictions on fitted machines, with intervals, and next to measured times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.analysis.predict.prediction import Checked, Prediction, Validation
from hockney.machine.files import parse_cpus
from hockney.measure.on_model import Models, Tick, times_of
from hockney.model import Point
from hockney.results.runs import Run
from hockney.stats.fit import NoFit
from hockney.suites import load_suite
from hockney.units import format_bytes
from hockney.worker.machine_model import Model

DRAWS = 20  # their minimum and maximum enclose about 95 %


def predict_fitted(
    fit: Fit,
    points: Sequence[Point],
    content_of: Callable[[Fit], Mapping[str, Any]],
    *,
    tick_of: Callable[[str, int], Tick] = lambda step, points: lambda: None,
    draws_s: float = math.inf,
) -> tuple[list[Prediction], dict[Point, str], float]:
    """The times of points on the model that `content_of` makes of a fit, why points have none, and the time of draws.

    The interval is that of the fit's figures: from models fitted to figures that are drawn from theirs. It leaves out
    by how much such models are wrong. Where the draws would take longer than `draws_s`, there are none, and no
    interval. `tick_of` makes the tick of a step with so many points. Raises as times_of.
    """

    def models(each: Fit) -> Models:
        return dict.fromkeys((point.transport for point in points), Model.from_content(fit.transport, content_of(each)))

    shortest = fit.sizes_bytes[0]  # up to 64 B, shorter messages take as long
    missing = {
        point: f"the run has no oneway (window=16) below {format_bytes(shortest)}: the suite basics measures it"
        for point in points
        if point.bytes < shortest > 64
    }
    begin_s = monotonic()
    tick = tick_of("times", len(points))
    times = times_of([point for point in points if point not in missing], models(fit), tick=tick)
    known, drawn = list(times.time_ns), list(fit.resampled(DRAWS))
    expected_s = len(drawn) * (monotonic() - begin_s) if known else 0.0
    draws = []
    if 0 < expected_s <= draws_s:
        tick = tick_of("intervals", len(drawn) * len(known))
        draws = [times_of(known, models(each), tick=tick).time_ns for each in drawn]
    predictions = []
    for point in known:
        seen_ns = [times.time_ns[point], *(draw[point] for draw in draws if point in draw)]
        # Equal ones are not exact: the figures of the fit have no interval.
        low_ns, high_ns = (min(seen_ns), max(seen_ns)) if len(set(seen_ns)) > 1 else (None, None)
        predictions.append(Prediction(point, seen_ns[0], low_ns, high_ns, fit.outside(point)))
    return predictions, missing | times.failed, expected_s


def fit_to_check(run: Run, transport: str) -> Fit | NoFit:
    """The machine that a transport shows without the points of the suite validate."""
    return fit_machine(run, transport, load_suite("validate"))


def validate(run: Run, fit: Fit, *, tick: Tick = lambda: None) -> Validation:
    """The figures that a fit did not use, predicted. Raises as times_of."""
    rows: list[Checked] = []
    missing: dict[Point, str] = {}
    for points, cpus in _by_cpus(run, fit):
        ranks = max(point.ranks for point in points)
        model = Model.from_content(fit.transport, fit.content(ranks, cpus))
        times = times_of(points, {fit.transport: model}, tick=tick)
        rows += [Checked(point, time_ns, fit.figures.others[point]) for point, time_ns in times.time_ns.items()]
        missing |= times.failed
    return Validation(fit.transport, fit.figures.state, rows, missing)


def _by_cpus(run: Run, fit: Fit) -> list[tuple[list[Point], int]]:
    """Points whose ranks share the CPUs of this machine, for each number of them, and the others (0)."""
    here = len(parse_cpus((run.facts.get("limits") or {}).get("usable_cpus")) or ())
    oversubscribed = {
        launch.ranks
        for launch in run.launches.values()
        if launch.transport == fit.transport and launch.oversubscribed and len(set(launch.hosts)) == 1
    }
    groups: dict[int, list[Point]] = {}
    for point, measured in fit.figures.others.items():
        if measured.value > 0:
            groups.setdefault(point.ranks if here and point.ranks in oversubscribed else 0, []).append(point)
    return [(points, here if ranks else 0) for ranks, points in sorted(groups.items())]
