"""The start of a run: warnings of present conditions with a usable remedy, and a stop before it measures."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.builders import make_info, make_launch, make_library, make_measurement, make_placement, make_point

from hockney.cli import execute
from hockney.errors import UsageError
from hockney.machine.facts import facts
from hockney.measure import run as running
from hockney.measure.plan import Plan
from hockney.measure.recorder import Display, Lab, Recorder
from hockney.measure.sampler import Progress
from hockney.measure.warnings import Tally, host_warnings, steal_warning
from hockney.model import Measurement, RunStatus, Warning_
from hockney.results.store import Store, StoredPoint
from hockney.results.store.lock import alone
from hockney.suites import Limits
from hockney.worker.catalogue import Catalogue
from hockney.worker.points import Skipped


@pytest.mark.parametrize(
    ("transport", "hosts", "warned"), [("tcp", (), True), ("shm", (), False), ("tcp", ("localhost",), False)]
)
def test_loopback_warnings_name_the_transports_on_it(
    catalogue: Catalogue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    hosts: tuple[str, ...],
    warned: bool,
) -> None:
    of_bbr = Warning_("congestion", "tcp", "It is bbr.", "Take another.")
    monkeypatch.setenv("HOCKNEY_RSH", """sh -c 'exec sh -c "$1"'""")  # leads to this host
    monkeypatch.setattr(running, "warnings_before", lambda *_, **__: [of_bbr])
    plan = Plan("test", (make_point(8, transport),), placement=make_placement(hosts), limits=Limits(time_s=0.3))
    with Store.open(tmp_path / "r.db") as store:
        running.measure(plan, Lab(catalogue, store, Display(), "test"))
        assert (of_bbr in store.run(1).warnings) is warned


def counted(its_id: str, yields: int | None, *, batch: int = 10, **more: Any) -> Measurement:
    """Three samples of a batch, in which rank 0 yields this often; None: nobody counts."""
    counters = {} if yields is None else {"yields": (float(yields), 1e9)}
    return make_measurement(make_point(transport=its_id, **more), batch=batch, counters=counters)


def yield_warnings(
    catalogue: Catalogue, *measurements: Measurement, environment: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Warning_]:
    """By library: those of two installed MPIs and of a wheel."""
    known = {}
    for its_id, kind, is_wheel in (
        ("mpi@mpich-5", "mpich", True),
        ("mpi@mpich-4", "mpich", False),
        ("mpi@openmpi-4", "openmpi", False),
    ):
        library = make_library(its_id, kind, is_wheel=is_wheel)
        known[its_id] = replace(catalogue.transports["shm"], name=its_id, library=library)
    tally = Tally()
    for measurement in measurements:
        tally.add(measurement)
    warnings = list(tally.warnings(replace(catalogue, transports=known), environment))
    assert {warning.kind for warning in warnings} <= {"yield"}
    return {warning.subject: warning for warning in warnings}


def test_the_remedy_for_a_yielding_library_is_one_that_works(catalogue: Catalogue) -> None:
    yielding = [counted(its_id, 240) for its_id in ("mpi@mpich-5", "mpi@openmpi-4")]
    cause = "calls sched_yield in round trips of short messages."
    for value, remedy in (
        (None, "Set the library to spin while it waits; its manual has the variable."),
        ("0", "Set the library to spin while it waits; its manual has the variable."),
        ("1", "Unset OMPI_MCA_mpi_yield_when_idle, or set it to 0."),
    ):
        environment = {} if value is None else {"OMPI_MCA_mpi_yield_when_idle": value}
        warnings = yield_warnings(catalogue, *yielding, environment=environment)
        assert {name: warning.cause for name, warning in warnings.items()} == {
            name: f"{name} {cause}" for name in ("mpi@mpich-5", "mpi@openmpi-4")
        }
        assert warnings["mpi@openmpi-4"].remedy == remedy
        # Of the others it names those that do not yield.
        assert warnings["mpi@mpich-5"].remedy.startswith("Use mpi@mpich-4: no setting of the PyPI wheel")
    every = yield_warnings(catalogue, *yielding, counted("mpi@mpich-4", 240))
    assert every["mpi@mpich-5"].remedy.startswith("Use another MPI (")


@pytest.mark.parametrize(
    ("more", "yields", "warned"),
    [
        ({}, 15, True),  # half a call in a round trip
        ({}, 14, False),
        ({}, 0, False),
        ({}, None, False),
        ({"size_bytes": 1024}, 240, True),
        ({"size_bytes": 1025}, 240, False),
        ({"pattern": "oneway"}, 240, False),
    ],
)
def test_a_library_yields_if_it_calls_sched_yield_in_round_trips_of_short_messages(
    catalogue: Catalogue, more: dict[str, Any], yields: int | None, *, warned: bool
) -> None:
    """However much of its time the kernel calls its own: that is of the rank's whole life, the library's start too."""
    measurement = replace(counted("mpi@openmpi-4", yields, **more), cpu_system_ns=(10**9, 0), wall_ns=(10**9, 10**9))
    assert bool(yield_warnings(catalogue, measurement)) is warned


def test_oversubscribed_ranks_should_yield(catalogue: Catalogue, store: Store) -> None:
    library = make_library("mpi@openmpi-4")
    known = {library.id: replace(catalogue.transports["shm"], name=library.id, library=library)}
    for oversubscribed in (True, False):
        run_id = store.create_run(make_info(), [make_point(transport=library.id)])
        for yields in (240, 270):  # measured, and resumed
            recorder = Recorder(store, run_id, Display())
            launch_id = recorder.started(make_launch(library.id, oversubscribed=oversubscribed))
            recorder.measured(replace(counted(library.id, yields), launch_id=launch_id))
            recorder.finish(
                Plan("test", ()), RunStatus.DONE, replace(catalogue, transports=known), goes_on=yields > 240
            )
        assert [warning.kind for warning in store.run(run_id).warnings].count("yield") == (not oversubscribed)


@pytest.mark.parametrize(
    ("stolen", "said"),
    [
        ((0.0, None, 0.04), ""),
        ((0.0, None, 0.06), "While this run measured, the hypervisor took 3% of the CPU time."),
        ((None,), ""),
    ],
)
def test_steal_is_averaged_over_the_measurements_that_know_it(
    stolen: tuple[float | None, ...], said: str, store: Store
) -> None:
    run_id = store.create_run(make_info(), [make_point()])
    launch_id = store.add_launch(run_id, make_launch())
    store.write_round(
        run_id, [make_measurement(launch_id=launch_id, round_=at, steal=s) for at, s in enumerate(stolen)]
    )
    assert [warning.cause for warning in steal_warning(store, run_id)] == [said] * bool(said)


def test_a_host_with_another_version_or_without_the_library_is_named(catalogue: Catalogue) -> None:
    library = make_library("mpi@mpich-4", "mpich", Path("/usr/bin/mpiexec"))
    info = replace(catalogue.transports["shm"], name=library.id, library=library)
    versions = {"n1": "4.0.2", "n2": "4.0.2", "n3": "4.1", "n4": None}
    hosts = [
        {"name": name, "libraries": {library.id: has, "unused": name}, "broken": {}} for name, has in versions.items()
    ]
    warnings = list(host_warnings(hosts, replace(catalogue, transports={library.id: info})))
    assert [(warning.subject, warning.cause) for warning in warnings] == [
        ("n3", "On n3 /usr/bin/mpiexec is of version 4.1; n1 has 4.0.2."),
        ("n4", "On n4 there is no working /usr/bin/mpiexec; n1 has 4.0.2."),
    ]


def test_ctrl_c_before_the_first_measurement_leaves_a_run_that_can_be_resumed(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.db"
    plan = Plan("test", (make_point(8), make_point(64)), limits=Limits(precision=0.9, time_s=0.3))
    with Store.open(path) as store, monkeypatch.context() as patched:  # it comes while other programs are watched
        patched.setattr(running, "warnings_before", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
        outcome = running.measure(plan, Lab(catalogue, store, Display(), "test"))
    assert (outcome.status, outcome.failed) == (RunStatus.STOPPED, 0)
    with Store.open(path) as store:
        assert store.run(outcome.run_id).status is RunStatus.STOPPED
        assert running.resume("last", Lab(catalogue, store, Display())).status is RunStatus.DONE


def test_launches_to_come_take_as_long_as_the_one_under_way(store: Store) -> None:
    class Kept(Display):
        def progressed(self, progress: Progress) -> None:
            seen.append((progress.left_s, progress.left_most_s))

    seen: list[tuple[float, float]] = []
    recorder = Recorder(store, store.create_run(make_info(), [make_point()]), Kept())
    for recorder.launches_left in (0, 3):
        recorder.round_done([], Progress(round=2, points=1, finished=0, elapsed_s=10, left_s=5, left_most_s=20))
    assert seen == [(5, 20), (5 + 3 * 15, 20 + 3 * 30)]


BEGINS = """
import os, signal, sys
from pathlib import Path
from hockney.measure import run as running
from hockney.measure.recorder import Display, Lab
from hockney.results.store import Store
from hockney.worker.catalogue import load
from tests.measure.test_run_begins import PLAN
path, last_word = sys.argv[1:]
with Store.open(path) as store:
    store.db.set_trace_callback(lambda sql: sql.startswith(last_word) and os.kill(os.getpid(), signal.SIGKILL))
    running.measure(PLAN, Lab(load(libraries=()), store, Display(), "test"))
