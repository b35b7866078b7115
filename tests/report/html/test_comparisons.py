"""The comparisons of the page with other runs, whose changes are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.analysis.compare.made import add_run
from tests.builders import make_point

from hockney.report.charts import Chart
from hockney.report.document import Section, Table, Text
from hockney.report.page.comparisons import comparisons_of
from hockney.report.page.material import material_of
from hockney.results.runs import open_results
from hockney.results.store import Store

PATTERNS = ("pingpong", "oneway", "twoway", "ring", "alltoall")


def compared(path: Path, *factors: float | None, launches: int = 6) -> tuple[list[Section], list[Chart]]:
    """With a second run in which each pattern takes this many times as long, or is missing."""
    named = {make_point(8, pattern=name): factor for name, factor in zip(PATTERNS, factors, strict=False)}
    with Store.open(path / "r.db") as store:
        add_run(store, dict.fromkeys(named, 1000.0), launches=launches)
        times_ns = {point: 1000 * factor for point, factor in named.items() if factor is not None}
        add_run(store, times_ns, launches=launches, seed=2)
    with open_results(path / "r.db") as results:
        return comparisons_of(material_of(results, results.run("1"), [results.run("2")]))


def test_the_chart_has_the_slowest_at_the_top_each_with_its_interval(tmp_path: Path) -> None:
    (item,), (chart,) = compared(tmp_path, 1.0, 0.5, 1.2, 2.0, 0.8)
    assert any(isinstance(block, Table) and len(block.rows) == 5 for block in item.blocks)
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
    assert isinstance(item.blocks[1], Table)
    assert charts == []


def test_runs_without_a_common_point_have_a_sentence_instead_of_a_table(tmp_path: Path) -> None:
    (item,), charts = compared(tmp_path, None)
    (block,) = item.blocks
    assert charts == []
    assert isinstance(block, Text)
    assert block.text[0].isupper()


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        (({}, {"OMPI_MCA_eager_limit": "16384"}), ["default", "eager_limit=16384"]),
        (({"A": "1", "B": "x"}, {"A": "2", "B": "x"}), ["A=1", "A=2"]),
        (({}, {}), ["run 1", "run 2"]),
        (({}, {"A": "1", "B": "1", "C": "1"}), ["run 1", "run 2"]),
    ],
)
def test_a_run_is_named_by_what_differs(
    tmp_path: Path, variables: tuple[dict[str, str], ...], names: list[str]
) -> None:
    with Store.open(tmp_path / "r.db") as store:
        for number, environment in enumerate(variables):
            add_run(store, {make_point(8): 1000.0}, seed=number, facts={"environment": environment})
    with open_results(tmp_path / "r.db") as results:
        known = material_of(results, results.run("1"), [results.run("2")])
    assert [*known.run_names.values()] == names
    assert known.name_of("shm", 2) == f"shm, {names[1]}"
    assert known.look("shm", 1) != known.look("shm", 2)
