"""Checks against a baseline: real runs of a transport that is slowed down on purpose, and what can't be a baseline."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.support import call
from tests.compare import slowed
from tests.compare.made import add_run, curve
from tests.test_run import Silent

from hockney.check import Checked, check
from hockney.compare import Verdict
from hockney.errors import HockneyError, UsageError
from hockney.library import Run
from hockney.model import RunStatus
from hockney.store import Store
from hockney.worker.catalogue import Catalogue

_TRIES = 4  # a state of the machine that changes between two runs is no fault of the check


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return slowed.load_catalogue()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def check_slowed(catalogue: Catalogue, store: Store) -> Checked:
    """A check in which the sizes SLOWED take four times as long; a new pair of runs where the state changed."""
    plan = slowed.plan(sizes=(64, 16384, 65536, 131072), time_s=1.0)
    for left in reversed(range(_TRIES)):
        base = slowed.measure(catalogue, store, plan)
        with slowed.slowed(percent=300):
            found = slowed.check_again(catalogue, store, base)
        if found.is_worse or not left:
            break
    return found


def test_an_injected_slowdown_is_found_where_it_is(catalogue: Catalogue, store: Store) -> None:
    found = check_slowed(catalogue, store)
    worse = [change for change in found.comparison.changes if change.verdict is Verdict.SLOWER]
    assert {change.point.bytes for change in worse} == {16384, 65536}
    assert found.is_worse
    assert found.remeasured >= 2
    for change in worse:
        assert change.shift is not None
        assert change.shift.ratio > 2
        assert change.shift.low is not None
        assert change.shift.low > 1.05


def test_what_looks_suspicious_is_measured_in_new_launches_and_only_that(catalogue: Catalogue, store: Store) -> None:
    found = check_slowed(catalogue, store)
    launches = {
        series.point.bytes: len({launch.index for launch in series.launches})
        for series in Run(store, found.run_id).series
    }
    assert launches[16384] >= 10
    assert launches[65536] >= 10
    again = sum(count > 5 for count in launches.values())
    assert again == found.remeasured
    assert Run(store, found.run_id).status is RunStatus.DONE


def test_a_baseline_keeps_its_plan(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8, 64), launches=2, time_s=0.3))
    found = check(str(base), catalogue, store, Silent(), command="test", max_slowdown=0.9)
    again = Run(store, found.run_id)
    assert [series.point for series in again.series] == [series.point for series in Run(store, base).series]
    assert again.info.plan["launches"] == 13  # what two launches of the base need beside them
    assert again.info.plan["precision"] == Run(store, base).info.plan["precision"]


def test_a_baseline_of_one_launch_is_refused_before_anything_is_measured(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8,), launches=1, time_s=0.1))
    with pytest.raises(UsageError, match=r"it has one launch.*--launches 5"):
        slowed.check_again(catalogue, store, base)
    assert len(store.runs()) == 1


def test_a_transport_that_is_gone_is_undecided(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, curve("shm", (8,)) | curve("mpi@gone-1.0", (8,)))
    plan = slowed.plan("shm", sizes=(8,))
    store._db.execute("UPDATE run SET plan = ?", (json.dumps(plan.as_json()),))  # as a real run has one
    found = slowed.check_again(catalogue, store, base)
    reasons = {change.point.transport: change.reason for change in found.comparison.changes}
    assert reasons["mpi@gone-1.0"] == f"skipped in run {found.run_id}: mpi@gone-1.0 is not here any more"
    assert not found.is_whole


def test_a_baseline_of_another_version_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, curve("shm", (8,)))  # its plan has nothing but a precision
    with pytest.raises(UsageError, match="stored by another version of hockney"):
        slowed.check_again(catalogue, store, base)


def test_a_baseline_without_samples_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, {}, failed=dict.fromkeys(curve(), "no"))
    with pytest.raises(UsageError, match="none of its points has samples"):
        slowed.check_again(catalogue, store, base)


def test_a_point_that_fails_now_is_undecided_and_the_run_stays_partial(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8, 64), time_s=0.3))
    monkeypatch.setenv("HOCKNEY_FAULT", "fail 1 64")
    found = check(str(base), catalogue, store, Silent(), command="test", max_slowdown=0.9)
    reasons = {change.point.bytes: change.reason for change in found.comparison.changes}
    assert (reasons[64] or "").startswith(f"failed in run {found.run_id}: ")
    assert not found.is_whole
    assert not found.is_worse
    assert Run(store, found.run_id).status is RunStatus.PARTIAL


def test_ctrl_c_decides_nothing(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8,), time_s=0.2))
    with pytest.raises(HockneyError, match="stopped, so nothing is decided") as caught:
        check(str(base), catalogue, store, Silent(stop_after_rounds=1), command="test", max_slowdown=0.05)
    assert caught.value.exit_code == 3


# ---- the command ----------------------------------------------------------------------------------------------------


def test_command_on_an_unchanged_machine(tmp_path: Path) -> None:
    """Whatever this machine does meanwhile, nothing here gets slower by nine tenths."""
    measured = call(
        tmp_path,
        "run",
        "pingpong",
        "-t",
        "shm",
        "--bytes",
        "8,64",
        "--time",
        "1s",
        "--launches",
        "5",
        "--label",
        "base",
    )
    assert measured.returncode == 0, measured.stderr
    done = call(tmp_path, "check", "--baseline", "base", "--max-slowdown", "90%", "--junit", "j.xml", "--json")
    document = json.loads(done.stdout)
    assert document["format"] == "hockney-check"
    assert document["exit_code"] == done.returncode
    assert done.returncode == (3 if "undecided" in document["counts"] else 0)
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert suite.get("failures") == "0"
    assert int(suite.get("tests") or 0) == len(list(suite.iter("testcase"))) == len(document["ranges"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to check against"),
        (["--baseline", "last", "--expect", "e.toml"], "say what to check against"),
        (["--baseline", "last", "last"], "it takes no RUN"),
        (["--expect", "e.toml", "--max-slowdown", "5%"], "--max-slowdown goes with --baseline"),
        (["--baseline", "last", "--max-slowdown", "0"], "write for example 1%"),
        (["--expect", "none.toml"], "cannot read the file of expectations none.toml"),
    ],
)
def test_command_refuses_in_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = call(tmp_path, "check", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
