"""Models fitted to curves."""

from __future__ import annotations

from hockney.stats.fit.lines import DistanceFit, NoFit, fit_distance
from hockney.stats.fit.loggp import LogGP, RoundTrips, fit_loggp
from hockney.stats.fit.segments import JUMP, Segment, SegmentFit, Switch, fit_line, fit_segments
from hockney.stats.interval import Estimate
