"""Times under a background of other traffic as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hockney.analysis.impact import Impact, Impacts, impacts_of
from hockney.analysis.repeat import resume
from hockney.report.commands import fix_text, typed
from hockney.report.document import Block, Text
from hockney.report.documents.table_kind import TableKind
from hockney.report.impacts import background_text, impact_table
from hockney.report.names import readable_names
from hockney.report.notes import one_launch
from hockney.results.runs import Run


def _impact_json(impact: Impact) -> dict[str, Any]:
    factor = impact.factor
    return {**vars(impact), "factor": factor.value, "low": factor.low, "high": factor.high}


def _impacts(impacts: Impacts, run: Run) -> Iterator[Block]:
    names = readable_names(run.launches.values())
    table = impact_table(impacts, lambda transport: names.get(transport, transport))
    notes = (f"{table.notes[0]} By machine state: {typed('show', run.id, '--states')}.",)
    yield replace(table, title=f"Impact of {background_text(run)}", notes=notes, bold="impact")
    if any(impact.factor.low is None for impact in impacts.impacts):
        yield Text(f"–: too few rounds for an interval. {fix_text(resume(run.id, run.info))}.", tone="quiet")
    yield from one_launch(impact.interval_over for impact in impacts.impacts if impact.factor.low is not None)


KIND = TableKind(
    impacts_of,
    lambda impacts, run, *_: _impacts(impacts, run),
    lambda of: {"background": of.background, "impacts": list(map(_impact_json, of.impacts))},
)
