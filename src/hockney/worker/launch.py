"""Launchers: pure functions from a job to the command lines that start it.

A command line is a tuple of words, never a shell string, except the command for a remote shell. Ranks pin themselves
(`--bind`), so every launcher is set to bind nothing: two that bind would conflict.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hockney.errors import UsageError
from hockney.units import START_LIMIT_S
from hockney.worker import programs
from hockney.worker.errors import LaunchFailed
from hockney.worker.libraries import NATIVE, Library
from hockney.worker.placement import Placement
from hockney.worker.starters import SRUN, find_starter, read_template
from hockney.worker.variables import settings

output_of = functools.lru_cache(maxsize=32)(programs.output_of)  # each launch asks

JOIN_ADDRESS = "@ADDRESS@"
"""Placeholder in the command lines of joining hosts for HOST:PORT, which rank 0 reports when it listens."""

YIELDS = "OMPI_MCA_mpi_yield_when_idle"
"""The variable that says whether Open MPI's waits yield the CPU; hockney says so where it is not set."""

_INTERFACES = (  # of Open MPI, of libfabric's providers, of UCX, of MPICH's older device
    "OMPI_MCA_btl_tcp_if_include", "FI_TCP_IFACE", "FI_SOCKETS_IFACE", "UCX_NET_DEVICES",
    "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE",
)  # fmt: skip
_CPUS_OF_A_TASK = ("SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXACT")
_PMIS = {"openmpi": "pmix", "oshrun": "pmix", "mpich": "pmi2", "intel": "pmi2"}


@dataclass(frozen=True)
class Job:
    """A job to start; `oversubscribed`: its ranks share CPUs, with each other or with those of another job.

    `model`: the lines of the ranks' machine, and `seed` of its noise. The last two are what launch() is given.
    """

    executable: Path
    transport: str
    ranks: int
    placement: Placement = field(default_factory=Placement)
    oversubscribed: bool = False
    start_limit_s: int = START_LIMIT_S
    model: Path | None = None
    seed: int = 0
    library: Library = NATIVE
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StartCommand:
    """The commands that start a job: `argv`, and in a job joined over TCP one of `joins` for each further host.

    `environment` has changes to ours; None removes a variable. `demand`: the requirement for reaching each host.
    `rank_hosts`: the host of each rank, if hockney places them. `settings`: `NAME=VALUE` of the user's variables that
    set the library.
    """

    launcher: str
    argv: tuple[str, ...]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    joins: tuple[tuple[str, ...], ...] = ()
    demand: str = ""
    rank_hosts: tuple[str, ...] = ()
    needs_token: bool = False  # the first line of each standard input is a secret that all ranks share
    settings: tuple[str, ...] = ()


def launch(job: Job, library: Library | None = None, environment: Mapping[str, str] = os.environ) -> StartCommand:
    """How a job is started: by its library's own launcher, or as its placement says (starters.check_launcher).

    Native ranks and PVM's are started host by host, in an allocation by its scheduler, else by ssh. Raises UsageError
    where a job can't be started so, LaunchFailed for a wrong HOCKNEY_RSH or without a PMI.
    """
    job = replace(job, library=library or NATIVE, environment=environment)
    name = _launcher_of(job)
    command = template(job) if name == "template" else LAUNCHERS[name](job)
    more: dict[str, str | None] = {}
    if job.library is not NATIVE and job.library.kind != "pvm":
        command = replace(command, settings=tuple(settings(job.library, environment)))
    if job.library.has_launcher:
        more = {**_of_slurm(environment), **_of_interface(job), **_of_library(job)}
    elif job.placement.hosts:  # one task starts all ranks of its host, and needs the CPUs of the job there
        more = dict.fromkeys(name for name in _CPUS_OF_A_TASK if name in environment)
    return replace(command, environment={**more, **command.environment})


def _launcher_of(job: Job) -> str:
    """The name of a launcher, or `template`: the library's own one, unless another is asked for, or it cannot do it."""
    library, hosts, asked = job.library, job.placement.hosts, job.placement.launcher
    if not library.has_launcher:
        return "ssh" if library.kind == "local" and hosts else library.kind
    if "{" in asked:
        return "template"
    if asked in ("srun", "flux"):
        return asked
    if library.program.name == "srun":  # it has no mpiexec
        return "srun"
    if asked == "auto" and hosts:
        starter = find_starter(asked, hosts, job.environment).name
        if starter == "flux" or (starter == "srun" and library.kind == "mpiexec"):
            return starter
    return library.kind


