"""The section "Measured against predicted": the figures of `hockney predict --validate`, where a run has any."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.analysis.predict.known import copied
from tests.cli.support import Ended, call_here
from tests.report.html.test_page import figures_of
from tests.report.runs import Made, options, store_run

from hockney.model import Point
from hockney.report.page import predictions
from hockney.worker.errors import BuildError

TITLE = "Measured against predicted"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a machine whose parameters are known."""
    return copied(tmp_path_factory)


def report(store: Path, name: str, *more: str) -> str:
    done = call_here(store.parent, "report", "1", "-o", name, "--store", str(store), *more)
    assert done.returncode == 0, done.stderr
    return (store.parent / name).read_text(encoding="utf-8")


def test_the_chart_has_every_point_of_the_validation(known: Path) -> None:
    shown: Ended = call_here(known.parent, "predict", "--validate", "--from", "1", "--store", str(known), "--json")
    (validation,) = json.loads(shown.stdout)["validation"]
    (view,) = figures_of(report(known, "r.html"))["charts"]["predictions-chart"]["views"]
    points, equal = view["lines"]
    assert [point[:2] for point in points["points"]] == [
        [pytest.approx(row[key], rel=1e-4) for key in ("measured_ns", "predicted_ns")] for row in validation["points"]
    ]
    assert points["labels"] == [label for label in points["labels"] if re.search(r", \d ranks: [+-]\d+\.\d%$", label)]
    assert equal["kind"] == "reference"
    assert all(x == y for x, y, *_ in equal["points"])


def test_page_and_markdown_have_the_same_table(known: Path) -> None:
    page, text = report(known, "r.html"), report(known, "r.md", "--format", "md")
    (head, _, row) = text.partition(f"## {TITLE}\n\n")[2].splitlines()[:3]
    assert head == "| transport | points | median error | within 10% | within 25% |"
    cells = row.strip("| ").split(" | ")
    assert cells[1:] == ["67", "0.0%", "100%", "100%"]
    section = page.partition('<section id="predictions"')[2].partition("</section>")[0]
    assert TITLE in section
    assert re.findall(r"<td>(.*?)</td>", section) == cells[1:]


def test_of_many_points_some_are_predicted(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "_POINTS_MAX", 10)
    page = report(known, "some.html")
    assert "Of 67 points 10 are predicted, chosen evenly." in page
    (view,) = figures_of(page)["charts"]["predictions-chart"]["views"]
    assert len(view["lines"][0]["points"]) == 10


def test_without_points_there_is_no_section_and_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        pytest.fail("a worker was started")

    monkeypatch.setattr("hockney.measure.predict.launch", started)
    basics = [Made(Point("shm", "pingpong", 2, size), 50.0 + size, 2, 2 * size) for size in (8, 64, 512)]
    basics += [Made(Point("shm", "oneway", 2, s, options(window=16)), 20.0 + s, 16, 16 * s) for s in (8, 64, 512)]
    store_run(tmp_path / "r.db", "mine", basics)
    assert TITLE not in report(tmp_path / "r.db", "r.html")
    assert TITLE not in report(tmp_path / "r.db", "r.md", "--format", "md")


def test_without_a_compiler_the_reason_and_the_rest_are_reported(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise BuildError("no compiler <here>")

    monkeypatch.setattr("hockney.measure.predict._executable", fails)
    page, text = report(known, "r.html"), report(known, "r.md", "--format", "md")
    assert "Nothing was predicted: no compiler &lt;here&gt;." in page
    assert "Nothing was predicted: no compiler &lt;here&gt;." in text
    assert "Curves over message size" in page
    assert "predictions-chart" not in figures_of(page)["charts"]
