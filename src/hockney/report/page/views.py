"""The charts that have a section of the page each; those of samples read a few series, as a run may hold millions."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.analysis.compare.history import History, Track, history_over, machine_of, runs_with
from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.explain.layers import below_of
from hockney.archive import machines, reports
from hockney.machine.files import rows_of
from hockney.model import Point, PointStatus
from hockney.report.charts import Axis, Chart, Line, PointValues, View, bounds_of, chart
from hockney.report.commands import typed
from hockney.report.documents.history import chart_labels, chart_notes
from hockney.report.page.material import Material
from hockney.results.runs import Series
from hockney.results.sheets import archived, medium
from hockney.results.traits import transport_traits
from hockney.stats.figures import samples_for
from hockney.units import format_bytes

_SERIES_MAX = 60  # whose samples are read for a chart
_VIEWS_MAX = 12
_SHARES = (  # of samples: closer together where few are left
    *(0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7),
    *(0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.997, 0.998, 0.999),
    *(0.9993, 0.9995, 0.9997, 0.9998, 0.9999, 0.99995, 0.99999),
)


def _named(point: Point) -> str:
    size = f" of {format_bytes(point.bytes)}" if point.is_sized else ""
    ranks = "" if point.ranks == 2 else f", {point.ranks_text}"
    return f"{point.pattern_text}{size}{ranks}"


# ---- distributions --------------------------------------------------------------------------------------------------


def distribution_chart(material: Material) -> Chart:
    """The share of samples up to each time, of points with one repetition per sample."""
    import numpy as np

    single = [
        series
        for series in material.run.series
        if not series.is_harness
        and series.status is not PointStatus.FAILED
        and not any(name in ("source", "target", "round") for name, _ in series.point.options)
        and (figure := series.shown) is not None
        and figure.batch == 1
        and (figure.n_samples or 0) >= samples_for(0.99)
    ]
    views: dict[str, list[Line]] = {}
    for series in _spread_out(single):
        measurements = series.shown.samples_of if series.shown else ()  # without those that are damaged
        times_ns = np.concatenate([np.empty(0), *(each.times_ns() for each in measurements)])
        if len(times_ns) >= samples_for(0.99):
            shares = [share for share in _SHARES if (1 - share) * len(times_ns) >= 1]
            points = list(zip(np.quantile(times_ns, shares).tolist(), shares, strict=True))
            name = material.name_of(series.point.transport)
            views.setdefault(_named(series.point), []).append(Line(name, points, transport=series.point.transport))
    x, y = Axis("time of a single repetition", "ns"), Axis("share of samples within that time", "percentile", "tail")
    return chart("distribution", "lines", x, y, [View(name, lines) for name, lines in views.items()])


def _spread_out(series: Sequence[Series]) -> list[Series]:
    """At most the number that is drawn, evenly chosen over points and with all transports of each."""
    by_point: dict[str, list[Series]] = {}
    for member in series:
        by_point.setdefault(_named(member.point), []).append(member)
    groups = sorted(by_point.values(), key=lambda members: -len(members))
    step = max(1, -(-len(groups) // _VIEWS_MAX))
    return [member for members in groups[::step] for member in members][:_SERIES_MAX]


def cpu_chart(material: Material) -> Chart:
    """User and system time of each side over wall time, of points of two ranks."""
    views = []
    for name, members in _points_of_two(material):
        rows, user, system = list[str](), list[tuple[float, int]](), list[tuple[float, int]]()
        for series in members:
            for rank, (of_user, of_system) in enumerate(series.shown.cpu_shares if series.shown else ()):
                user.append((of_user, len(rows)))
                system.append((of_system, len(rows)))
                rows.append(f"{material.name_of(series.point.transport)}, rank {rank}")
        if any(share for share, _ in (*user, *system)):  # a model uses none
            views.append(View(name, (Line("user", user), Line("system", system)), rows))
    return chart("cpu", "bars", Axis("share of wall time", "share", "linear"), Axis("", "", "names"), views)


def _points_of_two(material: Material) -> Iterable[tuple[str, list[Series]]]:
    """The smallest and the largest size of ping-pong and one-way, each with all transports."""
    groups: dict[tuple[str, int], list[Series]] = {}
    for series in material.run.series:
        point = series.point
        is_asked = point.pattern in ("pingpong", "oneway", "stream") and point.ranks == 2
        if is_asked and not series.is_harness and series.counts:
            groups.setdefault((point.pattern_text, point.bytes), []).append(series)
    most = max(map(len, groups.values()), default=0)
    sizes: dict[str, list[int]] = {}
    for (pattern, size), members in groups.items():
        if 2 * len(members) > most and (size or pattern != "pingpong"):
            sizes.setdefault(pattern, []).append(size)
    for pattern, of_pattern in sizes.items():
        for size in sorted({min(of_pattern), max(of_pattern)}):
            members = groups[pattern, size]
            yield _named(members[0].point), members[:_SERIES_MAX]


# ---- layers ---------------------------------------------------------------------------------------------------------

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
    below = curves.get(below_of(material.run, curve.transport, curves) or "")
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


# ---- over the number of ranks, and over the dates of runs ------------------------------------------------------------

_RUNS_MAX, _RANKS_VIEWS_MAX = 60, 40
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
    some = shown[:: max(1, -(-len(shown) // _RANKS_VIEWS_MAX))]
    return chart("ranks", "lines", Axis("ranks", "count", "log2"), _TIME, some)


def history_chart(material: Material) -> Chart:
    """A view for each figure that two runs or more on this machine and with the label of the page's have."""
    label, store = material.run.label, material.results.store
    here = machine_of(material.run.facts)
    labelled = runs_with(store, label) if label else ()
    runs = [run for run in labelled if machine_of(store.run(run.id).info.facts) == here][-_RUNS_MAX:]

    def is_drawn(point: Point) -> bool:
        return point.ranks == 2 and (point.pattern_text, point.bytes) in [named[:2] for named in _OVER_TIME]

    history = history_over(store, runs, is_drawn)
    views = []
    for pattern, size, axis in _OVER_TIME:
        tracks = [track for track in history.tracks if (track.point.pattern_text, track.point.bytes) == (pattern, size)]
        lines = [_over_time(material.name_of(each.point.transport), each, axis, history) for each in tracks]
        if any(len(line.points) > 1 for line in lines):
            views.append(View(f"{axis.title} of {pattern}, {format_bytes(size)}", lines, y=axis))
    notes = ". ".join(note.rstrip(".") for note in chart_notes(history)) if views else ""
    x = Axis("", "unix_s", "time")
    facts = {"runs": len(runs), "label": label, "notes": notes, "all": typed("history", "--label", label)}
    return chart("history", "lines", x, _TIME, views, **facts)


