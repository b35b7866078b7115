"""Figures of one point, from measurements whose truth is known."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.builders import (
    HALF_ROUND_TRIP,
    SLOWEST,
    figures_of,
    make_measurement,
    make_point,
    measurements_with_medians,
)

from hockney.model import DIGITS, Definition, Measurement, PatternTraits
from hockney.report.words import cell_text
from hockney.results.figures import EITHER, SEVERAL_STATES
from hockney.stats.interval import Estimate
from hockney.units import format_ns

NEAR, FAR = (27.0, 28.0), (184.0, 190.0)


def bounds_of(value: Estimate | None) -> tuple[float, float, float]:
    assert value is not None
    return value.value, value.low, value.high


def test_no_measurements_no_figures() -> None:
    assert figures_of([]) == []
    assert figures_of([make_measurement(elapsed_ns=[[], []])]) == []


def test_figure_counts_measurements() -> None:
    (figure,) = figures_of(measurements_with_medians([100, 101, 102, 103, 104, 105, 106]))
    assert figure.time == Estimate(103.0, 100.0, 106.0)
    assert figure.coverage == pytest.approx(1 - 2 / 2**7)
    assert (figure.n_measurements, figure.n_samples, figure.n_launches) == (7, 21, 1)
    assert (figure.interval_over, figure.minimum_ns, figure.tails.p99_ns) == ("within one launch", 90.0, None)
    assert (figure.state, figure.floor_ns, figure.verified) == ("near", 27.5, True)
    assert figure.precision == pytest.approx(3 / 103)


def test_few_measurements_have_the_range_seen() -> None:
    (figure,) = figures_of(measurements_with_medians([100, 101, 102]))
    assert (figure.time, figure.interval_over, figure.coverage) == (Estimate(101.0, 100.0, 102.0), "range", None)
    assert (figure.has_interval, figure.is_range, figure.precision) == (False, True, None)
    (single,) = figures_of(measurements_with_medians([100]))
    assert single.time == Estimate(100.0, 90.0, 110.0)  # its samples


def test_rate_is_bytes_of_a_repetition_over_its_time() -> None:
    """A ping-pong of 8 B in 100 ns each way moves 16 B in 200 ns: 80 MB/s; its interval is the time's, inverted."""
    (figure,) = figures_of(measurements_with_medians([80, 90, 100, 100, 110, 125]))
    assert figure.time == Estimate(100.0, 80.0, 125.0)
    assert bounds_of(figure.bytes_per_s) == pytest.approx((80e6, 64e6, 100e6))


def test_message_rate_is_messages_of_a_repetition_over_its_time() -> None:
    """Sixteen messages in a row, each of 100 ns: ten million a second; its interval is the time's, inverted."""
    window = Definition("root", 16, 16 * 8, 16)
    measurements = measurements_with_medians([80, 90, 100, 100, 110, 125], definition=window)
    (figure,) = figures_of(measurements)
    assert figure.time.value == 100.0
    rates = 10e6, 1e9 / figure.time.high, 1e9 / figure.time.low
    assert bounds_of(figure.messages_per_s) == pytest.approx(rates)
    (silent,) = figures_of(measurements_with_medians([100] * 6, definition=Definition("slowest", 1, 0, 0)))
    assert silent.messages_per_s is None


def test_rates_count_only_messages_that_arrived() -> None:
    """A ping-pong of 3 samples has 6 messages; of the 36 of six measurements 9 are lost. The time is that of all."""
    some_lost = [(1.0, 0.0)] * 3 + [(0.0, 2.0)] * 3
    figures = [
        figures_of([make_measurement(counters={"lost": each}) for each in lost])[0]
        for lost in ([(0.0, 0.0)] * 6, some_lost, [(6.0, 6.0)] * 6)
    ]
    whole, some, none = figures
    for some_rate, rate in ((some.bytes_per_s, whole.bytes_per_s), (some.messages_per_s, whole.messages_per_s)):
        assert some_rate is not None
        assert rate is not None
        assert some_rate.value == pytest.approx(0.75 * rate.value)
    assert (none.bytes_per_s, none.messages_per_s) == (None, None)
    assert len({figure.time.value for figure in figures}) == 1


