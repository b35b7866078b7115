"""This machine among those of the archive: bandwidth against latency, where a report publishes both."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from hockney.archive import machines, reports
from hockney.machine.files import rows_of
from hockney.report.charts import Axis, Chart, Line, View, chart
from hockney.report.page.curves import CurveData
from hockney.report.page.material import Material
from hockney.results.runs import Run

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
    for row in rows_of(Path(__file__).with_suffix(".toml")):
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


def machines_chart(material: Material) -> Chart:
    """Latency and bandwidth, if a transport of the runs has both."""
    measured = []
    for run in material.runs:
        for curve in pingpongs(material, run):
            time, rate = next((time for size, time in curve.times_ns.items() if 0 < size <= 64), None), best_rate(curve)
            if time is not None and rate:
                name = material.name_of(curve.transport, run.id)
                measured.append(Line(name, [(time.value, rate)], transport=curve.transport))
    published = [
        Line(f"{each.title}, {each.year}", [(each.latency_ns, each.rate_bytes_per_s)], "published", labels=(each.what,))
        for each in archive_points()
    ]
    views = [View("", [*published, *measured])] if measured else []
    return chart("machines", "points", Axis("latency", "ns"), Axis("bandwidth", "bytes/s"), views)


def pingpongs(material: Material, run: Run) -> list[CurveData]:
    """The ping-pong of each transport, in the state that tables show."""
    of_two = [curve for curve in material.curves if curve.run == run.id and curve.is_main and curve.ranks == 2]
    return [curve for curve in of_two if curve.pattern == "pingpong"]


def best_rate(curve: CurveData) -> float:
    """The highest rate of all sizes in bytes/s; 0 without any."""
    return max((rate.value for size in curve.times_ns if (rate := curve.rate_at(size)) is not None), default=0.0)
