"""The values of the page's charts, on runs whose times are known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.compare.nights import DAY_S, FACTS, FIRST_S, TCP, night, slower, step_of_tcp
from tests.analysis.health.made import store_health
from tests.builders import run_sql, set_columns
from tests.report.cells import about
from tests.report.html.made import material, pingpong
from tests.report.runs import Made, options, store_run

from hockney.analysis.health import health_of
from hockney.errors import DamagedRowWarning
from hockney.model import Point
from hockney.render.drawing import drawn_view
from hockney.report.charts import View, chart_json
from hockney.report.documents.pairs import host_values
from hockney.report.page.material import material_of
from hockney.report.page.views import cpu_chart, distribution_chart, history_chart, layers_chart, ranks_chart
from hockney.results.runs import open_results
from hockney.results.store import Store
from hockney.results.store.lock import alone


def bars(view: View) -> dict[str, dict[str, float]]:
    """The values of each layer by the name of their bar."""
    return {line.name: {view.names[int(y)]: x for x, y, *_ in line.points} for line in view.lines}


def test_the_bars_of_cpu_time_are_shares_of_each_rank(tmp_path: Path) -> None:
    """Of the smallest and the largest size that most transports have, without the empty message."""
    made = [pingpong("shm", size, cpu_share=(1.0, 0.25)) for size in (0, 8, 64, 512, 4096)]
    made += [pingpong("tcp", size, cpu_share=(0.5, 0.125)) for size in (0, 8, 64, 512)]
    made += [pingpong("unix", size, cpu_share=(0.5, 0.125)) for size in (0, 8, 64)]
    with material(tmp_path, *made) as known:
        chart = cpu_chart(known)
    assert [view.name for view in chart.views] == ["pingpong of 8 B", "pingpong of 512 B"]
    shares = bars(chart.views[0])
    assert shares["user"] == pytest.approx(
        {"shm, rank 0": 1.0, "shm, rank 1": 0.25, "tcp, rank 0": 0.5, "tcp, rank 1": 0.125,
         "unix, rank 0": 0.5, "unix, rank 1": 0.125}
    )  # fmt: skip
    assert {*shares["system"].values()} == {0.0}


def test_cpu_time_is_of_the_state_that_tables_show(tmp_path: Path) -> None:
    far = pingpong("shm", cpu_share=(0.5, 0.5), measurements=4, floor_ns=160.0)
    with material(tmp_path, replace(far, cpu_share=(1.0, 0.75), measurements=9, floor_ns=30.0, then=far)) as known:
        chart = cpu_chart(known)
    assert bars(chart.views[0])["user"] == pytest.approx({"shm, rank 0": 1.0, "shm, rank 1": 0.75})


def test_layers_are_stacked_on_those_below_and_ordered_by_their_sum(tmp_path: Path) -> None:
    """At the smallest size that most have; threads adds to shm, and shm to the floor of 30 ns."""
    made = [pingpong("threads", 16, 75.0), pingpong("shm", 16, 50.0), pingpong("shm", 64, 70.0)]
    with material(tmp_path, *made) as known:
        chart = layers_chart(known)
    assert chart.title.endswith("a message of 16 B")
    (view,) = chart.views
    assert (view.name, view.names) == ("on shared memory", ["shm", "threads"])
    assert bars(view) == {
        "floor": pytest.approx({"shm": 30.0, "threads": 30.0}),
        "shm": pytest.approx({"shm": 20.0, "threads": 20.0}, rel=0.01),
        "threads": pytest.approx({"threads": 25.0}, rel=0.01),
    }


def test_a_layer_that_is_faster_than_the_one_below_is_its_own_bar(tmp_path: Path) -> None:
    with material(tmp_path, pingpong("unix", 8, 900.0), pingpong("tcp", 8, 800.0), pingpong("pvm", 8, 1000.0)) as known:
        chart = layers_chart(known)
    (view,) = chart.views
    assert view.name == "on unix"
    assert bars(view) == {"unix": {"unix": pytest.approx(900.0), "pvm": pytest.approx(900.0)},
                          "pvm": {"pvm": pytest.approx(100.0)}}  # fmt: skip


@pytest.mark.parametrize(("ranks", "is_drawn"), [((2, 4, 8), True), ((2, 4), True), ((4,), False)])
def test_scaling_needs_two_numbers_of_ranks(tmp_path: Path, ranks: tuple[int, ...], is_drawn: bool) -> None:
    made = [Made(Point("shm", "barrier", n, 0), 100.0 * n, timed="slowest") for n in ranks]
    with material(tmp_path, *made) as known:
        chart = ranks_chart(known)
    assert bool(chart.views) == is_drawn
    if is_drawn:
        (view,) = chart.views
        assert view.name == "barrier"
        assert {x: y for x, y, *_ in view.lines[0].points} == pytest.approx({n: 100.0 * n for n in ranks}, rel=1e-3)


@pytest.mark.parametrize(("batch", "measurements", "is_drawn"), [(1, 34, True), (2, 34, False), (1, 33, False)])
def test_distributions_are_of_100_single_repetitions_and_more(
    tmp_path: Path, batch: int, measurements: int, is_drawn: bool
) -> None:
    """A measurement has three samples."""
    with material(tmp_path, pingpong("shm", 1024, 5000.0, batch=batch, measurements=measurements)) as known:
        chart = distribution_chart(known)
    assert bool(chart.views) == is_drawn
    if is_drawn:
        shares = [share for _, share, *_ in chart.views[0].lines[0].points]
        assert shares[-1] <= 1 - 1 / (3 * measurements) < shares[-1] + 0.011


def test_a_point_whose_samples_are_all_damaged_is_in_no_chart(tmp_path: Path) -> None:
    made = pingpong("shm", 1024, 5000.0, batch=1, measurements=40, cpu_share=(1.0, 1.0))
    with material(tmp_path, made) as known:
        assert cpu_chart(known).views
        assert distribution_chart(known).views
    run_sql(tmp_path / "r.db", "UPDATE measurement_samples SET elapsed_ns = x'01aa'")
    with open_results(tmp_path / "r.db") as results:
        with pytest.warns(DamagedRowWarning, match="damaged and left out|has therefore no figure"):
            damaged = material_of(results, results.run(), [])
        assert cpu_chart(damaged).views == distribution_chart(damaged).views == []


def test_at_most_twelve_points_have_a_distribution(tmp_path: Path) -> None:
    """Evenly chosen among 14 points of one transport: every second one."""
    sizes = [1 << power for power in range(14)]
    points = [Point("shm", "oneway", 2, size, options(window=16)) for size in sizes]
    made = [Made(point, 5000.0 + point.bytes, 16, 16 * point.bytes, batch=1, measurements=40) for point in points]
    with material(tmp_path, *made) as known:
        chart = distribution_chart(known)
    assert len(chart.views) == 7
    assert chart.views[1].name == "oneway window=16 of 4 B"


def test_history_is_of_times_and_rates_in_their_units(tmp_path: Path) -> None:
    """1 MiB in 524288 ns, in three runs, of which one has another label."""
    stream = Made(Point("shm", "oneway", 2, 1 << 20, options(window=16)), 524288.0, 16, 16 << 20)
    for label, started in (("weekly", 1000.0), ("other", 2000.0)):
        store_run(tmp_path / "r.db", "mine", [pingpong("shm"), stream], label=label, started_unix_s=started)
    made = (pingpong("shm"), pingpong("tcp"), stream)  # tcp is new
    with material(tmp_path, *made, label="weekly", started_unix_s=3000.0) as known:
        chart = history_chart(known)
    times, rates = chart.views
    assert (times.y or chart.y).unit == "ns"
    assert [point[:2] for point in times.lines[0].points] == [(1000.0, about(50.0)), (3000.0, about(50.0))]
    assert (rates.y or chart.y).unit == "bytes/s"
    assert [point[:2] for point in rates.lines[0].points] == [(1000.0, about(2e9)), (3000.0, about(2e9))]


def test_a_run_that_is_being_measured_is_not_in_the_history_yet(tmp_path: Path) -> None:
    for started in (1000.0, 2000.0, 3000.0):
        store_run(tmp_path / "r.db", "mine", [pingpong("shm")], label="weekly", started_unix_s=started)
    with Store.open(tmp_path / "r.db") as store:
        set_columns(store.db, "run", "status = CASE id WHEN 2 THEN 'running' ELSE status END")
    with alone(tmp_path / "r.db", 2), open_results(tmp_path / "r.db") as results:
        (view,) = history_chart(material_of(results, results.run(), [])).views
    assert [point[0] for point in view.lines[0].points] == [1000.0, 3000.0]


def test_changes_of_the_history_are_labelled_and_ringed_at_their_dates(tmp_path: Path) -> None:
    """A new kernel after ten nights; another machine with the same label is not in the chart of this one."""
    with Store.open(tmp_path / "r.db") as store:
        for number in range(8):
            night(store, number, slower([TCP], 3.0), label="my nights", facts={**FACTS, "hostname": "there"})
        step_of_tcp(store, label="my nights")
    with open_results(tmp_path / "r.db") as results:
        chart, other = (history_chart(material_of(results, results.run(run), [])) for run in ("last", "1"))
    assert (chart.title, other.title) == tuple(f"Over time: {runs} runs labelled my nights" for runs in (20, 8))
    assert "run 18" not in other.note
    assert "hockney history --label 'my nights'`" in other.note
    (view,) = chart.views
    lines = {line.name: line for line in view.lines}
    (label,) = filter(None, lines["tcp"].labels)
    told = (
        r"\+2\d\.\d % \(\+1\d to \+2\d\); 20\d\d-\d\d-\d\d \d\d:\d\d, run 18 -> run 19: kernel: Linux 6.1 -> Linux 6.6"
    )
    assert re.fullmatch(told, label)
    assert lines["tcp"].labels[10] == label
    assert not any(lines["shm"].labels)
    assert "run 18 -> run 19: kernel: Linux 6.1 -> Linux 6.6. " in chart.note
    assert "1 change in 1 of 2 series over 20 runs" in chart.note
    assert "machines" not in chart.note
    for line in chart_json(chart)["views"][0]["lines"]:
        assert [point[0] for point in line["points"]] == [FIRST_S + number * DAY_S for number in range(20)]
    dots = [mark for mark in drawn_view(chart, view, {"tcp": 1}).marks if mark.kind == "dot"]
    (ring,) = (mark for mark in dots if mark.is_hollow)
    assert ring.points == [mark.points for mark in dots if mark.color == "c1"][10]


def test_a_label_of_one_run_has_no_history(tmp_path: Path) -> None:
    with material(tmp_path, pingpong("shm"), label="weekly") as known:
        assert history_chart(known).views == []


@pytest.mark.parametrize(("unmeasured", "missing"), [((), 0), ((2,), 4)])
def test_pairs_of_hosts_without_a_value_are_counted_in_both_directions(
    tmp_path: Path, unmeasured: tuple[int, ...], missing: int
) -> None:
    """Of four hosts two pairs meet in each round."""
    store_health(tmp_path / "r.db", 4, unmeasured=unmeasured)
    with open_results(tmp_path / "r.db") as results:
        made = list(host_values(health_of(results.run())))
    assert [(matrix.unit, matrix.missing) for matrix in made] == [("bytes/s", missing), ("ns", missing)]
    assert [np.count_nonzero(np.isnan(matrix.values)) for matrix in made] == [4 + missing] * 2
