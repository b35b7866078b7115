"""Charts of figures over the number of ranks, and over the dates of runs."""

from __future__ import annotations

from hockney.model import RunStatus
from hockney.report.charts import Axis, Chart, Line, PointValues, View, bounds_of, chart
from hockney.report.page.curves import curves_of
from hockney.report.page.material import Material
from hockney.units import format_bytes

_RUNS_MAX, _VIEWS_MAX = 60, 40
_TIME, _RATE = Axis("time", "ns"), Axis("rate", "bytes/s")
_OVER_TIME = (("pingpong", 8, _TIME), *(("oneway window=16", 1 << power, _RATE) for power in (18, 20, 16)))


def ranks_chart(material: Material) -> Chart:
    """A view for each pattern and size that two numbers of ranks or more were measured of."""
    views: dict[str, dict[tuple[int, str], list[PointValues]]] = {}
    for curve in material.curves:
        if curve.is_main:
            for size, time_ns in curve.times_ns.items():
                lines = views.setdefault(
                    f"{curve.pattern} of {format_bytes(size)}" if curve.is_sized else curve.pattern, {}
                )
                lines.setdefault((curve.run, curve.transport), []).append((curve.ranks, *bounds_of(time_ns)))
    shown = []
    for name, lines in views.items():
        of_view = [
            Line(material.name_of(transport, run), sorted(points), transport=transport)
            for (run, transport), points in lines.items()
            if len(points) >= 2
        ]
        shown += [View(name, of_view)] if of_view else []
    some = shown[:: max(1, -(-len(shown) // _VIEWS_MAX))]
    return chart("ranks", "lines", Axis("ranks", "count", "log2"), _TIME, some)


def history_chart(material: Material) -> Chart:
    """A view for each figure that two runs or more with the label of the page's have."""
    label, results = material.run.label, material.results
    listed = results.runs() if label else ()
    known = [each.id for each in listed if each.label == label and each.status is not RunStatus.RUNNING]
    runs = [results.run(run_id) for run_id in known[-_RUNS_MAX:]]
    curves = [(run.info.started_unix_s, curve) for run in runs for curve in curves_of(run) if curve.is_main]
    views = []
    for pattern, size, axis in _OVER_TIME:
        lines: dict[str, list[PointValues]] = {}
        for date, curve in curves:
            figure = curve.times_ns.get(size) if axis is _TIME else curve.rate_at(size)
            if (curve.pattern, curve.ranks) == (pattern, 2) and figure is not None:
                lines.setdefault(curve.transport, []).append((date, *bounds_of(figure)))
        if any(len(points) > 1 for points in lines.values()):
            of_view = [Line(material.name_of(name), points, transport=name) for name, points in lines.items()]
            views.append(View(f"{axis.title} of {pattern}, {format_bytes(size)}", of_view, y=axis))
    return chart("history", "lines", Axis("", "unix_s", "time"), _TIME, views, runs=len(runs), label=label)
