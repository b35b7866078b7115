"""The figures of the five reports: points are the results of the models, or the published values."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import Cli

from hockney.archive import published, reports
from hockney.archive.modelled import modelled
from hockney.report.charts import Chart, Line
from hockney.report.page.reports import report_charts
from hockney.results.runs import open_results


def chart(name: str) -> Chart:
    return next(each for each in report_charts() if each.id == f"report-{name}")


def lines(name: str, kind: str) -> list[Line]:
    return [line for view in chart(name).views for line in view.lines if line.kind == kind]


@pytest.mark.parametrize(
    ("report", "arguments"),
    [
        ("paragon", ["pingpong", "-t", "sim@paragon:raw", "--bytes", "8,64K,1M"]),
        ("scabench", ["pingpong", "-t", "sim@scali", "--bytes", "32,64K"]),
        ("ancor", ["stream", "-t", "sim@ancor", "--bytes", "1,4096", "-o", "write=nonblocking"]),
        (
            "atlas",
            [*("pushfarm", "-t", "sim@gpmimd-calibrated:senders8", "-n", "11", "--bytes", "16"), "-o", "senders=8"],
        ),
        ("t3d", ["put", "-t", "sim@t3d", "-n", "16", "--bytes", "8", "-o", "source=3", "-o", "target=12"]),
        ("t3d", ["putpong", "-t", "sim@t3d", "-n", "16", "--bytes", "8", "-o", "target=7"]),
    ],
)
def test_points_are_those_of_the_models(tmp_path: Path, cli: Cli, report: str, arguments: list[str]) -> None:
    """scripts/draw-machines writes them again."""
    done = cli("run", *arguments, "-q")
    assert done.returncode == 0, done.stderr
    variant = arguments[2].partition("@")[2].partition(":")[2]
    with open_results(tmp_path / "results.db") as results:
        for series in results.run().series:
            point = series.point
            (stored,) = (
                each
                for each in modelled(report)
                if (each.variant, each.pattern, each.ranks, each.bytes)
                == (variant, point.pattern_text, point.ranks, point.bytes)
            )
            assert stored.time_ns == pytest.approx(series.figures()[0].time.value, rel=1e-5)


def test_every_report_has_points_and_a_chart() -> None:
    assert all(modelled(report) for report in reports())
    assert len(report_charts()) == 5
    assert all(view.lines for each in report_charts() for view in each.views)


def test_farms_have_every_published_time() -> None:
    printed = sorted(
        figure.value * 1e3
        for figure in published("atlas")
        if figure.value is not None and figure.get("benchmark") in ("Com-2.1", "Com-2.2", "Com-3.1", "Com-3.2")
    )
    shown = sorted(point[1] for line in lines("farms", "published") for point in line.points)
    assert shown == pytest.approx(printed)
    assert len(shown) == 120


def test_the_stream_has_four_modes_with_three_graphs_each() -> None:
    assert len(chart("ancor").views) == 12
    assert chart("ancor").views[0].name == "write nonblocking, read nonblocking: speed"
    speeds = [point[1] for line in lines("ancor", "published") for point in line.points]
    assert sorted(speeds) == [10.5e6, 10.6e6, 12.2e6, 12.2e6]


def test_levels_have_names() -> None:
    names = [line.name for name in ("sci", "paragon", "t3d") for line in lines(name, "reference")]
    assert "between nodes, 0 B: 6.30 us" in names
    assert "NX, asymptote: 72.0 MB/s" in names
    assert "mean, published: 1.10 us" in names


def test_all_pairs_of_the_torus_are_drawn() -> None:
    for line, pattern in zip(lines("t3d", "model"), ("put", "putpong"), strict=True):
        times_ns = [point.time_ns for point in modelled("t3d") if point.pattern.split()[0] == pattern]
        assert len(times_ns) == 240
        assert [point[1] for point in line.points] == sorted(times_ns)


@pytest.mark.parametrize("name", ["ancor", "farms", "sci"])
def test_published_figures_lie_on_the_line_of_their_model(name: str) -> None:
    """At the same place; the models are within 12 % of them."""
    for view in chart(name).views:
        points = {line.name: {point[0]: point[1] for point in line.points} for line in view.lines}
        for line in view.lines:
            if line.kind == "published":
                model = points[line.name.replace("published", "model")]
                for x, y in points[line.name].items():
                    assert model[x] == pytest.approx(y, rel=0.12), (view.name, line.name)


@pytest.mark.parametrize("name", ["ancor", "paragon"])
def test_published_levels_are_reached_by_a_model(name: str) -> None:
    for view in chart(name).views:
        ys = [point[1] for line in view.lines if line.kind == "model" for point in line.points]
        for line in view.lines:
            if line.kind == "reference":
                level = line.points[0][1]
                assert any(y == pytest.approx(level, rel=0.06) for y in ys), (view.name, line.name)
