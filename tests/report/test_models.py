"""Tables of a report that were measured on a model of its machine: errors, reproduced figures, omissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.report.cells import about, figure, point, reason, row, shown, tables
from tests.report.runs import FACTS, Made, store_run

from hockney.archive import Published
from hockney.report.classic.models import errors_table
from hockney.report.classic.values import ClassicColumn, ClassicTable, Measured
from hockney.report.classic.view import plots_of

RECORD: dict[str, Any] = {
    "name": "gpmimd",
    "variant": "",
    "key": "0123",
    "title": "GPMIMD machine",
    "machine": "gpmimd",
    "exact": True,
    "torus": None,
    "parameters": [["cpu.slice_ns", "256000", "the T9000's time slice"]],
    "used": [{"where": {"benchmark": "Com-1.1", "bytes": [4, 64]}, "for": "transfer"}],
    "structure": [
        {"what": "one event is in flight", "read_from": "Com-2.1"},
        {"pattern": ["pairs"], "ranks": [], "options": {}, "variants": ["boards"], "read_from": "Com-1.4"},
    ],
    "not_modelled": [{"where": {"benchmark": "Com-1.7", "senders": 4}, "why": "its row is doubtful"}],
}
SIM = "sim@gpmimd"


def test_a_report_begins_with_figures_and_names_the_command_for_the_models_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", "atlas", [Made(point(SIM, "pingpong", 2, 4), 6600)], facts=facts())
    brief, full = shown(tmp_path, capsys), shown(tmp_path, capsys, "-v")
    parameters = ("its parameters, times in ns", "the T9000's time slice", "one event is in flight")
    assert not any(text in brief for text in parameters)
    assert "`hockney show 1 -v`" in brief
    assert all(text in full for text in parameters)
    assert "its row is doubtful" in brief


def facts(**changes: Any) -> dict[str, Any]:
    names = (SIM, f"{SIM}:boards")
    return {**FACTS, "models": {name: {**RECORD, **changes} for name in names}}


def made() -> list[Made]:
    return [
        Made(point(SIM, "oneway", 2, 4), 6_600, measurements=1),
        Made(point(SIM, "oneway", 2, 256), 50_000, measurements=1),
        Made(point(SIM, "oneway", 2, 1024), 220_000, measurements=1),
        Made(point(f"{SIM}:boards", "pairs", 4, 4), 13_000, measurements=1),
        Made(point(SIM, "funnel", 5, 4), 20_000, measurements=1),
    ]


def tables_of(path: Path, suite: str, points: list[Made], **more: Any) -> dict[str, ClassicTable]:
    return tables(path, suite, points, plan={"virtual": {one.point.transport: True for one in points}}, **more)


def cell(table: ClassicTable, *begins: str) -> Measured:
    last = row(table, *begins)[-1]
    assert isinstance(last, Measured)
    return last


def test_errors_count_only_on_figures_that_were_not_used(tmp_path: Path) -> None:
    of = tables_of(tmp_path, "atlas", made(), facts=facts())
    table = of["com-1.1"]
    assert [column.title for column in table.columns] == ["packet size", "published", "model"]
    used, predicted = cell(table, "4"), cell(table, "256")
    assert (used.reproduced, predicted.reproduced) == (True, False)
    assert predicted.error == about(50 / 56.9 - 1)
    assert (predicted.low, predicted.high) == (predicted.value, predicted.value)
    title, count, median, largest, reproduced, *_ = of["errors"].rows[0]
    assert (title, count, reproduced) == ("Com-1.1 (one-way)", "2", "1")
    errors = [100 * (1 - 50 / 56.9), 100 * (220 / 216.9 - 1)]
    assert figure(median) == about(sum(errors) / 2)
    assert figure(largest) == about(max(errors))


def test_a_variant_for_some_points_has_no_separate_column(tmp_path: Path) -> None:
    table = tables_of(tmp_path, "atlas", made(), facts=facts())["com-1.4"]
    assert table.columns[-1].title == "model"
    assert figure(cell(table, "4", "4")) == about(13)


@pytest.mark.parametrize(("variants", "name"), [(("", "boards"), "boards: placement"), (("boards", ""), "placement")])
def test_parameters_that_a_variant_changes_name_it(variants: tuple[str, str], name: str, tmp_path: Path) -> None:
    """The first model has none to change."""
    more = [*RECORD["parameters"], ["placement.nodes", "0,8", "the text"]]
    first, second = ({**RECORD, "variant": variant} for variant in variants)
    models = {SIM: first, f"{SIM}:boards": {**second, "parameters": more}}
    table = tables_of(tmp_path, "atlas", made(), facts={**facts(), "models": models})
    assert table["model"].rows == (
        ("cpu", "slice_ns 256000", "the T9000's time slice"),
        (name, "nodes 0,8", "the text"),
    )


def test_rows_without_a_model_have_a_reason(tmp_path: Path) -> None:
    table = tables_of(tmp_path, "atlas", made(), facts=facts())["com-1.7"]
    assert reason(cell(table, "4", "4")) == "not modelled: its row is doubtful"


def test_a_figure_of_another_machine_is_not_compared(tmp_path: Path) -> None:
    modelled = Made(point(SIM, "ft", 4, 0, **{"class": "A"}), 1e9, measurements=1)
    table = tables_of(tmp_path, "scabench", [modelled], facts=facts(machine="scali", title="Scali cluster"))["npb-ft"]
    assert reason(cell(table, "Cray T3E", "A", "4")) == "a figure of the Cray T3E; the model is of the Scali cluster"
    assert cell(table, "Scali-1", "A", "4").error is not None


@pytest.mark.parametrize(("per_node", "has_row"), [(1, True), (2, False)])
def test_ranks_that_share_nodes_have_no_row_of_nodes_with_one_rank(
    per_node: int, has_row: bool, tmp_path: Path
) -> None:
    """The report has no figure of six nodes."""
    six = [Made(point(SIM, "ft", 6, 0, **{"class": "A"}), 1e10, measurements=1)]
    hosts = tuple(f"node {rank // per_node}" for rank in range(6))
    record = facts(machine="scali", title="Scali cluster")
    table = tables_of(tmp_path, "scabench", six, facts=record, hosts=hosts)["npb-ft"]
    assert any("6" in cells[:3] for cells in table.rows) == has_row


def test_nodes_of_scali_2_have_two_ranks(tmp_path: Path) -> None:
    made_up = [Made(point(SIM, "ft", 4, 0, **{"class": "A"}), 1e10, measurements=1)]
    record, hosts = facts(machine="scali", title="Scali cluster"), ("node 0", "node 0", "node 1", "node 1")
    table = tables_of(tmp_path, "scabench", made_up, facts=record, hosts=hosts)["npb-ft"]
    # NPB counts 7.1e9 operations in class A.
    assert figure(cell(table, "Scali-2", "A", "2")) == pytest.approx(2 * 7.14e9 / 4 / 1e10 * 1e3, rel=0.01)
    assert reason(cell(table, "Scali-1", "A", "4")) == "not asked for in this run"
    assert [cells[:3] for cells in table.rows if cells[0] == ""] == []


def test_only_the_column_of_the_published_figures_has_errors(tmp_path: Path) -> None:
    """The report's 72 MB/s are the native library's."""
    made_up = [Made(point(f"sim@paragon{way}", "pingpong", 2, 1 << 20), 1e7, 2, 1 << 21) for way in ("", ":raw")]
    models = {one.point.transport: {**RECORD, "machine": "paragon"} for one in made_up}
    table = tables_of(tmp_path, "paragon", made_up, facts={**FACTS, "models": models})["bandwidth"]
    assert [column.title for column in table.columns[-2:]] == ["model", "model, PvmDataRaw, direct"]
    native, raw = table.rows[0][-2:]
    assert isinstance(native, Measured)
    assert isinstance(raw, Measured)
    assert native.error == about(104.8576 / 72 - 1)
    assert (raw.error, raw.published) == (None, None)


@pytest.mark.parametrize("machine", [None, "t3d"])
def test_a_model_of_another_machine_than_the_report_has_ratios(machine: str | None, tmp_path: Path) -> None:
    table = tables_of(tmp_path, "atlas", made(), facts=facts(machine=machine, used=[]))["com-1.1"]
    assert cell(table, "256").error is None
    assert cell(table, "256").ratio == about(50 / 56.9)


def test_conclusions_are_judged_without_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = Made(point(f"{SIM}:boards", "pairs", 4, 256), 84_000, measurements=1)
    hosts = ("node-0", "node-1", "node-2", "node-3", "node-4")
    store_run(
        tmp_path / "r.db",
        "atlas",
        [*made(), more],
        facts=facts(),
        hosts=hosts,
        plan={"virtual": {SIM: True, f"{SIM}:boards": True}},
    )
    text = shown(tmp_path, capsys, "-v")
    assert "sim@gpmimd: holds; far 84.0 us, near 50.0 us" in " ".join(text.split())
    assert "±" not in text
    assert "reproduced" in text
    for part in ("slice_ns 256000", "one event is in flight", "pairs: variant boards", "Com-1.1, bytes 4, 64"):
        assert part in text, part


def test_a_torus_has_hops_and_changes_of_direction(tmp_path: Path) -> None:
    """100 ns and 10 for each hop, 3 for each change of direction: two ranks on each node of a 4 x 2 torus."""
    torus = {"dimensions": [4, 2], "nodes": [rank // 2 for rank in range(16)]}
    points = []
    for source in range(16):
        for target in range(16):
            x, y = abs(source // 2 % 4 - target // 2 % 4), abs(source // 8 - target // 8)
            hops = min(x, 4 - x) + y
            time_ns = 100 + 10 * hops + 3 * (x > 0 and y > 0)
            ends = {
                name: rank for name, rank, default in (("source", source, 0), ("target", target, 1)) if rank != default
            }
            if source != target:
                points.append(Made(point("sim@t3d", "putpong", 16, 8, **ends), time_ns, measurements=1))
    models = {"sim@t3d": {**RECORD, "machine": "t3d", "torus": torus}}
    table = tables_of(tmp_path, "t3d", points, facts={**FACTS, "models": models})["distance"]
    assert [figure(cells[-1]) for cells in table.rows[:3]] == [about(100), about(10), about(3)]


def of_model(value: float, published: float, **more: Any) -> Measured:
    return Measured("us", value, model=True, published=published, **more)


def test_the_largest_error_and_the_median_are_of_either_sign() -> None:
    """A figure that two rows compare counts with the nearer one; a used figure is in neither."""
    twice = Published("atlas", "", "", "", 10.0, "10", "us", "", {})
    rows = [
        ("4", of_model(5.0, 10.0)),
        ("16", of_model(11.0, 10.0)),
        ("64", twice, of_model(12.0, 10.0)),
        ("65", twice, of_model(40.0, 10.0)),
        ("256", of_model(10.1, 10.0, reproduced=True)),
        ("1024", Measured("us", 90.0, published=10.0)),
    ]
    (table,) = errors_table([ClassicTable("a", "A: b", (), tuple(rows)), ClassicTable("c", "C", (), (("4", "5"),))])
    ((title, count, median, largest, reproduced, *of_used),) = table.rows
    assert (title, count, reproduced) == ("A", "3", "1")
    assert (figure(median), figure(largest)) == (about(20), about(50))
    assert list(map(figure, of_used)) == [about(1), about(1)]


@pytest.mark.parametrize(("sizes", "is_plotted"), [(("4", "8"), True), (("4",), False), (("4", "best"), False)])
def test_a_plot_has_two_published_sizes_or_more(sizes: tuple[str, ...], is_plotted: bool) -> None:
    columns = (ClassicColumn("packet size"), ClassicColumn("published", "published"), ClassicColumn("shm", "measured"))
    published = Published("atlas", "", "", "", 10.0, "10", "us", "", {})
    rows = tuple((size, published, Measured("us", 5.0)) for size in sizes)
    plots = plots_of("atlas", [ClassicTable("com-1.1", "One-way", columns, rows)])
    assert [plot.curves for plot in plots] == (
        [{"published": [(4, 10.0), (8, 10.0)], "shm": [(4, 5.0), (8, 5.0)]}] if is_plotted else []
    )
