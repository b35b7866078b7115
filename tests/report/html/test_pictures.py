"""The charts of the page as pictures: each is drawn, its texts are in it, and labels do not overlap."""

from __future__ import annotations

import itertools
import struct
import sys
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.report.html.made import store_made
from tests.report.html.test_page import figures_of
from tests.shared import made_once

from hockney.cli import execute
from hockney.render.drawing import drawn
from hockney.report.charts import Axis, Chart, Line, PairValues, Picture, Scale, View
from hockney.report.page.material import material_of
from hockney.report.page.pictures import pictures_of
from hockney.results.runs import open_results

LABEL = "$a^$ weekly"  # no formula
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, the second of them slower; the folder `svg` next to them has their pictures."""

    def make(folder: Path) -> None:
        for slower in (1.0, 1.3):
            store_made(folder / "r.db", label=LABEL, slower=slower)
        words = ["report", "1", "2", "--format", "svg", "-o", str(folder / "svg"), "--store", str(folder / "r.db")]
        assert execute(words) == 0

    return made_once(tmp_path_factory, "pictures", make) / "r.db"


@pytest.fixture(scope="module")
def pictures(labelled: Path) -> list[Picture]:
    with open_results(labelled) as results:
        return pictures_of(material_of(results, results.run("1"), [results.run("2")]))


@pytest.fixture(scope="module")
def folder(labelled: Path) -> Path:
    return labelled.with_name("svg")


def texts_of(path: Path) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.parse(path).iter(TEXT)]


def test_every_chart_of_the_page_has_its_pictures(
    labelled: Path, pictures: list[Picture], folder: Path, tmp_path: Path
) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{picture.name}.svg" for picture in pictures)
    page = tmp_path / "page.html"
    assert execute(["report", "1", "2", "-o", str(page), "--store", str(labelled)]) == 0
    figures = figures_of(page.read_text(encoding="utf-8"))
    counts = {name: len(chart["views"]) for name, chart in figures["charts"].items()}
    drawn = [picture.shown[0].id for picture in pictures if isinstance(picture.shown, tuple)]
    assert {name: drawn.count(name) for name in counts} == counts
    assert sum(isinstance(picture.shown, PairValues) for picture in pictures) == len(figures["matrices"]) > 0
    patterns = {(curve["pattern"], curve["ranks"]) for curve in figures["curves"] if curve["drawn"] and curve["main"]}
    for pattern, ranks in patterns:
        assert {f"curves {pattern} {ranks} ranks time", f"curves {pattern} {ranks} ranks bandwidth"} <= {*drawn}


def test_a_picture_has_the_title_and_the_name_of_every_line(pictures: list[Picture], folder: Path) -> None:
    for picture in pictures:
        texts = texts_of(folder / f"{picture.name}.svg")
        if isinstance(picture.shown, PairValues):
            assert any(text.startswith(picture.shown.name[:60]) for text in texts)
            continue
        chart, view = picture.shown
        assert chart.title in texts
        assert {chart.x.title, (view.y or chart.y).title} - {""} <= {*texts}
        for name in (*(line.name for line in view.lines if line.points), *view.names, view.name):
            assert any(text.startswith(name[:20]) for text in texts), (picture.name, name)  # a long one is shortened


def test_a_picture_names_its_run_and_unit(folder: Path) -> None:
    texts = texts_of(folder / "curves-pingpong-2-ranks-time.svg")
    assert {"64 B", "1 MiB", "1 us", f"run 1 ({LABEL}), run 2 ({LABEL})"} <= {*texts}
    assert "1 GB/s" in texts_of(folder / "curves-pingpong-2-ranks-bandwidth.svg")


def test_labels_of_lines_do_not_overlap(folder: Path) -> None:
    for name in ("time", "bandwidth"):
        elements = ElementTree.parse(folder / f"curves-pingpong-2-ranks-{name}.svg").iter(TEXT)
        labels = [
            each for each in elements if "run" in "".join(each.itertext()) and "(" not in "".join(each.itertext())
        ]
        heights = sorted(float(each.get("y", "nan")) for each in labels)
        assert len(heights) == 8
        assert min(b - a for a, b in itertools.pairwise(heights)) > 9


@pytest.mark.parametrize(("scale", "sizes"), [("linear", [8, 16]), ("log10", [16])])
def test_a_value_of_zero_is_drawn_unless_its_axis_is_logarithmic(scale: Scale, sizes: list[int]) -> None:
    view = View("", (Line("waits", [(0, 0.5, None, None), (8, 0.0, None, None), (16, 0.5, None, None)]),))
    size = Axis("size", "bytes", "log2")
    chart = Chart("waits", "Waits", "", "lines", size, Axis("share", "share", scale), (view,))
    assert len([mark for mark in drawn(Picture("waits", (chart, view)), {}).marks if mark.kind == "dot"]) == len(sizes)


def test_runs_are_drawn_at_their_dates() -> None:
    days = [datetime(2026, 3, day, 12, tzinfo=timezone.utc) for day in (1, 8)]
    view = View("", (Line("tcp", [(day.timestamp(), 5.0, None, None) for day in days]),))
    chart = Chart("history", "Over time", "", "lines", Axis("", "unix_s", "time"), Axis("time", "ns"), (view,))
    marks = drawn(Picture("history", (chart, view)), {}).marks
    ends = [mark.points[0][0] for mark in marks if mark.kind == "dot"]
    assert {mark.text: mark.points[0][0] for mark in marks}.items() >= {
        ("2026-03-01", ends[0]),
        ("2026-03-08", ends[1]),
    }


@pytest.mark.full
def test_png(labelled: Path, pictures: list[Picture], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "png"
    folder.mkdir()
    assert execute(["report", "1", "2", "--format", "png", "-o", str(folder), "--store", str(labelled)]) == 0
    assert f"Wrote {folder} (" in capsys.readouterr().out
    files = sorted(folder.iterdir())
    assert [path.stem for path in files] == sorted(picture.name for picture in pictures)
    for path in files:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert 700 < width < 3000, path
        assert 200 < height < 3000, path


def test_without_matplotlib_a_sentence_says_how_to_get_it(
    labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert execute(["report", "1", "--format", "png", "-o", str(tmp_path / "x"), "--store", str(labelled)]) == 2
    expected = f"hockney: --format png needs matplotlib: install it with {sys.executable} -m pip install matplotlib\n"
    assert capsys.readouterr().err == expected
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("r.db", "it is a file; name a folder"), ("none/pictures", "there is no folder {folder}/none; make it first")],
)
def test_a_bad_folder(name: str, sentence: str, labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = labelled.parent / name
    assert execute(["report", "1", "--format", "png", "-o", str(path), "--store", str(labelled)]) == 2
    expected = f"hockney: cannot write {path}: {sentence.format(folder=labelled.parent)}\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("latency", "Time of pingpong, 2 ranks"),
        ("curves-alltoall-2-ranks-time", None),
        ("layers", "Cost of each layer for a message of 8 B"),
        ("report-t3d", "Cray T3D, 1996: latencies of pairs of processing elements"),
    ],
)
def test_a_file_is_one_chart_by_its_name(
    name: str, title: str | None, labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{name}.svg"
    code = execute(["report", "1", "-o", str(path), "--store", str(labelled)])
    if title:
        assert (code, title in texts_of(path)) == (0, True)
    else:
        error = capsys.readouterr().err
        assert (code, path.exists(), len(error.splitlines())) == (2, False, 1)
        assert all(known in error for known in ("latency", "bandwidth", "layers", "cpu", "report-farms"))


def test_under_the_axis_are_the_fastest_of_each_class(folder: Path) -> None:
    texts = texts_of(folder / "curves-pingpong-2-ranks-time.svg")
    assert "shared memory" in texts
    assert "probably threads or shm" in texts or "threads" in texts


def test_nothing_of_the_page_needs_scripts_to_be_seen(labelled: Path, tmp_path: Path) -> None:
    """Each chart holds its first view, with the names of its lines."""
    page = tmp_path / "page.html"
    assert execute(["report", "1", "-o", str(page), "--store", str(labelled)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == text.count('<div class="canvas') > 8
    assert page.stat().st_size < 1_200_000
