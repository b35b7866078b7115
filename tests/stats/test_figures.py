"""Times over launches whose truth is known, and whose samples make the time of a measurement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.builders import make_measurement

from hockney.model import Definition
from hockney.stats import BETWEEN_LAUNCHES, EXACT, ONE_LAUNCH, RANGE, Estimate, time_of
from hockney.stats.figures import estimate_of, percentile
from hockney.stats.interval import launches_needed


def test_the_launches_needed_reach_the_precision() -> None:
    for deviation, precision in ((0.001, 0.01), (0.01, 0.02), (0.03, 0.01), (0.05, 0.1)):
        count = launches_needed(deviation, precision)
        half_widths = [
            math.expm1(stats.t.ppf(0.975, n - 1) * deviation / math.sqrt(n)) for n in (count, count - 1) if n > 1
        ]
        assert half_widths[0] <= precision * 1.001
        assert all(half_width > precision * 0.995 for half_width in half_widths[1:])


@pytest.mark.parametrize(("share", "fewest"), [(0.99, 100), (0.999, 1000)])
def test_a_percentile_is_not_the_maximum(share: float, fewest: int) -> None:
    samples_ns = np.arange(float(fewest))
    assert percentile(samples_ns[1:], share) is None
    assert percentile(samples_ns, share) == pytest.approx(share * (fewest - 1))


@pytest.mark.parametrize("launches", [2, 3, 5, 6, 10, 20])
@pytest.mark.parametrize("between", [0.01, 0.05])
def test_intervals_over_few_launches_cover_the_truth(launches: int, between: float) -> None:
    """Measurements vary by 1 % within a launch.

    An interval over measurements covers 25 to 84 % of these with 2 to 5 launches.
    """
    rng = np.random.default_rng(launches)
    trials = 1000
    logs = between * rng.standard_normal((trials, launches, 1)) + 0.01 * rng.standard_normal((trials, launches, 8))
    ids = [launch for launch in range(launches) for _ in range(8)]
    intervals = [time_of(times.ravel().tolist(), ids)[0] for times in 1000 * np.exp(logs)]
    covered = sum(time.low <= 1000 <= time.high for time in intervals if time.low is not None and time.high is not None)
    assert covered / trials == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize("short", [1, 2])
def test_six_launches_of_three_measurements_leave_out_shorter_ones(short: int) -> None:
    medians_ns, launch_ids = [100.0] * 18 + [900.0] * short, [*sorted([*range(6)] * 3), *[6] * short]
    assert time_of(medians_ns, launch_ids)[0].value == pytest.approx(100)
    assert time_of(medians_ns[3:], launch_ids[3:])[0].value > 120  # with five of them each one counts


@pytest.mark.parametrize(
    ("values", "launches", "extremes", "expected"),
    [
        ([5.0], [1], (4.0, 9.0), (Estimate(5.0, 4.0, 9.0), RANGE, None)),
        ([5.0, 7.0], [1, 1], (4.0, 9.0), (Estimate(6.0, 5.0, 7.0), RANGE, None)),
        ([5.0] * 6, [1] * 6, (4.0, 9.0), (Estimate(5.0, 5.0, 5.0), ONE_LAUNCH, pytest.approx(1 - 2 / 2**6))),
        ([1.0, 10000.0], [1, 2], (), (Estimate(pytest.approx(100.0), 1.0, 10000.0), RANGE, None)),  # type: ignore[arg-type]
    ],
)
def test_a_value_always_has_bounds(
    values: list[float], launches: list[int], extremes: tuple[float, ...], expected: tuple[Estimate, str, float | None]
) -> None:
    assert estimate_of(values, launches, extremes=extremes) == expected


def test_an_exact_value_is_its_own_bounds() -> None:
    assert estimate_of([5.0, 5.0], [1, 1], exact=True) == (Estimate(5.0, 5.0, 5.0), EXACT, 1.0)


@pytest.mark.parametrize(("ratio", "over"), [(1.19, BETWEEN_LAUNCHES), (1.21, RANGE)])
def test_an_interval_of_two_launches_spans_no_more_than_a_factor_of_ten(ratio: float, over: str) -> None:
    """It reaches 12.7 / 2 times their distance to both sides: a factor of ten, if they are 20 % apart."""
    assert estimate_of([100.0, 100.0 * ratio], [1, 2])[1] == over


# ---- by the definition that came with the measurement ----------------------------------------------------------------

ELAPSED_NS = ((100, 200), (300, 100), (50, 60), (30, 40))


@pytest.mark.parametrize(
    ("timed", "times_ns"),
    [
        ("root", [50.0, 100.0]),
        ("rank 1", [150.0, 50.0]),
        ("rank 3", [15.0, 20.0]),
        ("sources", [100.0, 75.0]),
        ("mean", [60.0, 50.0]),
        ("slowest", [150.0, 100.0]),
    ],
)
def test_whose_samples_make_the_time(timed: str, times_ns: list[float]) -> None:
    measurement = make_measurement(elapsed_ns=ELAPSED_NS, definition=Definition(timed, 2, 8, 1))
    assert measurement.times_ns().tolist() == times_ns


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_of_up_to_three_ranks_one_is_a_source(rows: int) -> None:
    measurement = make_measurement(elapsed_ns=ELAPSED_NS[:rows], definition=Definition("sources", 2, 8, 1))
    assert measurement.times_ns().tolist() == [50.0, 100.0]


def test_the_row_of_a_large_model_is_that_of_every_rank() -> None:
    measurement = make_measurement(elapsed_ns=ELAPSED_NS[:1], definition=Definition("rank 3", 2, 8, 1))
    assert measurement.times_ns().tolist() == [50.0, 100.0]
