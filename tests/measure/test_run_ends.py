"""The end of a run, and its continuation: failures stay failures, and lost data is not called stored."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.builders import make_info, make_library, make_point
from tests.cli.support import call_here
from tests.matrix import matrix
from tests.measure.test_run import Silent, command
from tests.shared import Fakes

from hockney.analysis.compare.differences import contention_of
from hockney.machine.activity import Moment
from hockney.measure import run as running
from hockney.measure.plan import Plan
from hockney.measure.recorder import Display, Lab, Recorder
from hockney.model import Point, PointStatus, RunStatus, Warning_
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.suites import Limits
from hockney.worker.catalogue import load
from hockney.worker.points import Skipped


def call(store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call_here(store.parent, *arguments, "--store", str(store))


def test_a_failure_stays_one_when_a_run_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    call(path, "run", "pingpong", "-t", "shm", "--bytes", "8,64,512", "--time", "1ms", "--precision", "0.001%")
    with Store.open(path) as store:  # as if a rank had been killed
        store.set_status(1, Point("shm", "pingpong", 2, 64), PointStatus.FAILED, "rank 1 was killed by SIGKILL")
        store.finish_run(1, RunStatus.PARTIAL)
    again = call(path, "run", "--resume", "--json")
    assert again.returncode == 3, again.stderr
    assert "1 point failed" in " ".join(again.stderr.split())
    ended = json.loads(again.stdout)
    assert (ended["status"], ended["failed_points"]) == ("partial", 1)
    with Store.open(path, readonly=True) as store:
        assert [run.status for run in store.runs()] == [RunStatus.PARTIAL]


P, B, S, F = PointStatus.PRECISE, PointStatus.TIME_UP, PointStatus.SKIPPED, PointStatus.FAILED


@pytest.mark.parametrize(
    ("ends", "stored"),
    [
        ([P, P], (P, "2")),
        ([P, B], (B, "2")),
        ([B, P], (B, "1")),
        ([F, B, F, P], (F, "3")),
        ([PointStatus.STOPPED, S], (S, "2")),
    ],
)
def test_the_worst_end_of_a_point_over_launches_is_stored_with_the_last_of_its_reasons(
    ends: list[PointStatus], stored: tuple[PointStatus, str], store: Store
) -> None:
    recorder = Recorder(store, store.create_run(make_info(), [make_point()]), Display())
    for number, status in enumerate(ends, 1):
        recorder.point_ended(make_point(), status, str(number))
    (row,) = store.points(recorder.run_id)
    assert (row.status, row.reason) == stored


@pytest.mark.parametrize(
    ("ends", "skipped", "before", "status", "failed"),
    [
        ([P, B], [], 0, RunStatus.DONE, 0),
        ([P, S], [], 0, RunStatus.DONE, 0),
        ([P, F], [], 0, RunStatus.PARTIAL, 1),
        ([P, P], [], 2, RunStatus.PARTIAL, 2),
        ([F, F], [], 1, RunStatus.PARTIAL, 3),
        ([S, S], [], 0, RunStatus.PARTIAL, 0),
        ([P], ["tcp"], 0, RunStatus.DONE, 0),
        ([], ["tcp"], 0, RunStatus.PARTIAL, 0),
        ([], [], 0, RunStatus.PARTIAL, 0),
    ],
)
def test_a_run_is_done_if_no_point_failed_and_one_was_measured(
    ends: list[PointStatus], skipped: list[str], before: int, status: RunStatus, failed: int, store: Store
) -> None:
    points = [make_point(8 << at) for at in range(len(ends) + before)]
    plan = Plan("test", (), skipped=tuple(Skipped(make_point(8, name), "no") for name in skipped))
    recorder = Recorder(store, store.create_run(make_info(), points), Display())
    for point in points[len(ends) :]:  # before the run was resumed
        store.set_status(recorder.run_id, point, PointStatus.FAILED, "it was gone")
    for point, end in zip(points, ends, strict=False):
        recorder.point_ended(point, end, None)
    outcome = recorder.finish(plan, RunStatus.DONE, load(["shm"]), goes_on=before > 0)
    assert (outcome.status, outcome.failed) == (status, failed)
    assert store.run(recorder.run_id).status is status
    interrupted = recorder.finish(plan, RunStatus.STOPPED, load(["shm"]), goes_on=before > 0)
    assert interrupted.status is RunStatus.STOPPED


def test_a_run_of_the_harness_alone_is_done(store: Store) -> None:
    """Without results of a transport that was asked for, a run whose harness was measured is not."""
    null, shm = make_point(8, "null"), make_point(8)
    for ends, status in (({null: P}, RunStatus.DONE), ({null: P, shm: S}, RunStatus.PARTIAL)):
        recorder = Recorder(store, store.create_run(make_info(), list(ends)), Display())
        for point, end in ends.items():
            recorder.point_ended(point, end, None)
        assert recorder.finish(Plan("test", ()), RunStatus.DONE, load(["shm"]), goes_on=False).status is status


def test_a_run_whose_points_all_failed_has_nothing_to_resume(tmp_path: Path) -> None:
    """Also while launches are left, which would have no point."""
    path = tmp_path / "r.db"
    call(path, "run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "1ms", "--launches", "2")
    with Store.open(path) as store:
        store.set_status(1, Point("shm", "pingpong", 2, 8), PointStatus.FAILED, "rank 1 was killed by SIGKILL")
        store.finish_run(1, RunStatus.STOPPED)
    again = call(path, "run", "--resume")
    assert again.returncode == 2
    assert "run 1 has nothing left to measure" in again.stderr


def test_a_resumed_run_of_the_harness_alone_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    first = call(path, "run", "ancor", "-t", "shm", "--time", "100ms", "--precision", "0.001%")
    again = call(path, "run", "--resume")
    assert (first.returncode, again.returncode) == (3, 3), again.stderr
    assert "nothing could be measured" in " ".join(again.stderr.split())


@pytest.mark.parametrize("how", matrix(["removed", "moved", "replaced"], short=["replaced"]))
def test_results_that_are_gone_when_a_run_ends_are_not_called_stored(tmp_path: Path, how: str) -> None:
    path = tmp_path / "r.db"
    line = command("run", "barrier", "-t", "pipe", "--time", "2s", "--precision", "0.001%", store=path)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline()  # the run has begun
        if how == "removed":
            path.unlink()
        else:
            path.rename(tmp_path / "moved.db")
        if how == "replaced":
            path.touch()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Saved as" not in said
    assert f"the results file {path} was removed, moved or replaced" in said
    if how != "removed":
        with Store.open(tmp_path / "moved.db", readonly=True) as store:
            assert [run.status for run in store.runs()] == [RunStatus.DONE]


def test_a_damaged_results_file_is_wrong_usage_also_for_resume(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        store.create_run(make_info(), [make_point()])
        (root,) = store.db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'run'").fetchone()
        (page_bytes,) = store.db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)
    done = [call(path, *words) for words in (["runs"], ["run", "--resume"], ["run", "--resume", "1"])]
    assert [one.returncode for one in done] == [2] * 3
    assert all("it is damaged" in one.stderr for one in done)


def test_contention_in_a_resumed_run_carries_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, when: str, **__: object) -> list[Warning_]:
        return [Warning_("load", "machine", f"Other programs used 3.0 CPUs {when}.", "Stop them.")]

    monkeypatch.setattr(running, "warnings_before", busy)
    with Store.open(tmp_path / "r.db") as store:
        catalogue, plan = (
            load(libraries=()),
            Plan("test", (make_point(8), make_point(64)), limits=Limits(precision=1e-6, time_s=0.1)),
        )
        running.measure(plan, Lab(catalogue, store, Silent(), "test"))
        running.resume("last", Lab(catalogue, store, Silent()))
        said = [warning.cause.partition("CPUs ")[2] for warning in store.run(1).warnings if warning.kind == "load"]
    assert said == ["when the run began.", "when the run went on."]


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs keep 1.5 CPUs busy while jobs are up."""
    monkeypatch.setattr(running, "Watch", lambda *_: SimpleNamespace(read=lambda: Moment(1.0, busy_cpus=1.5)))


