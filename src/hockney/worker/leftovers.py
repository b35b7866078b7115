"""Files of shared memory that a killed job leaves behind: a library removes its own only when it ends in peace.

A file counts as a job's if a rank of it had it mapped and its name is one that libraries give to files of a single job.
It is removed when no process of any job has it mapped any more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_NAMES = tuple(
    f"/dev/shm/{name}" for name in ("mpich_shm_", "vader_segment.", "sm_segment.")
)  # MPICH, Open MPI 4 and 5


def mapped_by(pids: Iterable[int]) -> frozenset[Path]:
    """The files of that kind that processes of this host have mapped now; those that can't be asked have none."""
    return frozenset(Path(name) for pid in pids for name in _maps(pid) if name.startswith(_NAMES))


def remove(files: Iterable[Path]) -> None:
    """Remove those that are still there, are this user's, and nobody has mapped. What can't be removed stays."""
    left = {path for path in files if _is_own(path)}
    if left:
        in_use = mapped_by(int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
        for path in left - in_use:
            with contextlib.suppress(OSError):  # its library may be quicker
                path.unlink()


def _is_own(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _maps(pid: int) -> Iterator[str]:
    """The names of the files that a process has mapped."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            *_, name = line.split(maxsplit=5)
            if name.startswith("/"):
                yield name
