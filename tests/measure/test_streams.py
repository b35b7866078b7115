"""A stream is long enough for its ends, its sides keep pace, or it has no figure."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.builders import make_measurement, make_point
from tests.measure.made_up_machine import Machine, all_measurements, plan_of, sample

from hockney.measure.point_work import (
    PointFailed,
    batch_for_ends,
    ends_ns,
    keeps_pace,
    measure_exactly,
    refuse_no_time,
    refuse_short,
)
from hockney.measure.predict import times_of
from hockney.model import Definition, Measurement, Point, PointStatus
from hockney.worker.machine_model import load_model

ONEWAY = make_point(pattern="oneway")
EACH = Definition("root", 1, 8, 1)


def batches(batch: int, *sides_ns: list[int], point: Point = ONEWAY) -> Measurement:
    return make_measurement(point, sides_ns, batch=batch, definition=EACH)


def network(ends: float, each: float, made: list[int]) -> Callable[..., Measurement]:
    """Measures a stream of which each message takes `each` ns, and all together what the ends take."""

    def measure(batch: int, *, samples: int, warmup: int) -> Measurement:
        made.append(batch)
        return batches(batch, *[[round(ends + batch * each)] * samples] * 2)

    return measure


def test_ends_are_what_a_batch_takes_besides_its_repetitions() -> None:
    once, longer = batches(1, [9000, 1010, 1100], [9, 9, 9]), batches(100, [2000, 1900, 2000], [9, 9, 9])
    assert ends_ns(once, longer) == pytest.approx(1000)  # of 1010 ns and 2000 ns
    assert ends_ns(once, once) == 0
    assert ends_ns(batches(1, [19], [9]), longer) == 0
    assert batch_for_ends(longer, 1000, 25) == 2500
    assert batch_for_ends(longer, 0, 25) == 0
    assert batch_for_ends(longer, 2000, 25) == float("inf")


def test_a_batch_shorter_than_8_times_its_ends_makes_no_figure() -> None:
    longer, shorter = (batches(batch, [1000 + 10 * batch] * 3, [9] * 3) for batch in (800, 799))
    refuse_short(longer, 1000, "wait")
    with pytest.raises(PointFailed, match=r"799 repetitions last less than 8 times .*, 1\.00 us; wait") as caught:
        refuse_short(shorter, 1000, "wait")
    assert caught.value.skipped


@pytest.mark.parametrize(
    ("ends", "each", "batch"),
    [(0, 10, 256), (25, 10, 256), (26, 10, 512), (154_000, 63, 244_445), (400_000, 63, 1 << 17)],
)
def test_a_model_s_stream_lasts_a_hundred_times_its_ends(ends: int, each: int, batch: int) -> None:
    """At least 256 events, and no more messages than are simulated in a moment."""
    made: list[int] = []
    point = make_point(pattern="oneway", transport="sim@made-up")
    measurement = measure_exactly(point, network(ends, each, made))
    assert measurement.batch == pytest.approx(min(batch, 1 << 17), rel=0.001)
    assert len(made) <= 3


def test_a_model_s_stream_that_would_take_too_long_has_no_figure() -> None:
    with pytest.raises(PointFailed, match="131072 repetitions last less than 8 times"):
        measure_exactly(make_point(pattern="oneway"), network(1_100_000, 63, []))
    assert measure_exactly(make_point(pattern="oneway"), network(1_000_000, 63, [])).batch == 1 << 17


@pytest.mark.parametrize(("point", "batch"), [(ONEWAY, 256), (make_point(), 4)])
def test_what_takes_no_time_has_no_figure(point: Point, batch: int) -> None:
    with pytest.raises(PointFailed, match="no cost for what the timed rank does"):
        measure_exactly(point, network(0, 0, []))
    assert refuse_no_time(batches(batch, [0, 1], [0, 0])).batch == batch


@pytest.mark.parametrize(
    ("pattern", "sides_ns", "keeps"),
    [
        ("stream", ([1000, 980], [990, 1000]), True),
        ("stream", ([1000, 979], [990, 1000]), False),
        ("stream", ([1000, 979], [990, 990], [0, 0]), True),
        ("oneway", ([1000, 10], [10, 1000]), True),
    ],
)
def test_writer_and_reader_keep_pace_within_2_percent_in_every_sample(
    pattern: str, sides_ns: tuple[list[int], ...], keeps: bool
) -> None:
    assert keeps_pace(batches(1, *sides_ns, point=make_point(pattern=pattern))) is keeps


@pytest.mark.parametrize(("fill", "warmups"), [(1, [1]), (2, [1, 4]), (60, [1, 4, 16, 64])])
def test_a_byte_stream_begins_with_what_fills_its_buffer(fill: int, warmups: list[int]) -> None:
    tried: list[int] = []
    point = make_point(pattern="stream")

    def measure(batch: int, *, samples: int, warmup: int) -> Measurement:
        tried.append(warmup)
        return batches(batch, [100 * batch if warmup >= fill else 20 * batch] * samples, [100 * batch] * samples)

    def of_256_writes(batch: int, *, samples: int, warmup: int) -> Measurement:
        made = measure(batch, samples=samples, warmup=warmup)
        return make_measurement(point, made.elapsed_ns, batch=batch, definition=Definition("slowest", 256, 256, 256))

    assert measure_exactly(point, of_256_writes).batch == 2
    assert tried[1:] == warmups
    fill = 1025
    with pytest.raises(PointFailed, match="1024 writes do not fill the buffer"):
        measure_exactly(point, of_256_writes)


# ---- a real transport ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ends_us", "least"), [(0, 1.0), (30, 1.0), (200, 5.0)])
def test_a_measured_stream_lasts_its_25_ends(ends_us: int, least: float) -> None:
    """A millisecond is enough on one machine. The sampler allows half of what it wants."""
    notes = sample(Machine(lambda _: 500.0, ends_ns=1e3 * ends_us), plan_of(ONEWAY))
    lengths_ms = [measurement.batch * 1e-3 for measurement in all_measurements(notes)]
    assert {status for status, _ in notes.ends.values()} == {PointStatus.PRECISE}
    assert all(least / 2 <= length_ms <= 2 * least for length_ms in lengths_ms)


@pytest.mark.parametrize(("ends_ms", "is_refused"), [(30, False), (80, True)])
def test_a_measured_stream_that_its_time_does_not_lengthen_has_no_figure(ends_ms: int, is_refused: bool) -> None:
    points = [make_point(64 * number, pattern="oneway") for number in range(1, 20)]
    notes = sample(Machine(lambda _: 500.0, ends_ns=1e6 * ends_ms), plan_of(*points), budget_s=8)
    assert {status is PointStatus.SKIPPED for status, _ in notes.ends.values()} == {is_refused}
    assert all("give it more --time" in str(why) for _, why in notes.ends.values() if is_refused)


# ---- models of machines ----------------------------------------------------------------------------------------------


def test_no_message_of_the_t3d_is_faster_than_a_put() -> None:
    """A latency of 77 us is of software, whose part on either side each message of a stream takes."""
    options = [(), (("until", "sent"),), (("window", "16"),)]
    points = [make_point(pattern="oneway", transport="sim", options=option) for option in options]
    points += [make_point(pattern=pattern, transport="sim") for pattern in ("pingpong", "put", "putpong")]
    *streams, half, put, seen = times_of(points, {"sim": load_model("t3d")}).time_ns.values()
    assert (half, put, seen) == pytest.approx((77_060, 1066, 1629), rel=0.001)
    assert streams == pytest.approx([37_967] * 3, rel=0.01)


def test_both_sides_of_the_ancor_s_streams_agree_in_every_sample() -> None:
    """Whatever was measured before in the job."""
    ways = ("blocking", "nonblocking")
    points = [
        make_point(size, "sim", "stream", options=(("read", read), ("source", source), ("write", write)))
        for write, read, source in itertools.product(ways, ways, "01")
        for size in (1, 16, 256, 1024, 65500)
    ]
    times = times_of(points, {"sim": load_model("ancor")})
    assert not times.failed
    for point, measurement in times.measured.items():
        low, high = measurement.elapsed_ns.min(), measurement.elapsed_ns.max()
        assert high <= 1.02 * low, (point, measurement.elapsed_ns)
