"""Jumps are judged by the rounds that measured both sizes: so drift is told from a change of protocol."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.explain.drift import POWERS, drifts, false_switches, measured, places, straight, told
from tests.made_up_machine import Machine, jumping_after

from hockney.model import Point, Visit


@pytest.mark.parametrize("every_s", [15.0, 31.0])
@pytest.mark.parametrize("by", [0.1, 0.3])
def test_a_machine_that_drifts_has_no_protocol_switch(every_s: float, by: float) -> None:
    assert false_switches(every_s, by, seed=7) == []


@pytest.mark.parametrize("every_s", [7.0, 15.0, 31.0])
@pytest.mark.parametrize("last_bytes", [1000, 4040])
def test_a_jump_on_a_machine_that_drifts_is_found_to_a_byte(every_s: float, last_bytes: int) -> None:
    assert places(every_s, 0.3, 7, last_bytes) == [(last_bytes, last_bytes + 1)]


def test_the_height_of_a_jump_is_that_of_one_speed(tmp_path: Path) -> None:
    machine = Machine(jumping_after(4040), noise=0.003, pause_s=0.05, drift=drifts(23.0, 0.2))
    (switch,) = (one for one in told(tmp_path / "r.db", measured(machine)) if one.kind == "protocol switch")
    (jump,) = [one.value for one in switch.evidence if one.what == "jump"]
    height_ns = (200 + 4041 / 10) * 0.5
    assert jump.low <= 1.2 * height_ns
    assert jump.high >= height_ns


def test_the_rounds_of_two_sizes_that_were_never_measured_together_tell_no_jump(tmp_path: Path) -> None:
    """What was stored before added sizes and their neighbours were measured in the same rounds."""
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    points = [Point("mpi", "pingpong", 2, size) for size in POWERS[8:]]

    def visit(point: Point, round_: int) -> Visit:
        return machine.measure(point, round_=round_, batch=10, samples=3, warmup=0, verify=True)

    half = len(points) // 2
    early = [visit(point, round_) for round_ in range(8) for point in points[:half]]
    machine.now_s = 2.0
    late = [visit(point, round_) for round_ in range(4, 12) for point in points[half:]]
    apart = [replace(one, round=one.round + 8) for one in late]
    (doubtful,) = told(tmp_path / "apart.db", [*early, *apart])
    assert doubtful.kind == "a jump that may be drift"
    assert "but no round measured both sizes" in doubtful.sentence
    assert re.search(r"`hockney run pingpong -t mpi .* --refine --launches 1`", doubtful.remedy or "")
    (few,) = told(tmp_path / "few.db", [*early, *late])
    assert "but only 4 rounds measured both sizes" in few.sentence


def test_what_the_same_rounds_do_not_show_is_no_jump_whatever_all_visits_say(tmp_path: Path) -> None:
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    points = [Point("mpi", "pingpong", 2, size) for size in POWERS[8:]]
    half = len(points) // 2
    visits = []
    for round_ in range(40):
        machine.now_s = 0.0 if round_ < 14 else 2.0
        part = points if round_ < 7 else points[:half] if round_ < 14 else points[half:]
        visits += [machine.measure(one, round_=round_, batch=10, samples=3, warmup=0, verify=True) for one in part]
    (doubtful,) = told(tmp_path / "r.db", visits)
    assert doubtful.kind == "a jump that may be drift"
    assert "in the 7 rounds that measured 16 KiB and 32 KiB it is anything from" in doubtful.sentence


def test_too_few_sizes_below_a_jump_for_a_line_are_told_with_their_jump(tmp_path: Path) -> None:
    """From a start-up of 200 ns to one of 2.4 us after 512 B, of which two sizes are on its side."""
    machine = Machine(lambda point: (200 if point.bytes <= 512 else 2400) + point.bytes / 10, noise=0.003)
    sizes = [256 << n for n in range(9)]
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, sizes))
    assert (jump.kind, jump.sizes_bytes) == ("protocol switch", (512, 1024))
    assert "more than in proportion to the size: it jumps by" in jump.sentence
    (height,) = [one.value for one in jump.evidence if one.what == "jump"]
    assert height.low <= 2200 <= height.high


def test_a_longer_message_that_takes_less_is_told_wherever_it_lies(tmp_path: Path) -> None:
    """Two sizes beside a line that else goes straight: at 1.4 times its time none takes longer than the next one."""

    def falls(by: float) -> list[tuple[int, ...]]:
        machine = Machine(lambda point: straight(point) * (by if point.bytes in (8192, 16384) else 1), noise=0.003)
        findings = told(tmp_path / f"{by}.db", rounds_of(machine, [256 << n for n in range(11)]))
        return [one.sizes_bytes for one in findings if "less for a longer message: it falls by" in one.sentence]

    assert falls(1.4) == []
    assert falls(2.5) == [(16384, 32768)]


def rounds_of(machine: Machine, sizes: list[int], count: int = 12) -> list[Visit]:
    points = [Point("mpi", "pingpong", 2, size) for size in sizes]
    return [
        machine.measure(one, round_=round_, batch=10, samples=3, warmup=0, verify=True)
        for round_ in range(count)
        for one in points
    ]


@pytest.mark.parametrize("is_real", [True, False])
def test_a_jump_that_the_rounds_of_another_state_show_is_no_drift(tmp_path: Path, is_real: bool) -> None:
    """Near, only four rounds measured both of its sizes; far, all did, and none of the others."""
    sizes = POWERS[8:]
    half = len(sizes) // 2

    def time_ns(point: Point) -> float:
        return straight(point) * (1.3 if is_real and point.bytes >= sizes[half] else 1)

    def visits(chosen: list[int], rounds: range, floor_ns: float, drift: float = 1.0) -> list[Visit]:
        machine = Machine(time_ns, noise=0.001, floor_ns=lambda now_s: floor_ns, drift=lambda now_s: drift)
        points = [Point("mpi", "pingpong", 2, size) for size in chosen]
        return [
            machine.measure(one, round_=round_, batch=10, samples=3, warmup=0, verify=True)
            for round_ in rounds
            for one in points
        ]

    later = 1.0 if is_real else 1.3
    near = [*visits(sizes[:half], range(8), 27), *visits(sizes[half:], range(4, 12), 27, later)]
    far = visits([sizes[half - 1], sizes[half]], range(20, 30), 270)
    (alone,) = told(tmp_path / "alone.db", near)
    assert alone.kind == "a jump that may be drift"
    (seen,) = told(tmp_path / "both.db", [*near, *far])
    assert seen.sizes_bytes == (sizes[half - 1], sizes[half])
    assert seen.kind == ("protocol switch" if is_real else "a jump that may be drift")
    assert ("the rounds of far have a jump there, too" in seen.sentence) is is_real
    # As the line has it, which is narrower than the sizes: those stand beside it.
    assert "the line through the medians of pingpong jumps by" in seen.sentence
    assert "where the two sizes themselves take" in seen.sentence
    assert seen.effect > 0.1
