"""Every chart of the page as pictures, each with the name of its file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hockney.errors import UsageError
from hockney.report.charts import Chart, Picture, View
from hockney.report.page.charts import charts_of, curve_charts, matrices_of
from hockney.report.page.comparisons import comparisons_of
from hockney.report.page.material import Material
from hockney.report.page.predictions import predictions_of
from hockney.report.page.reports import report_charts

_ALIASES = {"latency": "curves-pingpong-2-ranks-time", "bandwidth": "curves-pingpong-2-ranks-bandwidth"}


def pictures_of(material: Material) -> list[Picture]:
    """Every chart of the page, in its order."""
    source = ", ".join(each.name for each in material.runs)
    predictions = predictions_of(material)
    checked = [predictions.chart] if predictions and predictions.chart else []
    measured = [*curve_charts(material), *charts_of(material), *checked, *comparisons_of(material)[1]]
    pictures = [_picture(chart, view, source) for chart in measured for view in chart.views]
    pictures += [Picture(f"matrix {matrix.name}", matrix, material.run.name) for matrix in matrices_of(material)]
    pictures += [_picture(chart, view) for chart in report_charts() for view in chart.views]
    names: Counter[str] = Counter()
    numbered = []
    for picture in pictures:
        name = _file_name(picture.name)
        names[name] += 1
        numbered.append(replace(picture, name=name if names[name] == 1 else f"{name}--{names[name]}"))
    return numbered


def picture_named(pictures: Sequence[Picture], name: str) -> Picture:
    """That of a file name without its suffix, or the first view of a chart. Raises UsageError for an unknown one."""
    wanted = _ALIASES.get(name, name)
    ids = {picture.name: _file_name(picture.shown[0].id) for picture in pictures if isinstance(picture.shown, tuple)}
    for picture in pictures:
        if wanted in (picture.name, ids.get(picture.name)):
            return picture
    aliases = [alias for alias, of in _ALIASES.items() if of in ids]
    known = [*aliases, *dict.fromkeys(ids.get(picture.name, picture.name) for picture in pictures)]
    raise UsageError(f"there is no chart {name!r} of this run; there are {', '.join(known)}")


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:80].strip("-")


def _picture(chart: Chart, view: View, source: str = "") -> Picture:
    return Picture(f"{chart.id} {view.name}", (chart, view), source)
