"""Straight segments of a curve of times over sizes: Hockney's line for each protocol, and the switches between them.

Within a segment t(m) = t_0 + m / r_inf; n_1/2 = t_0 * r_inf is the size that reaches half of r_inf (R. W. Hockney,
Parallel Computing 20 (1994) 389-398). `partition` finds where segments begin and which sizes are outliers. Errors are
relative to the fitted time, since sizes span six decades. Intervals hold given that the segments are right; that of
n_1/2, a ratio, is Fieller's (J. Royal Statistical Society B 16 (1954) 175-185).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hockney.stats.fit.lines import Lines, NoFit, fit_lines
from hockney.stats.fit.partition import SIZES_MIN, partition
from hockney.stats.interval import Estimate, Interval, t_quantile

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray, Int64Array

JUMP = 0.05  # of the time: a smaller step may come from the fit itself


@dataclass(frozen=True)
class Segment:
    """A straight piece from `first_bytes` to `last_bytes`, over `sizes` measured sizes.

    `t0_ns` is the line at size 0; it is negative where times grow faster than the size. `n_half_bytes` is None without
    an r_inf or a positive t_0.
    """

    first_bytes: int
    last_bytes: int
    sizes: int
    t0_ns: Estimate
    ns_per_byte: Estimate
    relative_rms: float  # of (measured - fitted) / fitted, weighted
    n_half_bytes: Estimate | None

    def time_ns(self, size_bytes: float) -> float:
        return self.t0_ns.value + size_bytes * self.ns_per_byte.value

    @property
    def r_inf_bytes_per_s(self) -> Estimate | None:
        """The asymptotic rate; None where the slope's interval includes zero."""
        slope = self.ns_per_byte
        return 1e9 / slope if slope.low > 0 else None


@dataclass(frozen=True)
class Switch:
    """A change of line between the last size of one segment and the first size of the next.

    `jump_ns` is the distance between the lines half way between the two sizes. Its interval includes the distances at
    both sizes; `relative` is the same as a fraction of the lower segment's line. `bend`: the lines meet between the two
    sizes. `gradual`: a time in between is on neither line, so the change takes several sizes. `between`: the sizes
    between which the switch is with 95 % confidence, if there is one; it may be between any two of them.
    """

    below_bytes: int
    above_bytes: int
    jump_ns: Estimate
    relative: Estimate
    bend: bool
    gradual: bool = False
    between: tuple[int, int] = (0, 0)

    @property
    def is_located(self) -> bool:
        """Whether the intervals exclude all other sizes."""
        return self.between == (self.below_bytes, self.above_bytes)

    @property
    def is_jump(self) -> bool:
        """Whether the time jumps by at least JUMP, with 95 % confidence."""
        is_large = self.relative.low >= JUMP or self.relative.high <= -JUMP
        return is_large and not (self.bend or self.gradual)


@dataclass(frozen=True)
class SegmentFit:
    """A curve as straight segments. Sizes ascend; each size has a residual (measured - fitted) / fitted.

    `outliers` are indices of sizes that no segment explains; their residuals refer to the segment around them.
    `curved`: a smooth curve describes the times better than the segments, which then only approximate it, and its
    switches are none.
    """

    segments: tuple[Segment, ...]
    switches: tuple[Switch, ...]
    sizes_bytes: tuple[int, ...]
    times_ns: tuple[float, ...]
    residuals: tuple[float, ...]
    outliers: tuple[int, ...]
    curved: bool = False

    def on_line(self, segment: Segment) -> list[int]:
        """The indices of the sizes that a segment explains."""
        within = (at for at, size in enumerate(self.sizes_bytes) if segment.first_bytes <= size <= segment.last_bytes)
        return [at for at in within if at not in self.outliers]

    def is_ambiguous(self, segment: Segment) -> bool:
        """Whether it has three sizes and leaves out one between them: another three may form a line as well."""
        off = [self.sizes_bytes[at] for at in self.outliers]
        return segment.sizes == SIZES_MIN and any(segment.first_bytes < size < segment.last_bytes for size in off)

    def groups(self) -> tuple[BoolArray, Int64Array]:
        """Which sizes are on a segment, and the segment around each."""
        import numpy as np

        starts = [segment.first_bytes for segment in self.segments]
        kept = np.ones(len(self.sizes_bytes), dtype=bool)
        kept[list(self.outliers)] = False
        return kept, np.maximum(np.searchsorted(starts, self.sizes_bytes, side="right") - 1, 0)