def _of_interface(job: Job) -> dict[str, str]:
    """The variables by which libraries choose a network interface; each ignores those of the others.

    One that the user has set stays: UCX calls the RDMA port behind ib0 mlx5_0:1, and with ib0 it uses TCP.
    """
    interface = job.placement.interface
    return {name: interface for name in _INTERFACES if name not in job.environment} if interface else {}


def _of_library(job: Job) -> dict[str, str | None]:
    """What ranks of a library need, whatever starts them."""
    # A wheel that sees the system's library folder loads the system's libfabric, and breaks.
    of_wheel: dict[str, str | None] = {"LD_LIBRARY_PATH": None} if job.library.is_wheel else {}
    if job.library.kind == "intel":
        of_wheel |= {"I_MPI_ROOT": str(job.library.program.parent.parent)} if job.library.is_wheel else {}
        return {**of_wheel, "I_MPI_PIN": "0"}
    if job.library.kind not in ("openmpi", "oshrun"):
        return of_wheel
    # Containers run as root. With the window component (osc rdma) every OpenSHMEM program dies in shmem_finalize.
    as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    of_shmem = {"OMPI_MCA_osc": "^rdma"} if job.library.kind == "oshrun" else {}
    yields = job.environment.get(YIELDS) or ("1" if job.oversubscribed else "0")
    return {**of_wheel, **as_root, **of_shmem, YIELDS: yields}


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


def refuse_overridden(library: Library | None, environment: Mapping[str, str]) -> None:
    """Raises UsageError for a variable if jobs of a library are started with another value of it."""
    for name, value in launch(Job(Path(), "", 1), library, environment).environment.items():
        if environment.get(name) and environment[name] != value:
            raise UsageError(f"hockney sets {name} itself for this library: give another variable")


# ---- the launchers --------------------------------------------------------------------------------------------------


def _worker(job: Job, *more: str) -> tuple[str, ...]:
    """The worker's own command line."""
    return (
        str(job.executable),
        *("-t", job.transport, "-n", str(job.ranks)),
        *(("--bind", job.placement.bind) if job.placement.bind else ()),
        *(("--oversubscribed",) if job.oversubscribed else ()),
        *("--start-limit", str(job.start_limit_s)),
        *(("--interface", job.placement.interface) if job.placement.interface is not None else ()),
        *(("--model", str(job.model), "--seed", str(job.seed)) if job.model else ()),
        *more,
    )


def _mpiexec(job: Job, *options: str, hosts: str = "") -> StartCommand:
    """The library's own launcher; `hosts`: its option for them."""
    program = job.library.program
    where: tuple[str, ...] = ()
    if job.placement.hosts and not hosts:
        raise UsageError(f"hosts cannot be given to {program}: its options for them are not known")
    if job.placement.hosts:  # `a:2,b:1`: with their numbers of ranks, as every mpiexec takes them
        where = (hosts, ",".join(map(str, job.placement.hosts_of(job.ranks))))
    return StartCommand(program.name, (str(program), "-n", str(job.ranks), *options, *where, *_worker(job)))


def local(job: Job) -> StartCommand:
    """The worker starts its ranks itself: native ones, and those of UCX and libfabric."""
    return StartCommand("worker", _worker(job), dict(job.library.environment))


def openmpi(job: Job) -> StartCommand:
    """Open MPI's mpiexec.

    It counts cores, not hardware threads, so every job may oversubscribe. That would change whether waits yield, so
    hockney or the user sets it: as an option, too, which is stored with the run.
    """
    passed = ("-x", "UCX_NET_DEVICES") if job.placement.interface is not None else ()  # it passes only its own on
    settings = (
        (name.split("OMPI_MCA_")[-1], str(value)) for name, value in _of_library(job).items() if "_MCA_" in name
    )
    options = (word for setting in settings for word in ("--mca", *setting))
    return _mpiexec(job, "--oversubscribe", "--bind-to", "none", *options, *passed, hosts="--host")


def oshrun(job: Job) -> StartCommand:
    """Open MPI's oshrun: its mpiexec by another name, without the window component."""
    return openmpi(job)


def mpich(job: Job) -> StartCommand:
    """MPICH's mpiexec (Hydra)."""
    return _mpiexec(job, "-bind-to", "none", hosts="-hosts")


def intel(job: Job) -> StartCommand:
    """Intel MPI's mpiexec: a Hydra that pins by a variable, not by an option."""
    return _mpiexec(job, hosts="-hosts")


def mpiexec(job: Job) -> StartCommand:
    """Any other MPI's mpiexec, with the options of the MPI standard only."""
    return _mpiexec(job)


