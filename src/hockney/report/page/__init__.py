"""The sections of the HTML report as plain values; render/html puts them on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.machine.files import read_toml
from hockney.report.charts import chart_json, matrix_json, plain
from hockney.report.classic import make_report
from hockney.report.documents.classic import classic_document
from hockney.report.page.charts import charts_of, curve_charts, matrices_of
from hockney.report.page.choices import choices_of, strips_of
from hockney.report.page.comparisons import comparisons_of
from hockney.report.page.curves import curves_json, fits_json
from hockney.report.page.findings import findings_of
from hockney.report.page.material import Material, material_of
from hockney.report.page.predictions import predictions_of
from hockney.report.page.reports import report_charts
from hockney.report.page.summary import summary_of
from hockney.report.page.tables import environment_of, sections_of
from hockney.results.runs import Results, Run
from hockney.results.traits import pattern_traits


@dataclass(frozen=True)
class ReportPage:
    """The figures that are embedded as JSON, the sections, and the number of each transport in the list of colours."""

    data: Mapping[str, Any]
    sections: Mapping[str, Any]
    color_of: Mapping[str, int]


def page_of(results: Results, run: Run, others: Sequence[Run]) -> ReportPage:
    """The page of a run, compared with others."""
    material = material_of(results, run, others)
    transports = list(material.color_of)
    charts = charts_of(material)
    comparisons, changes = comparisons_of(material)
    matrices = matrices_of(material)
    sections = sections_of(material)
    known = [*(chart.id for chart in charts), *["matrix"] * bool(matrices), *sections]
    figures = report_charts()
    predictions = predictions_of(material)
    checked = [predictions.chart] if predictions and predictions.chart else []
    patterns, words = _definitions(material), read_toml(Path(__file__).with_name("definitions.toml"))["word"]
    data: dict[str, Any] = {
        "format": "hockney-report",
        "version": 1,
        "transports": [{"id": transport, "name": material.name_of(transport)} for transport in transports],
        "runs": [{"id": each.id, "name": material.run_names[each.id]} for each in material.runs],
        "strips": [
            {
                "name": strip.name,
                "spans": [
                    [plain(first), plain(last), [*map(transports.index, best)], text]
                    for first, last, best, text in strip.spans
                ],
            }
            for strip in strips_of(material)
        ],
        "curves": curves_json(material.curves, transports),
        **fits_json(material.explanation, run.id, transports),
        "matrices": list(map(matrix_json, matrices)),
        "charts": {chart.id: chart_json(chart) for chart in (*charts, *checked, *changes, *figures)},
        "definitions": patterns,
    }
    return ReportPage(
        data,
        {
            "summary": summary_of(material),
            "choices": choices_of(material),
            "hero": next(curve_charts(material), None),
            "findings": findings_of(material, known),
            "tables": sections,
            "has_curves": any(curve.is_drawn for curve in material.curves),
            "charts": {chart.id: chart for chart in charts},
            "matrices": matrices,
            "comparisons": comparisons,
            "changes": changes,
            "predictions": predictions,
            "reports": figures,
            "classic": [
                (report, list(classic_document(report, everything=True)))
                for report in filter(None, map(make_report, material.runs))
            ],
            "environment": environment_of(material),
            "definitions": patterns,
            "words": {word: text for word, text in words.items() if word not in patterns},
        },
        material.color_of,
    )


def _definitions(material: Material) -> dict[str, str]:
    """The summaries of the patterns that have curves, as the runs hold them; imports hold none."""
    facts = {run.id: run.facts for run in material.runs}
    known: dict[str, str] = {}
    for name, run in dict.fromkeys((curve.pattern.partition(" ")[0], curve.run) for curve in material.curves):
        text = pattern_traits(facts[run], name).summary
        known |= {name: f"{text[0].upper()}{text[1:]}."} if text else {}
    return known
