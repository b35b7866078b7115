"""The communication libraries of this machine: how a worker is built for each, and what starts its jobs.

MPI and OpenSHMEM have a compiler wrapper. A worker built with one library and started by another's launcher comes up as
so many jobs of one rank, so a wrapper is taken only together with a launcher of the same kind from the same folder.
Asking takes 20 to 60 ms a library; the answers are kept until one of the files involved changes.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, find_c_compiler, identify, run, split_words
from hockney.worker.errors import BuildError, CompileFailed, NoCompiler

Item = TypeVar("Item")
Answer = TypeVar("Answer")

REPAIR = "repair or remove this library"


@dataclass(frozen=True)
class Library:
    """One library. `id` names it in transports: `mpi@openmpi-4.1.4`; `name` is for people: `Open MPI 4.1.4`.

    `kind` is the name of its launcher in launch.LAUNCHERS, `program` that launcher's executable. `is_wheel`: from a
    Python environment, whose programs must not see the system's LD_LIBRARY_PATH.
    """

    id: str
    name: str
    kind: str
    program: Path
    recipe: Recipe
    is_wheel: bool = False


@dataclass(frozen=True)
class Unusable:
    """A compiler wrapper or daemon that can't be used: why, and what to do."""

    path: Path
    reason: str
    how: str = REPAIR


def side_by_side(ask: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """The answer of each, in order: who asks programs mostly waits. `ask` raises nothing."""
    answers: dict[int, Answer] = {}

    def put(place: int) -> None:
        answers[place] = ask(items[place])

    threads = [threading.Thread(target=put, args=(place,)) for place in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[place] for place in range(len(items))]


def unique_id(plain: str, taken: Container[str]) -> str:
    """`plain`, or `plain~2` and so on where it is taken: two builds of one version, in two folders."""
    names = itertools.chain([plain], (f"{plain}~{count}" for count in itertools.count(2)))
    return next(name for name in names if name not in taken)


# ---- MPI and OpenSHMEM -----------------------------------------------------------------------------------------------

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


# ---- PVM -------------------------------------------------------------------------------------------------------------

_PVM_ROOTS = ("/usr/lib/pvm3", "/usr/share/pvm3", "/usr/local/pvm3", "/usr/local/share/pvm3", "/opt/pvm3", "~/pvm3")
_PVM_LIBRARIES = ("libpvm3.so", "libpvm3.a")


def find_pvms() -> tuple[tuple[Library, ...], tuple[Unusable, ...]]:
    """Every PVM of this machine, once each, and the daemons that no program can be built for, with the reason.

    Looked for are the folder in PVM_ROOT and the usual ones. Distributions put header and library where every compiler
    looks; who builds PVM has both, and the daemon, in one folder. Raises nothing.
    """
    try:
        compiler = find_c_compiler()
    except NoCompiler:
        return (), ()
    probes = Probes(cache.default_folder())
    libraries: dict[str, Library] = {}
    broken: list[Unusable] = []
    for root in _pvm_roots():
        pvmd = root / "lib" / "pvmd"
        if not os.access(pvmd, os.X_OK):
            continue
        header = root / "include" / "pvm3.h"
        flags = (f"-I{header.parent}",) if header.is_file() else ()
        version = _pvm_version(compiler, flags, probes)
        if not version:
            broken.append(Unusable(pvmd, "its header pvm3.h is not here (Debian and Ubuntu have it in pvm-dev)"))
            continue
        archives = [str(path) for name in _PVM_LIBRARIES for path in sorted(root.glob(f"lib/*/{name}"))]
        recipe = Recipe(family="pvm", flags=flags, libraries=tuple(archives[:1]) or ("-lpvm3",))
        its_id = unique_id(f"pvm@{version}", libraries)
        libraries[its_id] = Library(its_id, f"PVM {version}", "pvm", pvmd, recipe)
    return tuple(libraries.values()), tuple(broken)


def _pvm_roots() -> Iterable[Path]:
    """Each folder once, by the name that comes first."""
    names = [name for name in (os.environ.get("PVM_ROOT"), *_PVM_ROOTS) if name]
    roots = [Path(os.path.expanduser(name)).absolute() for name in names]  # noqa: PTH111 - without a home it stays ~
    return reversed({root.resolve(): root for root in reversed(roots)}.values())


def _pvm_version(compiler: tuple[str, ...], flags: tuple[str, ...], probes: Probes) -> str:
    """What pvm3.h says; empty where the compiler finds none."""
    key = ["pvm", *compiler, *flags]
    answer = probes.get(key)
    if answer is None:
        try:
            said = ask([*compiler, *flags, "-E", "-dD", "-include", "pvm3.h", "-x", "c", os.devnull])
        except CompileFailed:
            return ""
        version = re.search(r'^#define\s+PVM_VER\s+"([^"]+)"', said, re.MULTILINE)
        header = re.search(r'^# \d+ "([^"]*/pvm3\.h)"', said, re.MULTILINE)
        answer = {"version": version[1] if version else ""}
        probes.put(key, answer, [header[1]] if header else [])
    return str(answer["version"])
