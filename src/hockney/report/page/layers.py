"""The cost of each layer: the latency of a transport as a bar, stacked from the layers below it."""

from __future__ import annotations

from collections.abc import Mapping

from hockney.analysis.explain.curve import MeasuredCurve
from hockney.report.charts import Axis, Chart, Line, View, chart
from hockney.report.page.material import Material
from hockney.results.traits import transport_traits
from hockney.units import format_bytes

_FLOOR = "floor"


def layers_chart(material: Material) -> Chart:
    """The smallest message that most have, where there are two layers in one state."""
    known = material.reading.of("pingpong") if material.reading is not None else ()
    curves = {curve.transport: curve for curve in known if not curve.options and curve.ranks == 2}
    sizes = [size for curve in curves.values() for size in curve.sizes if 0 < size <= 64]
    size = max(set(sizes), key=lambda each: (sizes.count(each), -each), default=0)
    roots: dict[str, dict[str, dict[str, float]]] = {}  # by what is lowest, then by transport
    for transport, curve in curves.items():
        parts = _parts(material, curves, curve, size)
        if parts:
            roots.setdefault(next(iter(parts)), {})[transport] = parts
    # A stack of one part shows only a base without layers.
    views = [_view(material, root, stacks) for root, stacks in roots.items() if max(map(len, stacks.values())) > 1]
    x, y = Axis("half a round trip", "ns", "linear"), Axis("", "", "names")
    return chart("layers", "bars", x, y, views, size=format_bytes(size))


def _parts(
    material: Material, curves: Mapping[str, MeasuredCurve], curve: MeasuredCurve, size: int
) -> dict[str, float]:
    """The time that each layer of a transport adds, from below; {} if its time of the size is not known."""
    time = curve.at(size)
    if time is None or material.reading is None:
        return {}
    traits = transport_traits(material.run.facts, curve.transport)
    below = curves.get(traits.below or "")
    if below is not None and below.state == curve.state:
        parts = _parts(material, curves, below, size)
        rest = time.value - sum(parts.values())
        if parts and rest >= 0:
            return {**parts, curve.transport: rest}
    floor = material.reading.floors.get(curve.job)
    if traits.carrier == "memory" and floor is not None and floor.value <= time.value:
        return {_FLOOR: floor.value, curve.transport: time.value - floor.value}
    return {curve.transport: time.value}


def _view(material: Material, root: str, stacks: Mapping[str, Mapping[str, float]]) -> View:
    ordered = sorted(stacks, key=lambda transport: sum(stacks[transport].values()))
    lines = []
    for layer in dict.fromkeys(layer for transport in ordered for layer in stacks[transport]):
        points = [(stacks[name][layer], row) for row, name in enumerate(ordered) if layer in stacks[name]]
        lines.append(Line(material.name_of(layer), points, transport=None if layer == _FLOOR else layer))
    is_memory = root == _FLOOR or transport_traits(material.run.facts, root).carrier == "memory"
    title = "shared memory" if is_memory else material.name_of(root)
    return View(f"on {title}", lines, [material.name_of(transport) for transport in ordered])
