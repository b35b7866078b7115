"""Jumps are judged by the rounds that measured both sizes: so drift is told from a change of protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.analysis.explain.drift import POWERS, drifts, false_switches, measured, places, straight, told
from tests.measure.made_up_machine import Machine, jumping_after

from hockney.model import Measurement, Point, PointStatus

LONG = POWERS[8:]
BOTH_BYTES = LONG[len(LONG) // 2 - 1], LONG[len(LONG) // 2]
DRIFT = "a jump that may be drift"


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

    def measurement(point: Point, round_: int) -> Measurement:
        return machine.measure(point, round_=round_, batch=10, samples=3, warmup=0, verify=True)

    half = len(points) // 2
    early = [measurement(point, round_) for round_ in range(8) for point in points[:half]]
    machine.now_s = 2.0
    late = [measurement(point, round_) for round_ in range(4, 12) for point in points[half:]]
    apart = [replace(one, round=one.round + 8) for one in late]
    (doubtful,) = told(tmp_path / "apart.db", [*early, *apart])
    assert doubtful.kind == DRIFT
    assert "but no round measured both sizes" in doubtful.sentence
    assert re.search(r"`hockney run pingpong -t mpi .* --refine --launches 1`", doubtful.remedy or "")
    (few,) = told(tmp_path / "few.db", [*early, *late])
    assert "but only 4 rounds measured both sizes" in few.sentence


def test_what_the_same_rounds_do_not_show_is_no_jump_whatever_all_measurements_say(tmp_path: Path) -> None:
    machine = Machine(straight, noise=0.001, drift=lambda now_s: 1.0 if now_s < 1 else 1.3)
    points = [Point("mpi", "pingpong", 2, size) for size in POWERS[8:]]
    half = len(points) // 2
    measurements = []
    for round_ in range(40):
        machine.now_s = 0.0 if round_ < 14 else 2.0
        part = points if round_ < 7 else points[:half] if round_ < 14 else points[half:]
        measurements += [
            machine.measure(one, round_=round_, batch=10, samples=3, warmup=0, verify=True) for one in part
        ]
    (doubtful,) = told(tmp_path / "r.db", measurements)
    assert doubtful.kind == DRIFT
    assert "in the 7 rounds that measured 16 KiB and 32 KiB it is anything from" in doubtful.sentence


def test_too_few_sizes_below_a_jump_for_a_line_are_told_with_their_jump(tmp_path: Path) -> None:
    """From a start-up of 200 ns to one of 2.4 us after 512 B, of which two sizes are on its side."""
    machine = Machine(lambda point: (200 if point.bytes <= 512 else 2400) + point.bytes / 10, noise=0.003)
    sizes = [256 << n for n in range(9)]
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes), range(12)))
    assert (jump.kind, jump.sizes_bytes) == ("protocol switch", (512, 1024))
    assert "more than in proportion to the size: it jumps by" in jump.sentence
    (height,) = [one.value for one in jump.evidence if one.what == "jump"]
    assert height.low <= 2200 <= height.high


def test_a_longer_message_that_takes_less_is_told_wherever_it_lies(tmp_path: Path) -> None:
    """Two sizes beside a line that else goes straight: at 1.4 times its time none takes longer than the next one."""

    def falls(by: float) -> list[tuple[int, ...]]:
        machine = Machine(lambda point: straight(point) * (by if point.bytes in (8192, 16384) else 1), noise=0.003)
        findings = told(tmp_path / f"{by}.db", rounds_of(machine, pingpongs(256 << n for n in range(11)), range(12)))
        return [one.sizes_bytes for one in findings if "less for a longer message: it falls by" in one.sentence]

    assert falls(1.4) == []
    assert falls(2.5) == [(16384, 32768)]


def test_a_line_that_begins_below_zero_is_one_change_and_its_documented_size_the_jumps(tmp_path: Path) -> None:
    """As of a pipe: what it holds, 64 KiB, already takes longer, and from there on each byte takes more than before."""
    sizes = [*(1024 << n for n in range(6)), 38976, 44352, 55104, 60096, *(65536 << n for n in range(5))]
    machine = Machine(
        lambda point: 18_500 + 0.13 * point.bytes if point.bytes < 65536 else 0.86 * point.bytes - 20_800, noise=0.003
    )
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes, "pipe"), range(12)))
    assert (jump.kind, jump.sizes_bytes) == ("protocol switch", (60096, 65536))
    assert "Documented right beside it: capacity of a pipe, 64 KiB" in jump.sentence


def test_a_documented_size_belongs_to_the_jump_that_it_lies_in(tmp_path: Path) -> None:
    """Of 64 KiB alone, which a pipe holds, the time is short: documented is that longer messages wait, not shorter."""
    sizes = [*(1024 << n for n in range(6)), 38976, 44352, 55104, 60096, 65536, 72000, *(131072 << n for n in range(4))]
    machine = Machine(lambda point: (18_500 + 0.13 * point.bytes) * (0.3 if point.bytes == 65536 else 1), noise=0.003)
    jumps = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes, "pipe"), range(12)))
    credited = {one.sizes_bytes: "capacity of a pipe" in one.sentence for one in jumps}
    assert credited == {(60096, 65536): False, (65536, 72000): True}


def test_a_rise_to_the_last_size_beyond_a_cache_is_not_called_a_jump(tmp_path: Path) -> None:
    """The last size alone takes longer: too few lie beyond it for a line of their own."""
    machine = Machine(lambda point: straight(point) + (5000 if point.bytes == 16384 else 0), noise=0.003)
    sizes = [*(8 << n for n in range(10)), 16384]
    (rise,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes), range(12)))
    assert re.search(r"more than in proportion to the size: by 5\.\d\d us \(", rise.sentence), rise.sentence
    assert "At about that size ends the L2 cache, 8 KiB, which may be all there is to it" in rise.sentence
    assert "jumps" not in rise.sentence


def test_a_small_jump_from_one_byte_to_the_next_is_told_though_a_line_passes_both(tmp_path: Path) -> None:
    """7 % among sizes that miss their line by 3 % this way and that, which hides it from the fit."""
    machine = Machine(
        lambda point: (
            straight(point) * (1.07 if point.bytes > 8192 else 1) * (1 + 0.03 * (-1) ** point.bytes.bit_length())
        ),
        noise=0.003,
    )
    sizes = sorted({*(512 << n for n in range(9)), 8193})
    (jump,) = told(tmp_path / "r.db", rounds_of(machine, pingpongs(sizes), range(12)))
    assert jump.sizes_bytes == (8192, 8193)
    assert "more than in proportion to the size" in jump.sentence


def test_a_second_jump_behind_a_few_sizes_that_lie_on_no_line_is_told_too(tmp_path: Path) -> None:
    """As of MPICH 5 told to copy at once from 16 KiB on: two sizes lie between its two switches."""

    def time_ns(point: Point) -> float:
        start_ns = 800 if point.bytes <= 4096 else 1850 if point.bytes < 16384 else 2500
        return start_ns + point.bytes * (0.06 if point.bytes >= 16384 else 0.03)

    sizes = [512, 1024, 2048, 4096, 8192, 12288, 16384, 32768, 65536]
    jumps = told(tmp_path / "r.db", rounds_of(Machine(time_ns, noise=0.003), pingpongs(sizes), range(12)))
    assert sorted(one.sizes_bytes for one in jumps) == [(4096, 8192), (12288, 16384)]


def test_no_line_that_misses_its_sizes_hides_the_jump_between_them(tmp_path: Path) -> None:
    """As of Open MPI over TCP: a size below the jump and two above it come out as one line, steeper than the times."""
    high_ns = {24576: 7350.0, 32768: 11_800.0, 65536: 21_200.0}

    def machine(at_32k_ns: float) -> Machine:
        times_ns = {**high_ns, 32768: at_32k_ns}
        return Machine(lambda point: times_ns.get(point.bytes, 6050 + 0.055 * point.bytes), noise=0.003)

    points = pingpongs([3072, 4096, 6144, 8192, 12288, 16384, *high_ns])
    measurements = [*rounds_of(machine(11_800), points, range(8)), *rounds_of(machine(10_500), points, range(8, 12))]
    (jump,) = told(tmp_path / "r.db", measurements)
    assert jump.sizes_bytes == (24576, 32768)


@pytest.mark.parametrize(("transport", "is_named"), [("shm", True), ("tcp", False), ("unix", False)])
def test_an_inner_cache_is_no_cause_where_the_kernel_copies(tmp_path: Path, transport: str, is_named: bool) -> None:
    machine = Machine(lambda point: straight(point) + (5000 if point.bytes == 16384 else 0), noise=0.003)
    measurements = rounds_of(machine, pingpongs([*(8 << n for n in range(10)), 16384], transport), range(12))
    caches = [{"level": level, "kind": "unified", "size_bytes": size} for level, size in ((2, 8192), (3, 1 << 20))]
    (rise,) = told(tmp_path / "r.db", measurements, facts={"topology": {"caches": caches}})
    assert ("ends the L2 cache, 8 KiB" in rise.sentence) is is_named


CLOSE = [*(1024 << n for n in range(6)), 36000, 39600]  # the last two a tenth apart, as closely as --refine looks


def rising(point: Point) -> float:
    """A quarter at each of the last steps, far more than in proportion."""
    return (200 + min(point.bytes, 32768) / 10) * 1.25 ** sum(point.bytes >= size for size in CLOSE[-2:])


def test_neighbouring_rises_are_one_finding(tmp_path: Path) -> None:
    (rise,) = told(tmp_path / "r.db", rounds_of(Machine(rising, noise=0.003), pingpongs(CLOSE), range(12)))
    assert (rise.kind, rise.sizes_bytes) == ("gradual rise", (32768, 39600))
    assert "at each of 2 steps more than in proportion to the size: gradually, or in several jumps" in rise.sentence
    assert "looks for the place" in (rise.remedy or "")
    (jump,) = [one.value for one in rise.evidence if one.what == "jump"]
    whole_ns = (200 + 3276.8) * (1.25**2 - 1)
    assert 0 < jump.low < whole_ns < jump.high


@pytest.mark.parametrize("is_precise", [True, False])
def test_a_run_that_had_time_to_find_a_place_and_did_not_is_told_no_longer_one(
    tmp_path: Path, *, is_precise: bool
) -> None:
    points = pingpongs(CLOSE)
    measurements = rounds_of(Machine(rising, noise=0.003), points, range(12))
    statuses = [PointStatus.PRECISE] * (len(points) - 1) + [PointStatus.PRECISE if is_precise else PointStatus.BUDGET]
    (rise,) = told(tmp_path / "r.db", measurements, statuses, plan={"exact": True, "time_s": 40.0})
    in_vain = "This run has looked closer, and `--refine` would add no size here: the change is gradual, or "
    assert (in_vain in rise.sentence) is is_precise
    assert (rise.remedy is None) is is_precise
    assert is_precise or "--time 80s` looks around it alone, for twice as long" in (rise.remedy or "")


def test_a_run_that_had_no_room_for_more_sizes_may_look_closer(tmp_path: Path) -> None:
    """All points are precise, but between two of them --refine would look on."""
    points = pingpongs(256 << n for n in range(9))
    machine = Machine(lambda point: (200 if point.bytes <= 512 else 2400) + point.bytes / 10, noise=0.003)
    precise = [PointStatus.PRECISE] * len(points)
    measurements = rounds_of(machine, points, range(12))
    (jump,) = told(tmp_path / "r.db", measurements, precise, plan={"exact": True, "time_s": 40.0})
    assert "looks around it alone" in (jump.remedy or "")


def pingpongs(sizes: Iterable[int], transport: str = "mpi") -> list[Point]:
    return [Point(transport, "pingpong", 2, size) for size in sizes]


def rounds_of(machine: Machine, points: Sequence[Point], rounds: Iterable[int]) -> list[Measurement]:
    return [
        machine.measure(one, round_=round_, batch=10, samples=3, warmup=0, verify=True)
        for round_ in rounds
        for one in points
    ]


@pytest.mark.parametrize("is_real", [True, False])
def test_a_jump_that_the_rounds_of_another_state_show_is_no_drift(tmp_path: Path, is_real: bool) -> None:
    """Near, only four rounds measured both of its sizes; far, all did, and none of the others."""
    near = near_apart(by=1.3)
    (alone,) = told(tmp_path / "alone.db", near)
    assert alone.kind == DRIFT
    (seen,) = told(tmp_path / "both.db", [*near, *far_together(by=1.3 if is_real else 1.0)])
    assert (seen.sizes_bytes, seen.kind) == (BOTH_BYTES, "protocol switch" if is_real else DRIFT)
    assert ("the rounds of far have a jump there, too" in seen.sentence) is is_real
    # As the line has it, which is narrower than the sizes: those stand beside it.
    assert "the line through the medians of pingpong jumps by" in seen.sentence
    assert "where the two sizes themselves take" in seen.sentence
    assert seen.effect > 0.1


@pytest.mark.parametrize(
    ("near_by", "far_by", "kind"), [(0.4, 0.4, "protocol switch"), (1.3, 0.4, DRIFT), (0.4, 1.3, DRIFT)]
)
def test_a_state_that_jumps_the_other_way_bears_no_jump_out(
    tmp_path: Path, near_by: float, far_by: float, kind: str
) -> None:
    (seen,) = told(tmp_path / "r.db", [*near_apart(near_by), *far_together(far_by)])
    assert (seen.sizes_bytes, seen.kind) == (BOTH_BYTES, kind)


@pytest.mark.parametrize(("options", "kind"), [((), "protocol switch"), ((("target", "2"),), DRIFT)])
def test_ranks_that_share_less_bear_no_jump_out(
    tmp_path: Path, options: tuple[tuple[str, str], ...], kind: str
) -> None:
    """Ranks 0 and 1 are on one host, rank 2 is on another, to which messages may go in another way."""
    measurements = [*near_apart(1.3, ranks=3), *far_together(1.3, ranks=3, options=options)]
    (seen,) = told(tmp_path / "r.db", measurements, ranks=3, hosts=("here", "here", "there"), cpus=(0, 1, 0))
    assert (seen.sizes_bytes, seen.kind) == (BOTH_BYTES, kind)


@pytest.mark.parametrize(
    ("by", "kind"), [(6.0, "protocol switch"), (2.0, DRIFT), (0.4, DRIFT), (0.15, "protocol switch")]
)
def test_what_no_machine_changes_by_within_a_state_is_no_drift(tmp_path: Path, by: float, kind: str) -> None:
    """To more than three times as long, or to less than a third, in however few rounds that measured both sizes."""
    (seen,) = told(tmp_path / "r.db", near_apart(by))
    assert (seen.sizes_bytes, seen.kind) == (BOTH_BYTES, kind)


def near_apart(by: float, ranks: int = 2) -> list[Measurement]:
    """The times jump between BOTH_BYTES, and four rounds only measured sizes on either side."""
    half, point = len(LONG) // 2, Point("mpi", "pingpong", ranks, 0)
    return [
        *jumping(point, LONG[:half], range(8), floor_ns=27.0, by=by),
        *jumping(point, LONG[half:], range(4, 12), floor_ns=27.0, by=by),
    ]


def far_together(by: float, ranks: int = 2, options: tuple[tuple[str, str], ...] = ()) -> list[Measurement]:
    """Ten rounds measured both of BOTH_BYTES, and no other size."""
    point = Point("mpi", "pingpong", ranks, 0, options)
    return jumping(point, BOTH_BYTES, range(20, 30), floor_ns=270.0, by=by)


def jumping(point: Point, sizes: Sequence[int], rounds: range, floor_ns: float, by: float) -> list[Measurement]:
    """From the upper one of BOTH_BYTES on it takes `by` times as long."""
    machine = Machine(
        lambda point: straight(point) * (by if point.bytes >= BOTH_BYTES[1] else 1),
        noise=0.001,
        floor_ns=lambda now_s: floor_ns,
    )
    return rounds_of(machine, [replace(point, bytes=size) for size in sizes], rounds)
