"""The communication libraries of this machine: how a worker is built for each, and how its jobs start.

MPI and OpenSHMEM have a compiler wrapper. A worker of one library, started by another's launcher, comes up as many jobs
of one rank each. So a wrapper is used only together with a launcher of the same kind from the same folder. Asking takes
20 to 60 ms a library; the answers are kept until one of the files involved changes.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from hockney.machine.files import read_text, read_toml
from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, find_c_compiler, identify, split_words
from hockney.worker.errors import BuildError, CompileFailed, NoCompiler
from hockney.worker.programs import output_of
from hockney.worker.wheels import wheel_folders

Item = TypeVar("Item")
Answer = TypeVar("Answer")

REPAIR = "repair or remove this library"


@dataclass(frozen=True)
class Library:
    """One library. `id` names it in transports: `mpi@openmpi-4.1.4`; `name` is for people: `Open MPI 4.1.4`.

    `kind` is the name of its launcher in launch.LAUNCHERS, `program` that launcher's executable. `is_wheel`: from a
    Python environment, whose programs must not see the system's LD_LIBRARY_PATH. `environment`: of its jobs.
    """

    id: str
    name: str
    kind: str
    program: Path
    recipe: Recipe
    is_wheel: bool = False
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def has_launcher(self) -> bool:
        """Whether its program starts ranks and says its version. PVM's is a daemon, which any option starts."""
        return self.kind not in ("local", "pvm")


NATIVE = Library("", "native", "local", Path(), Recipe())
"""In place of a library: the worker starts its ranks itself."""


@dataclass(frozen=True)
class Missing:
    """A transport, or the wrapper or daemon of one, that is not ready here: why, and how to get it."""

    name: str
    why: str
    how: str


Found = tuple[tuple[Library, ...], tuple[Missing, ...]]
"""The usable libraries, and the unusable ones with the reason."""


