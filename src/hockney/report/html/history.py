"""A figure over time, where several runs have the label of one of the page's."""

from __future__ import annotations

from hockney.model import RunStatus
from hockney.report.html.charts import Axis, Chart, Line, PointValues, View
from hockney.report.html.curves import CurveData, curves_of
from hockney.report.html.material import Material
from hockney.results.runs import Run
from hockney.units import format_bytes

_VIEWS = (("pingpong", 8, "time"), ("oneway window=16", 1 << 20, "rate"), ("oneway window=16", 1 << 16, "rate"))


def history_chart(material: Material) -> Chart | None:
    """A chart over runs with the same label; None if no other run has it."""
    label = material.run.label
    if label is None:
        return None
    known = [each for each in material.results.runs() if each.label == label and each.status is not RunStatus.RUNNING]
    if len(known) < 2:
        return None
    runs = [material.results.run(each.id) for each in known[-60:]]
    curves = {run.id: material.curves if run.id == material.run.id else curves_of(run) for run in runs}
    views = []
    for pattern, size, quantity in _VIEWS:
        lines: dict[str, list[PointValues]] = {}
        for run in runs:
            for curve in curves[run.id]:
                if curve.is_main and (curve.run, curve.pattern, curve.ranks) == (run.id, pattern, 2):
                    point = _point(run, curve, size, quantity)
                    if point is not None:
                        lines.setdefault(curve.transport, []).append(point)
        of_view = tuple(
            Line(material.name_of(transport), points, transport=transport) for transport, points in lines.items()
        )
        if any(len(line.points) > 1 for line in of_view):
            axis = Axis("time", "ns") if quantity == "time" else Axis("rate", "bytes/s")
            views.append(View(f"{quantity} of {pattern}, {format_bytes(size)}", of_view, y=axis))
    if not views:
        return None
    return Chart(
        id="history",
        title=f"Over time: {len(runs)} runs labelled {label}",
        about="A figure of each transport in every run that has this label, by the date of the run.",
        kind="lines",
        x=Axis("", "unix_s", "time"),
        y=Axis("time", "ns"),
        views=tuple(views),
        note="Medians in the state that tables show. hockney compare says whether a change is more than chance.",
    )


def _point(run: Run, curve: CurveData, size: int, quantity: str) -> PointValues | None:
    figure = curve.times_ns.get(size) if quantity == "time" else curve.rate_at(size)
    return None if figure is None else (run.info.started_unix_s, *figure)
