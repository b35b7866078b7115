"""Searches the highest rate of events that is sustained within a deadline.

A point is first measured with each event as soon as it may start, which gives the highest possible rate of the farm.
Schedules around it follow: half or one and a half times as many events until one rate is sustained and another one is
not, then the geometric mean of the two, until they differ by less than 2 %. All points are searched in the same rounds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hockney.analysis.predict.change import Change, changed
from hockney.measure.plan import Plan
from hockney.measure.point_work import Work
from hockney.measure.predict import Models, ModelTimes, Tick, times_of
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point
from hockney.results.rates import at_rate, highest_of
from hockney.stats.rates import misses_of, next_hz


def search_on_models(
    points: Sequence[Point], models: Models, *, deadline_ns: float, changes: Sequence[Change], tick: Tick
) -> ModelTimes:
    """The highest rates of points without a rate on changed models, and their periods as times. Raises as times_of."""
    models = changed(models, changes)
    free = times_of(points, models)
    measured = {point: [measurement] for point, measurement in free.measured.items()}
    left: dict[Point, dict[int, bool]] = {point: {} for point in free.time_ns}
    while left:
        asked = [(point, next_hz(1e9 / max(1.0, free.time_ns[point]), kept)) for point, kept in left.items()]
        found = times_of([at_rate(point, rate_hz) for point, rate_hz in asked if rate_hz], models).measured
        for point, rate_hz in asked:
            tried = at_rate(point, rate_hz or 0)
            if rate_hz and tried in found:
                measured[tried] = [found[tried]]
                left[point][rate_hz] = not misses_of(measured[tried], deadline_ns)
            else:
                del left[point]
                tick()
    rates = [highest_of(point, measured, deadline_ns) for point in free.time_ns]
    periods_ns = {rate.point: 1e9 / rate.sustained_hz if rate.sustained_hz else math.inf for rate in rates}
    return ModelTimes(periods_ns, free.measured, failed=free.failed, rates=rates)


class RateSampler(Sampler):
    """One launch of a plan with a deadline: it adds rates to each point, as a sampler adds sizes to a curve."""

    def __init__(self, plan: Plan, *to: Any, earlier: Sequence[Measurement] = (), **launch: Any) -> None:
        super().__init__(plan, *to, earlier=earlier, **launch)
        self._deadline_ns = plan.deadline_ns or math.inf
        self._schedules: dict[Point, list[Measurement]] = defaultdict(list)
        self._tried: dict[Point, list[Point]] = {point: [] for point in plan.points if not point.rate_hz}
        for point in plan.points:
            if point.rate_hz:
                self._tried[at_rate(point, 0)].append(point)
        self._keep(earlier)

    def _keep(self, measurements: Sequence[Measurement]) -> None:
        for measurement in measurements:
            if measurement.point.rate_hz:
                self._schedules[measurement.point].append(measurement)

    def _took(self, work: Work, measurements: Sequence[Measurement]) -> None:
        super()._took(work, measurements)
        self._keep(measurements)

    def _is_narrow(self, work: Work) -> bool:
        """A rate is judged by how many events are late, so the fewest measurements that make a figure are enough."""
        return True

    def _refine(self, unfinished: set[Point]) -> list[Work]:
        """The next rate of each point that has ended, and whose last schedule has."""
        added: list[Work] = []
        for point, tried in self._tried.items():
            time = self._work[point].time
            if time is None or not {point, *tried}.isdisjoint(unfinished | self._given_up):
                continue
            kept = {each.rate_hz: not misses_of(self._schedules[each], self._deadline_ns) for each in tried}
            if (rate_hz := next_hz(1e9 / time.value, kept)) is not None:
                tried.append(at_rate(point, rate_hz))
                added.append(Work(tried[-1]))
        self._add(added)
        return added

    def _rejoined(self, added: Sequence[Work], active: Sequence[Work]) -> list[Work]:
        """Nothing: rates are compared with a deadline, not with each other."""
        return []
