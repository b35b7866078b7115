"""Finds every OpenSHMEM on this machine: its compiler wrapper oshcc, and the oshrun beside it (see wrappers.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hockney.worker.build import Recipe
from hockney.worker.wrappers import Search, macro

_NAMES = {"openmpi": "Open MPI", "other": "another OpenSHMEM"}


@dataclass(frozen=True)
class Shmem:
    """One OpenSHMEM library. `id` names it in transports: `shmem@openmpi-4.1.4`."""

    id: str
    maker: str  # "openmpi" or "other"
    version: str
    oshcc: Path
    oshrun: Path

    @property
    def name(self) -> str:
        """For people: `Open MPI 4.1.4, OpenSHMEM`."""
        return f"{_NAMES[self.maker]} {self.version}, OpenSHMEM" if self.maker == "openmpi" else _NAMES[self.maker]

    @property
    def kind(self) -> str:
        """Open MPI's oshrun has options of its own; of others only -n is known."""
        return "oshrun" if self.maker == "openmpi" else "mpiexec"

    @property
    def program(self) -> Path:
        """What starts its jobs."""
        return self.oshrun

    @property
    def is_wheel(self) -> bool:
        """No Python environment brings one."""
        return False

    @property
    def recipe(self) -> Recipe:
        """How the worker for this library is built."""
        return Recipe(family="shmem", compiler=(str(self.oshcc),))


def _maker_and_version(macros: str) -> tuple[str, str]:
    parts = [macro(macros, f"OSHMEM_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE")]
    return ("openmpi", ".".join(parts)) if all(parts) else ("other", "")


search = Search(
    family="shmem",
    variable="HOCKNEY_OSHCC",
    wrappers=("oshcc",),
    header="shmem.h",
    read=_maker_and_version,
    kinds=_NAMES,
    launchers=("oshrun", "shmemrun"),
    make=Shmem,
)
