"""Files of shared memory that killed jobs leave behind are removed; anybody else's are not."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hockney.worker import leftovers
from hockney.worker.build import build_worker
from hockney.worker.errors import WorkerDied
from hockney.worker.launch import Job, launch
from hockney.worker.mpi import Mpi, find_mpis
from hockney.worker.processes import MARK, find_members
from hockney.worker.session import WorkerSession

SHM = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not os.access(SHM, os.W_OK), reason="there is no /dev/shm here")


@pytest.mark.parametrize("mpi", find_mpis(), ids=lambda mpi: mpi.id)
@pytest.mark.parametrize("victims", [1, 2])
def test_a_killed_job_leaves_no_shared_memory(mpi: Mpi, victims: int) -> None:
    with WorkerSession(launch(Job(build_worker(mpi.recipe), "mpi", 2, oversubscribed=True), mpi)) as session:
        pids = [rank.pid for rank in session.hello().ranks]
        files = leftovers.used_by(pids)
        assert all(path.exists() for path in files)
        assert files or takes_names_away(mpi)
        for pid in pids[:victims]:
            with contextlib.suppress(ProcessLookupError):  # its launcher was quicker
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            session.measure("pingpong", bytes=8, batch=10**9)
        assert not [path for path in files if path.exists()]


def test_what_somebody_has_mapped_stays() -> None:
    ours, other = (SHM / f"{name}_test_{os.getpid()}" for name in ("mpich_shm", "somebody"))
    try:
        for path in (ours, other):
            path.write_bytes(bytes(mmap.PAGESIZE))
        with ours.open("r+b") as one, other.open("r+b") as two, mmap.mmap(one.fileno(), 0), mmap.mmap(two.fileno(), 0):
            assert leftovers.used_by([os.getpid()]) == {ours}
            leftovers.remove({ours})
            assert ours.exists()
        leftovers.remove({ours})
        assert not ours.exists()
        leftovers.remove({ours})
        assert other.exists()
    finally:
        for path in (ours, other):
            path.unlink(missing_ok=True)


def test_what_goes_away_or_cannot_be_removed_keeps_nobody_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, folder, other = (SHM / f"mpich_shm_{name}_{os.getpid()}" for name in ("quick", "folder", "other"))
    stat = Path.stat

    def seen_once(self: Path, **more: bool) -> os.stat_result:
        found = stat(self, **more)
        if self == quick:
            self.unlink()
        return found

    try:
        quick.touch()
        folder.mkdir()
        other.touch()
        with monkeypatch.context() as patched:
            patched.setattr(Path, "stat", seen_once)
            leftovers.remove({quick})
        leftovers.remove({folder, other})
        assert [path.exists() for path in (quick, folder, other)] == [False, True, False]
    finally:
        quick.unlink(missing_ok=True)
        other.unlink(missing_ok=True)
        folder.rmdir()


# ---- records of jobs whose hockney was killed ------------------------------------------------------------------------


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "hockney" / "jobs"


def takes_names_away(mpi: Mpi) -> bool:
    """The MPICH of a distribution takes its files' names away at once, from 4 on and where it uses UCX."""
    return mpi.kind == "mpich" and not mpi.is_wheel


def hockney(*arguments: str, store: Path) -> list[str]:
    return [sys.executable, "-m", "hockney", "run", "pingpong", "--bytes", "8", *arguments, "--store", str(store)]


