"""The archive holds what the reports printed, every figure of them."""

from __future__ import annotations

import hashlib

import pytest

from hockney.archive import Published, machines, published, reports
from hockney.errors import UsageError

DIGEST = {  # of all 293 figures with their place, as verified against the reports
    "atlas": "fb46ae5906a46fe4",
    "scabench": "a3d2b868f02c5d43",
    "t3d": "b90f1a34226f4833",
    "ancor": "1f13862e2b0faaf8",
    "paragon": "7f3ca1b111580f2e",
}


def one(report: str, **where: int | float | str) -> Published:
    figures = [figure for figure in published(report) if figure.matches(where)]
    assert len(figures) == 1, where
    return figures[0]


def test_a_blank_in_a_report_is_no_figure() -> None:
    assert one("scabench", system="Cray T3E", nodes=2).value is None
    assert "delay_us" not in one("atlas", benchmark="Com-1.1", bytes=4).at
    with pytest.raises(UsageError, match="scabench"):
        published("scabenhc")


@pytest.mark.parametrize("report", DIGEST)
def test_figures_are_those_that_were_checked_against_the_reports(report: str) -> None:
    rows = [
        (figure.system, figure.benchmark, figure.metric, figure.printed, figure.unit, *sorted(figure.at.items()))
        for figure in published(report)
    ]
    assert all(each.value == (float(each.printed) if each.printed else None) for each in published(report))
    assert hashlib.sha256(repr(rows).encode()).hexdigest()[:16] == DIGEST[report]


def test_every_figure_belongs_to_one_machine_and_every_machine_to_a_report() -> None:
    for report in reports():
        owned = [figure for machine in machines().values() if machine.report == report for figure in machine.figures]
        assert sorted(map(id, owned)) == sorted(map(id, published(report)))
    assert all(report.author and report.date and report.title in report.source for report in reports().values())


def test_approximate_figures_are_less_exact_than_their_digits() -> None:
    around = {
        figure.value: figure.within
        for figure in published("ancor")
        if figure.note.startswith('the report says "around')
    }
    assert around == {615: 5, 1000: 500, 100: 5}