def side_by_side(ask: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """The answer of each, in order. Asking programs is mostly waiting; 64 are asked at once."""
    from concurrent.futures import ThreadPoolExecutor  # 5 ms

    with ThreadPoolExecutor(min(64, max(1, len(items)))) as pool:
        return list(pool.map(ask, items))


def _named_once(libraries: Iterable[Library]) -> tuple[Library, ...]:
    """Two builds of one version, in two folders, are `mpi@mpich-4.2.1` and `mpi@mpich-4.2.1~2`."""
    counts: Counter[str] = Counter()
    named = []
    for library in libraries:
        counts[library.id] += 1
        count = counts[library.id]
        named.append(library if count == 1 else replace(library, id=f"{library.id}~{count}"))
    return tuple(named)


# ---- MPI and OpenSHMEM -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One kind of library: its header defines all of `macros`, whose values are its version."""

    id: str
    name: str  # for people; {} is the version
    launcher: str  # in launch.LAUNCHERS
    macros: tuple[str, ...]


@dataclass(frozen=True)
class Search:
    """How the libraries of one family are found. The last of its kinds has no macros and takes any launcher."""

    family: str  # the start of its libraries' names: `mpi@…`
    variable: str  # the environment variable that may name one more wrapper
    wrappers: tuple[str, ...]
    header: str  # that each of its programs includes
    launchers: tuple[str, ...]
    kinds: tuple[Kind, ...]
    compilers: Mapping[str, str] = field(default_factory=dict, hash=False)  # that wrappers call, whatever PATH has

    def __call__(self) -> Found:
        """Every library of this machine, once each, and the wrappers that can't be used with the reason.

        It searches the command in the variable, the running Python environment, every folder on PATH, where environment
        modules put theirs, and what `hockney setup` has installed. Raises nothing: a broken wrapper is in the second
        tuple.
        """
        by_file: dict[str, Library | Missing] = {}
        # Side by side: one that hangs must not keep the others waiting.
        for file, known in side_by_side(self._examine, list(self._candidates())):
            if not isinstance(by_file.get(file), Library):
                by_file[file] = known
        usable = _named_once(known for known in by_file.values() if isinstance(known, Library))
        return usable, tuple(known for known in by_file.values() if isinstance(known, Missing))

    def at(self, prefix: Path) -> Library | Missing:
        """The library whose wrapper is in the folder bin of `prefix`, and which is named by that: `mpi@/opt/a`."""
        wrapper = next((path for name in self.wrappers if os.access(path := prefix / "bin" / name, os.X_OK)), None)
        if wrapper is None:
            why = f"there is no {self.wrappers[0]} in {prefix / 'bin'}"
            return Missing(str(prefix), why, f"name the folder above that of its {self.wrappers[0]}")
        _, known = self._examine(wrapper)
        return known if isinstance(known, Missing) else replace(known, id=f"{self.family}@{prefix}")

    def _candidates(self) -> Iterator[Path]:
        """Wrappers in the order of preference, by the names they are called by: some behave as their name says."""
        asked = os.environ.get(self.variable)
        if asked:
            yield Path(asked).absolute() if "/" in asked else Path(asked)
        seen: set[tuple[Path, str]] = set()
        of_wheels = (folder / "bin" for folder in wheel_folders())
        on_path = map(Path, os.environ.get("PATH", "").split(os.pathsep))
        for folder in (Path(sys.prefix) / "bin", *on_path, *of_wheels):
            # The longer names come first: they say which MPI they are, and so does the mpiexec next to them.
            for name in sorted(self.wrappers, key=len, reverse=True):
                path = folder / name
                key = (folder.resolve(), name)
                if folder.is_absolute() and key not in seen and os.access(path, os.X_OK):
                    seen.add(key)
                    yield path

    def _examine(self, wrapper: Path) -> tuple[str, Library | Missing]:
        """The library behind a wrapper, after the file that programs load, or its substitute."""
        probes = Probes(cache.default_folder())
        try:
            compiler = identify([str(wrapper)], probes, wrapper=True)
            key = ["library", self.family, str(wrapper), compiler.show, compiler.version]
            answer = probes.get(key, "kind", "version", "library")
            kinds = {kind.id: kind for kind in self.kinds}
            if answer is None or answer["kind"] not in kinds:
                macros = ask([str(wrapper), "-E", "-dM", "-include", self.header, "-x", "c", "/dev/null"])
                kind, version = self._kind_and_version(macros)
                header = _find_file(_option_values(compiler.show, "-I"), [self.header])
                library = _find_library(compiler.show)
                answer = {"kind": kind.id, "version": version, "library": library or compiler.show}
                probes.put(key, answer, [str(wrapper), *filter(None, (header, library))])
        except BuildError as error:
            how = f"repair it; {self.variable} may name another one"
            why, called = str(error), self.compilers.get(wrapper.name)
            if called and shutil.which(called) is None:
                why, how = (
                    f"not installed: {called}, the compiler that it calls",
                    f"install that, or use {wrapper.parent}'s mpicc",
                )
            return str(wrapper), Missing(str(wrapper), why, how)
        kind = kinds[answer["kind"]]
        launcher = self._find_launcher(wrapper, kind, probes)
        if launcher is None and "SLURM_JOB_ID" in os.environ and (srun := shutil.which("srun")):
            launcher = Path(srun)  # a site's MPI may have no other
        if launcher is None:
            why = f"there is no {self.launchers[0]} of the same library next to {wrapper}"
            return answer["library"], Missing(str(wrapper), why, REPAIR)
        its_id = f"{self.family}@{kind.id}-{answer['version']}".rstrip("-")
        name = kind.name.format(answer["version"]).strip()
        recipe = Recipe(family=self.family, compiler=(str(wrapper),))
        is_wheel = (wrapper.parent.parent / "pyvenv.cfg").is_file()
        return answer["library"], Library(its_id, name, kind.launcher, launcher, recipe, is_wheel)

    def _kind_and_version(self, macros: str) -> tuple[Kind, str]:
        """The kind and version in the output of `-E -dM`."""
        defined = dict(re.findall(r'^#define (\w+) "?([^"\n]*)"?$', macros, re.MULTILINE))
        kind = next(kind for kind in self.kinds if all(defined.get(name) for name in kind.macros))
        return kind, ".".join(defined[name].partition(" ")[0] for name in kind.macros)

    def _find_launcher(self, wrapper: Path, kind: Kind, probes: Probes) -> Path | None:
        """The launcher of the same kind, in the wrapper's own folder; mpicc.mpich has mpiexec.mpich next to it."""
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
    """A launcher's name for itself; empty if it gives nothing useful."""
    key = ["launcher", str(launcher)]
    answer = probes.get(key, "kind")
    if answer is None:
        try:
            said = ask([str(launcher), "--version"])
        except CompileFailed:
            return ""  # not kept: it may have been busy
        marks = {"Intel(R) MPI": "intel", "HYDRA": "mpich"} | dict.fromkeys(("Open MPI", "OpenRTE", "PRRTE"), "openmpi")
        answer = {"kind": next((kind for mark, kind in marks.items() if mark in said), "")}
        probes.put(key, answer, [str(launcher)])
    return str(answer["kind"])


def _search(family: str) -> Search:
    """That of libraries.toml."""
    table = read_toml(Path(__file__).with_suffix(".toml"))[family]
    kinds = tuple(Kind(**{**kind, "macros": tuple(kind["macros"])}) for kind in table["kind"])
    names = tuple(table["wrappers"]), table["header"], tuple(table["launchers"])
    return Search(family, table["variable"], *names, kinds, table.get("compilers", {}))


MPI, SHMEM = _search("mpi"), _search("shmem")


# ---- PVM -------------------------------------------------------------------------------------------------------------


_PVM_ROOTS = ("/usr/lib/pvm3", "/usr/share/pvm3", "/usr/local/pvm3", "/usr/local/share/pvm3", "/opt/pvm3", "~/pvm3")


def find_pvms() -> Found:
    """Every PVM of this machine, once each, and the daemons that no program can be built for, with the reason.

    Searched are the folder in PVM_ROOT and the usual ones. Distributions put header and library where every compiler
    finds them; a PVM built from source has both, and the daemon, in one folder. Raises nothing.
    """
    try:
        compiler = find_c_compiler()
    except NoCompiler:
        return (), ()
    probes = Probes(cache.default_folder())
    libraries: list[Library] = []
    broken: list[Missing] = []
    for root in _pvm_roots():
        pvmd = root / "lib" / "pvmd"
        if not os.access(pvmd, os.X_OK):
            continue
        header = root / "include" / "pvm3.h"
        flags = (f"-I{header.parent}",) if header.is_file() else ()
        version = _header_version(compiler, flags, "pvm3.h", ("PVM_VER",), probes)
        if not version:
            why = "its header pvm3.h is not here (Debian and Ubuntu have it in pvm-dev)"
            broken.append(Missing(str(pvmd), why, REPAIR))
            continue
        archives = [str(path) for name in ("libpvm3.so", "libpvm3.a") for path in sorted(root.glob(f"lib/*/{name}"))]
        recipe = Recipe(family="pvm", flags=flags, libraries=tuple(archives[:1]) or ("-lpvm3",))
        libraries.append(Library(f"pvm@{version}", f"PVM {version}", "pvm", pvmd, recipe))
    return _named_once(libraries), tuple(broken)


def _pvm_roots() -> Iterable[Path]:
    """Each folder once, by the name that comes first."""
    names = [name for name in (os.environ.get("PVM_ROOT"), *_PVM_ROOTS) if name]
    roots = [Path(os.path.expanduser(name)).absolute() for name in names]  # noqa: PTH111 - without a home it stays ~
    return reversed({root.resolve(): root for root in reversed(roots)}.values())


def _header_version(
    compiler: tuple[str, ...], flags: tuple[str, ...], header: str, macros: tuple[str, ...], probes: Probes
) -> str:
    """The values of the macros in a header, joined by dots; empty if the compiler finds none."""
    key = ["header", header, *compiler, *flags]
    answer = probes.get(key, "version")
    if answer is None:
        try:
            said = ask([*compiler, *flags, "-E", "-dD", "-include", header, "-x", "c", os.devnull])
        except CompileFailed:
            return ""
        values = dict(re.findall(r'^#define[ \t]+(\w+)[ \t]+"?([^"\s]+)', said, re.MULTILINE))
        path = re.search(rf'^# \d+ "([^"]*/{re.escape(header)})"', said, re.MULTILINE)
        answer = {"version": ".".join(values.get(name, "") for name in macros)}
        probes.put(key, answer, [path[1]] if path else [])
    return str(answer["version"])


def find_zmqs() -> Found:
    """The ZeroMQ whose header the C compiler finds; none if there is none. Raises nothing."""
    try:
        compiler = find_c_compiler()
    except NoCompiler:
        return (), ()
    macros = ("ZMQ_VERSION_MAJOR", "ZMQ_VERSION_MINOR", "ZMQ_VERSION_PATCH")
    version = _header_version(compiler, (), "zmq.h", macros, Probes(cache.default_folder()))
    recipe = Recipe(family="zmq", libraries=("-lzmq",))
    return ((Library(f"zmq@{version}", f"ZeroMQ {version}", "local", Path(), recipe),) if version else ()), ()


# ---- UCX and libfabric -----------------------------------------------------------------------------------------------


_USUAL_ROOT = Path("/usr")  # compilers look there by themselves
_DEVICES = ("infiniband", "net")  # folders of /sys/class, on Linux


def find_ucxs() -> Found:
    """Every UCX of this machine: those that a program can be built for, and those without a header. Raises nothing."""
    libraries = []
    roots, broken = _roots("ucx_info", "ucp/api/ucp_version.h", r"UCP_API_M(?:AJOR|INOR)", "libucx-dev")
    for root, version in roots:
        recipe, over = _plain_recipe("ucx", root, "-lucp", "-lucs"), _transports_of(root / "bin/ucx_info")
        libraries.append(Library(f"ucx@{version}", f"UCX {version}{over}", "local", root, recipe))
    return _named_once(libraries), tuple(broken)


def _transports_of(program: Path) -> str:
    """` over tcp, sysv, cma`: what UCX can use here, as its program says; empty if that is unknown."""
    try:
        said = _asked_once([str(program), "-d"], "UCX_") if program.exists() else ""
    except CompileFailed:
        return ""
    names = dict.fromkeys(re.findall(r"^#\s+Transport: (\w+)$", said, re.MULTILINE))
    return f" over {', '.join(names)}" if names else ""


def _asked_once(argv: Sequence[str], prefix: str) -> str:
    """What a program says of the devices here: kept until it, its libraries, its variables or a device change.

    `prefix` begins the names of its variables. Raises CompileFailed.
    """
    probes = Probes(cache.default_folder())
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(prefix))
    devices = sorted(str(path) for path in Path("/sys/class").glob("[in]*/*") if path.parent.name in _DEVICES)
    key = [*argv, *variables, *devices]
    answer = probes.get(key, "said")
    if answer is None:
        answer = {"said": ask(argv)}
        probes.put(key, answer, [argv[0], *re.findall(r"=> (/\S+)", output_of(["ldd", argv[0]]))])
    return str(answer["said"])


