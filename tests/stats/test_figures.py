"""Figures of one point, from measurements whose truth is known."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats
from tests.builders import HALF_ROUND_TRIP, SLOWEST, make_measurement, make_point, measurements_with_medians

from hockney.model import DIGITS, Definition, Measurement, PatternTraits
from hockney.stats import State, classify, figures_of, time_of
from hockney.stats.interval import launches_needed

NEAR, FAR = (27.0, 28.0), (184.0, 190.0)


def test_no_measurements_no_figures() -> None:
    assert figures_of([]) == []
    assert figures_of([make_measurement(elapsed_ns=[[], []])]) == []


def test_figure_counts_measurements() -> None:
    (figure,) = figures_of(measurements_with_medians([100, 101, 102, 103, 104, 105, 106]))
    assert (figure.value_ns, figure.low_ns, figure.high_ns) == (103.0, 100.0, 106.0)
    assert figure.coverage == pytest.approx(1 - 2 / 2**7)
    assert (figure.n_measurements, figure.n_samples, figure.n_launches) == (7, 21, 1)
    assert (figure.interval_over, figure.minimum_ns, figure.p99_ns) == ("within one launch", 90.0, None)
    assert (figure.state, figure.floor_ns, figure.verified) == ("near", 27.5, True)
    assert figure.precision == pytest.approx(3 / 103)


def test_few_measurements_have_no_interval() -> None:
    (figure,) = figures_of(measurements_with_medians([100, 101, 102]))
    assert (figure.value_ns, figure.low_ns, figure.high_ns, figure.coverage) == (101.0, None, None, None)
    assert figure.rate_low_bytes_per_s is None
    assert figure.rate_bytes_per_s is not None
    assert figure.precision is None


def test_rate_is_bytes_of_a_repetition_over_its_time() -> None:
    """A ping-pong of 8 B in 100 ns each way moves 16 B in 200 ns: 80 MB/s; its interval is the time's, inverted."""
    (figure,) = figures_of(measurements_with_medians([80, 90, 100, 100, 110, 125]))
    assert (figure.value_ns, figure.low_ns, figure.high_ns) == (100.0, 80.0, 125.0)
    assert figure.rate_bytes_per_s == pytest.approx(80e6)
    assert figure.rate_low_bytes_per_s == pytest.approx(64e6)
    assert figure.rate_high_bytes_per_s == pytest.approx(100e6)


def test_message_rate_is_messages_of_a_repetition_over_its_time() -> None:
    """Sixteen messages in a row, each of 100 ns: ten million a second; its interval is the time's, inverted."""
    window = Definition("root", 16, 16 * 8, 16)
    measurements = measurements_with_medians([80, 90, 100, 100, 110, 125], definition=window)
    (figure,) = figures_of(measurements)
    assert figure.value_ns == 100.0
    assert figure.low_ns is not None
    assert figure.high_ns is not None
    assert figure.messages_per_s == pytest.approx(10e6)
    assert figure.messages_low_per_s == pytest.approx(1e9 / figure.high_ns)
    assert figure.messages_high_per_s == pytest.approx(1e9 / figure.low_ns)
    (silent,) = figures_of(measurements_with_medians([100] * 6, definition=Definition("slowest", 1, 0, 0)))
    assert silent.messages_per_s is None


def test_rates_count_only_messages_that_arrived() -> None:
    """A ping-pong of 3 samples has 6 messages; of the 36 of six measurements 9 are lost. The time is that of all."""
    some_lost = [(1.0, 0.0)] * 3 + [(0.0, 2.0)] * 3
    figures = [
        figures_of([make_measurement(counters={"lost": each}) for each in lost])[0]
        for lost in ([(0.0, 0.0)] * 6, some_lost, [(6.0, 6.0)] * 6)
    ]
    whole, some, none = [(figure.rate_bytes_per_s, figure.messages_per_s) for figure in figures]
    assert some == pytest.approx((0.75 * (whole[0] or 0), 0.75 * (whole[1] or 0)))
    assert none == (None, None)
    assert len({figure.value_ns for figure in figures}) == 1


