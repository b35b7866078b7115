"""A search for the highest rate of events, measured or on a model, as a document and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

from hockney.analysis.repeat import resume
from hockney.report.commands import command_line, typed
from hockney.report.document import Column, Section, Sentence, Text, records
from hockney.report.documents.tables import TableKind
from hockney.report.words import RANGE_MARK, bounds_column, known_text, size_text
from hockney.results.rates import HighestRates, SustainedRate, highest_rates
from hockney.results.runs import Run
from hockney.stats.figures import INTERVAL_MEASUREMENTS
from hockney.stats.rates import LATE_MAX
from hockney.units import counted, format_messages, format_ns, format_rate

_IN_FLIGHT_MAX = 1024


def _highest(rate: SustainedRate) -> str:
    """`35.8 k/s`, or where the search has not ended the range in which the highest rate is, `35.8–71.7 k/s‡`."""
    low, high = known_text(rate.sustained_hz, format_messages), known_text(rate.missed_hz, format_messages)
    if rate.is_over or not (low or high):
        return low or ("not found" if rate.is_over else f"none yet{RANGE_MARK}")
    if not low or not high:
        return f"{f'above {low}' if low else f'below {high}'}{RANGE_MARK}"
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low}–{high}{RANGE_MARK}"


def _columns(highest: HighestRates) -> dict[Column, Callable[[SustainedRate], str]]:
    bounds = bounds_column(highest.rates, attrgetter("sustained_hz", "low_hz", "high_hz"), format_messages)
    return {
        Column("what", key=True, wrap=True): lambda rate: rate.point.text(rate.point.transport),
        Column("size", right=True, key=True): lambda rate: size_text(rate.point),
        Column("events", right=True, tone="strong"): _highest,
        **{Column(title, right=True): cell for title, cell in bounds.items()},
        Column("rate", right=True): lambda rate: known_text(rate.bytes_per_s, format_rate),
        Column("p50", right=True): lambda rate: known_text(rate.p50_ns, format_ns),
        Column("p99", right=True): lambda rate: known_text(rate.p99_ns, format_ns),
        Column("p99.9", right=True): lambda rate: known_text(rate.p999_ns, format_ns),
        Column("missed at", right=True): lambda rate: known_text(
            rate.missed_hz, lambda hz: f"{format_messages(hz)} ({rate.missed_by})"
        ),
    }


def rates_section(highest: HighestRates, *, go_on: str = "", more: str = "") -> Section:
    """A row for each search; notes: the best of each group or what to do without one, searches to continue, meanings.

    `go_on`: the command that continues searches whose time was up; `more`: a sentence for the end.
    """
    meaning = (
        f"At most {100 * LATE_MAX:g} % of the events end later than the deadline after they were due, and the farm "
        f"does not fall behind (backlog). {more}".rstrip()
    )
    notes = filter(None, (*map(_result, highest.groups()), _unended(highest.rates, go_on), meaning))
    title = f"Highest rate of events with a deadline of {format_ns(highest.deadline_ns)}"
    table = records(_columns(highest), highest.rates, fits=True)
    return Section(title, (table, Sentence(), *map(Text, notes)))


def _unended(rates: Sequence[SustainedRate], go_on: str) -> str:
    """`‡: 5 of 8 searches have not ended; continue: `hockney run --resume 3`.`, and how many are provisional."""
    left, few = sum(not rate.is_over for rate in rates), sum(rate.is_provisional for rate in rates)
    have = "has" if len(rates) == 1 else "have"
    text = f"{RANGE_MARK}: {left} of {counted(len(rates), 'search', 'searches')} {have} not ended"
    more = f"; continue: `{go_on}`." if go_on else "."
    more += f" Provisional, of fewer than {INTERVAL_MEASUREMENTS} measurements: {few}." if few else ""
    return text + more if left else ""


def _result(group: Sequence[SustainedRate]) -> str:
    """The best of several searches; or why none found a rate, and the next step. "" if it did, or has not ended."""
    highest_hz = max(rate.sustained_hz or 0 for rate in group)
    if not all(rate.is_over for rate in group):
        return ""
    if highest_hz:
        # The search resolves 2 %. The first has the fewest in flight.
        best, *equal = [rate for rate in group if 1.02 * (rate.sustained_hz or 0) >= highest_hz]
        others = f", with {counted(len(equal), 'other')} within 2 %" if equal else ""
        quickest = min((best, *equal), key=lambda rate: rate.p50_ns or math.inf)
        if quickest.p50_ns and best.p50_ns and quickest.p50_ns < 0.9 * best.p50_ns:
            others += f" (in_flight={dict(quickest.point.options).get('in_flight', 1)} has the shortest p50)"
        return f"{best.point}: {format_messages(best.sustained_hz or 0)} is the highest{others}." * (len(group) > 1)
    lowest = min(group, key=lambda rate: rate.missed_hz or math.inf)
    even, p99_ns = f"{lowest.point}: even {format_messages(lowest.missed_hz or 0)}", lowest.missed_p99_ns or 0.0
    in_flight = 8 * int(dict(group[0].point.options).get("in_flight", 1))
    more = f", or in_flight={in_flight}" if len(group) == 1 and in_flight <= _IN_FLIGHT_MAX else ""
    if lowest.missed_by == "backlog":
        return f"{even} is too fast: events queue up. Allow more receivers (-n){more}."
    number, unit = format_ns(1.5 * p99_ns).replace(",", "").split()
    late = f"{100 * LATE_MAX:g} % of the events took over {format_ns(p99_ns)}"
    return f"{even} misses the deadline: {late}. Allow more: deadline={math.ceil(float(number))}{unit}{more}."


def _rates(rates: HighestRates, run: Run) -> list[Section]:
    more = f"Times are over all machine states. All rates that were tried, in one: {typed('show', run.id, '--all')}"
    return [rates_section(rates, go_on=command_line(resume(run.id, run.info)), more=more)]


KIND = TableKind(highest_rates, lambda rates, run, *_: _rates(rates, run), vars)
