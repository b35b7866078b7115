"""What the families have in common that are found by a compiler wrapper.

Where it is looked for, what it names, and what the launcher beside it says it is.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from hockney.worker.cache import Probes

_ASK_LIMIT_S = 20
# A launcher tells its kind in the first lines of --version.
_LAUNCHER_MARKS = (
    ("Intel(R) MPI", "intel"),
    ("HYDRA", "mpich"),
    ("Open MPI", "openmpi"),
    ("OpenRTE", "openmpi"),
    ("PRRTE", "openmpi"),
)


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
