"""The classic reports next to a run of their suites: published, model, here, ratio.

A published row carries its point (archive/points.py); `join` finds its figures in the run, `quantities` computes what
the report prints of them, `conclusions` judges what it says, and `screen` makes tables of texts of it all.
"""

from __future__ import annotations

from dataclasses import dataclass

from hockney.archive import Report, reports
from hockney.report.classic.conclusions import Conclusion, judged
from hockney.report.classic.join import Detail, Joiner, details, joined
from hockney.report.classic.models import models_of
from hockney.report.classic.values import BenchmarkRows
from hockney.results.runs import Run


@dataclass(frozen=True)
class ClassicReport:
    """A report and a run of its suite. `is_model`: all its figures are of models of machines."""

    report: Report
    run: Run
    groups: tuple[BenchmarkRows, ...]
    conclusions: tuple[Conclusion, ...]
    details: tuple[Detail, ...]
    is_model: bool


def make_report(run: Run) -> ClassicReport | None:
    """The report of a run of a classic suite; None for a run of anything else."""
    name = run.info.suite
    if name not in reports():
        return None
    joiner, models = Joiner(run, name), models_of(run)
    is_model = bool(models) and all(series.point.transport in models for series in run.series)
    groups = joined(joiner, name)
    return ClassicReport(reports()[name], run, groups, judged(joiner, name), tuple(details(run, name)), is_model)
