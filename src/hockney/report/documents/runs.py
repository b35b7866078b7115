"""The stored runs as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hockney.report.commands import typed
from hockney.report.document import Block, Column, Sentence, records
from hockney.results.store import RunSummary
from hockney.units import format_duration_s, local_time

_COLUMNS: dict[Column, Callable[[RunSummary], str]] = {
    Column("run", right=True, tone="strong"): lambda run: str(run.id),
    Column("label"): lambda run: run.label or "",
    Column("suite"): lambda run: run.suite,
    Column("started"): lambda run: local_time(run.started_unix_s),
    Column("status"): lambda run: run.ending,
    Column("points", right=True): lambda run: f"{run.measured}/{run.planned}",
    Column("measured", right=True): lambda run: (
        format_duration_s(run.measured_least_s) + " or more" * (run.measured_s is None)
    ),
    Column("transports", wrap=True, optional=True): lambda run: " ".join(run.transports),
}


def runs_document(stored: Sequence[RunSummary]) -> Iterator[Block]:
    """A row for each run."""
    if stored:
        yield records(_COLUMNS, stored, fits=True)
    else:
        yield Sentence(f"There are no runs yet: {typed('quick')} makes one.")