@pytest.mark.parametrize(
    "measurement",
    [
        make_measurement(definition=dataclasses.replace(HALF_ROUND_TRIP, bytes_per_rep=0)),
        make_measurement(elapsed_ns=[[0, 0, 0]] * 2),  # no time is below the clock's resolution
    ],
)
def test_no_bytes_or_no_time_has_no_rate(measurement: Measurement) -> None:
    (figure,) = figures_of([measurement])
    assert figure.bytes_per_s is None


def test_batch_and_divisor_count() -> None:
    definition = Definition("sources", 4, 100, 1)
    (figure,) = figures_of([make_measurement(elapsed_ns=[[800], [1600], [9], [9]], batch=10, definition=definition)])
    assert figure.time.value == 30.0  # mean of two sources / (10 x 4)
    assert bounds_of(figure.bytes_per_s)[0] == pytest.approx(100 / 120e-9)


def test_one_figure_per_state_in_order() -> None:
    measurements = [
        *measurements_with_medians([900], floor_ns=None),
        *measurements_with_medians([300] * 6, floor_ns=FAR),
        *measurements_with_medians([200], floor_ns=(27.0, 190.0)),
        *measurements_with_medians([100] * 3, floor_ns=NEAR),
    ]
    figures = figures_of(measurements)
    assert [(each.state, each.time.value, each.n_measurements) for each in figures] == [
        ("near", 100.0, 3),
        ("far", 300.0, 6),
        ("mixed", 200.0, 1),
        ("unknown", 900.0, 1),
    ]
    assert [each.floor_ns for each in figures] == [27.5, 187.0, None, None]


def test_definitions_are_never_mixed() -> None:
    other = dataclasses.replace(HALF_ROUND_TRIP, divisor=1)
    measurements = [*measurements_with_medians([100] * 2), *measurements_with_medians([200] * 3, definition=other)]
    (figure,) = figures_of(measurements)
    assert (figure.definition, figure.n_measurements, figure.n_left_out) == (other, 3, 2)


def test_a_state_that_only_an_earlier_definition_was_measured_in_has_no_figure() -> None:
    other = dataclasses.replace(HALF_ROUND_TRIP, divisor=1)
    earlier = measurements_with_medians([100] * 6, floor_ns=NEAR)
    (figure,) = figures_of([*earlier, *measurements_with_medians([300] * 3, definition=other, floor_ns=FAR)])
    assert (figure.state, figure.definition, figure.n_measurements, figure.is_shown) == ("far", other, 3, True)


STREAM = make_point(pattern="oneway")


def test_batches_of_a_stream_are_never_mixed() -> None:
    """Four measurements of one repetition, slower by the stream's start and end, and six of a hundred."""
    alone = [make_measurement(STREAM, [[9000], [9000]], batch=1, round_=i) for i in range(4)]
    many = [make_measurement(STREAM, [[20_000 + i], [20_000]], batch=100, round_=4 + i) for i in range(6)]
    (figure,) = figures_of(alone + many)
    assert (figure.batch, figure.n_measurements, figure.n_left_out) == (100, 6, 4)
    assert 100 <= figure.time.value < 100.1
    assert figure.time.low >= 100


def test_of_other_patterns_the_measurements_of_all_batches_count() -> None:
    """In each launch the machine had another speed, so a batch had another length."""
    launches = [make_measurement(elapsed_ns=[[20_000] * 3] * 2, batch=100 + i, launch_id=i, round_=i) for i in range(6)]
    (figure,) = figures_of(launches)
    assert (figure.batch, figure.n_measurements, figure.n_launches, figure.n_left_out) == (105, 6, 6, 0)
    assert figure.tails.p99_ns is None, "a sample is the mean of several repetitions"


@pytest.mark.parametrize("batches", [(1, 100), (100, 1)])
def test_of_equally_frequent_batches_the_largest_counts(batches: tuple[int, int]) -> None:
    measurements = [make_measurement(STREAM, batch=batch, round_=i) for batch in batches for i in range(3)]
    (figure,) = figures_of(measurements)
    assert (figure.batch, figure.n_measurements) == (100, 3)


def test_a_stream_of_few_events_is_marked() -> None:
    eight = Definition("root", 2, 16, 2)
    for pattern, batch, is_short in (("oneway", 3, True), ("oneway", 4, False), ("pingpong", 1, False)):
        measurement = make_measurement(make_point(pattern=pattern), batch=batch, definition=eight)
        assert [figure.is_short for figure in figures_of([measurement])] == [is_short], (pattern, batch)


