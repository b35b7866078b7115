"""Estimates the time of a plan's first round before any measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hockney.model import Point

MIN_MEASUREMENTS = 10  # to be called precise; fewer than six give no 95 % interval of a median at all
SAMPLES_MIN = 3  # of a measurement, unless a single one is long
SCHEDULE_EVENTS_MIN = 1000  # enough for p99.9
FIRST_ROUNDS_MIN = 3  # in the time of fewer there are too few measurements for any interval
SPAN_S = 1.0  # of all launches: it outlasts a slow tenth of a second, which then shows in the interval
FIRST_POINT_S = 0.015  # of the first round, seen with sockets and MPIs on two virtual CPUs


def long_ns(points: int, time_s: float) -> float:
    """The time from which a repetition alone makes a measurement, if this many points share the time of a launch.

    It is half a second, because a repetition without a warm-up then loses little. It is a tenth of that if a point's
    share of the time is too short for enough measurements of several samples and a warm-up.
    """
    share_ns = 1e9 * time_s / max(1, points)
    return min(500_000_000, max(50_000_000, share_ns / (MIN_MEASUREMENTS * (SAMPLES_MIN + 1))))


def stream_ns(points: int, time_s: float, limit_s: float) -> float:
    """How long a measurement of a stream may last: its point's share of the time, at least half a second.

    The ends of a stream then weigh little. It is no longer than a third of the time limit.
    """
    return 1e9 * min(max(0.5, time_s / max(1, points)), limit_s / 3)


def events_on_schedule(rate_hz: int) -> int:
    """How many events a measurement has: those of 50 ms, at least 1,000, but no more than those of half a second.

    And no more than 5,000, which a store holds with ease.
    """
    wanted = max(SCHEDULE_EVENTS_MIN, int(rate_hz * 0.05))
    return max(1, min(wanted, 5000, int(rate_hz * 0.5)))


def is_long(point: Point) -> bool:
    """Whether a repetition sends more than 64 KiB."""
    return point.bytes * int(dict(point.options).get("window", 1)) > 1 << 16


def long_messages_s(budget_s: float, launches: int) -> float:
    """For how long a first round has long messages on slow transports: three times its time, a minute at least."""
    return max(3 * budget_s, 60.0 / launches)


def first_rounds_s(points: Sequence[Point], launches: int, *, on_hosts: bool = False) -> float:
    """The time of the first round of every launch, which is made whole under any budget.

    Only for long messages are long repetitions known beforehand. Constants are from two virtual CPUs, and for ranks
    that are not all on one of several hosts from a network of 1 Gbit/s.
    """
    jobs = {(point.transport, point.ranks) for point in points}
    starts_s = sum(0.2 if "@" in transport else 0.02 for transport, _ in jobs)
    points_s = sum(
        FIRST_POINT_S + (_first_network_s if on_hosts and point.per_host != point.ranks else _first_bytes_s)(point)
        for point in points
    )
    return launches * (starts_s + points_s)


def is_too_short(time_s: float, first_s: float, launches: int) -> bool:
    """Whether hardly any interval is possible if the first rounds of all launches take first_s.

    One launch takes six measurements, without which no median has an interval; several take fewer of each.
    """
    return time_s < first_s * (6 if launches == 1 else FIRST_ROUNDS_MIN)


def enough_text(first_s: float) -> str:
    """A --time that is enough for intervals, if the first rounds take first_s."""
    enough_s = max(MIN_MEASUREMENTS * first_s, 2 * SPAN_S)
    return f"{math.ceil(enough_s)}s" if enough_s <= 120 else f"{math.ceil(enough_s / 60)}m"


def _first_network_s(point: Point) -> float:
    """Messages are sent about four times, counting the warm-up and the verification: 8 ns a byte at 1 Gbit/s."""
    return 4 * 8.0 * point.bytes * int(dict(point.options).get("window", 1)) / 1e9


def _first_bytes_s(point: Point) -> float:
    """Memory is touched, filled, verified, and sent 8 times (docs/methods.md): 10 ns a byte, 3 of further messages.

    Two ranks run at full speed; each of more ranks is slower in proportion to their number.
    """
    window = int(dict(point.options).get("window", 1))
    message_ns = 10.0 + 3.0 * (window - 1)
    return point.bytes * message_ns * max(1.0, point.ranks / 2) / 1e9