@pytest.mark.parametrize(
    "measurement",
    [
        make_measurement(definition=dataclasses.replace(HALF_ROUND_TRIP, bytes_per_rep=0)),
        make_measurement(elapsed_ns=[[0, 0, 0]] * 2),  # no time is below the clock's resolution
    ],
)
def test_no_bytes_or_no_time_has_no_rate(measurement: object) -> None:
    (figure,) = figures_of([measurement])  # type: ignore[list-item]
    assert figure.rate_bytes_per_s is None


def test_batch_and_divisor_count() -> None:
    definition = Definition("sources", 4, 100, 1)
    (figure,) = figures_of([make_measurement(elapsed_ns=[[800], [1600], [9], [9]], batch=10, definition=definition)])
    assert figure.value_ns == 30.0  # mean of two sources / (10 x 4)
    assert figure.rate_bytes_per_s == pytest.approx(100 / 120e-9)


def test_one_figure_per_state_in_order() -> None:
    measurements = [
        *measurements_with_medians([900], floor_ns=None),
        *measurements_with_medians([300] * 6, floor_ns=FAR),
        *measurements_with_medians([200], floor_ns=(27.0, 190.0)),
        *measurements_with_medians([100] * 3, floor_ns=NEAR),
    ]
    figures = figures_of(measurements)
    assert [(each.state, each.value_ns, each.n_measurements) for each in figures] == [
        ("near", 100.0, 3),
        ("far", 300.0, 6),
        ("mixed", 200.0, 1),
        ("unknown", 900.0, 1),
    ]
    assert [each.floor_ns for each in figures] == [27.5, 187.0, None, None]


def test_states_may_be_given() -> None:
    """As the whole run saw them: here two measurements that alone would be one level."""
    measurements = measurements_with_medians([100, 200])
    states = [State("near", 27.0), State("far", 184.0)]
    assert [(each.state, each.value_ns) for each in figures_of(measurements, states)] == [
        ("near", 100.0),
        ("far", 200.0),
    ]
    with pytest.raises(ValueError, match="zip"):
        figures_of(measurements, states[:1])


def test_definitions_are_never_mixed() -> None:
    other = dataclasses.replace(HALF_ROUND_TRIP, divisor=1)
    measurements = [*measurements_with_medians([100] * 2), *measurements_with_medians([200] * 3, definition=other)]
    assert [(each.definition, each.n_measurements) for each in figures_of(measurements)] == [
        (HALF_ROUND_TRIP, 2),
        (other, 3),
    ]


def test_batches_are_never_mixed() -> None:
    """Four measurements of one repetition, slower by the rest of a barrier, and six of a hundred."""
    alone = [make_measurement(elapsed_ns=[[9000], [9000]], batch=1, round_=i) for i in range(4)]
    many = [make_measurement(elapsed_ns=[[20_000 + i], [20_000]], batch=100, round_=4 + i) for i in range(6)]
    (figure,) = figures_of(alone + many)
    assert (figure.batch, figure.n_measurements, figure.n_left_out) == (100, 6, 4)
    assert 100 <= figure.value_ns < 100.1
    assert figure.low_ns is not None
    assert figure.low_ns >= 100


@pytest.mark.parametrize("batches", [(1, 100), (100, 1)])
def test_of_equally_frequent_batches_the_largest_counts(batches: tuple[int, int]) -> None:
    measurements = [make_measurement(batch=batch, round_=i) for batch in batches for i in range(3)]
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
    assert figure.value_ns == pytest.approx(stats.gmean(times_ns))
    assert (figure.low_ns, figure.high_ns) == pytest.approx(np.exp([expected.low, expected.high]), rel=0.002)
    assert figure.coverage == 0.95


