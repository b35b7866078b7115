"""The comparisons of the page with other runs, whose changes are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.analysis.compare.made import add_run
from tests.builders import make_point

from hockney.report.charts import Chart
from hockney.report.page.comparisons import ComparisonItem, comparisons_of
from hockney.report.page.material import material_of
from hockney.results.runs import open_results
from hockney.results.store import Store

PATTERNS = ("pingpong", "oneway", "twoway", "ring", "alltoall")


def compared(path: Path, *factors: float | None, launches: int = 6) -> tuple[list[ComparisonItem], list[Chart]]:
    """With a second run in which each pattern takes this many times as long, or is missing."""
    named = {make_point(8, pattern=name): factor for name, factor in zip(PATTERNS, factors, strict=False)}
    with Store.open(path / "r.db") as store:
        add_run(store, dict.fromkeys(named, 1000.0), launches=launches)
        times_ns = {point: 1000 * factor for point, factor in named.items() if factor is not None}
        add_run(store, times_ns, launches=launches, seed=2)
    with open_results(path / "r.db") as results:
        return comparisons_of(material_of(results, results.run("1"), [results.run("2")], str))


def test_what_is_slower_comes_first_then_what_is_faster_each_by_its_change(tmp_path: Path) -> None:
    (item,), (chart,) = compared(tmp_path, 1.0, 0.5, 1.2, 2.0, 0.8)
    assert item.table is not None
    assert [(row[0].partition(" ")[0], row[-1]) for row in item.table.texts] == [
        ("ring", "slower"),
        ("twoway", "slower"),
        ("oneway", "faster"),
        ("alltoall", "faster"),
        ("pingpong", "no difference"),
    ]
    assert item.table.columns[1:3] == ("run 1", "run 2")
    (view,) = chart.views
    assert [name.partition(" ")[0] for name in view.names] == ["ring", "twoway", "pingpong", "alltoall", "oneway"]
    shown = {line.name: list(line.points) for line in view.lines}
    assert [(name, [point[1] for point in points]) for name, points in shown.items()] == [
        ("slower", [0, 1]),
        ("faster", [3, 4]),
        ("no difference seen", [2]),
    ]
    assert [point[0] for point in shown["slower"]] == pytest.approx([2.0, 1.2], rel=0.05)
    value, _, low, high = np.array([[*point] for point in shown["slower"]], dtype=float).T
    assert ((low < value) & (value < high)).all()


def test_without_an_interval_there_is_no_chart(tmp_path: Path) -> None:
    (item,), charts = compared(tmp_path, 1.0, 1.0, launches=1)
    assert item.table is not None
    assert charts == []


def test_runs_without_a_common_point_have_a_sentence_instead_of_a_table(tmp_path: Path) -> None:
    (item,), charts = compared(tmp_path, None)
    assert (item.table, charts) == (None, [])
    assert item.summary[0].isupper()
