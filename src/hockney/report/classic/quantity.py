"""A quantity of a report: its unit, and how its value comes from the figures of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hockney.archive.points import Spec
from hockney.model import Definition, Measurement, Point, PointStatus
from hockney.report.classic.predicted import PredictedSeries
from hockney.report.classic.values import Reported
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.stats import UNKNOWN
from hockney.stats.figures import estimate_of
from hockney.stats.interval import Estimate
from hockney.stats.npb import ft_class, ft_operations

NOT_PLANNED = "not asked for in this run"


@dataclass(frozen=True)
class Basis:
    """A point besides its time: a row of the load table is of several loads (archive/points.py)."""

    point: Point
    definition: Definition
    hertz: float
    spec: Spec

    @property
    def load_bytes(self) -> int:
        return self.spec.load_bytes or self.point.bytes

    def rate_mb_s(self, time_ns: float) -> float:
        return self.definition.bytes_per_rep / (time_ns * self.definition.divisor) * 1e3

    def speed_mops(self, time_ns: float) -> float:
        """The speed of one rank, by the NPB's count."""
        return ft_operations(str(ft_class(self.point))) / (time_ns * self.definition.divisor) * 1e3 / self.point.ranks

    def pairs_mb_s(self, time_ns: float) -> float:
        """Half of the ranks send at a time, and the time is half a round trip."""
        return self.point.ranks * self.point.bytes / (time_ns * self.definition.divisor) * 1e3


@dataclass(frozen=True)
class Context:
    """What a quantity needs besides the points of its row: the run, the row, the ways to send that are compared."""

    run: Run
    spec: Spec
    ways: Mapping[str, Sequence[Series]] = field(default_factory=dict)

    @functools.cached_property
    def hertz(self) -> float:
        return clock_hz(self.run.facts) or 0.0


Members = Sequence[Series]


@dataclass(frozen=True)
class Quantity:
    """A quantity: its unit; its value from a point's time in ns, or from each measurement; or from many points.

    `over_pairs`: its points are of many pairs of ranks.
    """

    unit: str
    of: Callable[[Basis, float], float] = lambda basis, ns: ns / 1e3
    of_measurement: Callable[[Measurement], float | None] | None = None
    combine: Callable[[Quantity, Members, Context], Reported] | None = None
    over_pairs: bool = False
    by_clock: bool = False

    def value(self, members: Members, context: Context) -> Reported:
        """Of all series that match a row: of one point the one with the fewest options, unless it has no figure."""
        if self.combine is not None:
            return self.combine(self, members, context)
        only = min(members, key=lambda each: (each.shown is None, len(each.point.options)))
        if only.shown is None:
            return Reported(self.unit, reason="; ".join(dict.fromkeys(map(reason_of, members))))
        return self.of_series(only, context)

    def of_series(self, series: Series, context: Context, figure: Figure | None = None) -> Reported:
        """Of one series; by default the figure that is shown."""
        figure = figure or series.shown
        if figure is None or (self.of_measurement is None and figure.time.value <= 0):
            return Reported(self.unit, reason=reason_of(series))
        if self.by_clock and not context.hertz:
            return Reported(self.unit, reason="the clock of the CPU is not known")
        if self.of_measurement is not None:
            return median(series, figure, self.unit, self.of_measurement)
        basis = Basis(series.point, figure.definition, context.hertz, context.spec)
        return value_of(
            series, figure, self.unit, figure.time.mapped(functools.partial(self.of, basis)), figure.interval_over
        )


def value_of(series: Series, figure: Figure, unit: str, estimate: Estimate, over: str) -> Reported:
    """A value of a figure, with what is known of the figure."""
    is_predicted = isinstance(series, PredictedSeries)
    # A single rank has no floor, and so no state, and a model neither.
    has_state = figure.state != UNKNOWN.name or not (series.point.ranks == 1 or is_predicted or series.is_exact)
    return Reported(
        unit,
        series.widened(estimate) if isinstance(series, PredictedSeries) else estimate,
        None if is_predicted else over,
        figure.state if has_state else None,
        is_exact=series.is_exact and not is_predicted,
        is_predicted=is_predicted,
        is_oversubscribed=bool(figure.is_oversubscribed),
        is_short=figure.is_short,
    )


def median(series: Series, figure: Figure, unit: str, of: Callable[[Measurement], float | None]) -> Reported:
    """A value of each measurement of a figure, combined as times are; `of` returns None without a value."""
    valued = ((of(measurement), measurement.launch_id) for measurement in figure.samples_of)
    known = [(value, launch_id) for value, launch_id in valued if value is not None]
    if not known:
        return Reported(unit, reason="nothing was counted")
    time, over, _ = estimate_of(*zip(*known, strict=True), exact=series.is_exact)
    return value_of(series, figure, unit, time, over)


def reason_of(series: Series) -> str:
    """Why a series has no figure."""
    if isinstance(series, PredictedSeries):
        return f"not predicted: {series.reason}"
    if series.status in (PointStatus.FAILED, PointStatus.SKIPPED):
        return f"{series.status.value}: {series.reason or 'no reason was stored'}"
    return "not reached: the time was up, or the run was stopped"


def clock_hz(facts: Mapping[str, Any]) -> int | None:
    """The CPU's highest frequency, else the one at the start of the run; None: unknown."""
    cpu = facts.get("cpu", {})
    hertz: int | None = cpu.get("frequency_max_hz") or cpu.get("frequency_now_hz")
    return hertz


TIME = Quantity("us")
