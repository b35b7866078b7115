"""Builds worker executables where they are needed, by calling the compiler, and keeps them.

There is no build system in between: a worker is one executable out of some sixty small C files, built in about a
second, and then kept in the cache under a name made of everything that went into it. So there is nothing to configure
or to clean, and an upgraded compiler, library or hockney builds anew by itself.

The files are compiled in a few units: most of a small file's time goes into starting a compiler and into headers that
all of them read. So what is static in a file still has a name of its own within its folder; the compiler says so where
it has not. Objects are kept too: the worker of a second MPI shares all but one of them with the first one's.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.worker import cache
from hockney.worker.cache import Probes
from hockney.worker.compiler import Compiler, find_c_compiler, identify
from hockney.worker.errors import BuildError, CacheUnusable, CompileFailed

SOURCES = Path(__file__).parent / "csrc"

_FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-pthread")
_COLD_OPTIONS = ("-O0",)
_TIMED = ("-O2", "-ftree-vectorize")  # no loop here is faster with -O3, which takes a quarter longer to compile
TIMED_OPTIONS = " ".join((*_TIMED, *_FLAGS))  # what everything near a timed loop is compiled with
_COMPILE_LIMIT_S = 300

# Sources that only one family links; each of the other transports belongs to the native one.
_FAMILY_SOURCES = {
    "native": ("local.c",),
    "mpi": tuple(f"transports/mpi{part}.c" for part in ("", "_modes", "_name", "_persistent", "_rma", "_start")),
    "pvm": ("local.c", "pvm_daemon.c", "transports/pvm.c"),
    "shmem": ("transports/shmem.c", "transports/shmem_start.c"),
}

# The first line of a C file that holds no timed loop: it is compiled without optimisation, in less than half the time.
_COLD_MARK = "/* cold */\n"


@dataclass(frozen=True)
class Recipe:
    """What decides how a worker is built. `compiler` is a command; empty means the system's C compiler.

    `libraries` are linked behind all else. `defines`, `flags` and `extra_sources` come on top of a family's own: tests
    build with sanitizers and with transports that break things on purpose.
    """

    family: str = "native"
    compiler: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    extra_sources: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()


NATIVE = Recipe()


@dataclass(frozen=True)
class _Object:
    """One object file: how it is made, and where it is kept under a name made of all that goes into it."""

    unit: str
    text: str  # what the compiler reads: one #include for each file of the unit
    size_bytes: int
    argv: tuple[str, ...]
    path: Path


@dataclass(frozen=True)
class _Plan:
    """A recipe with everything looked up."""

    compiler: Compiler
    flags: tuple[str, ...]
    objects: tuple[_Object, ...]
    folder: Path
    executable: Path
    libraries: tuple[str, ...]


def build_worker(recipe: Recipe = NATIVE, *, folder: Path | None = None) -> Path:
    """The executable for a recipe, built now or earlier. `folder` replaces the user's cache folder.

    Raises NoCompiler, CompileFailed with the compiler's own first errors, or CacheUnusable.
    """
    plan = _look_up(recipe, folder)
    if not cache.touch(plan.executable):
        _build(plan)
    return plan.executable


def compiler_facts() -> dict[str, str | None]:
    """The native worker's compiler in its own words, None where there is none, and the options of its timed loops."""
    try:
        version = identify(find_c_compiler(), Probes(cache.default_folder()), wrapper=False).version
    except BuildError:
        version = None
    return {"c_compiler": version, "c_options": TIMED_OPTIONS}


def is_built(recipe: Recipe = NATIVE, *, folder: Path | None = None) -> bool:
    """Whether build_worker would return at once. Raises NoCompiler, or CompileFailed if it can't tell its version."""
    return cache.touch(_look_up(recipe, folder).executable)


def family_sources(family: str) -> tuple[Path, ...]:
    """The C files of a family, relative to SOURCES, in a fixed order."""
    own = _FAMILY_SOURCES[family]
    others = {name for owner, names in _FAMILY_SOURCES.items() if owner != family for name in names}
    folders = ("", "patterns", "transports") if family == "native" else ("", "patterns")
    found = {path.relative_to(SOURCES) for name in folders for path in (SOURCES / name).glob("*.c")}
    return tuple(sorted({*(path for path in found if str(path) not in others), *map(Path, own)}))


# ---- looking up -----------------------------------------------------------------------------------------------------


