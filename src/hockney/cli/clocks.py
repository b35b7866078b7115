"""Clocks of hosts: what the pattern `clocks` measured, and how they were before and after any other run."""

from __future__ import annotations

from collections.abc import Callable

from hockney.analysis.clocks import ClockAround, Clocks, HostClock, Seen, clocks_around
from hockney.cli import render
from hockney.cli.render import TableColumn
from hockney.results.runs import Run
from hockney.units import format_ns

_MEANING = "+: ahead. Error: half the shortest round trip, which bounds it."


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{format_ns(abs(ns))}"


def _drift_text(clock: HostClock) -> str:
    if clock.drift_ppm is None:
        return ""
    return f"{clock.drift_ppm:+.2f} ppm ({clock.drift_low_ppm:+.2f} to {clock.drift_high_ppm:+.2f})"


_CLOCKS: dict[TableColumn, Callable[[HostClock], str]] = {
    TableColumn("host", key=True): lambda clock: clock.host,
    TableColumn("clock", right=True, style="bold"): lambda clock: (
        _signed(clock.ahead_ns) if clock.error_ns else "reference"
    ),
    TableColumn("error", right=True): lambda clock: f"±{format_ns(clock.error_ns)}" if clock.error_ns else "",
    TableColumn("drift (95 % interval)", right=True): lambda clock: _drift_text(clock) if clock.error_ns else "",
}


def print_clocks(clocks: Clocks) -> None:
    """Print a row for each host; jobs within one host compare nothing, and are left out if others do."""
    jobs = [job for job in clocks.jobs if len(job.hosts) > 1] or clocks.jobs
    for place, job in enumerate(jobs):
        what = f"Clocks compared with {job.hosts[0].host}, over {job.point.transport}"
        render.title(f"{what}, {job.point.ranks_text}", first=place == 0)
        render.records(_CLOCKS, job.hosts, fits=True)
    render.say()
    render.note(_MEANING, style="dim")


def _seen_text(seen: Seen | None) -> str:
    """`+12 us ±3 us`; empty of the reference."""
    return "" if seen is None or not seen.error_ns else f"{_signed(seen.ahead_ns)} ±{format_ns(seen.error_ns)}"


def _ppm_text(clock: ClockAround) -> str:
    if clock.drift_ppm is None or not clock.before.error_ns:
        return ""
    return f"{round(clock.drift_ppm, 2) + 0:+.2f} ppm ±{clock.drift_error_ppm:.2f}"  # + 0: not -0.00


_AROUND: dict[TableColumn, Callable[[ClockAround], str]] = {
    TableColumn("host", key=True): lambda clock: clock.host,
    TableColumn("before", right=True): lambda clock: _seen_text(clock.before) or "reference",
    TableColumn("after", right=True): lambda clock: _seen_text(clock.after),
    TableColumn("drift", right=True): _ppm_text,
}


def print_clocks_around(run: Run) -> None:
    """Print how the clocks of a run's hosts were before and after it, where they were compared."""
    clocks = clocks_around(run)
    if clocks:
        render.title(f"Clocks compared with {clocks[0].host}, before and after the run")
        render.records(_AROUND, clocks, fits=True)
        render.note(_MEANING, style="dim")
