"""Runs within jobs of a real Slurm, whose nodes are the hosts of a bed."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.truth.bed.bed import Host
from tests.truth.bed.slurm import Slurm, why_not_here
from tests.truth.conftest import MakeBed
from tests.truth.runs import run_of

from hockney.analysis.clocks import clocks_around
from hockney.machine.placement import usable_cpus
from hockney.model import Launch

HOCKNEY = f"{sys.executable} -m hockney"


@pytest.fixture(scope="module")
def slurm(make_bed: MakeBed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Two nodes of one CPU each, which differ where this machine has two."""
    why = why_not_here()
    if why is not None:
        pytest.skip(why)
    cpus = usable_cpus()
    bed = make_bed(Host(cpus=cpus[:1]), Host(cpus=cpus[-1:]))
    with Slurm(bed, tmp_path_factory.mktemp("slurm")) as made:
        yield made


def batch(slurm: Slurm, folder: Path, nodes: int, line: str) -> str:
    """The output of a job of that line. sbatch would wait in steps of 10 s."""
    script, out, end = folder / "job.sh", folder / "out", folder / "end"
    script.write_text(f"#!/bin/sh\nexport HOCKNEY_STORE={folder}/r.db\n{line}\necho $? >{end}\n", encoding="utf-8")
    submitted = slurm.run(["sbatch", f"--nodes={nodes}", f"--output={out}", str(script)])
    assert submitted.returncode == 0, submitted.stderr
    deadline_s = time.monotonic() + 200
    while not end.exists():
        assert time.monotonic() < deadline_s, out.read_text(encoding="utf-8")
        time.sleep(0.1)
    return out.read_text(encoding="utf-8")


def launches_of(folder: Path) -> list[Launch]:
    run = run_of(folder / "r.db")
    measured = {series.point.transport for series in run.series if series.measurements}
    return [launch for launch in run.launches.values() if launch.transport in measured]


@pytest.mark.full
def test_quick_measures_between_the_hosts_of_its_job(slurm: Slurm, tmp_path: Path) -> None:
    said = batch(slurm, tmp_path, 2, f"{HOCKNEY} quick --time 1s")
    assert "On the 2 hosts of Slurm job " in said
    launches = launches_of(tmp_path)
    names = {launch.transport: launch for launch in launches}
    for wanted in ("tcp", "mpi@openmpi", "mpi@mpich"):
        (launch, *_) = (launch for name, launch in names.items() if name.startswith(wanted))
        assert set(launch.hosts) == {"n1", "n2"}
        assert set(launch.cpus) == {usable_cpus()[0], usable_cpus()[-1]}  # no step of Slurm binds them elsewhere
    assert names["tcp"].argv[0] == "srun"


def test_health_of_the_hosts_of_its_job(slurm: Slurm, tmp_path: Path) -> None:
    said = batch(slurm, tmp_path, 2, f"{HOCKNEY} health --time 1s --json")
    assert '"hosts": [' in said
    assert {launch.hosts for launch in launches_of(tmp_path)} == {("n1", "n2")}, said
    assert all(clock.after is not None for clock in clocks_around(run_of(tmp_path / "r.db"))), said


def test_a_program_that_srun_has_started_has_all_hosts_of_the_job(slurm: Slurm, tmp_path: Path) -> None:
    words = "run pingpong -t tcp,mpi --bytes 8 --time 0.5s --launches 1"
    said = batch(slurm, tmp_path, 2, f"srun --nodes=1 --ntasks=1 {HOCKNEY} {words}")
    launches = launches_of(tmp_path)
    assert {"tcp", "mpi@mpich", "mpi@openmpi"} <= {launch.transport.partition("-")[0] for launch in launches}, said
    assert {launch.hosts for launch in launches} == {("n1", "n2")}


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_library_started_by_srun(slurm: Slurm, tmp_path: Path, library: str) -> None:
    pmi = "pmix" if library == "openmpi" else "pmi2"
    kinds = slurm.run(["srun", "--mpi=list"])
    if pmi not in kinds.stdout + kinds.stderr:
        pytest.skip(f"this Slurm has no {pmi}")
    line = f"{HOCKNEY} run pingpong -t mpi@{library} --launcher srun --bytes 8 --time 0.5s --launches 1 -n 2,3"
    said = batch(slurm, tmp_path, 2, f"{line} --hosts n1,n2")
    launches = launches_of(tmp_path)
    assert {launch.hosts for launch in launches} == {("n1", "n2"), ("n1", "n1"), ("n1", "n1", "n2")}, said
    assert all(launch.argv[0] == "srun" and f"--mpi={pmi}" in launch.argv for launch in launches)


