"""Measured against predicted: the figures that no fit uses, on machines fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hockney.analysis.predict.fit import Fit
from hockney.errors import HockneyError
from hockney.measure.predict import Validation, fit_to_check, validate
from hockney.report.charts import Axis, Chart, Line, View, chart
from hockney.report.document import Table
from hockney.report.documents.prediction import errors_table
from hockney.report.page.material import Material
from hockney.report.words import size_text
from hockney.stats.fit import NoFit
from hockney.units import counted

_POINTS_MAX = 300  # of all transports: each is simulated


@dataclass(frozen=True)
class Predictions:
    """The chart, and a table of how large the errors are; `why` is a sentence where there is neither."""

    chart: Chart | None = None
    table: Table | None = None
    why: str = ""


def predictions_of(material: Material) -> Predictions | None:
    """None where no transport has a fit and points that check it."""
    fits = _fits(material)
    chosen = [_thinned(fit, _POINTS_MAX // len(fits)) for fit in fits]
    try:
        validations = [validate(material.run, fit) for fit in chosen]
    except HockneyError as error:  # no compiler, as where a report is read on another machine
        return Predictions(why=f"Nothing was predicted: {error}.")
    done = [validation for validation in validations if validation.rows]
    if not done:
        return None
    known, asked = (sum(len(fit.figures.others) for fit in each) for each in (fits, chosen))
    missing = sum(len(validation.missing) for validation in validations)
    more = f" Of {known:,} points {asked} are predicted, chosen evenly." if asked < known else ""
    more += f" {counted(missing, 'point')} cannot be predicted." if missing else ""
    views = [_view(material, validation) for validation in done]
    shown = chart("predictions-chart", "points", Axis("measured", "ns"), Axis("predicted", "ns"), views, more=more)
    return Predictions(shown, errors_table(done, lambda each: _name(material, each)))


def _fits(material: Material) -> Sequence[Fit]:
    transports = dict.fromkeys(series.point.transport for series in material.run.series if not series.is_harness)
    fits = [fit_to_check(material.run, transport) for transport in transports]
    # Fewer points of a transport show nothing.
    return [fit for fit in fits if not isinstance(fit, NoFit) and len(fit.figures.others) >= 3]


def _thinned(fit: Fit, most: int) -> Fit:
    """The fit with at most the given number of points to check."""
    others = list(fit.figures.others.items())
    step = -(-len(others) // max(most, 1))
    return replace(fit, figures=replace(fit.figures, others=dict(others[::step])))


def _name(material: Material, validation: Validation) -> str:
    return material.name_of(validation.transport) + (f", {validation.state}" if validation.state else "")


def _view(material: Material, validation: Validation) -> View:
    points = [(row.measured_ns.value, row.predicted_ns) for row in validation.rows]
    ends = [end(time for point in points for time in point) for end in (min, max)]
    name = _name(material, validation)
    labels = tuple(f"{row.point.text(size=size_text(row.point))}: {row.error:+.1%}" for row in validation.rows)
    measured = Line(name, points, transport=validation.transport, labels=labels)
    return View(name, (measured, Line("equal", [(end, end) for end in ends], "reference")))
