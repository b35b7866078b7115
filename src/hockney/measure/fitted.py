"""Predictions on fitted machines, with intervals, and next to measured times."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.machine.files import parse_cpus
from hockney.measure.on_model import Models, Tick, times_of
from hockney.model import Point
from hockney.results.runs import Run
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.suites import load_suite
from hockney.units import format_bytes
from hockney.worker.machine_model import Model

DRAWS = 20  # their minimum and maximum enclose about 95 %


@dataclass(frozen=True)
class Prediction:
    """The time of a point in ns.

    `low_ns` and `high_ns`: its 95 % interval; None where the model is given, and where the figures that it is fitted to
    have none. `outside_bytes`: of a point outside the range that the model was fitted to, the nearest size within it.
    """

    point: Point
    time_ns: float
    low_ns: float | None = None
    high_ns: float | None = None
    outside_bytes: int | None = None


@dataclass(frozen=True)
class Checked:
    """A point that the fit did not use."""

    point: Point
    predicted_ns: float
    measured_ns: Estimate

    @property
    def error(self) -> float:
        """How much more is predicted than measured, as a fraction."""
        return self.predicted_ns / self.measured_ns.value - 1


@dataclass(frozen=True)
class Validation:
    """The points of a transport in one machine state (None: in all), and why others could not be predicted."""

    transport: str
    state: str | None
    rows: Sequence[Checked]
    missing: Mapping[Point, str]

    @property
    def median_error(self) -> float | None:
        """The median size of the errors; None without points."""
        return statistics.median(abs(row.error) for row in self.rows) if self.rows else None

    def share_within(self, limit: float) -> float | None:
        """The fraction of the points with an error of at most this limit."""
        return sum(abs(row.error) <= limit for row in self.rows) / len(self.rows) if self.rows else None


def predict_fitted(
    fit: Fit,
    points: Sequence[Point],
    content_of: Callable[[Fit], Mapping[str, Any]],
    *,
    tick: Tick = lambda: None,
    draw_tick: Callable[[int, float], Tick | None] = lambda points, expected_s: lambda: None,
) -> tuple[list[Prediction], dict[Point, str]]:
    """The times of points on the model that `content_of` makes of a fit, and why points have none.

    The interval is that of the fit's figures: from models fitted to figures that are drawn from theirs. It leaves out
    by how much such models are wrong. `draw_tick` gets the number of points of all draws and the time that they will
    take, and returns their tick, or None: no interval. Raises as times_of.
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
    times = times_of([point for point in points if point not in missing], models(fit), tick=tick)
    known, drawn = list(times.time_ns), list(fit.resampled(DRAWS))
    again = draw_tick(len(drawn) * len(known), len(drawn) * (monotonic() - begin_s)) if drawn and known else None
    draws = [] if again is None else [times_of(known, models(each), tick=again).time_ns for each in drawn]
    predictions = []
    for point in known:
        seen_ns = [times.time_ns[point], *(draw[point] for draw in draws if point in draw)]
        # Equal ones are not exact: the figures of the fit have no interval.
        low_ns, high_ns = (min(seen_ns), max(seen_ns)) if len(set(seen_ns)) > 1 else (None, None)
        predictions.append(Prediction(point, seen_ns[0], low_ns, high_ns, fit.outside(point)))
    return predictions, missing | times.failed


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
