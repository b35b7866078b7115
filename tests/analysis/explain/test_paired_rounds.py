"""Jumps are judged by the rounds that measured both sizes: this separates drift from a change of protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.analysis.explain.drift import POWERS, drifts, false_switches, findings_of, measured, places, straight
from tests.matrix import matrix
from tests.measure.made_up_machine import Machine, jumping_after

from hockney.model import Measurement, Point

LONG = POWERS[8:]


@pytest.mark.parametrize("every_s", matrix([15.0, 31.0], short=[31.0]))
@pytest.mark.parametrize("by", matrix([0.1, 0.3], short=[0.3]))
def test_a_machine_that_drifts_has_no_protocol_switch(every_s: float, by: float) -> None:
    assert false_switches(every_s, by, seed=7) == []


@pytest.mark.parametrize("last_bytes", matrix([1000, 4040], short=[4040]))
@pytest.mark.parametrize("periods_s", matrix([(31.0,), (7.0, 9.0, 13.0, 15.0, 20.0, 31.0)], short=[(31.0,)]))
def test_a_jump_on_a_machine_that_drifts_is_never_said_to_be_elsewhere(
    last_bytes: int, periods_s: tuple[float, ...]
) -> None:
    """Whether it is found to a byte depends on how the drift and the rounds meet."""
    found = [places(every_s, 0.3, 7, last_bytes) for every_s in periods_s]
    assert all(below <= last_bytes < above for each in found for below, above in each)
    assert found.count([(last_bytes, last_bytes + 1)]) >= len(found) / 3


def test_the_height_of_a_jump_is_that_of_one_speed(tmp_path: Path) -> None:
    machine = Machine(jumping_after(4040), noise=0.003, pause_s=0.05, drift=drifts(23.0, 0.2))
    (switch,) = (
        one for one in findings_of(tmp_path / "r.db", measured(machine)) if one.facts.get("answer") == "confirmed"
    )
    height_ns = (200 + 4041 / 10) * 0.5
    assert switch.facts["jump_ns"].low <= 1.2 * height_ns
    assert switch.facts["jump_ns"].high >= height_ns


@pytest.mark.parametrize("last_bytes", [4040, 4050, 4056])
def test_rounds_place_a_jump_that_drift_hides_among_close_sizes(tmp_path: Path, last_bytes: int) -> None:
    """Close sizes were measured at both speeds, so that their intervals are wider than half of the jump."""
    close = pingpongs([4036, 4040, 4041, 4050, 4051, 4056, 4057, 4072])
    machine = Machine(jumping_after(last_bytes), noise=0.003, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    measurements = rounds_of(machine, sorted([*pingpongs(LONG), *close], key=lambda point: point.bytes), range(10))
    machine.now_s = 2.0
    measurements += rounds_of(machine, close[1:-1], range(10, 20))
    jumps = [one for one in findings_of(tmp_path / "r.db", measurements) if one.cause != "drift"]
    assert [(one.facts.get("answer"), one.subject.sizes_bytes) for one in jumps] == [
        ("confirmed", (last_bytes, last_bytes + 1))
    ]


@pytest.mark.parametrize("rounds", [0, 4])
def test_a_jump_between_sizes_that_too_few_rounds_measured_is_suspected(tmp_path: Path, rounds: int) -> None:
    """The machine slowed down between the measurements of the short and of the long sizes."""
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    half = len(LONG) // 2
    early = rounds_of(machine, pingpongs(LONG[:half]), range(8))
    machine.now_s = 2.0
    late = rounds_of(machine, pingpongs(LONG[half:]), range(8 - rounds, 16 - rounds))
    (switch,) = findings_of(tmp_path / "r.db", [*early, *late])
    assert (switch.code, switch.facts["answer"], switch.cause) == ("protocol switch", "suspected", "drift")
    assert switch.facts["rounds"] == rounds
    assert switch.fix is not None
    assert "--refine" in switch.fix.argv


def test_a_jump_missing_in_common_rounds_is_drift_or_suspected(tmp_path: Path) -> None:
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    points = pingpongs(LONG)
    half = len(points) // 2
    measurements = []
    for round_ in range(40):
        machine.now_s = 0.0 if round_ < 14 else 2.0
        part = points if round_ < 7 else points[:half] if round_ < 14 else points[half:]
        measurements += rounds_of(machine, part, range(round_, round_ + 1))
    (finding,) = findings_of(tmp_path / "r.db", measurements)
    assert finding.code == "drift" or finding.cause == "drift"
    assert finding.facts["rounds"] == 7


def test_a_single_size_above_its_line_is_no_switch(tmp_path: Path) -> None:
    machine = Machine(lambda point: straight(point) * (2.5 if point.bytes == 4096 else 1), noise=0.003)
    (slow,) = findings_of(tmp_path / "r.db", rounds_of(machine, pingpongs(256 << n for n in range(9)), range(12)))
    assert (slow.code, slow.facts["size_bytes"]) == ("slow size", 4096)


def test_a_line_that_begins_below_zero_is_a_jump_at_its_documented_size(tmp_path: Path) -> None:
    """As with a pipe: its capacity, 64 KiB, already takes longer, and from there on each byte takes more."""
    sizes = [*(1024 << n for n in range(6)), 38976, 44352, 55104, 60096, *(65536 << n for n in range(5))]
    machine = Machine(
        lambda point: 18_500 + 0.13 * point.bytes if point.bytes < 65536 else 0.86 * point.bytes - 20_800, noise=0.003
    )
    (jump,) = findings_of(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes, "pipe"), range(12)))
    assert (jump.facts["answer"], jump.subject.sizes_bytes) == ("confirmed", (60096, 65536))
    assert jump.facts["threshold"] == "capacity of a pipe"


def pingpongs(sizes: Iterable[int], transport: str = "mpi") -> list[Point]:
    return [Point(transport, "pingpong", 2, size) for size in sizes]


def rounds_of(machine: Machine, points: Sequence[Point], rounds: Iterable[int]) -> list[Measurement]:
    return [
        machine.measure(point, round_=round_, batch=10, samples=3, warmup=0, verify=True)
        for round_ in rounds
        for point in points
    ]
