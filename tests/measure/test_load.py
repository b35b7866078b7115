"""Measurements under a background: wholly covered by its traffic, in turn with idle ones, in separate places."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import make_pattern, make_placement, make_point, make_stored
from tests.measure.made_up_machine import Machine, Notes

from hockney.errors import UsageError
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.measure.load import Load, LoadFailed, LoadSampler
from hockney.measure.plan import Plan
from hockney.measure.point_work import PointFailed
from hockney.model import Point, PointStatus
from hockney.suites import Limits
from hockney.worker.background import BACKGROUNDS, Background, place
from hockney.worker.catalogue import Catalogue
from hockney.worker.errors import WorkerDied
from hockney.worker.placement import Placement

IDLE = make_point(8, "tcp")
LOADED = IDLE.under("bulk")


class Made:
    """A job in virtual time: its traffic begins `before_s` after the command, and its answer comes `after_s` later."""

    def __init__(self, repetition_s: float = 1e-4, before_s: float = 2e-3, after_s: float = 3e-3) -> None:
        self.now_s = 0.0
        self.repetition_s, self.before_s, self.after_s = repetition_s, before_s, after_s
        self.traffic: list[tuple[float, float]] = []  # when it began and ended
        self.asked: list[tuple[int, int, int]] = []  # batch, samples and limit in s
        self.dies = False
        self.ends: Callable[[int], tuple[int, int]] = lambda wall_ns: (2 * wall_ns, wall_ns)  # a rank alone is no load

    def clock(self) -> float:
        return self.now_s

    def sleep(self, time_s: float) -> None:
        self.now_s += time_s

    def begin_measure(self, pattern: str, *, batch: int, samples: int, **how: Any) -> Callable[[], Any]:
        begin_s = self.now_s + self.before_s
        end_s = begin_s + batch * samples * self.repetition_s
        self.traffic.append((begin_s, end_s))
        self.asked.append((batch, samples, how["timeout_s"]))

        def end() -> Any:
            if self.dies:
                raise WorkerDied("rank 1 was killed by SIGKILL")
            self.now_s = max(self.now_s, end_s + self.after_s)
            wall_ns = round((end_s - begin_s) * 1e9)
            return SimpleNamespace(batch=batch, samples=samples, wall_ns=self.ends(wall_ns))

        return end


def make_load(
    made: Any, timeout_s: int = 60, name: str = "bulk", *, is_lossy: bool = False, adapts: bool = False
) -> Load:
    clock = {"clock": made.clock, "sleep": made.sleep}
    limits = Limits(timeout_s=timeout_s, limit_adapts=adapts)
    return Load(made, Background(name, 2), limits, is_lossy=is_lossy, **clock)


def victim(made: Made, length_s: float, seen: list[tuple[float, float]]) -> Callable[[], Any]:
    def measure() -> Any:
        seen.append((made.now_s, made.now_s + length_s))
        made.now_s += length_s
        return len(seen)

    return measure


@pytest.mark.parametrize("length_s", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("repetition_s", [1e-6, 0.5])
def test_what_is_measured_is_wholly_covered(length_s: float, repetition_s: float) -> None:
    made = Made(repetition_s)
    load, seen = make_load(made), list[tuple[float, float]]()
    for _ in range(5):
        measured: Any = load.during(victim(made, length_s, seen), "a point")
        assert measured == len(seen)
        (begin_s, end_s), (first_s, last_s) = seen[-1], made.traffic[-1]
        assert first_s <= begin_s
        assert end_s <= last_s
    assert load.is_at_rest


@pytest.mark.parametrize(("is_lossy", "most"), [(False, 256), (True, 4)])
def test_traffic_has_at_most_256_samples_or_ranks_that_meet_after_four_repetitions(is_lossy: bool, most: int) -> None:
    """Messages that may be lost flood a receiver that does not meet its senders."""
    made = Made(1e-5)
    make_load(made, is_lossy=is_lossy).during(victim(made, 1.0, []), "a point")
    sizes = [batch if is_lossy else samples for batch, samples, _ in made.asked]
    assert most / 2 < max(sizes) <= most


@pytest.mark.parametrize("adapts", [False, True])
def test_the_limit_of_traffic_of_known_length_may_be_ten_times_that(*, adapts: bool) -> None:
    made = Made()
    load = make_load(made, adapts=adapts)
    for _ in range(2):
        load.during(victim(made, 1.0, []), "a point")
    lengths_s = [end_s - begin_s for begin_s, end_s in made.traffic]
    first, *limits_s = [limit_s for _, _, limit_s in made.asked]
    assert first == 60  # a single repetition of unknown length
    assert made.asked[0][:2] == (1, 1)
    for limit_s, length_s in zip(limits_s, lengths_s[1:], strict=True):
        assert limit_s == (pytest.approx(max(4, 10 * length_s), abs=1) if adapts else 60)


def test_an_incast_lasts_until_its_receiver_has_all() -> None:
    """Its senders end while up to 0.5 s of their messages wait in buffers."""
    made = Made(5e-3)
    made.ends = lambda wall_ns: (wall_ns, max(1000, wall_ns - 500_000_000))
    load, seen = make_load(made, name="incast"), list[tuple[float, float]]()
    load.during(victim(made, 0.1, seen), "a point")
    load.during(victim(made, 0.1, seen), "a point")
    assert len(seen) <= 3
    assert made.now_s < 1.0
    assert seen[-1][1] <= made.traffic[-1][1]


def test_traffic_that_ends_or_begins_at_the_wrong_time_is_noticed() -> None:
    made = Made()
    load, seen = make_load(made), list[tuple[float, float]]()
    load.during(victim(made, 0.1, seen), "a point")
    made.repetition_s /= 10  # it suddenly ends far too soon
    before = len(seen)
    load.during(victim(made, 0.1, seen), "a point")
    assert len(seen) > before + 1
    assert seen[-1][1] <= made.traffic[-1][1]
    made.before_s = 0.2  # it suddenly begins far too late
    before = len(seen)
    load.during(victim(made, 0.1, seen), "a point")
    assert len(seen) > before + 1
    assert made.traffic[-1][0] <= seen[-1][0]


def test_a_background_that_never_covers_is_an_error() -> None:
    made = Made()
    load, seen = make_load(made, timeout_s=10**6), list[tuple[float, float]]()
    load.during(victim(made, 0.1, seen), "a point")

    def ever_longer() -> Any:
        made.now_s = made.traffic[-1][1] + 1e-3

    with pytest.raises(PointFailed, match="the background ended before the measurement in each of"):
        load.during(ever_longer, "a point")


def test_a_measurement_that_the_load_makes_ten_thousand_times_as_long_is_covered() -> None:
    """Each failed try lets the traffic last for at least twice the time that was seen."""
    made = Made()
    load, seen = make_load(made, timeout_s=10**6), list[tuple[float, float]]()

    def slowed() -> Any:
        left_s, begin_s, end_s = 1.0, made.now_s, made.traffic[-1][1]
        loaded_s = min(left_s * 1e4, max(0.0, end_s - begin_s))
        made.now_s += loaded_s + left_s - loaded_s / 1e4
        seen.append((begin_s, made.now_s))
        return "measured"

    measured: Any = load.during(slowed, "a point")
    assert measured == "measured"
    assert made.traffic[-1][0] <= seen[-1][0] < seen[-1][1] <= made.traffic[-1][1]


def test_a_background_that_dies_is_an_error_with_its_reason() -> None:
    made = Made()
    load = make_load(made)
    load.during(victim(made, 0.1, []), "a point")
    made.dies = True
    with pytest.raises(LoadFailed, match="the background failed: rank 1 was killed by SIGKILL"):
        load.during(victim(made, 0.1, []), "a point")
    assert not load.is_at_rest


def test_the_time_limit_holds_for_the_background_too() -> None:
    made = Made()
    load = make_load(made, timeout_s=10)
    with pytest.raises(PointFailed, match=r"would have to last longer than a measurement may .*--limit above 10 s"):
        load.during(victim(made, 9.0, []), "a point")
    assert made.now_s < 40


# ---- rounds ---------------------------------------------------------------------------------------------------------


def sample(machine: Machine, *points: Point, time_s: float = 20.0) -> Notes:
    notes = Notes()
    plan = Plan("pingpong", points, limits=Limits(time_s=time_s), background=Background("bulk", 2))
    LoadSampler(plan, machine, notes, seed=3, clock=machine.clock).run(time_s)
    return notes


def test_each_round_measures_a_point_idle_and_loaded_in_turn() -> None:
    machine = Machine(lambda point: 4000.0 if point.background else 1000.0)
    other = make_point(64, "tcp")
    points = (IDLE, other, LOADED, other.under("bulk"))
    notes = sample(machine, *points)
    assert {notes.ends[point][0] for point in points} == {PointStatus.PRECISE}
    ended = {point: after for after, point in notes.history}
    assert all(ended[point] == ended[point.idle] for point in points)
    first = set()
    for measurements in notes.rounds:
        order = [each.point for each in measurements]
        assert [point.idle for point in order[::2]] == [point.idle for point in order[1::2]]
        first |= {point.background for point in order[::2]}
    assert first == {None, "bulk"}


def test_points_that_fail_under_load_leave_the_idle_ones() -> None:
    machine = Machine(lambda point: 1000.0, broken={LOADED: "the background failed: rank 0 died"})
    notes = sample(machine, IDLE, LOADED)
    assert notes.ends[LOADED] == (PointStatus.FAILED, "the background failed: rank 0 died")
    assert notes.ends[IDLE][0] is PointStatus.PRECISE


# ---- places ---------------------------------------------------------------------------------------------------------

CATALOGUE = Catalogue(
    patterns={
        kind.pattern: make_pattern(kind.pattern, frozenset(), (2, 0, 2 if name == "bulk" else 1), "root")
        for name, kind in BACKGROUNDS.items()
    },
    transports={},
    missing=(),
)
HOSTS = ("n1", "n2", "n3", "n4", "n5")


def test_hosts_are_disjoint() -> None:
    placed = place("incast", None, 2, CATALOGUE, make_placement(HOSTS))
    assert placed.placement == make_placement(HOSTS[:2])
    assert placed.background == Background("incast", 3, hosts=("n3", "n4", "n5"))
    placed = place("bulk", None, 2, CATALOGUE, make_placement(HOSTS))  # which takes pairs
    assert placed.placement == make_placement(HOSTS[:3])
    assert placed.background == Background("bulk", 2, hosts=("n4", "n5"))
    placed = place("alltoall", 4, 2, CATALOGUE, make_placement(HOSTS))  # the victims then share a host
    assert placed == (Background("alltoall", 4, hosts=HOSTS[1:]), make_placement(HOSTS[:1]))


@pytest.mark.parametrize(
    ("name", "ranks", "victims", "why"),
    [
        ("incast", None, 4, "--background incast needs 2 hosts, but the other ranks (4) leave 1 of 5: name more"),
        ("alltoall", 5, 2, "--background alltoall needs 5 hosts, but the other ranks (2) leave 3 of 5: name more"),
        ("bulk", 3, 2, "--background bulk takes 2 ranks or more, a multiple of 2, not 3"),
        ("incast", 1, 2, "--background incast takes 2 ranks or more, not 1"),
    ],
)
def test_too_few_hosts(name: str, ranks: int | None, victims: int, why: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(why)}$"):
        place(name, ranks, victims, CATALOGUE, make_placement(HOSTS))


def test_cpus_are_disjoint_unless_they_may_be_shared() -> None:
    placed = place("incast", None, 2, CATALOGUE, Placement(cpus=(4, 5, 6, 7)))
    assert (placed.placement.cpus, placed.background) == ((4, 5), Background("incast", 2, cpus=(6, 7)))
    with pytest.raises(UsageError, match=r"needs 2 CPUs, but the other ranks \(3\) leave 1 of 4: .*--oversubscribe"):
        place("incast", None, 3, CATALOGUE, Placement(cpus=(4, 5, 6, 7)))
    placed = place("incast", None, 3, CATALOGUE, Placement(cpus=(4, 5, 6, 7)), share=True)
    assert (placed.placement.cpus, placed.background) == ((4, 5, 6), Background("incast", 2, cpus=(7, 4)))
    many = len(usable_cpus())
    placed = place("alltoall", 2, many, CATALOGUE, Placement(), share=True)
    assert placed.placement.cpus == choose_cpus(many)
    assert set(placed.background.cpus) <= set(usable_cpus())


def test_a_plan_keeps_its_background() -> None:
    plan = Plan("pingpong", (IDLE, LOADED), background=Background("incast", 3, hosts=("n3", "n4", "n5")))
    assert Plan.of_run(make_stored("pingpong", plan.as_json()), plan.points) == plan
