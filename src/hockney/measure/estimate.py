"""How long a plan's first rounds will take, and how long a measurement may take."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from hockney.model import Point
from hockney.worker.points import FIRST_POINT_S

MIN_MEASUREMENTS = 10  # to be called precise; fewer than six give no 95 % interval of a median at all
SAMPLES_MIN = 3  # of a measurement, unless a single one is long
SCHEDULE_EVENTS_MIN = 1000  # enough for p99.9
FIRST_ROUNDS_MIN = 3  # in the time of fewer there are too few measurements for any interval
_RANK_START_S = 0.03  # of a library: 64 on two virtual CPUs take 2 to 4 s
SPAN_S = 1.0  # of all launches: it outlasts a slow tenth of a second, which then shows in the interval


def long_ns(points: int, time_s: float) -> float:
    """The time from which a repetition alone makes a measurement, if this many points share the time of a launch.

    Half a second, because a repetition without a warm-up then loses little; down to a tenth of that if a point's share
    is too short for enough measurements of several samples and a warm-up.
    """
    share_ns = 1e9 * time_s / max(1, points)
    return min(500_000_000, max(50_000_000, share_ns / (MIN_MEASUREMENTS * (SAMPLES_MIN + 1))))


def stream_ns(points: int, time_s: float, limit_s: float) -> float:
    """How long a measurement of a stream may last, so that its ends weigh little: its point's share of the time.

    At least half a second, but no longer than a third of the time limit.
    """
    return 1e9 * min(max(0.5, time_s / max(1, points)), limit_s / 3)


def events_on_schedule(rate_hz: int) -> int:
    """How many events a measurement has: those of 50 ms, at least 1,000, but no more than those of half a second.

    And no more than 5,000, which a store holds with ease.
    """
    wanted = max(SCHEDULE_EVENTS_MIN, int(rate_hz * 0.05))
    return max(1, min(wanted, 5000, int(rate_hz * 0.5)))


def stream_least(point: Point) -> tuple[int, float]:
    """How many events and ns a sample of a stream has at least, so that its ends weigh little.

    Of long messages between two ranks, which overlap within themselves, a few; without messages there is no last
    acknowledgement. The shorter a sample, the less likely another program interrupts it.
    """
    if not point.traits.payload:
        return 64, 0.0
    return (16, 250_000.0) if is_long(point) and point.ranks == 2 else (64, 1_000_000.0)


def is_long(point: Point) -> bool:
    """Whether a repetition sends more than 64 KiB."""
    return point.bytes * int(dict(point.options).get("window", 1)) > 1 << 16


def long_messages_s(budget_s: float, launches: int) -> float:
    """For how long a first round has long messages on slow transports: three times its time, a minute at least."""
    return max(3 * budget_s, 60.0 / launches)


def first_rounds_s(
    points: Sequence[Point], launches: int, *, on_hosts: bool = False, start_s: float | None = None
) -> float:
    """The time of the first round of every launch, which is made whole, except for long_messages_s, under any budget.

    Only for long messages are long repetitions known beforehand. Constants are from two virtual CPUs, and for ranks
    that are not all on one of several hosts from a network of 1 Gbit/s. `start_s`: of a library's job, if it is known.
    """
    jobs = {(point.transport, point.ranks) for point in points}
    known_s = (start_s or 0.2 + _RANK_START_S * max(0, ranks - 2) if "@" in name else 0.02 for name, ranks in jobs)
    starts_s = sum(known_s)
    points_s = sum(
        FIRST_POINT_S + _first_bytes_s(point, over_network=on_hosts and point.per_host != point.ranks)
        for point in points
    )
    return launches * (starts_s + points_s)


def _first_bytes_s(point: Point, *, over_network: bool) -> float:
    """The time for the bytes of a point in its first round.

    In memory they are touched, filled, verified, and sent 8 times (docs/methods.md): 10 ns a byte, 3 of further
    messages; two ranks run at full speed, more ones slower in proportion to their number. Over a network messages are
    sent about four times, by a rank to all others in turn where its pattern does so.
    """
    window = int(dict(point.options).get("window", 1))
    if over_network:
        byte_ns = 4 * 8.0 * window * (max(1, point.ranks - 1) if point.traits.law == "messages" else 1)
    else:
        byte_ns = (10.0 + 3.0 * (window - 1)) * max(1.0, point.ranks / 2)
    return point.bytes * byte_ns / 1e9


def is_too_short(time_s: float, first_s: float, launches: int) -> bool:
    """Whether hardly any interval is possible if the first rounds of all launches take first_s.

    One launch takes six measurements, without which no median has an interval; several take fewer of each.
    """
    return time_s < first_s * (6 if launches == 1 else FIRST_ROUNDS_MIN)


def enough_text(first_s: float) -> str:
    """A --time that is enough for intervals, if the first rounds take first_s."""
    enough_s = max(MIN_MEASUREMENTS * first_s, 2 * SPAN_S)
    return f"{math.ceil(enough_s)}s" if enough_s <= 120 else f"{math.ceil(enough_s / 60)}m"


# ---- limits between hosts: one that dies is then soon named -----------------------------------------------------

LEAST_S = 4  # TCP sends a segment again four times within it
_TIMES = 10
_FIRST_BYTES_PER_S = 1e6  # of a network that is slow, but no fault
_PLACES = ("source", "target", "distance", "round", "direction")  # options that say where messages go


def enough_s(known_s: float, most_s: int) -> int:
    """The limit in whole seconds for something that should take known_s; never above most_s."""
    return min(most_s, math.ceil(max(LEAST_S, _TIMES * known_s)))


class LearnedLimits:
    """How long a measurement between hosts may take, from the longest ones so far."""

    def __init__(self) -> None:
        self._longest_s: dict[Point, float] = {}
        self._repetition_s: dict[Point, float] = {}
        self._of_alike_s: defaultdict[Point, float] = defaultdict(float)  # by points without their size and place

    def note(self, point: Point, took_s: float, repetition_s: float) -> None:
        """Note a measurement's time; `repetition_s` is that of a repetition, without the work before and after all."""
        self._longest_s[point] = max(took_s, self._longest_s.get(point, 0.0))
        self._of_alike_s[_alike(point)] = max(took_s, self._of_alike_s[_alike(point)])
        self._repetition_s[point] = repetition_s

    def limit_s(self, point: Point, repetitions: int, most_s: int) -> int:
        """The limit of the next measurement: most_s for the first one of its kind.

        The first one of another size or pair may take as long as its messages on a slow network, in addition.
        """
        if point in self._longest_s:
            return enough_s(max(self._longest_s[point], repetitions * self._repetition_s[point]), most_s)
        if _alike(point) not in self._of_alike_s:
            return most_s
        messages = int(dict(point.options).get("window", 1)) * (2 if point.traits.links else point.ranks)
        first_s = (repetitions + 1) * messages * point.bytes / _FIRST_BYTES_PER_S  # one more is verified
        return min(most_s, enough_s(self._of_alike_s[_alike(point)], most_s) + math.ceil(first_s))


def _alike(point: Point) -> Point:
    options = tuple(option for option in point.options if option[0] not in _PLACES)
    return Point(point.transport, point.pattern, point.ranks, 0, options)
