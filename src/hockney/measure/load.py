"""Measures points idle and under a background, in turn.

A background is a separate job. It repeats its pattern for longer than the measurement lasts; a measurement that it
did not cover from its beginning to its end is made again.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence

from hockney.measure.estimate import enough_s
from hockney.measure.point_work import PointFailed, Work
from hockney.measure.sampler import Sampler
from hockney.model import Point
from hockney.suites import Limits
from hockney.worker.answers import MeasureAnswer
from hockney.worker.background import BACKGROUNDS, Background
from hockney.worker.errors import WorkerError, WorkerTimedOut, how_to_wait_longer
from hockney.worker.session import WorkerSession

_TRIES = 6  # each with a background at least twice as long
_FIRST_S = 0.02  # of a measurement of unknown length
_SPARE = 1.3  # traffic is faster at times


class LoadFailed(PointFailed):
    """A background has ended before its time."""


class Load:
    """A running job that makes the traffic of a background while something else is measured."""

    def __init__(
        self,
        session: WorkerSession,
        background: Background,
        limits: Limits,
        *,
        is_lossy: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`session` has said hello. `is_lossy`: its transport may lose messages."""
        self.session = session
        self.is_at_rest = True  # no traffic is under way
        self._kind = BACKGROUNDS[background.name]
        self._limits = limits
        # Ranks meet between batches, so that no sender floods its receiver.
        self._batch_max = 4 if is_lossy else math.inf
        self._clock = clock
        self._sleep = sleep
        self._repetition_s = 0.0
        self._around_s = 0.0  # the worker's work before and after the traffic, in total
        self._known_s: dict[object, float] = {}  # how long measurements took

    def during(self, measure: Callable[[], MeasureAnswer], what: object) -> MeasureAnswer:
        """The result of `measure`, called wholly under this load. Measurements with the same `what` last equally long.

        Raises LoadFailed if the background ends, PointFailed if it cannot last long enough, and any error of
        `measure`; traffic that is under way then continues.
        """
        if not self._repetition_s:
            self._calibrate()
        for attempt in range(1, _TRIES + 1):
            spare = attempt * _SPARE  # on a busy machine the delays differ at each try
            lead_s = spare * self._around_s
            length_s = spare * (lead_s + self._known_s.get(what, _FIRST_S))
            sent_s = self._clock()
            end = self._begin(length_s)
            self._sleep(lead_s)
            begun_s = self._clock()
            measured = measure()
            ended_s = self._clock()
            traffic_s = self._end(end)
            around_s = self._clock() - sent_s - traffic_s
            # The traffic began at most `around_s` after `sent_s`, and so lasted at least until:
            is_covered = ended_s <= sent_s + traffic_s
            self._known_s[what] = (ended_s - begun_s) * (1 if is_covered else 2)
            if is_covered:
                self._around_s = around_s
                if begun_s >= sent_s + around_s:
                    return measured
        raise PointFailed(f"the background ended before the measurement in each of {_TRIES} tries")

    def _calibrate(self) -> None:
        self._repetition_s = self._end(self._begin(0.0))  # a single repetition
        began_s = self._clock()
        traffic_s = self._end(self._begin(_FIRST_S))
        self._around_s = self._clock() - began_s - traffic_s

    def _begin(self, length_s: float) -> Callable[[], MeasureAnswer]:
        """Begin traffic that lasts at least length_s; returns a function that waits for its end."""
        if length_s > self._limits.timeout_s:
            longer = how_to_wait_longer(self._limits.timeout_s)
            raise PointFailed(f"the background would have to last longer than a measurement may ({longer})")
        repetitions = math.ceil(length_s / self._repetition_s) if length_s else 1
        batch = int(min(self._batch_max, math.ceil(repetitions / 256)))  # at most 256 samples
        self.is_at_rest = False
        is_known = self._limits.limit_adapts and length_s > 0
        with _failing():
            return self.session.begin_measure(
                self._kind.pattern,
                bytes=self._kind.bytes,
                batch=batch,
                samples=math.ceil(repetitions / batch),
                timeout_s=enough_s(length_s, self._limits.timeout_s) if is_known else self._limits.timeout_s,
                verify=False,
                options=self._kind.options,
            )

    def _end(self, wait: Callable[[], MeasureAnswer]) -> float:
        """Wait for the end of the traffic; returns how long it lasted."""
        with _failing():
            answer = wait()
        self.is_at_rest = True
        # A sender ends while its last messages still wait in buffers: on a slow link for longer than it has run.
        wall_ns = answer.wall_ns[0] if self._kind.root_ends else min(answer.wall_ns)
        traffic_s = max(1.0, wall_ns) / 1e9
        self._repetition_s = traffic_s / (answer.batch * answer.samples)
        return traffic_s


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except WorkerError as end:
        remedy = f" ({how_to_wait_longer(end.limit_s)})" if isinstance(end, WorkerTimedOut) else ""
        raise LoadFailed(f"the background failed: {end}{remedy}") from end


class LoadSampler(Sampler):
    """One launch of a plan with a background: each round measures a point idle and loaded, one after the other."""

    def _order(self, active: Sequence[Work]) -> list[Work]:
        """Put each point next to its loaded one, so that drift of the machine affects both alike."""
        pairs: dict[Point, list[Work]] = {}
        for work in active:
            pairs.setdefault(work.point.idle, []).append(work)
        shuffled = self._random.sample(list(pairs.values()), len(pairs)) if self.round > 0 else pairs.values()
        return [work for pair in shuffled for work in self._random.sample(pair, len(pair))]

    def _is_narrow(self, work: Work) -> bool:
        """Whether both intervals are narrow: the idle and the loaded point end together."""
        both = (each for each in self._work.values() if each.point.idle == work.point.idle)
        return all(super(LoadSampler, self)._is_narrow(each) for each in both if each.point not in self._given_up)
