"""Straight segments of a curve of times over sizes: Hockney's line for each protocol, and the switches between them.

Model: within a segment t(m) = t_0 + m / r_inf. r_inf is the rate that ever longer messages approach, n_1/2 = t_0 *
r_inf the length at which half of it is reached (R. W. Hockney, The communication challenge for MPP: Intel Paragon and
Meiko CS-2, Parallel Computing 20 (1994) 389-398). From one segment to the next t_0 and r_inf change, because a library
goes over to another protocol or the data leave a cache. Where the segments begin, how many there are, and which sizes
none of them explains (blips) is told by `partition`. `fit_line` takes all sizes for one segment, whatever it misses.

Errors are weighed relative to the fitted time: sizes span six decades, and else the longest message alone would decide
t_0. Scatter is taken as the same fraction of the time at every size, or in proportion to `errors` where those are given
and are not small beside what the lines miss. Intervals carry what the lines miss (fit/lines.py), given that the
segments are right; the interval of n_1/2, a ratio, is Fieller's (E. C. Fieller, Some problems in interval estimation,
J. Royal Statistical Society B 16 (1954) 175-185).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.stats.fit.lines import Lines, NoFit, fit_lines, missed_by, weights_of
from hockney.stats.fit.partition import SIZES_MIN, partition
from hockney.stats.interval import Estimate
from hockney.stats.student import t_quantile

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray, Int64Array

JUMP = 0.05  # of the time: a smaller switch may be the fit's own, and nobody looks closer at it
_REWEIGHTED = 3  # times: weights come from the fit that they decide


@dataclass(frozen=True)
class Segment:
    """One straight piece: from `first_bytes` to `last_bytes`, over `sizes` of the measured sizes."""

    first_bytes: int
    last_bytes: int
    sizes: int
    t0_ns: Estimate  # where the line meets size 0; below zero where times grow faster than the size
    ns_per_byte: Estimate
    relative_rms: float  # of (measured - fitted) / fitted, each size as much as it weighs
    n_half_bytes: Estimate | None  # None where there is no r_inf, or t_0 isn't above zero

    def time_ns(self, size_bytes: float) -> float:
        """The time on this segment's line."""
        return self.t0_ns.value + size_bytes * self.ns_per_byte.value

    @property
    def r_inf_bytes_per_s(self) -> Estimate | None:
        """The rate that longer messages approach; None where the slope can't be told from none."""
        slope = self.ns_per_byte
        return Estimate(1e9 / slope.value, 1e9 / slope.high, 1e9 / slope.low) if slope.low > 0 else None


@dataclass(frozen=True)
class Switch:
    """Between the last size of one segment and the first of the next: somewhere between lies the change.

    `jump_ns` is how far the next line lies above the lower segment's, half way between the two sizes; as the change may
    lie anywhere between them, its interval encloses those at both. `relative` is the same as a fraction of the lower
    segment's line. `bend` says that the lines meet between the two sizes, as far as their intervals tell: then only the
    slope need have changed.
    """

    below_bytes: int
    above_bytes: int
    jump_ns: Estimate
    relative: Estimate
    bend: bool

    @property
    def is_jump(self) -> bool:
        """Whether the time surely steps by JUMP or more, wherever between the two sizes that is."""
        return not self.bend and (self.relative.low >= JUMP or self.relative.high <= -JUMP)