"""
PLAN = Plan(
    "test",
    (make_point(8), make_point(64)),
    (Skipped(make_point(128), "as a test"),),
    limits=Limits(precision=0.9, time_s=0.3),
)


@pytest.mark.parametrize(
    ("statement", "runs"),
    [("INSERT INTO run", 0), ("COMMIT", 0), ("INSERT INTO launch", 1)],
)
def test_a_kill_as_a_run_begins_leaves_a_run_that_can_be_resumed_or_none(
    catalogue: Catalogue, tmp_path: Path, statement: str, runs: int
) -> None:
    """Killed just before this statement is carried out."""
    path = tmp_path / "r.db"
    killed = subprocess.run([sys.executable, "-c", BEGINS, path, statement], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with Store.open(path) as store:
        assert [(run.id, run.status) for run in store.runs()] == [(1, RunStatus.KILLED)] * runs
        if runs:
            assert len(store.points(1)) == 3
            assert running.resume("last", Lab(catalogue, store, Display())).status is RunStatus.DONE


@pytest.mark.parametrize("statement", ["INSERT INTO run", "COMMIT"])
def test_ctrl_c_as_a_run_is_stored_leaves_a_run_that_can_be_resumed(
    catalogue: Catalogue, tmp_path: Path, statement: str
) -> None:
    with Store.open(tmp_path / "r.db") as store:

        def press(sql: str) -> None:
            if sql.startswith(statement):
                os.kill(os.getpid(), signal.SIGINT)

        store.db.set_trace_callback(press)
        outcome = running.measure(PLAN, Lab(catalogue, store, Display(), "test"))
        store.db.set_trace_callback(None)
        assert outcome.status is RunStatus.STOPPED
        assert store.run(outcome.run_id).status is RunStatus.STOPPED
        assert running.resume("last", Lab(catalogue, store, Display())).status is RunStatus.DONE
    assert [file.name for file in tmp_path.iterdir()] == ["r.db"]


def test_no_other_program_takes_a_run_that_begins_for_killed(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.db"
    seen: list[RunStatus] = []

    def look_and_lock(store: Path, run_id: int) -> contextlib.AbstractContextManager[None]:
        with Store.open(path, readonly=True) as other:
            seen.extend(run.status for run in other.runs())
        return alone(store, run_id)

    def try_to_resume(*_: object, **__: object) -> list[Warning_]:
        with Store.open(path) as other, pytest.raises(UsageError, match="is being measured by another hockney"):
            running.resume("last", Lab(catalogue, other, Display()))
        return []

    monkeypatch.setattr(running, "alone", look_and_lock)
    monkeypatch.setattr(running, "warnings_before", try_to_resume)
    with Store.open(path) as store:
        running.measure(PLAN, Lab(catalogue, store, Display(), "test"))
    assert seen == [RunStatus.RUNNING]  # by who tried to resume; before it was locked nobody saw it


@pytest.mark.parametrize("status", [None, RunStatus.STOPPED, RunStatus.PARTIAL])
def test_a_run_without_points_cannot_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, status: RunStatus | None
) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "r.db"))
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(facts=facts()), [])
        if status is not None:
            store.finish_run(run_id, status)
    assert execute(["run", "--resume"]) == 2
    assert capsys.readouterr().err == (
        "hockney: run 1 was stopped before its points were stored and cannot be resumed: begin a new one\n"
    )


def test_ctrl_c_while_earlier_measurements_are_read_changes_nothing(
    catalogue: Catalogue, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.db"
    monkeypatch.setenv("HOCKNEY_STORE", str(path))
    with Store.open(path) as store:
        running.measure(PLAN.within(precision=1e-9), Lab(catalogue, store, Display(), "test"))
        before = store.run(1)
    read = Store.measurements

    def interrupted(self: Store, stored: StoredPoint) -> dict[int, Measurement]:
        os.kill(os.getpid(), signal.SIGINT)
        return read(self, stored)

    monkeypatch.setattr(Store, "measurements", interrupted)
    assert execute(["run", "--resume"]) == 3
    assert capsys.readouterr().err.splitlines()[-1] == "hockney: stopped by Ctrl-C; nothing new was measured yet"
    with Store.open(path) as store:
        assert store.run(1) == before


@pytest.mark.parametrize("command", ["quick", "show"])
def test_a_run_stopped_before_its_first_figure_explains_no_table_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "r.db"))
    monkeypatch.setattr(running, "warnings_before", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    assert execute(["quick"]) == 3
    ended = capsys.readouterr()
    assert " ".join(ended.err.split()).endswith("; it was stopped early: `hockney run --resume 1` continues")
    if command == "show":
        assert execute(["show", "last"]) == 0
        shown = capsys.readouterr().out
        assert "\nnot reached\n  " in shown
        assert "too few measurements" not in shown
    else:
        shown = ended.out
        assert "\nNothing was measured.\n" in shown
    assert not re.search(r"Machine state|r_inf|Time:|95 %", shown)
