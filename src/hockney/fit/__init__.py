"""Models fitted to curves."""

from __future__ import annotations

from hockney.fit.fit import HockneyFit, NoFit, fit_hockney

__all__ = ["HockneyFit", "NoFit", "fit_hockney"]
