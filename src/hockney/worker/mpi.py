"""Finds every MPI on this machine: its compiler wrapper, and the mpiexec that belongs to it.

A worker built with one library and started by another's mpiexec comes up as so many jobs of one rank. So a wrapper is
taken only together with a launcher of the same kind from the same folder.

Asking takes 20 to 60 ms a library; the answers are kept until one of the files involved changes.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, identify
from hockney.worker.errors import CompileFailed, NoCompiler
from hockney.worker.libraries import Unusable

_WRAPPERS = ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc")
_ASK_LIMIT_S = 20
_KINDS = {"openmpi": "Open MPI", "mpich": "MPICH", "intel": "Intel MPI", "other": "another MPI"}
# A launcher tells its kind in the first lines of --version.
_LAUNCHER_MARKS = (
    ("Intel(R) MPI", "intel"),
    ("HYDRA", "mpich"),
    ("Open MPI", "openmpi"),
    ("OpenRTE", "openmpi"),
    ("PRRTE", "openmpi"),
)


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
    for mpicc in _candidates():
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
        mpi = _name(identity, mpicc, mpiexec, found)
        found[mpi.id] = mpi
    working = {mpi.mpicc.resolve() for mpi in found.values()}
    return tuple(found.values()), tuple(one for one in broken if one.wrapper.resolve() not in working)


def _name(identity: _Identity, mpicc: Path, mpiexec: Path, taken: Iterable[str]) -> Mpi:
    is_wheel = (mpicc.parent.parent / "pyvenv.cfg").is_file()
    plain = f"mpi@{identity.kind}-{identity.version}".rstrip("-")
    mpi = Mpi(plain, identity.kind, identity.version, mpicc, mpiexec, is_wheel)
    count = 1
    while mpi.id in taken:  # two builds of one version, in two folders
        count += 1
        mpi = replace(mpi, id=f"{plain}~{count}")
    return mpi


def _candidates() -> Iterator[Path]:
    """Wrappers in the order of preference, by the names they are called by: some behave as their name says."""
    asked = os.environ.get("HOCKNEY_MPICC")
    if asked:
        yield Path(asked).absolute() if "/" in asked else Path(asked)
    seen: set[tuple[Path, str]] = set()
    for folder in (Path(sys.prefix) / "bin", *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        # The longer names come first: they say which MPI they are, and so does the mpiexec beside them.
        for name in sorted(_WRAPPERS, key=len, reverse=True):
            path = folder / name
            key = (folder.resolve(), name)
            if folder.is_absolute() and key not in seen and os.access(path, os.X_OK):
                seen.add(key)
                yield path


# ---- which library --------------------------------------------------------------------------------------------------


def _identify(mpicc: Path, probes: Probes) -> _Identity:
    """What a wrapper builds for: by the macros of its mpi.h. Raises CompileFailed, NoCompiler."""
    known = identify([str(mpicc)], probes, wrapper=True)
    key = ["mpi", str(mpicc), known.show, known.version]
    answer = probes.get(key)
    if answer is None:
        header = _find_file(_words(known.show, "-I"), ["mpi.h"])
        macros = ask([str(mpicc), "-E", "-dM", "-include", "mpi.h", "-x", "c", "/dev/null"])
        kind, version = _kind_and_version(macros)
        library = _find_library(known.show)
        answer = {"kind": kind, "version": version, "library": library or known.show}
        probes.put(key, answer, [str(mpicc), *filter(None, (header, library))])
    return _Identity(answer["kind"], answer["version"], answer["library"])


def _kind_and_version(macros: str) -> tuple[str, str]:
    def value(name: str) -> str:
        match = re.search(rf'^#define {name} "?([^"\n]*)"?$', macros, re.MULTILINE)
        return match[1].strip() if match else ""

    if value("OMPI_MAJOR_VERSION"):
        parts = (value(f"OMPI_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE"))
        return "openmpi", ".".join(parts)
    if value("I_MPI_VERSION"):
        return "intel", value("I_MPI_VERSION").partition(" ")[0]
    if value("MPICH_VERSION") and not value("MVAPICH2_VERSION") and not value("MVAPICH_VERSION"):
        return "mpich", value("MPICH_VERSION")
    return "other", value("MVAPICH2_VERSION") or value("MVAPICH_VERSION")


def _words(show: str, option: str) -> list[str]:
    """`-I/usr/include/x` and `-I /usr/include/x` alike."""
    words = shlex.split(show)
    joined = [word[len(option) :] for word in words if word.startswith(option) and word != option]
    return joined + [after for word, after in itertools.pairwise(words) if word == option]


def _find_file(folders: Iterable[str], names: Iterable[str]) -> str | None:
    names = list(names)
    for folder in folders:
        for name in names:
            path = Path(folder) / name
            if path.is_file():
                return str(path.resolve())
    return None


def _find_library(show: str) -> str | None:
    """The shared library that the first -l names, its links followed, so that two ways to one library are seen."""
    for name in _words(show, "-l"):
        library = _find_file(_words(show, "-L"), [f"lib{name}.so", f"lib{name}.dylib"])
        if library:
            return library
    return None


# ---- its launcher ---------------------------------------------------------------------------------------------------


def _find_launcher(mpicc: Path, kind: str, probes: Probes) -> Path | None:
    """The mpiexec of the same kind, in the wrapper's own folder."""
    path = mpicc if mpicc.is_absolute() else cache.resolve(str(mpicc)) or mpicc
    suffix = path.name.partition(".")[2]
    names = [f"{stem}.{end}" for end in (suffix, kind) if end for stem in ("mpiexec", "mpirun")]
    for folder in dict.fromkeys((path.parent, path.resolve().parent)):
        for name in dict.fromkeys([*names, "mpiexec", "mpirun", "mpiexec.hydra"]):
            launcher = folder / name
            if os.access(launcher, os.X_OK) and kind in ("other", _launcher_kind(launcher, probes)):
                return launcher
    return None


def _launcher_kind(launcher: Path, probes: Probes) -> str:
    """What a launcher says it is; empty if it says nothing of use."""
    key = ["launcher", str(launcher)]
    answer = probes.get(key)
    if answer is None:
        said = ""
        try:
            done = subprocess.run(
                [str(launcher), "--version"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_ASK_LIMIT_S,
                check=False,
            )
            said = done.stdout.decode(errors="replace")
        except (OSError, subprocess.TimeoutExpired):
            pass
        answer = {"kind": next((kind for mark, kind in _LAUNCHER_MARKS if mark in said), "")}
        probes.put(key, answer, [str(launcher)])
    return str(answer["kind"])
