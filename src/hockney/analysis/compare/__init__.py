"""Two runs, or a run and thresholds: what differs, how sure that is, and what can't be said."""

from __future__ import annotations

from hockney.analysis.compare.comparison import compare_runs
from hockney.analysis.compare.values import Comparison, Difference, Range, SeriesChange, Verdict

__all__ = ["Comparison", "Difference", "Range", "SeriesChange", "Verdict", "compare_runs"]
