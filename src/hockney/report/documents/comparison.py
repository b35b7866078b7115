"""A comparison as a document and as JSON; the notes below its series are those of `check`, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hockney.analysis.compare import Comparison, Range, ReasonCode, SeriesChange, Verdict
from hockney.report import changes
from hockney.report.commands import command_line, fix_text, typed
from hockney.report.document import Block, Column, Sentence, Table
from hockney.report.notes import SHORT_NOTE
from hockney.stats import CONFIDENCE
from hockney.units import counted

NOTES_MAX = 3  # on a screen


def notes(comparison: Comparison, *, everything: bool = False, more: str = "--json") -> list[str]:
    """Notes for the reader besides the series, the most important first; the option `more` has those left out."""

    def first(items: list[str], limit: int, joint: str) -> str:
        shown = items if everything else items[:limit]
        return joint.join(shown) + (f" ({len(items) - len(shown)} more: {more})" if len(shown) < len(items) else "")

    differences, loads = changes.differences_texts(comparison), changes.load_sentences(comparison)
    lines = [f"changed: {first(differences, 3, '; ')}"] if differences else []
    lines += [f"Fix: {fix_text(fix)}" for fix in comparison.fixes]
    lines += [first(loads, 1, " ")] if loads else []
    warning = caution(comparison)
    lines += [warning] if warning else []
    for run, points in ((comparison.base, comparison.only_base), (comparison.new, comparison.only_new)):
        lines += [changes.only_in_sentence(run, points)] if points else []
    listed = (change for change in comparison.changes if everything or not change.has(ReasonCode.NO_COMMON_STATE))
    return [*lines, SHORT_NOTE] if any(change.is_short for change in listed) else lines


def caution(comparison: Comparison) -> str | None:
    """A warning that drift of the machine may explain the changes; None if that is unlikely."""
    if comparison.interleaved or not (comparison.has_no_cause or comparison.drifting):
        return None
    sleeping = ", ".join(comparison.drifting)
    why = "No known cause" if comparison.has_no_cause else f"Ranks sleep while they wait on {sleeping}"
    is_measured = not any(info.is_imported for info in comparison.infos)  # hockney cannot measure an import again
    confirm = f" To confirm, measure with --interleave ({typed('compare', '--help')})." if is_measured else ""
    return f"{why}: it may be drift.{confirm}"


def comparison_document(comparison: Comparison, *, everything: bool) -> Iterator[Block]:
    """The series of `compare`, as ranges of sizes, and notes; `everything`: all of both, each in full."""
    columns: list[Column | str] = [
        Column("series", wrap=True, key=True),
        Column("base", right=True, optional=True),
        Column("new", right=True, optional=True),
        Column("change" if comparison.has_no_verdict else "change (95 % CI)", wrap=True),
        "verdict",
    ]
    names = changes.names_of(comparison)
    ranges = [each for each in comparison.ranges if everything or not each.first.has(ReasonCode.NO_COMMON_STATE)]
    rows = [changes.row(alike, comparison, names) for alike in ranges]
    yield Table(columns, rows, narrow=changes.narrow_rows(ranges, comparison, names))
    said = [changes.footer(comparison)] if ranges else []
    below = [note for note in notes(comparison, everything=everything, more="--all") if ranges or note != SHORT_NOTE]
    if everything:
        others = [alike for alike in ranges if alike.verdict is not Verdict.SAME]
        said += below + changes.range_sentences(others, comparison)
    else:
        nothing = changes.nothing_sentence(comparison)
        said += [nothing or "", *changes.states_sentence(comparison), *below[:NOTES_MAX]]
    hidden = 0 if everything else len(below[NOTES_MAX:])
    launches = "{} and {} launches".format(*comparison.launches)
    summary = f"run {comparison.base} -> run {comparison.new}, {launches}"
    if everything or not nothing:
        summary = f"{changes.counts_text(comparison)}; {summary}"
    said.append(summary + (f"; {counted(hidden, 'more note')}: --all" if hidden else ""))
    yield from map(Sentence, filter(None, said))


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """All that a comparison says; `sentence` is for people."""
    return {
        "base": comparison.base,
        "new": comparison.new,
        "launches": {"base": comparison.launches[0], "new": comparison.launches[1]},
        "interleaved": comparison.interleaved,
        "margin": comparison.margin,
        "differences": comparison.differences,
        "contention": comparison.contention,
        "counts": {verdict.value: count for verdict, count in comparison.counts.items()},
        "explained_by_chance": comparison.by_chance,
        "confidence": CONFIDENCE,
        "ranges": [_range_json(alike, comparison) for alike in comparison.ranges],
        "series": [_series_json(change) for change in comparison.changes],
        "only_base": comparison.only_base,
        "only_new": comparison.only_new,
        "remedies": [fix_text(fix) for fix in comparison.fixes],
        "commands": [command_line(fix) for fix in comparison.fixes if fix.argv],
        "drifting": comparison.drifting,
    }


def _range_json(alike: Range, comparison: Comparison) -> dict[str, Any]:
    point = alike.first.point
    return {
        "verdict": alike.verdict.value,
        "sentence": changes.range_sentence(alike, comparison),
        "transport": point.transport,
        "pattern": point.pattern,
        "ranks": point.ranks,
        "options": dict(point.options),
        "bytes": [change.point.bytes for change in alike.changes],
        "states": alike.states,
        "protocol": changes.protocol_text(alike),
        "reason": changes.reason_text(alike.first.reasons),
        "reason_codes": [reason.code.value for reason in alike.first.reasons],
    }


def _series_json(change: SeriesChange) -> dict[str, Any]:
    return {
        "point": change.point,
        "verdict": change.verdict.value,
        "reason": changes.reason_text(change.reasons),
        "reason_codes": [reason.code.value for reason in change.reasons],
        "states": Range((change,)).states,
        "base_ns": change.base_ns,
        "new_ns": change.new_ns,
        "short": change.is_short,
        "shift": change.shift,
        "chance": change.chance,
    }