@dataclass(frozen=True)
class SegmentFit:
    """A curve as straight segments. Sizes ascend; `residuals` are (measured - fitted) / fitted, one a size.

    `outliers` are indices of sizes that no segment explains; their residuals are against the segment they lie in.
    `lines_ns` are what the segments' lines give at each size.
    """

    segments: tuple[Segment, ...]
    switches: tuple[Switch, ...]
    sizes_bytes: tuple[int, ...]
    times_ns: tuple[float, ...]
    residuals: tuple[float, ...]
    outliers: tuple[int, ...]
    lines_ns: tuple[Estimate, ...]

    def on_line(self, segment: Segment) -> list[int]:
        """The indices of the sizes that a segment explains."""
        within = (at for at, size in enumerate(self.sizes_bytes) if segment.first_bytes <= size <= segment.last_bytes)
        return [at for at in within if at not in self.outliers]

    def left_out_of(self, segment: Segment) -> tuple[int, ...]:
        """The sizes between a segment's own that it does not explain."""
        off = (self.sizes_bytes[at] for at in self.outliers)
        return tuple(size for size in off if segment.first_bytes < size < segment.last_bytes)

    def is_ambiguous(self, segment: Segment) -> bool:
        """Whether it has three sizes and leaves out one between them: another three may as well be on one line."""
        return segment.sizes == SIZES_MIN and bool(self.left_out_of(segment))

    def steps_at(self, switch: Switch) -> list[tuple[int, int]]:
        """The measured neighbours around a switch between which the time jumps, largest step in its direction first.

        Sizes that no segment explains may lie within a switch. Where the time rises little by little over many of them,
        each step is less than what makes a jump: then there is no place to be found.
        """
        first, last = (self.sizes_bytes.index(size) for size in (switch.below_bytes, switch.above_bytes))
        if last == first + 1:  # what the lines say is surer than two times
            return [(switch.below_bytes, switch.above_bytes)] if abs(switch.relative.value) >= JUMP else []
        sign = math.copysign(1.0, switch.relative.value)
        steps = [(self.times_ns[at + 1] / self.times_ns[at] - 1, at) for at in range(first, last)]
        steps = sorted((step for step in steps if abs(step[0]) >= JUMP), key=lambda step: -sign * step[0])
        return [(self.sizes_bytes[at], self.sizes_bytes[at + 1]) for _, at in steps]


def fit_segments(
    sizes_bytes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float] | None = None
) -> SegmentFit | NoFit:
    """Fit a curve of (size, time) pairs, in any order, each size once.

    `errors` are the relative half widths of the times' 95 % intervals, where they are known.
    """
    import numpy as np

    curve = _curve(sizes_bytes, times_ns, errors)
    if isinstance(curve, NoFit):
        return curve
    sizes, times, standard = curve
    found = partition(sizes, times, standard)
    group = np.searchsorted(found.starts, np.arange(len(sizes)), side="right") - 1
    kept = np.ones(len(sizes), dtype=bool)
    kept[list(found.outliers)] = False
    lines, residuals, weights = _lines(curve, kept, group)
    count = len(found.starts)
    mine = [kept & (group == which) for which in range(count)]
    segments = tuple(
        _segment(lines, which, sizes[mine[which]], residuals[mine[which]], weights[mine[which]])
        for which in range(count)
    )
    return SegmentFit(
        segments=segments,
        switches=tuple(_switch(lines, which, segments) for which in range(count - 1)),
        sizes_bytes=tuple(int(size) for size in sizes),
        times_ns=tuple(times.tolist()),
        residuals=tuple(residuals.tolist()),
        outliers=found.outliers,
        lines_ns=tuple(lines.value(int(which), float(size)) for which, size in zip(group, sizes, strict=True)),
    )


def fit_line(
    sizes_bytes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float] | None = None
) -> Segment | NoFit:
    """One straight line through all sizes, as `fit_segments` fits each of its own."""
    import numpy as np

    curve = _curve(sizes_bytes, times_ns, errors)
    if isinstance(curve, NoFit):
        return curve
    sizes = curve[0]
    lines, *missed = _lines(curve, np.ones(len(sizes), dtype=bool), np.zeros(len(sizes), dtype=np.int64))
    return _segment(lines, 0, sizes, *missed)


_Curve = tuple["FloatArray", "FloatArray", "FloatArray | None"]  # ascending sizes, times, relative standard errors