def test_nothing_is_left_of_a_killed_program(slurm: Slurm, tmp_path: Path) -> None:
    """With jobs of srun, and of an mpiexec that srun serves, on both hosts."""
    line = f"{HOCKNEY} run pingpong -t tcp,mpi@mpich-4,mpi@openmpi --bytes 8 --launches 1 --precision 0.001% --time 5m"
    up = f"until [ $(grep -c 'first figure' {tmp_path}/out) = 3 ]; do sleep 0.1; done"
    said = batch(slurm, tmp_path, 2, f"{line} & {up}; kill -9 $!; wait $!")
    assert "Saved" not in said
    deadline_s = time.monotonic() + 30
    while slurm.run(["pgrep", "-f", "hockney/workers"]).returncode == 0:
        assert time.monotonic() < deadline_s, slurm.run(["pgrep", "-af", "hockney/workers"]).stdout
        time.sleep(0.2)


def test_a_job_of_one_host_is_like_any_other_machine(slurm: Slurm, tmp_path: Path) -> None:
    line = f"{HOCKNEY} run pingpong -t shm,mpi@mpich --bytes 8 --time 0.5s --launches 1 --oversubscribe"
    said = batch(slurm, tmp_path, 1, line)
    launches = launches_of(tmp_path)
    assert {launch.transport.partition("-")[0] for launch in launches} == {"shm", "mpi@mpich"}, said
    hosts = {host for launch in launches for host in launch.hosts}
    assert hosts in ({"n1"}, {"n2"})  # n1 may not have ended its job before


def test_this_host_alone(slurm: Slurm, tmp_path: Path) -> None:
    line = f"{HOCKNEY} run pingpong -t tcp --hosts local --bytes 8 --time 0.5s --launches 1 --oversubscribe"
    said = batch(slurm, tmp_path, 2, line)
    assert "On the 2 hosts" not in said
    assert {launch.hosts for launch in launches_of(tmp_path)} == {("n1", "n1")}


def test_an_allocation_without_a_shell_on_it(slurm: Slurm, tmp_path: Path) -> None:
    """As salloc gives it where the login host is none of the nodes."""
    line = [*HOCKNEY.split(), "run", "pingpong", "-t", "tcp", "--bytes", "8", "--time", "0.5s", "--launches", "1"]
    done = slurm.run(["salloc", "--nodes=1", "--nodelist=n2", *line, "--store", str(tmp_path / "r.db")])
    assert done.returncode == 2
    assert "is on n2, and this is n1: start hockney there" in done.stderr
    done = slurm.run(["salloc", "--nodes=2", *line, "--store", str(tmp_path / "r.db")])
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    assert {launch.hosts for launch in launches_of(tmp_path)} == {("n1", "n2")}


def test_ranks_stay_on_the_cpus_of_their_job(make_bed: MakeBed, tmp_path: Path) -> None:
    """Slurm gives a CPU of each host to another job, and the second one to ours."""
    if len(usable_cpus()) < 2:
        pytest.skip("a host with two CPUs is needed")
    (tmp_path / "slurm").mkdir()
    with Slurm(make_bed(Host(), Host()), tmp_path / "slurm", cpus=2) as slurm:
        held = slurm.run(["salloc", "--nodes=2", "--ntasks-per-node=1", "--immediate", "--no-shell"])
        assert held.returncode == 0, held.stderr
        words = "run pingpong -t tcp,mpi@openmpi,mpi@mpich-4 --bytes 8 --time 0.5s --launches 1"
        said = batch(slurm, tmp_path, 2, f"srun grep Cpus_allowed_list /proc/self/status; {HOCKNEY} {words}")
    (cpu,) = set(re.findall(r"^Cpus_allowed_list:\s*(\d+)$", said, re.MULTILINE))
    assert cpu != str(usable_cpus()[0])
    launches = launches_of(tmp_path)
    assert {launch.transport.partition("-")[0] for launch in launches} == {"tcp", "mpi@openmpi", "mpi@mpich"}
    for launch in launches:
        assert (launch.hosts, launch.bound) == (("n1", "n2"), (cpu, cpu)), said
        assert launch.cpus == (int(cpu), int(cpu))
