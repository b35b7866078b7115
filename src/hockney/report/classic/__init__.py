"""The tables of the classic reports: their rows and units, with published figures and those of this machine.

The TOML files say which point belongs to which row; what else a report computes is code, one file per report.
cli/classic.py shows the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hockney.archive import reports
from hockney.report.classic import ancor, paragon, scabench, t3d
from hockney.report.classic.conclusions import ClassicReport, judged
from hockney.report.classic.configuration import atlas_configuration, scabench_descriptions
from hockney.report.classic.layout import defaults, layouts, make_table
from hockney.report.classic.reading import Reading
from hockney.report.classic.values import Table
from hockney.results.runs import Run


def _grids(reading: Reading, report: str) -> list[Table]:
    return [make_table(layout, report, reading) for layout in layouts(report)]


def _atlas(reading: Reading) -> list[Table]:
    return [atlas_configuration(reading.run), *_grids(reading, "atlas")]


def _scabench(reading: Reading) -> list[Table]:
    grids = _grids(reading, "scabench")
    return [*grids, scabench.npb_table(reading), *scabench_descriptions(reading.run)]


def _t3d(reading: Reading) -> list[Table]:
    return [*t3d.pair_tables(reading), *t3d.distance_tables(reading), *t3d.load_tables(reading)]


_MAKERS: Mapping[str, Callable[[Reading], list[Table]]] = {
    "atlas": _atlas,
    "scabench": _scabench,
    "t3d": _t3d,
    "ancor": lambda reading: [*_grids(reading, "ancor"), *ancor.tables(reading)],
    "paragon": lambda reading: [*paragon.tables(reading), *_grids(reading, "paragon")],
}


def classic_names() -> tuple[str, ...]:
    """The suites whose runs have tables."""
    return tuple(_MAKERS)


def make_report(run: Run) -> ClassicReport | None:
    """The tables of a run of a classic suite; None for a run of anything else."""
    maker = _MAKERS.get(run.info.suite)
    if maker is None:
        return None
    reading = Reading(run, defaults(run.info.suite))
    tables = tuple(maker(reading))
    one_host = not any(reading.between_hosts(series) for series in run.series)
    page_bytes = run.facts.get("memory", {}).get("page_bytes")
    found = judged(run.info.suite, tables, one_host=one_host, page_bytes=page_bytes)
    return ClassicReport(run.id, reports()[run.info.suite], tables, found)