def fit_segments(
    sizes_bytes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float] | None = None
) -> SegmentFit | NoFit:
    """Fit segments to (size, time) pairs, in any order, each size once.

    `errors` are the relative half-widths of the times' 95 % intervals; without them the times are exact. Raises
    ValueError for unequal lengths.
    """
    import numpy as np

    curve = _curve(sizes_bytes, times_ns, errors)
    if isinstance(curve, NoFit):
        return curve
    sizes, times, standard = curve
    best = partition(sizes, times, standard)
    count = len(best.starts)
    group = np.searchsorted(best.starts, np.arange(len(sizes)), side="right") - 1
    kept = np.ones(len(sizes), dtype=bool)
    kept[list(best.outliers)] = False
    lines, residuals, weights = fit_lines(sizes, times, standard, kept, group)
    members = [np.flatnonzero(kept & (group == which)) for which in range(count)]
    segments = tuple(_segment(lines, which, sizes[at], residuals[at], weights[at]) for which, at in enumerate(members))
    off = list(zip(sizes[~kept].tolist(), times[~kept].tolist(), strict=True))
    return SegmentFit(
        segments=segments,
        switches=tuple(
            _switch(lines, which, segments, off, (int(sizes[last]), int(sizes[first])))
            for which, (last, first) in enumerate(best.between)
        ),
        sizes_bytes=tuple(int(size) for size in sizes),
        times_ns=tuple(times.tolist()),
        residuals=tuple(residuals.tolist()),
        outliers=best.outliers,
        curved=best.curved,
    )


def fit_line(
    sizes_bytes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float] | None = None
) -> Segment | NoFit:
    """One straight line through all sizes, however far they are from it."""
    import numpy as np

    curve = _curve(sizes_bytes, times_ns, errors)
    if isinstance(curve, NoFit):
        return curve
    count = len(curve[0])
    lines, residuals, weights = fit_lines(*curve, np.ones(count, dtype=bool), np.zeros(count, dtype=np.int64))
    return _segment(lines, 0, curve[0], residuals, weights)


_Curve = tuple["FloatArray", "FloatArray", "FloatArray"]  # ascending sizes, times, relative standard errors


def _curve(sizes_bytes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float] | None) -> _Curve | NoFit:
    import numpy as np

    errors = [0.0] * len(sizes_bytes) if errors is None else errors
    if not len(sizes_bytes) == len(times_ns) == len(errors):
        raise ValueError("sizes, times and errors differ in number")
    if len(set(sizes_bytes)) < SIZES_MIN:
        return NoFit("a fit needs three sizes")
    if len(set(sizes_bytes)) < len(sizes_bytes):
        return NoFit("a size occurs twice in the curve")
    sizes, times = np.array(sizes_bytes, dtype=float), np.array(times_ns, dtype=float)
    order = np.argsort(sizes)
    if not (np.isfinite(sizes).all() and np.isfinite(times).all() and sizes.min() >= 0 and times.min() > 0):
        return NoFit("a fit needs positive times")
    return sizes[order], times[order], np.array(errors)[order] / t_quantile(1000)


def _segment(lines: Lines, which: int, sizes: FloatArray, residuals: FloatArray, weights: FloatArray) -> Segment:
    import numpy as np

    return Segment(
        first_bytes=int(sizes[0]),
        last_bytes=int(sizes[-1]),
        sizes=len(sizes),
        t0_ns=lines.value(which, 0.0),
        ns_per_byte=lines.slope_of(which),
        relative_rms=float(np.sqrt(np.average(residuals**2, weights=weights))),
        n_half_bytes=_n_half(lines, which),
    )


