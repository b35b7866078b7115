"""Times that are known before a measurement: of a long repetition, a stream, the first rounds, and the least --time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hockney.measure.estimate import (
    enough_text,
    events_on_schedule,
    first_rounds_s,
    is_long,
    is_too_short,
    long_messages_s,
    long_ns,
    stream_least,
    stream_ns,
)
from hockney.model import PatternTraits, Point


@pytest.mark.parametrize(("points", "long_ms"), [(0, 500), (6, 500), (30, 100), (60, 50), (1000, 50)])
def test_a_repetition_is_long_from_a_40th_of_its_points_share(points: int, long_ms: int) -> None:
    """Ten measurements of three samples and a warm-up; at most half a second, at least a tenth of it."""
    assert long_ns(points, 120) == pytest.approx(long_ms * 1e6)


@pytest.mark.parametrize(("points", "time_s", "stream_s"), [(4, 10, 2.5), (1000, 10, 0.5), (0, 10, 10), (1, 120, 20)])
def test_a_stream_lasts_its_share_and_at_most_a_third_of_the_limit(points: int, time_s: int, stream_s: float) -> None:
    assert stream_ns(points, time_s, limit_s=60) == pytest.approx(1e9 * stream_s)


@pytest.mark.parametrize(
    ("size", "window", "ranks", "payload", "least"),
    [
        (8, 1, 2, True, (64, 1e6)),
        (1 << 16, 1, 2, True, (64, 1e6)),
        ((1 << 16) + 1, 1, 2, True, (16, 0.25e6)),
        (1 << 13, 16, 2, True, (16, 0.25e6)),
        (1 << 20, 1, 3, True, (64, 1e6)),
        (0, 1, 2, False, (64, 0)),
    ],
)
def test_a_sample_of_a_stream_is_as_short_as_its_ends_allow(
    size: int, window: int, ranks: int, payload: bool, least: tuple[int, float]
) -> None:
    traits = PatternTraits(stream=True, payload=payload)
    point = Point("shm", "oneway", ranks, size, (("window", str(window)),), traits=traits)
    assert stream_least(point) == least


@pytest.mark.parametrize(
    ("rate_hz", "events"), [(1, 1), (3, 1), (2000, 1000), (20_000, 1000), (20_020, 1001), (100_020, 5000)]
)
def test_events_on_schedule(rate_hz: int, events: int) -> None:
    assert events_on_schedule(rate_hz) == events


@pytest.mark.parametrize(
    ("budget_s", "launches", "long_s"), [(10, 1, 60), (30, 1, 90), (1, 6, 10), (10, 6, 30), (0, 2, 30)]
)
def test_first_rounds_have_long_messages_for_three_times_their_time_and_a_minute(
    budget_s: float, launches: int, long_s: float
) -> None:
    assert long_messages_s(budget_s, launches) == long_s


@pytest.mark.parametrize(
    ("size", "window", "long"), [(65536, 1, False), (65537, 1, True), (4096, 16, False), (4097, 16, True)]
)
def test_more_than_64_kib_at_once_is_long(size: int, window: int, *, long: bool) -> None:
    assert is_long(Point("tcp", "oneway", 2, size, (("window", str(window)),))) is long
    assert is_long(Point("tcp", "pingpong", 2, size)) is (size > 65536)


@pytest.mark.parametrize(("launches", "least_s"), [(1, 6.0), (2, 3.0), (6, 3.0)])
def test_six_measurements_are_enough_or_three_rounds_of_several_launches(launches: int, least_s: float) -> None:
    assert not is_too_short(least_s, 1.0, launches)
    assert is_too_short(least_s - 0.01, 1.0, launches)


@pytest.mark.parametrize(
    ("first_s", "text"), [(0.01, "2s"), (0.2, "2s"), (0.21, "3s"), (12.0, "120s"), (12.1, "3m"), (18.1, "4m")]
)
def test_the_advised_time_has_ten_rounds_and_two_seconds(first_s: float, text: str) -> None:
    assert enough_text(first_s) == text


def test_bytes_take_longer_with_a_window_and_more_ranks_than_two() -> None:
    def bytes_s(ranks: int, window: int) -> float:
        point = Point("shm", "oneway", ranks, 1 << 30, (("window", str(window)),))
        return first_rounds_s([point], 1) - first_rounds_s([Point("shm", "oneway", ranks, 0)], 1)

    assert bytes_s(2, 1) == pytest.approx(10 * 1.0737, rel=1e-3)  # 10 ns a byte
    assert bytes_s(1, 1) == bytes_s(2, 1)
    assert bytes_s(8, 1) == pytest.approx(4 * bytes_s(2, 1))
    assert bytes_s(2, 11) == pytest.approx(4 * bytes_s(2, 1))  # 3 ns for each of ten more


@pytest.mark.parametrize(("law", "messages"), [("messages", 7), (None, 1)])
def test_over_a_network_a_rank_sends_to_all_others_in_turn_where_its_pattern_does(
    law: str | None, messages: int
) -> None:
    def bytes_s(ranks: int) -> float:
        point = Point("tcp", "alltoall", ranks, 1 << 20, traits=PatternTraits(law=law))
        empty_s, first_s = (first_rounds_s([each], 1, on_hosts=True) for each in (replace(point, bytes=0), point))
        return first_s - empty_s

    assert bytes_s(2) == pytest.approx(32e-9 * (1 << 20))
    assert bytes_s(8) == pytest.approx(messages * bytes_s(2))