def launches_of(*times_ns: float, measurements: int = 3) -> list[Measurement]:
    """Measurements of a launch for each of these times, all alike."""
    return [
        v
        for launch, ns in enumerate(times_ns)
        for v in measurements_with_medians([ns] * measurements, launch_id=launch)
    ]


def test_launches_are_the_unit_of_replication() -> None:
    """The interval is that of scipy's t on the logarithms."""
    times_ns = [100.0, 110, 120, 130, 140, 150]
    measurements = [v for n, ns in enumerate(times_ns) for v in measurements_with_medians([ns] * (1 + n), launch_id=n)]
    (figure,) = figures_of(measurements)
    assert (figure.interval_over, figure.n_launches, figure.n_measurements) == ("launches", 6, 21)
    expected = stats.ttest_1samp(np.log(times_ns), 0).confidence_interval(0.95)
    assert figure.time.value == pytest.approx(stats.gmean(times_ns))
    assert (figure.time.low, figure.time.high) == pytest.approx(np.exp([expected.low, expected.high]), rel=0.002)
    assert figure.coverage == 0.95


def test_one_launch_has_an_interval_within_itself() -> None:
    (two,), (single,) = figures_of(launches_of(100, 104)), figures_of(launches_of(100, measurements=8))
    assert (two.interval_over, single.interval_over) == ("launches", "within one launch")
    assert two.time.low < 90
    assert (single.between_launches, single.launches_needed) == (None, None)


def test_a_time_of_zero_has_no_scatter_and_no_number_of_launches() -> None:
    """The clock may be too coarse for one launch and not for another."""
    zero = [make_measurement(elapsed_ns=[[0, 0, 0]] * 2, launch_id=9) for _ in range(3)]
    (figure,) = figures_of([*launches_of(100, 110), *zero], precision=0.01)
    assert (figure.between_launches, figure.within_launches, figure.launches_needed) == (None, None, None)


def test_scatter_between_and_within_launches_and_launches_needed() -> None:
    rng = np.random.default_rng(3)
    for between, within in ((0.03, 0.02), (0.0, 0.04), (0.05, 0.002)):
        times_ns = 1e4 * np.exp(between * rng.standard_normal((300, 1)) + within * rng.standard_normal((300, 8)))
        measurements = [
            v for n, launch in enumerate(times_ns) for v in measurements_with_medians(launch.tolist(), launch_id=n)
        ]
        (figure,) = figures_of(measurements, precision=0.01)
        assert figure.between_launches == pytest.approx(between, rel=0.15, abs=0.01)
        assert figure.within_launches == pytest.approx(within, rel=0.15)
        launch = math.hypot(between, within * math.sqrt(math.pi / 2 / 8))
        assert figure.launches_needed == pytest.approx((1.96 * launch / 0.01) ** 2, rel=0.3)


def test_a_figure_that_missed_its_precision_needs_more_launches_than_it_has() -> None:
    """The number needed is by whole launches only, where there are six; the interval is of all."""
    whole = launches_of(100, 102, 98, 101, 99, 100.5)
    measurements = [*whole, *measurements_with_medians([115], launch_id=6)]
    (of_all,) = figures_of(measurements)
    assert of_all.precision is not None
    (missed,) = figures_of(measurements, precision=0.99 * of_all.precision)
    assert (missed.n_launches, missed.launches_needed) == (7, 8)
    (reached,) = figures_of(measurements, precision=1.01 * of_all.precision)
    assert reached.launches_needed in range(8)


def test_p99_needs_single_repetitions() -> None:
    one_batch = HALF_ROUND_TRIP
    samples = [list(range(0, 2020, 20))] * 2  # 101 samples: 0 .. 1000 ns each way
    (figure,) = figures_of([make_measurement(elapsed_ns=samples, definition=one_batch)])
    assert figure.tails.p99_ns == pytest.approx(990)
    assert figures_of([make_measurement(elapsed_ns=samples, batch=2)])[0].tails.p99_ns is None
    assert figures_of([make_measurement(elapsed_ns=[s[:99] for s in samples])])[0].tails.p99_ns is None


