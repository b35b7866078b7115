"""Launchers: pure functions from a job to the command lines that start it.

A command line is a tuple of words, never a shell string, but for what a remote shell is handed. Ranks pin themselves
(`--bind`), so every launcher is told to bind nothing: two that bind would fight.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hockney.errors import UsageError
from hockney.worker.compiler import split_words
from hockney.worker.errors import LaunchFailed
from hockney.worker.hosts import Host, spread
from hockney.worker.libraries import Library

START_LIMIT_S = 60
"""How long a job may take to start where nobody says it: a batch system or a slow network may need some of it."""

JOIN_ADDRESS = "@ADDRESS@"
"""Stands in the command lines of joining hosts for HOST:PORT, which rank 0 tells when it listens."""

YIELDS = "OMPI_MCA_mpi_yield_when_idle"
"""The variable that says whether Open MPI's waits yield the CPU; hockney says so where it is not set."""

DEFAULT_REMOTE_SHELL = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5")
"""A question for a password would wait for ever, so ssh may not ask one."""


@dataclass(frozen=True)
class Job:
    """What is to be started. Rank r of a machine is pinned to `cpus[r % len(cpus)]`; empty: not pinned.

    `hosts` empty means this host; else ranks fill the hosts in blocks, and each host pins them to CPUs of its own.
    `program` is the launcher's executable, `is_wheel` whether it is from a Python environment. `yields` is what the
    environment says of Open MPI's waits, if it does. `model`: the lines of the machine that ranks live on, and `seed`
    of its noise.
    """

    executable: Path
    transport: str
    ranks: int
    cpus: tuple[int, ...] = ()
    oversubscribed: bool = False
    hosts: tuple[Host, ...] = ()
    program: str = ""
    is_wheel: bool = False
    yields: str | None = None
    remote_shell: tuple[str, ...] = DEFAULT_REMOTE_SHELL
    start_limit_s: int = START_LIMIT_S
    model: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class StartCommand:
    """How a job is started: `argv`, and in a job joined over TCP one of `joins` for each further host.

    `environment` is what differs from our own; None takes a variable away.
    """

    launcher: str
    argv: tuple[str, ...]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    joins: tuple[tuple[str, ...], ...] = ()
    needs_token: bool = False  # the first line of each standard input is a secret that all ranks share


def launch(job: Job, library: Library | None = None, environment: Mapping[str, str] = os.environ) -> StartCommand:
    """The launcher that fits: a library's own, ssh for native ranks on several hosts, else none at all.

    Raises UsageError where a job can't be started so, LaunchFailed for a wrong HOCKNEY_RSH.
    """
    if library is not None:
        known = replace(job, program=str(library.program), is_wheel=library.is_wheel, yields=environment.get(YIELDS))
        command = LAUNCHERS[library.kind](known)
        # Within Slurm an mpiexec starts its ranks as a step, and a job that waits would keep others from the CPUs.
        shared = {"SLURM_OVERLAP": "1"} if "SLURM_JOB_ID" in environment else {}
        return replace(command, environment={**shared, **command.environment})
    return ssh(replace(job, remote_shell=remote_shell(environment))) if job.hosts else local(job)


