"""A run as text of the OSU micro-benchmarks, for programs that read those: a table for each curve.

Only patterns that OSU also has; each figure is hockney's, in the machine states that a comment names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TextIO

from hockney.errors import UsageError
from hockney.model import CurveKey, Point, curve_of
from hockney.results.figures import Figure
from hockney.results.formats.osu import benchmarks
from hockney.results.runs import Run, Series
from hockney.suites.tools import NamedSeries


def _benchmark(point: Point) -> NamedSeries | None:
    """The one with most of the point's options among those that print one time or rate of its pattern and size."""
    options, family = dict(point.options), re.split("[@:]", point.transport)[0]
    alike = (row for row in benchmarks().values() if row.pattern == point.pattern and "overlap" not in row.options)
    return max(
        (row for row in alike if all(row.options.get(name) == options.get(name) for name in ("form", "bytes_of"))),
        key=lambda row: (row.command[4].startswith(family), len(row.options.items() & options.items())),
        default=None,
    )


def _columns(title: str, figure: Figure) -> tuple[str, list[float]]:
    """The titles of the columns, and a figure's numbers below them."""
    rates = [rate.value if rate else 0.0 for rate in (figure.bytes_per_s, figure.messages_per_s)]
    if "Message Rate" in title:
        return "MB/s        Messages/s", [rates[0] / 1e6, rates[1]]
    if "Bandwidth" in title:
        return "Bandwidth (MB/s)", [rates[0] / 1e6]
    return "Latency (us)" if title == "MPI Latency" else "Avg Latency(us)", [figure.time.value / 1e3]


def write_osu(run: Run, series: Iterable[Series], stream: TextIO) -> None:
    """Write the curves of these series. Raises UsageError where OSU has none of them."""
    curves: dict[CurveKey, tuple[str, list[Figure]]] = {}
    for member in series:
        benchmark = _benchmark(member.point)
        if benchmark and not member.is_harness and member.shown is not None:
            curves.setdefault(curve_of(member.point), (benchmark.title, []))[1].append(member.shown)
    if not curves:
        raise UsageError(
            f"OSU has no table for any figure of run {run.id}: list its own", argv=("hockney", "list", "osu")
        )
    for title, figures in curves.values():
        stream.write(_table(run, title, figures))


def _table(run: Run, title: str, figures: Sequence[Figure]) -> str:
    point = figures[0].point
    options, (head, _) = dict(point.options), _columns(title, figures[0])
    whose = ", of the slowest rank" if figures[0].definition.timed == "slowest" else ""
    states = "; ".join(dict.fromkeys(figure.state for figure in figures))
    where = f"{point.text(point.transport)}, state {states}{whose}"
    lines = ["", f"# OSU {title} Test", f"# Made by hockney {run.info.version}: {where}"]
    window = f"[ window size: {options['window']} ]" if "window" in options else ""
    if point.pattern == "pairs":
        lines.append(f"# [ pairs: {point.ranks // 2} ] {window}".rstrip())
    elif window:
        lines.append(f"# {window}")
    if point.is_sized:
        lines.append(f"# {'Size':<10}{head:>18}")
    else:
        lines.append(f"# {head}")
    for figure in sorted(figures, key=lambda figure: figure.point.bytes):
        size = f"{figure.point.bytes:<10}" if point.is_sized else ""
        numbers = _columns(title, figure)[1]
        if all(number > 0 for number in numbers):  # 0 B have no rate
            lines.append(size + "".join(f"{number:>18.4f}" for number in numbers))
    return "\n".join([*lines, ""])
