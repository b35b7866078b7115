"""Differences between two runs, or between a run and limits, with their statistical certainty."""

from __future__ import annotations

from hockney.analysis.compare.comparison import compare_runs
from hockney.analysis.compare.values import Comparison, Difference, Range, Reason, ReasonCode, SeriesChange, Verdict

__all__ = ["Comparison", "Difference", "Range", "Reason", "ReasonCode", "SeriesChange", "Verdict", "compare_runs"]
