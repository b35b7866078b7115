"""Whole runs with real workers: into a store, through faults that are really provoked, and on after a kill."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.builders import make_info, make_launch, make_point, make_settings, measurements_with_medians
from tests.shared import Fakes, killed_at_the_end
from tests.worker.extra import EXTRA

from hockney.cli import execute
from hockney.errors import StoreError, UsageError
from hockney.machine.facts import facts
from hockney.machine.placement import can_pin
from hockney.measure import run as running
from hockney.measure.plan import Plan
from hockney.measure.recorder import Display, Lab, RunOutcome, judge_over_launches
from hockney.measure.sampler import Progress
from hockney.model import Launch, PatternTraits, Point, PointStatus, RunStatus, curve_of
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.results.store.tables import SealedTables
from hockney.suites import Limits
from hockney.worker.catalogue import Catalogue, load

SMALL = Point("fault", "pingpong", 2, 8)
LARGE = Point("fault", "pingpong", 2, 64)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load(recipe=EXTRA, libraries=())


class Silent(Display):
    """Keeps the launches, and may stop the run."""

    def __init__(self, stop_after_rounds: int | None = None) -> None:
        self.stop_after_rounds = stop_after_rounds
        self.launches: list[Launch] = []

    def launched(self, launch: Launch) -> None:
        self.launches.append(launch)

    def progressed(self, progress: Progress) -> None:
        if self.stop_after_rounds is not None and progress.round >= self.stop_after_rounds:
            raise KeyboardInterrupt


def measure(
    catalogue: Catalogue, path: Path, *points: Point, display: Silent | None = None, **asked: Any
) -> RunOutcome:
    plan = Plan("test", points, **make_settings(**{"time_s": 0.3, "timeout_s": 20, **asked}))
    with Store.open(path) as store:
        return running.measure(plan, Lab(catalogue, store, display or Silent(), "test"))


def statuses(path: Path, run_id: int) -> dict[Point, tuple[PointStatus, str | None]]:
    with Store.open(path, readonly=True) as store:
        return {row.point: (row.status, row.reason) for row in store.points(run_id)}


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]


def test_a_run_fills_the_store(catalogue: Catalogue, tmp_path: Path) -> None:
    outcome = measure(catalogue, tmp_path / "r.db", SMALL, LARGE, Point("tcp", "oneway", 2, 1000))
    assert outcome.status is RunStatus.DONE
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        run = Run(store, outcome.run_id)
        assert len(run.series) == 3
        assert {launch.transport for launch in run.launches.values()} == {"fault", "tcp"}
        for series in run.series:
            assert series.measurements
            assert all(measurement.verified for measurement in series.measurements)
            assert all(measurement.elapsed_ns.shape[0] == 2 for measurement in series.measurements)
    assert not children()


def test_a_job_that_does_not_start_ends_after_the_limit_of_the_plan(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes
) -> None:
    monkeypatch.setattr("hockney.worker.session.GRACE_S", 0.5)
    idle = fake(tmp_path / "worker", "exec sleep 600")
    slow = replace(catalogue, transports={"shm": replace(catalogue.transports["shm"], executable=idle)})
    outcome = measure(slow, tmp_path / "r.db", Point("shm", "pingpong", 2, 8), start_limit_s=1)
    ((status, reason),) = statuses(tmp_path / "r.db", outcome.run_id).values()
    assert status is PointStatus.FAILED
    remedy = "to wait longer, measure again with --limit above 1 s"
    assert reason == f"worker did not start the ranks: no answer within 1 s ({remedy})"
    assert not children()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("corrupt 1 17", "rank 1 got a corrupted message of 64 B from rank 0: byte 17"),
        ("kill 1 64", "rank 1 was killed by SIGKILL"),
        (
            "hang 1 64",
            "no end after 2 s in pingpong of 64 B (to wait longer, measure again with --limit above 2 s)",
        ),
        ("fail 0 64", "deliberate failure of a receive"),
    ],
)
def test_a_fault_costs_one_point_and_the_rest_is_measured(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    monkeypatch.setenv("HOCKNEY_FAULT", fault)
    points = (SMALL, LARGE, Point("shm", "pingpong", 2, 64))
    outcome = measure(catalogue, tmp_path / "r.db", *points, timeout_s=2 if fault.startswith("hang") else 20)
    assert (outcome.status, outcome.failed) == (RunStatus.PARTIAL, 1)
    ended = statuses(tmp_path / "r.db", outcome.run_id)
    status, reason = ended[LARGE]
    assert status is PointStatus.FAILED
    assert reason is not None
    assert said in reason
    assert {ended[point][0] for point in ended if point != LARGE} <= {PointStatus.PRECISE, PointStatus.TIME_UP}
    assert not children()


def test_a_job_that_cannot_start_fails_its_points_only(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCKNEY_FAULT", "nonsense")
    outcome = measure(catalogue, tmp_path / "r.db", SMALL, LARGE, Point("shm", "pingpong", 2, 8))
    assert (outcome.status, outcome.failed) == (RunStatus.PARTIAL, 2)
    reason = statuses(tmp_path / "r.db", outcome.run_id)[SMALL][1]
    assert reason is not None
    assert "HOCKNEY_FAULT is not understood" in reason


def test_launches_start_every_job_again(catalogue: Catalogue, tmp_path: Path) -> None:
    display = Silent()
    outcome = measure(catalogue, tmp_path / "r.db", SMALL, display=display, launches=3)
    assert [launch.index for launch in display.launches] == [0, 1, 2]
    if can_pin():
        assert all(launch.bound == tuple(map(str, launch.cpus)) for launch in display.launches)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        series = Run(store, outcome.run_id).series[0]
        assert len({measurement.launch_id for measurement in series.measurements}) == 3


def test_a_point_of_several_launches_is_judged_over_all_of_them(catalogue: Catalogue, tmp_path: Path) -> None:
    outcome = measure(catalogue, tmp_path / "r.db", SMALL, launches=2, precision=1e-6)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        series = Run(store, outcome.run_id).series[0]
        assert series.status is PointStatus.TIME_UP
        assert series.reason is not None
        assert series.reason.startswith("all launches were made: ")
        assert f"; measurements in all: {len(series.measurements)} in 2 launches" in series.reason


def test_launches_that_differ_are_not_precise_together(tmp_path: Path) -> None:
    """Each launch is narrow enough, but they differ by a factor of two."""
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(), [make_point(8), make_point(64)])
        for index in range(2):
            store.add_launch(run_id, make_launch(index=index))
            apart = measurements_with_medians([100 * (1 + index)] * 10, make_point(8), launch_id=index + 1)
            alike = measurements_with_medians([100] * 10, make_point(64), launch_id=index + 1)
            store.write_round(run_id, [*apart, *alike])
        for size in (8, 64):
            store.set_status(run_id, make_point(size), PointStatus.PRECISE)
        judge_over_launches(store, run_id)
        ends = [(row.status, row.reason) for row in store.points(run_id)]
    assert ends[0][0] is PointStatus.TIME_UP
    assert ends[1] == (PointStatus.PRECISE, None)


NEAR = {"floor_ns": (27.0, 28.0)}
FAR = {"floor_ns": (184.0, 185.0)}
BETWEEN = {"floor_ns": (27.0, 184.0)}
NARROW = [100.0] * 8
WIDE = [100.0, 150.0] * 8


@pytest.mark.parametrize(
    ("of_each_launch", "end"),
    [
        ([(NARROW, NEAR)], PointStatus.PRECISE),
        ([(NARROW[:4], NEAR)], PointStatus.TIME_UP),  # fewer than one launch would need
        ([(NARROW[:5], NEAR)], PointStatus.PRECISE),
        ([(WIDE, NEAR), (NARROW, FAR)], PointStatus.TIME_UP),  # it was there more rarely
        ([(WIDE[:4], NEAR), (NARROW, FAR)], PointStatus.PRECISE),
        ([(NARROW, BETWEEN), (WIDE[:6], NEAR), (WIDE[:2], FAR)], PointStatus.TIME_UP),
        ([(NARROW, BETWEEN)], PointStatus.TIME_UP),  # in no state at all
    ],
)
def test_launches_are_judged_by_the_state_of_most_measurements(
    tmp_path: Path, of_each_launch: list[tuple[list[float], dict[str, Any]]], end: PointStatus
) -> None:
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(), [make_point(8)])
        for index in range(2):
            launch_id = store.add_launch(run_id, make_launch(index=index))
            for medians_ns, state in of_each_launch:
                of_launch = [ns + 5 * index * (len(set(medians_ns)) > 1) for ns in medians_ns]  # wide ones differ
                store.write_round(
                    run_id, measurements_with_medians(of_launch, make_point(8), launch_id=launch_id, **state)
                )
        store.set_status(run_id, make_point(8), PointStatus.PRECISE)
        judge_over_launches(store, run_id)
        assert store.points(run_id)[0].status is end


@pytest.mark.parametrize(
    ("step_ns", "reached", "needed"),
    [
        (3, "0.6%", "; about 8 launches would reach 0.5%"),
        (9, "1.7%", "; about 45 launches would reach 0.5%"),
        (10, "1.9%", ""),
    ],
)
def test_launches_that_are_not_enough_say_how_many_are(step_ns: int, reached: str, needed: str, tmp_path: Path) -> None:
    """With the deviation s of their logarithms, n launches reach t(n - 1) s / sqrt(n); above 50 none help."""
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(plan={"precision": 0.005}), [make_point(8)])
        for index in range(6):
            launch_id = store.add_launch(run_id, make_launch(index=index))
            store.write_round(run_id, measurements_with_medians([1000 + step_ns * index] * 2, launch_id=launch_id))
        store.set_status(run_id, make_point(8), PointStatus.PRECISE)
        assert judge_over_launches(store, run_id) == {make_point(8)}
        assert store.points(run_id)[0].reason == (
            f"all launches were made: the interval is +-{reached} over 6 launches in one state; "
            f"measurements in all: 12 in 6 launches{needed}"
        )


def test_one_launch_is_called_one(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(), [make_point(8)])
        store.write_round(run_id, measurements_with_medians(WIDE, launch_id=store.add_launch(run_id, make_launch())))
        store.set_status(run_id, make_point(8), PointStatus.TIME_UP, "the time was up")
        judge_over_launches(store, run_id)
        assert (store.points(run_id)[0].reason or "").endswith(f"; measurements in all: {len(WIDE)} in 1 launch")


def test_sizes_that_the_first_launch_adds_are_measured_in_all(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    display = Silent()
    traits = PatternTraits(payload=False)
    points = [Point("shm", "memload", 1, size, traits=traits) for size in (1024, 4096)]  # one rank: one state

    def another_in_each_launch(*curve: object, **more: object) -> list[int]:
        return [1024 + 512 * len(display.launches)]

    monkeypatch.setattr("hockney.measure.refinement.sizes_to_add", another_in_each_launch)
    asked: dict[str, Any] = {"precision": 0.9, "time_s": 60, "refine": frozenset(map(curve_of, points))}
    outcome = measure(catalogue, tmp_path / "r.db", *points, display=display, launches=2, **asked)
    with Store.open(tmp_path / "r.db") as store:
        series = {member.point.bytes: member for member in Run(store, outcome.run_id).series}
        assert sorted(series) == [1024, 1536, 4096]
        assert [len(one.launches) for one in series.values()] == [2, 2, 2]
        store.set_status(outcome.run_id, points[0], PointStatus.TIME_UP)  # so that there is something to resume
        running.resume("last", Lab(catalogue, store, display))
        assert len(store.points(outcome.run_id)) == 3


def test_ctrl_c_while_launches_are_judged_ends_the_run(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "judge_over_launches", interrupted)
    outcome = measure(catalogue, tmp_path / "r.db", SMALL, launches=2)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        assert store.run(outcome.run_id).status is outcome.status is RunStatus.STOPPED


def test_ctrl_c_keeps_every_round_and_resume_continues(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    asked: dict[str, Any] = {"precision": 1e-6, "time_s": 60}
    outcome = measure(catalogue, path, SMALL, LARGE, display=Silent(stop_after_rounds=3), **asked)
    assert outcome.status is RunStatus.STOPPED
    assert {status for status, _ in statuses(path, outcome.run_id).values()} == {PointStatus.STOPPED}
    assert not children()
    with Store.open(path) as store:
        assert store.run(outcome.run_id).rounds == 3
        again = running.resume("last", Lab(catalogue, store, Silent(stop_after_rounds=5)))
        assert again.run_id == outcome.run_id
        measurements = [len(store.measurements(row)) for row in store.points(outcome.run_id)]
    assert measurements == [5, 5]


def test_launches_that_were_not_made_are_made_by_resume(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    class InTheSecond(Silent):
        def launched(self, launch: Launch) -> None:
            super().launched(launch)
            if launch.index == 1:
                raise KeyboardInterrupt

    outcome = measure(catalogue, path, SMALL, display=InTheSecond(), launches=3, precision=99.0, time_s=20)
    assert outcome.status is RunStatus.STOPPED
    assert not children()  # it came in the middle of a start
    display = Silent()
    with Store.open(path) as store:
        assert running.resume("last", Lab(catalogue, store, display)).status is RunStatus.DONE
        assert len(display.launches) == 2


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("hostname", "elsewhere", "its host was elsewhere and is now "),
        ("machine_id", "another", "its machine was another one "),
        ("cpu", {"model": "Z80"}, "its CPU was Z80 and is now "),
        ("limits", {"usable_cpus": "77-99"}, "its list of usable CPUs was 77-99 and is now "),
    ],
)
def test_a_run_of_another_machine_cannot_be_resumed(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fact: str, value: Any, said: str
) -> None:
    here = {**facts(), "machine_id": None if fact == "hostname" else "this"}
    monkeypatch.setattr(running, "facts", lambda **_: {**here, fact: value})
    measure(catalogue, tmp_path / "r.db", SMALL, precision=1e-6)
    monkeypatch.setattr(running, "facts", lambda **_: here)
    if facts()["cpu"]["model"] is None and fact == "cpu":
        pytest.skip("this machine does not say what CPU it has")
    with Store.open(tmp_path / "r.db") as store:
        rounds = store.run(1).rounds
        with pytest.raises(UsageError, match=said):
            running.resume("last", Lab(catalogue, store, Silent()))
        assert (store.run(1).rounds, store.run(1).status) == (rounds, RunStatus.DONE)


def test_a_run_that_is_being_measured_cannot_be_resumed(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    class Second(Silent):
        said = ""

        def progressed(self, progress: Progress) -> None:
            with Store.open(path) as store, pytest.raises(UsageError) as error:
                running.resume("last", Lab(catalogue, store, Silent()))
            self.said = str(error.value)

    display = Second()
    measure(catalogue, path, SMALL, display=display, precision=0.9)
    assert "is being measured by another hockney" in display.said
    assert [file.name for file in tmp_path.iterdir()] == ["r.db"]


def test_lost_messages_are_warned_of(catalogue: Catalogue, tmp_path: Path) -> None:
    flood = Point("udp", "oneway", 2, 60_000, (("until", "sent"), ("window", "64")))
    calm = Point("shm", "pingpong", 2, 8)
    measure(catalogue, tmp_path / "r.db", flood, calm, precision=1e-6, time_s=1)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        warnings = [warning for warning in store.run(1).warnings if warning.kind == "loss"]
    assert [warning.subject for warning in warnings] == ["udp"]
    assert re.search(r"udp lost messages \([\d,]+ in oneway\)", warnings[0].cause)


def test_ctrl_c_while_a_round_is_written_loses_nothing(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.db"
    insert = SealedTables.insert

    def interrupted(self: SealedTables, table: str, *words: Any) -> int:
        if table == "measurement":
            os.kill(os.getpid(), signal.SIGINT)
        return insert(self, table, *words)

    monkeypatch.setattr(SealedTables, "insert", interrupted)
    outcome = measure(catalogue, path, SMALL, LARGE, precision=1e-6, time_s=60)
    assert outcome.status is RunStatus.STOPPED
    with Store.open(path, readonly=True) as store:
        assert [len(store.measurements(row)) for row in store.points(outcome.run_id)] == [1, 1]


@pytest.mark.full
def test_a_full_disk_stops_the_run_and_keeps_stored_results(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    plan = Plan("test", (SMALL,), limits=Limits(precision=1e-6, time_s=60))
    with Store.open(path) as store:
        store.db.execute("PRAGMA max_page_count = 40")  # SQLite then fails as on a full disk
        with pytest.raises(StoreError, match="full"):
            running.measure(plan, Lab(catalogue, store, Silent(), "test"))
    assert not children()
    with Store.open(path) as store:
        run = store.run(store.find_run("last"))
        assert run.rounds > 0
        assert sum(len(store.measurements(row)) for row in store.points(run.id)) == run.rounds


# ---- the whole program ---------------------------------------------------------------------------------------------


def command(*arguments: str, store: Path) -> list[str]:
    return [sys.executable, "-m", "hockney", *arguments, "--store", str(store)]


def wait_for_rounds(path: Path, rounds: int, limit_s: float = 60) -> None:
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        if path.exists():
            try:
                with Store.open(path, readonly=True) as store:
                    if store.runs() and store.runs()[-1].rounds >= rounds:
                        return
            except StoreError:  # it is being made
                pass
        time.sleep(0.05)
    raise AssertionError("the run does not get on")


def test_kill_9_leaves_no_orphans_and_resume_continues(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    arguments = ["run", "pingpong", "-t", "shm,tcp,mpi", "--bytes", "8", "--precision", "0.0001%", "--time", "60s"]
    process = subprocess.Popen(command(*arguments, store=path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with killed_at_the_end(process):
        wait_for_rounds(path, 3)
        ranks = psutil.Process(process.pid).children(recursive=True)
        assert len(ranks) >= 3
        process.kill()
    _, alive = psutil.wait_procs(ranks, timeout=60)
    assert not alive, [child.cmdline() for child in alive]
    with Store.open(path, readonly=True) as store:
        stored = store.run(1)
        assert stored.status is RunStatus.KILLED
    resumed = subprocess.Popen(
        command("run", "--resume", store=path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with killed_at_the_end(resumed):
        wait_for_rounds(path, stored.rounds + 2)
        resumed.send_signal(signal.SIGTERM)
        _, said = resumed.communicate(timeout=60)
    assert resumed.returncode == 3
    assert b"hockney run --resume" in said
    with Store.open(path, readonly=True) as store:
        assert store.run(1).status is RunStatus.STOPPED


def test_two_runs_into_one_store(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    arguments = ["run", "pingpong", "-t", "pipe", "--bytes", "8,64", "--time", "400ms", "--precision", "0.001%"]
    both = [
        subprocess.Popen(
            command(*arguments, "--label", name, store=path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in ("one", "two")
    ]
    for process in both:
        _, said = process.communicate(timeout=120)
        assert process.returncode in (0, 3), said  # 3: no interval in so little time
    with Store.open(path, readonly=True) as store:
        assert {run.label for run in store.runs()} == {"one", "two"}
        assert all(run.status is RunStatus.DONE and run.rounds > 0 for run in store.runs())


def test_without_a_store_there_is_nothing_to_resume_and_none_is_made(tmp_path: Path) -> None:
    done = subprocess.run(command("run", "--resume", "last", store=tmp_path / "r.db"), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"there are no results in" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_continues_when_nobody_reads_its_progress(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    arguments = command(
        "run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "0.2s", "--precision", "90%", store=path
    )
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(60) in (0, 3)  # 3: no interval in so little time
    with Store.open(path, readonly=True) as store:
        assert store.runs()[-1].status is RunStatus.DONE


@pytest.mark.full
def test_a_run_is_stored_whole_with_closed_standard_streams(tmp_path: Path) -> None:
    """Nothing can be printed on a closed standard output; the measurements are stored all the same."""
    path = tmp_path / "r.db"
    line = shlex.join(command("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "1s", store=path))
    for closed, codes in (("<&-", (0, 3)), (">&-", (3,)), ("2>&-", (0, 3)), ("<&- >&- 2>&-", (3,))):
        assert subprocess.run(["sh", "-c", f"{line} {closed}"], check=False, timeout=60).returncode in codes, closed
    with Store.open(path, readonly=True) as store:
        assert [run.status for run in store.runs()] == [RunStatus.DONE] * 4


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["pairs", "-n", "3", "--oversubscribe"],
            2,
            "nothing to measure: pairs runs on 2 or more ranks, a multiple of 2",
        ),
        (["prtt", "--bytes", "8", "-o", "delay_ns=1"], 3, "nothing could be measured"),  # no clock shows it
    ],
)
def test_a_run_without_any_result_is_not_done(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "r.db"))
    assert execute(["run", *arguments, "-t", "shm"]) == code
    assert said in " ".join(capsys.readouterr().err.split())
    if arguments[0] == "prtt":
        assert execute(["run", "--resume"]) == 2
        sentence = "nothing left to measure: what is not precise failed or was skipped"
        assert sentence in capsys.readouterr().err
