"""How long a measurement between hosts may take, from those before it: a host that dies is then soon named."""

from __future__ import annotations

import math
from collections import defaultdict

from hockney.model import Point

_LEAST_S = 4  # TCP sends a segment again four times within it
_TIMES = 10
_FIRST_BYTES_PER_S = 1e6  # of a network that is slow, but no fault
_PLACES = ("source", "target", "distance", "round", "direction")  # options that say where messages go


def enough_s(known_s: float, most_s: int) -> int:
    """The limit in whole seconds for something that should take known_s; never above most_s."""
    return min(most_s, math.ceil(max(_LEAST_S, _TIMES * known_s)))


class Limits:
    """The longest measurements so far."""

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
