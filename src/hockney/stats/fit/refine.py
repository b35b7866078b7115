"""Sizes to add to a curve: around the switches of its fit, and next to each size that the fit misses by 8 %.

Half round trips of a plain protocol form a straight line over the size (Hockney 1982). A deviation from the lines of
`fit_segments` is therefore a change of protocol, of cache level, or of the machine's state. The range of a switch is
halved until its place is known well enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hockney.stats.fit import JUMP, NoFit, SegmentFit, Switch, fit_segments
from hockney.stats.interval import Interval


def sizes_to_add(curve: Sequence[tuple[int, Interval]], *, grain_bytes: int = 1, exact: bool = False) -> list[int]:
    """Sizes worth measuring, ascending, for a curve of (bytes, time) with an interval each; none: it is known.

    `exact` asks for the place of each jump to within one grain: two neighbours between which no other size is possible.
    Without it, and for bends, whose place has no edge, neighbours that differ by 12 % are enough.
    """
    ordered = sorted(curve, key=lambda point: point[0])
    sizes, times_ns = [size for size, _ in ordered], [time.value for _, time in ordered]
    errors = [time.precision or 0.0 for _, time in ordered]
    fit = fit_segments(sizes, times_ns, errors)
    if isinstance(fit, NoFit):
        return []
    added: set[int] = set()
    for switch in fit.switches:
        exact_place = exact and not switch.bend
        inside = (_inside(low, high, grain_bytes, exact=exact_place) for low, high in steps_of(fit, switch))
        added |= next((between for between in inside if between), set())
    for at, (low, high) in enumerate(pairwise(sizes)):
        if exact and _leaps(sizes, times_ns, errors, at):
            added |= _inside(low, high, grain_bytes, exact=True)
        if any(abs(fit.residuals[end]) > max(0.08, errors[end]) for end in (at, at + 1)):
            added |= _inside(low, high, grain_bytes, exact=False)
    return sorted(added - set(sizes))


def steps_of(fit: SegmentFit, switch: Switch) -> list[tuple[int, int]]:
    """The neighbouring sizes around a switch between which the time jumps, largest step in its direction first.

    Empty where the time rises in many small steps: then the switch has no exact place.
    """
    first, last = (fit.sizes_bytes.index(size) for size in (switch.below_bytes, switch.above_bytes))
    if last == first + 1:  # the lines are more precise than two times
        return [(switch.below_bytes, switch.above_bytes)] if abs(switch.relative.value) >= JUMP else []
    sign = -1.0 if switch.relative.value < 0 else 1.0
    steps = [(sign * (fit.times_ns[at + 1] / fit.times_ns[at] - 1), at) for at in range(first, last)]
    steps = sorted((step for step in steps if abs(step[0]) >= JUMP), reverse=True)
    return [(fit.sizes_bytes[at], fit.sizes_bytes[at + 1]) for _, at in steps]


def _leaps(sizes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float], at: int) -> bool:
    """Whether no line goes through a size and the next, even where the fit puts three sizes on a steep line.

    On a line that begins above zero the time grows no faster than the size; above a bend it may, but not three
    times as fast, and it never falls.
    """
    certain = 1 + JUMP + errors[at] + errors[at + 1]
    rise = times_ns[at + 1] / times_ns[at]
    steep = certain + 3 * (sizes[at + 1] / max(sizes[at], 1) - 1)
    return sizes[at] > 0 and not 1 / certain <= rise <= steep


def _inside(low: int, high: int, grain: int, *, exact: bool) -> set[int]:
    """Sizes to add between two neighbours; none where they are close enough."""
    # Closer neighbours are near enough, unless the exact place is searched.
    is_wide = high > max(8, low * 1.12)
    if high - low <= grain or not (is_wide or exact):
        return set()
    sizes = {_middle(low, high, grain)}
    if exact:  # most thresholds are powers of two: their neighbours may spare ten steps
        sizes |= {size for end, size in ((low, low + grain), (high, high - grain)) if end & (end - 1) == 0}
    return {size for size in sizes if low < size < high}


def _middle(low: int, high: int, grain: int) -> int:
    """Half way by ratio, if possible a round size, as others cost extra; in any case a multiple of the grain."""
    size = round((low * high) ** 0.5) if low > 0 else high // 2
    rounded = (round(size / unit) * unit for unit in (64, 8, grain))
    return next((near for near in rounded if low < near < high and near % grain == 0), low)