def _switch(
    lines: Lines, which: int, segments: Sequence[Segment], off: Iterable[tuple[float, float]], between: tuple[int, int]
) -> Switch:
    """The switch after a segment; `off` are the outliers of the curve as (size, time)."""
    below, above = segments[which].last_bytes, segments[which + 1].first_bytes
    jumps, parts = [], []
    for size in ((below + above) / 2, below, above):
        (lower_ns, lower_var), (upper_ns, upper_var) = lines.at(which, size), lines.at(which + 1, size)
        jump = lines.estimate(upper_ns - lower_ns, lower_var + upper_var)
        level_ns = max(lower_ns, 1e-3 * abs(upper_ns))  # a line below zero is no level
        jumps.append(jump)
        parts.append(Estimate(jump.value / level_ns, jump.low / level_ns, jump.high / level_ns))
    jump, relative = (
        Estimate(at[0].value, min(each.low for each in at), max(each.high for each in at)) for at in (jumps, parts)
    )
    is_gradual = False
    for size, ns in off:
        if below < size < above:
            lower_ns, upper_ns = lines.at(which, size)[0], lines.at(which + 1, size)[0]
            is_gradual |= upper_ns != lower_ns and 0.1 < (ns - lower_ns) / (upper_ns - lower_ns) < 0.9
    return Switch(below, above, jump, relative, jump.low <= 0 <= jump.high, is_gradual, between)


def _n_half(lines: Lines, which: int) -> Estimate | None:
    """The sizes x for which zero lies within the interval of t_0 - x * slope."""
    t0_ns, t0_var = lines.at(which, 0.0)
    slope, slope_var = float(lines.slope[which]), float(lines.slope_var[which])
    square = t_quantile(lines.freedom) ** 2
    a = slope**2 - square * slope_var
    if a <= 0 or slope <= 0 or t0_ns <= 0:
        return None
    b = t0_ns * slope + square * float(lines.mean_bytes[which]) * slope_var
    root = math.sqrt(max(0.0, b * b - a * (t0_ns**2 - square * t0_var)))
    value = t0_ns / slope
    return Estimate(value, min(value, (b - root) / a), max(value, (b + root) / a))  # exact values: only rounding


# ---- sizes to add: around the switches of a fit, and next to each size that it misses by 8 % -------------------------

# Half round trips of a plain protocol form a straight line over the size (Hockney 1982). A deviation from the lines of
# `fit_segments` is therefore a change of protocol, of cache level, or of the machine's state. The range of a switch is
# halved until it is located well enough.


def sizes_to_add(curve: Sequence[tuple[int, Interval]], *, grain_bytes: int = 1, exact: bool = False) -> list[int]:
    """Sizes worth measuring, ascending, for a curve of (bytes, time) with an interval each; none: it is known.

    `exact` asks for each jump to within one grain: two neighbours between which no other size is possible.
    Without it, and for bends, which have no edge, neighbours that differ by 12 % are enough.
    """
    ordered = sorted(curve, key=lambda point: point[0])
    sizes, times_ns = [size for size, _ in ordered], [time.value for _, time in ordered]
    errors = [time.precision or 0.0 for _, time in ordered]
    fit = fit_segments(sizes, times_ns, errors)
    if isinstance(fit, NoFit):
        return []
    added: set[int] = set()
    for switch in fit.switches:
        to_the_grain = exact and not switch.bend
        inside = (_inside(low, high, grain_bytes, exact=to_the_grain) for low, high in steps_of(fit, switch))
        added |= next((between for between in inside if between), set())
    for at, (low, high) in enumerate(pairwise(sizes)):
        if exact and _leaps(sizes, times_ns, errors, at):
            added |= _inside(low, high, grain_bytes, exact=True)
        if any(abs(fit.residuals[end]) > max(0.08, errors[end]) for end in (at, at + 1)):
            added |= _inside(low, high, grain_bytes, exact=False)
    return sorted(added - set(sizes))


def steps_of(fit: SegmentFit, switch: Switch) -> list[tuple[int, int]]:
    """The neighbouring sizes around a switch between which the time jumps, largest step in its direction first.

    Empty where the time rises in many small steps: then the switch is at no exact size.
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
    # Closer neighbours are near enough, unless the exact size is searched.
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
