"""Load of others: steal and CPU time from two reads of /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.machine.trees import grow, program, stat

from hockney.machine.activity import Moment, StealMeter, Watch


def test_steal_is_the_fraction_between_two_reads(tmp_path: Path) -> None:
    grow(tmp_path, {"proc/stat": stat((100, 100, 0), (100, 100, 0))})
    meter = StealMeter(root=tmp_path)
    grow(tmp_path, {"proc/stat": stat((130, 120, 0), (120, 120, 10))})
    assert meter.read() == 0.1
    grow(tmp_path, {"proc/stat": stat((180, 120, 0), (170, 120, 10))})
    assert meter.read() == 0.0


def test_steal_of_the_watched_cpus_only(tmp_path: Path) -> None:
    """Two busy CPUs among many idle ones, where nothing can be stolen, would hardly show."""
    grow(tmp_path, {"proc/stat": stat(*[(0, 0, 0)] * 11)})
    meter = StealMeter((1, 10), root=tmp_path)
    grow(tmp_path, {"proc/stat": stat((50, 50, 0), (50, 0, 50), *[(0, 100, 0)] * 8, (100, 0, 0))})
    assert meter.read() == 0.25


def test_time_too_short_for_a_tick_counts_next_time(tmp_path: Path) -> None:
    grow(tmp_path, {"proc/stat": stat((100, 100, 5))})
    meter = StealMeter(root=tmp_path)
    assert meter.read() is None
    grow(tmp_path, {"proc/stat": stat((101, 100, 6))})
    assert meter.read() == 0.5


@pytest.mark.parametrize("text", ["", "cpu 1 2 3\n", "cpu a b c d e f g h\n", "intr 1\n"])
def test_steal_is_unknown_if_the_system_does_not_count_it(text: str, tmp_path: Path) -> None:
    assert StealMeter(root=tmp_path).read() is None
    grow(tmp_path, {"proc/stat": text})
    assert StealMeter(root=tmp_path).read() is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="this system has no /proc/stat")
def test_steal_of_this_machine_is_a_fraction() -> None:
    meter = StealMeter()
    time.sleep(0.5)  # many a clock tick, in which the CPUs were busy or idle
    value = meter.read()
    assert value is not None
    assert 0 <= value <= 1


def watched(
    root: Path,
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    own_s: float,
    cpus: tuple[int, ...] | None = None,
) -> Moment:
    """The result of a watch over 10 s in which hockney's jobs used this much CPU time."""
    own_times, clock = iter((5.0, 5.0 + own_s)), iter((100.0, 110.0))
    grow(root, before)
    watch = Watch(lambda: next(own_times), cpus, root=root, clock=lambda: next(clock))
    grow(root, after)
    return watch.read()


def test_others_used_the_rest_of_the_cpu_time(tmp_path: Path) -> None:
    """Including programs that have ended, whose names are unknown."""
    moment = watched(
        tmp_path,
        {"proc/stat": stat((0, 0, 0), (0, 0, 0))},
        {"proc/stat": stat((900, 100, 0), (600, 400, 0))},
        own_s=12.0,
    )
    assert (moment.duration_s, moment.programs) == (10.0, ())
    assert moment.busy_cpus == pytest.approx(0.3)


def test_programs_of_low_priority_count(tmp_path: Path) -> None:
    line = "cpu  700 400 500 0 0 0 0 0 0 0\ncpu0 700 400 500 0 0 0 0 0 0 0\n"
    moment = watched(tmp_path, {"proc/stat": stat((0, 0, 0))}, {"proc/stat": line}, own_s=12.0)
    assert moment.busy_cpus == pytest.approx(0.4)


def test_interrupts_are_not_counted(tmp_path: Path) -> None:
    """A kernel with separate counts for them would else show our messages' interrupts as another program."""
    line = "cpu  700 0 500 0 0 100 600 0 0 0\ncpu0 700 0 500 0 0 100 600 0 0 0\n"
    moment = watched(tmp_path, {"proc/stat": stat((0, 0, 0))}, {"proc/stat": line}, own_s=12.0)
    assert (moment.busy_cpus, moment.programs) == (0.0, ())


