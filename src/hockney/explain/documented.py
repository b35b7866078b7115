"""Documented sizes of a transport at which its curve shows nothing."""

from __future__ import annotations

from bisect import bisect_right

from hockney.explain.curve import Curve, Reading, finding_about
from hockney.explain.finding import Finding, Found, Lacking
from hockney.explain.shape import curves_of_shapes, segments_of
from hockney.explain.thresholds import Threshold, thresholds_of
from hockney.fit import JUMP, SegmentFit

_APART = 4  # neighbours of a threshold that are a greater factor apart don't tell what is between them


def without_trace(reading: Reading) -> Found:
    """Of each curve the documented sizes that lie inside one straight segment."""
    known = [(curve, list(thresholds_of(curve.transport, reading.facts))) for curve in curves_of_shapes(reading)]
    if not any(thresholds for _, thresholds in known):
        return Lacking("no size is documented of any transport here")
    return [found for curve, thresholds in known if (found := _unseen(curve, thresholds)) is not None]


def _unseen(curve: Curve, thresholds: list[Threshold]) -> Finding | None:
    fit = segments_of(curve)
    if not isinstance(fit, SegmentFit):
        return None
    straight = [segment for segment in fit.segments if segment.relative_rms <= JUMP]
    unseen = [
        (one, around)
        for one in thresholds
        if not any(one.lies_between(switch.below_bytes, switch.above_bytes) for switch in fit.switches)
        and (around := _around(curve, one)) is not None
        and any(segment.first_bytes <= around[0] and around[1] <= segment.last_bytes for segment in straight)
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
        source=unseen[0][0].source,
    )


def _around(curve: Curve, threshold: Threshold) -> tuple[int, int] | None:
    """The measured sizes next to a threshold, the library's header taken off or not; None where they are far apart."""
    sizes = curve.sizes
    below = bisect_right(sizes, threshold.bytes - threshold.header_bytes) - 1
    above = bisect_right(sizes, threshold.bytes)
    if below < 0 or above == len(sizes) or sizes[above] > _APART * sizes[below]:
        return None
    return sizes[below], sizes[above]
