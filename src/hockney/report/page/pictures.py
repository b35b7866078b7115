"""Every chart of the page as pictures, each with the name of its file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hockney.errors import UsageError
from hockney.report.charts import Axis, Chart, Line, Picture, PointValues, Unit, View, bounds_of
from hockney.report.page import charts_of, matrices_of
from hockney.report.page.choices import strips_of
from hockney.report.page.comparisons import comparisons_of
from hockney.report.page.curves import COPY, CurveData
from hockney.report.page.material import Material
from hockney.report.page.predictions import predictions_of
from hockney.report.page.reports import report_charts
from hockney.units import counted

_QUANTITIES: dict[str, Unit] = {"time": "ns", "bandwidth": "bytes/s"}
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


def curve_charts(material: Material) -> Iterator[Chart]:
    """Time and bandwidth of each pattern over message size, in the state that tables show; ping-pongs first."""
    groups: dict[tuple[str, int], list[CurveData]] = {}
    for curve in material.curves:
        if curve.is_drawn and curve.is_main:
            groups.setdefault((curve.pattern, curve.ranks), []).append(curve)
    copies = [curve for of_group in groups.values() for curve in of_group if curve.pattern == COPY][:1]
    for (pattern, ranks), curves in sorted(groups.items(), key=lambda group: group[0] != ("pingpong", 2)):
        floors_ns = {curve.floor_ns for curve in curves if curve.floor_ns}
        ends = [end(size for curve in curves for size in curve.times_ns if size > 0) for end in (min, max)]
        for word, unit in _QUANTITIES.items():
            lines = [
                Line(
                    material.name_of(each.transport, each.run),
                    _points(each, unit),
                    transport=each.transport,
                    **material.look(each.transport, each.run),
                )
                for each in curves
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
            has_strips = (pattern, ranks, word) == ("pingpong", 2, "time")
            yield Chart(
                id=f"curves {pattern} {ranks} ranks {word}",
                title=f"{word.capitalize()} of {pattern}, {counted(ranks, 'rank')}",
                about="",
                kind="lines",
                x=Axis("message size", "bytes", "log2"),
                y=Axis("", unit),
                views=[View("", lines, strips=strips_of(material) if has_strips else ())],
                note="Bands are 95 % confidence intervals." + " Under the axis: the fastest." * has_strips,
            )


def _points(curve: CurveData, unit: Unit) -> list[PointValues]:
    figures = {size: time if unit == "ns" else curve.rate_at(size) for size, time in curve.times_ns.items() if size > 0}
    return [(size, *bounds_of(figure)) for size, figure in figures.items() if figure is not None]
