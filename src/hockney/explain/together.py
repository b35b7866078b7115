"""Whether two sizes differ where they were measured together: what the machine does in between is no jump.

A round visits a size beside all others that are unfinished, but a size that is known well enough is left out of later
rounds, and one that refining adds comes into the later ones only. What slows a machine down for seconds is then in the
median of one size and not in that of its neighbour, and looks like a switch with a narrow interval: no interval of a
median holds a drift between two. So how far the time jumps from one size to the next is taken from the rounds that
visited both, whose visits lie a fraction of a second apart: the median of their ratios, by pairs as in any
comparison of two things that a third one disturbs (R. A. Fisher, The Design of Experiments, 1935, chapter III).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from hockney.explain.curve import Curve, Mark
from hockney.fit import Estimate, SegmentFit, Switch
from hockney.stats import time_of


@dataclass(frozen=True)
class Judgement:
    """A switch as the `rounds` have it that measured both of its sizes; None where they are too few for an interval."""

    rounds: int
    switch: Switch | None


def judge(curve: Curve, fit: SegmentFit, number: int) -> Judgement | None:
    """A switch of a fit, judged anew; None where no visits are known, as of printed figures.

    Sizes that no segment explains may lie within it: then it is between the neighbours that differ most.
    """
    fitted = fit.switches[number]
    first, last = (fit.sizes_bytes.index(size) for size in (fitted.below_bytes, fitted.above_bytes))
    marks = curve.marks[first : last + 1]
    if not all(mark.visits for mark in marks):
        return None
    judged = [_judged(fit, number, lower, upper) for lower, upper in pairwise(marks)]
    known = [(one, one.switch) for one in judged if one.switch is not None]
    sign = math.copysign(1.0, fitted.relative.value)
    most = max(known, key=lambda one: sign * one[1].relative.value, default=None)
    if most is not None and (len(known) == len(judged) or most[1].is_jump):
        return most[0]
    return min(judged, key=lambda one: one.rounds)  # it may be there, where too few rounds saw both


def _judged(fit: SegmentFit, number: int, lower: Mark, upper: Mark) -> Judgement:
    ratios, launch_ids = _ratios(lower, upper)
    ratio = time_of(ratios, launch_ids)[0] if ratios else None
    if ratio is None or ratio.low is None or ratio.high is None:
        return Judgement(len(ratios), None)
    return Judgement(len(ratios), _switch(fit, number, lower, upper, Estimate(ratio.value, ratio.low, ratio.high)))


def _ratios(lower: Mark, upper: Mark) -> tuple[list[float], list[int]]:
    """The upper size's time over the lower one's in each round that visited both, and the launch that this was in."""
    below_ns = {visit.round: visit.median_ns for visit in lower.visits}
    ratios, launch_ids = [], []
    for visit in upper.visits:
        before_ns = below_ns.get(visit.round)
        if visit.median_ns and before_ns:
            ratios.append(visit.median_ns / before_ns)
            launch_ids.append(visit.launch_id)
    return ratios, launch_ids


def _switch(fit: SegmentFit, number: int, lower: Mark, upper: Mark, ratio: Estimate) -> Switch:
    """What the ratio leaves when the lines have had their part of it, each as a fraction of what it starts from.

    The switch may lie at either size: at the lower one the line above it has led to the upper, and the other way round.
    """
    before, after = fit.segments[number : number + 2]
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
    """Half way between two values, in an interval that encloses all bounds of either."""
    values = [tuple(one) for one in both]
    bounds = [bound for one in values for bound in one]
    return Estimate(sum(one[0] for one in values) / len(values), min(bounds), max(bounds))
