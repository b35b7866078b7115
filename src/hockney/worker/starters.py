"""Starters run a command on hosts: a command line in which {hosts}, {ranks}, {per_host}, {worker} are filled in."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hockney.errors import UsageError
from hockney.worker.compiler import split_words
from hockney.worker.errors import LaunchFailed
from hockney.worker.hosts import Host, find_allocation

LAUNCHER_WORDS = ("auto", "mpiexec", "srun", "ssh", "flux")
"""The words that --launcher accepts, besides a template."""

TRIES = 5
"""How often a login is tried that fails by chance, as some of a thousand do."""
PAUSE_S = 0.2
LOGINS_MAX = 64
"""How many hosts are logged into at once: more would keep the CPUs of this one so busy that logins time out."""
_QUICK_S = 2.0  # one that takes longer to fail has met a time limit of its own
NOT_REACHED = 255
"""The exit code of ssh itself."""
_BY_CHANCE = re.compile(r"kex_exchange_identification|Connection (?:closed|reset|refused)")

_PLACEHOLDERS = ("ranks", "hosts", "per_host", "worker")
_EXAMPLE = "for example 'mytool -n {ranks} --hosts {hosts} {worker}'"


@dataclass(frozen=True)
class Starter:
    """Starts a command on hosts. `is_shell`: a shell reads it there, so it is handed over as one quoted word."""

    words: tuple[str, ...]
    is_shell: bool = False

    @property
    def name(self) -> str:
        return self.words[0].rpartition("/")[2]

    @property
    def demand(self) -> str:
        """The requirement for reaching a host, for people: `reachable by ssh HOST without a password`."""
        return f"reachable by `{self.name} HOST` without a password" if self.is_shell else f"reachable by `{self.name}`"

    def argv(self, command: Sequence[str], rank_hosts: Sequence[str]) -> tuple[str, ...]:
        """The command line that starts a command once on each of `rank_hosts`, the host of each rank."""
        counts = Counter(rank_hosts)
        values = {"ranks": len(rank_hosts), "hosts": ",".join(counts), "per_host": max(counts.values(), default=1)}
        words: list[str] = []
        for word in self.words:
            if word == "{worker}":
                words += [shlex.join(command)] if self.is_shell else command
            else:
                words.append(re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), word))
        return tuple(words)


# A question for a password would wait for ever, so ssh may not ask one.
_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=4")
SSH = Starter((*_SSH, "{hosts}", "{worker}"), is_shell=True)
# A step that shares its CPUs with others, so that a job that waits does not hold them; ranks pin themselves.
SRUN = ("srun", "--overlap", "--overcommit", "--kill-on-bad-exit", "--cpu-bind=none", "--input=0")
_SRUN_HOST = (*SRUN, "--mpi=none", "--nodes=1", "--ntasks={ranks}", "--nodelist={hosts}", "{worker}")
_FLUX_HOST = (
    *("flux", "run", "--nodes=1", "--ntasks={ranks}", "--requires=host:{hosts}"),
    *("--setopt=cpu-affinity=off", "{worker}"),  # it starts all ranks of its host, which pin themselves
)


def failed_by_chance(exit_code: int | None, said: str, took_s: float) -> bool:
    """Whether a login that failed so may work a moment later: a busy server hangs up on some, or starts again.

    One without permission is not tried again: servers lock out who tries too often.
    """
    return exit_code == NOT_REACHED and took_s < _QUICK_S and _BY_CHANCE.search(said) is not None


def find_starter(asked: str, hosts: Sequence[Host], environment: Mapping[str, str]) -> Starter:
    """The starter of native ranks on hosts: from the option, else from the hosts' allocation, else ssh.

    A template without {hosts} cannot lead to one of them, so it starts libraries' ranks alone. Raises LaunchFailed for
    a wrong HOCKNEY_RSH, UsageError as refuse_outside_slurm.
    """
    refuse_outside_slurm(asked, environment)
    if "{hosts}" in asked:
        return read_template(asked)
    rsh, in_flux = environment.get("HOCKNEY_RSH", ""), "FLUX_URI" in environment
    is_ours = asked not in ("srun", "ssh", "flux") and not rsh
    if asked == "srun" or (is_ours and not in_flux and _is_of_slurm(hosts, environment)):
        return Starter(_SRUN_HOST)
    if asked == "flux" or (is_ours and in_flux):
        return Starter(_FLUX_HOST)
    agent = tuple(split_words(rsh))
    if rsh and not agent:
        raise LaunchFailed("hockney", f"HOCKNEY_RSH={rsh} is no command")
    return Starter((*agent, "{hosts}", "{worker}"), is_shell=True) if agent else SSH


def refuse_outside_slurm(asked: str, environment: Mapping[str, str]) -> None:
    """Raises UsageError for srun without a job: it would wait for nodes, once for each of its commands."""
    if asked == "srun" and "SLURM_JOB_ID" not in environment:
        raise UsageError("--launcher srun works within a job of Slurm: begin one with salloc or sbatch")


def _is_of_slurm(hosts: Sequence[Host], environment: Mapping[str, str]) -> bool:
    """Whether all hosts belong to the Slurm job that we run in."""
    try:
        known = find_allocation(environment)
    except UsageError:
        return False
    if known is None or known.scheduler != "Slurm":
        return False
    return {host.name for host in hosts} <= {host.name for host in known.hosts}


def check_launcher(asked: str, source: str = "--launcher") -> None:
    """Raises UsageError for anything else than a launcher's name or a template."""
    if "{" in asked:
        read_template(asked, source)
    elif asked not in LAUNCHER_WORDS:
        words = ", ".join(LAUNCHER_WORDS)
        raise UsageError(f"{source} '{asked}' is no launcher: name {words}, or write a template, {_EXAMPLE}")


def read_template(asked: str, source: str = "--launcher") -> Starter:
    """Raises UsageError for a template with another placeholder, without {worker}, or that is no command."""
    words = tuple(split_words(asked))
    strange = sorted(set(re.findall(r"\{[^{}]*\}?|\}", asked)) - {f"{{{name}}}" for name in _PLACEHOLDERS})
    wrong = (
        f"it has {strange[0]}, which stands for nothing"
        if strange
        else "{worker} must be the only thing in one of its words"
        if words.count("{worker}") != 1 or asked.count("{worker}") != 1
        else "it must begin with a program"
        if words[0] == "{worker}" or "{" in words[0]
        else ""
    )
    if wrong:
        raise UsageError(f"{source} '{asked}' cannot be used: {wrong}; write {_EXAMPLE}")
    return Starter(words)
