"""The data sheet as a document, and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from hockney.analysis.explain import explain_run
from hockney.analysis.finding import Finding, load_of
from hockney.analysis.repeat import further
from hockney.errors import HockneyError
from hockney.model import PointStatus, Warning_
from hockney.report.columns import OTHER_STATE, is_other, marks_text
from hockney.report.commands import typed
from hockney.report.document import Block, Bullet, Column, Document, Item, Sentence, Table, Text, Title
from hockney.report.documents.findings import finding_texts
from hockney.report.documents.plan import idle_hosts_text
from hockney.report.documents.tables import TableKind
from hockney.report.findings import grouped, layer_text
from hockney.report.notes import (
    SHORT_NOTE,
    Caveat,
    caveat_notes,
    fixed,
    launches_advice,
    of_warnings,
    padded,
    state_text,
)
from hockney.report.sheet import Failure, Row, Sheet, make_sheet
from hockney.report.words import NOTHING, SHORT_MARK, launches_text, machine_text, placement_text, whole_text
from hockney.results.runs import Run
from hockney.stats import ONE_LAUNCH, State
from hockney.units import counted, format_bytes, format_ns, format_rate, listed
from hockney.worker.libraries import Missing

_ROUGH = 0.3  # bounds that are wider
_ENDS = re.compile(r"^[\d.,]+ (\S+) \(([\d.,]+–[\d.,]+)\)")  # with the value, for which a narrow screen has no room
_LINES_MAX = 38  # of a screen of 100 columns; two are for the note of where the run was saved


def sheet_document(
    sheet: Sheet, run: Run, missing: Sequence[Missing] = (), findings: Sequence[Finding] = (), *, verbose: bool = False
) -> Document:
    """The figures, caveats, and findings as the screen has room, the strongest always; all if `verbose`."""
    blocks = _blocks(sheet, run, missing, findings, verbose=verbose)
    return Document(tuple(blocks), lines_max=None if verbose else _LINES_MAX)


def _blocks(
    sheet: Sheet, run: Run, missing: Sequence[Missing], findings: Sequence[Finding], *, verbose: bool
) -> Iterator[Block]:
    yield Title(machine_text(run.facts), end=run.name)
    busy = _busy(sheet)
    if busy is not None:
        what = f"This machine is busy. {busy.cause} Figures are rough."
        yield Text(what + (fixed(further(run)) or f" {busy.remedy}"), "caution")
    if sheet.rows:
        table = sheet_table(sheet)
        yield from (Sentence(), table, Sentence(), *map(Text, sheet_legend(sheet, run, table)))
    else:
        changed = "No figure yet: the machine changed during every measurement."
        yield Text(changed if sheet.states else "Nothing was measured.", "caution")
    if verbose:
        yield from _definitions(sheet, run)
    bullets = list(_findings(sheet, findings, verbose=verbose))
    yield from [Title("Findings"), *bullets] if bullets else []
    caveats = _caveats(sheet, missing, findings, verbose=verbose)
    notes, left = caveat_notes(caveats, verbose=verbose)
    yield from [Title("Caveats"), *notes] if notes else []
    if not verbose:
        more = (typed("explain", run.id), typed("show", run.id, "-v"))
        all_findings = f"All findings ({len(grouped(findings))}): {more[0]}. " if findings else ""
        others = f", {counted(left, 'more caveat')} and" if left else " and"
        yield Sentence()
        yield Text(f"{all_findings}Definitions{others} fixes: {more[1]}", "quiet")


def sheet_as_json(sheet: Sheet) -> dict[str, Any]:
    """For --json: the values of a row are next to its other keys."""
    document = asdict(sheet)
    for row in document["rows"]:
        row |= row.pop("values")
    return document


def _busy(sheet: Sheet) -> Warning_ | None:
    """The load that makes figures rough: where more than a tenth of them are."""
    rough = sum(value.is_range or value.relative > _ROUGH for value in sheet.values)
    return load_of(sheet.warnings) if rough > len(sheet.values) / 10 else None


def sheet_table(sheet: Sheet) -> Table:
    """A row for each transport, a part for each placement of the ranks; the best cells of a column are marked."""
    groups: dict[str, list[Row]] = {}
    for row in sheet.rows:
        groups.setdefault(row.placement, []).append(row)
    has_states = len(sheet.rows) > len({row.transport for row in sheet.rows})
    columns = [Column("", tone="strong", key=True)]
    if has_states:
        columns += [Column("state", key=True), Column("floor", right=True, key=True)]
    columns += [Column(column.title, right=True, definition=column.definition) for column in sheet.columns]
    best = {column.key: column.best([row.values[column.key] for row in sheet.rows]) for column in sheet.columns}
    rows: list[list[str] | str] = []
    for placement, members in groups.items():
        above = [placement[:1].upper() + placement[1:]] * bool(placement)
        rows += [*above, *([] if has_states else _reference(sheet, members))]
        for row in members:
            floor_ns = None if row.is_between_hosts else row.floor_ns
            state = [row.state, format_ns(floor_ns) if floor_ns else NOTHING] if has_states else []
            heads = [row.name + OTHER_STATE * (not has_states and _is_other(sheet, row)), *state]
            for key, column in ((column.key, column) for column in sheet.columns):
                value = row.values[key]
                heads.append(padded(*column.texts(value), row.marks(key), is_best=value in best[key]))
            rows.append(heads)
    narrow = [row if isinstance(row, str) else [_ENDS.sub(r"\2 \1", cell).strip() for cell in row] for row in rows]
    return Table(columns, rows, fits=True, narrow=narrow)


def _is_other(sheet: Sheet, row: Row) -> bool:
    """Whether a row is of another machine state than most."""
    return not row.is_between_hosts and row.state != sheet.state


def _reference(sheet: Sheet, rows: Sequence[Row]) -> list[list[str]]:
    """The row that others are compared with: a cache line, or between hosts the network itself."""
    network = sheet.network
    if rows[0].is_between_hosts and network is not None:
        latency = format_ns(network.latency_ns.value) if network.latency_ns else NOTHING
        rate = format_rate(network.bytes_per_s) if network.bytes_per_s else NOTHING
        return [["network", latency, rate]]
    floor_ns = next((row.floor_ns for row in rows if not _is_other(sheet, row)), None)
    return [["floor", format_ns(floor_ns)]] if floor_ns else []


def sheet_legend(sheet: Sheet, run: Run, table: Table, how: str = "--states") -> Iterable[str]:
    """The legend of the table, with only the marks that are in its cells; `how` lists other machine states."""
    cells = [cell for row in table.rows if not isinstance(row, str) for cell in row]
    overs = {value.over for value in sheet.values if value.has_interval}
    within = "; ± of one launch in places" if len(overs) > 1 and ONE_LAUNCH in overs else ""
    yield f"{placement_text(run) or 'Two ranks.'} Median with 95 % confidence interval, {launches_text(run)}{within}."
    idle = idle_hosts_text(run.info.plan, max(launch.ranks for launch in run.launches.values()))
    if idle:
        yield f"{idle}."
    advice = launches_advice(run, run.shown) if run.launch_count > 1 and _busy(sheet) is None else None
    if advice:
        yield advice
    counts: Counter[str] = Counter()
    for state in sheet.states:
        counts[state.name] += state.measurements
    if sheet.network is not None:
        yield (
            "network: half a round trip of 8 B through the fastest socket, "
            "and the speed of the slowest host's interface."
        )
        counts = Counter({name: count for name, count in counts.items() if not State(name, None).is_reference})
    if sheet.state is not None and sheet.state in counts:
        yield state_text(counts, sheet.state, how)
    others = {row.state: None for row in sheet.rows if _is_other(sheet, row)}
    values = [(row.state, value) for row in sheet.rows for value in row.values.values()]
    others |= {value.state: None for state, value in values if value and is_other(value, state)}
    text = "".join(cells)
    if OTHER_STATE in text:
        yield f"{OTHER_STATE}: in another machine state ({'; '.join(others)})."
    yield from filter(None, [marks_text(cells), SHORT_NOTE if SHORT_MARK in text else ""])


def _definitions(sheet: Sheet, run: Run) -> Iterator[Block]:
    yield Title("Columns")
    yield Item("half a round trip of one cache line between the two CPUs", head="floor")
    for column in sheet.columns:
        yield Item(column.definition, head=column.title)
    for row in sheet.rows:
        if row.fit_from_bytes is not None and row.fit_to_bytes is not None:
            sizes = f"{format_bytes(row.fit_from_bytes)} to {format_bytes(row.fit_to_bytes)}"
            yield Item(f"r_inf and n_1/2 are of {sizes}; {row.library}", head=f"{row.full_name} ({row.state})")
    if sheet.harness_ns is not None:
        cost = whole_text(sheet.harness_ns, format_ns, is_range=sheet.harness_ns.is_range)
        yield Item(f"{cost} per repetition", head="harness")
    if sheet.also_ready:
        count = counted(len(sheet.also_ready), "other transport")
        yield Item(f"{count}, listed by {typed('list', 'transports')}", head="also ready")


def _findings(sheet: Sheet, findings: Sequence[Finding], *, verbose: bool) -> Iterator[Block]:
    """The strongest finding of each kind, four at most, and the layers of transports; `verbose`: all."""
    rows = {row.transport: row for row in sheet.rows}

    def name_of(finding: Finding) -> str:
        transport = finding.subject.transport
        return rows[transport].full_name if transport in rows else transport

    groups = [[finding] for finding in findings]
    if not verbose:
        strongest: dict[str, list[Finding]] = {}
        for group in grouped(findings):
            strongest.setdefault(group[0].code, group)
        groups = list(strongest.values())[:4]
    texts = []
    for group in groups:
        of_group = finding_texts(group, name_of)
        text = of_group.head
        for part in filter(None, (of_group.cause, f"Fix: {of_group.fix}" * bool(of_group.fix))):
            # Two lines of a screen of 100 columns.
            text += f" {part}" if verbose or len(text) + len(part) < 190 else ""
        texts.append(text)
    layers: dict[int, list[str]] = {}  # by size
    for layer in sheet.layers:
        if layer.is_seen and layer.added_ns > 0 and (sheet.network or layer.state == (sheet.state or layer.state)):
            layers.setdefault(layer.bytes, []).append(layer_text(layer, lambda name: rows[name].full_name))
    texts += [f"At {format_bytes(size)}: {'; '.join(added)}." for size, added in layers.items()]
    return (Bullet(text, priority=number) for number, text in enumerate(texts))


def missing_text(missing: Sequence[Missing]) -> str:
    """The caveat that transports are not ready here."""
    return f"Not available: {listed([each.name for each in missing])} ({typed('list')} shows how to get them)"


def _caveats(sheet: Sheet, missing: Sequence[Missing], findings: Iterable[Finding], *, verbose: bool) -> list[Caveat]:
    """The caveats of the sheet; unless `verbose`, without warnings that are findings, too."""
    caveats = list[Caveat]()
    alike: dict[tuple[PointStatus, str], list[Failure]] = {}
    for failure in sheet.failures:
        alike.setdefault((failure.status, failure.reason), []).append(failure)
    for (status, reason), failures in alike.items():
        names = [failure.transport for failure in failures]
        some = ", ".join(names) if len(names) < 4 else f"{len(names)} transports"
        points = counted(sum(failure.points for failure in failures), "point")
        why = f"{points} {status.value}: {reason.removesuffix('.')}."
        caveats.append((f"{some}: {why}", f"{', '.join(names)}: {why}"))
    if missing and not verbose:
        caveats.append((missing_text(missing), missing_text(missing)))
    hidden = set() if verbose else {"load", "others", *("yield" for one in findings if one.code == "yielding library")}
    caveats += of_warnings([warning for warning in sheet.warnings if warning.kind not in hidden])
    load = None if verbose or _busy(sheet) else load_of(sheet.warnings)
    caveats += of_warnings([load] if load else [])
    if verbose:
        caveats += [(each.name, f"{each.name}: {each.why}; {each.how}") for each in missing]
    return caveats


def _sheet(sheet: Sheet, run: Run, missing: Sequence[Missing], verbose: bool) -> Document:
    findings: Sequence[Finding] = ()
    with suppress(HockneyError):  # no figure has an interval in one machine state
        findings = explain_run(run).findings
    return sheet_document(sheet, run, missing, findings, verbose=verbose)


KIND = TableKind(
    make_sheet, _sheet, sheet_as_json, in_every_state=lambda run: make_sheet(run, every_state=True), is_whole=True
)
