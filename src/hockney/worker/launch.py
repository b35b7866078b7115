"""Launchers: pure functions from a job to the command lines that start it.

A command line is a tuple of words, never a shell string, except the command for a remote shell. Ranks pin themselves
(`--bind`), so every launcher is set to bind nothing: two that bind would conflict.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hockney.errors import UsageError
from hockney.worker.hosts import Host, spread
from hockney.worker.libraries import Library
from hockney.worker.pmi import pmi_type
from hockney.worker.starters import SRUN, SSH, Starter, find_starter, read_template

START_LIMIT_S = 60
"""The default limit for the start of a job: a batch system or a slow network may need some of it."""

JOIN_ADDRESS = "@ADDRESS@"
"""Placeholder in the command lines of joining hosts for HOST:PORT, which rank 0 reports when it listens."""

YIELDS = "OMPI_MCA_mpi_yield_when_idle"
"""The variable that says whether Open MPI's waits yield the CPU; hockney says so where it is not set."""

_INTERFACES = (  # of Open MPI, of libfabric's providers, of UCX, of MPICH's older device
    "OMPI_MCA_btl_tcp_if_include", "FI_TCP_IFACE", "FI_SOCKETS_IFACE", "UCX_NET_DEVICES",
    "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE",
)  # fmt: skip
_CPUS_OF_A_TASK = ("SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXACT")


@dataclass(frozen=True)
class Job:
    """A job to start. Rank r of a machine is pinned to `cpus[r % len(cpus)]`; empty: as `map_by` says.

    `hosts` empty means this host; else ranks fill the hosts in blocks, and each host pins them to its CPUs by `map_by`:
    core, socket or node; None: not pinned. `interface` is the one that sockets between hosts use; None: any. `program`
    is the launcher's executable, `is_wheel` whether it is from a Python environment. `yields` is the environment's
    setting for Open MPI's waits, if any. `starter` starts ranks on hosts if the library's launcher does not; `pmi` is
    how they find each other under srun, empty: the site's default. `pvm_tmp`: where the user wants PVM's sockets.
    `model`: the lines of the ranks' machine, and `seed` of its noise.
    """

    executable: Path
    transport: str
    ranks: int
    cpus: tuple[int, ...] = ()
    oversubscribed: bool = False
    hosts: tuple[Host, ...] = ()
    map_by: str | None = None
    interface: str | None = None
    program: str = ""
    is_wheel: bool = False
    yields: str | None = None
    starter: Starter = SSH
    pmi: str = ""
    pvm_tmp: str = ""
    start_limit_s: int = START_LIMIT_S
    model: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class StartCommand:
    """The commands that start a job: `argv`, and in a job joined over TCP one of `joins` for each further host.

    `environment` has changes to ours; None removes a variable. `demand`: the requirement for reaching each host.
    `places`: the host of each rank, if hockney places them.
    """

    launcher: str
    argv: tuple[str, ...]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    joins: tuple[tuple[str, ...], ...] = ()
    demand: str = ""
    places: tuple[str, ...] = ()
    needs_token: bool = False  # the first line of each standard input is a secret that all ranks share


def launch(
    job: Job, library: Library | None = None, environment: Mapping[str, str] = os.environ, asked: str = "auto"
) -> StartCommand:
    """How a job is started: by its library's own launcher, or as `asked` (starters.check_launcher).

    Native ranks and PVM's are started host by host, in an allocation by its scheduler, else by ssh. Raises UsageError
    where a job can't be started so, LaunchFailed for a wrong HOCKNEY_RSH or without a PMI.
    """
    if library is None or not library.has_launcher:
        return _host_by_host(job, library, environment, asked)
    known = replace(job, program=str(library.program), is_wheel=library.is_wheel, yields=environment.get(YIELDS))
    name = _launcher_of(library, job, asked, environment)
    if name == "template":
        command = template(replace(known, starter=read_template(asked)), library.kind)
    elif name == "srun":
        known = replace(known, pmi=pmi_type(library, job.executable, environment))
        command = srun(known, library.kind, environment.get("SLURMD_NODENAME", ""))
    elif name == "flux":
        command = flux(known, library.kind)
    else:
        command = LAUNCHERS[name](known)
    more = {**_of_slurm(environment), **_of_interface(known, environment)}
    return replace(command, environment={**more, **command.environment})


def _host_by_host(job: Job, library: Library | None, environment: Mapping[str, str], asked: str) -> StartCommand:
    """How a job is started whose library, if it has one, starts no ranks."""
    if library is not None:
        job = replace(job, program=str(library.program), pvm_tmp=environment.get("PVM_TMP", ""))
    if not job.hosts:
        return local(job) if library is None else pvm(job)
    job = replace(job, starter=find_starter(asked, job.hosts, environment))
    command = ssh(job) if library is None else pvm(job)
    # One task starts all ranks of its host, so it needs the CPUs of the job there, not those of a task.
    of_a_task = dict.fromkeys(name for name in _CPUS_OF_A_TASK if name in environment)
    return replace(command, environment={**command.environment, **of_a_task})