def test_one_launch_has_an_interval_within_itself() -> None:
    (two,), (single,) = figures_of(launches_of(100, 104)), figures_of(launches_of(100, measurements=8))
    assert (two.interval_over, single.interval_over) == ("launches", "within one launch")
    assert two.low_ns is not None
    assert two.low_ns < 90
    assert (single.between_launches, single.launches_needed) == (None, None)


def test_a_time_of_zero_has_no_scatter_and_no_number_of_launches() -> None:
    """The clock may be too coarse for one launch and not for another."""
    zero = [make_measurement(elapsed_ns=[[0, 0, 0]] * 2, launch_id=9) for _ in range(3)]
    (figure,) = figures_of([*launches_of(100, 110), *zero], precision=0.01)
    assert (figure.between_launches, figure.within_launches, figure.launches_needed) == (None, None, None)


def test_another_confidence_has_another_interval() -> None:
    widths = []
    for confidence in (0.9, 0.95, 0.99):
        (figure,) = figures_of(launches_of(100, 101, 103), confidence=confidence)
        assert figure.coverage == confidence
        assert figure.precision is not None
        widths.append(figure.precision)
    assert widths == sorted(widths)


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


def test_the_launches_needed_reach_the_precision() -> None:
    for deviation, precision in ((0.001, 0.01), (0.01, 0.02), (0.03, 0.01), (0.05, 0.1)):
        count = launches_needed(deviation, precision)
        half_widths = [
            math.expm1(stats.t.ppf(0.975, n - 1) * deviation / math.sqrt(n)) for n in (count, count - 1) if n > 1
        ]
        assert half_widths[0] <= precision * 1.001
        assert all(half_width > precision * 0.995 for half_width in half_widths[1:])


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


def test_p99_needs_single_repetitions() -> None:
    one_batch = HALF_ROUND_TRIP
    samples = [list(range(0, 2020, 20))] * 2  # 101 samples: 0 .. 1000 ns each way
    (figure,) = figures_of([make_measurement(elapsed_ns=samples, definition=one_batch)])
    assert figure.p99_ns == pytest.approx(990)
    assert figures_of([make_measurement(elapsed_ns=samples, batch=2)])[0].p99_ns is None
    assert figures_of([make_measurement(elapsed_ns=[s[:99] for s in samples])])[0].p99_ns is None


def test_percentiles_are_of_all_events_of_all_measurements() -> None:
    """1 to 4000 us in four measurements, in any order: the p-th percentile is p times the largest."""
    definition = Definition("root", 1, 0, 0)
    times = np.random.default_rng(7).permutation(np.arange(1, 4001)) * 1000
    measurements = [
        make_measurement(elapsed_ns=np.stack([part, 0 * part]), definition=definition) for part in times.reshape(4, -1)
    ]
    (figure,) = figures_of(measurements)
    assert figure.p99_ns == pytest.approx(3960e3, rel=1e-3)
    assert figure.p999_ns == pytest.approx(3996e3, rel=1e-3)
    assert figure.value_ns == pytest.approx(2000e3, rel=0.03)
    assert (figure.rate_bytes_per_s, figure.messages_per_s) == (None, None)
    assert figures_of(measurements[:1])[0].p999_ns is not None
    assert figures_of([make_measurement(elapsed_ns=times[None, :999], definition=definition)])[0].p999_ns is None


def test_slowest_rank_is_named() -> None:
    elapsed_ns = [[10, 10, 10, 50], [20, 20, 20, 20], [15, 15, 15, 15]]
    measurements = [
        make_measurement(elapsed_ns=elapsed_ns, definition=SLOWEST),
        make_measurement(elapsed_ns=elapsed_ns, definition=SLOWEST),
    ]
    (figure,) = figures_of(measurements)
    assert (figure.slowest_rank, figure.slowest_share) == (1, 0.75)
    assert figure.value_ns == 20.0
    other = make_measurement(elapsed_ns=[[30] * 4, [20] * 4, [15] * 4], definition=SLOWEST)
    (figure,) = figures_of([*measurements, *measurements, other])  # rank 1 in 12 of 20 samples, not in the last ones
    assert (figure.slowest_rank, figure.slowest_share) == (1, 0.6)
    assert figures_of([make_measurement(elapsed_ns=elapsed_ns)])[0].slowest_rank is None


