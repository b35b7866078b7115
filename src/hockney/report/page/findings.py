"""Findings as the page shows them: what `explain` says, each with the chart that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.finding import Finding
from hockney.report.document import Item, Section
from hockney.report.documents.findings import FindingTexts, finding_texts, gap_line
from hockney.report.findings import grouped, note_text
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

    texts: FindingTexts
    is_problem: bool
    chart: str
    shows: dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """All that `explain` finds; `notes` limit it, `gaps` are the checks that were not made."""

    items: tuple[FindingItem, ...] = ()
    notes: tuple[str, ...] = ()
    gaps: Section | None = None


def findings_of(material: Material, charts: Iterable[str]) -> Findings:
    """The findings of the first run; `charts` are those of the page."""
    explanation, known = material.explanation, set(charts)
    if explanation is None:
        return Findings()
    items = []
    for group in grouped(explanation.findings):
        texts = finding_texts(group, lambda each: material.name_of(each.subject.transport))
        shown = _evidence_chart(material, group[0], [each.subject.transport for each in group], known)
        items.append(FindingItem(texts, group[0].is_problem, *shown))
    notes = tuple(note_text(note) + fixed(note.fix) for note in explanation.notes if note.code != "warned")
    gaps = tuple(map(Item, map(gap_line, explanation.not_checked)))
    return Findings(tuple(items), notes, Section("Not checked", gaps) if gaps else None)


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
