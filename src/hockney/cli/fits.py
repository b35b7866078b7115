"""The fits of explain as tables: lines through the times, and LogGP's parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from hockney.analysis.explain import FittedLine, OffLine, Parameters
from hockney.cli import render
from hockney.cli.render import TableColumn
from hockney.stats.fit import Estimate, LogGP
from hockney.units import counted, format_bytes, format_ns, format_rate

_HOLDS = {True: "yes", False: "no", None: "unknown"}
_OF_LINE: dict[str, Callable[[FittedLine], str]] = {
    "t_0": lambda line: with_half_width(line.t0_ns, format_ns),
    "r_inf": lambda line: with_half_width(line.r_inf_bytes_per_s, format_rate),
    "n_1/2": lambda line: with_half_width(line.n_half_bytes, lambda value: format_bytes(round(value))),
    "misses": lambda line: f"{line.relative_rms:.1%}",
}
_OF_LOGGP: dict[str, Callable[[LogGP], str]] = {
    "L": lambda fit: with_half_width(fit.latency_ns, format_ns),
    "o_s": lambda fit: with_half_width(fit.send_ns, format_ns),
    "o_r": lambda fit: with_half_width(fit.receive_ns, format_ns),
    "g": lambda fit: with_half_width(fit.gap_ns, format_ns),
    "1/G": lambda fit: with_half_width(fit.rate_bytes_per_s, format_rate),
    "misses": lambda fit: f"{fit.relative_rms:.1%}",
    "holds": lambda fit: _HOLDS[fit.holds],
}


def print_lines(lines: Sequence[FittedLine]) -> None:
    """One row for each segment of a curve."""
    if lines:
        render.title("Straight lines through the times (t_0 + size / r_inf), by segment")
        _print_fits([(line, line) for line in lines], _OF_LINE)
        render.note("misses: weighted root mean square of (measured - line) / line. -: not determined by the data.")


def print_loggp(fits: Sequence[Parameters]) -> None:
    """One row for each segment of the round trips of prtt."""
    if fits:
        render.title("LogGP by segment of the half round trip")
        _print_fits([(fit, fit.loggp) for fit in fits], _OF_LOGGP)
        render.note("holds: whether L, o_s and o_r are all above zero, as LogGP assumes (docs/methods.md).")


def print_off_lines(off_lines: Sequence[OffLine]) -> None:
    """A sentence for each curve that has sizes on no line."""
    for name, points in itertools.groupby(off_lines, key=lambda point: f"{_name(point)} ({point.state})"):
        sizes = ", ".join(f"{format_bytes(point.bytes)} ({format_ns(point.time_ns.value)})" for point in points)
        render.note(f"Off every line of {name}: {sizes}.")


def _print_fits(
    fits: Sequence[tuple[FittedLine | Parameters, FittedLine | LogGP]], texts: Mapping[str, Callable[..., str]]
) -> None:
    """A row for each fit: its curve and state, and the fitted parameters."""
    columns = [
        TableColumn("of", wrap=True, key=True),
        TableColumn("sizes", right=True, key=True),
        *(TableColumn(title, right=True) for title in texts),
        TableColumn("ranks share", optional=True),
    ]
    rows = [
        [
            f"{_name(curve)} ({curve.state})",
            f"{format_bytes(fit.first_bytes)} - {format_bytes(fit.last_bytes)}",
            *(text(fit) for text in texts.values()),
            curve.pair_class or "-",
        ]
        for curve, fit in fits
    ]
    render.table(columns, rows)


def _name(curve: FittedLine | OffLine | Parameters) -> str:
    ranks = f", {counted(curve.ranks, 'rank')}" if curve.ranks != 2 else ""
    return f"{curve.pattern} on {curve.transport}{ranks}"


def with_half_width(value: Estimate | None, text: Callable[[float], str]) -> str:
    """`133 ns ±1.2%`: the larger half-width; a range where that is half the value or more."""
    if value is None:
        return "-"
    if value.low <= 0:  # none of these values can be
        return f"at most {text(value.high)}" if value.high > 0 else "below 0"
    half_width = value.relative
    return f"{text(value.value)} ±{half_width:.1%}" if half_width < 0.5 else f"{text(value.low)} to {text(value.high)}"
