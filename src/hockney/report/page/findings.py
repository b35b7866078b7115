"""Findings in the page's form: title, evidence, likely cause, fix, and the chart that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.finding import Finding
from hockney.report.document import Block, Bullet
from hockney.report.documents.findings import gap_line
from hockney.report.findings import cause_of, evidence_of, fix_sentence, grouped, note_text, others_of, title_of
from hockney.report.notes import fixed
from hockney.report.page.material import Material

_CHARTS = {  # that show a finding best, by its code
    "slow rank or pair": "matrix",
    "slow group": "matrix",
    "impact": "load",
    "broken scaling law": "ranks",
    "outliers": "distribution",
    "far above the floor": "layers",
}


@dataclass(frozen=True)
class FindingItem:
    """A finding, once for all transports that have it. `shows` holds the settings of the chart of its evidence."""

    title: str
    about: str
    also: tuple[str, ...]
    evidence: str
    cause: str
    fix: str
    command: str
    is_problem: bool
    chart: str
    shows: dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """All that `explain` finds; `notes` limit it, `gaps` are the checks that were not made."""

    items: tuple[FindingItem, ...]
    notes: tuple[str, ...]
    gaps: tuple[Block, ...]


def findings_of(material: Material, charts: Iterable[str]) -> Findings:
    """The findings of the first run; `charts` are those of the page."""
    explanation, known = material.explanation, set(charts)
    if explanation is None:
        return Findings((), (), ())
    return Findings(
        tuple(_item(material, group, known) for group in grouped(explanation.findings)),
        tuple(note_text(note) + fixed(note.fix) for note in explanation.notes if note.code != "warned"),
        tuple(map(Bullet, map(gap_line, explanation.not_checked))),
    )


def _item(material: Material, group: Sequence[Finding], charts: set[str]) -> FindingItem:
    finding = group[0]
    command = material.command_line(finding.fix) if finding.fix else ""
    chart, shows = _evidence_chart(material, finding, [each.subject.transport for each in group], charts)
    return FindingItem(
        title=title_of(finding),
        about=material.name_of(finding.subject.transport),
        also=tuple(others_of(group, lambda each: material.name_of(each.subject.transport))),
        evidence=evidence_of(finding),
        cause=cause_of(finding),
        fix=f"{fix_sentence(finding.fix)}{':' if command else '.'}" if finding.fix else "",
        command=command,
        is_problem=finding.is_problem,
        chart=chart,
        shows=shows,
    )


def _evidence_chart(
    material: Material, finding: Finding, transports: Sequence[str], charts: set[str]
) -> tuple[str, dict[str, Any]]:
    """The chart that shows it, and the settings of that chart; "" without one."""
    about, chart = finding.subject, _CHARTS.get(finding.code)
    if chart in charts:
        return chart, {}
    if (about.pattern, about.ranks) in {(curve.pattern, curve.ranks) for curve in material.curves if curve.is_drawn}:
        shown = [transport for transport in transports if transport]
        return "curves", {"pattern": about.pattern, "ranks": about.ranks, "transports": shown}
    return ("sheet", {}) if about.pattern == "barrier" and material.sheet is not None else ("", {})
