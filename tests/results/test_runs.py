"""`import hockney`: the results as a notebook or a script sees them."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.builders import (
    make_info,
    make_launch,
    make_measurement,
    make_point,
    measurements_with_medians,
)
from tests.shared import finished

import hockney
from hockney.errors import StoreError, UsageError
from hockney.model import Measurement, PointStatus, RunStatus, Warning_
from hockney.report.classic.configuration import configuration_tables
from hockney.results.figures import main_state
from hockney.results.runs import Run
from hockney.results.store import Store

ROOT = Path(__file__).resolve().parents[2]
WARNING = Warning_("governor", "cpu0", "The governor is powersave.", "Try performance.")
POINTS = [
    make_point(8, "shm"),
    make_point(64, "shm"),
    make_point(8, "mpi@mpich-4.3"),
    make_point(8, "mpi@openmpi-4.1:rma"),
    make_point(8, "shm", options=(("window", "4"),)),
    make_point(8, "tcp", ranks=4),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two runs; the second one has measurements in two states of the machine."""
    where = tmp_path / "results.db"
    with Store.open(where) as store:
        store.create_run(make_info("old"), POINTS[:1])
        run_id = store.create_run(make_info("new"), POINTS)
        launch_id = store.add_launch(run_id, make_launch())
        other_id = store.add_launch(run_id, make_launch("mpi@mpich-4.3", oversubscribed=True))
        for round_, floor_ns in enumerate([(27.0, 28.0), (184.0, 190.0)]):
            scale = 1 + 2 * round_
            measurements = [
                make_measurement(POINTS[0], np.array([[200, 210, 220], [1, 2, 3]]) * scale, launch_id=launch_id),
                make_measurement(POINTS[1], np.array([[400, 440], [1, 2]]) * scale, launch_id=launch_id, batch=2),
                make_measurement(POINTS[2], np.array([[600], [1]]) * scale, launch_id=other_id),
            ]
            store.write_round(run_id, [moved(measurement, round_, floor_ns) for measurement in measurements])
        store.set_status(run_id, POINTS[0], PointStatus.PRECISE)
        store.set_status(run_id, POINTS[5], PointStatus.SKIPPED, "there are 2 CPUs only")
        store.add_warning(run_id, WARNING)
        store.finish_run(run_id, RunStatus.DONE)
    return where


def moved(measurement: Measurement, round_: int, floor_ns: tuple[float, float]) -> Measurement:
    return dataclasses.replace(measurement, round=round_, floor_ns=floor_ns)


@pytest.fixture
def results(path: Path) -> Iterator[hockney.Results]:
    with hockney.open(path) as opened:
        yield opened


def test_the_library_of_a_transport_is_that_of_its_jobs_of_two_ranks(store: Store) -> None:
    """One rank alone takes another way than two, and jobs that did not begin have no name."""
    run_id = store.create_run(make_info(), POINTS)
    for transport, ranks, library in (
        ("mpi@a", 2, "Open MPI 4.1.4 (ob1:vader:cma)"),
        ("mpi@a", 4, "Open MPI 4.1.4 (ob1:vader)"),
        ("mpi@a", 1, "Open MPI 4.1.4 (ob1:tcp)"),
        ("mpi@a", 2, ""),
        ("mpi@b", 4, "Open MPI 4.1.4 (ob1:vader)"),
        ("mpi@b", 1, "Open MPI 4.1.4 (ob1:tcp)"),
    ):
        store.add_launch(run_id, make_launch(transport, ranks=ranks, library=library))
    run = Run(store, run_id)
    assert run.libraries == {"mpi@a": "Open MPI 4.1.4 (ob1:vader:cma)", "mpi@b": "Open MPI 4.1.4 (ob1:vader)"}
    of_report = {here for table in configuration_tables("atlas", run) for _, _, here in table.rows}
    assert "Open MPI 4.1.4 (ob1:vader); Open MPI 4.1.4 (ob1:vader:cma)" in of_report


@pytest.fixture
def run(results: hockney.Results) -> hockney.Run:
    return results.run()


# ---- the package -----------------------------------------------------------------------------------------------------


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = finished([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "src")}, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    heavy = {"numpy", "scipy", "pydantic", "sqlite3", "platformdirs", "click", "psutil"}
    assert loaded_by("import hockney; hockney.__version__").isdisjoint(heavy)


def test_listing_runs_loads_no_numpy(path: Path) -> None:
    assert loaded_by(f"import hockney; hockney.open({str(path)!r}).runs()").isdisjoint({"numpy", "scipy", "pydantic"})


def test_public_names() -> None:
    assert set(hockney.__all__) <= set(dir(hockney))
    for name in hockney.__all__:
        assert getattr(hockney, name) is not None
    assert hockney.StoreError is StoreError
    assert hockney.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match="module 'hockney' has no attribute 'opne'"):
        hockney.opne  # noqa: B018