@pytest.mark.usefixtures("others")
def test_the_load_of_other_programs_is_a_warning(tmp_path: Path) -> None:
    """Of the launches of a run, and again of those that are added."""
    path, point = tmp_path / "r.db", make_point(8)
    catalogue, plan = load(libraries=()), Plan("test", (point,), limits=Limits(precision=1e-6, time_s=0.1, launches=3))
    with Store.open(path) as store:
        running.measure(plan, Lab(catalogue, store, Silent(), "test"))
        running.add_launches(1, [point], 2, 0.1, Lab(catalogue, store, Silent()))
        disturbed = [difference.cause for difference in contention_of(Run(store, 1))]
    shown = call(path, "show", "1", "--json")
    causes = [warning["cause"] for warning in json.loads(shown.stdout)["warnings"] if warning["kind"] == "others"]
    assert causes == [
        "Other programs used 1.5 CPUs during 3 of 3 launches.",
        "Other programs used 1.5 CPUs during 2 of 2 more launches.",
    ]
    assert {*causes} <= {*disturbed}


@pytest.mark.usefixtures("others")
def test_the_load_of_other_programs_is_a_warning_before_and_after_a_stop(tmp_path: Path) -> None:
    catalogue, plan = load(libraries=()), Plan("test", (make_point(8),), limits=Limits(precision=1e-6, time_s=60.0))
    with Store.open(tmp_path / "r.db") as store:
        running.measure(plan, Lab(catalogue, store, Silent(stop_after_rounds=2), "test"))
        running.resume("last", Lab(catalogue, store, Silent(stop_after_rounds=2)))
        causes = [warning.cause for warning in store.run(1).warnings if warning.kind == "others"]
    assert [cause.partition("CPUs ")[2] for cause in causes] == ["while the run measured.", "while the run went on."]


def test_a_launcher_that_never_answers_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes
) -> None:
    """Not again for another transport of its library, another number of ranks or another launch."""
    monkeypatch.setattr("hockney.worker.session.GRACE_S", 0.5)
    program = fake(tmp_path / "mpiexec", "exec sleep 60")
    catalogue = load(libraries=())
    library = make_library("mpi@mpich-1", "mpich", program)
    names = ("mpi@mpich-1", "mpi@mpich-1:sync")
    ready = {name: replace(catalogue.transports["shm"], name=name, library=library) for name in names}
    catalogue = replace(catalogue, transports={**catalogue.transports, **ready})
    points = [Point(name, "pingpong", ranks, 8) for name in names for ranks in (2, 4)]
    plan = Plan("test", (*points, make_point(8)), limits=Limits(time_s=1.0, launches=3, start_limit_s=1))
    with Store.open(tmp_path / "r.db") as store:
        outcome = running.measure(plan, Lab(catalogue, store, Silent(), "test"))
        rows = {row.point: row for row in store.points(1)}
    assert fake.starts(program) == 1
    assert outcome.failed == len(points)
    for point in points:
        assert "mpiexec did not start the ranks: no answer within 1 s" in str(rows[point].reason)
    assert rows[make_point(8)].status is not PointStatus.FAILED