def test_a_point_is_verified_if_any_measurement_was() -> None:
    """A long payload is checked in the first measurement alone."""
    first, later = make_measurement(floor_ns=(27.0, 28.0)), make_measurement(verified=False, floor_ns=(184.0, 186.0))
    assert [figure.verified for figure in figures_of([first, later, later])] == [True, True]
    assert [figure.verified for figure in figures_of([later, later])] == [False]


def test_without_payload_nothing_is_verified() -> None:
    barrier = make_measurement(make_point(0, pattern="barrier"), definition=SLOWEST, verified=False)
    harness = make_measurement(make_point(8, "null", traits=PatternTraits(payload=False)), verified=False)
    loads = make_measurement(make_point(64, pattern="memload"), verified=False)
    assert [figures_of([measurement])[0].verified for measurement in (barrier, harness, loads)] == [None, None, None]


def test_intervals_over_measurements_cover_the_truth() -> None:
    """Measurements differ by 5 %, samples within one by 1 %.

    An interval that counted samples would miss most of the time.
    """
    rng = np.random.default_rng(8)
    truth_ns, trials, covered = 20_000.0, 400, 0
    coverage = 0.0
    for _ in range(trials):
        levels_ns = truth_ns * rng.lognormal(0, 0.05, 12)
        samples = np.rint(levels_ns[:, None] * rng.lognormal(0, 0.01, (12, 40))).astype(np.int64)
        measurements = [
            make_measurement(elapsed_ns=[row, row], definition=Definition("root", 1, 8, 1)) for row in samples
        ]
        (figure,) = figures_of(measurements)
        assert figure.low_ns is not None
        assert figure.high_ns is not None
        assert figure.coverage is not None
        coverage = figure.coverage
        covered += figure.low_ns <= truth_ns <= figure.high_ns
    assert covered / trials == pytest.approx(coverage, abs=4 * math.sqrt(coverage * (1 - coverage) / trials))


def test_figures_of_two_states_are_those_of_each_alone() -> None:
    """The parts of a whole run's scatter: 73 % over both states, 3 % within each."""
    rng = np.random.default_rng(9)
    near = measurements_with_medians(150 * rng.lognormal(0, 0.03, 40), floor_ns=NEAR)
    far = measurements_with_medians(370 * rng.lognormal(0, 0.03, 25), floor_ns=FAR)
    measurements = [*near, *far]
    rng.shuffle(measurements)
    figures = figures_of(measurements, classify([measurement.probe for measurement in measurements]))
    assert [each.n_measurements for each in figures] == [40, 25]
    assert [each.value_ns for each in figures] == pytest.approx([150, 370], rel=0.03)
    assert all(each.precision is not None and each.precision < 0.04 for each in figures)


@pytest.mark.parametrize("short", [1, 2])
def test_six_launches_of_three_measurements_leave_out_shorter_ones(short: int) -> None:
    medians_ns, launch_ids = [100.0] * 18 + [900.0] * short, [*sorted([*range(6)] * 3), *[6] * short]
    assert time_of(medians_ns, launch_ids)[0].value == pytest.approx(100)
    assert time_of(medians_ns[3:], launch_ids[3:])[0].value > 120  # with five of them each one counts


def test_the_interval_of_printed_times_includes_the_coarsest_digit() -> None:
    """As of 1.00 us and of 1.0 us."""
    coarse = make_measurement(elapsed_ns=[[2000]], counters={DIGITS: (50.0,)})
    fine = [make_measurement(elapsed_ns=[[2000]], counters={DIGITS: (5.0,)}) for _ in range(6)]
    (figure,) = figures_of([*fine, coarse])
    assert (figure.low_ns, figure.value_ns, figure.high_ns) == (950.0, 1000.0, 1050.0)


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
