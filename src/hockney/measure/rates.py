"""Searches the highest rate of events that is sustained within a deadline.

A point is first measured with each event as soon as it may start, which gives the highest possible rate of the farm.
Schedules around it follow: half or one and a half times as many events until one rate is sustained and another one is
not, then the geometric mean of the two, until they differ by less than 2 %. All points are searched in the same rounds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.rates import Stream, at_rate, is_sustained, stream_of
from hockney.measure.plan import Plan
from hockney.measure.point_work import Work
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point


@dataclass
class Bracket:
    """A search that begins at `first_hz`: the highest rate that was sustained, and the lowest that was not."""

    first_hz: float
    sustained_hz: int | None = None
    missed_hz: int | None = None

    def note(self, rate_hz: int, *, is_kept: bool) -> None:
        """Note the result of a schedule."""
        if is_kept:
            self.sustained_hz = max(rate_hz, self.sustained_hz or 0)
        else:
            self.missed_hz = min(rate_hz, self.missed_hz or rate_hz)

    def next_hz(self) -> int | None:
        """The rate to try next; None: the search is over."""
        if self.sustained_hz is None and self.missed_hz is None:
            rate_hz = self.first_hz
        elif self.missed_hz is None:
            rate_hz = (self.sustained_hz or 1) * 1.5
        elif self.sustained_hz is None:
            rate_hz = self.missed_hz / 2
        else:
            rate_hz = math.sqrt(self.sustained_hz * self.missed_hz)
        wanted_hz = min(1_000_000_000, max(1, round(rate_hz)))  # as the worker takes it
        is_known = wanted_hz in (self.sustained_hz, self.missed_hz)
        is_close = self.missed_hz is not None and self.missed_hz <= 1.02 * (self.sustained_hz or 0)
        is_hopeless = self.sustained_hz is None and wanted_hz < 0.01 * self.first_hz
        return None if is_known or is_close or is_hopeless else wanted_hz


class RateSampler(Sampler):
    """One launch of a plan with a deadline: it adds rates to each point, as a sampler adds sizes to a curve."""

    def __init__(self, plan: Plan, *to: Any, earlier: Sequence[Measurement] = (), **launch: Any) -> None:
        super().__init__(plan, *to, earlier=earlier, **launch)
        self._deadline_ns = plan.deadline_ns or math.inf
        self._streams: dict[Point, list[Stream]] = defaultdict(list)
        self._tried: dict[Point, list[Point]] = {point: [] for point in plan.points if not point.rate_hz}
        for point in plan.points:
            if point.rate_hz:
                self._tried[at_rate(point, 0)].append(point)
        self._keep(earlier)

    def _keep(self, measurements: Sequence[Measurement]) -> None:
        for measurement in measurements:
            if measurement.point.rate_hz:
                self._streams[measurement.point].append(stream_of(measurement, self._deadline_ns))

    def _take(self, work: Work) -> list[Measurement]:
        measurements = super()._take(work)
        self._keep(measurements)
        return measurements

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
            bracket = Bracket(1e9 / time.value)
            for each in tried:
                bracket.note(each.rate_hz, is_kept=is_sustained(self._streams[each]))
            rate_hz = bracket.next_hz()
            if rate_hz is not None:
                tried.append(at_rate(point, rate_hz))
                added.append(Work(tried[-1]))
        self._add(added)
        return added

    def _measure_again(self, added: Sequence[Work], active: Sequence[Work]) -> list[Work]:
        """Nothing: rates are compared with a deadline, not with each other."""
        return []
