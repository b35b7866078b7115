"""Finds every MPI on this machine: its compiler wrapper, and the mpiexec that belongs to it.

A worker built with one library and started by another's mpiexec comes up as so many jobs of one rank. So a wrapper is
taken only together with a launcher of the same kind from the same folder.

Asking takes 20 to 60 ms a library; the answers are kept until one of the files involved changes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, identify
from hockney.worker.errors import CompileFailed, NoCompiler
from hockney.worker.libraries import Unusable, unique_id
from hockney.worker.wrappers import candidates, find_file, find_library, launcher_kind, macro, words

_WRAPPERS = ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc")
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


@dataclass(frozen=True)
class _Identity:
    """What a wrapper builds for."""

    kind: str
    version: str
    library: str  # the file that its programs load, or what the wrapper adds, where that file isn't found


def find_mpis(*, folder: Path | None = None) -> tuple[Mpi, ...]:
    """Every MPI of this machine that can be built for and started, once each; see search."""
    return search(folder=folder)[0]


def search(*, folder: Path | None = None) -> tuple[tuple[Mpi, ...], tuple[Unusable, ...]]:
    """Every MPI of this machine, once each, and the wrappers that can't be used with the reason.

    Looked for are the command in HOCKNEY_MPICC, the wheel in the running environment, and the usual names in every
    folder on PATH, where environment modules put theirs. `folder` replaces the user's cache folder. Raises nothing:
    a broken wrapper is in the second tuple.
    """
    probes = Probes(folder or cache.default_folder())
    found: dict[str, Mpi] = {}
    broken: list[Unusable] = []
    seen: set[str] = set()
    for mpicc in candidates("HOCKNEY_MPICC", _WRAPPERS):
        try:
            identity = _identify(mpicc, probes)
        except (CompileFailed, NoCompiler) as error:
            broken.append(Unusable(mpicc, str(error)))
            continue
        if identity.library in seen:
            continue
        mpiexec = _find_launcher(mpicc, identity.kind, probes)
        if mpiexec is None:
            broken.append(Unusable(mpicc, f"there is no mpiexec of {_KINDS[identity.kind]} beside {mpicc}"))
            continue
        seen.add(identity.library)
        mpi_id = unique_id(f"mpi@{identity.kind}-{identity.version}".rstrip("-"), found)
        is_wheel = (mpicc.parent.parent / "pyvenv.cfg").is_file()
        found[mpi_id] = Mpi(mpi_id, identity.kind, identity.version, mpicc, mpiexec, is_wheel)
    working = {mpi.mpicc.resolve() for mpi in found.values()}
    return tuple(found.values()), tuple(one for one in broken if one.wrapper.resolve() not in working)


# ---- which library --------------------------------------------------------------------------------------------------


def _identify(mpicc: Path, probes: Probes) -> _Identity:
    """What a wrapper builds for: by the macros of its mpi.h. Raises CompileFailed, NoCompiler."""
    known = identify([str(mpicc)], probes, wrapper=True)
    key = ["mpi", str(mpicc), known.show, known.version]
    answer = probes.get(key)
    if answer is None:
        header = find_file(words(known.show, "-I"), ["mpi.h"])
        macros = ask([str(mpicc), "-E", "-dM", "-include", "mpi.h", "-x", "c", "/dev/null"])
        kind, version = _kind_and_version(macros)
        library = find_library(known.show)
        answer = {"kind": kind, "version": version, "library": library or known.show}
        probes.put(key, answer, [str(mpicc), *filter(None, (header, library))])
    return _Identity(answer["kind"], answer["version"], answer["library"])


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


# ---- its launcher ---------------------------------------------------------------------------------------------------


def _find_launcher(mpicc: Path, kind: str, probes: Probes) -> Path | None:
    """The mpiexec of the same kind, in the wrapper's own folder."""
    path = mpicc if mpicc.is_absolute() else cache.resolve(str(mpicc)) or mpicc
    suffix = path.name.partition(".")[2]
    names = [f"{stem}.{end}" for end in (suffix, kind) if end for stem in ("mpiexec", "mpirun")]
    for folder in dict.fromkeys((path.parent, path.resolve().parent)):
        for name in dict.fromkeys([*names, "mpiexec", "mpirun", "mpiexec.hydra"]):
            launcher = folder / name
            if os.access(launcher, os.X_OK) and kind in ("other", launcher_kind(launcher, probes)):
                return launcher
    return None
