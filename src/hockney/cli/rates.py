"""The highest rates of events that a run found, as a table and as JSON."""

from __future__ import annotations

from typing import Any

from hockney.analysis.rates import LATE_MAX, HighestRates, SustainedRate
from hockney.cli import render
from hockney.cli.changes import point_json
from hockney.cli.curves import name_of, size_text
from hockney.cli.render import Column
from hockney.cli.rerun import typed
from hockney.units import format_hz, format_ns

_COLUMNS = (
    Column("what", key=True, wrap=True),
    Column("size", right=True),
    Column("highest rate", right=True, style="bold"),
    Column("p50", right=True),
    Column("p99", right=True),
    Column("p99.9", right=True),
    Column("missed at", right=True),
)


def print_rates(found: HighestRates, run_id: int) -> None:
    """Print a row for each search."""
    render.title(f"Highest rate of events with a deadline of {format_ns(found.deadline_ns)}", first=True)
    render.table(list(_COLUMNS), [_row(rate) for rate in found.rates], fits=True)
    render.say()
    render.note(
        f"At most {100 * LATE_MAX:g} % of the events end later than the deadline after they were due, and the farm "
        f"does not fall behind. All rates that were tried: {typed('show', run_id)}"
    )


def _row(rate: SustainedRate) -> list[str]:
    sustained = "not found" if rate.sustained_hz is None else format_hz(rate.sustained_hz)
    times = ("" if time_ns is None else format_ns(time_ns) for time_ns in (rate.p50_ns, rate.p99_ns, rate.p999_ns))
    missed = "" if rate.missed_hz is None else format_hz(rate.missed_hz)
    return [name_of(rate.point, rate.point.transport), size_text(rate.point), sustained, *times, missed]


def rates_as_json(found: HighestRates) -> dict[str, Any]:
    """The same values."""
    rows = [{**vars(rate), "point": point_json(rate.point)} for rate in found.rates]
    return {"deadline_ns": found.deadline_ns, "rates": rows}
