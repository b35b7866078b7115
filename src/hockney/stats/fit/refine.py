"""Which sizes to add to a curve: where its fit has a switch, and beside each size that the fit misses.

Half round trips of a plain protocol lie on a straight line over the size (Hockney 1982), so what leaves the lines of
`fit_segments` is a change of protocol, of cache level, or of the machine's mood, and is worth a closer look. The range
that a switch lies in is halved until its place is known well enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hockney.stats.fit import JUMP, NoFit, SegmentFit, fit_segments
from hockney.stats.interval import Interval

_MISS = 0.08  # smaller misses are not looked at
_STEEP = 3.0  # times the growth of the size: a time that grows more leaps
_RATIO = 1.12  # neighbours closer than this are near enough, unless the exact place is asked for
_ROUND = (64, 8)  # other lengths cost extra for reasons of their own


def sizes_to_add(curve: Sequence[tuple[int, Interval]], *, grain_bytes: int = 1, exact: bool = False) -> list[int]:
    """Sizes worth measuring, ascending, for a curve of (bytes, time) with an interval each; none: it is known.

    `exact` asks for the place of each jump to within one grain: two neighbours between which no other size is possible.
    Without it, and for bends, whose place has no edge, neighbours that differ by 12 % are enough.
    """
    sizes, times = [size for size, _ in curve], [time for _, time in curve]
    fit = fit_segments(sizes, [time.value for time in times], [time.precision or 0.0 for time in times])
    if isinstance(fit, NoFit):
        return []
    found: set[int] = set()
    for switch in fit.switches:
        inside = (_inside(*step, grain_bytes, exact=exact and not switch.bend) for step in fit.steps_at(switch))
        found |= next((sizes for sizes in inside if sizes), set())
    if exact:
        for low, high in _leaps(curve):
            found |= _inside(low, high, grain_bytes, exact=True)
    for at in _missed(fit, [time.precision or 0.0 for time in times]):
        for low, high in zip(fit.sizes_bytes[max(0, at - 1) : at + 1], fit.sizes_bytes[at : at + 2], strict=False):
            found |= _inside(low, high, grain_bytes, exact=False)
    return sorted(found - set(sizes))


def _leaps(curve: Sequence[tuple[int, Interval]]) -> list[tuple[int, int]]:
    """Neighbours between which no line goes, whatever the fit makes of three sizes on a steep slope.

    On a line that begins above zero the time grows no faster than the size; above a bend it may, but not by far, and
    it never falls.
    """
    ordered = sorted(curve, key=lambda one: one[0])
    found = []
    for (low, before), (high, after) in pairwise(ordered):
        sure = 1 + JUMP + (before.precision or 0.0) + (after.precision or 0.0)
        rise = after.value / before.value
        if low > 0 and (rise > sure + _STEEP * (high / low - 1) or rise < 1 / sure):
            found.append((low, high))
    return found


def _missed(fit: SegmentFit, precisions: Sequence[float]) -> list[int]:
    """Indices of sizes off their line by more than their own interval says: scatter is no miss."""
    return [
        at
        for at, (residual, precision) in enumerate(zip(fit.residuals, precisions, strict=True))
        if abs(residual) > max(_MISS, precision)
    ]


def _inside(low: int, high: int, grain: int, *, exact: bool) -> set[int]:
    """Sizes to add between two neighbours; none where they are close enough."""
    wide = high > max(8, low * _RATIO) and high - low > grain
    if not (wide or (exact and high - low > grain)):
        return set()
    sizes = {_middle(low, high, grain)}
    if exact:  # most thresholds are powers of two: their neighbours may spare ten steps
        sizes |= {size for end, size in ((low, low + grain), (high, high - grain)) if end & (end - 1) == 0}
    return {size for size in sizes if low < size < high}


def _middle(low: int, high: int, grain: int) -> int:
    """Half way by ratio, a round size if there is one in between, a multiple of the grain in any case."""
    size = round((low * high) ** 0.5) if low > 0 else high // 2
    for unit in (*_ROUND, grain):
        near = round(size / unit) * unit
        if low < near < high and near % grain == 0:
            return near
    return low
