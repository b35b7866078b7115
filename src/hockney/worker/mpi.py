"""Finds every MPI on this machine: its compiler wrapper, and the mpiexec that belongs to it (see wrappers.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hockney.worker.build import Recipe
from hockney.worker.wrappers import Search, macro

_KINDS = {"openmpi": "Open MPI", "mpich": "MPICH", "intel": "Intel MPI", "other": "another MPI"}


@dataclass(frozen=True)
class Mpi:
    """One MPI library: how to build for it and how to start it. `id` names it in transports: `mpi@openmpi-4.1.4`."""

    id: str
    kind: str  # "openmpi", "mpich", "intel" or "other"
    version: str
    mpicc: Path
    mpiexec: Path
    is_wheel: bool  # from a Python environment: its programs must not see the system's LD_LIBRARY_PATH

    @property
    def name(self) -> str:
        """For people: `Open MPI 4.1.4`."""
        return f"{_KINDS[self.kind]} {self.version}".rstrip()

    @property
    def program(self) -> Path:
        """What starts its jobs."""
        return self.mpiexec

    @property
    def recipe(self) -> Recipe:
        """How the worker for this library is built."""
        return Recipe(family="mpi", compiler=(str(self.mpicc),))


def _kind_and_version(macros: str) -> tuple[str, str]:
    if macro(macros, "OMPI_MAJOR_VERSION"):
        parts = (macro(macros, f"OMPI_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE"))
        return "openmpi", ".".join(parts)
    if macro(macros, "I_MPI_VERSION"):
        return "intel", macro(macros, "I_MPI_VERSION").partition(" ")[0]
    if (
        macro(macros, "MPICH_VERSION")
        and not macro(macros, "MVAPICH2_VERSION")
        and not macro(macros, "MVAPICH_VERSION")
    ):
        return "mpich", macro(macros, "MPICH_VERSION")
    return "other", macro(macros, "MVAPICH2_VERSION") or macro(macros, "MVAPICH_VERSION")


def _make(mpi_id: str, kind: str, version: str, mpicc: Path, mpiexec: Path) -> Mpi:
    return Mpi(mpi_id, kind, version, mpicc, mpiexec, is_wheel=(mpicc.parent.parent / "pyvenv.cfg").is_file())


search = Search(
    family="mpi",
    variable="HOCKNEY_MPICC",
    wrappers=("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc"),
    header="mpi.h",
    read=_kind_and_version,
    kinds=_KINDS,
    launchers=("mpiexec", "mpirun", "mpiexec.hydra"),
    make=_make,
)


def find_mpis(*, folder: Path | None = None) -> tuple[Mpi, ...]:
    """Every MPI of this machine that can be built for and started, once each; see Search."""
    return search(folder=folder)[0]