def test_percentiles_are_of_all_events_of_all_measurements() -> None:
    """1 to 4000 us in four measurements, in any order: the p-th percentile is p times the largest."""
    definition = Definition("root", 1, 0, 0)
    times = np.random.default_rng(7).permutation(np.arange(1, 4001)) * 1000
    measurements = [
        make_measurement(elapsed_ns=np.stack([part, 0 * part]), definition=definition) for part in times.reshape(4, -1)
    ]
    (figure,) = figures_of(measurements)
    assert figure.tails.p99_ns == pytest.approx(3960e3, rel=1e-3)
    assert figure.tails.p999_ns == pytest.approx(3996e3, rel=1e-3)
    assert figure.time.value == pytest.approx(2000e3, rel=0.03)
    assert (figure.bytes_per_s, figure.messages_per_s) == (None, None)
    assert figures_of(measurements[:1])[0].tails.p999_ns is not None
    assert figures_of([make_measurement(elapsed_ns=times[None, :999], definition=definition)])[0].tails.p999_ns is None


def test_slowest_rank_is_named() -> None:
    elapsed_ns = [[10, 10, 10, 50], [20, 20, 20, 20], [15, 15, 15, 15]]
    measurements = [
        make_measurement(elapsed_ns=elapsed_ns, definition=SLOWEST),
        make_measurement(elapsed_ns=elapsed_ns, definition=SLOWEST),
    ]
    (figure,) = figures_of(measurements)
    assert (figure.tails.slowest_rank, figure.tails.slowest_share) == (1, 0.75)
    assert figure.time.value == 20.0
    other = make_measurement(elapsed_ns=[[30] * 4, [20] * 4, [15] * 4], definition=SLOWEST)
    (figure,) = figures_of([*measurements, *measurements, other])  # rank 1 in 12 of 20 samples, not in the last ones
    assert (figure.tails.slowest_rank, figure.tails.slowest_share) == (1, 0.6)
    assert figures_of([make_measurement(elapsed_ns=elapsed_ns)])[0].tails.slowest_rank is None


def test_a_point_is_verified_if_any_measurement_was() -> None:
    """A long payload is checked in the first measurement alone."""
    first, later = make_measurement(floor_ns=(27.0, 28.0)), make_measurement(verified=False, floor_ns=(184.0, 186.0))
    assert {figure.verified for figure in figures_of([first, later, later])} == {True}
    assert [figure.verified for figure in figures_of([later, later])] == [False]


def test_without_payload_nothing_is_verified() -> None:
    barrier = make_measurement(make_point(0, pattern="barrier"), definition=SLOWEST, verified=False)
    harness = make_measurement(make_point(8, "null", traits=PatternTraits(payload=False)), verified=False)
    loads = make_measurement(make_point(64, pattern="memload"), verified=False)
    assert [figures_of([measurement])[0].verified for measurement in (barrier, harness, loads)] == [None, None, None]


def test_the_interval_of_printed_times_includes_the_coarsest_digit() -> None:
    """As of 1.00 us and of 1.0 us."""
    coarse = make_measurement(elapsed_ns=[[2000]], counters={DIGITS: (50.0,)})
    fine = [make_measurement(elapsed_ns=[[2000]], counters={DIGITS: (5.0,)}) for _ in range(6)]
    (figure,) = figures_of([*fine, coarse])
    assert (figure.time.low, figure.time.value, figure.time.high) == (950.0, 1000.0, 1050.0)


def test_a_single_imported_figure_has_the_rounding_of_its_digits() -> None:
    """Which is neither an interval nor a range; those of three outputs are launches."""
    made = [make_measurement(elapsed_ns=[[2000]], counters={DIGITS: (50.0,)}, launch_id=n) for n in range(3)]
    (single,), (three,) = (figures_of(rows, imported=True) for rows in (made[:1], made))
    assert (single.interval_over, single.has_interval, single.is_range) == ("rounding", False, False)
    assert (single.time.low, single.time.high, single.precision) == (950.0, 1050.0, None)
    assert (three.interval_over, three.has_interval) == ("launches", True)
    assert cell_text(single, single.time, format_ns) == ("1.00 us", "")


