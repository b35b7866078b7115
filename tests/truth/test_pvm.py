"""PVM between the hosts of a bed: figures, the rate of a cable, and daemons that end with the run in every case."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.shared import killed_at_the_end
from tests.truth.bed.bed import Bed, Host
from tests.truth.conftest import MakeBed
from tests.truth.runs import MEASURED, argv, hockney, run_of

from hockney.model import PointStatus
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


def words_of(hosts: str, transport: str, *words: str, pattern: str = "pingpong") -> tuple[str, ...]:
    return ("run", pattern, "-t", transport, "--hosts", hosts, "--launches", "1", "--time", "1s", *words)


def run(bed: Bed, room: Path, store: Path, *words: str, codes: Sequence[int] = MEASURED, **more: str) -> str:
    """The standard error of a run of these words."""
    return hockney(bed, store, *words_of(*words, **more), codes=codes, PVM_TMP=str(room)).stderr


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
    run(two_hosts, room, tmp_path / "r.db", "n1,n2", transport, "--bytes", "8,70001")
    measured = run_of(tmp_path / "r.db")
    assert {launch.hosts for launch in measured.launches.values()} == {("n1", "n2"), ("n1", "n1")}
    assert [series.measurements[0].verified for series in measured.series] == [True] * 4
    assert_nothing_stays(two_hosts, room)


def test_several_ranks_on_each_of_three_hosts(make_bed: MakeBed, room: Path, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host(), Host())
    run(bed, room, tmp_path / "r.db", "n[1-3]", "pvm", "--bytes", "1K", "-n", "6", pattern="alltoall")
    measured = run_of(tmp_path / "r.db")
    assert [launch.hosts for launch in measured.launches.values()] == [("n1", "n1", "n2", "n2", "n3", "n3")]
    assert [series.measurements[0].verified for series in measured.series] == [True]
    assert_nothing_stays(bed, room)


def test_the_rate_is_that_of_the_cable(make_bed: MakeBed, room: Path, tmp_path: Path) -> None:
    """Headers take 5 % of it. A cable may send 16 KB at once, without limit."""
    bed = make_bed(Host(), Host(rate_mbit=RATE_MBIT))
    run(bed, room, tmp_path / "r.db", "n1:1,n2:1", "pvm", "--bytes", "1M")
    (series,) = run_of(tmp_path / "r.db").series
    fastest_mbit = max(8e3 * (1 << 20) / float(each.times_ns().min()) for each in series.measurements)
    assert RATE_MBIT / 4 < fastest_mbit < RATE_MBIT  # a busy CPU slows the daemons, nothing makes the cable faster


def test_a_killed_run_leaves_no_daemon(two_hosts: Bed, room: Path, tmp_path: Path) -> None:
    words = words_of("n1:1,n2:1", "pvm", "--bytes", "1M", "--time", "60s")
    command = two_hosts.argv("n1", argv(tmp_path / "r.db", *words))
    process = subprocess.Popen(command, env={**os.environ, "PVM_TMP": str(room)}, stderr=subprocess.PIPE, text=True)
    with killed_at_the_end(process):
        assert process.stderr is not None
        assert any("first figure" in line for line in process.stderr)
        assert len(daemons(two_hosts)) == 2
        process.kill()
        assert_nothing_stays(two_hosts, room)


def test_a_host_without_the_daemon_is_named(make_bed: MakeBed, room: Path, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host())
    program = FOUND[0].program.resolve()
    assert bed.run("n2", ["mount", "--bind", "/dev/null", str(program)]).returncode == 0
    run(bed, room, tmp_path / "r.db", "n1,n2", "pvm", "--bytes", "8", codes=(3,))
    reasons = {row.point.per_host: (row.status, row.reason or "") for row in run_of(tmp_path / "r.db").series}
    status, reason = reasons[None]
    assert status is PointStatus.FAILED
    assert f"on n2 the daemon did not start: cannot run {FOUND[0].program}: Permission denied" in reason
    assert reasons[2][0] is not PointStatus.FAILED  # within n1
    assert_nothing_stays(bed, room)


def test_a_host_that_cannot_be_reached_is_named(two_hosts: Bed, room: Path, tmp_path: Path) -> None:
    said = run(two_hosts, room, tmp_path / "r.db", "n1,n9", "pvm", "--bytes", "8", codes=(3,))
    assert "1 of 2 hosts cannot be used: n9: Could not resolve hostname n9" in " ".join(said.split())
    assert_nothing_stays(two_hosts, room)
