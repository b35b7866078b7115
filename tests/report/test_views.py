"""One run, one answer: every view of a run shows the same value, bounds and machine state of each point."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.runs import LIBRARIES, recorded_quick, store_quick, store_run

from hockney.analysis.explain import explain_run
from hockney.analysis.explain.read import read_run
from hockney.analysis.predict.fit import figures_of
from hockney.cli import execute
from hockney.report.columns import COLUMNS
from hockney.report.documents.sheet import sheet_table
from hockney.report.findings import grouped
from hockney.report.notes import padded
from hockney.report.page.charts import _points
from hockney.report.page.curves import curves_of
from hockney.report.page.findings import findings_of
from hockney.report.page.material import material_of
from hockney.report.sheet import make_sheet
from hockney.report.words import cell_text
from hockney.results.export import write_csv, write_json
from hockney.results.figures import EITHER, SEVERAL_STATES, Figure
from hockney.results.runs import Results, Run, open_results
from hockney.stats.interval import Estimate
from hockney.units import format_ns

Key = tuple[str, str, int]  # transport, pattern with options, bytes
Shown = tuple[float, float, float, str]  # value, low, high, state


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded quick, whose every third point was measured too little, and every fifth while the CPUs were far."""
    made = []
    for number, one in enumerate(recorded_quick()):
        far = replace(one, time_ns=3 * one.time_ns, floor_ns=190.0, measurements=2 + number % 7, then=None)
        few = replace(one, measurements=1 + number % 4, then=None) if number % 3 == 0 else one
        if number % 11 == 0:
            few = replace(few, then=replace(one, measurements=6 - few.measurements, pace_ns=(0.5, 0.7), then=None))
        made.append(replace(few, then=far) if number % 5 == 0 else few)
    path = tmp_path_factory.mktemp("views") / "r.db"
    store_run(path, "quick", made, pinned=True, libraries=LIBRARIES)
    return path


