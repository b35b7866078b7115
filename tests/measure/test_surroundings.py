"""Runs in surroundings that limit them, made for real: a filter of system calls, namespaces, a control group."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.shared import finished, made_once
from tests.worker.test_session import MPIS

from hockney.machine.facts import facts
from hockney.machine.warned import fix_of
from hockney.model import PointStatus
from hockney.results.store import Store

HOCKNEY = (sys.executable, "-m", "hockney")
NO_LOOPBACK = f"the loopback interface is down; {fix_of('loopback')}"
_SOURCE = Path(__file__).with_name("deny.c")


@pytest.fixture(scope="module")
def deny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program that denies copies between processes; skips where the kernel has no such filters."""

    def build(folder: Path) -> None:
        subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-o", str(folder / "deny"), str(_SOURCE)], check=True)

    program = str(made_once(tmp_path_factory, "deny", build) / "deny")
    if finished([program, "true"]).returncode != 0:
        pytest.skip("this kernel has no filters of system calls")
    return program


def in_namespace(kind: str, first: str) -> tuple[str, ...]:
    """The words before a command that runs in a namespace of its own, after another command; skips without."""
    words = ("unshare", f"--{kind}", "sh", "-c", f'{first} && exec "$@"', "sh")
    if shutil.which("unshare") is None or finished([*words, "true"]).returncode != 0:
        pytest.skip(f"no {kind} namespace can be made here")
    return words


@dataclass(frozen=True)
class Seen:
    """What a run stored: libraries' lines and why its points failed, by transport; warnings by their kind."""

    libraries: dict[str, str]
    reasons: dict[str, str]
    warnings: dict[str, str]


def measure(before: Sequence[str], store: Path, transports: str, sizes: str = "8") -> Seen:
    """A short ping-pong in other surroundings."""
    argv = [*before, *HOCKNEY, "run", "pingpong", "-t", transports, "--bytes", sizes, "--time", "0.5s"]
    done = finished([*argv, "--launches", "1", "--store", str(store)], timeout_s=400)
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    with Store.open(store, readonly=True) as opened:
        run = opened.run(1)
        return Seen(
            {launch.transport: launch.library for launch in run.launches.values()},
            {row.point.transport: row.reason or "" for row in opened.points(1) if row.status is PointStatus.FAILED},
            {warning.kind: str(warning) for warning in run.warnings},
        )


def doctor(before: Sequence[str]) -> Any:
    return json.loads(finished([*before, *HOCKNEY, "doctor", "--json"], timeout_s=400, check=True).stdout)


# ---- copies between processes ----------------------------------------------------------------------------------------


def test_doctor_finds_that_copies_are_refused(deny: str) -> None:
    assert facts()["limits"]["cma"] is True
    seen = doctor([deny])
    assert seen["facts"]["limits"]["cma"] is False
    (warning,) = [one for one in seen["warnings"] if one["kind"] == "cma"]
    assert "refuses copies from process to process (CMA)" in warning["cause"]
    assert "--cap-add SYS_PTRACE" in warning["remedy"]


@pytest.mark.parametrize("library", MPIS, ids=lambda library: library.id)
def test_a_library_without_copies_says_so_in_its_line(library: Any, deny: str, tmp_path: Path) -> None:
    """Open MPI and MPICH 4 fall back; MPICH 5 fails, and its error stack is kept to its last line."""
    seen = measure([deny], tmp_path / "r.db", library.id, "8,64K")
    (line,) = seen.libraries.values()
    assert line.endswith(", CMA refused")
    assert ":cma" not in line
    assert "--cap-add SYS_PTRACE" in seen.warnings["cma"]
    for reason in seen.reasons.values():
        assert reason.endswith(f"process_vm_readv failed (errno 1); {fix_of('cma')}")


# ---- shared memory ---------------------------------------------------------------------------------------------------


def test_a_small_shared_memory_is_named_with_its_fix(tmp_path: Path) -> None:
    """Libraries go another way or die, each in its own words; hockney's own transports go on beside them."""
    small = in_namespace("mount", "mount -t tmpfs -o size=1m shm /dev/shm")
    seen = measure(small, tmp_path / "r.db", "mpi,shm")
    assert "/dev/shm has 1 MiB for 2 ranks" in seen.warnings["shm"]
    assert "--shm-size" in seen.warnings["shm"]
    assert "shm" in seen.libraries
    assert "shm" not in seen.reasons
    for reason in seen.reasons.values():
        assert reason.endswith(fix_of("shm"))


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_group() -> Iterator[tuple[str, ...]]:
    """The words before a command that has 200 MiB of memory; skips where no control group can be made."""
    tops = [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")]
    top = next(top for top in tops if top.exists() or top == tops[-1])
    group = top / f"hockney-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control group can be made here")
    try:
        names = ("memory.limit_in_bytes", "memory.max")
        files = [group / name for name in names if (group / name).exists()]
        if not files:
            pytest.skip("control groups do not limit memory here")
        files[0].write_text(str(200 << 20))
        yield ("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh")
    finally:
        group.rmdir()


