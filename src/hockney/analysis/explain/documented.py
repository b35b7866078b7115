"""Documented sizes of a transport at which its curve shows nothing."""

from __future__ import annotations

from bisect import bisect_left

from hockney.analysis.explain.curve import Curve, Reading, finding_about
from hockney.analysis.explain.finding import Finding, Found, Lacking
from hockney.analysis.explain.shape import SHAPES, curves_of_shapes, no_curve, segments_of
from hockney.analysis.explain.switches import documented_of
from hockney.analysis.explain.thresholds import Threshold, sources_of
from hockney.stats.fit import JUMP, SegmentFit

_APART = 4  # neighbours of a threshold that are a greater factor apart don't tell what is between them


def without_trace(reading: Reading) -> Found:
    """Of each curve the documented sizes that lie inside one straight segment.

    Where some builds only have a size, seeing nothing tells no more than that this may be another build.
    """
    curves = curves_of_shapes(reading)
    if not curves:
        return no_curve(SHAPES)
    known = [(curve, documented_of(curve, reading)) for curve in curves]
    if not any(thresholds for _, thresholds in known):
        return Lacking("no size is documented of any transport here")
    return [found for curve, thresholds in known if (found := _unseen(curve, thresholds)) is not None]


def _unseen(curve: Curve, thresholds: list[Threshold]) -> Finding | None:
    fit = segments_of(curve)
    if not isinstance(fit, SegmentFit):
        return None
    straight = [segment for segment in fit.segments if segment.relative_rms <= JUMP]
    off = {fit.sizes_bytes[at] for at in fit.outliers}
    unseen = [
        (one, around)
        for one in thresholds
        if not one.is_of_build
        and not any(one.lies_between(switch.below_bytes, switch.above_bytes) for switch in fit.switches)
        and (around := _around(curve, one)) is not None
        and off.isdisjoint(around)  # a size beside it that lies on no line is something to be seen
        # With one size alone on its side of the change, a line follows that size.
        and any(segment.first_bytes < around[0] and around[1] < segment.last_bytes for segment in straight)
    ]
    if not unseen:
        return None
    texts = "; ".join(one.text for one, _ in unseen)
    return finding_about(
        curve,
        "nothing seen at a documented size",
        sentence=(f"Documented of this transport, but {curve.name} lies on one line there, to {JUMP:.0%}: {texts}."),
        effect=0.0,
        sizes_bytes=tuple(sorted({size for _, around in unseen for size in around})),
        sources=sources_of(one for one, _ in unseen),
    )


def _around(curve: Curve, threshold: Threshold) -> tuple[int, int] | None:
    """The last measured size before the change and the first after it; None where they are far apart."""
    sizes = curve.sizes
    above = bisect_left(sizes, threshold.first_bytes)
    if above in (0, len(sizes)) or sizes[above] > _APART * sizes[above - 1]:
        return None
    return sizes[above - 1], sizes[above]
