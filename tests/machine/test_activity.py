"""What others take: steal and load out of two looks at /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.machine.trees import grow, stat

from hockney.machine import StealMeter, observe


def test_steal_is_the_fraction_between_two_looks(tmp_path: Path) -> None:
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
def test_steal_is_unknown_where_nobody_counts_it(text: str, tmp_path: Path) -> None:
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


def test_a_moment_names_the_busy_programs(tmp_path: Path) -> None:
    rest = " ".join(["0"] * 9)
    grow(
        tmp_path,
        {
            "proc/stat": stat((0, 0, 0), (0, 0, 0)),
            "proc/7/stat": f"7 (a (b) c) S 1 {rest} 100 50 0 0",
            "proc/8/stat": f"8 (idle) S 1 {rest} 5 5 0 0",
            f"proc/{os.getpid()}/stat": f"{os.getpid()} (me) R 1 {rest} 0 0 0 0",
            "proc/9/stat": "",
        },
    )

    def meanwhile(duration_s: float) -> None:
        grow(
            tmp_path,
            {
                "proc/stat": stat((90, 8, 2), (30, 70, 0)),
                "proc/7/stat": f"7 (a (b) c) R 1 {rest} 150 90 0 0",
                f"proc/{os.getpid()}/stat": f"{os.getpid()} (me) R 1 {rest} 30 0 0 0",
                "proc/11/stat": f"11 (new) R 1 {rest} 500 0 0 0",  # older than its first sight: nothing is known
            },
        )

    moment = observe(1.0, root=tmp_path, sleep=meanwhile)
    assert moment.steal == 0.01
    assert moment.busy_cpus == 1.2
    assert [(program.name, program.pid, program.cpus) for program in moment.programs] == [("a (b) c", 7, 0.9)]


def test_a_single_stolen_tick_is_no_evidence(tmp_path: Path) -> None:
    grow(tmp_path, {"proc/stat": stat((0, 0, 0))})

    def meanwhile(duration_s: float) -> None:
        grow(tmp_path, {"proc/stat": stat((0, 9, 1))})

    assert observe(0.1, root=tmp_path, sleep=meanwhile).steal == 0.0


def test_a_moment_where_nothing_is_known(tmp_path: Path) -> None:
    moment = observe(0.1, root=tmp_path, sleep=lambda _: None)
    assert (moment.steal, moment.busy_cpus, moment.programs) == (None, None, ())