def test_a_rank_that_a_memory_limit_killed_names_the_limit(small_group: tuple[str, ...], tmp_path: Path) -> None:
    seen = measure(small_group, tmp_path / "r.db", "shm", "64M")  # hockney needs more than a rank, but is not ended
    assert "limits memory to 200 MiB; this run needs" in seen.warnings["memory"]
    assert "was killed by SIGKILL: its cgroup's memory limit of 200 MiB was reached" in seen.reasons["shm"]
    assert seen.reasons["shm"].endswith(fix_of("memory"))


def test_a_rank_that_used_up_its_cpu_time_names_the_limit() -> None:
    ask = "from hockney.machine.limits import why_killed; print(why_killed(24, 0), why_killed(9, 0), why_killed(11, 0))"
    done = finished(["sh", "-c", 'ulimit -t 60; exec "$@"', "sh", sys.executable, "-c", ask], check=True)
    why = "processes here may use 60 s of CPU time each (ulimit -t)"
    assert done.stdout == f"{why} {why} \n"


# ---- networks --------------------------------------------------------------------------------------------------------


def test_a_loopback_that_is_down_is_one_caveat_before_all_others(tmp_path: Path) -> None:
    """Nothing that needs it is started; hockney's own transports through memory go on."""
    down = in_namespace("net", "true")
    wide = ["env", "COLUMNS=100", *HOCKNEY, "quick", "--time", "1s", "--store", str(tmp_path / "r.db")]
    done = finished([*down, *wide], timeout_s=400)
    said = " ".join(done.stdout.split())
    assert "Caveats ! 5 transports: " in said or not MPIS
    assert said.count("points skipped: the loopback interface is down; as root: ip link set lo up.") == 1
    assert (done.stdout + done.stderr).count("loopback interface") == 1
    assert "failed" not in done.stdout + done.stderr
    alone = finished([*down, *HOCKNEY, "run", "pingpong", "-t", "tcp", "--store", str(tmp_path / "r.db")])
    assert (alone.returncode, alone.stderr) == (2, f"hockney: there is nothing to measure: {NO_LOOPBACK}\n")


@pytest.mark.parametrize("library", MPIS, ids=lambda library: library.id)
def test_a_start_that_fails_leaves_no_shared_memory(library: Any) -> None:
    """The ranks of MPICH have mapped their files when the first one finds that the others cannot reach it."""
    script = """if True:
        from pathlib import Path
        from hockney.worker.build import build_worker
        from hockney.worker.launch import Job, launch
        from hockney.worker.libraries import MPI
        from hockney.worker.session import WorkerSession
        from hockney.worker.errors import LaunchFailed
        library = next(each for each in MPI()[0] if each.id == "LIBRARY")
        worker = build_worker(library.recipe)
        before = set(Path("/dev/shm").iterdir())
        try:
            with WorkerSession(launch(Job(worker, "mpi", 2, oversubscribed=True), library)) as session:
                session.hello()
        except LaunchFailed:
            left = set(Path("/dev/shm").iterdir()) - before
            print(["failed", *(str(path) for path in left if path.name.startswith("mpich_shm_"))])
    """.replace("LIBRARY", library.id)
    down = in_namespace("net", "mount -t tmpfs shm /dev/shm")  # of its own: no other job puts a file there
    done = finished([down[0], "--mount", *down[1:], sys.executable, "-c", script], timeout_s=400)
    assert done.stdout == "['failed']\n", done.stderr


# ---- a library that no longer loads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [each for each in MPIS if each.kind == "openmpi"], ids=lambda library: library.id)
def test_an_mpi_whose_library_is_empty_is_named_and_the_others_are_measured(library: Any, tmp_path: Path) -> None:
    shown = finished([*library.recipe.compiler, "--showme:libdirs"], check=True).stdout.split()
    (file, *_) = [path for folder in shown for path in [Path(folder, "libmpi.so")] if path.exists()]
    empty = in_namespace("mount", f"mount --bind /dev/null {file.resolve()}")
    listed = json.loads(finished([*empty, *HOCKNEY, "list", "transports", "--json"], timeout_s=400, check=True).stdout)
    (why,) = [item["why"] for item in listed["transports"] if item["name"] == library.id]
    assert re.fullmatch(r"\S+ cannot link the worker: MPI_\w+ and \d+ more functions are not in the library", why)
    run = [*empty, *HOCKNEY, "run", "pingpong", "--bytes", "8", "--time", "0.5s", "--store", str(tmp_path / "r.db")]
    both = finished([*run, "-q", "-t", "shm,mpi"], timeout_s=400)
    assert both.stderr.count(f"Not available: {library.id} (") == 1
    assert library.id not in finished([*run, "-q", "-t", "shm"], timeout_s=400).stderr


def test_a_host_without_ipv4(tmp_path: Path) -> None:
    """Sockets and MPICH work; Open MPI cannot start, and the reason says why."""
    alone = in_namespace("net", "ip link set lo up && ip address del 127.0.0.1/8 dev lo")
    seen = measure(alone, tmp_path / "r.db", "tcp,udp,mpi")
    assert "loopback" not in seen.warnings
    assert {"tcp", "udp", *(library.id for library in MPIS if library.kind == "mpich")} <= set(seen.libraries)
    assert all(reason.endswith(fix_of("ipv4")) for reason in seen.reasons.values()), seen.reasons
    assert set(seen.reasons) <= {library.id for library in MPIS if library.kind == "openmpi"}
