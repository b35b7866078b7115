"""Every launcher's command line, word for word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_library

from hockney.errors import UsageError
from hockney.worker.errors import LaunchFailed
from hockney.worker.hosts import Host
from hockney.worker.launch import JOIN_ADDRESS, LAUNCHERS, Job, StartCommand, launch
from hockney.worker.libraries import Library

JOB = Job(Path("/w"), "T", 3, cpus=(0, 2))
A_AND_B = (Host("a"), Host("b"))
SPREAD = Job(Path("/w"), "T", 3, cpus=(0, 2), hosts=A_AND_B, oversubscribed=True)
WORKER = "/w -t T -n 3 --bind 0,2 --start-limit 60"
CROWDED = "/w -t T -n 3 --bind own --oversubscribed --start-limit 60"
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=5"
OPENMPI = "mpiexec -np 3 --oversubscribe --bind-to none --mca mpi_yield_when_idle"

# Launcher: the job on this host, then the same job crowded on two hosts. None: it can't do that.
EXPECTED_ARGV: dict[str, tuple[str | None, str | None]] = {
    "local": (WORKER, None),
    "openmpi": (f"{OPENMPI} 0 {WORKER}", f"{OPENMPI} 1 --host a:2,b:1 {CROWDED}"),
    "oshrun": (
        f"{OPENMPI.replace('mpiexec', 'mpiexec --mca osc ^rdma')} 0 {WORKER}",
        f"{OPENMPI.replace('mpiexec', 'mpiexec --mca osc ^rdma')} 1 --host a:2,b:1 {CROWDED}",
    ),
    "mpich": (f"mpiexec -n 3 -bind-to none {WORKER}", f"mpiexec -n 3 -bind-to none -hosts a:2,b:1 {CROWDED}"),
    "intel": (f"mpiexec -n 3 {WORKER}", f"mpiexec -n 3 -hosts a:2,b:1 {CROWDED}"),
    "mpiexec": (f"mpiexec -n 3 {WORKER}", None),
    "pvm": (WORKER, None),
    "ssh": (None, f"{SSH} a|/w -t T -n 3 --bind own --oversubscribed --start-limit 60 --rank 0 --here 2 --listen a"),
}
EXPECTED_ENVIRONMENT: dict[str, dict[str, str]] = {
    "openmpi": ROOT,
    "oshrun": ROOT,
    "intel": {"I_MPI_PIN": "0"},
    "pvm": {"PVM_ROOT": ".", "PVM_DPATH": "mpiexec", "PVM_ALLOW_ROOT": "1"},
}


def words(line: str) -> tuple[str, ...]:
    """What stands behind | is one word, for a remote shell."""
    plain, bar, remote = line.partition("|")
    return (*plain.split(), *([remote] if bar else []))


def program(name: str) -> str:
    return "" if name in ("local", "ssh") else "mpiexec"


def test_whoever_says_whether_open_mpi_yields_is_heard() -> None:
    library = make_library()
    for oversubscribed in (False, True):
        for asked, value in ((None, "01"[oversubscribed]), ("1", "1"), ("0", "0")):
            environment = {} if asked is None else {"OMPI_MCA_mpi_yield_when_idle": asked}
            argv = launch(replace(SPREAD, oversubscribed=oversubscribed), library, environment).argv
            assert argv[argv.index("mpi_yield_when_idle") + 1] == value


def test_every_launcher_has_an_expected_argv() -> None:
    assert LAUNCHERS.keys() == EXPECTED_ARGV.keys()


@pytest.mark.parametrize("name", LAUNCHERS)
def test_argv(name: str) -> None:
    for job, expected in zip((JOB, SPREAD), EXPECTED_ARGV[name], strict=True):
        if expected is not None:
            launched = LAUNCHERS[name](Job(**{**vars(job), "program": program(name)}))
            assert launched.argv == words(expected)
            assert launched.environment == EXPECTED_ENVIRONMENT.get(name, {})


def test_a_limit_of_its_own_goes_to_every_rank() -> None:
    for name in LAUNCHERS:
        job = Job(**{**vars(SPREAD if name == "ssh" else JOB), "program": program(name), "start_limit_s": 300})
        launched = LAUNCHERS[name](job)
        for argv in (launched.argv, *launched.joins):
            assert "--start-limit 300" in " ".join(argv), name


def test_hosts_that_join() -> None:
    launched = LAUNCHERS["ssh"](SPREAD)
    common = "/w -t T -n 3 --bind"
    assert launched.joins == (
        words(f"{SSH} b|{common} own --oversubscribed --start-limit 60 --rank 2 --here 1 --join {JOIN_ADDRESS}"),
    )
    assert launched.needs_token
    assert launched.launcher == "ssh"


def test_a_remote_shell_gets_words_that_it_cannot_misread() -> None:
    launched = LAUNCHERS["ssh"](Job(Path("/my files/w;x"), "tcp", 1, hosts=(Host("a"),)))
    assert launched.argv[-1].startswith("'/my files/w;x' -t tcp ")


def test_without_cpus_nothing_is_pinned() -> None:
    assert LAUNCHERS["local"](Job(Path("/w"), "T", 2)).argv == words("/w -t T -n 2 --start-limit 60")


def test_more_hosts_than_ranks_leaves_the_last_ones_out() -> None:
    job = Job(Path("/w"), "T", 1, hosts=A_AND_B, program="mpiexec")
    assert "a:1" in LAUNCHERS["mpich"](job).argv
    assert LAUNCHERS["ssh"](job).joins == ()


def mpi(kind: str, *, is_wheel: bool = False) -> Library:
    return make_library(f"mpi@{kind}-1", kind, Path("/m/mpiexec.x"), is_wheel=is_wheel)


@pytest.mark.parametrize("kind", ["openmpi", "mpich", "intel", "mpiexec"])
def test_a_library_is_started_by_its_own_mpiexec(kind: str) -> None:
    launched = launch(JOB, mpi(kind))
    assert launched.argv[0] == "/m/mpiexec.x"
    assert launched.launcher == "mpiexec.x"
    assert "LD_LIBRARY_PATH" not in launched.environment


@pytest.mark.parametrize("kind", ["openmpi", "mpich", "intel"])
def test_a_wheel_does_not_see_the_systems_libraries(kind: str) -> None:
    environment = launch(JOB, mpi(kind, is_wheel=True)).environment
    assert "LD_LIBRARY_PATH" in environment
    assert environment["LD_LIBRARY_PATH"] is None


@pytest.mark.parametrize("kind", ["openmpi", "mpich", "intel", "mpiexec"])
def test_a_job_that_waits_does_not_hold_the_cpus_of_an_allocation(kind: str) -> None:
    assert launch(JOB, mpi(kind), {"SLURM_JOB_ID": "7"}).environment["SLURM_OVERLAP"] == "1"
    assert "SLURM_OVERLAP" not in launch(JOB, mpi(kind), {}).environment


def test_an_unknown_mpi_takes_no_hosts() -> None:
    with pytest.raises(UsageError, match="hosts cannot be given"):
        launch(SPREAD, mpi("mpiexec"))


def test_pvm_is_told_where_its_daemon_is() -> None:
    pvm = make_library("pvm@1", "pvm", Path("/p/lib/pvmd"))
    launched = launch(JOB, pvm)
    assert launched.argv == words(WORKER)
    assert launched.environment == {"PVM_ROOT": "/p", "PVM_DPATH": "/p/lib/pvmd", "PVM_ALLOW_ROOT": "1"}
    with pytest.raises(UsageError, match="hosts cannot be given to PVM"):
        launch(SPREAD, pvm)


def test_native_jobs() -> None:
    assert launch(JOB) == StartCommand("worker", words(WORKER))
    launched = launch(SPREAD, environment={"HOCKNEY_RSH": "agent --in 'my net'"})
    assert launched.argv[:4] == ("agent", "--in", "my net", "a")
    assert launched.launcher == "agent"


def test_a_remote_shell_that_cannot_be_read_as_a_command_is_named() -> None:
    with pytest.raises(LaunchFailed, match='HOCKNEY_RSH=ssh " is no command'):
        launch(replace(JOB, hosts=A_AND_B), environment={"HOCKNEY_RSH": 'ssh "'})