def find_ofis() -> Found:
    """The providers of every libfabric of this machine whose endpoints send messages by tag. Raises nothing.

    Each is a library, by a name that a shell can take: `ofi@tcp-rxm` is the provider tcp;ofi_rxm.
    """
    libraries = []
    roots, broken = _roots("fi_info", "rdma/fabric.h", r"FI_M(?:AJOR|INOR)_VERSION", "libfabric-dev")
    for root, version in roots:
        program, recipe = root / "bin/fi_info", _plain_recipe("ofi", root, "-lfabric")
        if not os.access(program, os.X_OK):
            why = "its program fi_info, which names the providers, is not here"
            broken.append(Missing("ofi", f"{why} (Debian and Ubuntu have it in libfabric-bin)", "install it"))
            continue
        try:
            said = _asked_once([str(program), "-t", "FI_EP_RDM", "-c", "FI_TAGGED"], "FI_")
        except CompileFailed as error:
            broken.append(Missing(str(program), error.reason, REPAIR))
            continue
        for provider in dict.fromkeys(re.findall(r"^provider: (\S+)", said, re.MULTILINE)):
            short = re.sub("[^a-z0-9]+", "-", provider.lower().replace(";ofi_", "-"))
            name = f"libfabric {version}, {provider}"
            variables = (("HOCKNEY_OFI_PROVIDER", provider),)
            libraries.append(Library(f"ofi@{short}", name, "local", program, recipe, environment=variables))
    return _named_once(libraries), tuple(broken)


