"""Builds worker executables where they are needed, by calling the compiler, and keeps them.

There is no build system: a worker is one executable from some sixty small C files. It is built in about a second and
kept in the cache under a hash of all its inputs, so an upgraded compiler, library or hockney builds a new one.

The files are compiled in a few units, since starting a compiler and reading headers take most of a small file's time.
So static names are unique within a folder. Objects are kept as well: the workers of two MPIs share all except one of
them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hockney.errors import notice, working
from hockney.worker import cache
from hockney.worker.cache import Probes
from hockney.worker.compiler import find_c_compiler, identify
from hockney.worker.errors import BuildError, CompileFailed
from hockney.worker.programs import output_of

SOURCES = Path(__file__).parent / "csrc"

_FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-pthread")
_TIMED = ("-O2", "-ftree-vectorize")  # no loop here is faster with -O3, which takes a quarter longer to compile
TIMED_OPTIONS = " ".join((*_TIMED, *_FLAGS))  # the options of all code near a timed loop
_COMPILE_LIMIT_S = 300


def _transports(family: str) -> tuple[str, ...]:
    """The files of a family's transports begin with its name."""
    return tuple(f"transports/{path.name}" for path in sorted((SOURCES / "transports").glob(f"{family}*.c")))


# Sources that only one family links; each of the other transports belongs to the native one.
_STARTERS = ("children.c", "local.c", "remote.c")  # where no library starts the ranks
FAMILY_SOURCES = {
    "native": _STARTERS,
    "mpi": _transports("mpi"),
    "pvm": (*_STARTERS, "pvm_daemon.c", "pvm_hosts.c", *_transports("pvm")),
    "shmem": _transports("shmem"),
    "zmq": (*_STARTERS, *_transports("zmq")),
    "ucx": (*_STARTERS, *_transports("ucx")),
    "ofi": (*_STARTERS, *_transports("ofi")),
    "sim": (),  # its own folder has them all
}


@dataclass(frozen=True)
class Recipe:
    """The inputs of a worker's build. `compiler` is a command; empty means the system's C compiler.

    `libraries` come last on the linker's line. `flags` and `extra_sources` extend a family's: tests build with
    sanitizers and with transports that break things on purpose.
    """

    family: str = "native"
    compiler: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    extra_sources: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Step:
    """One call of a compiler: its standard input, and the file it makes."""

    what: str
    argv: tuple[str, ...]
    text: str
    path: Path  # its name is made of all that goes into it


def build_worker(recipe: Recipe = Recipe(), *, folder: Path | None = None) -> Path:
    """The executable for a recipe, built now or earlier. `folder` replaces the user's cache folder.

    Raises NoCompiler, CompileFailed with the compiler's own first errors, or CacheUnusable.
    """
    folder = folder or cache.default_folder()
    objects, link = _look_up(recipe, folder)
    if not Probes(folder).has(link.path):
        notice.get()("compiling the workers, once for each version and library (some seconds each) ...")
        with working.get()(f"compiling {' '.join((recipe.family, *map(os.path.basename, recipe.compiler[:1])))}"):
            _build(folder, objects, link)
    return link.path


def compiler_facts() -> dict[str, str | None]:
    """The version line of the native worker's compiler (None without one), and the options of its timed loops."""
    try:
        version = identify(find_c_compiler(), Probes(cache.default_folder()), wrapper=False).version
    except BuildError:
        version = None
    return {"c_compiler": version, "c_options": TIMED_OPTIONS}


def family_sources(family: str) -> tuple[Path, ...]:
    """The C files of a family, relative to SOURCES, in a fixed order."""
    of_family = set(FAMILY_SOURCES[family])
    others = {name for owner, names in FAMILY_SOURCES.items() if owner != family for name in names}
    folders = ("", "algorithms", "patterns", *{"native": ("transports",), "sim": ("sim",)}.get(family, ()))
    names = {str(path.relative_to(SOURCES)) for name in folders for path in (SOURCES / name).glob("*.c")}
    if family == "sim":  # the ranks of a model live in one process, on no real CPUs
        names -= {"floor.c", "floor_open.c", "launched.c", "measure.c", "pace.c", "session.c"}
    return tuple(map(Path, sorted((names - others) | of_family)))


# ---- compilers and libraries ----------------------------------------------------------------------------------------


