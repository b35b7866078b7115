"""Finds every OpenSHMEM on this machine: its compiler wrapper oshcc, and the oshrun beside it that belongs to it.

As with MPI (mpi.py), a wrapper is taken only together with a launcher of the same kind from the same folder, and the
answers are kept until one of the files involved changes.
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

_WRAPPERS = ("oshcc",)
_LAUNCHERS = ("oshrun", "shmemrun")
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


def search(*, folder: Path | None = None) -> tuple[tuple[Shmem, ...], tuple[Unusable, ...]]:
    """Every OpenSHMEM of this machine, once each, and the wrappers that can't be used with the reason.

    Looked for are the command in HOCKNEY_OSHCC, and oshcc in every folder on PATH. `folder` replaces the user's cache
    folder. Raises nothing: a broken wrapper is in the second tuple.
    """
    probes = Probes(folder or cache.default_folder())
    found: dict[str, Shmem] = {}
    broken: list[Unusable] = []
    seen: set[str] = set()
    for oshcc in candidates("HOCKNEY_OSHCC", _WRAPPERS):
        try:
            maker, version, library = _identify(oshcc, probes)
        except (CompileFailed, NoCompiler) as error:
            broken.append(Unusable(oshcc, str(error)))
            continue
        if library in seen:
            continue
        oshrun = _find_launcher(oshcc, maker, probes)
        if oshrun is None:
            broken.append(Unusable(oshcc, f"there is no oshrun of {_NAMES[maker]} beside {oshcc}"))
            continue
        seen.add(library)
        shmem_id = unique_id(f"shmem@{maker}-{version}".rstrip("-"), found)
        found[shmem_id] = Shmem(shmem_id, maker, version, oshcc, oshrun)
    working = {shmem.oshcc.resolve() for shmem in found.values()}
    return tuple(found.values()), tuple(one for one in broken if one.wrapper.resolve() not in working)


def _identify(oshcc: Path, probes: Probes) -> tuple[str, str, str]:
    """Maker, version and library file of what a wrapper builds for: by the macros of its shmem.h.

    Raises CompileFailed, NoCompiler.
    """
    known = identify([str(oshcc)], probes, wrapper=True)
    key = ["shmem", str(oshcc), known.show, known.version]
    answer = probes.get(key)
    if answer is None:
        header = find_file(words(known.show, "-I"), ["shmem.h"])
        macros = ask([str(oshcc), "-E", "-dM", "-include", "shmem.h", "-x", "c", "/dev/null"])
        parts = [macro(macros, f"OSHMEM_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE")]
        maker, version = ("openmpi", ".".join(parts)) if all(parts) else ("other", "")
        library = find_library(known.show)
        answer = {"maker": maker, "version": version, "library": library or known.show}
        probes.put(key, answer, [str(oshcc), *filter(None, (header, library))])
    return answer["maker"], answer["version"], answer["library"]


def _find_launcher(oshcc: Path, maker: str, probes: Probes) -> Path | None:
    """The launcher of the same maker, in the wrapper's own folder."""
    path = oshcc if oshcc.is_absolute() else cache.resolve(str(oshcc)) or oshcc
    for folder in dict.fromkeys((path.parent, path.resolve().parent)):
        for name in _LAUNCHERS:
            launcher = folder / name
            if os.access(launcher, os.X_OK) and maker in ("other", launcher_kind(launcher, probes)):
                return launcher
    return None
