"""Finds the libraries that have a compiler wrapper, MPI and OpenSHMEM, and the launcher that belongs to each.

A worker built with one library and started by another's launcher comes up as so many jobs of one rank. So a wrapper is
taken only together with a launcher of the same kind from the same folder.

Asking takes 20 to 60 ms a library; the answers are kept until one of the files involved changes.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, identify, run, split_words
from hockney.worker.errors import BuildError
from hockney.worker.libraries import Library, Unusable, side_by_side, unique_id

# A launcher tells its kind in the first lines of --version.
_LAUNCHER_MARKS = (
    ("Intel(R) MPI", "intel"),
    ("HYDRA", "mpich"),
    ("Open MPI", "openmpi"),
    ("OpenRTE", "openmpi"),
    ("PRRTE", "openmpi"),
)


@dataclass(frozen=True)
class Kind:
    """One kind of library: its header defines all of `macros`, whose values are its version."""

    id: str
    name: str  # for people; {} is the version
    launcher: str  # in launch.LAUNCHERS
    macros: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Examined:
    """What a wrapper builds for. `library`: the file that programs load, or what the wrapper adds where it has none."""

    wrapper: Path
    kind: Kind
    version: str
    library: str
    launcher: Path | None


@dataclass(frozen=True)
class Search:
    """How the libraries of one family are found. The last of its kinds has no macros and takes any launcher."""

    family: str  # what the names of its libraries begin with: `mpi@…`
    variable: str  # the environment variable that may name one more wrapper
    wrappers: tuple[str, ...]
    header: str  # what every program of it includes
    launchers: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def __call__(self) -> tuple[tuple[Library, ...], tuple[Unusable, ...]]:
        """Every library of this machine, once each, and the wrappers that can't be used with the reason.

        Looked for are the command in the variable, the running Python environment, and every folder on PATH, where
        environment modules put theirs. Raises nothing: a broken wrapper is in the second tuple.
        """
        probes = Probes(cache.default_folder())
        libraries: dict[str, Library] = {}
        broken: list[Unusable] = []
        without_launcher: dict[str, Unusable] = {}
        seen: set[str] = set()
        # Side by side: one that hangs must not keep the others waiting.
        for known in side_by_side(lambda wrapper: self._examine(wrapper, probes), list(self._candidates())):
            if isinstance(known, Unusable):
                broken.append(known)
            elif known.launcher is None:
                without_launcher.setdefault(known.library, self._without_launcher(known))
            elif known.library not in seen:
                seen.add(known.library)
                its_id = unique_id(f"{self.family}@{known.kind.id}-{known.version}".rstrip("-"), libraries)
                libraries[its_id] = self._library(its_id, known, known.launcher)
        broken += [unusable for library, unusable in without_launcher.items() if library not in seen]
        return tuple(libraries.values()), tuple(broken)

    def at(self, prefix: Path) -> Library | Unusable:
        """The library whose wrapper is in the folder bin of `prefix`, and which is named by that: `mpi@/opt/a`."""
        wrapper = next((path for name in self.wrappers if os.access(path := prefix / "bin" / name, os.X_OK)), None)
        if wrapper is None:
            lack = f"there is no {self.wrappers[0]} in {prefix / 'bin'}"
            return Unusable(prefix, lack, f"name the folder above that of its {self.wrappers[0]}")
        known = self._examine(wrapper, Probes(cache.default_folder()))
        if isinstance(known, Unusable):
            return known
        if known.launcher is None:
            return self._without_launcher(known)
        return self._library(f"{self.family}@{prefix}", known, known.launcher)

    def _library(self, its_id: str, known: _Examined, launcher: Path) -> Library:
        name = known.kind.name.format(known.version).strip()
        recipe = Recipe(family=self.family, compiler=(str(known.wrapper),))
        is_wheel = (known.wrapper.parent.parent / "pyvenv.cfg").is_file()
        return Library(its_id, name, known.kind.launcher, launcher, recipe, is_wheel)

    def _without_launcher(self, known: _Examined) -> Unusable:
        return Unusable(known.wrapper, f"there is no {self.launchers[0]} of the same library beside {known.wrapper}")

    def _candidates(self) -> Iterator[Path]:
        """Wrappers in the order of preference, by the names they are called by: some behave as their name says."""
        asked = os.environ.get(self.variable)
        if asked:
            yield Path(asked).absolute() if "/" in asked else Path(asked)
        seen: set[tuple[Path, str]] = set()
        for folder in (Path(sys.prefix) / "bin", *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
            # The longer names come first: they say which MPI they are, and so does the mpiexec beside them.
            for name in sorted(self.wrappers, key=len, reverse=True):
                path = folder / name
                key = (folder.resolve(), name)
                if folder.is_absolute() and key not in seen and os.access(path, os.X_OK):
                    seen.add(key)
                    yield path

    def _examine(self, wrapper: Path, probes: Probes) -> _Examined | Unusable:
        try:
            compiler = identify([str(wrapper)], probes, wrapper=True)
            key = ["library", self.family, str(wrapper), compiler.show, compiler.version]
            answer = probes.get(key)
            if answer is None:
                macros = ask([str(wrapper), "-E", "-dM", "-include", self.header, "-x", "c", "/dev/null"])
                kind, version = self._kind_and_version(macros)
                header = _find_file(_option_values(compiler.show, "-I"), [self.header])
                library = _find_library(compiler.show)
                answer = {"kind": kind.id, "version": version, "library": library or compiler.show}
                probes.put(key, answer, [str(wrapper), *filter(None, (header, library))])
        except BuildError as error:
            return Unusable(wrapper, str(error), f"repair or remove it; {self.variable} may name another one")
        kind = next(kind for kind in self.kinds if kind.id == answer["kind"])
        launcher = self._find_launcher(wrapper, kind, probes)
        return _Examined(wrapper, kind, answer["version"], answer["library"], launcher)

    def _kind_and_version(self, macros: str) -> tuple[Kind, str]:
        """From what `-E -dM` prints."""
        defined = dict(re.findall(r'^#define (\w+) "?([^"\n]*)"?$', macros, re.MULTILINE))
        kind = next(kind for kind in self.kinds if all(defined.get(name) for name in kind.macros))
        return kind, ".".join(defined[name].partition(" ")[0] for name in kind.macros)

    def _find_launcher(self, wrapper: Path, kind: Kind, probes: Probes) -> Path | None:
        """The launcher of the same kind, in the wrapper's own folder; mpicc.mpich has mpiexec.mpich beside it."""
        path = wrapper if wrapper.is_absolute() else cache.resolve(str(wrapper)) or wrapper
        suffix = path.name.partition(".")[2]
        special = [f"{name}.{end}" for end in (suffix, kind.id) if end for name in self.launchers]
        for folder in dict.fromkeys((path.parent, path.resolve().parent)):
            for name in dict.fromkeys([*special, *self.launchers]):
                launcher = folder / name
                if os.access(launcher, os.X_OK) and kind.id in ("other", _launcher_kind(launcher, probes)):
                    return launcher
        return None