def _roots(program: str, header: str, macros: str, package: str) -> tuple[list[tuple[Path, str]], list[Missing]]:
    """The folders with a header in include, and its version: those above a program on PATH, and /usr.

    A program without a header is missing; the `package` of distributions has it.
    """
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    programs = [path for folder in folders if os.access(path := folder / program, os.X_OK) and folder.is_absolute()]
    roots = {root.resolve(): None for root in (*(path.parent.parent for path in programs), _USUAL_ROOT)}
    known = [root for root in roots if (root / "include" / header).is_file()]
    if known or not programs:
        texts = [read_text(root / "include" / header) or "" for root in known]
        versions = [".".join(re.findall(rf"^#define {macros}\s+(\d+)", text, re.MULTILINE)) for text in texts]
        return list(zip(known, versions, strict=True)), []
    why = f"its header {header} is not here (Debian and Ubuntu have it in {package})"
    return [], [Missing(str(programs[0]), why, REPAIR)]


def _plain_recipe(family: str, root: Path, *libraries: str) -> Recipe:
    """How a worker is linked with a library without a wrapper."""
    if root == _USUAL_ROOT:
        return Recipe(family=family, libraries=libraries)
    folders = [str(path) for name in ("lib", "lib64") if (path := root / name).is_dir()]
    where = [word for folder in folders for word in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
    return Recipe(family=family, flags=(f"-I{root}/include",), libraries=(*where, *libraries))
