"""Finds PVM on this machine: its header, its library, and the daemon without which no program of it runs.

Distributions put the first two where every compiler looks; who builds PVM has all three in one folder, PVM_ROOT.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, find_c_compiler
from hockney.worker.errors import CompileFailed, NoCompiler
from hockney.worker.libraries import Unusable, unique_id

_ROOTS = ("/usr/lib/pvm3", "/usr/share/pvm3", "/usr/local/pvm3", "/usr/local/share/pvm3", "/opt/pvm3", "~/pvm3")
_LIBRARIES = ("libpvm3.so", "libpvm3.a")


@dataclass(frozen=True)
class Pvm:
    """One PVM: how to build for it and how to start it. `id` names it in transports: `pvm@3.4.6`."""

    id: str
    version: str
    pvmd: Path  # PVM_ROOT/lib/pvmd
    flags: tuple[str, ...]  # where the header is; empty: where every compiler looks
    libraries: tuple[str, ...]

    @property
    def name(self) -> str:
        """For people: `PVM 3.4.6`."""
        return f"PVM {self.version}"

    @property
    def kind(self) -> str:
        """Which launcher starts its jobs."""
        return "pvm"

    @property
    def program(self) -> Path:
        """The daemon: PVM has no launcher."""
        return self.pvmd

    @property
    def is_wheel(self) -> bool:
        """There is none."""
        return False

    @property
    def recipe(self) -> Recipe:
        """How the worker for this library is built."""
        return Recipe(family="pvm", flags=self.flags, libraries=self.libraries)


def search(*, folder: Path | None = None) -> tuple[tuple[Pvm, ...], tuple[Unusable, ...]]:
    """Every PVM of this machine, once each, and the daemons that no program can be built for, with the reason.

    Looked for are the folder in PVM_ROOT and the usual ones. `folder` replaces the user's cache folder. Raises nothing.
    """
    try:
        compiler = find_c_compiler()
    except NoCompiler:
        return (), ()
    probes = Probes(folder or cache.default_folder())
    found: dict[str, Pvm] = {}
    broken: list[Unusable] = []
    for root in _roots():
        pvmd = root / "lib" / "pvmd"
        if not os.access(pvmd, os.X_OK):
            continue
        try:
            pvm = _look_at(root, pvmd, compiler, probes)
        except CompileFailed as error:
            broken.append(Unusable(pvmd, str(error)))
            continue
        if isinstance(pvm, str):
            broken.append(Unusable(pvmd, pvm))
            continue
        pvm = replace(pvm, id=unique_id(pvm.id, found))
        found[pvm.id] = pvm
    return tuple(found.values()), tuple(broken)


def _roots() -> Iterator[Path]:
    asked = os.environ.get("PVM_ROOT")
    seen: set[Path] = set()
    for name in (*([asked] if asked else []), *_ROOTS):
        try:
            root = Path(name).expanduser().absolute()
        except RuntimeError:  # of a user without a home
            continue
        if root.resolve() not in seen:
            seen.add(root.resolve())
            yield root


def _look_at(root: Path, pvmd: Path, compiler: tuple[str, ...], probes: Probes) -> Pvm | str:
    """What belongs to a daemon, or what is missing. Raises CompileFailed."""
    header = root / "include" / "pvm3.h"
    flags = (f"-I{header.parent}",) if header.is_file() else ()
    version = _version(compiler, flags, probes)
    if not version:
        return "its header pvm3.h is not here (Debian and Ubuntu have it in pvm-dev)"
    library = next((path for name in _LIBRARIES for path in sorted(root.glob(f"lib/*/{name}"))), None)
    if library is not None:
        return Pvm(f"pvm@{version}", version, pvmd, flags, (str(library),))
    if not any("/" in ask([*compiler, f"-print-file-name={name}"], probes).strip() for name in _LIBRARIES):
        return "its library libpvm3 is not here (Debian and Ubuntu have it in pvm-dev)"
    return Pvm(f"pvm@{version}", version, pvmd, flags, ("-lpvm3",))


def _version(compiler: tuple[str, ...], flags: tuple[str, ...], probes: Probes) -> str:
    """What pvm3.h says; empty where the compiler finds none."""
    key = ["pvm", *compiler, *flags]
    answer = probes.get(key)
    if answer is None:
        try:
            said = ask([*compiler, *flags, "-E", "-dD", "-include", "pvm3.h", "-x", "c", os.devnull], probes)
        except CompileFailed:
            return ""
        version = re.search(r'^#define\s+PVM_VER\s+"([^"]+)"', said, re.MULTILINE)
        header = re.search(r'^# \d+ "([^"]*/pvm3\.h)"', said, re.MULTILINE)
        answer = {"version": version[1] if version else ""}
        probes.put(key, answer, [header[1]] if header else [])
    return str(answer["version"])
