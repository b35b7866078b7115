"""Finds PVM on this machine: its header, its library, and the daemon without which no program of it runs.

Distributions put the first two where every compiler looks; who builds PVM has all three in one folder, PVM_ROOT.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hockney.worker import cache
from hockney.worker.build import Recipe
from hockney.worker.cache import Probes
from hockney.worker.compiler import ask, find_c_compiler
from hockney.worker.errors import CompileFailed, NoCompiler
from hockney.worker.libraries import Library, Unusable, unique_id

_ROOTS = ("/usr/lib/pvm3", "/usr/share/pvm3", "/usr/local/pvm3", "/usr/local/share/pvm3", "/opt/pvm3", "~/pvm3")
_LIBRARIES = ("libpvm3.so", "libpvm3.a")


def find_pvms() -> tuple[tuple[Library, ...], tuple[Unusable, ...]]:
    """Every PVM of this machine, once each, and the daemons that no program can be built for, with the reason.

    Looked for are the folder in PVM_ROOT and the usual ones. Raises nothing.
    """
    try:
        compiler = find_c_compiler()
    except NoCompiler:
        return (), ()
    probes = Probes(cache.default_folder())
    libraries: dict[str, Library] = {}
    broken: list[Unusable] = []
    for root in _roots():
        pvmd = root / "lib" / "pvmd"
        if not os.access(pvmd, os.X_OK):
            continue
        pvm = _look_at(root, pvmd, compiler, probes)
        if pvm is None:
            lack = "its header pvm3.h or its library libpvm3 is not here (Debian and Ubuntu have them in pvm-dev)"
            broken.append(Unusable(pvmd, lack))
        else:
            its_id = unique_id(pvm.id, libraries)
            libraries[its_id] = replace(pvm, id=its_id)
    return tuple(libraries.values()), tuple(broken)


def _roots() -> Iterator[Path]:
    """Each folder once, by the name that comes first."""
    names = filter(None, (os.environ.get("PVM_ROOT"), *_ROOTS))
    roots = [Path(os.path.expanduser(name)).absolute() for name in names]  # noqa: PTH111 - without a home it stays ~
    by_place: dict[Path, Path] = {}
    for root in roots:
        by_place.setdefault(root.resolve(), root)
    yield from by_place.values()


def _look_at(root: Path, pvmd: Path, compiler: tuple[str, ...], probes: Probes) -> Library | None:
    """What belongs to a daemon; None where something is missing."""
    header = root / "include" / "pvm3.h"
    flags = (f"-I{header.parent}",) if header.is_file() else ()
    version = _version(compiler, flags, probes)
    library = next((str(path) for name in _LIBRARIES for path in sorted(root.glob(f"lib/*/{name}"))), None)
    if library is None and version and any("/" in _where(compiler, name) for name in _LIBRARIES):
        library = "-lpvm3"
    if not version or library is None:
        return None
    recipe = Recipe(family="pvm", flags=flags, libraries=(library,))
    return Library(f"pvm@{version}", f"PVM {version}", "pvm", pvmd, recipe)


def _where(compiler: tuple[str, ...], library: str) -> str:
    """The path of a library that the compiler finds by itself, else its name alone."""
    try:
        return ask([*compiler, f"-print-file-name={library}"])
    except CompileFailed:
        return ""


def _version(compiler: tuple[str, ...], flags: tuple[str, ...], probes: Probes) -> str:
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
