"""How a measurement of a point is made, and what a point has seen so far."""

from __future__ import annotations

import pytest
from tests.builders import make_measurement, make_point

from hockney.measure.point_work import Work, batch_ns, curve_in_one_state, most_repetitions, reached_text, repetition_ns
from hockney.model import Definition, PatternTraits
from hockney.stats.states import classify

STREAM = PatternTraits(stream=True)


@pytest.mark.parametrize(
    ("traits", "batch", "repetition_ns", "samples"),
    [
        (PatternTraits(), 10, 1000, 40),
        (PatternTraits(), 100, 1000, 40),
        (PatternTraits(), 101, 1000, 39),
        (PatternTraits(), 1000, 1000, 4),
        (PatternTraits(), 1, 1e9, 3),
        (STREAM, 1, 1e9, 1),
        (STREAM, 1000, 1000, 4),
    ],
)
def test_a_measurement_has_the_samples_of_4_ms_up_to_40(
    traits: PatternTraits, batch: int, repetition_ns: float, samples: int
) -> None:
    """At least three, or one of a stream, whose batch is long."""
    work = Work(make_point(traits=traits))
    work.set_batch(batch, repetition_ns)
    assert (work.batch, work.samples) == (batch, samples)


@pytest.mark.parametrize(
    ("batch", "is_long", "rate_hz", "samples", "warmup"),
    [(1, False, 0, 3, 1), (7, False, 0, 3, 1), (8, False, 0, 3, 2), (1, True, 0, 1, 0), (1, False, 50, 400, 20)],
)
def test_a_quarter_of_a_batch_warms_up_or_a_20th_of_a_schedule(
    batch: int, is_long: bool, rate_hz: int, samples: int, warmup: int
) -> None:
    options = (("rate_hz", str(rate_hz)),) if rate_hz else ()
    work = Work(make_point(options=options), batch=batch, samples=samples, is_long=is_long)
    assert work.warmup == warmup


def test_a_long_payload_is_checked_once_and_a_short_one_always() -> None:
    for size, is_again in ((1 << 16, True), ((1 << 16) + 1, False)):
        work = Work(make_point(size))
        assert work.wants_check()
        work.add(make_measurement(work.point))
        assert work.wants_check() is is_again


def test_the_middle_sample_of_the_slowest_rank_is_the_time_of_a_batch() -> None:
    measurement = make_measurement(elapsed_ns=((10, 50, 30), (20, 5, 40)), batch=4)
    assert batch_ns(measurement) == 40
    assert repetition_ns(measurement) == 10
    assert batch_ns(make_measurement(elapsed_ns=((0, 0), (0, 0)))) == 1


@pytest.mark.parametrize(("ranks", "messages", "most"), [(2, 2, 1 << 17), (64, 2, 1 << 12), (2, 1 << 10, 1 << 8)])
def test_a_batch_has_up_to_a_quarter_of_a_million_messages(ranks: int, messages: int, most: int) -> None:
    """Or as many ranks, where a repetition has no message."""
    definition = Definition("root", 1, 0, messages)
    measurement = make_measurement(make_point(ranks=ranks), definition=definition)
    assert most_repetitions(measurement) == most


def seen(work: Work, floors_ns: list[float], medians_ns: list[float], batches: list[int] | None = None) -> Work:
    for floor_ns, median_ns, batch in zip(floors_ns, medians_ns, batches or [1] * len(medians_ns), strict=True):
        elapsed = [[round(2 * median_ns * batch)] * 3] * 2
        work.add(make_measurement(work.point, elapsed, batch=batch, floor_ns=(floor_ns, floor_ns)))
    work.states = classify(work.probes)
    return work


def test_the_state_with_most_measurements_is_the_main_one() -> None:
    work = seen(Work(make_point()), [27.0] * 6 + [184.0] * 8, [100.0] * 6 + [300.0] * 8)
    time = work.time_in_main_state()
    assert time is not None
    assert (time.value, time.n) == (300.0, 8)
    assert {state: each.value for state, each in work.times_by_state().items()} == {"near": 100.0, "far": 300.0}
    assert Work(make_point()).time_in_main_state() is None


@pytest.mark.parametrize(("pattern", "counted"), [("oneway", 7), ("pingpong", 9)])
def test_measurements_of_another_batch_do_not_count_if_of_a_stream(pattern: str, counted: int) -> None:
    point = make_point(pattern=pattern)
    work = seen(Work(point), [27.0] * 9, [100.0] * 7 + [300.0] * 2, batches=[10] * 7 + [1] * 2)
    time = work.time_in_main_state()
    assert time is not None
    assert (time.value, time.n) == (100.0, counted)


def test_a_curve_is_taken_in_the_state_with_most_intervals() -> None:
    sizes = [seen(Work(make_point(size)), [27.0] * 6 + [184.0] * 2, [100.0] * 8) for size in (8, 64)]
    far = seen(Work(make_point(512)), [184.0] * 6 + [27.0] * 2, [300.0] * 8)
    assert [(point.bytes, time.value) for point, time in curve_in_one_state([*sizes, far])] == [(8, 100.0), (64, 100.0)]
    assert curve_in_one_state([]) == []


def test_how_far_a_point_got() -> None:
    assert Work(make_point()).reached == "no interval yet; measurements in all: 0"
    assert reached_text(None, "5 launches", 7) == "no interval yet; measurements in all: 7"
    enough = seen(Work(make_point()), [27.0] * 6 + [184.0] * 2, [95.0, 100, 100, 100, 100, 110, 300, 300])
    enough.time = enough.time_in_main_state()
    assert enough.reached == "the interval is +-10.0% over 6 measurements in one state; measurements in all: 8"


def test_a_point_that_begins_anew_counts_from_there() -> None:
    work = seen(Work(make_point(), first_s=1.0), [27.0] * 3, [100.0] * 3)
    assert work.measurements_since == 3
    work.begin_anew()
    assert (work.measurements_since, work.first_s) == (0, None)
