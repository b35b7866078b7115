"""Ranks that stop or are killed, and a host that dies, during a run: each is named, and the rest is measured."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.truth.bed.bed import Bed, Host
from tests.truth.conftest import MakeBed
from tests.truth.runs import argv, run_of

from hockney.analysis.clocks import clocks_around
from hockney.model import PointStatus, split_placed

_NAMED_S = 100  # a wait that has an end, also on a machine so busy that measurements take seconds
EVERY_TRANSPORT = pytest.mark.parametrize(
    "transport",
    ["tcp", *(pytest.param(other, marks=pytest.mark.full) for other in ("mpi@mpich", "mpi@openmpi", "pvm"))],
)


class FaultyRun:
    """`hockney run pingpong` on n1 and n2, which is hit by a fault once both placements have a figure."""

    def __init__(self, bed: Bed, store: Path, transport: str) -> None:
        self._bed, self._store = bed, store
        words = ("run", "pingpong", "-t", transport, "--bytes", "8,1K", "--hosts", "n1,n2", "--time", "15s")
        # Far below what any machine measures, so that no point ends before its time.
        command = bed.argv("n1", argv(store, *words, "--launches", "1", "--precision", "0.001%"))
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def wait_for(self, text: str) -> None:
        assert self._process.stderr is not None
        said = []
        while text not in (line := self._process.stderr.readline()):
            said.append(line)
            assert line, "".join(said)

    def wait_for_failure(self) -> None:
        """Of a point; the wait has an end."""
        begun_s = time.monotonic()
        self.wait_for("failed: ")
        assert time.monotonic() - begun_s < _NAMED_S

    def signal(self, name: str) -> None:
        """Send a signal to the youngest worker's process on n2: a rank."""
        kill = f"pkill -{name} --newest --ns $$ --nslist net --full '/hockney/[w]orkers/'"
        assert self._bed.run("n2", ["sh", "-c", kill]).returncode == 0

    def reasons(self) -> dict[tuple[str, int], str]:
        """Why points between hosts failed; all within n1 were measured."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 3
        run = run_of(self._store)
        within = [series for series in run.series if split_placed(series.point.transport)[1]]
        assert all(series.measurements and series.status is not PointStatus.FAILED for series in within)
        failed = [series for series in run.series if series.status is PointStatus.FAILED]
        return {(series.point.transport, series.point.bytes): series.reason or "" for series in failed}


@contextmanager
def begin(bed: Bed, store: Path, transport: str) -> Iterator[FaultyRun]:
    run = FaultyRun(bed, store, transport)
    try:
        for _ in range(2):
            run.wait_for("first figure")
        yield run
    finally:
        run.end()


@EVERY_TRANSPORT
@pytest.mark.parametrize(
    ("signal", "said"),
    [("STOP", r"does not answer: no end after \d+ s in pingpong"), ("KILL", "was killed by SIGKILL")],
)
def test_a_rank_that_is_hit_is_named_with_its_host(
    two_hosts: Bed, tmp_path: Path, transport: str, signal: str, said: str
) -> None:
    with begin(two_hosts, tmp_path / "r.db", transport) as run:
        run.signal(signal)
        run.wait_for_failure()
        (reason,) = run.reasons().values()
    # How it ended is known only from its launcher, which may be late on a busy machine.
    said = said.replace("was killed by SIGKILL", "(was killed by SIGKILL|is gone)")
    assert re.match(f"rank 1 on n2 {said}", reason)


@EVERY_TRANSPORT
def test_a_dead_host_is_named_and_left_alone(make_bed: MakeBed, tmp_path: Path, transport: str) -> None:
    bed = make_bed(Host(), Host())
    with begin(bed, tmp_path / "r.db", transport) as run:
        bed.cut("n2")
        run.wait_for_failure()
        reasons = run.reasons().values()
    assert reasons  # of both points, unless the time is up by then
    assert all("n2 does not answer (connect to host n2 port 22: " in reason for reason in reasons)
    clocks = clocks_around(run_of(tmp_path / "r.db"))
    assert [(clock.host, clock.after) for clock in clocks] == [("n1", None), ("n2", None)]  # nobody asks a dead host
    if transport == "tcp":  # a library's launcher may end the job before its ranks report
        assert any(reason.startswith("rank 1 on n2 does not answer: no end after") for reason in reasons)
