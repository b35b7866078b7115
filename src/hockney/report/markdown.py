"""A run as Markdown, for issue trackers: verdict, findings, tables, predictions, and caveats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from hockney.analysis.health import health_of
from hockney.analysis.health.matrices import SUITE
from hockney.errors import Fix
from hockney.report.findings import fix_sentence
from hockney.report.page.findings import findings_of
from hockney.report.page.material import Material, material_of
from hockney.report.page.predictions import predictions_of
from hockney.report.page.summary import summary_of
from hockney.report.page.tables import load_table, sheet_table
from hockney.report.pairs import HOSTS_MAX, host_values, pair_table
from hockney.report.table import TextTable
from hockney.results.runs import Results, Run
from hockney.units import printable

_FINDINGS_MAX = 10
_MARKS = re.compile(r"([\\`*_\[\]|#~])")


def markdown_report(results: Results, run: Run, command_line: Callable[[Fix], str]) -> str:
    """The text of a run; nothing from outside is more than text in it. `command_line` as for html_report."""
    return "\n".join(_lines(material_of(results, run, (), command_line))) + "\n"


def _lines(material: Material) -> Iterable[str]:
    summary = summary_of(material)
    yield f"# {_plain(summary.machine)}"
    yield ""
    yield _plain(f"{summary.host}, {summary.date}; {'; '.join(f'{word}: {text}' for word, text in summary.facts)}")
    for sentence in summary.verdict:
        yield from ("", _plain(sentence))
    findings = findings_of(material, ())
    if findings.items:
        yield from ("", "## Findings", "")
    for text, fix in findings.notes:
        yield f"- {_plain(text)}{_fix(material, fix)}"
    for item in findings.items[:_FINDINGS_MAX]:
        about = f"{_plain(item.about)}: " if item.about else ""
        also = f" Also on {_plain(', '.join(item.also))}." if item.also else ""
        texts = " ".join(filter(None, map(_plain, (item.evidence, item.cause))))
        kind = "Problem" if item.is_problem else "Note"
        yield f"- {kind}: **{about}{_plain(item.title)}.** {texts}{also}{_fix(material, item.fix)}".rstrip()
    if len(findings.items) > _FINDINGS_MAX:
        yield f"- and {len(findings.items) - _FINDINGS_MAX} more"
    sheet = sheet_table(material)
    if sheet is not None:
        yield from _table(replace(sheet, notes=sheet.notes[:1]))
    health = health_of(material.run) if material.run.info.suite == SUITE else None
    for matrix in host_values(health) if health and len(health.matrices.hosts) <= HOSTS_MAX else ():
        yield from _table(pair_table(matrix))
    for table in filter(None, (material.rates, load_table(material))):
        yield from _table(table)
    predictions = predictions_of(material)
    if predictions is not None and predictions.table:
        yield from _table(predictions.table)
    elif predictions is not None:
        yield from ("", "## Measured against predicted", "", _plain(predictions.why))
    if material.run.warnings:
        yield from ("", "## Limits of these figures", "")
        yield from (f"- {_plain(str(warning))}" for warning in material.run.warnings)


def _table(table: TextTable) -> Iterable[str]:
    yield from ("", f"## {_plain(table.title)}", "")
    if table.lead:
        yield from (_plain(table.lead), "")
    yield f"| {' | '.join(map(_plain, table.columns))} |"
    yield "| --- |" + " ---: |" * (len(table.columns) - 1)
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in table.texts)
    for note in table.notes:
        yield from ("", _plain(note))


def _fix(material: Material, fix: Fix | None) -> str:
    if fix is None:
        return ""
    command = printable(material.command_line(fix))
    ticks = "`" * (1 + max(map(len, re.findall("`+", command)), default=0))
    return f" Fix: {_plain(fix_sentence(fix))}" + (f": {ticks} {command} {ticks}" if command else ".")


def _plain(text: str) -> str:
    """The text with escaped markup, and without mentions of users (`@name`)."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    escaped = re.sub(r"(?<!\w)@", "&#64;", escaped)
    return _MARKS.sub(r"\\\1", printable(escaped))