def remote_shell(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What comes before a host's name and a command for it. Raises LaunchFailed for a wrong HOCKNEY_RSH."""
    asked = environment.get("HOCKNEY_RSH", "")
    agent = tuple(split_words(asked))
    if asked and not agent:
        raise LaunchFailed("hockney", f"HOCKNEY_RSH={asked} is no command")
    return agent or DEFAULT_REMOTE_SHELL


def refuse_overridden(library: Library | None, environment: Mapping[str, str]) -> None:
    """Raises UsageError for a variable that a library's jobs are started with another value of."""
    for name, value in launch(Job(Path(), "", 1), library, {}).environment.items():
        if environment.get(name, value) != value:
            raise UsageError(f"hockney sets {name} itself for this library: give another variable")


# ---- the launchers --------------------------------------------------------------------------------------------------


def _worker(job: Job, *more: str) -> tuple[str, ...]:
    """The worker's own command line."""
    return (
        str(job.executable),
        *("-t", job.transport, "-n", str(job.ranks)),
        *(("--bind", "own" if job.hosts else ",".join(map(str, job.cpus))) if job.hosts or job.cpus else ()),
        *(("--oversubscribed",) if job.oversubscribed else ()),
        *("--start-limit", str(job.start_limit_s)),
        *(("--model", str(job.model), "--seed", str(job.seed)) if job.model else ()),
        *more,
    )


def _host_list(job: Job) -> str:
    """`a:2,b:1`: hosts with their numbers of ranks, as every mpiexec takes them."""
    counts = spread(job.ranks, job.hosts)
    return ",".join(f"{host.name}:{count}" for host, count in zip(job.hosts, counts, strict=True) if count)


def _mpiexec(job: Job, *options: str, **environment: str) -> StartCommand:
    argv = (job.program, *options, *_worker(job))
    # A wheel that sees the system's library folder takes the system's libfabric instead of its own, and breaks.
    path: dict[str, str | None] = {"LD_LIBRARY_PATH": None} if job.is_wheel else {}
    return StartCommand(Path(job.program).name, argv, {**environment, **path})


def local(job: Job) -> StartCommand:
    """The native worker starts its ranks itself."""
    return StartCommand("worker", _worker(job))


def openmpi(job: Job) -> StartCommand:
    """Open MPI's mpiexec.

    It counts cores, not hardware threads, so every job is allowed to oversubscribe, and whether waits yield, which
    that would change, is said by us, or by the user. Containers run as root; without the two variables it refuses to.
    """
    return _mpiexec(
        job,
        *("-np", str(job.ranks), "--oversubscribe", "--bind-to", "none"),
        *("--mca", "mpi_yield_when_idle", job.yields or ("1" if job.oversubscribed else "0")),
        *(("--host", _host_list(job)) if job.hosts else ()),
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
    """Any other MPI's mpiexec: only what the MPI standard says of it."""
    if job.hosts:
        raise UsageError(f"hosts cannot be given to {job.program}: nobody knows its options for them")
    return _mpiexec(job, "-n", str(job.ranks))


def pvm(job: Job) -> StartCommand:
    """PVM has no launcher: the worker's first process finds or starts the daemon, and starts the ranks.

    PVM refuses to run as root without the variable, and containers do.
    """
    if job.hosts:
        raise UsageError("hosts cannot be given to PVM: its ranks are started on this host only")
    program = Path(job.program)
    environment = {"PVM_ROOT": str(program.parent.parent), "PVM_DPATH": job.program, "PVM_ALLOW_ROOT": "1"}
    return StartCommand("worker", _worker(job), environment)


def ssh(job: Job) -> StartCommand:
    """Native ranks on several hosts: a remote shell starts those of each host, and all join rank 0 over TCP."""
    lines: list[tuple[str, ...]] = []
    rank = 0
    for host, count in zip(job.hosts, spread(job.ranks, job.hosts), strict=True):
        if count:
            meeting = ("--listen", host.name) if rank == 0 else ("--join", JOIN_ADDRESS)
            remote = _worker(job, "--rank", str(rank), "--here", str(count), *meeting)
            lines.append((*job.remote_shell, host.name, shlex.join(remote)))
        rank += count
    return StartCommand(Path(job.remote_shell[0]).name, lines[0], joins=tuple(lines[1:]), needs_token=True)


LAUNCHERS: dict[str, Callable[[Job], StartCommand]] = {
    "local": local,
    "openmpi": openmpi,
    "oshrun": oshrun,
    "mpich": mpich,
    "intel": intel,
    "mpiexec": mpiexec,
    "pvm": pvm,
    "ssh": ssh,
}
"""Every launcher by name. A table in the tests holds the command line of each."""
