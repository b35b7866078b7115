"""Models fitted to curves."""

from __future__ import annotations

from hockney.fit.distance import DistanceFit, fit_distance
from hockney.fit.fit import HockneyFit, NoFit, fit_hockney

__all__ = ["DistanceFit", "HockneyFit", "NoFit", "fit_distance", "fit_hockney"]
