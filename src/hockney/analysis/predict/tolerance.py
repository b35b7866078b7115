"""How much latency may be added, or bandwidth lost, until a pattern is slower by a given fraction.

The question of LLAMP (Shen et al., SC 2024), answered by running the pattern on changed models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from hockney.analysis.predict.change import Change

SLOWDOWNS = (0.01, 0.02, 0.05)

TimeWith = Callable[[Change], float]


@dataclass(frozen=True)
class Tolerance:
    """`limits`: by slowdown the addition that causes it, None: none does. `curve`: additions and slowdowns.

    An addition is latency in ns, or the part of the bandwidth that is lost.
    """

    limits: dict[float, float | None]
    curve: tuple[tuple[float, float], ...]


def latency_tolerance(plain_ns: float, time_with: TimeWith, *, with_curve: bool = False) -> Tolerance:
    """The latency that can be added to each message of a pattern that takes plain_ns."""

    def slowdown(added_ns: float) -> float:
        return time_with(Change(f"L=+{added_ns:g}ns", "L", added_ns=added_ns)) / plain_ns - 1

    return _tolerance(slowdown, plain_ns, lambda added_ns: added_ns, with_curve=with_curve)


def bandwidth_tolerance(plain_ns: float, time_with: TimeWith, *, with_curve: bool = False) -> Tolerance:
    """The share of bandwidth, of messages and of links, that a pattern of plain_ns can lose."""

    def slowdown(more: float) -> float:
        return time_with(Change.by("bandwidth", 1 / (1 + more))) / plain_ns - 1

    return _tolerance(slowdown, 1.0, lambda more: more / (1 + more), with_curve=with_curve)


def _tolerance(
    slowdown: Callable[[float], float], scale: float, shown: Callable[[float], float], *, with_curve: bool
) -> Tolerance:
    """The tolerance of `slowdown`, a function that grows with the added amount, about linearly in units of `scale`.

    If a thousand times that changes nothing, the tolerance is infinite.
    """
    known = functools.cache(slowdown)
    limits = {wanted: _least(known, wanted, wanted * scale, 1e3 * scale) for wanted in SLOWDOWNS}
    last = next((least for least in reversed(limits.values()) if least is not None), None)
    curve = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
    added = [part * last for part in curve] if with_curve and last is not None else []
    return Tolerance(
        {wanted: None if least is None else shown(least) for wanted, least in limits.items()},
        ((0.0, 0.0), *((shown(each), known(each)) for each in added)) if added else (),
    )


def _least(slowdown: Callable[[float], float], wanted: float, first: float, most: float) -> float | None:
    """The smallest amount at which the slowdown reaches `wanted`, or None if that is beyond `most`."""
    from scipy.optimize import brentq

    high = first
    while slowdown(high) < wanted:
        if high >= most:
            return None
        high = min(most, 8 * high)
    reached = high

    def missing(added: float) -> float:
        nonlocal reached
        more = (slowdown(added) if added else 0.0) - wanted
        if more >= 0:
            reached = min(reached, added)
        return more

    brentq(missing, 0.0, high, rtol=1e-4)  # its root may lie just before a step
    return reached