def _look_up(recipe: Recipe, folder: Path) -> tuple[list[_Step], _Step]:
    """How the objects are compiled and how they are linked."""
    probes = Probes(folder)
    is_wrapper = recipe.family in ("mpi", "shmem")
    compiler = identify(recipe.compiler or find_c_compiler(), probes, wrapper=is_wrapper)
    plain = identify(find_c_compiler(), probes, wrapper=False) if is_wrapper else compiler
    flags = (*_FLAGS, *_lse2(), *recipe.flags)
    headers = _digest(f"{path}\0{path.read_text()}" for path in sorted(SOURCES.rglob("*.h")))
    steps = []
    for (unit, options), sources in units_of(recipe).items():
        # Only code that includes the headers of a library is compiled for it; the rest is the same for every family.
        used = compiler if unit in (recipe.family, *(extra.name for extra in recipe.extra_sources)) else plain
        argv = (*used.argv, *options, *flags)
        # cc and gcc are often one file, and then one compiler.
        called = (str(cache.resolve(used.argv[0])), used.version.partition(" ")[2], used.show)
        name = _digest((*called, *argv[1:], headers, *map(str, sources), *sources.values()))
        text = "".join(f'#include "{source}"\n' for source in sources)
        path = folder / "objects" / f"{name}.o"
        steps.append(_Step(f"compile {unit}", (*argv, "-I.", "-x", "c", "-c", "-"), text, path))
    libraries = (*recipe.libraries, "-lm", *(("-lrt", "-ldl") if sys.platform.startswith("linux") else ()))
    key = _digest((*compiler.argv, compiler.show, *flags, *(step.path.name for step in steps), *libraries))
    argv = (*compiler.argv, *flags, *(str(step.path) for step in steps), *libraries)
    return steps, _Step("link the worker", argv, "", folder / f"{recipe.family}-{key}")


def units_of(recipe: Recipe) -> dict[tuple[str, tuple[str, ...]], dict[Path, str]]:
    """Which files are compiled together, each with its text, by the name of the unit and the options it needs."""
    of_family = set(map(Path, FAMILY_SOURCES[recipe.family]))
    units: dict[tuple[str, tuple[str, ...]], dict[Path, str]] = {}
    for source in family_sources(recipe.family):
        text = (SOURCES / source).read_text()
        # A file without a timed loop is compiled without optimisation, in less than half the time.
        if text.startswith("/* cold */\n"):
            unit = ("cold", ("-O0", f"-DHK_FAMILY_{recipe.family.upper()}"))
        else:
            unit = (recipe.family if source in of_family else source.parent.name or "core", _TIMED)
        units.setdefault(unit, {})[source] = text
    for extra in recipe.extra_sources:
        units.setdefault((extra.name, _TIMED), {})[extra.absolute()] = extra.read_text()
    return units


def _digest(words: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:20]


def _lse2() -> tuple[str, ...]:
    """Options for the sources if this is an aarch64 CPU whose 16-byte stores are single copies."""
    if os.uname().machine not in ("aarch64", "arm64"):
        return ()
    try:
        known = sys.platform == "darwin" or " uscat" in Path("/proc/cpuinfo").read_text()
    except OSError:
        known = False
    return ("-DHK_LSE2",) if known else ()


# ---- building -------------------------------------------------------------------------------------------------------


def _build(folder: Path, objects: list[_Step], link: _Step) -> None:
    # Imported late: it takes as long as finding a worker that is built.
    from concurrent.futures import ThreadPoolExecutor

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    probes = Probes(folder)
    with cache.scratch(folder) as room:
        cache.make_private(folder / "objects")
        missing = [step for step in objects if not probes.has(step.path)]
        missing.sort(key=lambda step: -len(step.text))  # the longest first, so that no CPU is left with it at the end
        with ThreadPoolExecutor(max_workers=cpus) as pool:
            list(pool.map(lambda step: probes.keep(_make(step, room)), missing))
        libraries = re.findall(r"=> (/\S+)", output_of(["ldd", _make(link, room)]))  # where the loader finds them
        for step in (*missing, link):  # compiled for the libraries as they are now
            probes.keep(step.path, libraries)
    cache.forget_unused(folder)


def _make(step: _Step, room: Path) -> Path:
    """Run a command that makes a file, and move the file to its place."""
    made = room / step.path.name
    name = Path(step.argv[0]).name
    try:
        done = subprocess.run(
            [*step.argv, "-o", str(made)],
            cwd=SOURCES,
            env={**os.environ, "LC_ALL": "C", "TMPDIR": str(room)},
            input=step.text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMPILE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{name} did not {step.what} within {_COMPILE_LIMIT_S} s") from error
    except OSError as error:
        raise BuildError(f"cannot run {name}: {error.strerror}") from error
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0 or not made.is_file():
        raise CompileFailed(name, step.what, said or f"it said nothing: {shlex.join(step.argv)}")
    made.chmod(0o700)
    return made.replace(step.path)
