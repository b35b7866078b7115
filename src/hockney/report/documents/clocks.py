"""Clocks of hosts: compared by the suite clocks, and before and after each run on several hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hockney.analysis.clocks import ClockAround, HostClock, JobClocks, Seen, clocks_around, clocks_of
from hockney.report.document import Block, Column, Sentence, Text, Title, records
from hockney.report.documents.tables import TableKind
from hockney.results.runs import Run
from hockney.units import format_ns

_MEANING = "+: ahead. Error: half the shortest round trip, which bounds it."


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{format_ns(abs(ns))}"


def _drift_text(clock: HostClock) -> str:
    if clock.drift_ppm is None:
        return ""
    return f"{clock.drift_ppm:+.2f} ppm ({clock.drift_low_ppm:+.2f} to {clock.drift_high_ppm:+.2f})"


_CLOCKS: dict[Column, Callable[[HostClock], str]] = {
    Column("host", key=True): lambda clock: clock.host,
    Column("clock", right=True, tone="strong"): lambda clock: (
        _signed(clock.ahead_ns) if clock.error_ns else "reference"
    ),
    Column("error", right=True): lambda clock: f"±{format_ns(clock.error_ns)}" if clock.error_ns else "",
    Column("drift (95 % interval)", right=True): lambda clock: _drift_text(clock) if clock.error_ns else "",
}


def clocks_document(clocks: Sequence[JobClocks]) -> Iterator[Block]:
    """A row for each host; jobs within one host compare nothing, and are left out if others do."""
    for job in [job for job in clocks if len(job.hosts) > 1] or clocks:
        what = f"Clocks compared with {job.hosts[0].host}, over {job.point.transport}"
        yield Title(f"{what}, {job.point.ranks_text}")
        yield records(_CLOCKS, job.hosts, fits=True)
    yield Sentence()
    yield Text(_MEANING, tone="quiet")


def _seen_text(seen: Seen | None) -> str:
    """`+12 us ±3 us`; empty of the reference."""
    return "" if seen is None or not seen.error_ns else f"{_signed(seen.ahead_ns)} ±{format_ns(seen.error_ns)}"


def _ppm_text(clock: ClockAround) -> str:
    if clock.drift_ppm is None or not clock.before.error_ns:
        return ""
    return f"{round(clock.drift_ppm, 2) + 0:+.2f} ppm ±{clock.drift_error_ppm:.2f}"  # + 0: not -0.00


_AROUND: dict[Column, Callable[[ClockAround], str]] = {
    Column("host", key=True): lambda clock: clock.host,
    Column("before", right=True): lambda clock: _seen_text(clock.before) or "reference",
    Column("after", right=True): lambda clock: _seen_text(clock.after),
    Column("drift", right=True): _ppm_text,
}


def clocks_around_document(run: Run) -> Iterator[Block]:
    """How the clocks of a run's hosts were before and after it, where they were compared."""
    clocks = clocks_around(run)
    if clocks:
        yield Title(f"Clocks compared with {clocks[0].host}, before and after the run")
        yield records(_AROUND, clocks, fits=True)
        yield Text(_MEANING, tone="quiet")


KIND = TableKind(clocks_of, lambda clocks, *_: clocks_document(clocks), lambda clocks: {"clocks": clocks})
