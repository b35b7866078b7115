"""--cpus: ranks really run where the user placed them, and every later measurement of the run does, too."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch, make_point, make_settings, make_stored
from tests.cli.support import call_here
from tests.measure.test_run import Silent

from hockney.cli.run_options import read_cpus
from hockney.errors import UsageError
from hockney.machine.placement import can_pin, usable_cpus
from hockney.measure import run as running
from hockney.measure.plan import Plan, make_plan, plan_again
from hockney.measure.recorder import Lab
from hockney.report.words import placement_text
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.suites import pattern_suite
from hockney.worker.catalogue import load
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions

CPUS = usable_cpus()
FIRST, SECOND = CPUS[0], CPUS[-1]
NONE = CPUS[-1] + 1  # a CPU that this process may not use

needs_two = pytest.mark.skipif(len(CPUS) < 2 or not can_pin(), reason="ranks can be placed in one way only")


def hockney(*arguments: str, store: Path) -> subprocess.CompletedProcess[str]:
    return call_here(store.parent, *arguments, "--store", str(store))


def placed(path: Path, run_id: int) -> dict[str, set[tuple[int, ...]]]:
    """The CPU on which each rank said hello, by transport."""
    by_transport: dict[str, set[tuple[int, ...]]] = {}
    with Store.open(path, readonly=True) as store:
        for launch in store.run(run_id).launches.values():
            by_transport.setdefault(launch.transport, set()).add(launch.cpus)
    return by_transport


def plan_of(*cpus: int, **fields: Any) -> Plan:
    return Plan(
        "test", (make_point(),), placement=Placement(cpus=cpus), **make_settings(time_s=0.2, timeout_s=20, **fields)
    )


@needs_two
def test_ranks_of_every_kind_of_job_run_where_they_are_placed(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    transports = "shm,threads,tcp,mpi" + (",pvm" if load().missing_for("pvm") is None else "")
    for cpus in ((SECOND, FIRST), (FIRST, SECOND)):
        words = ",".join(map(str, cpus))
        arguments = ["run", "pingpong", "-t", transports, "--bytes", "8", "--time", "0.2s", "--launches", "1"]
        done = hockney(*arguments, "--cpus", words, store=path)
        assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
        assert f"2 ranks on CPUs {cpus[0]} and {cpus[1]}." in done.stdout
    for run_id, cpus in ((1, (SECOND, FIRST)), (2, (FIRST, SECOND))):
        jobs = placed(path, run_id)
        assert len(jobs) >= 3
        assert set().union(*jobs.values()) == {cpus}
        exported = json.loads(hockney("export", str(run_id), "--json", store=path).stdout)
        assert exported["run"]["plan"]["cpus"] == list(cpus)
    changed = json.loads(hockney("compare", "1", "2", "--json", store=path).stdout)["differences"]
    (placement,) = [one for one in changed if one["what"].startswith("CPUs of ranks")]
    assert (placement["base"], placement["new"]) == (f"{SECOND} {FIRST}", f"{FIRST} {SECOND}")


@needs_two
def test_a_run_is_resumed_and_measured_again_on_the_same_cpus(tmp_path: Path) -> None:
    path, catalogue = tmp_path / "r.db", load(libraries=())
    with Store.open(path) as store:
        plan = plan_of(SECOND, FIRST, precision=1e-9)
        run_id = running.measure(plan, Lab(catalogue, store, Silent(), "test")).run_id
        running.resume(str(run_id), Lab(catalogue, store, Silent()))
        running.add_launches(run_id, plan.points, 1, 0.2, Lab(catalogue, store, Silent()))
        assert {launch.index for launch in store.run(run_id).launches.values()} >= {0, 1, 2, 3}
        again = plan_again(store.run(run_id), plan.points, catalogue, launches=1)
        assert again.placement.cpus == (SECOND, FIRST)
    assert placed(path, run_id)["shm"] == {(SECOND, FIRST)}


@pytest.mark.skipif(not can_pin(), reason="nothing can be placed here")
def test_a_cpu_for_both_ranks_is_oversubscription(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    arguments = ["run", "pingpong", "-t", "pipe", "--bytes", "8", "--time", "0.2s", "--launches", "1"]
    for cpus in (str(FIRST), f"{FIRST},{FIRST}"):
        refused = hockney(*arguments, "--cpus", cpus, store=path)
        assert refused.returncode == 2
        assert "more ranks than CPUs (1) would measure the scheduler; name more in --cpus" in refused.stderr
        done = hockney(*arguments, "--cpus", cpus, "--oversubscribe", store=path)
        assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
        assert f"2 ranks on CPU {FIRST}." in done.stdout
        assert "more ranks than CPUs" in done.stdout
    with Store.open(path, readonly=True) as store:
        for run in store.runs():
            (launch,) = store.run(run.id).launches.values()
            assert (launch.oversubscribed, launch.cpus) == (True, (FIRST, FIRST))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cpus", "a"], "'a' is not a CPU: write its number"),
        (["--cpus", "1-"], "'1-' is not a CPU"),
        (["--cpus", "-1"], "'-1' is not a CPU"),
        (["--cpus", "²"], "'²' is not a CPU"),
        (["--cpus", ","], "--cpus names nothing"),
        (["--cpus", "3-1"], "'3-1' is not a CPU"),
        (["--cpus", f"{FIRST},{NONE}"], f"no rank can run on CPU {NONE}: this process may use CPU"),
        (["--cpus", f"{FIRST}", "--hosts", "localhost"], "--cpus places ranks on this host only"),
    ],
)
def test_invalid_placements_are_refused_in_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = hockney("run", "pingpong", "-t", "shm", *arguments, store=tmp_path / "r.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_quick_and_interleave_take_a_placement_too(tmp_path: Path) -> None:
    for arguments in (("quick",), ("compare", "pingpong", "--interleave", "--new-env", "A=1")):
        done = hockney(*arguments, "--cpus", f"{NONE}", store=tmp_path / "r.db")
        assert done.returncode == 2
        assert f"no rank can run on CPU {NONE}" in done.stderr


def test_a_placement_on_a_missing_cpu_is_refused(tmp_path: Path) -> None:
    catalogue = load(libraries=())
    with Store.open(tmp_path / "r.db") as store:
        with pytest.raises(UsageError, match=f"no rank can run on CPU {NONE}"):
            running.measure(plan_of(FIRST, NONE), Lab(catalogue, store, Silent(), "test"))
        assert store.runs() == []


def test_a_system_that_pins_nothing_places_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.machine.placement.can_pin", lambda: False)
    with pytest.raises(UsageError, match="the system refuses to pin them: leave out --cpus"):
        read_cpus(["0"])


def test_lists_and_ranges_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.machine.placement.can_pin", lambda: True)
    monkeypatch.setattr("hockney.machine.placement.usable_cpus", lambda: tuple(range(8)))
    assert read_cpus(["4,0-2", "0"]) == (4, 0, 1, 2, 0)


def test_a_plan_has_room_for_as_many_ranks_as_cpus_are_named() -> None:
    asked = RunOptions(placement=Placement(cpus=(5, 6, 5, 7)), transports=("shm",), sizes=(8,), ranks=(2, 3, 4))
    plan = make_plan(pattern_suite("pingpong"), asked, load(libraries=()), cpus=1)
    assert [point.ranks for point in plan.points] == [2]  # three ranks share a CPU, and so do four
    assert Plan.of_run(make_stored("test", plan.as_json()), ()).placement.cpus == (5, 6, 5, 7)


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        ([(0, 2)], "2 ranks on CPUs 0 and 2."),
        ([(0, 2), (0, 2, 4)], "2 to 3 ranks on CPUs 0, 2 and 4."),
        ([(0, 1), (4, 5, 6)], "2 ranks on CPUs 0 and 1; 3 ranks on CPUs 4, 5 and 6."),
        ([(0, 1, 0, 1)], "4 ranks on CPUs 0 and 1."),
        ([(3, 3)], "2 ranks on CPU 3."),
        ([tuple(range(16))], "16 ranks on CPUs 0-15."),
        ([(0, -1)], None),
    ],
)
def test_the_line_about_the_placement(cpus: list[tuple[int, ...]], text: str | None, tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        points = [make_point(ranks=len(each)) for each in cpus]
        run_id = store.create_run(make_info(), points, {})
        for each in cpus:
            store.add_launch(run_id, make_launch(ranks=len(each), cpus=each, hosts=("here",) * len(each)))
        assert placement_text(Run(store, run_id)) == text
