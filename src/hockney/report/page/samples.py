"""Charts that need samples: how single times are distributed, and how much CPU time each side uses.

Only a few series are read, since a run may hold millions of samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hockney.model import Measurement, Point, PointStatus
from hockney.report.charts import Axis, Chart, Line, View, chart
from hockney.report.page.material import Material
from hockney.results.runs import Series
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
        times_ns = np.concatenate([np.empty(0), *(each.times_ns() for each in _in_table_state(series))])
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


def _in_table_state(series: Series) -> list[Measurement]:
    """Those of the figure that tables show; [] where all of them are damaged."""
    return [] if series.shown is None else series.shown.samples_of


# ---- CPU time -------------------------------------------------------------------------------------------------------


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
