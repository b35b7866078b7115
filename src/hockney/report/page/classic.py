"""The page and the tables of a classic report, where a run of the page is of its suite."""

from __future__ import annotations

from hockney.report.classic import ClassicReport, make_report
from hockney.report.classic.screen import all_tables, first_page, footnotes
from hockney.report.page.material import Material
from hockney.report.table import TextTable


def classic_items(material: Material) -> list[tuple[ClassicReport, list[TextTable], list[TextTable], list[str]]]:
    """The report of each run of the page that used a classic suite: its page, its tables, and what marks mean."""
    reports = filter(None, map(make_report, material.runs))
    return [
        (report, first := first_page(report), rest := all_tables(report), footnotes(report, [*first, *rest]))
        for report in reports
    ]
