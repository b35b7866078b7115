"""Changes in words, as compare, history and bisect have them: names of series, times, changes with their bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hockney.analysis.compare.values import Comparison, Range
from hockney.model import Point, split_placed
from hockney.report.words import NOTHING, SHORT_MARK, readable_name
from hockney.stats import Estimate
from hockney.units import format_bytes, format_ns


def names_of(comparison: Comparison) -> dict[str, str]:
    """The readable names of transports: `Open MPI 4.1.4`, and where base has another one `shm -> threads`."""
    names = {transport: readable_name(transport, library) for transport, library in comparison.libraries.items()}
    placements = {transport: split_placed(transport)[1] for transport in names}
    names |= {transport: f"{names[transport]}, {n} on each host" for transport, n in placements.items() if n}
    for base, new in comparison.renamed.items():
        before, after = names.get(base, base), names.get(new, new)
        names[new] = f"{before} -> {after}" if before != after else f"{base} -> {new}"
    return names


def curve_name(point: Point, names: Mapping[str, str] | None = None) -> str:
    """`pingpong window=4 on tcp`, and the ranks where they are not two."""
    transport = (names or {}).get(point.transport, point.transport)
    ranks = "" if point.ranks == 2 else f", {point.ranks_text}"
    return f"{point.pattern_text} on {transport}{ranks}"


def range_name(alike: Range, names: Mapping[str, str] | None = None) -> str:
    """`pingpong on tcp, 8-32 KiB`."""
    point, many = alike.first.point, len(alike.changes)
    if many > 1 and point.hosts:
        common = "".join(f" of {host}" for host in point.hosts if all(host in of.point.hosts for of in alike.changes))
        of = f"of {many} links{common}" if len(point.hosts) == 2 else f"{point.options[0][0]} {many} hosts"
        point = replace(point, pattern=f"{point.pattern} {of}", options=())
    if not point.is_sized:
        return curve_name(point, names)
    return f"{curve_name(point, names)}, {_span(point.bytes, alike.changes[-1].point.bytes, format_bytes)}"


def times_text(alike: Range, side: int) -> str:
    """Of base (0) or new (1) `1.83 us`, over several sizes `1.83-4.28 us`; † where samples hold few events."""
    times_ns = [change.new_ns if side else change.base_ns for change in alike.changes]
    known = [time_ns for time_ns in times_ns if time_ns is not None]
    mark = SHORT_MARK if any(change.is_short for change in alike.changes) else ""
    return _span(min(known), max(known), format_ns) + mark if known else NOTHING


def change_text(alike: Range, *, by_factor: bool) -> str:
    """`+8.0 % (+6.1 to +14)`, `x16.1 (15.8 to 16.4)`: for several sizes the median, and the widest bounds of the CIs.

    On models without noise `+8.0 %`, `+6.1 % to +8.0 %`.
    """
    ratio = alike.ratio
    if ratio is None:
        return NOTHING
    if all(change.is_exact for change in alike.changes):
        text = factor_text if by_factor else change_percent
        return " to ".join(dict.fromkeys(map(text, (ratio.low, ratio.high))))
    return interval_text(ratio, by_factor=by_factor)


def interval_text(ratio: Estimate, *, by_factor: bool) -> str:
    """`+8.0 % (+6.1 to +14)`, `x16.1 (15.8 to 16.4)`."""
    text, bound = (factor_text, _factor) if by_factor else (change_percent, _bound_text)
    return f"{text(ratio.value)} ({bound(ratio.low)} to {bound(ratio.high)})"


def factor_text(ratio: float) -> str:
    """16.06 -> `x16.1`, 1.003 -> `x1.00`."""
    return f"x{_factor(ratio)}"


def _factor(ratio: float) -> str:
    return f"{ratio:.{1 if ratio >= 10 else 2}f}"


def change_percent(ratio: float) -> str:
    """1.081 -> `+8.1 %`."""
    return f"{100 * (ratio - 1):+.1f} %"


def _bound_text(ratio: float) -> str:
    """1.081 -> `+8.1`, 1.275 -> `+28`."""
    change = 100 * (ratio - 1)
    return f"{change:+.{0 if abs(change) >= 9.95 else 1}f}"


def _span(low: Any, high: Any, text: Callable[[Any], str]) -> str:
    """`8-32 KiB`, `8 B-1 KiB`, `8 B`."""
    first, last = text(low), text(high)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first}-{last}"
