"""Files that a killed job leaves behind: a library removes its own only when it ends in peace.

A file counts as a job's if one of its processes had it mapped or open, and its name is one that libraries give to files
of a single job. They are removed when the job is ended, and nobody uses them any more. They are also recorded in the
user's state folder: where hockney itself was killed, the next run removes what is recorded once all of the job is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from hockney.errors import HockneyError
from hockney.worker.cache import user_folder
from hockney.worker.processes import living_marks

_FORGOTTEN_AFTER_S = 30 * 86400  # records of machines and containers that never come back
# Shared memory of MPICH and Open MPI 4 and 5; what Hydra tells of the machine; Open MPI's session folder.
_SESSION = r"(?P<folder>/.+/ompi\.[^/]+/pid\.(?P<launcher>[0-9]+))"
_NAME = re.compile(
    rf"(?:/dev/shm/(?:mpich_shm_|vader_segment\.|sm_segment\.)[^/ ]+|/.+/hydra_hwloc_xmlfile_\w+|{_SESSION}(?:/.*)?)"
)


def used_by(pids: Iterable[int]) -> frozenset[Path]:
    """The files of that kind that processes of this host use now; those that can't be asked have none."""
    found = (_NAME.fullmatch(name) for pid in pids for name in _names(pid))
    return frozenset(Path(match["folder"] or match[0]) for match in found if match)


def used_by_job(ranks: Iterable[int], launchers: Iterable[int]) -> frozenset[Path]:
    """As used_by, of a job's ranks on this host, its launchers, and the daemons in between."""
    ranks = list(ranks)
    return used_by({*ranks, *launchers, *filter(None, map(_parent, ranks))})


def remove(files: Iterable[Path]) -> None:
    """Remove those that are still there, are this user's, and nobody uses. What can't be removed stays."""
    left = {path for path in files if _identity(path) is not None}
    if left:
        in_use = used_by(int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
        for path in left - in_use:
            with contextlib.suppress(OSError):  # its library may be quicker
                match = _NAME.fullmatch(str(path))
                if match is None or match["folder"] is None:
                    path.unlink()
                elif not _lives(int(match["launcher"])):
                    shutil.rmtree(path)


def _identity(path: Path) -> list[int] | None:
    """The device and the number of a file that is there and this user's."""
    try:
        facts = path.lstat()
    except OSError:
        return None
    return [facts.st_dev, facts.st_ino] if facts.st_uid == os.geteuid() else None


def _names(pid: int) -> Iterator[str]:
    """The names of the files that a process has mapped or open."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            *_, name = line.split(maxsplit=5)
            if name.startswith("/"):
                yield name
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                yield str(descriptor.readlink())


def _parent(pid: int) -> int | None:
    facts = _stat(pid)
    return int(facts[1]) if facts else None


def _lives(pid: int) -> bool:
    facts = _stat(pid)
    return facts is not None and facts[0] not in "ZX"  # neither a zombie nor dead


def _stat(pid: int) -> list[str] | None:
    """What the kernel tells of a process after its name: its state, its parent, and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


# ---- records --------------------------------------------------------------------------------------------------------


def record(mark: str, files: Iterable[Path]) -> Path | None:
    """Note what the job with this mark may leave; gives the record, which goes when the job has ended in peace.

    None where there is nothing to note, or where it can't be.
    """
    found = {str(path): identity for path in files if (identity := _identity(path)) is not None}
    place = _this_place()
    if not found or place is None:
        return None
    try:
        path = _folder() / f"{mark}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".tmp")  # nobody may take a record for damaged that is being written
        half.write_text(json.dumps({"place": place, "mark": mark, "files": found}))
        half.replace(path)
    except (OSError, HockneyError):
        return None
    return path


def remove_recorded() -> None:
    """Remove what jobs have left of which nothing runs any more; only of jobs in this PID namespace of this boot."""
    with contextlib.suppress(OSError, HockneyError):
        records = sorted(_folder().glob("*.json"))
        living = living_marks() if records else frozenset()
        for path in records:
            with contextlib.suppress(OSError):
                try:
                    is_kept = _is_kept(path, living)
                except (ValueError, KeyError, TypeError, RecursionError):  # damaged, in whatever way
                    is_kept = False
                if not is_kept:
                    path.unlink()


def _is_kept(path: Path, living: frozenset[str]) -> bool:
    """Whether a record may be of use later; if not, what its job has left is removed."""
    noted = json.loads(path.read_text())
    place, mark, files = noted["place"], noted["mark"], dict(noted["files"])
    if not isinstance(mark, str):
        return False
    if place != _this_place():
        return path.stat().st_mtime > time.time() - _FORGOTTEN_AFTER_S
    if mark in living:
        return True
    remove([Path(name) for name, found in files.items() if _NAME.fullmatch(name) and _identity(Path(name)) == found])
    return False


def _folder() -> Path:
    return user_folder("state") / "jobs"


def _this_place() -> list[str] | None:
    """Which processes can be seen from here: a home folder may be shared by machines and containers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return [boot, str(Path("/proc/self/ns/pid").readlink())]
    except OSError:
        return None
