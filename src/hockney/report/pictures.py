"""The charts of the HTML report as pictures, a file for each view."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError, UsageError
from hockney.report.drawing import Picture, drawn
from hockney.report.html import charts_of, matrices_of
from hockney.report.html.charts import Axis, Chart, Line, PointValues, Unit, View, bounds_of
from hockney.report.html.comparisons import comparisons_of
from hockney.report.html.curves import COPY, CurveData
from hockney.report.html.material import Material
from hockney.report.html.predictions import predictions_of
from hockney.report.html.reports import report_charts
from hockney.units import counted

_AT_ONCE, _PICTURE_S = 50, 0.15
_QUANTITIES: dict[str, Unit] = {"time": "ns", "bandwidth": "bytes/s"}
_SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "hockney",  # the same picture is the same file
    "text.parse_math": False,  # a name from outside is no formula
}


def write_pictures(material: Material, folder: Path, form: str, say: Callable[[str], None]) -> int:
    """Write a file for each picture; returns their size in bytes. Raises UsageError without matplotlib.

    `say` announces many pictures, with the time that they take.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError(
            f"--format {form} needs matplotlib: install it with {shlex.quote(sys.executable)} -m pip install matplotlib"
        ) from error
    places = {name: place for place, name in enumerate(dict.fromkeys(curve.transport for curve in material.curves))}
    pictures = pictures_of(material)
    if len(pictures) > _AT_ONCE:
        say(f"{len(pictures)} pictures, about {_PICTURE_S * len(pictures):.0f} s")
    paths = [folder / f"{picture.name}.{form}" for picture in pictures]
    metadata = {"Date": None} if form == "svg" else None
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a name may be in any language
        try:
            folder.mkdir(exist_ok=True)
            for picture, path in zip(pictures, paths, strict=True):
                figure = drawn(picture, places)
                figure.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.2, metadata=metadata)
            return sum(path.stat().st_size for path in paths)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise HockneyError(f"cannot write pictures to {folder}: {why}") from error


def pictures_of(material: Material) -> list[Picture]:
    """Every chart of the page, in its order."""
    source = ", ".join(each.name for each in material.runs)
    predictions = predictions_of(material)
    checked = [predictions.chart] if predictions and predictions.chart else []
    measured = [*_curve_charts(material), *charts_of(material), *checked, *comparisons_of(material)[1]]
    pictures = [_picture(chart, view, source) for chart in measured for view in chart.views]
    pictures += [Picture(f"matrix {matrix.name}", matrix, material.run.name) for matrix in matrices_of(material)]
    pictures += [_picture(chart, view) for chart in report_charts() for view in chart.views]
    names: Counter[str] = Counter()
    numbered = []
    for picture in pictures:
        name = re.sub(r"[^a-z0-9]+", "-", picture.name.lower())[:80].strip("-")
        names[name] += 1
        numbered.append(replace(picture, name=name if names[name] == 1 else f"{name}--{names[name]}"))
    return numbered


def _picture(chart: Chart, view: View, source: str = "") -> Picture:
    return Picture(f"{chart.id} {view.name}", (chart, view), source)


def _curve_charts(material: Material) -> Iterator[Chart]:
    """Time and bandwidth of each pattern over message size, in the state that tables show."""
    groups: dict[tuple[str, int], list[CurveData]] = {}
    for curve in material.curves:
        if curve.is_drawn and curve.is_main:
            groups.setdefault((curve.pattern, curve.ranks), []).append(curve)
    copies = [curve for of_group in groups.values() for curve in of_group if curve.pattern == COPY][:1]
    for (pattern, ranks), curves in groups.items():
        floors_ns = {curve.floor_ns for curve in curves if curve.floor_ns}
        ends = [end(size for curve in curves for size in curve.times_ns if size > 0) for end in (min, max)]
        for word, unit in _QUANTITIES.items():
            lines = [
                Line(material.name_of(c.transport, c.run), _points(c, unit), transport=c.transport) for c in curves
            ]
            lines = [line for line in lines if line.points]
            if not lines:
                continue
            if word == "time" and len(floors_ns) == 1:
                lines.append(Line("floor", [(size, floor_ns) for size in ends for floor_ns in floors_ns], "reference"))
            # Memcpy at the sizes of the lines, unless it is below all of them: for short messages it takes no time.
            least = min(point[1] for line in lines for point in line.points)
            for copy in copies if pattern != COPY else ():
                points = [each for each in _points(copy, unit) if ends[0] <= each[0] <= ends[1] and each[1] >= least]
                lines += [Line(COPY, points, "reference")] if points else []
            yield Chart(
                id=f"curves {pattern} {ranks} ranks {word}",
                title=f"{word.capitalize()} of {pattern}, {counted(ranks, 'rank')}",
                about="",
                kind="lines",
                x=Axis("message size", "bytes", "log2"),
                y=Axis("", unit),
                views=[View("", lines)],
                note="Bands are 95 % confidence intervals.",
            )


def _points(curve: CurveData, unit: Unit) -> list[PointValues]:
    figures = {size: time if unit == "ns" else curve.rate_at(size) for size, time in curve.times_ns.items() if size > 0}
    return [(size, *bounds_of(figure)) for size, figure in figures.items() if figure is not None]
