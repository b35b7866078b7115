"""How ranks of an MPI find each other under srun: the PMI, as the library and this Slurm have it."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hockney.worker.errors import LaunchFailed
from hockney.worker.libraries import Library
from hockney.worker.programs import run_program

_OF_KIND = {"openmpi": "pmix", "oshrun": "pmix", "mpich": "pmi2", "intel": "pmi2"}


def pmi_type(library: Library, executable: Path, environment: Mapping[str, str]) -> str:
    """The value of srun's --mpi; empty if the site or the user sets it. Raises LaunchFailed without any.

    A library that is linked with a PMI needs that one. Open MPI loads PMIx when it starts; MPICH has PMI-2 within.
    """
    if environment.get("SLURM_MPI_TYPE"):
        return ""
    linked = output_of(("ldd", str(executable)))
    needed = "pmix" if "libpmix.so" in linked else "pmi2" if "libpmi2.so" in linked else _OF_KIND.get(library.kind, "")
    known = re.findall(r"\b(?:pmix|pmi2|none|openmpi|cray_shasta)(?:_v\d+)?\b", output_of(("srun", "--mpi=list")))
    if needed and known and not any(name.partition("_v")[0] == needed for name in known):
        raise LaunchFailed(
            "srun",
            f"{library.name} needs the PMI {needed}, and srun has {', '.join(dict.fromkeys(known))}",
            remedy="start it with --launcher mpiexec, or say the type in SLURM_MPI_TYPE",
        )
    return needed


@functools.lru_cache(maxsize=32)  # each launch asks
def output_of(argv: Sequence[str]) -> str:
    """All that a program says; srun lists on one stream or the other. Empty where it cannot be run."""
    try:
        done = run_program(argv, limit_s=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")
