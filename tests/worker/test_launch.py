"""Every launcher's command line, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_library
from tests.shared import Fakes

from hockney.errors import UsageError
from hockney.worker.errors import LaunchFailed
from hockney.worker.hosts import Host
from hockney.worker.launch import (
    JOIN_ADDRESS,
    LAUNCHERS,
    YIELDS,
    Job,
    StartCommand,
    launch,
    output_of,
    refuse_overridden,
)
from hockney.worker.libraries import NATIVE, Library
from hockney.worker.placement import Placement
from hockney.worker.starters import LAUNCHER_WORDS, check_launcher

JOB = Job(Path("/w"), "T", 3, Placement(cpus=(0, 2)))
A_AND_B = (Host("a"), Host("b"))
SPREAD = Job(Path("/w"), "T", 3, Placement(map_by="socket", hosts=A_AND_B), oversubscribed=True)
WORKER = "/w -t T -n 3 --bind 0,2 --start-limit 60"
OVERSUBSCRIBED = "/w -t T -n 3 --bind socket --oversubscribed --start-limit 60"
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=4"
SRUN = "srun --overlap --overcommit --kill-on-bad-exit --cpu-bind=none --input=0"
SRUN_ONE = f"{SRUN} --mpi=none --nodes=1 --ntasks=1"
OPENMPI = "mpiexec -n 3 --oversubscribe --bind-to none{} --mca mpi_yield_when_idle {}"

# Launcher: the job on this host, then the same job oversubscribed on two hosts. None: not possible.
EXPECTED_ARGV: dict[str, tuple[str | None, str | None]] = {
    "local": (WORKER, None),
    **{
        name: (f"{OPENMPI.format(more, 0)} {WORKER}", f"{OPENMPI.format(more, 1)} --host a:2,b:1 {OVERSUBSCRIBED}")
        for name, more in (("openmpi", ""), ("oshrun", " --mca osc ^rdma"))
    },
    "mpich": (f"mpiexec -n 3 -bind-to none {WORKER}", f"mpiexec -n 3 -bind-to none -hosts a:2,b:1 {OVERSUBSCRIBED}"),
    "intel": (f"mpiexec -n 3 {WORKER}", f"mpiexec -n 3 -hosts a:2,b:1 {OVERSUBSCRIBED}"),
    "mpiexec": (f"mpiexec -n 3 {WORKER}", None),
    "pvm": (
        WORKER,
        f"{SSH} a|env PVM_ROOT=. PVM_DPATH=mpiexec PVM_ALLOW_ROOT=1 {OVERSUBSCRIBED} --rank 0 --here 2 --listen a",
    ),
    "ssh": (None, f"{SSH} a|{OVERSUBSCRIBED} --rank 0 --here 2 --listen a"),
    "srun": (
        f"{SRUN} --nodes 1 --ntasks 3 {WORKER}",
        f"{SRUN} --nodes 2 --ntasks 3 --distribution arbitrary --nodelist a,a,b {OVERSUBSCRIBED}",
    ),
    "flux": (
        f"flux run --nodes 1 --ntasks 3 {WORKER}",
        f"flux run --nodes 2 --ntasks 3 --requires=host:a,b {OVERSUBSCRIBED}",
    ),
}
EXPECTED_ENVIRONMENT: dict[str, dict[str, str]] = {
    "openmpi": {**ROOT, YIELDS: "0"},
    "oshrun": {**ROOT, YIELDS: "0", "OMPI_MCA_osc": "^rdma"},
    "intel": {"I_MPI_PIN": "0"},
    "pvm": {"PVM_ROOT": ".", "PVM_DPATH": "mpiexec", "PVM_ALLOW_ROOT": "1"},
}


def words(line: str) -> tuple[str, ...]:
    """Text after | is one word, for a remote shell."""
    plain, bar, remote = line.partition("|")
    return (*plain.split(), *([remote] if bar else []))


def placed(job: Job, **fields: Any) -> Job:
    return replace(job, placement=replace(job.placement, **fields))


def of_launcher(name: str) -> Library:
    """A library with this launcher of its own."""
    return NATIVE if name in ("local", "ssh", "srun", "flux") else replace(make_library(), kind=name)


def test_the_environment_decides_whether_open_mpi_yields() -> None:
    library = make_library()
    for oversubscribed in (False, True):
        for asked, value in ((None, "01"[oversubscribed]), ("1", "1"), ("0", "0")):
            environment = {} if asked is None else {"OMPI_MCA_mpi_yield_when_idle": asked}
            launched = launch(replace(SPREAD, oversubscribed=oversubscribed), library, environment)
            assert launched.environment[YIELDS] == value
            assert f"--mca mpi_yield_when_idle {value}" in " ".join(launched.argv), "it is stored with the run"


def test_a_variable_that_the_user_may_set_is_not_refused() -> None:
    for value in ("", "0", "1"):
        refuse_overridden(of_launcher("openmpi"), {YIELDS: value})
    with pytest.raises(UsageError, match="hockney sets OMPI_MCA_osc itself"):
        refuse_overridden(of_launcher("oshrun"), {"OMPI_MCA_osc": "rdma"})


def test_every_launcher_has_an_expected_argv() -> None:
    assert LAUNCHERS.keys() == EXPECTED_ARGV.keys()


@pytest.mark.parametrize("name", LAUNCHERS)
def test_argv(name: str) -> None:
    for job, expected in zip((JOB, SPREAD), EXPECTED_ARGV[name], strict=True):
        if expected is not None:
            assert LAUNCHERS[name](replace(job, library=of_launcher(name))).argv == words(expected)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_environment(name: str) -> None:
    assert launch(JOB, of_launcher(name), {}).environment == EXPECTED_ENVIRONMENT.get(name, {})


def test_a_start_limit_is_passed_to_every_rank() -> None:
    launched = LAUNCHERS["ssh"](replace(SPREAD, start_limit_s=300))
    assert all("--start-limit 300" in argv[-1] for argv in (launched.argv, *launched.joins))


def test_hosts_that_join() -> None:
    launched = LAUNCHERS["ssh"](SPREAD)
    common = "/w -t T -n 3 --bind"
    assert launched.joins == (
        words(f"{SSH} b|{common} socket --oversubscribed --start-limit 60 --rank 2 --here 1 --join {JOIN_ADDRESS}"),
    )
    assert launched.needs_token
    assert launched.launcher == "ssh"


@pytest.mark.parametrize("kind", ["openmpi", "mpich", "intel", "oshrun"])
@pytest.mark.parametrize("asked", ["auto", "srun", "flux", "mytool -n {ranks} {worker}"])
def test_every_way_to_start_a_library_names_the_interface_to_it(kind: str, asked: str) -> None:
    library = replace(make_library(), kind=kind)
    job = placed(SPREAD, interface="ib0", hosts=(Host("n1"), Host("n2")), launcher=asked)
    launched = launch(job, library, {"SLURM_JOB_ID": "7", "SLURM_MPI_TYPE": "none", "HOCKNEY_RSH": "ssh"})
    known = {"OMPI_MCA_btl_tcp_if_include", "FI_TCP_IFACE", "UCX_NET_DEVICES"}
    assert {launched.environment[name] for name in known} == {"ib0"}
    assert "--interface ib0" in " ".join(launched.argv)
    if asked == "auto" and kind in ("openmpi", "oshrun"):
        assert "-x UCX_NET_DEVICES" in " ".join(launched.argv)


def test_an_interface_that_the_user_has_set_for_a_library_stays() -> None:
    job = placed(SPREAD, interface="ib0", hosts=(Host("n1"), Host("n2")))
    launched = launch(job, replace(make_library(), kind="openmpi"), {"UCX_NET_DEVICES": "mlx5_0:1"})
    assert "UCX_NET_DEVICES" not in launched.environment
    assert launched.environment["FI_TCP_IFACE"] == "ib0"


def test_native_ranks_get_the_interface_on_every_host() -> None:
    launched = launch(placed(SPREAD, interface="ib0"), None, {})
    assert all(argv[-1].count("--interface ib0") == 1 for argv in (launched.argv, *launched.joins))


def test_ranks_of_one_host_find_their_cpus_themselves_where_asked() -> None:
    assert LAUNCHERS["local"](Job(Path("/w"), "T", 2, Placement(map_by="node"))).argv == words(
        "/w -t T -n 2 --bind node --start-limit 60"
    )


def test_a_remote_shell_gets_words_that_it_cannot_misread() -> None:
    launched = LAUNCHERS["ssh"](Job(Path("/my files/w;x"), "tcp", 1, Placement(hosts=(Host("a"),))))
    assert launched.argv[-1].startswith("'/my files/w;x' -t tcp ")


def test_without_cpus_nothing_is_pinned() -> None:
    assert LAUNCHERS["local"](Job(Path("/w"), "T", 2)).argv == words("/w -t T -n 2 --start-limit 60")


def test_more_hosts_than_ranks_leaves_the_last_ones_out() -> None:
    job = Job(Path("/w"), "T", 1, Placement(hosts=A_AND_B), library=make_library())
    assert "a:1" in LAUNCHERS["mpich"](job).argv
    assert LAUNCHERS["ssh"](job).joins == ()


def mpi(kind: str, *, is_wheel: bool = False) -> Library:
    return make_library(f"mpi@{kind}-1", kind, Path("/m/mpiexec.x"), is_wheel=is_wheel)


@pytest.mark.parametrize("kind", ["openmpi", "mpich", "intel", "mpiexec"])
def test_a_library_is_started_by_its_own_mpiexec(kind: str) -> None:
    """A wheel does not see the system's libraries; in Slurm a job that waits does not hold an allocation's CPUs."""
    launched = launch(JOB, mpi(kind), {})
    assert (launched.argv[0], launched.launcher) == ("/m/mpiexec.x", "mpiexec.x")
    assert not {"LD_LIBRARY_PATH", "SLURM_OVERLAP"} & launched.environment.keys()
    assert launch(JOB, mpi(kind, is_wheel=True)).environment["LD_LIBRARY_PATH"] is None
    environment = launch(JOB, mpi(kind), {"SLURM_JOB_ID": "7"}).environment
    assert (environment["SLURM_OVERLAP"], environment["SLURM_CPU_BIND"]) == ("1", "none")
    if kind != "mpiexec":
        assert launch(SPREAD, mpi(kind), SLURM).launcher == "mpiexec.x"


def test_an_unknown_mpi_takes_no_hosts() -> None:
    with pytest.raises(UsageError, match="hosts cannot be given"):
        launch(SPREAD, mpi("mpiexec"))


def test_pvm_gets_the_address_of_its_daemon() -> None:
    pvm = make_library("pvm@1", "pvm", Path("/p/lib/pvmd"))
    launched = launch(JOB, pvm)
    assert launched.argv == words(WORKER)
    assert launched.environment == {"PVM_ROOT": "/p", "PVM_DPATH": "/p/lib/pvmd", "PVM_ALLOW_ROOT": "1"}
    spread = launch(SPREAD, pvm, {"PVM_TMP": "/t", "HOCKNEY_RSH": "agent"})
    assert len(spread.joins) == 1
    for argv in (spread.argv, *spread.joins):
        assert argv[0] == "agent"
        assert argv[-1].startswith("env PVM_ROOT=/p PVM_DPATH=/p/lib/pvmd PVM_ALLOW_ROOT=1 PVM_TMP=/t /w -t T -n 3 ")
    assert spread.needs_token


def test_native_jobs() -> None:
    assert launch(JOB) == StartCommand("worker", words(WORKER))
    launched = launch(SPREAD, environment={"HOCKNEY_RSH": "agent --in 'my net'"})
    assert launched.argv[:4] == ("agent", "--in", "my net", "a")
    assert launched.launcher == "agent"


SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b"}


def test_native_ranks_start_as_the_allocation_has_it() -> None:
    ranks = f"{OVERSUBSCRIBED} --rank"
    launched = launch(SPREAD, environment=SLURM)
    assert launched.argv == words(f"{SRUN_ONE} --nodelist=a {ranks} 0 --here 2 --listen a")
    assert launched.joins[-1] == words(f"{SRUN_ONE} --nodelist=b {ranks} 2 --here 1 --join {JOIN_ADDRESS}")
    assert launched.needs_token
    flux = launch(SPREAD, environment={**SLURM, "FLUX_URI": "local:///x"})
    assert flux.argv == words(
        f"flux run --nodes=1 --ntasks=1 --requires=host:a --setopt=cpu-affinity=off {ranks} 0 --here 2 --listen a"
    )
    for elsewhere in ({**SLURM, "SLURM_JOB_NODELIST": "a"}, {**SLURM, "HOCKNEY_RSH": "rsh"}, {"PBS_NODEFILE": "/f"}):
        assert launch(SPREAD, environment=elsewhere).launcher in ("ssh", "rsh")
    assert launch(placed(SPREAD, launcher="ssh"), environment=SLURM).launcher == "ssh"
    assert launch(SPREAD, environment={**SLURM, "SRUN_CPUS_PER_TASK": "1"}).environment == {"SRUN_CPUS_PER_TASK": None}
    assert launched.environment == {}
    assert launch(placed(SPREAD, launcher="srun"), environment={"SLURM_JOB_ID": "7"}).launcher == "srun"
    with pytest.raises(
        UsageError, match="--launcher srun works within a job of Slurm: begin one with salloc or sbatch"
    ):
        launch(placed(SPREAD, launcher="srun"), environment={})


def test_a_step_of_slurm_is_not_taken_for_the_job() -> None:
    step = {**SLURM, "SLURM_STEP_ID": "0", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_CPUS_PER_NODE": "4(x2)"}
    environment = launch(SPREAD, mpi("openmpi"), {**step, "SLURM_NNODES": "1"}).environment
    assert (environment["SLURM_NNODES"], environment["SLURM_TASKS_PER_NODE"]) == ("2", "4(x2)")
    assert "SLURM_NNODES" not in launch(SPREAD, mpi("openmpi"), SLURM).environment


@pytest.fixture
def srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes) -> Iterator[Callable[..., None]]:
    """Sets which PMIs srun has, and what the worker is linked with."""

    def make(known: str, linked: str = "") -> None:
        for name, said in (("srun", f"MPI plugin types are...\n{known}"), ("ldd", linked)):
            fake(tmp_path / name, f"echo '{said}' >&2")
        output_of.cache_clear()

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    yield make
    output_of.cache_clear()


@pytest.mark.parametrize(
    ("kind", "linked", "option"),
    [
        ("openmpi", "", "--mpi=pmix"),
        ("mpich", "", "--mpi=pmi2"),
        ("mpich", "libpmix.so.2 => /lib/libpmix.so.2", "--mpi=pmix"),
        ("intel", "", "--mpi=pmi2"),
        ("mpiexec", "libpmi2.so.0 => /lib/libpmi2.so.0", "--mpi=pmi2"),
        ("mpiexec", "", ""),
    ],
)
def test_srun_is_told_the_pmi_of_the_library(srun: Any, kind: str, linked: str, option: str) -> None:
    srun("pmi2\nnone\npmix_v4", linked)
    launched = launch(placed(SPREAD, launcher="srun"), mpi(kind), SLURM)
    assert [word for word in launched.argv if word.startswith("--mpi")] == [option] * bool(option)
    assert launched.environment["SLURM_OVERLAP"] == "1"
    here = launch(placed(JOB, launcher="srun"), mpi(kind), {**SLURM, "SLURMD_NODENAME": "a"}).argv
    assert " ".join(here).endswith(f" --nodes 1 --ntasks 3 --distribution arbitrary --nodelist a,a,a {WORKER}")
    assert launched.environment.get(YIELDS) == ("1" if kind == "openmpi" else None)


def test_an_mpi_whose_launcher_takes_no_hosts_is_started_by_srun(srun: Any) -> None:
    srun("none pmi2")
    assert launch(SPREAD, mpi("mpiexec"), SLURM).argv[0] == "srun"
    without_mpiexec = replace(mpi("mpich"), program=Path("/usr/bin/srun"))
    assert "--mpi=pmi2" in launch(JOB, without_mpiexec, SLURM).argv


def test_a_pmi_that_srun_lacks_is_named(srun: Any) -> None:
    srun("none\npmi2")
    with pytest.raises(LaunchFailed, match="needs the PMI pmix, and srun has none, pmi2; start it with --launcher"):
        launch(placed(SPREAD, launcher="srun"), mpi("openmpi"), SLURM)
    chosen = launch(placed(SPREAD, launcher="srun"), mpi("openmpi"), {**SLURM, "SLURM_MPI_TYPE": "cray_shasta"})
    assert not [word for word in chosen.argv if word.startswith("--mpi")]


TEMPLATE = "mytool -n {ranks} -p{per_host} --hosts {hosts} {worker} --end"


def test_a_template_of_the_users_own() -> None:
    launched = launch(placed(SPREAD, launcher=TEMPLATE), mpi("openmpi"), {})
    assert launched.argv == words(f"mytool -n 3 -p2 --hosts a,b {OVERSUBSCRIBED} --end")
    assert launched.environment == {**ROOT, YIELDS: "1"}
    native = launch(placed(SPREAD, launcher=TEMPLATE), None, {})
    assert native.joins[-1] == words(
        f"mytool -n 1 -p1 --hosts b {OVERSUBSCRIBED} --rank 2 --here 1 --join {JOIN_ADDRESS} --end"
    )
    assert launch(placed(SPREAD, launcher="mytool {worker}"), None, {}).launcher == "ssh"
    assert launch(placed(JOB, launcher=TEMPLATE), None, {}) == StartCommand("worker", words(WORKER))


def test_words_of_launchers() -> None:
    for asked in LAUNCHER_WORDS:
        check_launcher(asked)


@pytest.mark.parametrize(
    "asked",
    ["", "mpirun", "tool {ranks}", "tool {worker}x", "tool {worker} {worker}", "{worker}", "{hosts} {worker}",
     "tool {host} {worker}", "tool {worker} {", "tool '{worker}"],
)  # fmt: skip
def test_an_unknown_launcher_is_refused(asked: str) -> None:
    with pytest.raises(UsageError, match="HOCKNEY_LAUNCHER"):
        check_launcher(asked, "HOCKNEY_LAUNCHER")


def test_a_remote_shell_that_cannot_be_read_as_a_command_is_named() -> None:
    strange = launch(placed(JOB, hosts=A_AND_B), environment={"HOCKNEY_RSH": "ssh -o User={me}"})
    assert strange.argv[:3] == ("ssh", "-o", "User={me}")  # no placeholder of ours
    with pytest.raises(LaunchFailed, match='HOCKNEY_RSH=ssh " is no command'):
        launch(placed(JOB, hosts=A_AND_B), environment={"HOCKNEY_RSH": 'ssh "'})


def test_a_library_without_a_launcher_starts_as_native_ranks_do() -> None:
    """On other hosts, too, with its variables and those of the user that set it: a remote shell passes none on."""
    library = replace(make_library("ofi@tcp-rxm", "local"), environment=(("HOCKNEY_OFI_PROVIDER", "tcp;ofi_rxm"),))
    environment = {"FI_LOG_LEVEL": "warn", "UCX_TLS": "tcp", "HOCKNEY_RSH": "agent"}
    here = launch(JOB, library, environment)
    assert (here.argv, here.environment) == (words(WORKER), {"HOCKNEY_OFI_PROVIDER": "tcp;ofi_rxm"})
    assert here.settings == ("FI_LOG_LEVEL=warn", "UCX_TLS=tcp")
    spread = launch(placed(SPREAD, interface="ib0"), library, environment)
    assert (spread.launcher, spread.needs_token, len(spread.joins)) == ("agent", True, 1)
    for argv in (spread.argv, *spread.joins):
        assert argv[-1].startswith("env 'HOCKNEY_OFI_PROVIDER=tcp;ofi_rxm' FI_LOG_LEVEL=warn UCX_TLS=tcp /w -t T -n 3 ")
        assert "--interface ib0" in argv[-1]