def _of_interface(job: Job, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which libraries choose a network interface; each ignores those of the others.

    One that the user has set stays: UCX calls the RDMA port behind ib0 mlx5_0:1, and with ib0 it uses TCP.
    """
    return {name: job.interface for name in _INTERFACES if name not in environment} if job.interface else {}


def _of_slurm(environment: Mapping[str, str]) -> dict[str, str]:
    """What an mpiexec needs within Slurm, where it starts its ranks as a step."""
    if "SLURM_JOB_ID" not in environment:
        return {}
    # A job that waits would keep others from the CPUs, and its step would bind all ranks of a host to one task's.
    shared = {"SLURM_OVERLAP": "1", "SLURM_CPU_BIND": "none"}
    if "SLURM_STEP_ID" in environment:  # srun has started us, and Open MPI would take our step for the whole job
        of_job = {"SLURM_NNODES": "SLURM_JOB_NUM_NODES", "SLURM_TASKS_PER_NODE": "SLURM_JOB_CPUS_PER_NODE"}
        shared |= {name: environment[known] for name, known in of_job.items() if known in environment}
    return shared


def _launcher_of(library: Library, job: Job, asked: str, environment: Mapping[str, str]) -> str:
    """The name of a launcher, or `template`: the library's own one, unless another is asked for, or it cannot do it."""
    if "{" in asked:
        return "template"
    if asked in ("srun", "flux"):
        return asked
    if library.program.name == "srun":  # it has no mpiexec
        return "srun"
    if asked == "auto" and job.hosts:
        starter = find_starter(asked, job.hosts, environment).name
        if starter == "flux" or (starter == "srun" and library.kind == "mpiexec"):
            return starter
    return library.kind


def refuse_overridden(library: Library | None, environment: Mapping[str, str]) -> None:
    """Raises UsageError for a variable if jobs of a library are started with another value of it."""
    for name, value in launch(Job(Path(), "", 1), library, {}).environment.items():
        if environment.get(name, value) != value:
            raise UsageError(f"hockney sets {name} itself for this library: give another variable")


# ---- the launchers --------------------------------------------------------------------------------------------------


def _worker(job: Job, *more: str) -> tuple[str, ...]:
    """The worker's own command line."""
    return (
        str(job.executable),
        *("-t", job.transport, "-n", str(job.ranks)),
        *(("--bind", bind) if (bind := ",".join(map(str, job.cpus)) or job.map_by) else ()),
        *(("--oversubscribed",) if job.oversubscribed else ()),
        *("--start-limit", str(job.start_limit_s)),
        *(("--interface", job.interface) if job.interface is not None else ()),
        *(("--model", str(job.model), "--seed", str(job.seed)) if job.model else ()),
        *more,
    )


def _host_list(job: Job) -> str:
    """`a:2,b:1`: hosts with their numbers of ranks, as every mpiexec takes them."""
    counts = spread(job.ranks, job.hosts)
    return ",".join(f"{host.name}:{count}" for host, count in zip(job.hosts, counts, strict=True) if count)


def _mpiexec(job: Job, *options: str, **environment: str) -> StartCommand:
    argv = (job.program, *options, *_worker(job))
    # A wheel that sees the system's library folder loads the system's libfabric, and breaks.
    path: dict[str, str | None] = {"LD_LIBRARY_PATH": None} if job.is_wheel else {}
    return StartCommand(Path(job.program).name, argv, {**environment, **path})


def local(job: Job) -> StartCommand:
    """The native worker starts its ranks itself."""
    return StartCommand("worker", _worker(job))


def openmpi(job: Job) -> StartCommand:
    """Open MPI's mpiexec.

    It counts cores, not hardware threads, so every job may oversubscribe. That would change whether waits yield, so
    hockney or the user sets it. Containers run as root; without the two variables it refuses to.
    """
    return _mpiexec(
        job,
        *("-np", str(job.ranks), "--oversubscribe", "--bind-to", "none"),
        *("--mca", "mpi_yield_when_idle", job.yields or ("1" if job.oversubscribed else "0")),
        *(("--host", _host_list(job)) if job.hosts else ()),
        *(("-x", "UCX_NET_DEVICES") if job.interface is not None else ()),  # it passes only its own variables on
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )


def oshrun(job: Job) -> StartCommand:
    """Open MPI's oshrun: its mpiexec by another name, without the window component.

    With it (osc rdma) every OpenSHMEM program dies in shmem_finalize.
    """
    plain = openmpi(job)
    return replace(plain, argv=(plain.argv[0], "--mca", "osc", "^rdma", *plain.argv[1:]))


def mpich(job: Job) -> StartCommand:
    """MPICH's mpiexec (Hydra)."""
    hosts = ("-hosts", _host_list(job)) if job.hosts else ()
    return _mpiexec(job, "-n", str(job.ranks), "-bind-to", "none", *hosts)


def intel(job: Job) -> StartCommand:
    """Intel MPI's mpiexec: a Hydra that pins by a variable, not by an option."""
    hosts = ("-hosts", _host_list(job)) if job.hosts else ()
    return _mpiexec(job, "-n", str(job.ranks), *hosts, I_MPI_PIN="0")


def mpiexec(job: Job) -> StartCommand:
    """Any other MPI's mpiexec, with the options of the MPI standard only."""
    if job.hosts:
        raise UsageError(f"hosts cannot be given to {job.program}: its options for them are not known")
    return _mpiexec(job, "-n", str(job.ranks))


def pvm(job: Job) -> StartCommand:
    """PVM has no launcher: on each host the worker's first process or its ranks start the daemon.

    PVM refuses to run as root without the variable, and containers do.
    """
    variables = {"PVM_ROOT": str(Path(job.program).parent.parent), "PVM_DPATH": job.program, "PVM_ALLOW_ROOT": "1"}
    variables |= {"PVM_TMP": job.pvm_tmp} if job.pvm_tmp else {}
    if job.hosts:  # a remote shell passes no variables on
        return ssh(job, "env", *(f"{name}={value}" for name, value in variables.items()))
    return StartCommand("worker", _worker(job), variables)


def ssh(job: Job, *before: str) -> StartCommand:
    """Ranks on several hosts: ssh, or the allocation's way, starts those of each host; all join rank 0.

    `before`: words before the worker's command line.
    """
    lines: list[tuple[str, ...]] = []
    rank = 0
    for host, count in zip(job.hosts, spread(job.ranks, job.hosts), strict=True):
        if count:
            meeting = ("--listen", host.name) if rank == 0 else ("--join", JOIN_ADDRESS)
            command = _worker(job, "--rank", str(rank), "--here", str(count), *meeting)
            lines.append(job.starter.argv((*before, *command), [host.name]))
        rank += count
    demand, places = job.starter.demand, tuple(_places(job))
    return StartCommand(job.starter.name, lines[0], {}, tuple(lines[1:]), demand, places, needs_token=True)


def srun(job: Job, kind: str = "", here: str = "") -> StartCommand:
    """Slurm's srun, for native ranks in an allocation, and for an MPI that cannot be started otherwise."""
    # `here` is this host's name in Slurm, where ranks belong that have no hosts.
    places = _places(job) if job.hosts else [here] * job.ranks
    where = (
        *("--nodes", str(len(set(places))), "--ntasks", str(job.ranks)),
        *(("--distribution", "arbitrary", "--nodelist", ",".join(places)) if all(places) else ()),
    )
    pmi = (f"--mpi={job.pmi}",) if job.pmi else ()
    return StartCommand("srun", (*SRUN, *pmi, *where, *_worker(job)), _settings(job, kind))


def flux(job: Job, kind: str = "") -> StartCommand:
    """Flux's own launcher, within one of its instances."""
    places = list(dict.fromkeys(_places(job)))
    where = (f"--requires=host:{','.join(places)}",) if job.hosts else ()
    argv = ("flux", "run", "--nodes", str(len(places)), "--ntasks", str(job.ranks), *where, *_worker(job))
    return StartCommand("flux", argv, _settings(job, kind))


def template(job: Job, kind: str) -> StartCommand:
    """A command line of the user's own, with the job's figures in it."""
    argv = job.starter.argv(_worker(job), _places(job))
    return StartCommand(job.starter.name, argv, _settings(job, kind))


def _places(job: Job) -> list[str]:
    """The host of each rank."""
    if not job.hosts:
        return ["localhost"] * job.ranks
    counts = spread(job.ranks, job.hosts)
    return [host.name for host, count in zip(job.hosts, counts, strict=True) for _ in range(count)]


def _settings(job: Job, kind: str) -> dict[str, str | None]:
    """The options of a library's launcher, as environment variables."""
    settings: dict[str, str | None] = {"LD_LIBRARY_PATH": None} if job.is_wheel else {}
    if kind in ("openmpi", "oshrun"):
        settings[YIELDS] = job.yields or ("1" if job.oversubscribed else "0")
    if kind == "oshrun":
        settings["OMPI_MCA_osc"] = "^rdma"
    return settings | ({"I_MPI_PIN": "0"} if kind == "intel" else {})


LAUNCHERS: dict[str, Callable[[Job], StartCommand]] = {
    "local": local,
    "openmpi": openmpi,
    "oshrun": oshrun,
    "mpich": mpich,
    "intel": intel,
    "mpiexec": mpiexec,
    "pvm": pvm,
    "ssh": ssh,
    "srun": srun,
    "flux": flux,
}
"""Every launcher by name. A table in the tests holds the command line of each."""
