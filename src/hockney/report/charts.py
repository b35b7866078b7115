"""Parts of a chart as plain values: draw.js draws them, and the table behind each lists them."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hockney.machine.files import rows_of
from hockney.report.findings import rank_names
from hockney.stats import Estimate

if TYPE_CHECKING:
    from hockney.model import FloatArray

Unit = Literal["ns", "bytes", "bytes/s", "count", "share", "ratio", "unix_s", "percentile", ""]
Scale = Literal["log2", "log10", "linear", "names", "tail", "time"]
Kind = Literal["measured", "model", "published", "reference"]
Form = Literal["lines", "points", "bars", "intervals"]
PairUnit = Literal["ns", "bytes/s"]
COLORS = 10
DASHES = ("", "7 4", "2 3")  # of the first run, and of further ones
PointValues = tuple[float, float] | tuple[float, float, float | None, float | None]
"""x, y, and the interval of the value where it may have one."""


@dataclass(frozen=True)
class Axis:
    """An axis; the categories of the scale "names" are those of the view, from the top down."""

    title: str
    unit: Unit
    scale: Scale = "log10"


@dataclass(frozen=True)
class Line:
    """A curve, the points of one colour, or a layer of stacked bars. `transport` chooses its colour."""

    name: str
    points: Sequence[PointValues]
    kind: Kind = "measured"
    transport: str | None = None
    labels: tuple[str, ...] = ()  # of points that have one, else empty; on a curve they have a ring
    color: int | None = None  # where neither its transport nor its number among the lines chooses it
    dash: str = ""  # of a further run


@dataclass(frozen=True)
class Strip:
    """A row under the axis of sizes, of the transports of a class: spans with both ends, the fastest, and a text.

    Several are the fastest where their intervals overlap.
    """

    name: str
    spans: Sequence[tuple[float, float, tuple[str, ...], str]]


@dataclass(frozen=True)
class View:
    """One of the pictures that a chart can show; `names` are its categories, `y` its axis if not the chart's."""

    name: str
    lines: Sequence[Line]
    names: Sequence[str] = ()
    y: Axis | None = None
    strips: Sequence[Strip] = ()


@dataclass(frozen=True)
class Chart:
    """A chart: `about` describes it for readers who do not see it, `note` says how to read it."""

    id: str
    title: str
    about: str
    kind: Form
    x: Axis
    y: Axis
    views: Sequence[View]
    note: str = ""


@dataclass(frozen=True)
class PairValues:
    """A square of values, NaN where a pair has none, and the words next to it. `framed` are the ranks of outliers.

    `hosts` are those of the rows; () where all ranks are on one.
    """

    name: str
    ends: Literal["ranks", "hosts"]
    unit: PairUnit
    values: FloatArray
    hosts: tuple[str, ...]
    classes: tuple[str, ...]
    missing: int
    cpus: tuple[int, ...] = ()
    framed: tuple[tuple[int, ...], ...] = ()
    outliers: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    oversubscribed: bool = False

    @property
    def names(self) -> list[str]:
        """Those of its rows: the hosts where no two ranks share one, else the ranks, with their hosts if several."""
        if len(self.hosts) == len(set(self.hosts)) > 0:
            return list(self.hosts)
        return rank_names(range(len(self.values)), self.hosts)


@dataclass(frozen=True)
class Picture:
    """A view of a chart, or a matrix. `name` is that of its file, `source` names the run."""

    name: str
    shown: tuple[Chart, View] | PairValues
    source: str = ""


def chart(name: str, kind: Form, x: Axis, y: Axis, views: Sequence[View], **facts: object) -> Chart:
    """A chart with its texts in charts.toml, and the facts that they name."""
    (texts,) = (row for row in rows_of(Path(__file__).with_suffix(".toml")) if row["id"] == name)
    return Chart(kind=kind, x=x, y=y, views=views, **{key: text.format(**facts) for key, text in texts.items()})


def plain(value: float | None) -> float | int | None:
    """A number in the page's form: five digits, whole numbers without a point; None unless it is finite."""
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return value
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def bounds_of(value: Estimate) -> tuple[float, float, float]:
    """A value with its bounds, for a point."""
    return value.value, value.low, value.high


def interval_of(point: PointValues) -> tuple[float | None, float | None]:
    """The interval of its value; None where there is none."""
    return (point[2], point[3]) if len(point) == 4 else (None, None)


def chart_json(chart: Chart) -> dict[str, Any]:
    """A chart in the page's embedded form."""
    number = round if chart.x.unit == "unix_s" else plain  # five digits of a date are a day
    return {
        "kind": chart.kind,
        "x": asdict(chart.x),
        "views": [
            {
                "name": view.name,
                "names": view.names,
                "y": asdict(view.y or chart.y),
                "lines": [
                    {
                        **vars(line),
                        "points": [[number(p[0]), *map(plain, (p[1], *interval_of(p)))] for p in line.points],
                    }
                    for line in view.lines
                ],
            }
            for view in chart.views
        ],
    }


def matrix_json(matrix: PairValues) -> dict[str, Any]:
    """A matrix in the page's embedded form: its values row by row, as little-endian floats of 32 bits."""
    return {
        "name": matrix.name,
        "unit": matrix.unit,
        "ranks": len(matrix.values),
        "values": base64.b64encode(matrix.values.astype("<f4").tobytes()).decode("ascii"),
        "hosts": matrix.hosts,
        "cpus": matrix.cpus,
        "outliers": matrix.framed,
    }