def _look_up(recipe: Recipe, folder: Path | None) -> _Plan:
    folder = folder or cache.default_folder()
    argv = recipe.compiler or find_c_compiler()
    compiler = identify(argv, Probes(folder), wrapper=recipe.family in ("mpi", "shmem"))
    flags = (
        *_FLAGS,
        *(["-DHK_LSE2"] if _has_lse2() else []),
        *(f"-D{define}" for define in recipe.defines),
        *recipe.flags,
    )
    headers = _digest(f"{path}\0{path.read_text()}" for path in sorted(SOURCES.rglob("*.h")))
    # cc and gcc are often one file, and then one compiler.
    version = compiler.version.partition(" ")[2]
    files = {argv: str(cache.resolve(argv[0])) for argv in (compiler.argv, compiler.behind)}
    objects = []
    for unit, sources in _units(recipe).items():
        command = compiler.argv if unit.wrapped else compiler.behind
        line = (*command[1:], *unit.optimisation, *flags, *unit.defines)
        shown = compiler.show if unit.wrapped else ""
        identity = (files[command], version, shown, *line, headers, *map(str, sources), *sources.values())
        path = folder / "objects" / f"{_digest(identity)}.o"
        text = "".join(f'#include "{source}"\n' for source in sources)
        objects.append(_Object(unit.name, text, sum(map(len, sources.values())), (command[0], *line), path))
    libraries = (*recipe.libraries, "-lm", *(("-lrt",) if sys.platform.startswith("linux") else ()))
    key = _digest((*compiler.argv, compiler.show, *flags, *(piece.path.name for piece in objects), *libraries))
    return _Plan(compiler, flags, tuple(objects), folder, folder / f"{recipe.family}-{key}", libraries)


@dataclass(frozen=True)
class _Unit:
    """What is compiled as one."""

    name: str
    optimisation: tuple[str, ...] = _TIMED
    wrapped: bool = False  # sees the headers of a library
    defines: tuple[str, ...] = ()


def _units(recipe: Recipe) -> dict[_Unit, dict[Path, str]]:
    """Which files are compiled together, each with its text.

    Only a family's own see its library; most are the same for every family.
    """
    own = {Path(name) for name in _FAMILY_SOURCES[recipe.family]}
    units: dict[_Unit, dict[Path, str]] = {}
    for source in family_sources(recipe.family):
        text = (SOURCES / source).read_text()
        if text.startswith(_COLD_MARK):
            unit = _Unit("cold", _COLD_OPTIONS, defines=(f"-DHK_FAMILY_{recipe.family.upper()}",))
        elif source in own:
            unit = _Unit(recipe.family, wrapped=True)
        else:
            unit = _Unit(source.parent.name or "core")
        units.setdefault(unit, {})[source] = text
    for extra in recipe.extra_sources:
        units.setdefault(_Unit(extra.name, wrapped=True), {})[extra.absolute()] = extra.read_text()
    return units


def _digest(words: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:20]


def _has_lse2() -> bool:
    """Whether this is an aarch64 CPU whose 16-byte stores are single copies."""
    if os.uname().machine not in ("aarch64", "arm64"):
        return False
    if sys.platform == "darwin":
        return True
    try:
        return " uscat" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


# ---- building -------------------------------------------------------------------------------------------------------


def _build(plan: _Plan) -> None:
    # Late, because who finds a worker built needs no threads, and their import costs as much as the whole look-up.
    from concurrent.futures import ThreadPoolExecutor

    with cache.scratch(plan.folder) as room:
        (plan.folder / "objects").mkdir(exist_ok=True)
        missing = [piece for piece in plan.objects if not cache.touch(piece.path)]
        # The longest first, so that no CPU is left with a long one at the end.
        missing.sort(key=lambda piece: -piece.size_bytes)
        pool = ThreadPoolExecutor(max_workers=_cpus())
        try:
            for done in [pool.submit(_compile, plan, room, piece) for piece in missing]:
                done.result()
        finally:
            pool.shutdown(cancel_futures=True)
        _link(plan, room)
    cache.forget_unused(plan.folder)


def _compile(plan: _Plan, room: Path, piece: _Object) -> None:
    made = room / piece.path.name
    argv = [*piece.argv, "-I.", "-x", "c", "-c", "-o", str(made), "-"]
    _make(plan, room, f"compile {piece.unit}", argv, made, piece.path, piece.text)


def _link(plan: _Plan, room: Path) -> None:
    made = room / "worker"
    objects = [str(piece.path) for piece in plan.objects]
    argv = [*plan.compiler.argv, *plan.flags, "-o", str(made), *objects, *plan.libraries]
    _make(plan, room, "link the worker", argv, made, plan.executable)


def _make(plan: _Plan, room: Path, what: str, argv: Sequence[str], made: Path, path: Path, text: str = "") -> None:
    """Run a command that makes a file, and move the file to its place."""
    name = Path(argv[0]).name
    try:
        done = subprocess.run(
            argv,
            cwd=SOURCES,
            env={**os.environ, "LC_ALL": "C", "TMPDIR": str(room)},
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMPILE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{name} did not {what} within {_COMPILE_LIMIT_S} s") from error
    except OSError as error:
        raise BuildError(f"cannot run {name}: {error.strerror}") from error
    said = done.stdout.decode(errors="replace")
    if done.returncode == 0:
        if not made.is_file():
            raise CompileFailed(name, what, f"it ended with exit code 0, made no file and said: {said or 'nothing'}")
        made.replace(path)
        return
    if "No space left on device" in said or "Disk quota exceeded" in said:
        raise CacheUnusable(plan.folder)
    raise CompileFailed(name, what, said or f"no message from: {shlex.join(argv)}")


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
