"""Adds sizes where curves bend, and says which of their neighbours are measured again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from hockney.measure.plan import Plan
from hockney.measure.point_work import Work, curve_in_one_state
from hockney.model import CurveKey, Point, curve_of
from hockney.stats.fit.segments import sizes_to_add

_RETRIES_MAX = 10  # of a size in a state in which the rest of its curve is
_ADDED_MAX, _ADDED_MAX_EXACT = 12, 48  # sizes of a curve; of one without noise


class Refinement:
    """Of the curves of a plan. `work` has all points of a run, also added ones; `given_up` those that failed."""

    def __init__(self, plan: Plan, work: Mapping[Point, Work], given_up: set[Point]) -> None:
        self._plan, self._work, self._given_up = plan, work, given_up
        self._refined: Counter[CurveKey] = Counter(curve_of(point) for point in plan.points if point.role == "refined")
        self._judged: Counter[CurveKey] = Counter()  # its measurements, when a curve was judged last

    def sizes(self, unfinished: set[Point]) -> tuple[list[Work], list[Work]]:
        """New sizes where a curve leaves its line, once all its points have ended; and sizes to measure again.

        These were measured in another machine state than the rest of the curve.
        """
        added: list[Work] = []
        again: list[Work] = []
        for curve in sorted(self._plan.refine):
            works = self._measured(curve)
            known = curve_in_one_state(works)
            unknown = {work.point for work in works} - {point for point, _ in known}
            room = (_ADDED_MAX_EXACT if self._plan.exact else _ADDED_MAX) - self._refined[curve]
            is_ready = room > 0 and known and unfinished.isdisjoint(unknown)
            if not is_ready or not self._is_news(curve, works, unfinished):
                continue
            grain = self._plan.grains.get(works[0].point.pattern, 1)
            times = [(point.bytes, time) for point, time in known]
            wanted = [
                replace(works[0].point, bytes=size, role="refined")
                for size in sizes_to_add(times, grain_bytes=grain, exact=self._plan.exact)
            ]
            new = [Work(point) for point in wanted if point not in self._work][:room]
            self._refined[curve] += len(new)
            added += new
            elsewhere = [self._work[point] for point in wanted if point in unknown]
            again += [work for work in elsewhere if work.retries < _RETRIES_MAX]
        for work in again:
            work.retries += 1
            work.begin_anew()
        return added, again

    def _measured(self, curve: CurveKey) -> list[Work]:
        """A curve's points by size, without those that failed."""
        works = [work for point, work in self._work.items() if curve_of(point) == curve]
        return sorted((work for work in works if work.point not in self._given_up), key=lambda work: work.point.bytes)

    def neighbours(self, added: Sequence[Work], active: Sequence[Work]) -> list[Work]:
        """Begin the neighbours of each added size anew: sizes that are compared need the same rounds.

        Returns those that had ended and now go on.
        """
        new = {work.point for work in added}
        under_way = {work.point for work in active}
        neighbours = {
            work.point: work
            for curve in {curve_of(point) for point in new}
            for pair in pairwise(self._measured(curve))
            if any(work.point in new for work in pair)
            for work in pair
            if work.point not in new
        }
        for work in neighbours.values():
            work.begin_anew()
        return [work for point, work in neighbours.items() if point not in under_way]

    def _is_news(self, curve: CurveKey, works: Sequence[Work], unfinished: set[Point]) -> bool:
        """Whether a curve has a quarter more measurements than at its last judgement, or all of them."""
        measurements = sum(len(work.probes) for work in works)
        over = unfinished.isdisjoint(work.point for work in works)
        if measurements < self._judged[curve] * (1 if over else 1.25) + 1:
            return False
        self._judged[curve] = measurements
        return True