def test_the_median_of_two_measurements_scatters_as_their_mean() -> None:
    """By 1 % off the middle each, so the launches' medians by 1.4826 % / sqrt(1/2), of which half is theirs."""
    logs = [np.array([-0.01, 0.01]) + middle for middle in (0.0, 0.1, 0.2)]
    figures = figures_of(
        [
            make_measurement(elapsed_ns=[[round(2e9 * math.exp(log))]], launch_id=launch)
            for launch, of_launch in enumerate(logs)
            for log in of_launch
        ]
    )
    within = 1.4826 * 0.01 * math.sqrt(6 / 3)
    assert figures[0].within_launches == pytest.approx(within, rel=1e-3)
    assert figures[0].between_launches == pytest.approx(math.sqrt(0.1**2 - within**2 / 2), rel=1e-4)


# ---- the row that is shown -------------------------------------------------------------------------------------------


def in_states(**counts: int) -> list[Measurement]:
    """So many measurements in each state: near takes 100 ns, far 300; contended ones twice as long."""
    floors = {"near": NEAR, "far": FAR, "mixed": (27.0, 190.0)}
    quick, slow = ((1.0, 1.0),) * 2, ((1.5, 1.5),) * 2
    made = []
    for name, count in counts.items():
        level, _, contended = name.partition("_")
        time_ns = {"near": 100, "far": 300, "mixed": 200}[level] * (2 if contended else 1)
        more: dict[str, Any] = {"floor_ns": floors[level], "pace_ns": slow if contended else quick}
        made += measurements_with_medians([time_ns] * count, **more)
    return made


@pytest.mark.parametrize(
    ("counts", "state", "value_ns", "is_mixed"),
    [
        ({"near": 6, "far": 20}, "far", 300, False),  # of two quiet states the one with more measurements
        ({"near": 6, "near_contended": 40}, "near", 100, False),  # a quiet one with an interval before others
        ({"near": 5, "near_contended": 40}, "near, contended", 200, False),
        ({"near": 4, "near_contended": 3}, "near, quiet or contended", 100, True),  # too few in one: those of its level
        ({"near": 4, "far": 3}, "several states", 100, True),
        ({"near": 5, "mixed": 1, "far": 0}, "several states", 100, True),
        ({"near": 2, "far": 1}, "near", 100, False),  # too few in all: the range of its own state
        ({"near": 1, "near_contended": 2, "far": 1}, "near, contended", 200, False),
    ],
)
def test_one_figure_is_shown_in_the_narrowest_pool_with_an_interval(
    counts: dict[str, int], state: str, value_ns: float, is_mixed: bool
) -> None:
    figures = figures_of(in_states(**counts))
    (shown,) = [figure for figure in figures if figure.is_shown]
    assert (shown.state, shown.time.value, shown.is_mixed) == (state, value_ns, is_mixed)
    assert shown.has_interval == (sum(counts.values()) >= 6)
    assert shown.is_range == (is_mixed or not shown.has_interval)
    assert (shown.precision is None) == shown.is_range
    alone = [figure.n_measurements for figure in figures if figure.state not in (SEVERAL_STATES, f"near, {EITHER}")]
    assert sum(alone) == sum(counts.values()), "each measurement is in the row of its state"
    assert shown.time.low <= shown.time.value <= shown.time.high


@pytest.mark.parametrize(
    ("time_ns", "percent"), [(1000, 100), (1250, 75), (1600, 40), (2000, 0), (2500, 0), (900, 100)]
)
def test_the_overlap_is_the_share_of_computing_that_an_operation_hides(time_ns: int, percent: float) -> None:
    """Its own time was 800 ns on one rank and 1000 on the slower one, which both computed twice."""
    point = make_point(pattern="allreduce", options=(("overlap", "yes"),))
    counters = {"delays": (2.0, 2.0), "delay_ns": (1600.0, 2000.0)}
    (figure,) = figures_of([make_measurement(point, [[time_ns] * 3] * 2, definition=SLOWEST, counters=counters)])
    assert figure.pure_ns == 1000
    assert bounds_of(figure.overlap_percent) == pytest.approx((percent,) * 3)
    plain = make_measurement(make_point(pattern="halo2d"), [[time_ns] * 3] * 2, definition=SLOWEST, counters=counters)
    assert figures_of([plain])[0].overlap_percent is None