def _option_values(show: str, option: str) -> list[str]:
    """`-I/usr/include/x` and `-I /usr/include/x` alike."""
    shown = split_words(show)
    joined = [word[len(option) :] for word in shown if word.startswith(option) and word != option]
    return joined + [after for word, after in itertools.pairwise(shown) if word == option]


def _find_file(folders: Iterable[str], names: Iterable[str]) -> str | None:
    """The first of those names in the first of those folders, links followed."""
    paths = (Path(folder) / name for folder, name in itertools.product(folders, names))
    return next((str(path.resolve()) for path in paths if path.is_file()), None)


def _find_library(show: str) -> str | None:
    """The shared library that the first -l names, its links followed, so that two ways to one library are seen."""
    folders = _option_values(show, "-L")
    files = (_find_file(folders, [f"lib{name}.so", f"lib{name}.dylib"]) for name in _option_values(show, "-l"))
    return next(filter(None, files), None)


def _launcher_kind(launcher: Path, probes: Probes) -> str:
    """What a launcher says it is; empty if it says nothing of use."""
    key = ["launcher", str(launcher)]
    answer = probes.get(key)
    if answer is None:
        try:
            said = "".join(run([str(launcher), "--version"])[1:])
        except (OSError, subprocess.TimeoutExpired):
            return ""  # not kept: it may have been busy
        answer = {"kind": next((kind for mark, kind in _LAUNCHER_MARKS if mark in said), "")}
        probes.put(key, answer, [str(launcher)])
    return str(answer["kind"])


_OPEN_MPI = tuple(f"OMPI_{part}_VERSION" for part in ("MAJOR", "MINOR", "RELEASE"))
_OPEN_SHMEM = tuple(f"OSHMEM_{part}_VERSION" for part in ("MAJOR", "MINOR", "RELEASE"))

MPI = Search(
    family="mpi",
    variable="HOCKNEY_MPICC",
    wrappers=("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc"),
    header="mpi.h",
    launchers=("mpiexec", "mpirun", "mpiexec.hydra"),
    kinds=(
        Kind("openmpi", "Open MPI {}", "openmpi", _OPEN_MPI),
        Kind("intel", "Intel MPI {}", "intel", ("I_MPI_VERSION",)),
        # MVAPICH is made of MPICH and says so, but its launcher has options of its own.
        Kind("other", "another MPI {}", "mpiexec", ("MVAPICH2_VERSION",)),
        Kind("other", "another MPI {}", "mpiexec", ("MVAPICH_VERSION",)),
        Kind("mpich", "MPICH {}", "mpich", ("MPICH_VERSION",)),
        Kind("other", "another MPI {}", "mpiexec"),
    ),
)
SHMEM = Search(
    family="shmem",
    variable="HOCKNEY_OSHCC",
    wrappers=("oshcc",),
    header="shmem.h",
    launchers=("oshrun", "shmemrun"),
    kinds=(
        Kind("openmpi", "Open MPI {}, OpenSHMEM", "oshrun", _OPEN_SHMEM),
        Kind("other", "another OpenSHMEM", "mpiexec"),
    ),
)


def find_mpis() -> tuple[Library, ...]:
    """Every MPI of this machine that can be built for and started, once each."""
    return MPI()[0]
