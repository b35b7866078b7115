"""PVM: fake installations, and real jobs, with any fault of their daemon."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.matrix import matrix
from tests.shared import Fakes, script

from hockney.worker import libraries as module
from hockney.worker.build import build_worker
from hockney.worker.catalogue import describe
from hockney.worker.errors import LaunchFailed, WorkerDied
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import find_pvms
from hockney.worker.session import WorkerSession

FOUND, _ = find_pvms()
WAYS = ["psend", "inplace", "raw", "default"]
TRANSPORTS = ["pvm", *(f"pvm:{way}{route}" for way in WAYS for route in ("", "-daemon"))]

needs_pvm = pytest.mark.skipif(not FOUND, reason="no PVM here: apt-get install pvm pvm-dev")

# ---- finding it -----------------------------------------------------------------------------------------------------


def install(root: Path, version: str = "3.4.6", *, header: bool = True) -> Path:
    """A fake PVM in one folder."""
    script(root / "lib" / "pvmd", "exit 0")
    if header:
        (root / "include").mkdir()
        (root / "include" / "pvm3.h").write_text(f'#define PVM_VER "{version}"\n')
    (root / "lib" / "ARCH").mkdir()
    (root / "lib" / "ARCH" / "libpvm3.a").touch()
    return root


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only libraries that a test makes are installed; the real compiler's default folders are hidden, too."""
    compiler = shutil.which("cc")
    assert compiler
    cc = script(
        tmp_path / "cc",
        f'case "$*" in *-print-file-name=*) echo "${{1#*=}}";; *) exec {compiler} -nostdinc "$@";; esac',
    )
    monkeypatch.setenv("CC", str(cc))
    monkeypatch.delenv("PVM_ROOT", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_PVM_ROOTS", (str(tmp_path / "usual"),))
    return tmp_path


def test_no_pvm_at_all(only: Path) -> None:
    assert find_pvms() == ((), ())


def test_one_in_a_usual_place(only: Path) -> None:
    root = install(only / "usual")
    (pvm,), unusable = find_pvms()
    assert unusable == ()
    assert (pvm.id, pvm.name, pvm.kind, pvm.program) == ("pvm@3.4.6", "PVM 3.4.6", "pvm", root / "lib" / "pvmd")
    assert pvm.recipe.family == "pvm"
    assert pvm.recipe.flags == (f"-I{root}/include",)
    assert pvm.recipe.libraries == (f"{root}/lib/ARCH/libpvm3.a",)


def test_the_one_that_is_asked_for_comes_first(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(only / "usual", "3.4.6")
    monkeypatch.setenv("PVM_ROOT", str(install(only / "mine", "3.4.5")))
    assert [pvm.id for pvm in find_pvms()[0]] == ["pvm@3.4.5", "pvm@3.4.6"]


def test_two_builds_of_one_version_have_two_names(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(only / "usual")
    monkeypatch.setenv("PVM_ROOT", str(install(only / "mine")))
    assert [pvm.id for pvm in find_pvms()[0]] == ["pvm@3.4.6", "pvm@3.4.6~2"]


def test_an_incomplete_installation_is_reported(only: Path) -> None:
    root = install(only / "usual", header=False)
    usable, (unusable,) = find_pvms()
    assert usable == ()
    assert unusable.name == str(root / "lib" / "pvmd")
    assert "its header pvm3.h is not here" in unusable.why


def test_an_upgrade_is_noticed(only: Path) -> None:
    root = install(only / "usual")
    assert find_pvms()[0][0].id == "pvm@3.4.6"
    (root / "include" / "pvm3.h").write_text('#define PVM_VER "3.4.10"\n')
    assert find_pvms()[0][0].id == "pvm@3.4.10"


# ---- real jobs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where PVM keeps its files in a test, so that a daemon of the user's is not met. Nothing may stay in it."""
    folder = Path(tempfile.mkdtemp(prefix="hk", dir="/tmp"))  # a short name: it becomes part of a socket's
    monkeypatch.setenv("PVM_TMP", str(folder))
    yield folder
    shutil.rmtree(folder)


def works_in(process: psutil.Process, room: Path) -> bool:
    try:
        inside = process.environ().get("PVM_TMP", "").startswith(str(room))
        return inside and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


def members(room: Path) -> list[psutil.Process]:
    """All living processes that work in the room, except the test itself."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and works_in(process, room)]


def daemons(room: Path) -> list[psutil.Process]:
    return [process for process in members(room) if process.name() == "pvmd"]


def assert_nothing_stays(room: Path) -> None:
    deadline_s = time.monotonic() + 60
    while (members(room) or any(room.iterdir())) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert members(room) == []
    assert list(room.iterdir()) == []


def job(transport: str = "pvm", ranks: int = 2, *, pvmd: Path | None = None) -> WorkerSession:
    """Ranks that share CPUs, so that no point takes its machine state."""
    pvm = replace(FOUND[0], program=pvmd or FOUND[0].program)
    return WorkerSession(launch(Job(build_worker(pvm.recipe), transport, ranks, oversubscribed=True), pvm))


@needs_pvm
def test_all_variants_are_there() -> None:
    rows = describe(build_worker(FOUND[0].recipe))["transports"]
    assert [row["name"] for row in rows] == TRANSPORTS


@needs_pvm
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("ranks", matrix([2, 3], short=[3]))
def test_every_variant_carries_every_size(room: Path, transport: str, ranks: int) -> None:
    with job(transport, ranks) as session:
        hello = session.hello()
        assert hello.library.startswith("PVM 3.")
        assert ("daemon" in hello.library) is transport.endswith("-daemon")
        assert session.measure("pingpong", bytes=1_000_000, samples=2).verified
        for size in (0, 8, 4081, 70_001):
            for pattern, options in (
                ("pingpong", {}),
                ("oneway", {"window": "16"}),
                ("oneway", {"until": "sent"}),
                ("twoway", {"window": "3"}),
                ("alltoall", {}),
                ("funnel", {}),
                ("multicast", {}),
                ("ring", {}),
                ("robpull", {"read": "parallel", "buffers": "2"}),
            ):
                answer = session.measure(pattern, bytes=size, samples=2, batch=2, options=options.items())
                assert answer.verified, (pattern, size)
        for algorithm in ("auto", "rabenseifner"):
            assert session.measure("allreduce", bytes=70_000, samples=2, options=[("algorithm", algorithm)]).verified
        answer = session.measure("barrier", batch=5)
        assert answer.algorithm == "dissemination"
        assert all(ns > 0 for row in answer.elapsed_ns for ns in row)
    assert_nothing_stays(room)


@needs_pvm
def test_a_daemon_that_runs_is_used_and_left_alone(room: Path) -> None:
    launched = launch(Job(Path(), "pvm", 2), FOUND[0])
    environment = {**os.environ, **{name: text for name, text in launched.environment.items() if text}}
    with subprocess.Popen(
        [FOUND[0].program], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as daemon:
        try:
            assert daemon.stdout
            assert daemon.stdout.readline().startswith(str(room).encode())
            files = sorted(room.iterdir())
            for transport in ("pvm:raw", "pvm:raw-daemon"):
                with job(transport) as session:
                    session.hello()
                    assert [process.pid for process in daemons(room)] == [daemon.pid]
                    assert session.measure("pingpong", bytes=8).verified
            assert daemon.poll() is None
            assert sorted(room.iterdir()) == files
        finally:
            daemon.terminate()


@needs_pvm
def test_the_file_of_a_killed_daemon_is_ignored(room: Path) -> None:
    file = room / f"pvmd.{os.getuid()}"
    file.write_text(f"{room}/pvmtmp000001.0\n")
    with job() as session:
        session.hello()
        assert session.measure("pingpong", bytes=8).verified
    assert file.exists()
    file.unlink()
    assert_nothing_stays(room)


@needs_pvm
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "of another user"])
def test_what_others_leave_in_the_place_of_the_daemons_file_is_not_read(room: Path, kind: str) -> None:
    """Everyone knows its name, and may write in its folder. A pipe would be waited for."""
    file, listed = room / f"pvmd.{os.getuid()}", room / "listed"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        listed.write_text(f"{room}/pvmtmp000001.0\n")
        if kind == "link":
            file.symlink_to(listed)
        elif os.getuid() == 0:
            os.chown(listed.rename(file), 12345, -1)
    before = sorted(room.iterdir())
    with job() as session:
        session.hello()
        assert session.measure("pingpong", bytes=8).verified
    assert sorted(room.iterdir()) == before
    for path in before:
        path.rmdir() if path.is_dir() else path.unlink()
    assert_nothing_stays(room)


@needs_pvm
@pytest.mark.parametrize("transport", ["pvm", "pvm:default-daemon"])
def test_a_daemon_that_dies_ends_the_job_with_a_sentence(room: Path, transport: str) -> None:
    with job(transport) as session:
        session.hello()
        (daemon,) = daemons(room)
        threading.Timer(0.3, daemon.kill).start()
        with pytest.raises(WorkerDied, match=r"the PVM daemon (was killed by signal 9|is gone)"):
            session.measure("pingpong", bytes=8, batch=1_000_000, samples=5, timeout_s=60)
    assert_nothing_stays(room)


@needs_pvm
def test_a_daemon_that_does_not_start(room: Path, tmp_path: Path, fake: Fakes) -> None:
    broken = fake(tmp_path / "p" / "lib" / "pvmd", "echo 'libpvm: no such luck'; exit 1")
    session = job(pvmd=broken)
    session.start()
    with pytest.raises(LaunchFailed, match="the daemon did not start: libpvm: no such luck"):
        session.hello()
    assert_nothing_stays(room)


@needs_pvm
def test_a_rank_that_is_killed_is_named(room: Path) -> None:
    with job(ranks=3) as session:
        victim = session.hello().ranks[2].pid
        threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
        with pytest.raises(WorkerDied, match="rank 2 was killed by SIGKILL"):
            session.measure("pingpong", bytes=8, batch=1_000_000, samples=5, timeout_s=60)
    assert_nothing_stays(room)


@needs_pvm
def test_jobs_side_by_side_do_not_know_each_other(room: Path) -> None:
    with job("pvm:raw-daemon") as first:
        first.hello()
        with job("pvm") as second:
            second.hello()
            assert len(daemons(room)) == 2
            assert first.measure("pingpong", bytes=8).verified
            assert second.measure("pingpong", bytes=8).verified
        assert len(daemons(room)) == 1
        assert first.measure("oneway", bytes=70_000).verified
    assert_nothing_stays(room)


@needs_pvm
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the death signal of Linux")
def test_a_first_process_that_is_killed_takes_all_along(room: Path) -> None:
    session = job(ranks=3)
    session.start()
    try:
        session.hello()
        os.kill(session.channel.processes[0].pid, signal.SIGKILL)
        assert_nothing_stays(room)
    finally:
        session.kill()


@needs_pvm
@pytest.mark.parametrize("measuring", [False, True])
def test_a_killed_control_plane_leaves_nothing(room: Path, measuring: bool) -> None:
    work = "session.measure('pingpong', bytes=8, batch=10**7, samples=5)" if measuring else "time.sleep(60)"
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import test_pvm\n"
        "session = test_pvm.job(); session.start(); session.hello(); print('up', flush=True)\n" + work
    )
    with subprocess.Popen([sys.executable, "-c", code, str(Path(__file__).parent)], stdout=subprocess.PIPE) as control:
        try:
            assert control.stdout
            assert control.stdout.readline() == b"up\n"
            time.sleep(0.2)
            assert len(daemons(room)) == 1
        finally:
            control.kill()
    assert_nothing_stays(room)
