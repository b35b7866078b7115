"""Whether two sizes differ where they were measured together: what the machine does in between is no jump.

A round visits a size beside all others that are unfinished, but a size that is known well enough is left out of later
rounds, and one that refining adds comes into the later ones only. What slows a machine down for seconds is then in the
median of one size and not in that of its neighbour, and looks like a switch with a narrow interval: no interval of a
median holds a drift between two. So how far the time jumps from one size to the next is taken from the rounds that
visited both, whose visits lie a fraction of a second apart: the median of their differences, by pairs as in any
comparison of two things that a third one disturbs (R. A. Fisher, The Design of Experiments, 1935, chapter III).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hockney.explain.curve import Curve, Mark
from hockney.explain.finding import difference, scaled
from hockney.fit import Estimate, SegmentFit, Switch
from hockney.stats import time_of


@dataclass(frozen=True)
class Together:
    """A switch as the `rounds` that measured both of its sizes have it; None where they are too few for an interval."""

    rounds: int
    switch: Switch | None


def together(curve: Curve, fit: SegmentFit, number: int) -> Together | None:
    """A switch of a fit, judged anew; None where it is not known when its sizes were measured."""
    switch = fit.switches[number]
    lower, upper = (_mark(curve, size) for size in (switch.below_bytes, switch.above_bytes))
    if not lower.visits or not upper.visits:
        return None
    rises_ns, launch_ids = _rises(lower, upper)
    rise = time_of(rises_ns, launch_ids)[0] if rises_ns else None
    if rise is None or rise.low is None or rise.high is None:
        return Together(len(rises_ns), None)
    return Together(len(rises_ns), _judged(fit, number, Estimate(rise.value, rise.low, rise.high), lower.time_ns.value))


def _mark(curve: Curve, size_bytes: int) -> Mark:
    return next(mark for mark in curve.marks if mark.bytes == size_bytes)


def _rises(lower: Mark, upper: Mark) -> tuple[list[float], list[int]]:
    """How much longer the upper size took in each round that visited both, and the launch that this was in."""
    below_ns = {visit.round: visit.median_ns for visit in lower.visits}
    rises_ns, launch_ids = [], []
    for visit in upper.visits:
        before_ns = below_ns.get(visit.round)
        if visit.median_ns is not None and before_ns is not None:
            rises_ns.append(visit.median_ns - before_ns)
            launch_ids.append(visit.launch_id)
    return rises_ns, launch_ids


def _judged(fit: SegmentFit, number: int, rise_ns: Estimate, below_ns: float) -> Switch:
    """The rise without what the lines make of it; the switch may lie at either size, and at its own each line ends."""
    switch, (before, after) = fit.switches[number], fit.segments[number : number + 2]
    gap_bytes = switch.above_bytes - switch.below_bytes
    jumps = [
        difference(rise_ns, scaled(segment.ns_per_byte, gap_bytes))  # at the lower size, and at the upper one
        for segment in (after, before)
    ]
    levels_ns = (below_ns, max(below_ns, below_ns + before.ns_per_byte.value * gap_bytes))
    jump = _either(jumps)
    relative = _either([scaled(one, 1 / level_ns) for one, level_ns in zip(jumps, levels_ns, strict=True)])
    return Switch(switch.below_bytes, switch.above_bytes, jump, relative, jump.low <= 0 <= jump.high)


def _either(both: Sequence[Estimate]) -> Estimate:
    """Half way between two, in an interval that encloses those of both."""
    return Estimate(
        sum(one.value for one in both) / len(both), min(one.low for one in both), max(one.high for one in both)
    )
