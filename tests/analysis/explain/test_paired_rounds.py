"""Jumps are judged by the rounds that measured both sizes: so drift is told from a change of protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.analysis.explain.drift import POWERS, drifts, false_switches, measured, places, straight, told
from tests.matrix import matrix
from tests.measure.made_up_machine import Machine, jumping_after

from hockney.model import Measurement, Point

LONG = POWERS[8:]
BOTH_BYTES = LONG[len(LONG) // 2 - 1], LONG[len(LONG) // 2]


@pytest.mark.parametrize("every_s", matrix([15.0, 31.0], short=[31.0]))
@pytest.mark.parametrize("by", matrix([0.1, 0.3], short=[0.3]))
def test_a_machine_that_drifts_has_no_protocol_switch(every_s: float, by: float) -> None:
    assert false_switches(every_s, by, seed=7) == []


@pytest.mark.parametrize("every_s", matrix([7.0, 15.0, 31.0], short=[31.0]))
@pytest.mark.parametrize("last_bytes", matrix([1000, 4040], short=[4040]))
def test_a_jump_on_a_machine_that_drifts_is_found_to_a_byte(every_s: float, last_bytes: int) -> None:
    assert places(every_s, 0.3, 7, last_bytes) == [(last_bytes, last_bytes + 1)]


def test_the_height_of_a_jump_is_that_of_one_speed(tmp_path: Path) -> None:
    machine = Machine(jumping_after(4040), noise=0.003, pause_s=0.05, drift=drifts(23.0, 0.2))
    (switch,) = (one for one in told(tmp_path / "r.db", measured(machine)) if one.facts.get("answer") == "confirmed")
    height_ns = (200 + 4041 / 10) * 0.5
    assert switch.facts["jump_ns"].low <= 1.2 * height_ns
    assert switch.facts["jump_ns"].high >= height_ns


@pytest.mark.parametrize("rounds", [0, 4])
def test_a_jump_between_sizes_that_too_few_rounds_measured_is_suspected(tmp_path: Path, rounds: int) -> None:
    """The machine slowed down between the measurements of the short and of the long sizes."""
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    half = len(LONG) // 2
    early = rounds_of(machine, pingpongs(LONG[:half]), range(8))
    machine.now_s = 2.0
    late = rounds_of(machine, pingpongs(LONG[half:]), range(8 - rounds, 16 - rounds))
    (switch,) = told(tmp_path / "r.db", [*early, *late])
    assert (switch.code, switch.facts["answer"], switch.cause) == ("protocol switch", "suspected", "drift")
    assert switch.facts["rounds"] == rounds
    assert switch.fix is not None
    assert "--refine" in switch.fix.argv


def test_what_the_same_rounds_do_not_show_is_drift_or_suspected(tmp_path: Path) -> None:
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    points = pingpongs(LONG)
    half = len(points) // 2
    measurements = []
    for round_ in range(40):
        machine.now_s = 0.0 if round_ < 14 else 2.0
        part = points if round_ < 7 else points[:half] if round_ < 14 else points[half:]
        measurements += rounds_of(machine, part, range(round_, round_ + 1))
    (finding,) = told(tmp_path / "r.db", measurements)
    assert finding.code == "drift" or finding.cause == "drift"
    assert finding.facts["rounds"] == 7


def test_too_few_sizes_below_a_jump_for_a_line(tmp_path: Path) -> None:
    """From a start-up of 200 ns to one of 2.4 us after 512 B, of which two sizes are on its side."""
    machine = Machine(lambda point: (200 if point.bytes <= 512 else 2400) + point.bytes / 10, noise=0.003)
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(256 << n for n in range(9)), range(12)))
    assert (jump.code, jump.subject.sizes_bytes) == ("protocol switch", (512, 1024))
    assert jump.facts["jump_ns"].low <= 2200 <= jump.facts["jump_ns"].high


@pytest.mark.parametrize(("by", "sizes_bytes"), [(1.4, []), (2.5, [(16384, 32768)])])
def test_a_longer_message_that_takes_less(tmp_path: Path, by: float, sizes_bytes: list[tuple[int, int]]) -> None:
    """Two sizes next to a line that is straight otherwise: at 1.4 times its time none takes longer than the next."""
    machine = Machine(lambda point: straight(point) * (by if point.bytes in (8192, 16384) else 1), noise=0.003)
    findings = told(tmp_path / "r.db", rounds_of(machine, pingpongs(256 << n for n in range(11)), range(12)))
    assert [one.subject.sizes_bytes for one in findings if "fall_ns" in one.facts] == sizes_bytes


def test_a_single_size_above_its_line_is_no_switch(tmp_path: Path) -> None:
    machine = Machine(lambda point: straight(point) * (2.5 if point.bytes == 4096 else 1), noise=0.003)
    assert told(tmp_path / "r.db", rounds_of(machine, pingpongs(256 << n for n in range(9)), range(12))) == []


def test_a_line_that_begins_below_zero_is_a_jump_at_its_documented_size(tmp_path: Path) -> None:
    """As of a pipe: what it holds, 64 KiB, already takes longer, and from there on each byte takes more than before."""
    sizes = [*(1024 << n for n in range(6)), 38976, 44352, 55104, 60096, *(65536 << n for n in range(5))]
    machine = Machine(
        lambda point: 18_500 + 0.13 * point.bytes if point.bytes < 65536 else 0.86 * point.bytes - 20_800, noise=0.003
    )
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes, "pipe"), range(12)))
    assert (jump.facts["answer"], jump.subject.sizes_bytes) == ("confirmed", (60096, 65536))
    assert jump.facts["threshold"] == "capacity of a pipe"


def test_a_rise_to_the_last_size_may_be_a_caches(tmp_path: Path) -> None:
    """The last size alone takes longer: too few lie beyond it for a line of their own."""
    machine = Machine(lambda point: straight(point) + (5000 if point.bytes == 16384 else 0), noise=0.003)
    sizes = [*(8 << n for n in range(10)), 16384]
    (rise,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes), range(12)))
    assert (rise.facts["answer"], rise.cause, rise.facts["cache_bytes"]) == ("suspected", "cache", 8192)


def test_a_small_jump_from_one_byte_to_the_next_though_a_line_passes_both(tmp_path: Path) -> None:
    """7 % among sizes that miss their line by 3 % this way and that, which hides it from the fit."""
    machine = Machine(
        lambda point: (
            straight(point) * (1.07 if point.bytes > 8192 else 1) * (1 + 0.03 * (-1) ** point.bytes.bit_length())
        ),
        noise=0.003,
    )
    sizes = sorted({*(512 << n for n in range(9)), 8193})
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes), range(12)))
    assert (jump.facts["answer"], jump.subject.sizes_bytes) == ("confirmed", (8192, 8193))


def test_a_second_jump_behind_a_few_sizes_that_lie_on_no_line(tmp_path: Path) -> None:
    """As of MPICH 5 told to copy at once from 16 KiB on: two sizes lie between its two switches."""

    def time_ns(point: Point) -> float:
        start_ns = 800 if point.bytes <= 4096 else 1850 if point.bytes < 16384 else 2500
        return start_ns + point.bytes * (0.06 if point.bytes >= 16384 else 0.03)

    sizes = [512, 1024, 2048, 4096, 8192, 12288, 16384, 32768, 65536]
    jumps = told(tmp_path / "r.db", rounds_of(Machine(time_ns, noise=0.003), pingpongs(sizes), range(12)))
    assert sorted(one.subject.sizes_bytes for one in jumps) == [(4096, 8192), (12288, 16384)]


def test_no_line_that_misses_its_sizes_hides_the_jump_between_them(tmp_path: Path) -> None:
    """As of Open MPI over TCP: a size below the jump and two above it come out as one line, steeper than the times."""
    high_ns = {24576: 7350.0, 32768: 11_800.0, 65536: 21_200.0}

    def machine(at_32k_ns: float) -> Machine:
        times_ns = {**high_ns, 32768: at_32k_ns}
        return Machine(lambda point: times_ns.get(point.bytes, 6050 + 0.055 * point.bytes), noise=0.003)

    points = pingpongs([3072, 4096, 6144, 8192, 12288, 16384, *high_ns])
    measurements = [*rounds_of(machine(11_800), points, range(8)), *rounds_of(machine(10_500), points, range(8, 12))]
    (jump,) = told(tmp_path / "r.db", measurements)
    assert jump.subject.sizes_bytes == (24576, 32768)


CLOSE = [*(1024 << n for n in range(6)), 36000, 39600]  # the last two a tenth apart, as closely as --refine measures


def rising(point: Point) -> float:
    """A quarter at each of the last steps, far more than in proportion."""
    return (200 + min(point.bytes, 32768) / 10) * 1.25 ** sum(point.bytes >= size for size in CLOSE[-2:])


def test_rises_from_size_to_size_are_one_curved_finding(tmp_path: Path) -> None:
    (rise,) = told(tmp_path / "r.db", rounds_of(Machine(rising, noise=0.003), pingpongs(CLOSE), range(12)))
    assert (rise.code, rise.cause, rise.subject.sizes_bytes[-1]) == ("bend", "curved", 39600)


def test_a_refined_run_that_would_add_no_size_has_no_fix(tmp_path: Path) -> None:
    """Where it would add one, it is to measure for longer."""
    machine = Machine(lambda point: (200 if point.bytes <= 512 else 2400) + point.bytes / 10, noise=0.003)
    refined = {"exact": True, "time_s": 40.0}
    doubling = [256 << n for n in range(9)]
    (wide,) = told(tmp_path / "w.db", rounds_of(machine, pingpongs(doubling), range(12)), plan=refined)
    assert wide.fix is not None
    assert wide.fix.argv[-2:] == ("--time", "80s")
    measurements = rounds_of(machine, pingpongs(sorted({*doubling, 513})), range(12))
    (close,) = told(tmp_path / "c.db", measurements, plan=refined)
    assert (close.subject.sizes_bytes, close.fix) == ((512, 513), None)


def pingpongs(sizes: Iterable[int], transport: str = "mpi") -> list[Point]:
    return [Point(transport, "pingpong", 2, size) for size in sizes]


def rounds_of(machine: Machine, points: Sequence[Point], rounds: Iterable[int]) -> list[Measurement]:
    return [
        machine.measure(one, round_=round_, batch=10, samples=3, warmup=0, verify=True)
        for round_ in rounds
        for one in points
    ]
