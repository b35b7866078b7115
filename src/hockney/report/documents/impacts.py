"""Times of a run idle and under a background of other traffic, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hockney.analysis.impact import Impact, Impacts, impacts_of
from hockney.analysis.repeat import resume
from hockney.report.commands import fix_text, typed
from hockney.report.document import Block, Cell, Column, Sentence, Table, Text, Title, records
from hockney.report.documents.tables import TableKind
from hockney.report.notes import one_launch
from hockney.report.words import cpus_text, hosts_text, known_text, ratio_text, readable_names, size_text
from hockney.results.runs import Run
from hockney.units import counted, format_ns

_NOTE = (
    "Impact: loaded over idle time in the same round, with its 95 % interval. p50 is the median over all rounds, so "
    "loaded over idle may differ from the impact."
)


def background_text(run: Run) -> str:
    """`incast by 3 ranks on n3, n4, n5`: the background of a run that has one."""
    background = run.info.plan["background"]
    hosts, cpus = background["hosts"], background["cpus"]
    where = hosts_text(hosts) if hosts else cpus_text(cpus) if cpus else ""
    return f"{background['name']} by {counted(background['ranks'], 'rank')}{f' on {where}' if where else ''}"


def impact_blocks(impacts: Impacts, name_of: Callable[[str], str]) -> tuple[Table, Text]:
    """A row for each point, without the columns of which nothing is known, and a note; `name_of` a transport."""
    columns: dict[Column, Callable[[Impact], str]] = {
        Column("what", key=True, wrap=True): lambda impact: impact.point.text(name_of(impact.point.transport)),
        Column("size", right=True, key=True): lambda impact: size_text(impact.point),
        Column("impact", right=True, tone="strong"): _factor,
        Column("idle p50", right=True): lambda impact: known_text(impact.idle.p50_ns, format_ns),
        Column("loaded p50", right=True): lambda impact: known_text(impact.loaded.p50_ns, format_ns),
        Column("idle p99", right=True): lambda impact: known_text(impact.idle.p99_ns, format_ns),
        Column("loaded p99", right=True): lambda impact: known_text(impact.loaded.p99_ns, format_ns),
        Column("idle p99.9", right=True): lambda impact: known_text(impact.idle.p999_ns, format_ns),
        Column("loaded p99.9", right=True): lambda impact: known_text(impact.loaded.p999_ns, format_ns),
    }
    table = records(columns, impacts.impacts, fits=True)
    has_gaps = not all(cell for row in table.rows for cell in row)
    return table, Text(_NOTE + " Empty: too few samples, or several repetitions in each." * has_gaps)


def _factor(impact: Impact) -> Cell:
    """`3.02x` and its interval, `(2.95 to 3.10)`, or `–` where there is none."""
    factor = impact.factor
    known = factor.estimate
    spread = f"({ratio_text(known.low)} to {ratio_text(known.high)})" if known else "–"
    return Cell(f"{ratio_text(factor.value)}x", spread)


def _impact_json(impact: Impact) -> dict[str, Any]:
    factor = impact.factor
    return {**vars(impact), "factor": factor.value, "low": factor.low, "high": factor.high}


def _impacts(impacts: Impacts, run: Run) -> Iterator[Block]:
    names = readable_names(run.launches.values())
    table, note = impact_blocks(impacts, lambda transport: names.get(transport, transport))
    yield Title(f"Impact of {background_text(run)}")
    yield from (table, Sentence(), Text(f"{note.text} By machine state: {typed('show', run.id, '--states')}."))
    if any(impact.factor.low is None for impact in impacts.impacts):
        yield Text(f"–: too few rounds for an interval. {fix_text(resume(run.id, run.info))}.", tone="quiet")
    yield from one_launch(impact.interval_over for impact in impacts.impacts if impact.factor.low is not None)


KIND = TableKind(
    impacts_of,
    lambda impacts, run, *_: _impacts(impacts, run),
    lambda of: {"background": of.background, "impacts": list(map(_impact_json, of.impacts))},
)