@pytest.fixture(scope="module")
def results(path: Path) -> Iterator[Results]:
    with open_results(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(results: Results) -> Run:
    return results.run()


def key_of(figure: Figure) -> Key:
    return figure.point.transport, figure.point.pattern_text, figure.point.bytes


def bounds_and_state(time: Estimate, state: str) -> Shown:
    return time.value, time.low, time.high, state


def shown(run: Run) -> dict[Key, Shown]:
    figures = [series.shown for series in run.series if series.shown is not None]
    return {key_of(figure): bounds_and_state(figure.time, figure.state) for figure in figures}


def test_the_run_has_points_of_every_kind(run: Run) -> None:
    figures = [series.shown for series in run.series if series.shown is not None]
    assert {figure.state for figure in figures} >= {"near", f"near, {EITHER}", SEVERAL_STATES}
    assert {figure.has_interval for figure in figures} == {True, False}
    assert len(figures) == len(run.series) > 100


def test_the_library_gives_the_figures_that_are_shown(run: Run) -> None:
    expected = shown(run)
    for transport, pattern in {(series.point.transport, series.point.pattern) for series in run.series}:
        curve = run.curve(pattern, transport)
        for size, *values, state in zip(curve.sizes, curve.times, curve.low, curve.high, curve.states, strict=True):
            name = next(key for key in expected if key[0] == transport and key[1].partition(" ")[0] == pattern)[1]
            assert (*values, state) == expected.pop((transport, name, int(size)))
        assert curve.state in (*curve.states, SEVERAL_STATES)
    assert not expected


def test_one_row_of_each_point_is_marked_in_csv(run: Run) -> None:
    stream = io.StringIO(newline="")
    write_csv(run, stream)
    rows = [row for row in csv.DictReader(io.StringIO(stream.getvalue())) if row["shown"] == "True"]
    columns = ("time_ns", "time_low_ns", "time_high_ns")
    assert {
        (row["transport"], " ".join(filter(None, (row["pattern"], row["options"]))), int(row["bytes"])): (
            *(float(row[name]) for name in columns),
            row["state"],
        )
        for row in rows
    } == shown(run)
    assert len(rows) == len(run.series)


def test_one_figure_of_each_point_is_marked_in_json(run: Run, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    write_json(run, stream)
    assert execute(["show", "--json", "--store", str(path)]) == 0
    for document in (json.loads(stream.getvalue()), json.loads(capsys.readouterr().out)):
        seen = {}
        for series in document["series"]:
            options = (f"{name}={value}" for name, value in series["options"].items())
            (figure,) = (figure for figure in series["figures"] if figure["shown"])
            key = series["transport"], " ".join([series["pattern"], *options]), series["bytes"]
            seen[key] = tuple(figure[name] for name in ("value_ns", "low_ns", "high_ns", "state"))
        assert seen == shown(run)


def test_the_page_and_its_pictures_draw_the_figures_that_are_shown(run: Run) -> None:
    expected = shown(run)
    for curve in curves_of(run):
        if not curve.is_main:
            continue
        pictured = {point[0]: point[1:] for point in _points(curve, "ns")}
        for size, time in curve.times_ns.items():
            *values, state = expected.pop((curve.transport, curve.pattern, size))
            assert [time.value, time.low, time.high] == values
            assert state in curve.state.split("; ")
            assert not size or pictured[size] == tuple(values)
    assert set(expected) == {("null", "pingpong", 8)}, "the harness is on no curve"


def test_the_sheet_and_its_table_have_the_figures_that_are_shown(run: Run) -> None:
    figures = {key_of(series.shown): series.shown for series in run.series if series.shown is not None}
    sheet = make_sheet(run)
    cells = {row[0].rstrip("°"): row[1:] for row in sheet_table(sheet).rows}
    for row in sheet.rows:
        kinds = {"latency_ns": ("pingpong", 8), "barrier_ns": ("barrier", 0)}
        for name, unit in (("bandwidth_bytes_per_s", "oneway"), ("bidirectional_bytes_per_s", "twoway")):
            value = row.values[name]
            assert value is not None
            assert value.at_bytes is not None
            rate = figures[row.transport, f"{unit} window=16", value.at_bytes].bytes_per_s
            assert rate is not None
            assert (value.value, value.low, value.high) == (rate.value, rate.low, rate.high)
        for name, (pattern, size) in kinds.items():
            value, figure = row.values[name], figures[row.transport, pattern, size]
            assert value is not None
            assert (value.value, value.low, value.high) == bounds_and_state(figure.time, "")[:3]
            assert (value.over, value.is_mixed) == (figure.interval_over, figure.is_mixed)
        for column, cell in zip(COLUMNS, cells[row.name], strict=True):
            assert cell == padded(*column.texts(row.values[column.key]), row.marks(column.key))


def test_explain_and_predict_use_the_figures_that_are_shown(run: Run) -> None:
    """Explain without those of several states, or without an interval."""
    expected, used = shown(run), 0
    for curve in read_run(run).curves:
        for point in curve.points:
            assert bounds_and_state(point.time_ns, curve.state) == expected[curve.transport, curve.name, point.bytes]
            used += 1
    assert used == sum(
        series.shown.has_interval and series.shown.state == run.state_of(*series.job)
        for series in run.series
        if series.shown is not None and not series.is_harness
    )
    for basics in figures_of(run, "tcp").basics:
        for name, pattern in (("half", "pingpong"), ("gap", "oneway window=16"), ("both", "twoway window=16")):
            if name in basics.times:
                time = basics.times[name]
                assert (time.value, time.low, time.high) == expected["tcp", pattern, basics.bytes][:3]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded quick as it is."""
    path = tmp_path_factory.mktemp("quick") / "r.db"
    store_quick(path)
    return path


@pytest.mark.parametrize("every_state", [False, True])
def test_the_line_of_the_sheet_is_the_last_one_that_explain_has(
    every_state: bool, quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["explain", "--json", "--store", str(quick)]) == 0
    lines = [line for line in json.loads(capsys.readouterr().out)["lines"] if line["pattern"] == "pingpong"]
    last = {(line["transport"], line["state"]): line for line in lines}  # by ascending sizes
    with open_results(quick) as results:
        rows = make_sheet(results.run(), every_state=every_state).rows
    known = 0
    for row in rows:
        for key in ("r_inf_bytes_per_s", "n_half_bytes"):
            value = row.values[key]
            if value is not None:
                of_explain = last[row.transport, row.state][key]
                assert {"value": value.value, "low": value.low, "high": value.high} == of_explain
                known += 1
    assert known > 5


def test_the_layers_of_the_sheet_are_those_that_explain_has(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_results(quick) as results:
        sheet, explanation = make_sheet(results.run()), explain_run(results.run())
    assert len(sheet.layers) > 3
    assert {*sheet.layers} == {layer for layer in explanation.layers if layer.floor_ns is None}
    screens = []
    for command in (["show"], ["explain", "--all"]):
        assert execute([*command, "--store", str(quick)]) == 0
        screens.append(" ".join(capsys.readouterr().out.split()))
    (added,) = re.findall(r"At 8 B: .*(Open MPI 4\.1\.4 adds \S+ \S+ ±\d+% to shm)", screens[0])
    assert f"{added}, at 8 B (near)" in screens[1]


def test_findings_have_one_order_and_their_number_is_that_of_the_listed_ones(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_results(quick) as results:
        run = results.run()
        groups = grouped(explain_run(run).findings)
        items = findings_of(material_of(results, run, []), ()).items
    assert len(items) == len(groups) > 3
    assert [item.is_problem for item in items] == sorted((item.is_problem for item in items), reverse=True)
    screens = []
    for command in (["explain"], ["show"]):
        assert execute([*command, "--store", str(quick)]) == 0
        screens.append(" ".join(capsys.readouterr().out.split()))
        places = [screens[-1].find(f"- {item.texts.about}: {item.texts.title}.") for item in items]
        listed = [place for place in places if place >= 0]
        assert listed == sorted(listed)
        assert listed
    assert screens[0].startswith(f"run 1: {len(groups)} findings")
    assert f"All findings ({len(groups)}):" in screens[1]


def test_the_screens_print_the_figures_that_are_shown(run: Run, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for option in ("--all", "--by-size"):
        assert execute(["show", option, "--store", str(path)]) == 0
        texts.append(re.sub(r"\s+", " ", capsys.readouterr().out))
    for series in run.series:
        figure = series.shown
        assert figure is not None
        cell = " ".join(filter(None, cell_text(figure, figure.time, format_ns)))
        assert f" {cell} " in texts[0]
        if not series.is_harness:
            assert f" {cell} " in texts[1]


def test_a_cell_is_printed_alike_on_every_screen(
    run: Run, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is room: a narrow sheet has both ends alone."""
    monkeypatch.setenv("COLUMNS", "300")
    screens = {}
    for options in ((), ("--all",), ("--states",), ("--by-size",)):
        assert execute(["show", *options, "--store", str(path)]) == 0
        screens[options] = f" {' '.join(capsys.readouterr().out.split())} "
    kinds = set()
    for row in make_sheet(run).rows:
        for column in COLUMNS:
            value = row.values[column.key]
            if value is None or column.is_fitted:
                continue
            cell = " ".join(filter(None, column.texts(value)))
            assert [options for options, screen in screens.items() if f" {cell} " not in screen] == []
            kinds.add((value.is_range, "(" in cell))
    assert kinds >= {(False, False), (True, True)}
    monkeypatch.setenv("COLUMNS", "100")
    assert execute(["show", "--store", str(path)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