def _curve(sizes_bytes: Sequence[int], times_ns: Sequence[float], errors: Sequence[float] | None) -> _Curve | NoFit:
    import numpy as np

    order = sorted(range(len(sizes_bytes)), key=lambda i: sizes_bytes[i])
    if len(times_ns) != len(order) or (errors is not None and len(errors) != len(order)):
        raise ValueError("sizes, times and errors differ in number")
    distinct = len(set(sizes_bytes))
    if distinct < SIZES_MIN:
        return NoFit(f"a fit needs three sizes, there {'is' if distinct == 1 else 'are'} {distinct}")
    if distinct < len(order):
        return NoFit("a curve has each size once, here one stands twice")
    sizes = np.array([sizes_bytes[i] for i in order], dtype=float)
    times = np.array([times_ns[i] for i in order], dtype=float)
    if not (np.isfinite(sizes).all() and np.isfinite(times).all() and sizes[0] >= 0 and times.min() > 0):
        return NoFit("a fit needs positive times")
    return sizes, times, None if errors is None else np.array([errors[i] for i in order]) / t_quantile(1000)


def _lines(curve: _Curve, kept: BoolArray, group: Int64Array) -> tuple[Lines, FloatArray, FloatArray]:
    """The line of each group; and of each size what its line misses, as a fraction of the line, and what it weighs."""
    import numpy as np

    sizes, times, standard = curve
    fitted, missed = times, 0.0
    known = 0.0 if standard is None else float(np.median(standard))
    for _ in range(_REWEIGHTED):
        weights = kept * weights_of(standard, len(sizes), missed)
        lines, fitted = fit_lines(sizes, times, fitted, weights, group, known)
        fitted = np.maximum(fitted, 1e-3 * times)  # a line that goes below zero is no level
        residuals = (times - fitted) / fitted
        missed = 0.0 if standard is None else missed_by(residuals[kept], standard[kept], lines.freedom)
    return lines, residuals, weights


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


def _switch(lines: Lines, which: int, segments: Sequence[Segment]) -> Switch:
    below, above = segments[which].last_bytes, segments[which + 1].first_bytes
    places = [(below + above) / 2, below, above]
    jumps = [_gap(lines, which, size) for size in places]
    # A line that goes below zero is no level.
    levels = [max(lines.at(which, size)[0], 1e-3 * abs(lines.at(which + 1, size)[0])) for size in places]
    jump = _enclosed(jumps)
    relative = _enclosed(
        [Estimate(one.value / ns, one.low / ns, one.high / ns) for one, ns in zip(jumps, levels, strict=True)]
    )
    return Switch(below, above, jump, relative, jump.low <= 0 <= jump.high)


def _enclosed(estimates: Sequence[Estimate]) -> Estimate:
    """The first value, in an interval that holds those of all."""
    return Estimate(estimates[0].value, min(one.low for one in estimates), max(one.high for one in estimates))


def _gap(lines: Lines, which: int, size: float) -> Estimate:
    """From a line to the next one at a size."""
    (lower_ns, lower_var), (upper_ns, upper_var) = lines.at(which, size), lines.at(which + 1, size)
    return lines.estimate(upper_ns - lower_ns, lower_var + upper_var)


def _n_half(lines: Lines, which: int) -> Estimate | None:
    """The sizes x at which t_0 - x * slope can't be told from zero."""
    t0_ns, t0_var = lines.at(which, 0.0)
    slope, slope_var = float(lines.slope[which]), float(lines.slope_var[which])
    square = t_quantile(lines.freedom) ** 2
    a = slope**2 - square * slope_var
    if a <= 0 or slope <= 0 or t0_ns <= 0:
        return None
    b = t0_ns * slope + square * float(lines.mean_bytes[which]) * slope_var
    c = t0_ns**2 - square * t0_var
    root = math.sqrt(max(0.0, b * b - a * c))
    value = t0_ns / slope
    return Estimate(value, min(value, (b - root) / a), max(value, (b + root) / a))  # rounding, where all is exact
