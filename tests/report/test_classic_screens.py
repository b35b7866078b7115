"""The screens of a classic report: a page, every row, plots, JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.report.cells import MPI, point, report_of, shown
from tests.report.runs import Made, options, oversubscribed, store_run
from tests.report.test_classic import curve, oneway, stream

from hockney.archive import published, reports
from hockney.cli import execute
from hockney.model import Point
from hockney.report.classic.screen import plots_of
from hockney.report.classic.values import format_figure

ONE_OF_EACH = {
    "atlas": Made(point("shm", "oneway", 2, 4), 660),
    "scabench": Made(point("shm", "pingpong", 2, 0), 320, divisor=2),
    "t3d": Made(point("shm", "putpong", 2, 8), 208, divisor=2),
    "ancor": stream(65500, write="nonblocking"),
    "paragon": Made(point("tcp", "pingpong", 2, 65536), 6000, divisor=2, bytes_per_rep=131072),
}


@pytest.mark.parametrize("suite", ONE_OF_EACH)
def test_the_page_has_a_line_for_each_benchmark_and_json_every_row(
    suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", suite, [ONE_OF_EACH[suite]])
    page, full = shown(tmp_path, capsys, "--page"), shown(tmp_path, capsys)
    assert len(page.splitlines()) < 60
    assert page.startswith(reports()[suite].source[:40])
    assert "ratio" in page
    assert "Does it hold here?" in page
    assert "hockney show 1 --all`" in page
    assert full.startswith(page.splitlines()[0])
    assert "What decided the conclusions" in full
    document = json.loads(shown(tmp_path, capsys, "--json"))
    rows = [row for group in document["classic"]["benchmarks"] for row in group["rows"]]
    assert {row["printed"] for row in rows} == {figure.printed for figure in published(suite)}
    assert any(cell["figure"]["value"] is not None and cell["ratio"] for row in rows for cell in row["here"])
    assert document["classic"]["source"]["name"] == suite
    assert document["series"]
    store = str(tmp_path / "r.db")
    assert execute(["--store", store, "show", "last", "--json"]) == 0
    assert "classic" not in json.loads(capsys.readouterr().out)
    assert execute(["--store", store, "show", "last", "--all"]) == 0
    both = capsys.readouterr().out
    assert "What decided the conclusions" in both
    assert len(both) > len(full)  # the curves follow


def wide(suite: str) -> list[Made]:
    """A run with many transports: some can do all, some have no such pattern, and most points have too many ranks."""
    names = ("shm", "mpi@mpich-5.0.2", MPI, "mpi@mpich-4.0.2")
    if suite == "t3d":
        made = [
            Made(Point(f"{name}:rma", pattern, 2, size), 100 + size, bytes_per_rep=size)
            for name in names
            for pattern in ("putpong", "putring", "put", "pingpong", "ring", "oneway", "get")
            for size in (8, 64, 4096)
        ]
        return [*made, *(Made(Point("null", "memload", 1, size), 9, bytes_per_rep=8) for size in (16384, 1 << 24))]
    if suite == "ancor":
        return [stream(size, source=source) for size in (1, 1000, 65500) for source in (0, 1)]
    if suite == "paragon":
        ways = ("shm", "tcp", *(f"pvm@3.4.6:{way}" for way in ("psend", "inplace", "raw-daemon", "default")))
        return [made for name in ways for made in curve(name, 1)]
    patterns = ("oneway", "twoway", "alltoall", "pingpong", "bisection", "barrier", "outfarm")
    made = [
        Made(Point(name, pattern, 2, size, options(window=16) if pattern == "oneway" else ()), 100 + size,
             bytes_per_rep=size)
        for name in names for pattern in patterns for size in ((0,) if pattern == "barrier" else (0, 4, 64))
    ]  # fmt: skip
    return [*made, *(oversubscribed(name, "alltoall", 4, 4, algorithm="flat") for name in names)]


@pytest.mark.parametrize("width", matrix([60, 80, 100, 120], short=[60]))
@pytest.mark.parametrize("suite", ONE_OF_EACH)
def test_no_line_of_a_report_is_wider_than_the_line(
    suite: str, width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    store_run(tmp_path / "r.db", suite, wide(suite))
    assert max(map(len, shown(tmp_path, capsys).splitlines())) <= width


def test_the_reason_for_missing_intervals_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    advice = re.compile(r"measurements\s+for\s+an\s+interval\.\s+Continue:\s+`hockney\s+run\s+--resume\s+1`")
    for measurements, count in ((1, 1), (9, 0)):
        store_run(
            tmp_path / "r.db", "scabench", [oneway(size, 100.0, measurements=measurements) for size in (0, 65536)]
        )
        assert len(advice.findall(shown(tmp_path, capsys, "--page"))) == count


def test_published_and_measured_figures_are_in_one_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [Made(point("shm", "oneway", 2, size), 300 + size) for size in (4, 64, 256, 1024)]
    made += [Made(point("shm", "alltoall", 8, size, algorithm="flat"), 9000 + size) for size in (4, 64)]
    plots = {title: curves for title, curves, _ in plots_of(report_of(tmp_path, "atlas", made))}
    assert [size for size, _ in plots["Com-1.1 one-way, us"]["shm"]] == [4, 64, 256, 1024]
    assert plots["Com-1.3 all-to-all, us: processors 8"]["published"][0] == (4, 38.5)
    assert "o published   x shm" in shown(tmp_path, capsys, "--plot")
    store_run(tmp_path / "r.db", "ancor", [ONE_OF_EACH["ancor"]])
    assert execute(["show", "last", "--tables", "--plot", "--store", str(tmp_path / "r.db")]) == 2
    assert "no published curve" in capsys.readouterr().err


def test_every_state_is_refused_where_each_figure_names_its_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", "atlas", [ONE_OF_EACH["atlas"]])
    assert execute(["--store", str(tmp_path / "r.db"), "show", "last", "--tables", "--states"]) == 2
    assert "`hockney show 1 --states" in capsys.readouterr().err


def test_an_oversubscribed_figure_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "r.db", "atlas", [ONE_OF_EACH["atlas"]], oversubscribed=True)
    text = shown(tmp_path, capsys)
    assert "0.660* ±" in text
    assert "more ranks than CPUs, so this is a scheduling time" in text


def test_a_run_of_something_else_has_no_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.db"
    store_run(path, "oneway", [ONE_OF_EACH["atlas"]])
    assert execute(["--store", str(path), "show", "last", "--tables"]) == 2
    assert "atlas, scabench, t3d, ancor, paragon" in capsys.readouterr().err
    store_run(path, "atlas", [ONE_OF_EACH["atlas"]])
    assert execute(["--store", str(path), "show", "last", "--tables", "--pattern", "oneway"]) == 0
    assert execute(["--store", str(path), "show", "1", "--tables", "--pattern", "nothing"]) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(23167.0, "23,167"), (99.96, "100"), (99.94, "99.9"), (6.6, "6.60"), (0.00868, "0.00868"), (0.0, "0")],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert format_figure(value) == text