def pvm(job: Job) -> StartCommand:
    """PVM has no launcher: on each host the worker's first process or its ranks start the daemon.

    PVM refuses to run as root without the variable, and containers do.
    """
    daemon = job.library.program
    variables = {"PVM_ROOT": str(daemon.parent.parent), "PVM_DPATH": str(daemon), "PVM_ALLOW_ROOT": "1"}
    variables |= {"PVM_TMP": folder} if (folder := job.environment.get("PVM_TMP")) else {}
    if job.placement.hosts:  # a remote shell passes no variables on
        return ssh(job, "env", *(f"{name}={value}" for name, value in variables.items()))
    return StartCommand("worker", _worker(job), variables)


def ssh(job: Job, *before: str) -> StartCommand:
    """Ranks on several hosts: ssh, or the allocation's way, starts those of each host; all join rank 0.

    `before`: words before the worker's command line. A remote shell passes no variables on, so a library's are there.
    """
    if not before and job.library is not NATIVE:
        of_library = [f"{name}={value}" for name, value in job.library.environment]
        before = ("env", *of_library, *settings(job.library, job.environment))
    starter = find_starter(job.placement.launcher, job.placement.hosts, job.environment)
    rank_hosts = _rank_hosts(job)
    lines = []
    for host, here in Counter(rank_hosts).items():
        rank = rank_hosts.index(host)
        meeting = ("--listen", host) if rank == 0 else ("--join", JOIN_ADDRESS)
        command = _worker(job, "--rank", str(rank), "--here", str(here), *meeting)
        lines.append(starter.argv((*before, *command), [host]))
    return StartCommand(
        starter.name, lines[0], {}, tuple(lines[1:]), starter.demand, tuple(rank_hosts), needs_token=True
    )


def srun(job: Job) -> StartCommand:
    """Slurm's srun, for native ranks in an allocation, and for an MPI that cannot be started otherwise."""
    # Ranks that have no hosts belong to this one, by its name in Slurm.
    rank_hosts = _rank_hosts(job) if job.placement.hosts else [job.environment.get("SLURMD_NODENAME", "")] * job.ranks
    where = (
        *("--nodes", str(len(set(rank_hosts))), "--ntasks", str(job.ranks)),
        *(("--distribution", "arbitrary", "--nodelist", ",".join(rank_hosts)) if all(rank_hosts) else ()),
    )
    pmi = (f"--mpi={name}",) if (name := _pmi(job)) else ()
    return StartCommand("srun", (*SRUN, *pmi, *where, *_worker(job)))


def _pmi(job: Job) -> str:
    """The value of srun's --mpi; empty if the site or the user sets it. Raises LaunchFailed without any.

    A library that is linked with a PMI needs that one. Open MPI loads PMIx when it starts; MPICH has PMI-2 within.
    """
    if job.environment.get("SLURM_MPI_TYPE"):
        return ""
    linked, kind = output_of(("ldd", str(job.executable))), job.library.kind
    needed = "pmix" if "libpmix.so" in linked else "pmi2" if "libpmi2.so" in linked else _PMIS.get(kind, "")
    known = re.findall(r"\b(?:pmix|pmi2|none|openmpi|cray_shasta)(?:_v\d+)?\b", output_of(("srun", "--mpi=list")))
    if needed and known and not any(name.partition("_v")[0] == needed for name in known):
        raise LaunchFailed(
            "srun",
            f"{job.library.name} needs the PMI {needed}, and srun has {', '.join(dict.fromkeys(known))}",
            remedy="start it with --launcher mpiexec, or say the type in SLURM_MPI_TYPE",
        )
    return needed


def flux(job: Job) -> StartCommand:
    """Flux's own launcher, within one of its instances."""
    hosts = list(dict.fromkeys(_rank_hosts(job)))
    where = (f"--requires=host:{','.join(hosts)}",) if job.placement.hosts else ()
    argv = ("flux", "run", "--nodes", str(len(hosts)), "--ntasks", str(job.ranks), *where, *_worker(job))
    return StartCommand("flux", argv)


def template(job: Job) -> StartCommand:
    """A command line of the user's own, with the job's figures in it."""
    starter = read_template(job.placement.launcher)
    return StartCommand(starter.name, starter.argv(_worker(job), _rank_hosts(job)))


def _rank_hosts(job: Job) -> list[str]:
    hosts = job.placement.hosts_of(job.ranks)
    return [host.name for host in hosts for _ in range(host.slots or 0)] or ["localhost"] * job.ranks


LAUNCHERS: dict[str, Callable[[Job], StartCommand]] = {
    launcher.__name__: launcher for launcher in (local, openmpi, oshrun, mpich, intel, mpiexec, pvm, ssh, srun, flux)
}
"""Every launcher by name. A table in the tests holds the command line of each."""
