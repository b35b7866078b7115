"""Jumps are judged by the rounds that measured both sizes: so drift is told from a change of protocol."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch
from tests.explain.readings import found
from tests.made_up_machine import Machine, jumping_after, plan_of, sample

from hockney.explain import Finding
from hockney.explain.curve import read_run
from hockney.library import Run
from hockney.model import Point, Visit
from hockney.store import Store

POWERS = [0, *(1 << n for n in range(3, 21))]


def straight(point: Point) -> float:
    return 200 + point.bytes / 10


def told(path: Path, visits: list[Visit]) -> list[Finding]:
    """What explain says of the switches of a run of these visits."""
    points = list(dict.fromkeys(visit.point for visit in visits))
    with Store.open(path) as store:
        run = store.create_run(make_info(), points)
        launch = store.add_launch(run, make_launch(transport="mpi"))
        store.write_round(run, [replace(visit, launch_id=launch) for visit in visits])
        return found("protocol switches", read_run(Run(store, run)))


def measured(machine: Machine) -> list[Visit]:
    """As the sampler would measure it with --refine."""
    points = [Point("mpi", "pingpong", 2, size) for size in POWERS]
    notes = sample(machine, replace(plan_of(*points, refine=True), exact=True), budget_s=600)
    return [visit for visits in notes.rounds for visit in visits]


def drifts(every_s: float, by: float) -> Callable[[float], float]:
    """A machine that goes at two speeds, for so long each, and no floor shows it."""
    return lambda now_s: 1 + by * (int(now_s / every_s) % 2)


class Uneven(Machine):
    """Long messages scatter more, so they are measured for longer."""

    def measure(self, point: Point, **more: Any) -> Visit:
        self.noise = 0.002 if point.bytes <= 4096 else 0.03
        return super().measure(point, **more)


@pytest.mark.parametrize("every_s", [15.0, 25.0])
@pytest.mark.parametrize("by", [0.1, 0.3])
def test_a_machine_that_drifts_has_no_protocol_switch(tmp_path: Path, every_s: float, by: float) -> None:
    visits = measured(Uneven(straight, pause_s=0.05, drift=drifts(every_s, by)))
    assert [one.sentence for one in told(tmp_path / "r.db", visits) if one.kind == "protocol switch"] == []


@pytest.mark.parametrize("every_s", [7.0, 23.0, 31.0])
@pytest.mark.parametrize("last_bytes", [4040, 8255])
def test_a_jump_on_a_machine_that_drifts_is_found_to_a_byte(tmp_path: Path, every_s: float, last_bytes: int) -> None:
    machine = Machine(jumping_after(last_bytes), noise=0.003, pause_s=0.05, drift=drifts(every_s, 0.2))
    switches = [one for one in told(tmp_path / "r.db", measured(machine)) if one.kind == "protocol switch"]
    assert [one.sizes_bytes for one in switches] == [(last_bytes, last_bytes + 1)]
    (jump,) = [one.value for one in switches[0].evidence if one.what == "jump"]
    height_ns = (200 + (last_bytes + 1) / 10) * 0.5
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
