"""How much latency may be added, or bandwidth lost, until a pattern is slower by so much.

The question of LLAMP (Shen et al., SC 2024), answered by running the pattern on changed models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from hockney.analysis.predict.change import Change

SLOWDOWNS = (0.01, 0.02, 0.05)
_CURVE = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # of the addition that makes it slower by the last of these
_PART = 0.002  # of the slowdown wanted: as near as it is reached
_MOST = 1e3  # times the time of the pattern, or the time per byte: what changes nothing until then never does
_STEPS_MAX = 60

TimeWith = Callable[[Change], float]


@dataclass(frozen=True)
class Tolerance:
    """`limits`: by slowdown the addition that causes it, None: none does. `curve`: additions and slowdowns.

    An addition is latency in ns, or the part of the bandwidth that is lost.
    """

    limits: dict[float, float | None]
    curve: tuple[tuple[float, float], ...]


def latency_tolerance(plain_ns: float, time_with: TimeWith, *, with_curve: bool = False) -> Tolerance:
    """What latency can be added to each message of a pattern that takes plain_ns."""

    def slowdown(added_ns: float) -> float:
        return time_with(Change(f"L=+{added_ns:g}ns", "L", added_ns=added_ns)) / plain_ns - 1

    return _tolerance(slowdown, plain_ns, lambda added_ns: added_ns, with_curve=with_curve)


def bandwidth_tolerance(plain_ns: float, time_with: TimeWith, *, with_curve: bool = False) -> Tolerance:
    """What part of the bandwidth, of messages and of links, can be lost by a pattern that takes plain_ns."""

    def slowdown(more: float) -> float:
        return time_with(Change.by("bandwidth", 1 / (1 + more))) / plain_ns - 1

    return _tolerance(slowdown, 1.0, lambda more: more / (1 + more), with_curve=with_curve)


def _tolerance(
    slowdown: Callable[[float], float], scale: float, shown: Callable[[float], float], *, with_curve: bool
) -> Tolerance:
    """`slowdown` grows with what is added, about as much as that grows in parts of `scale`."""
    known = functools.cache(slowdown)
    limits = {wanted: _least(known, wanted, wanted * scale, _MOST * scale) for wanted in SLOWDOWNS}
    last = next((least for least in reversed(limits.values()) if least is not None), None)
    added = [part * last for part in _CURVE] if with_curve and last is not None else []
    return Tolerance(
        {wanted: None if least is None else shown(least) for wanted, least in limits.items()},
        ((0.0, 0.0), *((shown(each), known(each)) for each in added)) if added else (),
    )


def _least(slowdown: Callable[[float], float], wanted: float, first: float, most: float) -> float | None:
    """Where the slowdown reaches what is wanted, not beyond `most`.

    Times are pieces of lines, which a chord meets at once; halving helps where they jump.
    """
    low, at_low, high, at_high = 0.0, 0.0, first, slowdown(first)
    while at_high < wanted:
        if high >= most:
            return None
        low, at_low = high, at_high
        high = min(most, 8 * high)
        at_high = slowdown(high)
    for step in range(_STEPS_MAX):
        if at_high <= wanted * (1 + _PART) or high - low <= _PART * high:
            break
        chord = low + (wanted - at_low) / (at_high - at_low) * (high - low)
        middle = chord if step % 2 == 0 else (low + high) / 2
        at_middle = slowdown(middle)
        if at_middle >= wanted * (1 - _PART):
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return high
