"""The highest rates of events that a run searched, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hockney.analysis.repeat import resume
from hockney.report.commands import command_line, typed
from hockney.report.document import Block
from hockney.report.documents.table_kind import TableKind
from hockney.report.rates import rates_table
from hockney.results.rates import HighestRates, highest_rates
from hockney.results.runs import Run


def _rates(rates: HighestRates, run: Run) -> Iterator[Block]:
    more = f"All rates that were tried: {typed('show', run.id, '--all')}"
    yield replace(rates_table(rates, go_on=command_line(resume(run.id, run.info)), more=more), bold="events")


KIND = TableKind(highest_rates, lambda rates, run, *_: _rates(rates, run), lambda rates: {**vars(rates)})
