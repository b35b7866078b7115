"""The stored runs as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hockney.report.commands import typed
from hockney.report.document import Block, Column, Sentence, records
from hockney.results.store import RunSummary, accepted_of
from hockney.units import counted, format_duration_s, local_time, printable

_COLUMNS: dict[Column, Callable[[RunSummary], str]] = {
    Column("run", right=True, tone="strong"): lambda run: str(run.id),
    Column("label"): lambda run: run.label or "",
    Column("suite"): lambda run: run.suite,
    Column("started"): lambda run: local_time(run.started_unix_s),
    Column("status"): lambda run: run.ending + (f": {verdict_text(**run.verdict)}" if run.verdict else ""),
    Column("points", right=True): lambda run: f"{run.measured}/{run.planned}",
    Column("measured", right=True): lambda run: (
        format_duration_s(run.measured_least_s) + " or more" * (run.measured_s is None)
    ),
    Column("transports", wrap=True, optional=True): lambda run: " ".join(run.transports),
}


def runs_document(stored: Sequence[RunSummary], left_out: int = 0) -> Iterator[Block]:
    """A row for each run, and how many of other commands are left out."""
    if stored:
        yield records(_COLUMNS, stored, fits=True)
        accepted = accepted_of(stored)
        if accepted is not None:
            yield Sentence(accepted_sentence(accepted))
    elif not left_out:
        yield Sentence(f"There are no runs yet: {typed('quick')} makes one.")
    if left_out:
        yield Sentence(f"Not listed: {counted(left_out, 'run')} of tune and bisect; all: {typed('runs', '--all')}")


def verdict_text(findings: int, *, is_clear: bool) -> str:
    """The result of a health run: `2 findings`, `no fault found`, or `inconclusive`."""
    return counted(findings, "finding") if findings else "no fault found" if is_clear else "inconclusive"


def accepted_sentence(run: RunSummary) -> str:
    """`run 7 (nightly) is the baseline: accepted by ana, 2026-11-28 14:03, in place of run 3`."""
    accepted = run.accepted or {}
    label = f" ({run.label})" if run.label else ""
    replaced = f", in place of run {accepted['replaces']}" if accepted["replaces"] else ""
    when = local_time(accepted["at_unix_s"])
    return f"run {run.id}{label} is the baseline: accepted by {printable(accepted['by'])}, {when}{replaced}"


def no_baseline() -> str:
    """What to do where no run was accepted."""
    return f"no run is accepted as the baseline: {typed('baseline', 'accept', 'last')} accepts the newest"
