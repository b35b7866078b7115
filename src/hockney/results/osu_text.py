"""A run as text of the OSU micro-benchmarks, for programs that read those: a table for each curve.

Only patterns that OSU has, too; each figure is hockney's, in one machine state, as a comment says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from hockney.errors import UsageError
from hockney.model import CurveKey, curve_of
from hockney.results.runs import Run, Series, curve_figures
from hockney.stats import Figure

# The pattern -> the title of OSU's, the heads of its columns, and these of a figure.
_LATENCY: tuple[str, Callable[[Figure], list[float]]] = ("Latency (us)", lambda figure: [figure.value_ns / 1e3])
_AVERAGE: tuple[str, Callable[[Figure], list[float]]] = ("Avg Latency(us)", _LATENCY[1])
_RATE: tuple[str, Callable[[Figure], list[float]]] = (
    "Bandwidth (MB/s)",
    lambda figure: [(figure.rate_bytes_per_s or 0.0) / 1e6],
)
_RATES: tuple[str, Callable[[Figure], list[float]]] = (
    "MB/s        Messages/s",
    lambda figure: [(figure.rate_bytes_per_s or 0.0) / 1e6, figure.messages_per_s or 0.0],
)
_TABLES = {
    "pingpong": ("Latency", *_LATENCY),
    "oneway": ("Bandwidth", *_RATE),
    "twoway": ("Bi-Directional Bandwidth", *_RATE),
    "pairs": ("Multiple Bandwidth / Message Rate", *_RATES),
    "allreduce": ("Allreduce Latency", *_AVERAGE),
    "alltoall": ("All-to-All Personalized Exchange Latency", *_AVERAGE),
    "multicast": ("Broadcast Latency", *_AVERAGE),
    "barrier": ("Barrier Latency", *_AVERAGE),
}


def write_osu(run: Run, series: Iterable[Series], stream: TextIO) -> None:
    """Write the curves of these series. Raises UsageError where OSU has none of their patterns."""
    curves: dict[CurveKey, list[Series]] = {}
    for member in series:
        if member.point.pattern in _TABLES and member.point.transport != "null":
            curves.setdefault(curve_of(member.point), []).append(member)
    tables = [(members[0], *curve_figures(members)) for members in curves.values()]
    tables = [table for table in tables if table[2]]
    if not tables:
        raise UsageError(f"OSU has no such table: run {run.id} has no figure of {', '.join(_TABLES)}")
    for first, state, figures in tables:
        stream.write(_table(run, first, state, figures))


def _table(run: Run, first: Series, state: str | None, figures: dict[Series, Figure]) -> str:
    point = first.point
    title, head, values = _TABLES[point.pattern]
    options = dict(point.options)
    is_slowest = next(iter(figures.values())).definition.timed == "slowest"
    whose = ", of the slowest rank" if is_slowest else ""
    where = f"{point.pattern_text} on {point.transport}, {point.ranks_text}, state {state}{whose}"
    lines = ["", f"# OSU MPI {title} Test", f"# Made by hockney {run.info.version}: {where}"]
    window = f"[ window size: {options['window']} ]" if "window" in options else ""
    if point.pattern == "pairs":
        lines.append(f"# [ pairs: {point.ranks // 2} ] {window}".rstrip())
    elif window:
        lines.append(f"# {window}")
    if point.is_sized:
        lines.append(f"# {'Size':<10}{head:>18}")
    else:
        lines.append(f"# {head}")
    for series, figure in sorted(figures.items(), key=lambda item: item[0].point.bytes):
        size = f"{series.point.bytes:<10}" if point.is_sized else ""
        numbers = values(figure)
        if all(number > 0 for number in numbers):  # 0 B have no rate
            lines.append(size + "".join(f"{number:>18.4f}" for number in numbers))
    return "\n".join([*lines, ""])
