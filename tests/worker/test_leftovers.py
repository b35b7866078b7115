"""Files of shared memory that killed jobs leave behind are removed; anybody else's are not."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.worker.test_session import EVERY_MPI

from hockney.worker import processes
from hockney.worker.build import SOURCES, build_worker
from hockney.worker.errors import WorkerDied
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

SHM = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not os.access(SHM, os.W_OK), reason="there is no /dev/shm here")


def takes_names_away(mpi: Library) -> bool:
    """An MPICH from 4 on that uses UCX removes its files' names immediately."""
    return mpi.kind == "mpich" and not mpi.is_wheel


@EVERY_MPI
@pytest.mark.parametrize("victims", [1, 2])
def test_a_killed_job_leaves_no_shared_memory(mpi: Library, victims: int) -> None:
    with WorkerSession(launch(Job(build_worker(mpi.recipe), "mpi", 2, oversubscribed=True), mpi)) as session:
        pids = [rank.pid for rank in session.hello().ranks]
        # A library may still be removing names that it needed for its start only.
        files, end_s = processes.shared_memory_of(pids), time.monotonic() + 60
        while not all(path.exists() for path in files) and time.monotonic() < end_s:
            files = processes.shared_memory_of(pids)
        assert files or takes_names_away(mpi)
        for pid in pids[:victims]:
            with contextlib.suppress(ProcessLookupError):  # its launcher was quicker
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            session.measure("pingpong", bytes=8, batch=10**9)
        assert not [path for path in files if path.exists()]


@EVERY_MPI
def test_a_job_that_is_killed_before_it_answers_leaves_no_shared_memory(mpi: Library) -> None:
    session = WorkerSession(launch(Job(build_worker(mpi.recipe), "mpi", 2, oversubscribed=True), mpi))
    session.start()
    files, end_s = frozenset[Path](), time.monotonic() + 60
    while not files and not takes_names_away(mpi) and time.monotonic() < end_s:
        files = session.channel.shared_memory()
    assert session.kill()
    assert files or takes_names_away(mpi)
    assert not [path for path in files if path.exists()]


def test_mapped_files_stay() -> None:
    ours, other = (SHM / f"{name}_test_{os.getpid()}" for name in ("mpich_shm", "somebody"))
    try:
        for path in (ours, other):
            path.write_bytes(bytes(mmap.PAGESIZE))
        with ours.open("r+b") as one, other.open("r+b") as two, mmap.mmap(one.fileno(), 0), mmap.mmap(two.fileno(), 0):
            assert processes.shared_memory_of([os.getpid()]) == {ours}
            processes.remove_unused({ours})
            assert ours.exists()
        processes.remove_unused({ours})
        assert not ours.exists()
        processes.remove_unused({ours})
        assert other.exists()
    finally:
        for path in (ours, other):
            path.unlink(missing_ok=True)


def test_a_rank_removes_only_names_that_libraries_give(tmp_path: Path) -> None:
    """`12-mine` may be an application's, which a rank maps through a library that it was linked with."""
    pid = os.getpid()
    ours, others = (f"mpich_shm_own_{pid}", f"{pid}:0:own"), (f"{pid}-mine", f"{pid}:mine", f"{pid}:0")
    maps = "".join(f'map("{SHM}/{name}");' for name in (*ours, *others))
    (tmp_path / "remover.c").write_text(
        '#include <fcntl.h>\n#include <sys/mman.h>\n#include <unistd.h>\n#include "watch.h"\n'
        "static void map(const char *path) { int fd = open(path, O_RDWR); mmap(0, 1, PROT_READ, MAP_SHARED, fd, 0); }\n"
        f"int main(void) {{ {maps} hk_remove_shared_memory(); return 0; }}\n"
    )
    sources = [tmp_path / "remover.c", *(SOURCES / f"{name}.c" for name in ("watch", "io", "status"))]
    flags = ["-std=c17", "-D_GNU_SOURCE", "-pthread", f"-I{SOURCES}", "-o", str(tmp_path / "remover")]
    subprocess.run(["cc", *flags, *sources], check=True)
    try:
        for name in (*ours, *others):
            (SHM / name).write_bytes(b"1")
        subprocess.run([tmp_path / "remover"], check=True)
        assert [name for name in (*ours, *others) if (SHM / name).exists()] == [*others]
    finally:
        for name in (*ours, *others):
            (SHM / name).unlink(missing_ok=True)


def test_a_file_that_cannot_be_removed_does_not_stop_the_others() -> None:
    folder, other = (SHM / f"mpich_shm_{name}_{os.getpid()}" for name in ("folder", "other"))
    folder.mkdir()
    other.touch()
    try:
        processes.remove_unused({SHM / "mpich_shm_gone", folder, other})
        assert (folder.exists(), other.exists()) == (True, False)
    finally:
        other.unlink(missing_ok=True)
        folder.rmdir()
