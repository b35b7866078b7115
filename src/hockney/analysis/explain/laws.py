"""How a pattern's time grows with messages, rounds, senders or receivers, and which number breaks that law.

A law is a straight line, or a constant, through the times of one size. Fits weigh errors relative to the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.explain.curve import MeasuredCurve, Reading
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject
from hockney.results.traits import pattern_traits
from hockney.stats.fit import Estimate


@dataclass(frozen=True)
class Law:
    """The coordinate in which a pattern's time is a line, or `constant`; None: the curve follows another law."""

    axis: str
    coordinate: Callable[[MeasuredCurve], float | None]
    constant: bool = False


@dataclass(frozen=True)
class LawPoint:
    """One figure of a row, at its coordinate."""

    x: float
    time_ns: Estimate
    curve: MeasuredCurve


@dataclass(frozen=True)
class LawRow:
    """Figures of one size that differ in the law's coordinate only; `options` are the others that they share."""

    law: Law
    pattern: str
    size_bytes: int
    transport: str
    state: str
    options: tuple[str, ...]
    items: tuple[LawPoint, ...]


@dataclass(frozen=True)
class Odd:
    """A figure of a row that is off the law of the others; `over_ratio` is its time over that law's."""

    row: LawRow
    item: LawPoint
    over_ratio: Estimate

    @property
    def relative(self) -> float:
        return self.over_ratio.value - 1


def _senders(curve: MeasuredCurve) -> float:
    return float(curve.option("senders") or 1)


def _receivers(curve: MeasuredCurve) -> float:
    return curve.ranks - 1 - _senders(curve)


_BY_SENDERS = Law("senders", _senders)
# By the word that the worker describes a pattern with.
_LAWS: Mapping[str, tuple[Law, ...]] = {
    # A delay hides some messages.
    "messages": (Law("messages", lambda curve: None if float(curve.option("delay_us") or 0) else curve.ranks - 1),),
    "rounds": (Law("rounds", lambda curve: math.ceil(math.log2(curve.ranks))),),
    "senders": (_BY_SENDERS, Law("receivers", _receivers, constant=True)),
    "constant": (Law("ranks", lambda curve: curve.ranks, constant=True),),
}


def broken_laws(reading: Reading) -> list[Finding] | NotChecked:
    """Numbers of ranks, senders or receivers at which half of the rows or more do not follow the law of the others."""
    groups: dict[tuple[str, str, str, tuple[str, ...], str], list[LawRow]] = {}
    for row in rows(reading):
        # Rows over receivers differ in their senders: together they show more than each.
        options = tuple(text for text in row.options if not text.startswith("senders="))
        groups.setdefault((row.pattern, row.transport, row.state, options, row.law.axis), []).append(row)
    if not groups:
        return NotChecked(Absence.NOT_MEASURED, why="four numbers")
    return [finding for members in groups.values() for finding in _broken(members)]


def _broken(members: Sequence[LawRow]) -> Iterator[Finding]:
    odd = [figure for row in members if (figure := odd_one_out(row)) is not None]
    for x in dict.fromkeys(figure.item.x for figure in odd):
        at_x = [figure for figure in odd if figure.item.x == x]
        if 2 * len(at_x) < len(members):
            continue
        curve, sizes = at_x[0].item.curve, sorted({figure.row.size_bytes for figure in at_x})
        follow = sorted({row.size_bytes for row in members} - {*sizes})
        ratios = [figure.over_ratio.value for figure in at_x]
        facts = {
            "axis": at_x[0].row.law.axis,
            "at": x,
            "at_ranks": sorted({figure.item.curve.ranks for figure in at_x}),
            "least_ratio": min(ratios),
            "most_ratio": max(ratios),
            "over_law_ratio": [figure.over_ratio for figure in at_x],
            "broken_bytes": sizes,
            **({"following_bytes": follow} if follow else {}),
        }
        cause = "bandwidth" if follow and follow[-1] < sizes[0] else ""  # only long messages break the law
        effect = max(abs(figure.relative) for figure in at_x)
        subject = Subject(curve.transport, curve.pattern, None, curve.state, tuple(sizes))
        yield Finding("broken scaling law", subject, facts, cause, effect=effect)


def rows(reading: Reading) -> Iterator[LawRow]:
    """The rows that have enough figures for a law: four."""
    groups: dict[tuple[Law, str, int, str, str, tuple[str, ...]], list[LawPoint]] = {}
    for curve in reading.curves:
        laws = _LAWS.get(pattern_traits(reading.facts, curve.pattern).law or "", ())
        for law in laws if not curve.oversubscribed else ():
            x = law.coordinate(curve)
            options = [f"{name}={value}" for name, value in curve.options if name != law.axis]
            if law is _BY_SENDERS:
                options.append(f"{_receivers(curve):.0f} receivers")
            for point in curve.points if x is not None else ():
                key = law, curve.pattern, point.bytes, curve.transport, curve.state, tuple(options)
                groups.setdefault(key, []).append(LawPoint(x or 0.0, point.time_ns, curve))
    for key, items in groups.items():
        if len(items) >= 4:
            yield LawRow(*key, tuple(sorted(items, key=lambda item: item.x)))


def odd_one_out(row: LawRow) -> Odd | None:
    """The figure without which the others follow the law, with none farther off than 5 %."""
    odd, off = min((_without(row, item) for item in row.items), key=lambda attempt: attempt[1])
    least = 0.03 if row.law.constant else 0.3  # a line through a few figures is often extended far
    return odd if off <= 0.05 and is_off(odd, off) and abs(odd.relative) > least else None


def is_off(odd: Odd, rest: float) -> bool:
    """Whether a figure is off a law by five times as much as any other, with an interval beyond theirs."""
    over = odd.over_ratio
    return (over.low > 1 + rest or over.high < 1 - rest) and abs(odd.relative) > 5 * rest


def _without(row: LawRow, item: LawPoint) -> tuple[Odd, float]:
    """A figure over the law of the others, and how far off it the farthest of the others is.

    The law is the least squares of relative errors, so its time at a point is a sum of the others' times.
    """
    import numpy as np

    rest = [each for each in row.items if each is not item]
    times = np.array([each.time_ns.value for each in rest])
    half_widths_ns = times * [each.time_ns.relative for each in rest]
    parameters = 1 if row.law.constant else 2
    inverse = np.linalg.pinv(np.vander([each.x for each in rest], parameters) / times[:, None])
    shares = np.vander([each.x for each in (*rest, item)], parameters) @ inverse / times  # of each time in each law's
    *laws_ns, law_ns = (shares @ times).tolist()
    span_ns = float(np.abs(shares[-1]) @ half_widths_ns)
    law = Estimate(law_ns, law_ns - span_ns, law_ns + span_ns)
    over = item.time_ns / law if law.low > 0 else Estimate(1.0, 0.0, math.inf)
    return Odd(row, item, over), float(np.abs(times / laws_ns - 1).max())
