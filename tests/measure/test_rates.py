"""The search of the highest rate against farms that are queues, whose highest rate is known exactly."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.builders import make_measurement
from tests.measure.made_up_machine import Notes, OwnClock, plan_of

from hockney.measure.point_work import PointFailed
from hockney.measure.rates import RateSampler
from hockney.model import Definition, Measurement, PatternTraits, Point, PointStatus
from hockney.results.rates import at_rate
from hockney.stats.rates import misses_of, next_hz

FARM = Point("unix", "pushfarm", 3, 1024, (("in_flight", "8"),), traits=PatternTraits(stream=True))


@dataclass
class Queue(OwnClock):
    """An Instrument: events of a farm that takes `service_ns` for each, one after the other, and `way_ns` besides."""

    service_ns: Callable[[], float]
    way_ns: float = 0.0
    refuses_schedules: bool = False
    now_s: float = 0.0
    rates_hz: list[int] = field(default_factory=list)

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        if point.rate_hz and self.refuses_schedules:
            raise PointFailed("rate_hz needs a probe for the next message", skipped=True)
        if not point.rate_hz:
            times_ns = [sum(self.service_ns() for _ in range(min(batch, 200))) / min(batch, 200) * batch] * samples
        else:
            self.rates_hz.append(point.rate_hz)
            assert len(self.rates_hz) < 500, "the search has no end"
            free_ns, times_ns = 0.0, []
            for event in range(samples):
                due_ns = event * 1e9 / point.rate_hz
                free_ns = max(free_ns, due_ns) + self.service_ns()
                times_ns.append(free_ns + self.way_ns - due_ns)
        self.now_s += 0.11
        elapsed_ns = np.array([times_ns, [0] * samples, [0] * samples]).round().astype(np.int64)
        return make_measurement(
            point,
            elapsed_ns,
            round_=round_,
            batch=batch,
            definition=Definition("root", 1, 0, 0),
            wall_ns=(round(10 * self.service_ns()), 1, 1),
            floor_ns=None,
            verified=verify,
        )


def search(queue: Queue, deadline_ns: float, *points: Point, budget_s: float = 1e4) -> Notes:
    notes = Notes()
    plan = replace(plan_of(*(points or (FARM,))), deadline_ns=deadline_ns)
    RateSampler(plan, queue, notes, seed=1, clock=queue.clock).run(budget_s)
    return notes


def found(notes: Notes, deadline_ns: float) -> tuple[int, float]:
    """The highest rate that was sustained, and the lowest above it that was not."""
    kept: dict[int, list[Measurement]] = {}
    for measurements in notes.rounds:
        for measurement in measurements:
            if measurement.point.rate_hz:
                kept.setdefault(measurement.point.rate_hz, []).append(measurement)
    missed = min((rate for rate, some in kept.items() if misses_of(some, deadline_ns)), default=math.inf)
    return max((rate for rate in kept if rate < missed), default=0), missed


@pytest.mark.parametrize("deadline_us", [15, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("service_us", [10, 70])
def test_a_queue_of_known_service_has_its_rate_at_any_deadline(service_us: int, deadline_us: int) -> None:
    """Even a deadline that is far longer than a stream hides no queue that grows."""
    queue = Queue(lambda: service_us * 1e3, way_ns=1000.0)
    sustained, missed = found(search(queue, deadline_us * 1e3), deadline_us * 1e3)
    if deadline_us * 1000 < service_us * 1000 + 1000:
        assert sustained == 0
    else:
        highest_hz = 1e6 / service_us
        assert 0.98 * highest_hz <= sustained <= 1.01 * highest_hz
        assert sustained < missed <= 1.02 * sustained


def test_a_random_queue_is_held_to_its_deadline() -> None:
    """Service of 10 us on average, exponential: at the rate found 99 % of the events wait no longer than 100 us."""
    chance = random.Random(3)
    deadline_ns = 100e3
    queue = Queue(lambda: chance.expovariate(1) * 10e3)
    sustained, _ = found(search(queue, deadline_ns), deadline_ns)

    # Of D/M/1 the time of an event is exponential with the mean s / (1 - x), where x = exp(-(1 - x) T / s).
    def p99_ns(rate_hz: float) -> float:
        x = 0.5
        for _ in range(1000):
            x = math.exp(-(1 - x) * 1e9 / rate_hz / 10e3)
        return math.log(100) * 10e3 / (1 - x)

    assert p99_ns(0.9 * sustained) < deadline_ns < p99_ns(1.1 * sustained)


def test_points_are_searched_in_the_same_rounds_each_by_itself() -> None:
    other = replace(FARM, bytes=8)
    queue = Queue(lambda: 10e3)
    notes = search(queue, 1e6, FARM, other)
    assert {at_rate(point, 0) for point in notes.added} == {FARM, other}
    assert {status for status, _ in notes.ends.values()} == {PointStatus.PRECISE}


def test_when_the_time_is_over_no_rate_is_added() -> None:
    notes = search(Queue(lambda: 10e3), 1e6, budget_s=2)
    assert {status for status, _ in notes.ends.values()} == {PointStatus.PRECISE, PointStatus.TIME_UP}
    assert notes.ends[notes.added[-1]][0] is PointStatus.TIME_UP


def test_a_resumed_search_continues_with_its_rates() -> None:
    """With the stored rates, no rate is tried twice and the result is that of an uninterrupted search."""
    queue = Queue(lambda: 10e3)
    first = search(queue, 1e6, budget_s=4)
    known = [measurement for measurements in first.rounds for measurement in measurements]
    plan = replace(plan_of(FARM, *first.added), deadline_ns=1e6)
    second = Notes()
    RateSampler(plan, queue, second, seed=2, clock=queue.clock, earlier=known).run(1e4)
    assert second.added
    assert {*second.added}.isdisjoint(first.added)
    whole = Notes(rounds=[*first.rounds, *second.rounds])
    assert found(whole, 1e6)[0] == pytest.approx(1e5, rel=0.02)


def test_where_no_schedule_is_possible_the_search_ends_with_the_reason() -> None:
    notes = search(Queue(lambda: 10e3, refuses_schedules=True), 1e6)
    (tried,) = notes.added
    assert notes.ends[tried] == (PointStatus.SKIPPED, "rate_hz needs a probe for the next message")
    assert notes.ends[FARM][0] is PointStatus.PRECISE


@pytest.mark.parametrize("highest_hz", [1, 3, 17, 40_000, 99_000, 100_000, 160_000, 4_000_000, 10**9])
def test_a_search_closes_around_the_highest_rate(highest_hz: int) -> None:
    kept = searched(min(100_000.0, 50.0 * highest_hz), highest_hz)
    found_hz = max(rate_hz for rate_hz, is_kept in kept.items() if is_kept)
    assert found_hz <= highest_hz <= max(1.02 * found_hz, found_hz + 1)


def searched(first_hz: float, highest_hz: int) -> dict[int, bool]:
    """All rates that a search tries, each once, and whether it is sustained, in their order."""
    kept: dict[int, bool] = {}
    while (rate_hz := next_hz(first_hz, kept)) is not None:
        assert rate_hz not in kept
        kept[rate_hz] = rate_hz <= highest_hz
        assert len(kept) < 40
    return kept


@pytest.mark.parametrize(("missed_hz", "wanted_hz"), [(10_200, None), (10_300, 10_149)])
def test_rates_within_two_percent_are_close_enough(missed_hz: int, wanted_hz: int | None) -> None:
    assert next_hz(10_000.0, {10_000: True, missed_hz: False}) == wanted_hz


def test_a_rate_that_is_sustained_above_one_that_is_not_does_not_end_a_search() -> None:
    """More measurements may change the verdict of a rate whose neighbours were tried already."""
    assert next_hz(10_000.0, {10_000: True, 20_000: False, 40_000: True}) == 14_142


def test_a_search_gives_up_where_no_rate_is_sustained() -> None:
    tried = [100_000, 50_000, 25_000, 12_500, 6250, 3125, 1562]  # half of that is below a hundredth
    assert [*searched(1e5, 0)] == tried


@pytest.mark.parametrize(
    ("late", "behind", "is_kept"), [(10, 0.0, True), (11, 0.0, False), (0, 0.02, False), (0, -0.5, True)]
)
def test_a_rate_is_sustained_with_one_percent_late_and_no_growing_queue(
    late: int, behind: float, is_kept: bool
) -> None:
    """Of 1,000 events in two measurements."""
    due_ns = 250e9 / 1000  # of half the events
    times_ns = np.repeat([due_ns, due_ns * (1 + behind)], 250)
    late_ns = np.where(np.arange(500) < late, 1e9, times_ns)
    definition, deadline_ns = Definition("root", 1, 0, 0), 5e8
    measurements = [
        make_measurement(at_rate(FARM, 1000), times[np.newaxis], definition=definition, floor_ns=None)
        for times in (times_ns, late_ns)
    ]
    assert (not misses_of(measurements, deadline_ns)) is is_kept


def test_a_rate_is_an_option_like_others() -> None:
    assert at_rate(FARM, 5000).options == (("in_flight", "8"), ("rate_hz", "5000"))
    assert at_rate(at_rate(FARM, 5000), 7).rate_hz == 7
    assert at_rate(at_rate(FARM, 5000), 0) == FARM
