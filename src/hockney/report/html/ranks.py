"""How times grow with the number of ranks."""

from __future__ import annotations

from hockney.report.html.charts import Axis, Chart, Line, PointValues, View
from hockney.report.html.material import Material
from hockney.units import format_bytes


def ranks_chart(material: Material) -> Chart | None:
    """A picture for each pattern and size that two numbers of ranks or more were measured of; None without any."""
    views: dict[tuple[str, int], dict[tuple[int, str], list[PointValues]]] = {}
    for curve in material.curves:
        if curve.is_main:
            for size, time_ns in curve.times_ns.items():
                lines = views.setdefault((curve.pattern, size if curve.is_sized else -1), {})
                lines.setdefault((curve.run, curve.transport), []).append((curve.ranks, *time_ns))
    shown = []
    for (pattern, size), lines in views.items():
        of_view = tuple(
            Line(_name(material, run, transport), sorted(points), transport=transport)
            for (run, transport), points in lines.items()
            if len({point[0] for point in points}) >= 2
        )
        if of_view:
            shown.append(View(f"{pattern} of {format_bytes(size)}" if size >= 0 else pattern, of_view))
    if not shown:
        return None
    step = -(-len(shown) // 40)
    return Chart(
        id="ranks",
        title="Scaling over ranks",
        about="The time of a pattern against the number of its ranks, for each transport.",
        kind="lines",
        x=Axis("ranks", "count", "log2"),
        y=Axis("time", "ns"),
        views=tuple(shown[::step]),
        note="The definitions below say whose time it is. With more ranks than CPUs it is a scheduling time.",
    )


def _name(material: Material, run: int, transport: str) -> str:
    return material.name_of(transport) + (f", run {run}" if material.others else "")