def _over_time(name: str, track: Track, axis: Axis, history: History) -> Line:
    figures = ((run, run.time_ns if axis is _TIME else run.bytes_per_s) for run in track.runs)
    points = {run.run: (run.started_unix_s, *bounds_of(figure)) for run, figure in figures if figure}
    known = chart_labels(track, history)
    labels = tuple(known.get(run, "") for run in points)
    return Line(name, list(points.values()), transport=track.point.transport, labels=labels)


# ---- machines of the archive -----------------------------------------------------------------------------------------

_SCALE = {"us": 1e3, "MB/s": 1e6}  # to ns and bytes/s


@dataclass(frozen=True)
class ArchivePoint:
    """A machine of the archive with both figures."""

    title: str
    year: int
    what: str
    latency_ns: float
    rate_bytes_per_s: float


@functools.cache
def archive_points() -> tuple[ArchivePoint, ...]:
    """Every machine of the archive of which both figures are published."""
    points = []
    for row in rows_of(Path(__file__).with_name("machines.toml")):
        machine = machines()[row["machine"]]
        latency, rate = (
            next(each for each in machine.figures if each.value and each.matches({**row["where"], **row[of_kind]}))
            for of_kind in ("latency", "bandwidth")
        )
        latency_ns, value = ((figure.value or 0.0) * _SCALE[figure.unit] for figure in (latency, rate))
        bytes_per_s = 1e9 * float(rate.at["bytes"]) / value if rate.unit == "us" else value  # of a message's time
        year = int(reports()[machine.report].date[-4:])
        points.append(ArchivePoint(row["name"], year, row["what"], latency_ns, bytes_per_s))
    return tuple(points)


def _sheets() -> Iterator[Line]:
    """The data sheets of the archive that have both figures of an MPI: those of the best library."""
    for sheet in archived().values():
        of_mpi = [each for each in sheet.figure if medium(each.transport) == "mpi" and each.ranks == 2]
        times_ns = [each.value.value for each in of_mpi if each.pattern == "pingpong" and not each.value.is_rate]
        rates = [each.value.value for each in of_mpi if each.pattern == "oneway" and each.value.is_rate]
        if times_ns and rates:
            words = re.sub(r" \(.*?\)|:.*", "", sheet.title).split(", ")[:2]
            name = ", ".join([*words, sheet.date[:4]])
            what = "MPI between hosts" if of_mpi[0].hosts > 1 else "MPI within a host"
            yield Line(name, [(min(times_ns), max(rates))], "published", labels=(what,))


def machines_chart(material: Material) -> Chart:
    """Latency and bandwidth, if a transport of the runs has both."""
    measured = []
    for run in material.runs:
        for curve in material.pingpongs(run):
            time = next((time for size, time in curve.times_ns.items() if 0 < size <= 64), None)
            rates = [rate.value for size in curve.times_ns if (rate := curve.rate_at(size)) is not None]
            if time is not None and rates:
                name = material.name_of(curve.transport, run.id)
                measured.append(Line(name, [(time.value, max(rates))], transport=curve.transport))
    published = [
        Line(f"{each.title}, {each.year}", [(each.latency_ns, each.rate_bytes_per_s)], "published", labels=(each.what,))
        for each in archive_points()
    ]
    published += list(_sheets()) if measured else []
    views = [View("", [*published, *measured])] if measured else []
    return chart("machines", "points", Axis("latency", "ns"), Axis("bandwidth", "bytes/s"), views)
