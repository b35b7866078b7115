"""The tables of the classic reports: their rows and units, with published figures and those of this machine.

The TOML files describe the tables; values that a report computes from its tables are code. cli/classic.py shows them.
"""

from __future__ import annotations

from hockney.archive import machines, reports
from hockney.report.classic.conclusions import ClassicReport, judged
from hockney.report.classic.configuration import configuration_tables
from hockney.report.classic.derived import distance_table, jumps_table, ratio_table
from hockney.report.classic.layout import contents, layouts, make_table
from hockney.report.classic.models import errors_table, model_tables, models_of
from hockney.report.classic.predicted import predicted_series
from hockney.report.classic.reading import RunReader
from hockney.results.runs import Run


def make_report(run: Run) -> ClassicReport | None:
    """The tables of a run of a classic suite; None for a run of anything else."""
    name = run.info.suite
    if name not in reports():
        return None
    of_pairs = (pattern for layout in layouts(name) if layout.places for pattern in layout.patterns)
    predicted = predicted_series(run, dict.fromkeys(of_pairs, contents(name).get("ranks", 0)))
    reader = RunReader(run, contents(name).get("defaults", {}), predicted)
    models = {series.point.transport: models_of(run).get(series.point.transport) for series in run.series}
    is_model = bool(models) and None not in models.values()
    rebuilt = {
        machine.report for model in filter(None, models.values()) if (machine := machines().get(model["machine"]))
    }
    rebuilds = is_model and rebuilt == {name}
    tables = [make_table(layout, reader) for layout in layouts(name)]
    if name == "t3d":
        tables.append(distance_table(reader))
    if name == "paragon":
        tables += [ratio_table(tables[0]), jumps_table(reader)]
    one_host = not any(reader.between_hosts(series) for series in run.series)
    page_bytes = run.facts.get("memory", {}).get("page_bytes")
    conclusions = judged(
        name, tables, one_host=one_host, page_bytes=None if is_model else page_bytes, rebuilds=rebuilds
    )
    heads = model_tables(filter(None, models.values())) if is_model else configuration_tables(name, run)
    tables = [*heads, *(table for table in tables if table.rows or not is_model), *errors_table(tables)]
    return ClassicReport(run.id, reports()[name], tuple(tables), conclusions)
