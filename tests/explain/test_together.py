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
