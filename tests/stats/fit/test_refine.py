"""Which sizes are added to a curve, on curves whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hockney.stats.fit import Estimate, SegmentFit, Switch, fit_segments
from hockney.stats.fit.segments import sizes_to_add, steps_of
from hockney.stats.interval import Interval

Truth = Callable[[int], float]
POWERS = [0, *(1 << n for n in range(3, 21))]


def known(value_ns: float, precision: float = 0.01) -> Interval:
    return Interval(value_ns, value_ns * (1 - precision), value_ns * (1 + precision), 9, 0.95)


def line(size: int) -> float:
    return 200 + size / 10


def jump(size: int) -> float:
    return line(size) * (1.4 if size > 5000 else 1)


def two_jumps_close_by(size: int) -> float:
    return line(size) * (1.6 if size > 938 else 1) * (1.3 if size > 1024 else 1)


def jump_beside_a_blip(size: int) -> float:
    return line(size) * (1.2 if size > 4317 else 1) * (1.3 if size == 4096 else 1)


def gradual_rise(size: int) -> float:
    return line(size) * (1 + 0.6 * min(1.0, max(0, size - 16_384) / 3000))


def jump_before_a_bend(size: int) -> float:
    return (line(size) + max(0, size - 4282) / 10) * (1.3 if size > 1097 else 1)


def refined(truth: Truth, noise: float, seed: int) -> tuple[dict[int, Interval], int]:
    """All sizes that are measured until none is added, with their times, and how many were added."""
    generator = random.Random(seed)

    def measure(size: int) -> Interval:
        return known(truth(size) * generator.gauss(1, noise), 2 * noise)

    times = {size: measure(size) for size in POWERS}
    while new := sizes_to_add(sorted(times.items()), exact=True):
        times |= {size: measure(size) for size in new}
    return times, len(times) - len(POWERS)


@pytest.mark.parametrize(
    "truth",
    [jump, two_jumps_close_by, jump_beside_a_blip, gradual_rise, jump_before_a_bend, line],
)
@pytest.mark.parametrize("noise", [0.001, 0.003, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_refining_ends_with_no_jump_left_that_has_a_wide_step(truth: Truth, noise: float, seed: int) -> None:
    times, added = refined(truth, noise, seed)
    assert added <= 40
    curve = sorted(times.items())
    fit = fit_segments(
        [size for size, _ in curve], [time.value for _, time in curve], [time.precision or 0.0 for _, time in curve]
    )
    assert isinstance(fit, SegmentFit)
    left = [step for switch in fit.switches if switch.is_jump for step in steps_of(fit, switch)]
    assert all(above - below == 1 for below, above in left)


@pytest.mark.parametrize(
    ("truth", "places"),
    [
        (jump, [5000]),
        (jump_beside_a_blip, [4317]),
        (jump_before_a_bend, [1097]),
    ],
)
def test_each_jump_ends_between_two_neighbours(truth: Truth, places: list[int]) -> None:
    for seed in range(5):
        times, _ = refined(truth, 0.003, seed)
        assert {size + more for size in places for more in (0, 1)} <= set(times)


@pytest.mark.parametrize(
    ("times_ns", "ends", "relative", "steps"),
    [
        ([100, 120, 121, 170], (8, 64), 0.5, [(32, 64), (8, 16)]),
        ([170, 121, 120, 100], (8, 64), -0.5, [(8, 16), (32, 64)]),
        ([100, 104, 108, 112], (8, 64), 0.1, []),
        ([100, 104, 108, 112], (16, 32), 0.05, [(16, 32)]),
        ([100, 104, 108, 112], (16, 32), -0.05, [(16, 32)]),
        ([100, 150, 200, 250], (16, 32), 0.04, []),
    ],
)
def test_steps_of_a_switch_are_neighbours_with_a_jump(
    times_ns: list[float], ends: tuple[int, int], relative: float, steps: list[tuple[int, int]]
) -> None:
    fit = SegmentFit((), (), (8, 16, 32, 64), tuple(times_ns), (0.0,) * 4, ())
    switch = Switch(*ends, Estimate(1.0, 1.0, 1.0), Estimate(relative, relative, relative), bend=False)
    assert steps_of(fit, switch) == steps


def test_a_gradual_rise_gets_sizes_until_no_step_is_a_jump() -> None:
    """As the time of messages that outgrow a cache: 60 % more from 16 KiB to 19,384 B, and no size where it is."""
    times, added = refined(gradual_rise, 0.001, 0)
    inside = sorted(size for size in times if 16_384 <= size <= 20_480)
    assert len(inside) >= 5
    assert added <= 20


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_straight_line_has_no_sizes_to_add(noise: float) -> None:
    generator = random.Random(3)
    sizes = [0, 1, 2, 4, 8, *(1 << n for n in range(4, 23))]
    curve = [(size, known((250 + size / 12) * generator.gauss(1, noise))) for size in sizes]
    assert sizes_to_add(curve) == []


def test_three_sizes_on_a_steep_slope_are_refined() -> None:
    """Measured with MPICH 5.0.2: a fit takes the sizes from 8,064 to 8,191 B for a line, but there are two jumps."""
    times_ns = {
        1024: 1330, 2048: 1160, 4096: 1430, 7552: 1920, 7872: 1960, 8000: 1970, 8064: 1980, 8128: 2770, 8191: 3330,
        8192: 3670, 16_384: 4320, 32_768: 5620, 65_536: 7770,
    }  # fmt: skip
    added = sizes_to_add([(size, known(time_ns)) for size, time_ns in times_ns.items()], exact=True)
    assert any(8064 < size < 8128 for size in added)
    assert any(8128 < size < 8191 for size in added)


def test_scatter_within_the_intervals_is_no_bend() -> None:
    assert sizes_to_add([(8, known(100, 0.2)), (16, known(125, 0.2)), (32, known(100, 0.2))]) == []


@pytest.mark.parametrize(("middle_ns", "added"), [(112, []), (114, [11, 24])], ids=["7.4 % off the line", "8.5 %"])
def test_sizes_next_to_one_that_is_8_percent_off_its_line_are_added(middle_ns: float, added: list[int]) -> None:
    assert sizes_to_add([(8, known(100)), (16, known(middle_ns)), (32, known(100))]) == added


@pytest.mark.parametrize(("next_bytes", "added"), [(1110, [2112]), (1130, [1088, 2112])])
def test_neighbours_that_differ_by_12_percent_are_near_enough(next_bytes: int, added: list[int]) -> None:
    assert sizes_to_add([(1000, known(100)), (next_bytes, known(150)), (4000, known(100))]) == added
