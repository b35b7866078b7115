"""The charts of the page: of curves over message size, of all else, and matrices of pairs."""

from __future__ import annotations

from collections.abc import Iterator

from hockney.analysis.health import health_of
from hockney.analysis.host_series import SUITE
from hockney.report.charts import Axis, Chart, Line, PairValues, PointValues, Unit, View, bounds_of
from hockney.report.documents.pairs import host_values, rank_values
from hockney.report.page.choices import strips_of
from hockney.report.page.curves import COPY, CurveData
from hockney.report.page.material import Material
from hockney.report.page.views import (
    cpu_chart,
    distribution_chart,
    history_chart,
    layers_chart,
    machines_chart,
    ranks_chart,
)
from hockney.units import counted

_QUANTITIES: dict[str, Unit] = {"time": "ns", "bandwidth": "bytes/s"}


def charts_of(material: Material) -> list[Chart]:
    """The charts that have a section each, where they have anything to show."""
    makers = (distribution_chart, layers_chart, cpu_chart, ranks_chart, history_chart, machines_chart)
    return [chart for make in makers if (chart := make(material)).views]


def matrices_of(material: Material) -> list[PairValues]:
    """Those between all hosts of a run of health; else of all pairs of ranks, idle before loaded."""
    if material.run.info.suite == SUITE:
        return list(host_values(health_of(material.run)))
    known = material.reading.matrices if material.reading is not None else ()
    return [rank_values(matrix, material.name_of) for matrix in known]


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
