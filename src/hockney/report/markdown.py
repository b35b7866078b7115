"""A run as Markdown, for issue trackers: verdict, findings, tables, predictions, and caveats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hockney.analysis.health import health_of
from hockney.analysis.health.matrices import SUITE
from hockney.errors import Fix
from hockney.report.hosts import HOSTS_MAX, host_tables
from hockney.report.html import material_of
from hockney.report.html.findings import FixItem, findings_of
from hockney.report.html.load import load_table
from hockney.report.html.material import Material
from hockney.report.html.predictions import predictions_of
from hockney.report.html.summary import summary_of
from hockney.report.html.tables import Cell, sheet_table
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
        yield f"- {_plain(text)}{_fix(fix)}"
    for item in findings.items[:_FINDINGS_MAX]:
        about = f"{_plain(item.about)}: " if item.about else ""
        also = f" Also on {_plain(', '.join(item.also))}." if item.also else ""
        texts = " ".join(filter(None, map(_plain, (item.evidence, item.cause))))
        kind = "Problem" if item.is_problem else "Note"
        yield f"- {kind}: **{about}{_plain(item.title)}.** {texts}{also}{_fix(item.fix)}".rstrip()
    if len(findings.items) > _FINDINGS_MAX:
        yield f"- and {len(findings.items) - _FINDINGS_MAX} more"
    sheet = sheet_table(material)
    if sheet is not None:
        yield from ("", "## Data sheet", "", f"| transport | {' | '.join(map(_plain, sheet.columns))} |")
        yield "| --- |" + " ---: |" * len(sheet.columns)
        for name, _, cells in sheet.rows:
            yield f"| {_plain(name)} | {' | '.join(map(_cell, cells))} |"
        yield from ("", _plain(sheet.notes[0]))
    yield from _matrices(material.run)
    load = load_table(material)
    if load is not None:
        yield from ("", "## Under load", "", _plain(load.where), "", f"| {' | '.join(load.columns)} |")
        yield "| --- |" + " ---: |" * (len(load.columns) - 1)
        yield from (f"| {' | '.join(map(_cell, row))} |" for row in load.rows)
        yield from ("", _plain(load.note))
    predictions = predictions_of(material)
    if predictions is not None:
        yield from ("", "## Measured against predicted", "")
        if predictions.why:
            yield _plain(predictions.why)
        else:
            yield f"| {' | '.join(predictions.columns)} |"
            yield "| --- |" + " ---: |" * (len(predictions.columns) - 1)
        yield from (f"| {' | '.join(map(_plain, row))} |" for row in predictions.rows)
    if material.run.warnings:
        yield from ("", "## Limits of these figures", "")
        yield from (f"- {_plain(str(warning))}" for warning in material.run.warnings)


def _matrices(run: Run) -> Iterable[str]:
    """Those of `hockney health`, as on its screen."""
    found = health_of(run) if run.info.suite == SUITE else None
    for table in host_tables(found) if found and len(found.matrices.hosts) <= HOSTS_MAX else ():
        yield from ("", f"## {_plain(table.title)}", "", f"| {' | '.join(map(_plain, table.columns))} |")
        yield "| --- |" + " ---: |" * (len(table.columns) - 1)
        yield from (f"| {' | '.join(map(_plain, row))} |" for row in table.rows)


def _cell(cell: Cell) -> str:
    return _plain(f"{cell.text} {cell.spread}".rstrip())


def _fix(fix: FixItem | None) -> str:
    if fix is None:
        return ""
    ticks = "`" * (1 + max(map(len, re.findall("`+", fix.command)), default=0))
    return f" Fix: {_plain(fix.text)}" + (f": {ticks} {printable(fix.command)} {ticks}" if fix.command else ".")


def _plain(text: str) -> str:
    """The text with escaped markup, and without mentions of users (`@name`)."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    escaped = re.sub(r"(?<!\w)@", "&#64;", escaped)
    return _MARKS.sub(r"\\\1", printable(escaped))
