"""A run as text of the OSU micro-benchmarks, for programs that read those: a table for each curve.

Only patterns that OSU also has; each figure is hockney's, in the machine states that a comment names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from hockney.errors import UsageError
from hockney.model import CurveKey, Point, curve_of
from hockney.results.figures import Figure
from hockney.results.formats.osu import benchmarks
from hockney.results.runs import Run, Series

if TYPE_CHECKING:
    from hockney.suites.tools import NamedSeries


def _benchmark(point: Point) -> NamedSeries | None:
    """The one with most of the point's options among those that print one time or rate of its pattern."""
    options, family = dict(point.options), re.split("[@:]", point.transport)[0]
    alike = (row for row in benchmarks().values() if row.pattern == point.pattern and "overlap" not in row.options)
    fitting = [row for row in alike if row.options.get("form") == options.get("form")]

    def likeness(row: NamedSeries) -> tuple[bool, int]:
        return row.command[4].startswith(family), len(row.options.items() & options.items())

    return max(fitting, key=likeness, default=None)


def _head(title: str) -> str:
    if "Message Rate" in title:
        return "MB/s        Messages/s"
    if "Bandwidth" in title:
        return "Bandwidth (MB/s)"
    return "Latency (us)" if title == "MPI Latency" else "Avg Latency(us)"


def _numbers(title: str, figure: Figure) -> list[float]:
    """The numbers below the head."""
    if "Bandwidth" not in title:
        return [figure.time.value / 1e3]
    rate = figure.bytes_per_s.value / 1e6 if figure.bytes_per_s else 0.0
    messages = figure.messages_per_s.value if figure.messages_per_s else 0.0
    return [rate, messages] if "Message Rate" in title else [rate]


def write_osu(run: Run, series: Iterable[Series], stream: TextIO) -> None:
    """Write the curves of these series. Raises UsageError where OSU has none of them."""
    curves: dict[CurveKey, list[Figure]] = {}
    for member in series:
        if _benchmark(member.point) and not member.is_harness and member.shown is not None:
            curves.setdefault(curve_of(member.point), []).append(member.shown)
    if not curves:
        raise UsageError(
            f"OSU has no table for any figure of run {run.id}: list its own", argv=("hockney", "list", "osu")
        )
    for figures in curves.values():
        stream.write(_table(run, figures))


def _table(run: Run, figures: Sequence[Figure]) -> str:
    point = figures[0].point
    options, benchmark = dict(point.options), _benchmark(point)
    assert benchmark is not None  # write_osu leaves others out
    title, head = benchmark.title, _head(benchmark.title)
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
        numbers = _numbers(title, figure)
        if all(number > 0 for number in numbers):  # 0 B have no rate
            lines.append(size + "".join(f"{number:>18.4f}" for number in numbers))
    return "\n".join([*lines, ""])
