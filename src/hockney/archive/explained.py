"""Findings in the published figures of the archive's machines (`hockney explain --machine`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hockney.analysis.explain import Explanation, explain
from hockney.analysis.finding import Absence, NotChecked
from hockney.archive import Machine, benchmarks
from hockney.archive.curves import read_machine
from hockney.machine.files import rows_of


def explain_machine(machine: Machine) -> Explanation:
    """Findings in the published figures, and statements of the report without figures (unseen.toml)."""
    explanation = explain(read_machine(machine))
    rows = [row for row in rows_of(Path(__file__).with_name("unseen.toml")) if row["machine"] == machine.name]
    unseen = {
        row["what"]: NotChecked(Absence.INSUFFICIENT_DATA, row["what"], "of report", {"reason": row["why"]})
        for row in rows
    }
    rest = [gap for gap in explanation.not_checked if gap.what not in unseen]
    return replace(explanation, not_checked=(*unseen.values(), *rest), oddities=tuple(_oddities(machine)))


def _oddities(machine: Machine) -> Iterator[str]:
    """What is odd in the printed figures: each note once, with its benchmark and its first figures."""
    for benchmark in benchmarks(machine.report):
        noted: dict[str, list[str]] = {}
        for figure in machine.figures:
            if figure.note and figure.matches(benchmark.where):
                noted.setdefault(figure.note, []).append(figure.printed or "no figure")
        for note, printed in noted.items():
            more = " …" if len(printed) > 3 else ""
            yield f"{benchmark.title}, {', '.join(printed[:3])}{more}: {note}."
        yield from (f"{benchmark.title}: {oddity}" for oddity in benchmark.oddities)
