"""Whether the time really jumps between two sizes, judged by the rounds that measured both.

A machine that slows down for seconds may do so during the measurements of one size and not of its neighbour, which
then looks like a switch with a narrow interval. So the height of a jump is the median of the ratios of measurements of
the same round, which lie a fraction of a second apart (paired comparison: R. A. Fisher, The Design of Experiments,
1935, chapter III).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from hockney.analysis.estimates import scaled
from hockney.analysis.explain.curve import Curve, CurvePoint
from hockney.stats import time_of
from hockney.stats.fit import JUMP, Estimate, Segment, SegmentFit, Switch

_STRAIGHT_SIZES = 4
_SHARP = 0.01  # of the size: a jump between such neighbours is no steep slope


class Answer(enum.Enum):
    """What the rounds show of a jump."""

    JUMP = enum.auto()
    UNKNOWN = enum.auto()  # the fit has a jump, and too few rounds measured both sizes
    DRIFT = enum.auto()  # the fit has a jump, and the rounds show that the machine changed instead
    NONE = enum.auto()  # the fit has none


@dataclass(frozen=True)
class Step:
    """A change between two sizes. `switch` is as the rounds have it for a JUMP or DRIFT, else as the fit has it."""

    switch: Switch
    answer: Answer
    rounds: int = 0

    @property
    def places(self) -> tuple[int, int]:
        return self.switch.below_bytes, self.switch.above_bytes


def steps_of(curve: Curve, fit: SegmentFit) -> list[Step]:
    """One step for each switch of the fit, in their order, and then the jumps that the fit leaves out."""
    steps = [_judged(curve, fit, number) for number in range(len(fit.switches))]
    return steps + [Step(switch, Answer.JUMP) for switch in _jumps_off_the_lines(curve, fit, steps)]


def _judged(curve: Curve, fit: SegmentFit, number: int) -> Step:
    """A switch of the fit by the rounds. If it spans several steps, by the greatest one."""
    fitted = fit.switches[number]
    first, last = (fit.sizes_bytes.index(size) for size in (fitted.below_bytes, fitted.above_bytes))
    points = curve.points[first : last + 1]
    if not all(point.measurements for point in points):  # published figures, or several pairs
        return Step(fitted, Answer.JUMP if fitted.is_jump else Answer.NONE)
    lines = fit.segments[number], fit.segments[number + 1]
    ratios = [(lower, upper, *ratio_in_rounds(lower, upper)) for lower, upper in pairwise(points)]
    sign = math.copysign(1.0, fitted.relative.value)
    known = [(_jump(*lines, lower, upper, ratio), rounds) for lower, upper, ratio, rounds in ratios if ratio]
    switch, rounds = max(known, key=lambda one: sign * one[0].relative.value, default=(None, 0))
    if switch is None or (len(known) < len(ratios) and not switch.is_jump):
        return Step(fitted, Answer.UNKNOWN if fitted.is_jump else Answer.NONE, min(one[-1] for one in ratios))
    is_same = fitted.is_jump and not switch.bend and sign * switch.relative.value >= JUMP
    if switch.is_jump or is_same:
        return Step(switch, Answer.JUMP, rounds)
    if not fitted.is_jump:
        return Step(fitted, Answer.NONE)
    is_small = max(abs(switch.relative.low), abs(switch.relative.high)) < JUMP
    return Step(switch, Answer.DRIFT, rounds) if is_small or not switch.bend else Step(fitted, Answer.UNKNOWN, rounds)


def _jumps_off_the_lines(curve: Curve, fit: SegmentFit, steps: list[Step]) -> Iterator[Switch]:
    """Jumps where too few sizes lie on one side for a line, or a line passes that misses its sizes.

    Not at a single size above the line that both its neighbours lie on.
    """
    peaks = {at for at in fit.outliers if _is_peak(fit, at)}
    for at, (lower, upper) in enumerate(pairwise(curve.points)):
        within = [
            step
            for step, fitted in zip(steps, fit.switches, strict=False)
            if fitted.below_bytes <= lower.bytes and upper.bytes <= fitted.above_bytes
        ]
        if within and not _is_second_jump(within[0], lower, upper):
            continue
        if not peaks.isdisjoint((at, at + 1)):
            continue
        line = _line_through(fit, at)
        jump = _jump_without_lines(lower, upper, line)
        is_slope = line is not None and line.sizes >= _STRAIGHT_SIZES and line.relative_rms <= JUMP
        if jump is not None and (jump.relative.value < 0 or is_sharp(jump) or not is_slope):
            yield jump


def _is_second_jump(step: Step, lower: CurvePoint, upper: CurvePoint) -> bool:
    """Whether two neighbours within a switch of the fit are clear of the step that it was judged by."""
    return step.answer is Answer.JUMP and (upper.bytes < step.places[0] or step.places[1] < lower.bytes)


def _is_peak(fit: SegmentFit, at: int) -> bool:
    is_high = fit.residuals[at] > 0
    return is_high and 0 < at < len(fit.sizes_bytes) - 1 and _line_of(fit, at - 1, at + 1) is not None


def _line_through(fit: SegmentFit, at: int) -> Segment | None:
    return _line_of(fit, at, at + 1)


def _line_of(fit: SegmentFit, lower: int, upper: int) -> Segment | None:
    """The segment that explains two sizes, by their indices."""
    if not {lower, upper}.isdisjoint(fit.outliers):
        return None
    first, last = fit.sizes_bytes[lower], fit.sizes_bytes[upper]
    return next((one for one in fit.segments if one.first_bytes <= first and last <= one.last_bytes), None)


def is_sharp(switch: Switch) -> bool:
    """Whether its place is known to 1 % of the size."""
    return switch.above_bytes - switch.below_bytes < _SHARP * switch.above_bytes


def _jump_without_lines(lower: CurvePoint, upper: CurvePoint, line: Segment | None) -> Switch | None:
    """A jump between sizes of which the longer one takes less, or more than in proportion: no start-up does either.

    What the bytes between them cost is not known: of a fall nothing is taken off, of a rise up to the proportion.
    """
    ratio, _ = ratio_in_rounds(lower, upper)
    proportion = upper.bytes / lower.bytes if lower.bytes else math.inf
    if line is not None and line.relative_rms <= JUMP and line.time_ns(lower.bytes) > 0:
        proportion = max(proportion, line.time_ns(upper.bytes) / line.time_ns(lower.bytes))
    if ratio is None or not (ratio.high <= 1 - JUMP or ratio.low >= (1 + JUMP) * proportion):
        return None
    costs = (1.0,) if ratio.value < 1 else (1.0, proportion)
    part = _enclosing(*([bound - cost for bound in (ratio.value, ratio.low, ratio.high)] for cost in costs))
    return Switch(lower.bytes, upper.bytes, scaled(part, lower.time_ns.value), part, bend=False)


def ratio_in_rounds(lower: CurvePoint, upper: CurvePoint) -> tuple[Estimate | None, int]:
    """The upper size's time over the lower one's in the rounds that measured both, and the number of these rounds."""
    below_ns = {measurement.round: measurement.median_ns for measurement in lower.measurements}
    ratios, launch_ids = [], []
    for measurement in upper.measurements:
        before_ns = below_ns.get(measurement.round)
        if measurement.median_ns and before_ns:
            ratios.append(measurement.median_ns / before_ns)
            launch_ids.append(measurement.launch_id)
    return (time_of(ratios, launch_ids)[0].estimate if ratios else None), len(ratios)


def _jump(before: Segment, after: Segment, lower: CurvePoint, upper: CurvePoint, ratio: Estimate) -> Switch:
    """What is left of the ratio without the slopes of the lines; the switch may lie at either size."""
    below_ns, above_ns = lower.time_ns.value, upper.time_ns.value
    gap_bytes = upper.bytes - lower.bytes
    led = [max(0.0, 1 - slope * gap_bytes / above_ns) for slope in _ends(after.ns_per_byte)]
    grown = [max(1e-3, 1 + slope * gap_bytes / below_ns) for slope in _ends(before.ns_per_byte)]
    ends = ratio.value, ratio.high, ratio.low
    at_lower = [part * end - 1 for part, end in zip(led, ends, strict=True)]
    at_upper = [end / part - 1 for part, end in zip(grown, ends, strict=True)]
    relative = _enclosing(at_lower, at_upper)
    jump = _enclosing([part * below_ns for part in at_lower], [part * below_ns * grown[0] for part in at_upper])
    return Switch(lower.bytes, upper.bytes, jump, relative, relative.low <= 0 <= relative.high)


def _ends(slope: Estimate) -> tuple[float, float, float]:
    """The value, then the slope that leaves most of a rise and the one that leaves least."""
    return slope.value, slope.low, slope.high


def _enclosing(*values: Iterable[float]) -> Estimate:
    """The mean of the first of each, in an interval that encloses all."""
    each = [tuple(one) for one in values]
    bounds = [bound for one in each for bound in one]
    return Estimate(sum(one[0] for one in each) / len(each), min(bounds), max(bounds))
