"""Models fitted to curves."""

from __future__ import annotations

from hockney.fit.distance import DistanceFit, fit_distance
from hockney.fit.fit import HockneyFit, NoFit, fit_hockney
from hockney.fit.lines import Estimate
from hockney.fit.loggp import LogGP, RoundTrips, fit_loggp
from hockney.fit.segments import JUMP, Segment, SegmentFit, Switch, fit_segments

__all__ = [
    "JUMP",
    "DistanceFit",
    "Estimate",
    "HockneyFit",
    "LogGP",
    "NoFit",
    "RoundTrips",
    "Segment",
    "SegmentFit",
    "Switch",
    "fit_distance",
    "fit_hockney",
    "fit_loggp",
    "fit_segments",
]
