"""The charts of the HTML report as pictures, a file for each view."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError, UsageError
from hockney.report.drawing import Picture, drawn
from hockney.report.html import charts_of
from hockney.report.html.charts import Axis, Chart, Line, PointValues, View
from hockney.report.html.comparisons import comparisons_of
from hockney.report.html.curves import COPY, CurveData
from hockney.report.html.material import Material
from hockney.report.html.pairs import matrices_of, matrix_item
from hockney.report.html.predictions import predictions_of
from hockney.report.html.reports import report_charts
from hockney.units import counted

_AT_ONCE, _PICTURE_S = 50, 0.15
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
        sentence = f"--format {form} needs matplotlib: install it with pip install 'hockney[pictures]'"
        raise UsageError(sentence) from error
    places = {name: place for place, name in enumerate(dict.fromkeys(curve.transport for curve in material.curves))}
    pictures = pictures_of(material)
    if len(pictures) > _AT_ONCE:
        say(f"{len(pictures)} pictures, about {_PICTURE_S * len(pictures):.0f} s")
    size_bytes = 0
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings(), _writing(folder):
        folder.mkdir(exist_ok=True)
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a name may be in any language
        for picture in pictures:
            path = folder / f"{picture.name}.{form}"
            figure = drawn(picture, places)
            metadata = {"Date": None} if form == "svg" else None
            figure.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.2, metadata=metadata)
            size_bytes += path.stat().st_size
    return size_bytes


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HockneyError(f"cannot write pictures to {folder}: {(error.strerror or str(error)).lower()}") from error


def pictures_of(material: Material) -> list[Picture]:
    """Every chart of the page, in its order."""
    run = material.run
    source = ", ".join(each.name for each in material.runs)
    predictions = predictions_of(material)
    checked = [predictions.chart] if predictions and predictions.chart else []
    measured = [*_curve_charts(material), *charts_of(material), *checked, *comparisons_of(material)[1]]
    pictures = [Picture(f"{chart.id} {view.name}", chart, view, source) for chart in measured for view in chart.views]
    for matrix in matrices_of(material):
        title = matrix_item(material, matrix).name
        pictures.append(Picture(f"matrix {title}", None, View(title, ()), f"run {run.id}", matrix))
    pictures += [Picture(f"{chart.id} {view.name}", chart, view) for chart in report_charts() for view in chart.views]
    names: dict[str, int] = {}
    numbered = []
    for picture in pictures:
        name = re.sub(r"[^a-z0-9]+", "-", picture.name.lower())[:80].strip("-")
        names[name] = names.get(name, 0) + 1
        numbered.append(replace(picture, name=name if names[name] == 1 else f"{name}--{names[name]}"))
    return numbered


def _curve_charts(material: Material) -> Iterator[Chart]:
    """Time and bandwidth of each pattern over message size, in the state that tables show."""
    groups: dict[tuple[str, int], list[CurveData]] = {}
    for curve in material.curves:
        if curve.is_drawn and curve.is_main:
            groups.setdefault((curve.pattern, curve.ranks), []).append(curve)
    sizes = Axis("message size", "bytes", "log2")
    copies = [curve for of_group in groups.values() for curve in of_group if curve.pattern == COPY][:1]
    for (pattern, ranks), curves in groups.items():
        times = [_line(material, curve, is_rate=False) for curve in curves]
        rates = [_line(material, curve, is_rate=True) for curve in curves if curve.payload is not None]
        floors_ns = {curve.floor_ns for curve in curves if curve.floor_ns}
        ends = [size for curve in curves for size in curve.times_ns if size > 0]
        if len(floors_ns) == 1:
            (floor_ns,) = floors_ns
            points: list[PointValues] = [(size, floor_ns, None, None) for size in (min(ends), max(ends))]
            times.append(Line("floor", points, "reference"))
        for copy in copies if pattern != COPY else ():
            for lines, is_rate in ((times, False), (rates, True)):
                if lines:
                    lines.append(_reference(_line(material, copy, is_rate=is_rate), min(ends), max(ends), lines))
        about = "Bands are 95 % confidence intervals."
        for word, axis, lines in (("time", Axis("", "ns"), times), ("bandwidth", Axis("", "bytes/s"), rates)):
            if lines:
                title = f"{word.capitalize()} of {pattern}, {counted(ranks, 'rank')}"
                view = (View("", tuple(lines)),)
                yield Chart(f"curves {pattern} {ranks} ranks {word}", title, about, "lines", sizes, axis, view, about)


def _reference(copy: Line, first: int, last: int, lines: Sequence[Line]) -> Line:
    """Memcpy at the sizes of the lines, unless it is below all of them: for short messages it takes no time."""
    least = min(point[1] for line in lines for point in line.points)
    points = [point for point in copy.points if first <= point[0] <= last and point[1] >= least]
    return Line(COPY, points, "reference")


def _line(material: Material, curve: CurveData, *, is_rate: bool) -> Line:
    points: list[PointValues] = []
    for size, time_ns in curve.times_ns.items():
        figure = curve.rate_at(size) if is_rate else time_ns
        if size > 0 and figure is not None:
            points.append((size, *figure))
    name = material.name_of(curve.transport) + (f", run {curve.run}" if material.others else "")
    return Line(name, points, transport=curve.transport)
