"""The hosts that a batch system has given to this job, from its environment."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hockney.errors import UsageError
from hockney.worker.hosts import Host, parse_hosts
from hockney.worker.programs import run_program


@dataclass(frozen=True)
class Allocation:
    """A job of a batch system and its hosts; a host's slots are its CPUs or tasks, where the batch system says them."""

    scheduler: str
    job: str
    hosts: tuple[Host, ...]

    def __str__(self) -> str:
        """`Slurm job 7`."""
        return f"{self.scheduler} job {self.job}".rstrip()


def find_allocation(environment: Mapping[str, str], *, nodefile: str = "", hostlist: str = "") -> Allocation | None:
    """The innermost allocation in an environment, or None.

    `nodefile` is the content of PBS_NODEFILE, `hostlist` the output of `flux hostlist local`. Raises UsageError for a
    list of hosts that cannot be read.
    """
    if "FLUX_URI" in environment:
        hosts = tuple(_parse("flux hostlist", hostlist.replace(" ", ",")))
        return Allocation("Flux", environment.get("FLUX_JOB_ID", ""), hosts)
    if "SLURM_JOB_ID" in environment and environment.get("SLURM_JOB_NODELIST"):
        return Allocation("Slurm", environment["SLURM_JOB_ID"], _slurm_hosts(environment))
    if "PBS_NODEFILE" in environment:
        hosts = _counted(Counter(nodefile.split()))
        return Allocation("PBS", environment.get("PBS_JOBID", ""), hosts)
    if "LSB_MCPU_HOSTS" in environment:
        words = environment["LSB_MCPU_HOSTS"].split()
        pairs = zip(words[::2], words[1::2], strict=False)
        hosts = tuple(_parse("LSB_MCPU_HOSTS", ",".join(f"{host}:{count}" for host, count in pairs)))
        return Allocation("LSF", environment.get("LSB_JOBID", ""), hosts)
    return None


def current_allocation() -> Allocation | None:
    """The allocation that this process runs in, or None. Raises UsageError for one whose hosts cannot be read.

    Also where srun has started several of us, and in a job of one host that is another one than this: a measurement
    here would be of the wrong machine.
    """
    if sum(slurm_counts(os.environ.get("SLURM_STEP_NUM_TASKS", ""))) > 1:
        raise UsageError("srun has started hockney several times: start it once, without srun or with srun -n 1")
    nodefile = hostlist = ""
    try:
        if "PBS_NODEFILE" in os.environ:
            nodefile = Path(os.environ["PBS_NODEFILE"]).read_text(encoding="utf-8")
        if "FLUX_URI" in os.environ:
            hostlist = _output(["flux", "hostlist", "local"])
    except (OSError, UnicodeDecodeError, subprocess.SubprocessError) as error:
        raise UsageError(f"the hosts of this job cannot be read ({error}): name them with --hosts") from error
    known = find_allocation(os.environ, nodefile=nodefile, hostlist=hostlist)
    if known is not None and len(known.hosts) == 1 and not _is_this(known.hosts[0]):
        (host,) = known.hosts
        raise UsageError(
            f"{known} is on {host.name}, and this is {socket.gethostname()}: start hockney there (in Slurm: srun "
            "hockney), or measure this host with --hosts local"
        )
    return known


def _is_this(host: Host) -> bool:
    short = socket.gethostname().partition(".")[0]
    return "SLURMD_NODENAME" in os.environ or host.name.partition(".")[0] in (short, "localhost")


def _output(argv: list[str]) -> str:
    done = run_program(argv, limit_s=10)
    done.check_returncode()
    return done.stdout.decode().strip()


def _slurm_hosts(environment: Mapping[str, str]) -> tuple[Host, ...]:
    """Each with as many slots as it has CPUs for this job, or tasks where those are more."""
    hosts = _parse("SLURM_JOB_NODELIST", environment["SLURM_JOB_NODELIST"])
    counts = [
        numbers
        for name in ("SLURM_JOB_CPUS_PER_NODE", "SLURM_TASKS_PER_NODE")
        if len(numbers := slurm_counts(environment.get(name, ""))) == len(hosts)
    ]
    slots: Iterable[int | None] = map(max, *counts, [1] * len(hosts)) if counts else [None] * len(hosts)
    return tuple(Host(host.name, slot) for host, slot in zip(hosts, slots, strict=True))


def slurm_counts(text: str) -> list[int]:
    """`2(x3),1` -> [2, 2, 2, 1]; none where it is written otherwise."""
    numbers: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:\(x(\d{1,6})\))?", word, re.ASCII)
        if match is None:
            return []
        numbers += [int(match[1])] * int(match[2] or 1)
    return numbers


def _parse(source: str, text: str) -> list[Host]:
    try:
        return list(parse_hosts(text))
    except UsageError as error:
        raise UsageError(f"{source}={text} cannot be read as a list of hosts: name them with --hosts") from error


def _counted(lines: Mapping[str, int]) -> tuple[Host, ...]:
    """A host has a slot for each line; where every host has one line only, that is no number of ranks."""
    hosts = _parse("PBS_NODEFILE", ",".join(lines))
    has_counts = any(count > 1 for count in lines.values())
    return tuple(Host(host.name, lines[host.name] if has_counts else None) for host in hosts)
