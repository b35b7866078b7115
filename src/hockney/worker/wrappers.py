"""Finds the libraries that have a compiler wrapper, and for each the launcher that belongs to it.

A worker built with one library and started by another's launcher comes up as so many jobs of one rank. So a wrapper is
taken only together with a launcher of the same kind from the same folder.

Asking takes 20 to 60 ms a library; the answers are kept until one of the files involved changes.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from hockney.worker import cache
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, identify, run
from hockney.worker.errors import CompileFailed, NoCompiler
from hockney.worker.libraries import Library, Unusable, side_by_side, unique_id

Found = TypeVar("Found", bound=Library)

# A launcher tells its kind in the first lines of --version.
_LAUNCHER_MARKS = (
    ("Intel(R) MPI", "intel"),
    ("HYDRA", "mpich"),
    ("Open MPI", "openmpi"),
    ("OpenRTE", "openmpi"),
    ("PRRTE", "openmpi"),
)


@dataclass(frozen=True)
class Search(Generic[Found]):
    """How the libraries of one family are found."""

    family: str
    """What the names of its libraries begin with: `mpi@…`."""
    variable: str
    """The environment variable that may name one more wrapper."""
    wrappers: tuple[str, ...]
    header: str
    """What every program of it includes; its macros tell kind and version."""
    read: Callable[[str], tuple[str, str]]
    """From those macros to the kind, a key of `kinds`, and the version."""
    kinds: Mapping[str, str]
    """What people call each; "other" is one of them, and takes any launcher."""
    launchers: tuple[str, ...]
    make: Callable[[str, str, str, Path, Path], Found]
    """From id, kind, version, wrapper and launcher."""

    def __call__(self, *, folder: Path | None = None) -> tuple[tuple[Found, ...], tuple[Unusable, ...]]:
        """Every library of this machine, once each, and the wrappers that can't be used with the reason.

        Looked for are the command in the variable, the running Python environment, and every folder on PATH, where
        environment modules put theirs. `folder` replaces the user's cache folder. Raises nothing: a broken wrapper is
        in the second tuple.
        """
        probes = Probes(folder or cache.default_folder())
        found: dict[str, Found] = {}
        broken: list[Unusable] = []
        seen: set[str] = set()
        working: set[Path] = set()
        wrappers = list(candidates(self.variable, self.wrappers))
        there = [wrapper for wrapper in wrappers if shutil.which(str(wrapper)) is not None]
        # Side by side: one that hangs must not keep the others waiting.
        identities = dict(zip(there, side_by_side(lambda wrapper: self._try(wrapper, probes), there), strict=True))
        for wrapper in wrappers:
            if wrapper not in identities:  # only the one in the variable was not looked for
                lack = f"{self.variable} names it, and no program that can be run is there"
                broken.append(Unusable(wrapper, lack, f"correct {self.variable} or unset it"))
                continue
            known = self._examine(wrapper, identities[wrapper], probes, seen)
            if isinstance(known, Unusable):
                broken.append(known)
            elif known is not None:
                kind, version, launcher = known
                working.add(wrapper.resolve())
                its_id = unique_id(f"{self.family}@{kind}-{version}".rstrip("-"), found)
                found[its_id] = self.make(its_id, kind, version, wrapper, launcher)
        return tuple(found.values()), tuple(one for one in broken if one.wrapper.resolve() not in working)

    def at(self, prefix: Path, *, folder: Path | None = None) -> Found | Unusable:
        """The library whose wrapper is in the folder bin of `prefix`, and which is named by that: `mpi@/opt/a`."""
        wrapper = next((path for name in self.wrappers if os.access(path := prefix / "bin" / name, os.X_OK)), None)
        if wrapper is None:
            lack = f"there is no {self.wrappers[0]} in {prefix / 'bin'}"
            return Unusable(prefix, lack, f"name the folder above that of its {self.wrappers[0]}")
        probes = Probes(folder or cache.default_folder())
        known = self._examine(wrapper, self._try(wrapper, probes), probes, set())
        if known is None or isinstance(known, Unusable):
            return known or Unusable(wrapper, "it is another name of a library found before")
        kind, version, launcher = known
        return self.make(f"{self.family}@{prefix}", kind, version, wrapper, launcher)

    def _examine(
        self, wrapper: Path, identity: tuple[str, str, str] | str, probes: Probes, seen: set[str]
    ) -> tuple[str, str, Path] | Unusable | None:
        """Kind, version and launcher of what a wrapper builds for; None where the library is one of those `seen`."""
        if isinstance(identity, str):
            return Unusable(wrapper, identity)
        kind, version, library = identity
        if library in seen:
            return None
        launcher = self._find_launcher(wrapper, kind, probes)
        if launcher is None:
            return Unusable(wrapper, f"there is no {self.launchers[0]} of {self.kinds[kind]} beside {wrapper}")
        seen.add(library)
        return kind, version, launcher

    def _try(self, wrapper: Path, probes: Probes) -> tuple[str, str, str] | str:
        """As _identify, or what is wrong with the wrapper."""
        try:
            return self._identify(wrapper, probes)
        except (CompileFailed, NoCompiler) as error:
            return str(error)

    def _identify(self, wrapper: Path, probes: Probes) -> tuple[str, str, str]:
        """Kind, version and library of what a wrapper builds for. Raises CompileFailed, NoCompiler.

        The library is the file that programs load, or what the wrapper adds, where that file isn't found.
        """
        known = identify([str(wrapper)], probes, wrapper=True)
        key = ["library", self.family, str(wrapper), known.show, known.version]
        answer = probes.get(key)
        if answer is None:
            header = find_file(words(known.show, "-I"), [self.header])
            kind, version = self.read(
                ask([str(wrapper), "-E", "-dM", "-include", self.header, "-x", "c", "/dev/null"], probes)
            )
            library = find_library(known.show)
            answer = {"kind": kind, "version": version, "library": library or known.show}
            probes.put(key, answer, [str(wrapper), *filter(None, (header, library))])
        return answer["kind"], answer["version"], answer["library"]

    def _find_launcher(self, wrapper: Path, kind: str, probes: Probes) -> Path | None:
        """The launcher of the same kind, in the wrapper's own folder; mpicc.mpich has mpiexec.mpich beside it."""
        path = wrapper if wrapper.is_absolute() else cache.resolve(str(wrapper)) or wrapper
        suffix = path.name.partition(".")[2]
        special = [f"{name}.{end}" for end in (suffix, kind) if end for name in self.launchers]
        for folder in dict.fromkeys((path.parent, path.resolve().parent)):
            for name in dict.fromkeys([*special, *self.launchers]):
                launcher = folder / name
                if os.access(launcher, os.X_OK) and kind in ("other", launcher_kind(launcher, probes)):
                    return launcher
        return None


