"""Files that a killed job leaves behind: a library removes its own only when it ends in peace.

A file counts as a job's if one of its processes had it mapped, and its name is one that libraries give to the shared
memory of a single job. They are removed when the job is ended and nobody uses them any more.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

# MPICH; Open MPI 4 and 5.
_NAME = re.compile(r"/dev/shm/(?:mpich_shm_|vader_segment\.|sm_segment\.)[^/ ]+$", re.MULTILINE)


def used_by(pids: Iterable[int]) -> frozenset[Path]:
    """The files of that kind that processes of this host use now; those that can't be asked have none."""
    names: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            names.update(_NAME.findall(Path(f"/proc/{pid}/maps").read_text(errors="replace")))
    return frozenset(map(Path, names))


def remove(files: Iterable[Path]) -> None:
    """Remove those that are still there, are this user's, and nobody uses. What can't be removed stays."""
    left = {path for path in files if path.exists()}
    if left:
        left -= used_by(int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    for path in left:
        with contextlib.suppress(OSError):  # its library may be quicker
            if path.lstat().st_uid == os.geteuid():
                path.unlink()
