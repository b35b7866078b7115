"""How long the first round of a plan takes, roughly, before anything of it is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hockney.model import Point

MIN_MEASUREMENTS = 10  # to be called precise; fewer than six give no 95 % interval of a median at all
SAMPLES_MIN = 3  # of a measurement, unless a single one is long
_LONG_NS = 500_000_000  # a sample this long is a measurement by itself, and what a warm-up would save is lost in it
_LONG_LEAST_NS = 50_000_000  # a tenth of it is so too, where the time is short
_SCHEDULE_S, _SCHEDULE_LONG_S = 0.05, 0.5  # of events on schedule, in a measurement
SCHEDULE_EVENTS_MIN, _SCHEDULE_EVENTS_MAX = 1000, 5000  # enough for p99.9; and no more than a store holds with ease
FIRST_ROUNDS_MIN = 3  # in the time of fewer there are too few measurements for any interval
_ROUNDS_MIN = 6  # of one launch: fewer measurements give no interval of a median
SPAN_S = 1.0  # of all launches: what slows a machine for a tenth of a second is then over, and shows in the interval
_ENOUGH = 10  # first rounds: as many measurements of each point are wanted
FIRST_POINT_S = 0.015  # of the first round, seen with sockets and MPIs on two virtual CPUs
_FIRST_START_S = 0.02  # likewise, of a job,
_FIRST_LIBRARY_START_S = 0.2  # and of one that a library's launcher starts
_FIRST_BYTE_NS = 10.0  # of a long message: memory is touched, filled, verified, and sent 8 times (docs/methods.md)
_NEXT_BYTE_NS = 3.0  # of every other message of its window


def long_ns(points: int, time_s: float) -> float:
    """How long a repetition is that makes a measurement by itself, where so many points have this time for a launch.

    Less where a point's share of the time has no room for enough measurements of several samples and a warm-up.
    """
    share_ns = 1e9 * time_s / max(1, points)
    return min(_LONG_NS, max(_LONG_LEAST_NS, share_ns / (MIN_MEASUREMENTS * (SAMPLES_MIN + 1))))


def events_on_schedule(rate_hz: int) -> int:
    """How many events a measurement has: those of 50 ms, at least 1,000, but no more than those of half a second."""
    wanted = max(SCHEDULE_EVENTS_MIN, int(rate_hz * _SCHEDULE_S))
    return max(1, min(wanted, _SCHEDULE_EVENTS_MAX, int(rate_hz * _SCHEDULE_LONG_S)))


def first_rounds_s(points: Sequence[Point], launches: int) -> float:
    """What the first round of every launch takes: it is made whole, whatever the budget.

    Of long repetitions only those of long messages are known beforehand.
    """
    jobs = {(point.transport, point.ranks) for point in points}
    starts_s = sum(_FIRST_LIBRARY_START_S if "@" in transport else _FIRST_START_S for transport, _ in jobs)
    points_s = sum(FIRST_POINT_S + _first_bytes_s(point) for point in points)
    return launches * (starts_s + points_s)


def is_too_short(time_s: float, first_s: float, launches: int) -> bool:
    """Whether there will hardly be any interval where the first rounds of all launches take first_s.

    Over several launches it takes fewer measurements of each.
    """
    return time_s < first_s * (_ROUNDS_MIN if launches == 1 else FIRST_ROUNDS_MIN)


def enough_text(first_s: float) -> str:
    """A --time in which intervals can be had, where first rounds take first_s."""
    enough_s = max(_ENOUGH * first_s, 2 * SPAN_S)
    return f"{math.ceil(enough_s)}s" if enough_s <= 120 else f"{math.ceil(enough_s / 60)}m"


def _first_bytes_s(point: Point) -> float:
    """Ranks are taken for as quick beside each other as two are, each as many times slower as they are more."""
    window = int(dict(point.options).get("window", 1))
    message_ns = _FIRST_BYTE_NS + _NEXT_BYTE_NS * (window - 1)
    return point.bytes * message_ns * max(1.0, point.ranks / 2) / 1e9
