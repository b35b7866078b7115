"""Sizes that a run adds around the jumps of a curve, on a made-up machine."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.measure.made_up_machine import Machine, Notes, all_measurements, jumping_after, plan_of, sample

from hockney.measure.point_work import PointFailed
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point, PointStatus

POWERS = [0, *(1 << n for n in range(3, 21))]
CURVE = [Point("mpi", "pingpong", 2, size) for size in POWERS]


def test_sizes_are_added_around_a_jump_and_nowhere_else() -> None:
    sizes = [0, 8, 64, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]
    points = [Point("mpi", "pingpong", 2, size) for size in sizes]

    def eager_then_rendezvous(point: Point) -> float:
        return 200 + point.bytes / 10 + (2000 if point.bytes > 4096 else 0)

    notes = sample(Machine(eager_then_rendezvous), plan_of(*points, refine=True))
    added = sorted(point.bytes for point in notes.added)
    assert added
    assert all(point.role == "refined" for point in notes.added)
    assert all(4096 < size < 8192 for size in added), "the fit knows between which sizes it jumps"
    assert min(added) < 4096 * 1.13
    assert all(point in notes.ends for point in notes.added)


def test_no_size_is_added_when_the_time_is_over() -> None:

    def machine() -> Machine:
        return Machine(jumping_after(4096), pause_s=0.1)

    long = sample(machine(), plan_of(*CURVE, precision=1e-6, refine=True), budget_s=200)
    added_s = next(progress.elapsed_s for progress in long.progress if progress.points > len(CURVE))
    short = sample(machine(), plan_of(*CURVE, precision=1e-6, refine=True), budget_s=added_s - 0.01)
    assert [len(measurements) for measurements in short.rounds[:-1]] == [len(CURVE)] * (len(short.rounds) - 1)
    assert len(short.rounds[-1]) == len(CURVE), "the time was over before the other run added sizes"
    assert short.added == []


def test_a_curve_is_judged_again_after_a_quarter_more_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_after: list[int] = []
    machine = Machine(lambda point: 1000.0, pause_s=0.01)

    def note(*curve: object, **more: object) -> list[int]:
        judged_after.append(sum(each.elapsed_ns.shape[1] > 3 for each in machine.measurements) // len(CURVE))
        return []

    monkeypatch.setattr("hockney.measure.refinement.sizes_to_add", note)
    sample(machine, plan_of(*CURVE, precision=1e-6, refine=True), budget_s=12)
    assert len(judged_after) > 5
    assert judged_after[1:] == [math.floor(1.25 * rounds) + 1 for rounds in judged_after[:-1]]


def exact_places(machine: Machine, sizes: Sequence[int], grain_bytes: int = 1) -> tuple[list[int], Notes]:
    """The last size before each jump to the next measured one by a fifth or more, and the notes."""
    points = [Point("mpi", "pingpong", 2, size) for size in sizes]
    grains = {"pingpong": grain_bytes} if grain_bytes > 1 else {}
    notes = sample(machine, replace(plan_of(*points, refine=True), exact=True, grains=grains))
    measured = sorted({*sizes, *(point.bytes for point in notes.added)})
    times = {size: machine.time_ns(Point("mpi", "pingpong", 2, size)) for size in measured}
    jumps = [(a, b) for a, b in pairwise(measured) if b - a <= grain_bytes and times[b] > 1.2 * times[a]]
    return [a for a, _ in jumps], notes


@pytest.mark.parametrize("last_bytes", [4096, 4097, 5001, 8191, 100_001])
@pytest.mark.parametrize("noise", [0.002, 0.01])
def test_the_place_of_a_jump_is_found_to_a_byte(last_bytes: int, noise: float) -> None:
    places, notes = exact_places(Machine(jumping_after(last_bytes), noise=noise, pause_s=0.1), POWERS)
    assert places == [last_bytes]
    assert len(notes.added) <= last_bytes.bit_length() + 1  # a halving for each bit, and the two ends
    assert all(point in notes.ends for point in notes.added)


def test_the_places_of_two_jumps_are_found() -> None:
    assert exact_places(Machine(jumping_after(1000, 65_535), pause_s=0.1), POWERS)[0] == [1000, 65_535]


def test_added_sizes_keep_to_the_grain() -> None:
    places, notes = exact_places(Machine(jumping_after(5000), pause_s=0.1), [8 << n for n in range(16)], grain_bytes=8)
    assert places == [5000]
    assert all(point.bytes % 8 == 0 for point in notes.added)


def test_a_bend_has_no_exact_place_and_gets_few_sizes() -> None:
    machine = Machine(lambda point: 1000 + point.bytes / 10 + max(0, point.bytes - 20_000) / 3, pause_s=0.1)
    _, notes = exact_places(machine, POWERS)
    assert 0 < len(notes.added) <= 12


def test_a_blip_gets_neighbours_on_both_sides() -> None:
    machine = Machine(lambda point: (200 + point.bytes / 10) * (1.5 if point.bytes == 4096 else 1), pause_s=0.1)
    added = [point.bytes for point in sample(machine, plan_of(*CURVE, refine=True)).added]
    assert any(2048 < size < 4096 for size in added)
    assert any(4096 < size < 8192 for size in added)
    assert all(2048 < size < 8192 for size in added)


def test_a_line_in_two_states_has_no_jumps() -> None:
    """Some sizes are known best near, some far, where all takes seven times as long; each state is a straight line."""
    machine = Machine(
        lambda point: 1000 + point.bytes / 10, floor_ns=lambda now_s: 27.0 if int(now_s * 3) % 2 else 184.0, pause_s=0.1
    )
    notes = sample(machine, replace(plan_of(*CURVE, refine=True), exact=True))
    assert {measurement.floor_ns[0] for measurement in all_measurements(notes) if measurement.floor_ns} == {27.0, 184.0}
    assert notes.added == []


def test_however_wild_a_curve_the_added_sizes_are_bounded() -> None:
    machine = Machine(lambda point: 100.0 + 1000 * random.Random(point.bytes).random(), pause_s=0.1)
    assert len(sample(machine, plan_of(*CURVE, refine=True)).added) <= 12
    assert len(exact_places(machine, POWERS)[1].added) <= 48


def test_a_size_that_fails_does_not_keep_the_others_from_being_refined() -> None:
    sizes = [Point("shm", "pingpong", 2, 1 << n) for n in range(3, 16)]
    machine = Machine(lambda point: 100.0 if point.bytes <= 4096 else 2000.0, broken={sizes[0]: "no"})
    assert sample(machine, plan_of(*sizes, refine=True)).added


def shared_rounds(measurements: Sequence[Measurement], *sizes: int) -> int:
    """In how many rounds all of these sizes were measured."""
    return len(
        set.intersection(
            *({measurement.round for measurement in measurements if measurement.point.bytes == size} for size in sizes)
        )
    )


def refined(machine: Machine, budget_s: float = 1000, **more: Any) -> Notes:
    return sample(machine, replace(plan_of(*CURVE, refine=True), exact=True), budget_s=budget_s, **more)


def test_an_added_size_and_its_neighbours_are_measured_together() -> None:
    notes = refined(Machine(jumping_after(5001), pause_s=0.05))
    assert shared_rounds(all_measurements(notes), 5001, 5002) >= 10
    assert [progress.points for progress in notes.progress if progress.finished > progress.points] == []
    assert notes.progress[-1].finished == notes.progress[-1].points == len(notes.ends)


def test_sizes_are_measured_together_for_no_less_than_a_second() -> None:
    measurements = all_measurements(refined(Machine(jumping_after(5001))))
    rounds = set.intersection(
        *({each.round for each in measurements if each.point.bytes == size} for size in (5001, 5002))
    )
    times_s = [
        measurement.started_unix_s
        for measurement in measurements
        if measurement.round in rounds and measurement.point.bytes == 5001
    ]
    assert max(times_s) - min(times_s) > 0.9


def test_a_resumed_run_measures_added_sizes_and_their_neighbours_together() -> None:
    machine = Machine(jumping_after(5001), pause_s=0.05)
    whole = refined(Machine(jumping_after(5001), pause_s=0.05))
    just_added_s = next(progress.elapsed_s for progress in whole.progress if progress.points > len(POWERS))
    first = refined(machine, budget_s=just_added_s + 0.1)  # enough for one more round
    begun = [*CURVE, *first.added]
    assert first.added
    plan = replace(plan_of(*begun, refine=True), exact=True)
    rounds = len(first.rounds)
    second = Notes()
    earlier = all_measurements(first)
    Sampler(plan, machine, second, seed=2, clock=machine.clock, earlier=earlier, start_round=rounds).run(1000)
    assert shared_rounds([*earlier, *all_measurements(second)], 5001, 5002) >= 10
    late = [point.bytes for point in first.added if first.ends[point][0] is not PointStatus.PRECISE]
    assert late
    for size in late:
        sizes = sorted(point.bytes for point in begun)
        at = sizes.index(size)
        assert shared_rounds(all_measurements(second), *sizes[at - 1 : at + 2]) >= 9


@pytest.mark.parametrize("how", ["time", "Ctrl-C"])
def test_a_precise_point_that_was_measured_again_stays_precise_however_the_run_ends(how: str) -> None:
    model = Machine(jumping_after(5001), pause_s=0.05)
    whole = refined(model)
    # A round soon after a point ended that is measured again all the same, for the sake of an added one.
    begin, twice = next(
        one for at, one in enumerate(whole.history) if one[1] in {point for _, point in whole.history[at + 1 :]}
    )
    number = begin + 2
    again = whole.rounds[number]
    machine = Machine(jumping_after(5001), pause_s=0.05)
    plan = replace(plan_of(*CURVE, refine=True), exact=True)
    notes = Notes()
    sampler = Sampler(plan, machine, notes, seed=1, clock=machine.clock)
    if how == "time":
        sampler.run(whole.progress[number].elapsed_s)
    else:
        machine.interrupt_after = next(
            at for at, measurement in enumerate(model.measurements) if measurement is again[-1]
        )
        with pytest.raises(KeyboardInterrupt):
            sampler.run(1000)
    assert notes.rounds[-1][0].round == again[0].round, "it ended in that very round"
    assert notes.ends[twice] == (PointStatus.PRECISE, None)
    unfinished = PointStatus.TIME_UP if how == "time" else PointStatus.STOPPED
    assert unfinished in {notes.ends[point][0] for point in notes.added if point in notes.ends}


def test_a_size_that_fails_when_it_is_measured_again_has_failed() -> None:
    class Breaking(Machine):
        def measure(self, point: Point, **more: Any) -> Measurement:
            if point.bytes == 4096 and any(measurement.point.role == "refined" for measurement in self.measurements):
                raise PointFailed("rank 1 died")
            return super().measure(point, **more)

    notes = refined(Breaking(jumping_after(5001), pause_s=0.05))
    assert notes.ends[Point("mpi", "pingpong", 2, 4096)] == (PointStatus.FAILED, "rank 1 died")
    assert notes.progress[-1].finished == notes.progress[-1].points


def changing_when_refined(lasts_s: float) -> Machine:
    """Near, but far from when the first added size is measured, for this long."""
    begun_s: list[float] = []
    machine = Machine(jumping_after(5001), pause_s=0.05)

    def floor_ns(now_s: float) -> float:
        if any(measurement.point.role == "refined" for measurement in machine.measurements[-3:]) and not begun_s:
            begun_s.append(now_s)
        return 184.0 if begun_s and now_s < begun_s[0] + lasts_s else 27.0

    machine.floor_ns = floor_ns
    return machine


def test_a_size_that_was_measured_in_another_state_than_the_rest_is_measured_again() -> None:
    notes = refined(changing_when_refined(lasts_s=6), budget_s=300)
    near = {measurement.point.bytes for measurement in all_measurements(notes) if measurement.floor_ns == (27.0, 27.0)}
    assert {point.bytes for point in notes.added} <= near
    assert {5001, 5002} <= near
    assert notes.progress[-1].finished == notes.progress[-1].points


def test_the_wait_for_a_state_that_does_not_return_is_limited() -> None:
    notes = refined(changing_when_refined(lasts_s=1e9), budget_s=300)
    assert notes.added
    assert notes.progress[-1].elapsed_s < 100
    assert all(point in notes.ends for point in notes.added)
