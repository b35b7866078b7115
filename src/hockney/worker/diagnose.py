"""Why a job ended: what its launcher and its ranks said, cut down to the one line that says it.

Every launcher has words of its own for a rank that was killed; those of Open MPI, Hydra (MPICH, Intel MPI) and Slurm
are known here. Where none fits, the error says only what is sure.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_OURS = "hockney worker: "
_MOST_LINES = 4
_MOST_CHARACTERS = 600
# What ranks say when another one has failed, or when they have waited for it in vain.
_CONSEQUENCES = re.compile(r"hockney worker: rank \d+: (control: |rendezvous: \d+ of |no end after )")
_MISSING = "ranks haven't come in time"
_NO_PORT = re.compile(r"no port to bind|no port available in the range|Address already in use", re.IGNORECASE)
_PORT_VARIABLE = re.compile(r"(?:MPIEXEC|MPICH|MPIR|HYDRA|I_MPI|OMPI|PMIX|PRTE)_.*PORTS?(?:_.*)?")  # of all libraries
# Of a backtrace, which tells users nothing: `[host:12] [ 1] ./worker(main+0x2) [0x7f2]`, each library in its own way.
_FRAME = re.compile(r"\([\w.@]*\+?0x[0-9a-f]+\)\s*\[0x[0-9a-f]+\]\s*$")
_DECORATION = re.compile(r"[-=*+#~_\s|]*$")

_OPENMPI_SIGNAL = re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited on\s+signal (\d+)")
_OPENMPI_EXIT = re.compile(r"Process name: \[\[\d+,\d+\],(\d+)\]\s+Exit code:\s+(\d+)")
_HYDRA_RANK = re.compile(r"RANK (\d+) PID \d+ RUNNING AT")
_HYDRA_PID = re.compile(r"PID (\d+) RUNNING AT")
_HYDRA_SIGNAL = re.compile(r"\(signal (\d+)\)|KILLED BY SIGNAL: (\d+)")
_HYDRA_EXIT = re.compile(r"EXIT CODE: (\d+)")
_SLURM_SIGNAL = re.compile(r"error: \S+: task (\d+): (Killed|Segmentation fault|Aborted|Terminated|Bus error)")
_SIGNAL_NUMBERS = {"Killed": 9, "Segmentation fault": 11, "Aborted": 6, "Terminated": 15, "Bus error": 7}


@dataclass(frozen=True)
class Death:
    """What is known of an end; each part is None where it isn't. `note` says why a rank that is named isn't sure."""

    rank: int | None = None
    signal: int | None = None
    status: int | None = None
    note: str = ""


def find_cause(said: str, ranks_by_pid: Mapping[int, int]) -> Death:
    """Which rank ended first and how, by what a launcher said."""
    if match := _OPENMPI_SIGNAL.search(said):
        return Death(rank=int(match[1]), signal=int(match[2]))
    if match := _OPENMPI_EXIT.search(said):
        return Death(rank=int(match[1]), status=int(match[2]))
    if match := _SLURM_SIGNAL.search(said):
        return Death(rank=int(match[1]), signal=_SIGNAL_NUMBERS[match[2]])
    if "RUNNING AT" not in said:
        return Death()
    rank = None
    if match := _HYDRA_RANK.search(said):
        rank = int(match[1])
    elif match := _HYDRA_PID.search(said):
        rank = ranks_by_pid.get(int(match[1]))
    if match := _HYDRA_SIGNAL.search(said):
        return _hydra_death(rank, int(match[1] or match[2]), len(ranks_by_pid))
    code = _HYDRA_EXIT.search(said)
    return Death(rank=rank, status=int(code[1]) if code else None)


def _hydra_death(rank: int | None, number: int, ranks: int) -> Death:
    """Who is sure to have died by itself, in a job of so many ranks.

    Hydra ends the others with SIGKILL as soon as one closes its connection, and names the first that it then finds
    dead: one time in a hundred that is one it has ended itself.
    """
    if number != signal.SIGKILL or ranks == 1:
        return Death(rank=rank, signal=number)
    named = "" if rank is None else f"mpiexec names rank {rank}, but it ends the others in the same way"
    return Death(signal=number, note=named)


def summary(said: str) -> str:
    """What was said at start-up, in one line: our own ranks' lines if there are any, else the launcher's first ones."""
    lines = _lines(said.splitlines())
    ours = [line for line in lines if line.startswith(_OURS) and not _CONSEQUENCES.match(line)]
    text = " ".join(list(dict.fromkeys(ours or lines))[:_MOST_LINES])
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def taken_port(said: str, environment: Mapping[str, str]) -> str:
    """Why a launcher or its ranks found no port to listen on, and the remedy; empty where that is not the cause."""
    if not _NO_PORT.search(said):
        return ""
    ports = sorted(f"{name}={value}" for name, value in environment.items() if _PORT_VARIABLE.fullmatch(name.upper()))
    if not ports:
        return "other programs have taken the ports that it tries"
    return f"other programs have taken every port that is allowed ({', '.join(ports)}); allow others, or unset that"


def is_a_rank_missing(said: str) -> bool:
    """Whether ranks have waited in vain for another one when they started."""
    return _MISSING in said


def reason(said: str) -> str:
    """The line that tells the cause: the first of our ranks' that is no consequence, else what was said last."""
    lines = _lines(said.splitlines())
    ours = [line for line in lines if line.startswith(_OURS)]
    causes = [line for line in ours if not _CONSEQUENCES.match(line)]
    return ((causes or ours)[:1] or lines[-1:] or [""])[0].removeprefix(_OURS)


def _lines(raw: Iterable[str]) -> list[str]:
    stripped = (line.strip() for line in raw if not _FRAME.search(line))
    return [line for line in stripped if not _DECORATION.match(line)]
