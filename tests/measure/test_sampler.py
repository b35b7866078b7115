"""The sampler on a fake machine: its clock, its states and its times are known exactly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.measure.made_up_machine import Machine, Notes, all_measurements, plan_of, sample

from hockney.measure.point_work import PointFailed
from hockney.measure.sampler import Sampler
from hockney.model import MachineProbe, Measurement, PatternTraits, Point, PointStatus
from hockney.stats.states import State, classify

SHM = Point("shm", "pingpong", 2, 8)
TCP = Point("tcp", "pingpong", 2, 8)


def test_every_point_becomes_precise_and_is_then_left_alone() -> None:
    machine = Machine(lambda point: 30.0 if point == SHM else 0.2e9)
    notes = sample(machine, plan_of(SHM, TCP))
    assert {point: end[0] for point, end in notes.ends.items()} == dict.fromkeys((SHM, TCP), PointStatus.PRECISE)
    # With so little noise the fewest measurements are enough.
    assert [len(measurements) for measurements in notes.rounds] == [2] * 10


@pytest.mark.parametrize(("noise", "pause_s"), [(0.1, 0.001), (0.1, 0.5)])
def test_a_short_launch_has_three_rounds_of_all_points_and_lasts_twice_its_first(noise: float, pause_s: float) -> None:
    first = replace(TCP, role="first")
    machine, notes = Machine(lambda point: 30.0, noise=noise, pause_s=pause_s), Notes()
    Sampler(plan_of(SHM, first), machine, notes, seed=1, clock=machine.clock, is_short=True).run(1000)
    begun_s = notes.progress[0].elapsed_s
    assert {len(measurements) for measurements in notes.rounds} == {2}
    assert len(notes.rounds) >= 3
    ends = [progress.elapsed_s for progress in notes.progress]
    assert len(ends) == 3 or ends[-2] < 2 * begun_s <= ends[-1]
    assert {status for status, _ in notes.ends.values()} == {PointStatus.TIME_UP}


def test_a_figure_is_no_snapshot_of_a_moment() -> None:
    machine = Machine(lambda point: 30.0)
    notes = sample(machine, plan_of(SHM))
    assert notes.ends[SHM][0] is PointStatus.PRECISE
    assert 1.0 < machine.clock() < 1.1


def test_a_batch_is_so_long_that_the_clock_costs_below_one_percent() -> None:
    machine = Machine(lambda point: 30.0)
    notes = sample(machine, plan_of(SHM))
    batch_ns = notes.rounds[-1][0].elapsed_ns[0, 0]
    assert 25.0 / batch_ns < 0.01


@pytest.mark.parametrize(("rate_hz", "events"), [(1, 1), (100, 50), (10_000, 1000), (50_000, 2500), (10**6, 5000)])
def test_events_on_schedule_are_samples_of_one(rate_hz: int, events: int) -> None:
    """Those of 50 ms, at least 1,000 for the sake of p99.9, but no more than those of half a second."""
    point = Point("shm", "pushfarm", 3, 8, (("rate_hz", str(rate_hz)),), traits=PatternTraits(stream=True))
    machine = Machine(lambda point: 30.0)
    notes = sample(machine, plan_of(point))
    assert notes.ends[point][0] is PointStatus.PRECISE
    assert {(each.batch, each.elapsed_ns.shape[1]) for each in all_measurements(notes)} == {(1, events)}


@pytest.mark.parametrize(("event_ms", "events"), [(1, 1000), (10, 200), (1000, 2), (10_000, 1)])
def test_events_that_come_too_slowly_for_their_schedule_are_as_many_as_fit_the_time(event_ms: int, events: int) -> None:
    point = Point("shm", "pushfarm", 3, 8, (("rate_hz", "20000"),), traits=PatternTraits(stream=True))
    notes = sample(Machine(lambda point: event_ms * 1e6 / 2, noise=0), plan_of(point), budget_s=2)
    assert {each.elapsed_ns.shape[1] for each in all_measurements(notes)} == {events}


def test_what_a_launch_does_once_is_measured_once() -> None:
    point = Point("mpi", "init", 2, 0, traits=PatternTraits(sized=False, once=True))
    machine = Machine(lambda point: 0.3e9)
    sample(machine, plan_of(point))
    assert [(each.batch, each.elapsed_ns.shape[1]) for each in machine.measurements] == [(1, 1)]


def test_a_long_repetition_is_its_own_batch() -> None:
    machine = Machine(lambda point: 5e6)
    notes = sample(machine, plan_of(TCP))
    assert {measurement.batch for measurement in all_measurements(notes)} == {1}


def test_a_repetition_of_seconds_is_a_measurement_by_itself() -> None:
    machine = Machine(lambda point: 1.5e9)
    notes = sample(machine, plan_of(TCP))
    assert notes.ends[TCP][0] is PointStatus.PRECISE
    assert {(measurement.batch, measurement.elapsed_ns.shape[1]) for measurement in machine.measurements} == {(1, 1)}
    assert machine.now_s < 3 * len(machine.measurements) * 1.05, "there was a warm-up before each"
    assert len(machine.measurements) == sum(len(measurements) for measurements in notes.rounds) + 2


def test_a_first_repetition_that_is_long_only_because_it_is_the_first() -> None:
    machine = Machine(lambda point: 1.5e9 if not machine.measurements else 30.0)
    notes = sample(machine, plan_of(TCP))
    assert notes.rounds[0][0].batch > 100


STREAM = Point("unix", "oneway", 2, 8, traits=PatternTraits(stream=True))


@pytest.mark.parametrize("time_us", [0.03, 5, 100, 2000])
def test_a_sample_of_a_stream_is_many_events_in_a_row(time_us: float) -> None:
    notes = sample(Machine(lambda point: 1000 * time_us), plan_of(STREAM))
    measurements = all_measurements(notes)
    assert len({measurement.batch for measurement in measurements}) == 1
    events = measurements[0].batch * measurements[0].definition.divisor
    assert events == 64 or (events > 64 and 0.5e6 <= measurements[0].elapsed_ns[0, 0] < 1.1e6)


def test_a_stream_that_may_lose_messages_is_acknowledged_after_64() -> None:
    class Lossy(Machine):
        def measure(self, point: Point, **more: Any) -> Measurement:
            return replace(super().measure(point, **more), counters={"lost": (0.0, 0.0)})

    measurement = all_measurements(sample(Lossy(lambda point: 1000.0), plan_of(STREAM)))[0]
    assert measurement.batch * measurement.definition.divisor == 64


@pytest.mark.parametrize(("budget_s", "most_s"), [(1000, 20), (100, 20), (3, 3)])
def test_a_measurement_of_a_slow_stream_takes_up_to_a_third_of_its_limit_and_its_share_of_the_time(
    budget_s: float, most_s: float
) -> None:
    machine = Machine(lambda point: 0.19e9)
    notes = sample(machine, plan_of(STREAM).within(timeout_s=60), budget_s=budget_s)
    measurement = all_measurements(notes)[0]
    fill_s = 0.38 * (measurement.batch // 4)
    assert 0.6 * most_s < measurement.elapsed_ns[0].sum() / 1e9 + fill_s < 1.01 * most_s


@pytest.mark.parametrize(("later_ns", "is_kept"), [(2000.0, True), (500.0, True), (100.0, False)])
def test_a_later_launch_measures_with_the_batches_of_the_first(later_ns: float, is_kept: bool) -> None:
    """Though the stream is faster then, unless its ends would weigh much."""
    first = sample(Machine(lambda point: 3000.0), plan_of(SHM, STREAM))
    kept = {measurement.point: measurement for measurement in all_measurements(first)}
    machine = Machine(lambda point: 3000.0 if point == SHM else later_ns)
    notes = Notes()
    Sampler(plan_of(SHM, STREAM), machine, notes, seed=2, clock=machine.clock, alike=kept).run(1000)
    made = all_measurements(notes)
    for point, measurement in kept.items():
        shapes = {(each.batch, each.elapsed_ns.shape) for each in made if each.point == point}
        assert (shapes == {(measurement.batch, measurement.elapsed_ns.shape)}) == (is_kept or point == SHM)


def test_where_the_time_is_short_a_long_repetition_is_a_measurement_earlier() -> None:
    machine = Machine(lambda point: 0.1e9)
    notes = sample(machine, plan_of(TCP), budget_s=5)
    assert {(measurement.batch, measurement.elapsed_ns.shape[1]) for measurement in machine.measurements} == {(1, 1)}
    assert len(notes.rounds) >= 10, "with several samples there were too few measurements"
    plenty = sample(Machine(lambda point: 0.1e9), plan_of(TCP), budget_s=50)
    assert plenty.rounds[0][0].elapsed_ns.shape[1] == 3


def test_when_the_time_is_over_nothing_long_is_calibrated_twice() -> None:
    machine = Machine(lambda point: 0.5e9)
    sample(machine, plan_of(TCP), budget_s=1e-3)
    assert len(machine.measurements) == 2


def test_a_repetition_long_only_at_first_is_no_measurement_at_the_end_of_the_time() -> None:
    machine = Machine(lambda point: 1.5e9 if not machine.measurements else 30.0)
    notes = sample(machine, plan_of(TCP), budget_s=1e-3)
    assert notes.rounds[0][0].batch > 100


def test_rounds_measurement_every_unfinished_point_once_in_random_order() -> None:
    points = [Point("shm", "pingpong", 2, size) for size in range(20)]
    machine = Machine(lambda point: 100.0, noise=0.2)
    notes = sample(machine, plan_of(*points, precision=0.001), budget_s=3)
    assert len(notes.rounds) > 3
    orders = [tuple(measurement.point.bytes for measurement in measurements) for measurements in notes.rounds]
    assert all(sorted(order) == list(range(20)) for order in orders[:-1])
    assert orders[0] == tuple(range(20))
    assert len(set(orders[:-1])) == len(orders) - 1


FIRST = tuple(Point("shm", "pingpong", 2, size, role="first") for size in range(8, 14))
REST = tuple(Point("shm", "pingpong", 2, size) for size in range(20, 40))


def counts_by_round(notes: Notes) -> list[tuple[int, int]]:
    """How many points of the first kind each round measured, and how many others."""
    sizes = [[measurement.point.bytes for measurement in measurements] for measurements in notes.rounds]
    return [(sum(size < 20 for size in of_round), sum(size >= 20 for size in of_round)) for of_round in sizes]


def test_points_that_come_first_are_measured_eight_times_before_the_rest_and_then_three_times_as_often() -> None:
    machine = Machine(lambda point: 1000.0, noise=0.2)
    notes = sample(machine, plan_of(*REST, *FIRST, precision=0.0001), budget_s=3)
    counts = counts_by_round(notes)[:-1]  # the last one is cut short
    assert counts[:8] == [(6, 0)] * 8
    assert sum(rest > 0 for _, rest in counts[8:]) >= 3
    assert {first for first, _ in counts} == {6}
    assert {rest for _, rest in counts} == {0, 20}
    whole = [number for number, (_, rest) in enumerate(counts) if rest]
    assert {after - before for before, after in pairwise(whole[1:])} == {3}
    orders = [tuple(measurement.point.bytes for measurement in measurements) for measurements in notes.rounds[1:-1]]
    assert len(set(orders)) > len(orders) / 2, "the order of each round is random"


def test_when_the_points_that_come_first_are_known_every_round_has_the_rest() -> None:
    luck = random.Random(3)
    noisy = Machine(lambda point: 1000.0 if point.bytes < 20 else 2000.0 * (1 + luck.random()))
    notes = sample(noisy, plan_of(*FIRST, *REST, precision=0.01), budget_s=10)
    assert {notes.ends[point][0] for point in FIRST} == {PointStatus.PRECISE}
    last_first = max(number for number, (first, _) in enumerate(counts_by_round(notes)) if first)
    assert {first for first, _ in counts_by_round(notes)[last_first + 1 :]} == {0}
    assert len(counts_by_round(notes)) > last_first + 5


@pytest.mark.parametrize("budget_s", [1e-9, 0.3])
def test_a_short_time_is_for_the_points_that_come_first(budget_s: float) -> None:
    machine = Machine(lambda point: 1000.0, noise=0.2, pause_s=0.02)
    notes = sample(machine, plan_of(*REST, *FIRST, precision=0.0001), budget_s=budget_s)
    assert {measurement.point for measurement in all_measurements(notes)} == {*FIRST}
    assert notes.ends[REST[0]] == (PointStatus.TIME_UP, "the time was up: no interval yet; measurements in all: 0")


def test_a_resumed_run_goes_on_with_all_points() -> None:
    machine = Machine(lambda point: 1000.0, noise=0.2)
    earlier = all_measurements(sample(machine, plan_of(*FIRST, *REST, precision=0.0001), budget_s=3))
    notes = sample(machine, plan_of(*FIRST, *REST, precision=0.0001), budget_s=3, earlier=earlier)
    assert any(rest for _, rest in counts_by_round(notes)[:3]), "those that come first have their eight already"


def test_a_batch_that_was_chosen_in_a_quick_moment_is_made_shorter() -> None:
    """A pattern that takes longer from its first measurement on."""
    machine = Machine(lambda point: 30.0 if len(machine.measurements) < 3 else 30.0 * 16, noise=0)
    batches = [measurement.batch for measurement in all_measurements(sample(machine, plan_of(SHM)))]
    assert batches[0] > 4 * batches[1]
    assert len({*batches[1:]}) == 1


@pytest.mark.parametrize("slower", [1.0, 3.5])
def test_a_batch_that_is_a_little_too_long_stays(slower: float) -> None:
    machine = Machine(lambda point: 30.0 if len(machine.measurements) < 3 else 30.0 * slower, noise=0)
    assert len({measurement.batch for measurement in all_measurements(sample(machine, plan_of(SHM)))}) == 1


def test_the_end_of_the_budget_is_stored_with_the_precision() -> None:
    machine = Machine(lambda point: 1000.0, noise=0.5)
    notes = sample(machine, plan_of(SHM, precision=0.0001), budget_s=1)
    status, reason = notes.ends[SHM]
    assert status is PointStatus.TIME_UP
    assert reason is not None
    assert "the time was up: the interval is +-" in reason


def test_the_first_round_is_whole_even_without_a_budget() -> None:
    machine = Machine(lambda point: 1000.0)
    notes = sample(machine, plan_of(SHM, TCP), budget_s=1e-9)
    assert [len(measurements) for measurements in notes.rounds] == [2]


@pytest.mark.parametrize(("budget_s", "most_s"), [(1, 60), (30, 90)])
def test_a_first_round_on_a_slow_network_ends_without_long_messages(budget_s: float, most_s: float) -> None:
    """The long messages of tcp take 4 s each; one more is under way when the time is up. Those of shm are quick."""
    points = [
        Point(transport, "oneway", 2, size, (("window", str(window)),))
        for window in range(2, 42)
        for transport in ("tcp", "shm")
        for size in (1 << 20, 8, 1 << 10)
    ]
    machine = Machine(lambda point: 1e9 if (point.transport, point.bytes) == ("tcp", 1 << 20) else 1000.0)
    notes = sample(machine, plan_of(*points), budget_s=budget_s)
    (first, *_) = notes.rounds
    seen = {measurement.point for measurement in first}
    left_out = [point for point in points if point not in seen]
    assert 0 < len(left_out) < 40
    assert {(point.transport, point.bytes) for point in left_out} == {("tcp", 1 << 20)}
    assert most_s < notes.progress[0].elapsed_s < most_s + 6
    status, reason = notes.ends[left_out[0]]
    assert (status, reason) == (PointStatus.TIME_UP, "the time was up: no interval yet; measurements in all: 0")
    on_model = replace(plan_of(*points), virtual={"tcp": False})  # whose times are not those of the clock
    assert len(sample(Machine(machine.time_ns), on_model, budget_s=budget_s).rounds[0]) == len(points)


def test_the_start_of_a_job_makes_no_transport_slow() -> None:
    """One launcher fails after a minute, so that the next transport, whose job takes 2 s to start, is late."""

    class Starting(Machine):
        def clock_ns(self, point: Point) -> float:
            self.now_s += starts_s.pop(point.transport, 0.0)
            if point.transport == "mpi":
                raise PointFailed("it did not start")
            return super().clock_ns(point)

    starts_s = {"mpi": 61.0, "tcp": 2.0}
    failing, quick = ([Point(name, "oneway", 2, size) for size in (8, 1 << 20)] for name in ("mpi", "tcp"))
    notes = sample(Starting(lambda point: 1000.0), plan_of(*failing, *quick), budget_s=1)
    assert [measurement.point for measurement in notes.rounds[0]] == quick
    assert [notes.ends[point] for point in failing] == [(PointStatus.FAILED, "it did not start")] * 2


def test_the_first_round_of_a_later_launch_is_whole_too() -> None:
    machine = Machine(lambda point: 20_000.0)
    points = tuple(Point("tcp", "pingpong", 2, size) for size in range(1, 9))
    notes = Notes()
    Sampler(plan_of(*points), machine, notes, seed=1, clock=machine.clock, start_round=7).run(1e-6)
    assert [len(measurements) for measurements in notes.rounds] == [8]


def test_states_are_not_mixed() -> None:
    """The floor alternates between two levels, and every time with it: ±70 % together, ±0.2 % within a state."""
    machine = Machine(lambda point: 30.0, floor_ns=lambda now_s: 27.0 if int(now_s * 50) % 3 else 184.0)
    notes = sample(machine, plan_of(SHM, TCP))
    assert {end[0] for end in notes.ends.values()} == {PointStatus.PRECISE}
    assert {measurement.floor_ns for measurement in all_measurements(notes)} == {
        (27.0, 27.0),
        (184.0, 184.0),
    }


def test_a_failed_point_keeps_its_reason_and_the_others_continue() -> None:
    machine = Machine(lambda point: 30.0, broken={TCP: "rank 1 was killed by SIGKILL"})
    notes = sample(machine, plan_of(TCP, SHM))
    assert notes.ends[TCP] == (PointStatus.FAILED, "rank 1 was killed by SIGKILL")
    assert notes.ends[SHM][0] is PointStatus.PRECISE


def test_ctrl_c_in_the_middle_of_a_round_loses_nothing() -> None:
    points = [Point("shm", "pingpong", 2, size) for size in range(10)]
    machine = Machine(lambda point: 100.0, interrupt_after=55)
    notes = Notes()
    sampler = Sampler(plan_of(*points), machine, notes, seed=1, clock=machine.clock)
    with pytest.raises(KeyboardInterrupt):
        sampler.run(1000)
    observed = all_measurements(notes)
    kept = [
        measurement for measurement in machine.measurements if measurement.elapsed_ns.shape[1] > 3
    ]  # the others were for calibration
    assert len(observed) == len(kept)
    assert {status for status, _ in notes.ends.values()} == {PointStatus.STOPPED}


def test_earlier_measurements_of_a_resumed_run_count() -> None:
    machine = Machine(lambda point: 30.0)
    first = sample(machine, plan_of(SHM))
    earlier = all_measurements(first)[:9]
    notes = sample(machine, plan_of(SHM), earlier=earlier)
    assert [len(measurements) for measurements in notes.rounds] == [1]


def test_time_to_go_is_never_above_the_budget_and_ends_at_zero() -> None:
    machine = Machine(lambda point: 30.0)
    notes = sample(machine, plan_of(SHM, TCP), budget_s=50)
    assert all(0 <= p.left_s <= p.left_most_s == 50 - p.elapsed_s for p in notes.progress[:-1])
    assert notes.progress[-1].left_s == notes.progress[-1].left_most_s == 0
    assert notes.progress[-1].finished == 2


@pytest.mark.parametrize("budget_s", [0.8, 50])
def test_time_to_go_is_no_less_than_a_point_must_be_watched(budget_s: float) -> None:
    """However narrow its interval, and however quick its measurements: it ends when they span a second."""
    notes = sample(Machine(lambda point: 30.0), plan_of(SHM), budget_s=budget_s)
    end_s = notes.progress[-1].elapsed_s
    assert all(p.left_s >= end_s - p.elapsed_s - 0.05 for p in notes.progress)


def test_time_to_go_shrinks_with_the_interval_however_long_the_budget_is() -> None:
    """An interval is as narrow as asked for after 25 s."""
    machine = Machine(lambda point: 30.0, noise=0.05, pause_s=0.1)
    progress = sample(machine, plan_of(SHM), budget_s=1000).progress
    end_s = progress[-1].elapsed_s
    assert 20 < end_s < 30
    assert max(each.left_s for each in progress if each.elapsed_s > 5) < 3 * end_s
    assert max(each.left_s for each in progress if each.elapsed_s > end_s - 3) < end_s / 2


def test_a_resumed_run_measures_no_precise_point_again() -> None:
    machine = Machine(lambda point: 30.0)
    first = sample(machine, plan_of(SHM))
    before = len(machine.measurements)
    again = sample(machine, plan_of(SHM), earlier=all_measurements(first))
    assert again.ends[SHM][0] is PointStatus.PRECISE
    assert len(machine.measurements) == before


def test_a_point_that_a_resumed_run_never_measured_is_no_snapshot_of_a_moment() -> None:
    machine = Machine(lambda point: 30.0)
    first = sample(machine, plan_of(SHM))
    begin_s = machine.now_s
    again = sample(
        machine,
        plan_of(SHM, TCP),
        earlier=all_measurements(first),
    )
    assert again.ends[TCP][0] is PointStatus.PRECISE
    assert machine.now_s - begin_s > 1.0


def test_a_resumed_run_makes_a_round_however_long_its_earlier_measurements_take_to_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(lambda point: 30.0)
    earlier = [measurement for measurements in sample(machine, plan_of(SHM)).rounds[:2] for measurement in measurements]

    def slow(signs: Sequence[MachineProbe]) -> list[State]:
        machine.now_s += 5.0
        return classify(signs)

    monkeypatch.setattr("hockney.measure.sampler.classify", slow)
    notes = sample(machine, plan_of(SHM, TCP), budget_s=1.0, earlier=earlier)
    assert {measurement.point for measurement in notes.rounds[0]} == {SHM, TCP}


def test_the_work_of_judging_grows_with_the_measurements_and_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def counted(signs: Sequence[MachineProbe]) -> list[State]:
        judged.append(len(signs))
        return classify(signs)

    monkeypatch.setattr("hockney.measure.sampler.classify", counted)
    machine = Machine(lambda point: 30.0, noise=0.05)
    notes = sample(machine, plan_of(SHM, TCP, precision=1e-9), budget_s=10)
    measurements = sum(len(measurements) for measurements in notes.rounds)
    assert measurements > 1000
    assert judged[:20] == list(range(2, 42, 2)), "not after each round as long as that is cheap"
    assert judged[-1] == measurements, "the precision of a point does not come from all of its measurements"
    assert sum(judged) < 55 * measurements


def test_a_stopped_point_says_how_far_it_got() -> None:
    machine = Machine(lambda point: 30.0, noise=0.3, interrupt_after=16)
    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        Sampler(plan_of(SHM, precision=1e-6), machine, notes, seed=1, clock=machine.clock).run(1000)
    status, reason = notes.ends[SHM]
    assert status is PointStatus.STOPPED
    assert reason is not None
    assert reason.startswith("the run was stopped: the interval is")


def test_repetitions_that_were_counted_on_a_cold_path_are_counted_again() -> None:
    """The first messages of a connection may take a hundred times as long as all later ones."""

    class Cold(Machine):
        calls = 0

        def measure(self, point: Point, **more: Any) -> Measurement:
            self.calls += 1
            self.drift = lambda now_s: 100.0 if self.calls <= 3 else 1.0
            return super().measure(point, **more)

    machine = Cold(lambda point: 300.0)
    notes = sample(machine, plan_of(SHM))
    batches_ns = [measurement.elapsed_ns[0, 0] for measurement in all_measurements(notes)]
    assert min(batches_ns) >= 10_000
    assert notes.ends[SHM][0] is PointStatus.PRECISE