def candidates(variable: str, names: Iterable[str]) -> Iterator[Path]:
    """Wrappers in the order of preference, by the names they are called by: some behave as their name says.

    First the command in an environment variable, then the running Python environment, then every folder on PATH.
    """
    names = sorted(names, key=len, reverse=True)
    asked = os.environ.get(variable)
    if asked:
        yield Path(asked).absolute() if "/" in asked else Path(asked)
    seen: set[tuple[Path, str]] = set()
    for folder in (Path(sys.prefix) / "bin", *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        # The longer names come first: they say which MPI they are, and so does the mpiexec beside them.
        for name in names:
            path = folder / name
            key = (folder.resolve(), name)
            if folder.is_absolute() and key not in seen and os.access(path, os.X_OK):
                seen.add(key)
                yield path


def words(show: str, option: str) -> list[str]:
    """`-I/usr/include/x` and `-I /usr/include/x` alike."""
    shown = shlex.split(show)
    joined = [word[len(option) :] for word in shown if word.startswith(option) and word != option]
    return joined + [after for word, after in itertools.pairwise(shown) if word == option]


def macro(macros: str, name: str) -> str:
    """The value of a macro in what `-E -dM` prints, without quotes; empty where it isn't defined."""
    match = re.search(rf'^#define {name} "?([^"\n]*)"?$', macros, re.MULTILINE)
    return match[1].strip() if match else ""


def find_file(folders: Iterable[str], names: Iterable[str]) -> str | None:
    """The first of those names in the first of those folders, links followed."""
    names = list(names)
    for folder in folders:
        for name in names:
            path = Path(folder) / name
            if path.is_file():
                return str(path.resolve())
    return None


def find_library(show: str) -> str | None:
    """The shared library that the first -l names, its links followed, so that two ways to one library are seen."""
    for name in words(show, "-l"):
        library = find_file(words(show, "-L"), [f"lib{name}.so", f"lib{name}.dylib"])
        if library:
            return library
    return None


def launcher_kind(launcher: Path, probes: Probes) -> str:
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
