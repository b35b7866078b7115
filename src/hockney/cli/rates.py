"""The table of a search for the highest rate of events, measured or on a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

from hockney.analysis.rates import LATE_MAX, HighestRates, SustainedRate
from hockney.cli import render
from hockney.cli.render import TableColumn
from hockney.cli.words import bounds_column, known_text
from hockney.report.words import size_text
from hockney.units import counted, format_hz, format_ns, format_rate

_IN_FLIGHT_MAX = 1024
_COLUMNS: dict[TableColumn, Callable[[SustainedRate], str]] = {
    TableColumn("what", key=True, wrap=True): lambda rate: rate.point.text(rate.point.transport),
    TableColumn("size", right=True): lambda rate: size_text(rate.point),
    TableColumn("events", right=True, style="bold"): lambda rate: known_text(rate.sustained_hz, format_hz, "not found"),
    TableColumn("rate", right=True): lambda rate: known_text(rate.bytes_per_s, format_rate),
    TableColumn("p50", right=True): lambda rate: known_text(rate.p50_ns, format_ns),
    TableColumn("p99", right=True): lambda rate: known_text(rate.p99_ns, format_ns),
    TableColumn("p99.9", right=True): lambda rate: known_text(rate.p999_ns, format_ns),
    TableColumn("missed at", right=True): lambda rate: known_text(rate.missed_hz, format_hz),
}


def print_rates(highest: HighestRates, note: str, *, go_on: str = "", first: bool = True) -> None:
    """Print a row for each search, the best of each group or what to do where there is none, and the note.

    `go_on`: the command that continues a search whose time was up.
    """
    render.title(f"Highest rate of events with a deadline of {format_ns(highest.deadline_ns)}", first=first)
    columns = list(_COLUMNS.items())
    columns[3:3] = bounds_column(highest.rates, attrgetter("sustained_hz", "low_hz", "high_hz"), format_hz).items()
    render.records(dict(columns), highest.rates, fits=True)
    render.say()
    for group in highest.groups():
        if text := _result(group, highest.deadline_ns, go_on):
            render.note(text)
    render.note(
        f"At most {100 * LATE_MAX:g} % of the events end later than the deadline after they were due, and the farm "
        f"does not fall behind. {note}"
    )


def _result(group: Sequence[SustainedRate], deadline_ns: float, go_on: str) -> str:
    """The best of several searches; or why none found a rate, and the next step. "" for one search that did."""
    is_over, highest_hz = all(rate.is_over for rate in group), max(rate.sustained_hz or 0 for rate in group)
    if highest_hz:
        # The search resolves 2 %. The first has the fewest in flight.
        best, *equal = [rate for rate in group if 1.02 * (rate.sustained_hz or 0) >= highest_hz]
        others = f", with {counted(len(equal), 'other')} within 2 %" if equal else ""
        quickest = min((best, *equal), key=lambda rate: rate.p50_ns or math.inf)
        if quickest.p50_ns and best.p50_ns and quickest.p50_ns < 0.9 * best.p50_ns:
            others += f" (in_flight={dict(quickest.point.options)['in_flight']} has the shortest p50)"
        text = f"{best.point}: {format_hz(best.sustained_hz or 0)} is the highest{others}"
        more = "." if is_over else f" so far; the search has not ended. Continue: {go_on}"
        return text + more if len(group) > 1 or not is_over else ""
    if not is_over:
        return f"{group[0].point}: the search has not ended. Continue: {go_on}"
    lowest = min(group, key=lambda rate: rate.missed_hz or math.inf)
    even, p99_ns = f"{lowest.point}: even {format_hz(lowest.missed_hz or 0)}", lowest.missed_p99_ns or 0.0
    in_flight = 8 * int(dict(group[0].point.options).get("in_flight", 1))
    more = f", or in_flight={in_flight}" if len(group) == 1 and in_flight <= _IN_FLIGHT_MAX else ""
    if p99_ns <= deadline_ns:
        return f"{even} is too fast: events queue up. Allow more receivers (-n){more}."
    number, unit = format_ns(1.5 * p99_ns).split()
    late = f"{100 * LATE_MAX:g} % of the events took over {format_ns(p99_ns)}"
    return f"{even} misses the deadline: {late}. Allow more: deadline={math.ceil(float(number))}{unit}{more}."