def wait_for(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.parametrize("mpi", find_mpis(), ids=lambda mpi: mpi.id)
def test_what_a_killed_hockney_leaves_behind_the_next_run_removes(mpi: Mpi, records: Path, tmp_path: Path) -> None:
    endless = ("-t", mpi.id, "--time", "60s", "--precision", "0.0001%", "--launches", "1")
    run = subprocess.Popen(hockney(*endless, store=tmp_path / "r.db"), stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    wait_for(lambda: "first figure" in run.stderr.readline())  # type: ignore[union-attr]
    noted = [json.loads(path.read_text()) for path in records.glob("*.json")]
    assert noted or takes_names_away(mpi)
    if mpi.is_wheel:
        names = " ".join(name for one in noted for name in one["files"])
        assert "/dev/shm/mpich_shm_" in names
        assert "hydra_hwloc_xmlfile_" in names
    files = [Path(name) for one in noted for name in one["files"]]
    assert all(path.exists() for path in files)
    stranger = SHM / f"mpich_shm_stranger_{os.getpid()}"
    stranger.touch()
    launchers = psutil.Process(run.pid).children(recursive=True)
    try:
        for process in [psutil.Process(run.pid), *launchers]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        run.communicate()
        wait_for(lambda: not any(find_members([], one["mark"]) for one in noted))
        assert not mpi.is_wheel or [path for path in files if path.exists()]
        subprocess.run(hockney("-t", "shm", "--time", "10ms", store=tmp_path / "r.db"), check=True, capture_output=True)
        assert not [path for path in files if path.exists()]
        assert not list(records.glob("*.json"))
        assert stranger.exists()
    finally:
        stranger.unlink()


def test_a_job_that_ends_in_peace_leaves_no_record(records: Path) -> None:
    for mpi in find_mpis():
        with WorkerSession(launch(Job(build_worker(mpi.recipe), "mpi", 2, oversubscribed=True), mpi)) as session:
            session.hello()
            files = [path for one in records.glob("*.json") for path in recorded(one)]
            assert files or takes_names_away(mpi)
            leftovers.remove_recorded()  # as another run does meanwhile
            assert len(list(records.glob("*.json"))) == bool(files)
            assert all(path.exists() for path in files)
        assert not list(records.glob("*.json"))


def recorded(path: Path) -> list[Path]:
    return [Path(name) for name in json.loads(path.read_text())["files"]]


@pytest.mark.parametrize("change", ["place", "mark", "inode", "device", "damaged"])
def test_of_a_record_only_what_is_surely_left_behind_is_removed(
    records: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = SHM / f"mpich_shm_left_{os.getpid()}"
    left.touch()
    try:
        path = leftovers.record("a mark", [left])
        assert path is not None
        noted = json.loads(path.read_text())
        if change == "place":
            noted["place"][1] = "pid:[1]"  # another container
        elif change == "mark":
            noted["mark"] = "living"
            alive = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: "living"})
        elif change == "inode":
            noted["files"][str(left)][1] += 1  # another job has made it anew
        elif change == "device":
            noted["files"][str(left)][0] += 1  # another /dev/shm is mounted there
        path.write_text("{" if change == "damaged" else json.dumps(noted))
        leftovers.remove_recorded()
        assert left.exists()
        if change == "mark":
            alive.kill()
            alive.wait()
            leftovers.remove_recorded()
            assert not left.exists()
    finally:
        left.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("mark", '["x"]'),
        ("mark", "5"),
        ("files", r'{"/dev/shm/mpich_shm_\u0000": [1, 2]}'),
        ("files", r'{"/dev/shm/mpich_shm_\ud800": [1, 2]}'),
        ("files", "[[5, 6]]"),
        ("files", "7"),
        ("files", "[" * 100_000),
    ],
)
def test_a_damaged_record_goes_and_keeps_nobody_from_the_others(records: Path, key: str, text: str) -> None:
    left = SHM / f"mpich_shm_left_{os.getpid()}"
    left.touch()
    try:
        good = leftovers.record("b", [left])
        assert good is not None
        noted = json.loads(good.read_text())
        parts = {name: json.dumps(value) for name, value in noted.items()} | {key: text}
        bad = records / "a.json"
        bad.write_text("{" + ",".join(f'"{name}": {value}' for name, value in parts.items()) + "}")
        leftovers.remove_recorded()
        assert not bad.exists()
        assert not good.exists()
        assert not left.exists()
    finally:
        left.unlink(missing_ok=True)


def test_the_folder_of_a_job_stays_while_its_launcher_lives(tmp_path: Path) -> None:
    """Between two files that it opens nobody has one in it open."""
    launcher = subprocess.Popen(["sleep", "60"])
    folder = tmp_path / "ompi.host.0" / f"pid.{launcher.pid}"
    (folder / "0").mkdir(parents=True)
    try:
        leftovers.remove({folder})
        assert folder.exists()
        launcher.kill()
        os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)  # a zombie writes nothing more
        leftovers.remove({folder})
        assert not folder.exists()
    finally:
        launcher.kill()
        launcher.wait()


def test_a_record_removes_no_file_that_no_library_makes(records: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.touch()
    assert leftovers.record("a mark", [mine]) is not None
    leftovers.remove_recorded()
    assert mine.exists()
    assert not list(records.glob("*.json"))
