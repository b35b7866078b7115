"""What explain fitted to a run, as tables: lines through the times, and LogGP's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hockney.analysis.estimates import relative
from hockney.analysis.explain import Line, OffLine, Parameters
from hockney.cli import render
from hockney.cli.render import Column
from hockney.stats.fit import Estimate
from hockney.units import counted, format_bytes, format_ns, format_rate

_RANGE_MIN = 0.5  # an interval whose longer arm is this fraction of the value is printed as a range,
_BOUND_MIN = 10.0  # and one whose ends differ by this factor as a bound
_HOLDS = {True: "yes", False: "no", None: "unknown"}


def print_lines(lines: Sequence[Line]) -> None:
    """One row for each segment of a curve."""
    if not lines:
        return
    render.title("Straight lines through the times (t_0 + size / r_inf), by segment")
    rows = [
        (
            *_fit_head(line, line.first_bytes, line.last_bytes),
            with_arm(line.t0_ns, format_ns),
            with_arm(line.r_inf_bytes_per_s, format_rate),
            with_arm(line.n_half_bytes, lambda value: format_bytes(round(value))),
            f"{line.relative_rms:.1%}",
            line.state,
            line.pair_class or "-",
        )
        for line in lines
    ]
    render.table(_fit_columns("t_0", "r_inf", "n_1/2", "misses"), rows)
    render.note("misses: weighted root mean square of (measured - line) / line. -: not determined by the data.")


def print_off_lines(off_lines: Sequence[OffLine]) -> None:
    """A sentence for each curve that has sizes on no line."""
    curves: dict[tuple[object, ...], list[OffLine]] = {}
    for one in off_lines:
        curves.setdefault((one.transport, one.pattern, one.ranks, one.pair_class, one.state), []).append(one)
    for members in curves.values():
        sizes = ", ".join(f"{format_bytes(one.bytes)} ({format_ns(one.time_ns.value)})" for one in members)
        first = members[0]
        where = ", ".join(filter(None, (first.state, first.pair_class)))
        render.note(f"Off every line of {_of(first)}{f' ({where})' if where else ''}: {sizes}.")


def print_loggp(found: Sequence[Parameters]) -> None:
    """One row for each segment of the round trips of prtt."""
    if not found:
        return
    render.title("LogGP by segment of the half round trip")
    rows = [
        (
            *_fit_head(one, one.loggp.first_bytes, one.loggp.last_bytes),
            *(
                with_arm(value, format_ns)
                for value in (one.loggp.latency_ns, one.loggp.send_ns, one.loggp.receive_ns, one.loggp.gap_ns)
            ),
            with_arm(one.loggp.rate_bytes_per_s, format_rate),
            f"{one.loggp.relative_rms:.1%}",
            _HOLDS[one.loggp.holds],
            one.state,
            one.pair_class or "-",
        )
        for one in found
    ]
    render.table(_fit_columns("L", "o_s", "o_r", "g", "1/G", "misses", "holds"), rows)
    render.note("holds: whether L, o_s and o_r are all above zero, as LogGP assumes (docs/methods.md).")


def _of(one: Line | OffLine | Parameters) -> str:
    ranks = f", {counted(one.ranks, 'rank')}" if one.ranks != 2 else ""
    return f"{one.pattern} on {one.transport}{ranks}"


def _fit_head(one: Line | Parameters, first_bytes: int, last_bytes: int) -> tuple[str, str]:
    return _of(one), f"{format_bytes(first_bytes)} - {format_bytes(last_bytes)}"


def _fit_columns(*titles: str) -> list[Column]:
    return [
        Column("of", wrap=True, key=True),
        Column("sizes", right=True, key=True),
        *(Column(title, right=True) for title in titles),
        Column("state", key=True),
        Column("ranks share", optional=True),
    ]


def with_arm(value: Estimate | None, text: Callable[[float], str]) -> str:
    """`133 ns ±1.2%`: the longer arm of the interval; a range or a bound where that is half the value or more.

    None of these values can be below zero.
    """
    if value is None:
        return "-"
    if value.low <= 0:
        return f"at most {text(value.high)}" if value.high > 0 else "below 0"
    arm = relative(value)
    if arm < _RANGE_MIN:
        return f"{text(value.value)} ±{arm:.1%}"
    is_vague = value.high >= _BOUND_MIN * value.low
    return f"at least {text(value.low)}" if is_vague else f"{text(value.low)} to {text(value.high)}"
