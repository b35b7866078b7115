"""The HTML report: one self-contained file, which opens from disk and asks no network for anything.

Each section has a file here that makes plain values. page.html.jinja puts them on the page; page.css and the scripts
are inlined, and the figures are embedded once, as JSON. docs/architecture.md says where to add a section.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hockney.analysis.explain import explain_run
from hockney.analysis.explain.read import read_run
from hockney.analysis.health.matrices import SUITE
from hockney.errors import Fix, HockneyError
from hockney.report.html import definitions, layers, machines, ranks, samples
from hockney.report.html.charts import Chart, chart_json
from hockney.report.html.classic import classic_items
from hockney.report.html.comparisons import comparisons_of
from hockney.report.html.curves import curves_json, curves_of, fits_json
from hockney.report.html.findings import findings_of
from hockney.report.html.history import history_chart
from hockney.report.html.load import load_table
from hockney.report.html.material import Material
from hockney.report.html.page import rendered
from hockney.report.html.pairs import matrices_of, matrix_item, matrix_json, of_hosts
from hockney.report.html.predictions import predictions_of
from hockney.report.html.reports import report_charts
from hockney.report.html.summary import summary_of
from hockney.report.html.tables import environment_of, sheet_table
from hockney.report.names import readable_names
from hockney.report.sheet import make_sheet
from hockney.results.runs import Results, Run
from hockney.results.traits import pattern_traits


def html_report(results: Results, run: Run, others: Sequence[Run], command_line: Callable[[Fix], str]) -> str:
    """The page of a run, compared with others; `command_line` writes a fix as a shell command."""
    material = material_of(results, run, others, command_line)
    transports = list(dict.fromkeys(curve.transport for curve in material.curves))
    charts = charts_of(material)
    comparisons, changes = comparisons_of(material)
    if run.info.suite == SUITE:
        matrices = of_hosts(run)
    else:
        items = ((matrix, matrix_item(material, matrix)) for matrix in matrices_of(material))
        matrices = [(item, matrix_json(matrix, item.name)) for matrix, item in items]
    has_curves = any(curve.is_drawn for curve in material.curves)
    known_patterns = _definitions(material)
    load = load_table(material)
    known = [*(chart.id for chart in charts), *["matrix"] * bool(matrices), *["load"] * (load is not None)]
    figures = report_charts()
    predictions = predictions_of(material)
    checked = [predictions.chart] if predictions and predictions.chart else []
    data: dict[str, Any] = {
        "format": "hockney-report",
        "version": 1,
        "transports": [{"id": transport, "name": material.name_of(transport)} for transport in transports],
        "runs": [{"id": each.id, "label": each.label} for each in material.runs],
        "curves": curves_json(material.curves, transports),
        **fits_json(material.explanation, run.id, transports),
        "matrices": [matrix for _, matrix in matrices],
        "charts": {chart.id: chart_json(chart) for chart in (*charts, *checked, *changes, *figures)},
        "definitions": known_patterns,
    }
    return rendered(
        data,
        {
            "summary": summary_of(material),
            "findings": findings_of(material, known),
            "sheet": sheet_table(material),
            "load": load,
            "has_curves": has_curves,
            "charts": {chart.id: chart for chart in charts},
            "pairs": [item for item, _ in matrices],
            "comparisons": comparisons,
            "changes": changes,
            "predictions": predictions,
            "reports": figures,
            "classic": classic_items(material),
            "environment": environment_of(material),
            "definitions": known_patterns,
            "words": definitions.words(),
        },
    )


def material_of(results: Results, run: Run, others: Sequence[Run], command_line: Callable[[Fix], str]) -> Material:
    """The runs, read once."""
    try:
        reading = read_run(run)
    except HockneyError:  # no figure has an interval
        reading = None
    runs = (run, *others)
    return Material(
        results=results,
        run=run,
        others=tuple(others),
        sheet=make_sheet(run) if run.info.suite == "quick" else None,
        reading=reading,
        explanation=explain_run(run, reading) if reading is not None or run.info.suite == SUITE else None,
        curves=[curve for each in runs for curve in curves_of(each)],
        names=readable_names(launch for each in runs for launch in each.launches.values()),
        command_line=command_line,
    )


def charts_of(material: Material) -> list[Chart]:
    """The charts that have a section each."""
    made = (
        samples.distribution_chart(material),
        layers.layers_chart(material),
        samples.cpu_chart(material),
        ranks.ranks_chart(material),
        history_chart(material),
        machines.machines_chart(material),
    )
    return [chart for chart in made if chart is not None]


def _definitions(material: Material) -> dict[str, str]:
    """The summaries of the patterns that have curves, as the runs hold them; those of earlier versions hold none."""
    facts = {run.id: run.facts for run in material.runs}
    known: dict[str, str] = {}
    for name, run in dict.fromkeys((curve.pattern.partition(" ")[0], curve.run) for curve in material.curves):
        text = pattern_traits(facts[run], name).summary
        known |= {name: f"{text[0].upper()}{text[1:]}."} if text else {}
    return known