def test_visible_programs_give_a_lower_bound(tmp_path: Path) -> None:
    """The ticks of all may miss some of our jobs' time; a program that began meanwhile did all its work then."""
    before = {"proc/stat": stat((0, 0, 0), (0, 0, 0)), **program(7, "cc1", 1000), **program(8, "sh", 5, began=3)}
    after = {
        "proc/stat": stat((900, 100, 0), (600, 400, 0)),
        **program(7, "cc1", 1250),
        **program(8, "another", 500, began=900),
        **program(9, "rank", 700, began=900, state="Z"),
    }
    moment = watched(tmp_path, before, after, own_s=15.0)
    assert [(one.name, one.pid, one.cpus) for one in moment.programs] == [("another", 8, 0.5), ("cc1", 7, 0.25)]
    assert moment.busy_cpus == 0.75
    # Their CPUs are unknown, so they are no sign if only some CPUs are ours to use.
    some = watched(tmp_path, before, after, own_s=8.0, cpus=(0,))
    assert some.busy_cpus == pytest.approx(0.1)


def test_a_short_watch_is_unknown_and_the_next_begins_again(tmp_path: Path) -> None:
    clock = iter((0.0, 0.2, 1.2))
    watch = Watch(lambda: 0.0, root=tmp_path, clock=lambda: next(clock))
    grow(tmp_path, {"proc/stat": stat((20, 0, 0))})
    assert watch.read().busy_cpus is None
    grow(tmp_path, {"proc/stat": stat((60, 60, 0))})
    assert watch.read().busy_cpus == 0.4


@pytest.mark.parametrize(("length_s", "is_known"), [(0.29, False), (0.3, True)])
def test_a_watch_of_three_tenths_of_a_second_is_long_enough(length_s: float, is_known: bool, tmp_path: Path) -> None:
    clock = iter((0.0, length_s))
    grow(tmp_path, {"proc/stat": stat((0, 0, 0))})
    watch = Watch(lambda: 0.0, root=tmp_path, clock=lambda: next(clock))
    grow(tmp_path, {"proc/stat": stat((15, 15, 0))})
    assert (watch.read().busy_cpus is not None) is is_known


@pytest.mark.parametrize(
    ("used", "named"),
    [
        ({"more": 300, "most": 400, "least": 100, "less": 200}, ["most", "more", "less"]),
        ({"hardly": 99, "enough": 100}, ["enough"]),
    ],
)
def test_three_programs_are_named_that_used_a_tenth_of_a_cpu_or_more(
    used: dict[str, int], named: list[str], tmp_path: Path
) -> None:
    """In 10 s, of 100 clock ticks each."""
    before, after = {"proc/stat": stat((0, 0, 0))}, {"proc/stat": stat((1000, 0, 0))}
    for pid, (name, ticks) in enumerate(used.items(), 10):
        before |= program(pid, name, 7)
        after |= program(pid, name, 7 + ticks)
    assert [one.name for one in watched(tmp_path, before, after, own_s=0.0).programs] == named


def test_a_watch_where_nothing_is_known(tmp_path: Path) -> None:
    assert watched(tmp_path, {}, {}, own_s=1.0) == Moment(10.0)


def test_busy_programs_are_named_without_ours_and_the_kernels(tmp_path: Path) -> None:
    before = {**program(7, "a (b) c", 1500), **program(8, "idle", 10), **program(os.getpid(), "me", 0)}
    after = {
        **program(7, "a (b) c", 2400),
        **program(os.getpid(), "me", 300),
        **program(11, "new", 200, began=50),
        **program(3, "ksoftirqd/0", 700, began=0, flags=0x04208040),
        "proc/9/stat": "",
    }
    ticks = {"proc/stat": stat((0, 0, 0), (0, 0, 0))}, {"proc/stat": stat((900, 80, 20), (300, 700, 0))}
    moment = watched(tmp_path, {**ticks[0], **before}, {**ticks[1], **after}, own_s=0.0)
    assert (moment.steal, moment.busy_cpus) == (0.01, 1.2)
    assert [(each.name, each.pid, each.cpus) for each in moment.programs] == [("a (b) c", 7, 0.9), ("new", 11, 0.2)]


@pytest.mark.parametrize(("ticks", "steal"), [(1, 0.0), (2, 0.2)])
def test_a_single_stolen_tick_is_no_evidence(ticks: int, steal: float, tmp_path: Path) -> None:
    stats = {"proc/stat": stat((0, 0, 10))}, {"proc/stat": stat((0, 10 - ticks, 10 + ticks))}
    assert watched(tmp_path, *stats, own_s=0.0).steal == steal