# ---- results ---------------------------------------------------------------------------------------------------------


def test_open_names_its_file(results: hockney.Results, path: Path) -> None:
    assert results.path == path


def test_open_takes_the_users_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(path))
    with hockney.open() as results:
        assert [run.label for run in results.runs()] == ["old", "new"]


def test_open_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there are no results in"):
        hockney.open(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("reference", "label"), [("last", "new"), ("last~1", "old"), (1, "old"), ("new", "new")])
def test_run_by_reference(results: hockney.Results, reference: str | int, label: str) -> None:
    assert results.run(reference).label == label


def test_unknown_run(results: hockney.Results) -> None:
    with pytest.raises(UsageError, match=r"there is no run 7 in "):
        results.run(7)


# ---- a run -----------------------------------------------------------------------------------------------------------


def test_run_has_its_facts(run: hockney.Run) -> None:
    assert (run.id, run.label, run.status) == (2, "new", RunStatus.DONE)
    assert run.info == make_info("new")
    assert run.facts["cpu"] == {"model": "Ω-9", "cores": 2}
    assert run.warnings == (WARNING,)
    assert [launch.transport for launch in run.launches.values()] == ["shm", "mpi@mpich-4.3"]
    assert run.finished_unix_s is not None
    assert repr(run) == "<hockney run 2 new: hockney quick>"


def test_series_are_in_the_order_of_the_plan(run: hockney.Run) -> None:
    assert [series.point for series in run.series] == POINTS
    assert repr(run.series[0]) == "<hockney series pingpong of 8 B on shm, 2 ranks: precise>"


def test_find_narrows_down(run: hockney.Run) -> None:
    def sizes(**criteria: object) -> list[int]:
        return [run.series.index(series) for series in run.find(**criteria)]  # type: ignore[arg-type]

    assert sizes() == [0, 1, 2, 3, 4, 5]
    assert sizes(transport="shm") == [0, 1, 4]
    assert sizes(transport="shm", options={}) == [0, 1]
    assert sizes(transport="shm", options={"window": "4"}) == [4]
    assert sizes(transport="mpi") == [2]  # as -t has it: no variant is a plain one
    assert sizes(transport="mpi*") == [2, 3]
    assert sizes(transport="mpi@openmpi:rma") == sizes(transport="mpi:*") == [3]
    assert sizes(transport="mpi@mpich") == [2]
    assert sizes(transport="mpi@mpich-4.3") == [2]
    assert sizes(ranks=4) == [5]
    assert sizes(bytes=64, pattern="pingpong") == [1]
    assert sizes(transport="mp") == []
    assert run.select(transport="shm", pattern="pingpong", bytes=64) is run.series[1]


def test_select_of_several_says_which(run: hockney.Run) -> None:
    with pytest.raises(UsageError) as caught:
        run.select(transport="mpi*")
    assert str(caught.value) == (
        "several match in run 2: pingpong of 8 B on mpi@mpich-4.3, 2 ranks; pingpong of 8 B on mpi@openmpi-4.1:rma, "
        "2 ranks. Ask for one of them"
    )


def test_select_of_none_lists_known_names(run: hockney.Run) -> None:
    with pytest.raises(UsageError) as caught:
        run.select(transport="udp")
    assert str(caught.value) == (
        "no series of run 2 matches; it has transport: mpi@mpich-4.3, mpi@openmpi-4.1:rma, shm, tcp; "
        "pattern: pingpong; bytes: 8, 64"
    )


def test_curve_gives_the_times_of_all_sizes_as_arrays(run: hockney.Run) -> None:
    curve = run.curve("pingpong", "shm", options={}, state="near")
    assert curve.sizes.dtype == np.int64
    assert curve.sizes.tolist() == [8, 64]
    assert curve.times.tolist() == [105.0, 105.0]
    assert (curve.low.tolist(), curve.high.tolist()) == ([100.0] * 2, [110.0] * 2)  # the samples of one measurement
    assert (curve.state, curve.states) == ("near", ("near", "near"))
    assert run.curve("pingpong", "shm", options={}, state="far").times.tolist() == [315.0, 315.0]
    both = run.curve("pingpong", "shm", options={})  # too few in one state
    assert (both.state, both.low.tolist(), both.high.tolist()) == ("several states", [105.0] * 2, [315.0] * 2)
    skipped = run.curve("pingpong", "tcp")
    assert [part.shape for part in (skipped.sizes, skipped.times, skipped.low, skipped.high)] == [(0,)] * 4


