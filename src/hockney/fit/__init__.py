"""Models fitted to curves."""

from __future__ import annotations

from hockney.fit.distance import DistanceFit, fit_distance
from hockney.fit.fit import HockneyFit, NoFit, fit_hockney
from hockney.fit.segments import Estimate, Segment, SegmentFit, Switch, fit_segments

__all__ = [
    "DistanceFit",
    "Estimate",
    "HockneyFit",
    "NoFit",
    "Segment",
    "SegmentFit",
    "Switch",
    "fit_distance",
    "fit_hockney",
    "fit_segments",
]
