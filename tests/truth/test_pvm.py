"""PVM between the hosts of a bed: figures, the rate of a cable, and daemons that end with the run in every case."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.truth.bed.bed import Bed, Host
from tests.truth.conftest import MakeBed
from tests.truth.test_hosts import HOCKNEY, launches_of

from hockney.model import PointStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.worker.libraries import find_pvms

FOUND, _ = find_pvms()
_ENDED_S = 30  # a wait that has an end, also on a busy machine
RATE_MBIT = 100

pytestmark = pytest.mark.skipif(not FOUND, reason="no PVM here: apt-get install pvm pvm-dev")


@pytest.fixture
def room() -> Iterator[Path]:
    """Where PVM keeps its files: hosts of a bed share them. Nothing may stay in it."""
    folder = Path(tempfile.mkdtemp(prefix="hk", dir="/tmp"))  # a short name: it becomes part of a socket's
    yield folder
    shutil.rmtree(folder)


def argv(store: Path, hosts: str, transport: str, *words: str) -> list[str]:
    short = ("--launches", "1", "--time", "1s")
    return [*HOCKNEY, "run", "pingpong", "-t", transport, "--hosts", hosts, *short, *words, "--store", str(store)]


def run(bed: Bed, room: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = bed.run("n1", command, limit_s=120, env=environment(room))
    return done


def environment(room: Path) -> dict[str, str]:
    return {**os.environ, "PVM_TMP": str(room)}


def daemons(bed: Bed) -> list[str]:
    """Those on all hosts, which share one list of processes."""
    return str(bed.run("n1", ["pgrep", "--exact", "pvmd"]).stdout).split()


def assert_nothing_stays(bed: Bed, room: Path) -> None:
    deadline_s = time.monotonic() + _ENDED_S
    while (daemons(bed) or any(room.iterdir())) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert daemons(bed) == []
    assert list(room.iterdir()) == []


@pytest.mark.parametrize("transport", matrix(["pvm", "pvm:raw", "pvm:psend-daemon"], short=["pvm"]))
def test_between_two_hosts_and_within_one(two_hosts: Bed, room: Path, tmp_path: Path, transport: str) -> None:
    done = run(two_hosts, room, argv(tmp_path / "r.db", "n1,n2", transport, "--bytes", "8,70001"))
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    assert {launch.hosts for launch in launches_of(tmp_path / "r.db")} == {("n1", "n2"), ("n1", "n1")}
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        all_series = Run(store, 1).series
        assert len(all_series) == 4
        for series in all_series:
            assert series.measurements[0].verified
    assert_nothing_stays(two_hosts, room)


def test_several_ranks_on_each_of_three_hosts(make_bed: MakeBed, room: Path, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host(), Host())
    command = argv(tmp_path / "r.db", "n[1-3]", "pvm", "--bytes", "1K", "-n", "6")
    command[command.index("pingpong")] = "alltoall"
    done = run(bed, room, command)
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    (launch,) = launches_of(tmp_path / "r.db")
    assert launch.hosts == ("n1", "n1", "n2", "n2", "n3", "n3")
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        (series,) = Run(store, 1).series
        assert series.measurements
        assert series.measurements[0].verified
    assert_nothing_stays(bed, room)


def test_the_rate_is_that_of_the_cable(make_bed: MakeBed, room: Path, tmp_path: Path) -> None:
    """Headers take 5 % of it. A cable may send 16 KB at once, without limit."""
    bed = make_bed(Host(), Host(rate_mbit=RATE_MBIT))
    done = run(bed, room, argv(tmp_path / "r.db", "n1:1,n2:1", "pvm", "--bytes", "1M"))
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        (series,) = Run(store, 1).series
        fastest_mbit = max(8e3 * (1 << 20) / float(each.times_ns().min()) for each in series.measurements)
    assert RATE_MBIT / 2 < fastest_mbit < RATE_MBIT  # a busy CPU slows the daemons, nothing makes the cable faster


def test_a_killed_run_leaves_no_daemon(two_hosts: Bed, room: Path, tmp_path: Path) -> None:
    command = argv(tmp_path / "r.db", "n1:1,n2:1", "pvm", "--bytes", "1M", "--time", "60s")
    with subprocess.Popen(
        two_hosts.argv("n1", command), env=environment(room), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert any("first figure" in line for line in process.stderr)
            assert len(daemons(two_hosts)) == 2
            process.kill()
            assert_nothing_stays(two_hosts, room)
        finally:
            process.kill()


def test_a_host_without_the_daemon_is_named(make_bed: MakeBed, room: Path, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host())
    program = FOUND[0].program.resolve()
    assert bed.run("n2", ["mount", "--bind", "/dev/null", str(program)]).returncode == 0
    done = run(bed, room, argv(tmp_path / "r.db", "n1,n2", "pvm", "--bytes", "8"))
    assert done.returncode == 3
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        reasons = {row.point.per_host: (row.status, row.reason or "") for row in store.points(1)}
    status, reason = reasons[None]
    assert status is PointStatus.FAILED
    assert f"on n2 the daemon did not start: cannot run {FOUND[0].program}: Permission denied" in reason
    assert reasons[2][0] is not PointStatus.FAILED  # within n1
    assert_nothing_stays(bed, room)


def test_a_host_that_cannot_be_reached_is_named(two_hosts: Bed, room: Path, tmp_path: Path) -> None:
    done = run(two_hosts, room, argv(tmp_path / "r.db", "n1,n9", "pvm", "--bytes", "8"))
    assert done.returncode == 3
    assert "1 of 2 hosts cannot be used: n9: ssh: Could not resolve hostname n9" in " ".join(done.stderr.split())
    assert_nothing_stays(two_hosts, room)
