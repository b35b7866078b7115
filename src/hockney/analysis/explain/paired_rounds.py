"""Whether two sizes differ where they were measured together: what the machine does in between is no jump.

A round measurements a size beside all others that are unfinished, but a size that is known well enough is left out of
later rounds, and one that refining adds comes into the later ones only. What slows a machine down for seconds is then
in the median of one size and not in that of its neighbour, and looks like a switch with a narrow interval: no interval
of a median holds a drift between two. So how far the time jumps from one size to the next is taken from the rounds that
measured both, whose measurements lie a fraction of a second apart: the median of their ratios, by pairs as in any
comparison of two things that a third one disturbs (R. A. Fisher, The Design of Experiments, 1935, chapter III).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hockney.analysis.explain.curve import Curve, Mark, Reading
from hockney.analysis.explain.finding import scaled
from hockney.stats import time_of
from hockney.stats.fit import JUMP, Estimate, Segment, SegmentFit, Switch

_STRAIGHT_SIZES = 4
_SHARP = 0.01  # of the size: a place that is known so well


@dataclass(frozen=True)
class Judgement:
    """A switch as the `rounds` have it that measured both of its sizes; None where they are too few for an interval."""

    rounds: int
    switch: Switch | None


def judge(curve: Curve, fit: SegmentFit, number: int) -> Judgement | None:
    """A switch of a fit, judged anew; None where no measurements are known, as of printed figures.

    Sizes that no segment explains may lie within it: then it is between the neighbours that differ most.
    """
    fitted = fit.switches[number]
    first, last = (fit.sizes_bytes.index(size) for size in (fitted.below_bytes, fitted.above_bytes))
    marks = curve.marks[first : last + 1]
    if not all(mark.measurements for mark in marks):
        return None
    sides = fit.segments[number], fit.segments[number + 1]
    judged = [_judged(*sides, lower, upper) for lower, upper in pairwise(marks)]
    known = [(one, one.switch) for one in judged if one.switch is not None]
    sign = math.copysign(1.0, fitted.relative.value)
    most = max(known, key=lambda one: sign * one[1].relative.value, default=None)
    if most is not None and (len(known) == len(judged) or most[1].is_jump):
        return most[0]
    return min(judged, key=lambda one: one.rounds)  # it may be there, where too few rounds saw both


def leaps(curve: Curve, fit: SegmentFit) -> list[list[Switch]]:
    """Where no line leads from one size to the next, and none of the fit's switches lies: the lines leave that out.

    Rises between neighbours of neighbours are one change of which no one place is known, so they stand together; but
    for one whose own place is. Within a switch of the fit that is what it is judged by, and the steps beside that.
    """
    runs: list[list[Switch]] = []
    for lower, upper in pairwise(curve.marks):
        around = [
            number
            for number, one in enumerate(fit.switches)
            if one.below_bytes <= lower.bytes and upper.bytes <= one.above_bytes
        ]
        if around and not _is_beside(curve, fit, around[0], lower, upper):
            continue
        line = _line_of(fit, lower.bytes, upper.bytes)
        leap = _leap(lower, upper, line)
        if leap is None or (leap.relative.value > 0 and not is_sharp(leap) and _is_straight(line)):
            continue
        if runs and _goes_on(runs[-1][-1], leap):
            runs[-1].append(leap)
        else:
            runs.append([leap])
    return runs


def _is_beside(curve: Curve, fit: SegmentFit, number: int, lower: Mark, upper: Mark) -> bool:
    """Whether two neighbours within a switch of the fit have no size in common with the step that it is judged by."""
    fitted = fit.switches[number]
    if (lower.bytes, upper.bytes) == (fitted.below_bytes, fitted.above_bytes):
        return False
    judgement = judge(curve, fit, number)
    step = None if judgement is None else judgement.switch
    return step is not None and (upper.bytes < step.below_bytes or step.above_bytes < lower.bytes)


def _line_of(fit: SegmentFit, lower_bytes: int, upper_bytes: int) -> Segment | None:
    """The segment that two sizes lie in."""
    off = {fit.sizes_bytes[at] for at in fit.outliers}
    within = (one for one in fit.segments if one.first_bytes <= lower_bytes and upper_bytes <= one.last_bytes)
    return next(within, None) if off.isdisjoint((lower_bytes, upper_bytes)) else None


def _is_straight(line: Segment | None) -> bool:
    """Known by more sizes than any steep step may have by chance."""
    return line is not None and line.sizes >= _STRAIGHT_SIZES and line.relative_rms <= JUMP


def _goes_on(before: Switch, leap: Switch) -> bool:
    both = before, leap
    rises = all(one.relative.value > 0 and not is_sharp(one) for one in both)
    return rises and before.above_bytes == leap.below_bytes


def is_sharp(switch: Switch) -> bool:
    """Whether its place is known within a small part of the size."""
    return switch.above_bytes - switch.below_bytes < _SHARP * switch.above_bytes


def in_all(run: Sequence[Switch]) -> Switch:
    """What a run of neighbouring rises comes to, each by at least what is its own."""
    rises = [one.jump_ns for one in run]
    jump = Estimate(*(sum(getattr(one, bound) for one in rises) for bound in ("value", "low", "high")))
    before_ns = run[0].jump_ns.value / run[0].relative.value
    return Switch(run[0].below_bytes, run[-1].above_bytes, jump, scaled(jump, 1 / before_ns), bend=False)


def leaping_states(reading: Reading, curve: Curve, switch: Switch) -> list[str]:
    """The other states of the machine in which a curve leaps the same way between the two sizes of a switch.

    The machine's drift between two sizes is no leap of any state: each compares what the same rounds measured. Ranks
    that share more or less may go another way, so it is of the pairs whose figures the switch is of, or of none.
    """
    sizes_bytes = (switch.below_bytes, switch.above_bytes)
    key = curve.place, curve.pattern, curve.options
    alike = [one for one in reading.by_class if (one.curve.place, one.curve.pattern, one.curve.options) == key]
    marks = _marks_at(curve, sizes_bytes)
    classes = {one.pair_class for one in alike if _marks_at(one.curve, sizes_bytes) == marks}
    found = []
    for other in (one.curve for one in alike if one.pair_class in classes and one.curve.state != curve.state):
        both = _marks_at(other, sizes_bytes)
        leap = _leap(both[0], both[1]) if len(both) == len(sizes_bytes) else None
        if leap is not None and leap.relative.value * switch.relative.value > 0:
            found.append(other.state)
    return list(dict.fromkeys(found))


def _marks_at(curve: Curve, sizes_bytes: tuple[int, int]) -> list[Mark]:
    return [mark for mark in curve.marks if mark.bytes in sizes_bytes]


def _leap(lower: Mark, upper: Mark, line: Segment | None = None) -> Switch | None:
    """A jump between two sizes of which the longer one surely takes less, or more than in proportion.

    A line with a start-up does neither, so none is needed to tell it. What the bytes between them cost is not known
    then: of a fall nothing is taken off for it, of a rise anything up to the proportion. Where both lie on a `line`
    that would begin below zero, it rises by more than that; but not where the line misses its own sizes by a jump.
    """
    ratio, _ = ratio_in_rounds(lower, upper)
    proportion = upper.bytes / lower.bytes if lower.bytes else math.inf
    if line is not None and line.relative_rms <= JUMP and line.time_ns(lower.bytes) > 0:
        proportion = max(proportion, line.time_ns(upper.bytes) / line.time_ns(lower.bytes))
    if ratio is None or not (ratio.high <= 1 - JUMP or ratio.low >= (1 + JUMP) * proportion):
        return None
    costs = (1.0,) if ratio.value < 1 else (1.0, proportion)
    part = _either(*([bound - cost for bound in (ratio.value, ratio.low, ratio.high)] for cost in costs))
    return Switch(lower.bytes, upper.bytes, scaled(part, lower.time_ns.value), part, bend=False)


def _judged(before: Segment, after: Segment, lower: Mark, upper: Mark) -> Judgement:
    ratio, rounds = ratio_in_rounds(lower, upper)
    return Judgement(rounds, None if ratio is None else _switch(before, after, lower, upper, ratio))


def ratio_in_rounds(lower: Mark, upper: Mark) -> tuple[Estimate | None, int]:
    """The upper size's time over the lower one's in the rounds that measured both, and how many these are."""
    ratios, launch_ids = _ratios(lower, upper)
    ratio = time_of(ratios, launch_ids)[0] if ratios else None
    if ratio is None or ratio.low is None or ratio.high is None:
        return None, len(ratios)
    return Estimate(ratio.value, ratio.low, ratio.high), len(ratios)


def _ratios(lower: Mark, upper: Mark) -> tuple[list[float], list[int]]:
    """The upper size's time over the lower one's in each round that measured both, and the launch that this was in."""
    below_ns = {measurement.round: measurement.median_ns for measurement in lower.measurements}
    ratios, launch_ids = [], []
    for measurement in upper.measurements:
        before_ns = below_ns.get(measurement.round)
        if measurement.median_ns and before_ns:
            ratios.append(measurement.median_ns / before_ns)
            launch_ids.append(measurement.launch_id)
    return ratios, launch_ids


def _switch(before: Segment, after: Segment, lower: Mark, upper: Mark, ratio: Estimate) -> Switch:
    """What the ratio leaves when the lines have had their part of it, each as a fraction of what it starts from.

    The switch may lie at either size: at the lower one the line above it has led to the upper, and the other way round.
    """
    below_ns, above_ns = lower.time_ns.value, upper.time_ns.value
    gap_bytes = upper.bytes - lower.bytes
    led = [max(0.0, 1 - slope * gap_bytes / above_ns) for slope in _ends(after.ns_per_byte)]
    grown = [max(1e-3, 1 + slope * gap_bytes / below_ns) for slope in _ends(before.ns_per_byte)]
    at_lower = [one * ratio_end - 1 for one, ratio_end in zip(led, (ratio.value, ratio.high, ratio.low), strict=True)]
    at_upper = [ratio_end / one - 1 for one, ratio_end in zip(grown, (ratio.value, ratio.high, ratio.low), strict=True)]
    relative = _either(at_lower, at_upper)
    jump = _either([one * below_ns for one in at_lower], [one * below_ns * grown[0] for one in at_upper])
    return Switch(lower.bytes, upper.bytes, jump, relative, relative.low <= 0 <= relative.high)


def _ends(slope: Estimate) -> tuple[float, float, float]:
    """The value, and then the slope that leaves most of a rise and the one that leaves least."""
    return slope.value, slope.low, slope.high


def _either(*both: Iterable[float]) -> Estimate:
    """Half way between values, in an interval that encloses all bounds of each."""
    values = [tuple(one) for one in both]
    bounds = [bound for one in values for bound in one]
    return Estimate(sum(one[0] for one in values) / len(values), min(bounds), max(bounds))