def test_curve_has_the_intervals_of_the_uncontended_state_with_most_of_them(tmp_path: Path) -> None:
    points = [make_point(size) for size in (64, 8)]
    with Store.open(tmp_path / "r.db") as store:
        number = store.create_run(make_info(), points)
        store.add_launch(number, make_launch())
        for point in points:
            near = measurements_with_medians([80, 90, 100, 100, 110, 125], point, floor_ns=(27.0, 28.0))
            far = measurements_with_medians([300] * 3, point, floor_ns=(184.0, 190.0))
            store.write_round(number, [*near, *far])
    with hockney.open(tmp_path / "r.db") as results:
        curve = results.run().curve("pingpong", "shm")
        time = results.run().series[0].figures()[0].time
    assert curve.sizes.tolist() == [8, 64]
    assert (curve.low.tolist(), curve.high.tolist()) == ([time.low] * 2, [time.high] * 2)
    assert (curve.times.tolist(), curve.state) == ([100.0] * 2, "near")


@pytest.mark.parametrize(
    ("points", "chosen"),
    [
        ([{"near": 20, "near, contended": 60, "far": 10}], "near"),
        ([{"near": 10, "far": 12, "near, contended": 60}], "far"),
        ([{"near": 10, "near, contended": 60}, {"near": 1, "near, contended": 60}], "near"),  # half are enough
        ([{"near": 5, "near, contended": 60}], "near, contended"),  # too few for an interval
        ([{"near": 10, "far, contended": 9}, *[{"near": 1, "far, contended": 9}] * 2], "far, contended"),
        ([*[{"near": 6}] * 3, {"far": 30}], "near"),  # six make an interval
        ([{"mixed": 90, "far, contended": 2}], "far, contended"),
        ([{"mixed": 3}], "mixed"),
        ([{}], None),
    ],
)
def test_main_state_is_the_uncontended_one_with_most_measurements(
    points: list[dict[str, int]], chosen: str | None
) -> None:
    assert main_state(points) == chosen


@pytest.mark.parametrize(
    ("pattern", "transport", "said"),
    [
        ("pingpong", "shm", "several match in run 2: pingpong on shm, 2 ranks; pingpong window=4 on shm, 2 ranks"),
        ("barrier", "shm", "no curve of run 2 matches; it has transport: "),
    ],
)
def test_curve_is_refused_where_none_or_several_match(
    run: hockney.Run, pattern: str, transport: str, said: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        run.curve(pattern, transport)
    with pytest.raises(UsageError, match="no figure of state 'nera': there are far; near"):
        run.curve("pingpong", "shm", options={}, state="nera")


@pytest.mark.parametrize(("where", "more"), [({"transport": "shm"}, 0), ({}, 1)])
def test_three_of_the_series_that_match_are_named(run: hockney.Run, where: dict[str, str], more: int) -> None:
    """Three are on shm."""
    with pytest.raises(UsageError, match="several match in run 2: ") as refused:
        run.select(**where)
    named = str(refused.value).partition("several match in run 2: ")[2].partition(". Ask")[0].split("; ")
    assert (len(named), named.count("…")) == (3 + more, more)


# ---- a series --------------------------------------------------------------------------------------------------------


def test_series_has_its_samples(run: hockney.Run) -> None:
    series = run.select(transport="shm", bytes=64)
    first, second = series.elapsed_ns
    assert first.dtype == np.int64
    assert first.tolist() == [[400, 440], [1, 2]]
    assert second.tolist() == [[1200, 1320], [3, 6]]
    assert series.times_ns.tolist() == [100.0, 110.0, 300.0, 330.0]  # over batch 2 x divisor 2
    assert [measurement.round for measurement in series.measurements] == [0, 1]


def test_series_knows_its_states(run: hockney.Run) -> None:
    series = run.series[0]
    assert [state.name for state in series.states] == ["near", "far"]
    assert [(figure.state, figure.time.value) for figure in series.figures()][:2] == [("near", 105.0), ("far", 315.0)]


def test_series_knows_how_it_ended(run: hockney.Run) -> None:
    assert (run.series[0].status, run.series[0].reason) == (PointStatus.PRECISE, None)
    assert (run.series[5].status, run.series[5].reason) == (PointStatus.SKIPPED, "there are 2 CPUs only")


def test_series_without_samples_is_empty(run: hockney.Run) -> None:
    series = run.series[5]
    assert (series.measurements, series.elapsed_ns, series.states, series.launches) == ((), [], (), ())
    assert series.times_ns.shape == (0,)
    assert series.figures() == []
    assert not series.oversubscribed


def test_series_names_its_launches(run: hockney.Run) -> None:
    assert run.series[0].launches == (make_launch(),)
    assert not run.series[0].oversubscribed
    assert run.series[2].oversubscribed


def test_run_may_be_read_while_it_is_measured(path: Path) -> None:
    with hockney.open(path) as results, Store.open(path) as store:
        run = results.run()
        series = run.series[0]
        assert run.series[1].figures()  # the states are known now
        store.write_round(run.id, [make_measurement(POINTS[0], round_=2)])
        assert [state.name for state in series.states] == ["near", "far", "unknown"]
        assert len(series.figures()) == 3
