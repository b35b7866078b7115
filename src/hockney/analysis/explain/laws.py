"""How a pattern's time goes with the number of messages, and what does not keep to it.

A law is a straight line over a coordinate (messages, rounds, senders) or a constant. A line of four figures or more is
tried without each of them in turn: where the others then lie on a line and that one does not, it is the odd one. Both
fits weigh errors relative to the time, as all fits here do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.explain.curve import Curve, Options
from hockney.analysis.explain.finding import ratio
from hockney.stats.fit import Estimate

FIGURES_MIN = 4
_LEFT_OUT_MAX = 2  # figures that kink a line
_KEPT = 0.05  # the others keep a law where none is farther off
_ODD_LINE = 0.30  # a line through a few figures is often carried far beyond them
_ODD_CONSTANT = 0.03
_ODD_OVER_REST = 5.0
ON_LINE = 0.005


@dataclass(frozen=True)
class Law:
    """The coordinate that a pattern's time is a line over; a constant in it where `constant`."""

    axis: str
    coordinate: Callable[[Curve], float | None]
    constant: bool = False


@dataclass(frozen=True)
class Item:
    """One figure of a row, at its coordinate; the curve says which."""

    x: float
    time_ns: Estimate
    curve: Curve


@dataclass(frozen=True)
class Row:
    """Figures that differ in the law's coordinate only; `fixed` says what they share beside pattern and transport."""

    law: Law
    size_bytes: int
    fixed: tuple[str, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Odd:
    """The figure of a row that does not keep to the law of the others, and what that law gives in its place.

    `over` is the figure over the law, with the interval that those of all figures leave.
    """

    row: Row
    item: Item
    expected_ns: float
    over: Estimate

    @property
    def relative(self) -> float:
        return self.item.time_ns.value / self.expected_ns - 1


def receivers(curve: Curve) -> float | None:
    """Those of a trigger farm."""
    senders = _senders(curve)
    return None if senders is None else curve.ranks - 1 - senders


def _senders(curve: Curve) -> float | None:
    return float(curve.option("senders") or 1)


def _messages(curve: Curve) -> float:
    return curve.ranks - 1


def _rounds(curve: Curve) -> float:
    return math.ceil(math.log2(curve.ranks))


def _processed(curve: Curve) -> float | None:
    """Messages of an event; a delay hides some, so rows with one follow another law."""
    return curve.ranks - 1 if not float(curve.option("delay_us") or 0) else None


BY_MESSAGES = Law("messages", _messages)
BY_SENDERS = Law("senders", _senders)
LAWS: Mapping[str, tuple[Law, ...]] = {
    "outfarm": (BY_MESSAGES,),
    "multicast": (BY_MESSAGES,),
    "funnel": (BY_MESSAGES,),
    "alltoall": (BY_MESSAGES,),
    "robpush": (Law("messages", _processed),),
    "robpull": (Law("messages", _processed),),
    "barrier": (Law("rounds", _rounds),),
    "pairs": (Law("ranks", lambda curve: curve.ranks, constant=True),),
    "pushfarm": (BY_SENDERS, Law("receivers", receivers, constant=True)),
    "pullfarm": (BY_SENDERS, Law("receivers", receivers, constant=True)),
}


def rows(curves: Iterable[Curve]) -> Iterator[Row]:
    """Every row of figures that a law speaks of, of the curves of one pattern."""
    groups: dict[tuple[Law, tuple[str, ...], int], list[Item]] = {}
    for curve in curves:
        for law in LAWS[curve.pattern]:
            x = law.coordinate(curve)
            for mark in curve.marks if x is not None else ():
                groups.setdefault((law, _fixed(curve, law), mark.bytes), []).append(Item(x or 0.0, mark.time_ns, curve))
    for (law, fixed, size), items in groups.items():
        yield Row(law, size, fixed, tuple(sorted(items, key=lambda item: item.x)))


def _fixed(curve: Curve, law: Law) -> tuple[str, ...]:
    """What the figures of a row share."""
    options: Options = curve.options
    extra: tuple[str, ...] = ()
    if law.axis == "senders":
        options = tuple(pair for pair in options if pair[0] != "senders")
        extra = (f"{receivers(curve):.0f} receivers",)
    texts = tuple(f"{name}={value}" for name, value in options)
    return (curve.transport, curve.state, *texts, *extra)


def odd_one_out(row: Row) -> Odd | None:
    """The figure without which the others keep the law."""
    if len(row.items) < FIGURES_MIN:
        return None
    tries = [_without(row, (item,)) for item in row.items]
    (odd,), off = min(tries, key=lambda one: one[1])
    least = _ODD_CONSTANT if row.law.constant else _ODD_LINE
    return odd if off <= _KEPT and _is_off(odd, off) and abs(odd.relative) > least else None


def farthest_off(row: Row) -> Odd | None:
    """The figure farthest from the law through all of the row, if their intervals leave it beside the law."""
    if len(row.items) < FIGURES_MIN:
        return None
    law = _fitted(row.items, row.law.constant)
    item = max(row.items, key=lambda item: abs(item.time_ns.value / law.at(item.x) - 1))
    expected_ns, arm_ns = law.at(item.x), law.arm_ns(item.x, besides=item)
    over = Estimate(*((item.time_ns.value + more_ns) / expected_ns for more_ns in (0.0, -arm_ns, arm_ns)))
    return None if over.low <= 1 <= over.high else Odd(row, item, expected_ns, over)


def departures(row: Row) -> list[Odd]:
    """The one or two figures without which the others, twice as many at the least, lie on one line that these are off.

    None where no such are, or no one answer. Of more left out, what stays of a curve that merely bends would do.
    """
    for count in range(1, min(_LEFT_OUT_MAX, len(row.items) // 3) + 1):
        kept = [_without(row, left_out) for left_out in itertools.combinations(row.items, count)]
        straight = [odd for odd, off in kept if off <= ON_LINE and all(_is_off(one, off) for one in odd)]
        if straight:
            return straight[0] if len(straight) == 1 else []
    return []


def _is_off(odd: Odd, rest: float) -> bool:
    """Whether a figure is off a law by far more than any of the rest, and for sure."""
    apart = odd.over.low > 1 + rest or odd.over.high < 1 - rest
    return apart and abs(odd.relative) > _ODD_OVER_REST * rest


def _without(row: Row, left_out: Sequence[Item]) -> tuple[list[Odd], float]:
    """What figures take beside the law of the others, and how far off it the farthest of these is."""
    rest = [item for item in row.items if item not in left_out]
    law = _fitted(rest, row.law.constant)
    odd = []
    for item in left_out:
        expected_ns, arm_ns = law.at(item.x), law.arm_ns(item.x)
        law_ns = Estimate(expected_ns, expected_ns - arm_ns, expected_ns + arm_ns)
        over = ratio(item.time_ns, law_ns) if law_ns.low > 0 else Estimate(1.0, 0.0, math.inf)  # no level: no answer
        odd.append(Odd(row, item, expected_ns, over))
    return odd, max(abs(item.time_ns.value / law.at(item.x) - 1) for item in rest)


@dataclass(frozen=True)
class _Fit:
    """A law through figures. Its time anywhere is a sum of theirs, each times a share: so are the arms of intervals."""

    items: Sequence[Item]
    shares: Callable[[float], Sequence[float]]

    def at(self, x: float) -> float:
        return math.fsum(share * item.time_ns.value for share, item in zip(self.shares(x), self.items, strict=True))

    def arm_ns(self, x: float, besides: Item | None = None) -> float:
        """The outermost that the figures' intervals leave of the law's time, or of how far that is from one of them."""
        return math.fsum(
            abs(share - (item is besides))
            * max(item.time_ns.high - item.time_ns.value, item.time_ns.value - item.time_ns.low)
            for share, item in zip(self.shares(x), self.items, strict=True)
        )


def _fitted(items: Sequence[Item], constant: bool) -> _Fit:
    """The law through these figures, by least squares of relative errors."""
    import numpy as np

    x = np.array([0.0 if constant else item.x for item in items])
    times = np.array([item.time_ns.value for item in items])
    columns = np.stack([np.ones(len(items)), x] if not constant else [np.ones(len(items))], axis=1)
    # The parameters as a matrix times the times.
    parameters = np.linalg.pinv(columns / times[:, None]) / times

    def shares(at: float) -> Sequence[float]:
        place = np.array([1.0] if constant else [1.0, at])
        found: list[float] = (place @ parameters).tolist()
        return found

    return _Fit(tuple(items), shares)
