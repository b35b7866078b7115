"""Finding MPIs: made-up installations for every oddity, and the real ones of this machine."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.worker import made_up
from tests.worker.made_up import on_path, script

from hockney.worker import catalogue, compiler
from hockney.worker.libraries import Unusable
from hockney.worker.mpi import Mpi, find_mpis, search

SLEEP = shutil.which("sleep")
MACROS = {
    "openmpi": "#define OMPI_MAJOR_VERSION 5\n#define OMPI_MINOR_VERSION 0\n#define OMPI_RELEASE_VERSION 3",
    "mpich": '#define MPICH_NAME 4\n#define MPICH_VERSION "4.2.1"',
    "intel": '#define MPICH_VERSION "3.4a2"\n#define I_MPI_VERSION "2021.13 extra"',
    "mvapich": '#define MPICH_VERSION "3.2.1"\n#define MVAPICH2_VERSION "2.3.7"',
    "unknown": "#define MPI_VERSION 3",
}
LAUNCHERS = {
    "openmpi": "mpirun (Open MPI) 5.0.3",
    "mpich": "HYDRA build details:\n    Version: 4.2.1",
    "intel": "Intel(R) MPI Library for Linux* OS, Version 2021.13\nHYDRA",
    "mvapich": "HYDRA build details:",
    "unknown": "launcher 1.0",
}


def install(root: Path, kind: str, *, wrapper: str = "mpicc", launcher: str | None = "mpiexec") -> Path:
    """A made-up MPI. Returns its bin folder."""
    return made_up.install(root, wrapper, "mpi", MACROS[kind], launcher, LAUNCHERS[kind])


def find(root: Path) -> tuple[tuple[Mpi, ...], tuple[Unusable, ...]]:
    return search(folder=root / "cache")


def test_no_mpi_at_all(only: Path) -> None:
    assert find(only) == ((), ())


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("openmpi", "mpi@openmpi-5.0.3", "Open MPI 5.0.3"),
        ("mpich", "mpi@mpich-4.2.1", "MPICH 4.2.1"),
        ("intel", "mpi@intel-2021.13", "Intel MPI 2021.13"),
        ("mvapich", "mpi@other-2.3.7", "another MPI 2.3.7"),
        ("unknown", "mpi@other", "another MPI"),
    ],
)
def test_one_on_path(only: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, text: str) -> None:
    tools = install(only / "one", kind)
    on_path(monkeypatch, tools)
    (mpi,), unusable = find(only)
    assert (mpi.id, mpi.name) == (name, text)
    assert (mpi.mpicc, mpi.mpiexec) == (tools / "mpicc", tools / "mpiexec")
    assert not mpi.is_wheel
    assert mpi.recipe.compiler == (str(tools / "mpicc"),)
    assert unusable == ()


def test_all_of_them_and_each_once(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = install(only / "first", "openmpi")
    (first / "mpicc.openmpi").symlink_to("mpicc")
    twin = only / "twin"
    twin.symlink_to(first)
    second = install(only / "second", "mpich")
    on_path(monkeypatch, first, twin, second, only / "nowhere", Path())
    found, unusable = find(only)
    assert [mpi.id for mpi in found] == ["mpi@openmpi-5.0.3", "mpi@mpich-4.2.1"]
    assert unusable == ()


def test_two_builds_of_one_version_have_two_names(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(monkeypatch, install(only / "first", "mpich"), install(only / "second", "mpich"))
    assert [mpi.id for mpi in find(only)[0]] == ["mpi@mpich-4.2.1", "mpi@mpich-4.2.1~2"]


def test_the_wheel_comes_first_and_is_known_as_one(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(only / "venv", "mpich")
    (only / "venv" / "pyvenv.cfg").touch()
    on_path(monkeypatch, install(only / "system", "openmpi"))
    wheel, system = find(only)[0]
    assert (wheel.kind, wheel.is_wheel) == ("mpich", True)
    assert (system.kind, system.is_wheel) == ("openmpi", False)


@pytest.mark.parametrize("absolute", [True, False])
def test_the_one_that_is_asked_for(only: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool) -> None:
    tools = install(only / "asked", "mpich", wrapper="my-mpicc")
    if absolute:
        monkeypatch.setenv("HOCKNEY_MPICC", str(tools / "my-mpicc"))
    else:
        on_path(monkeypatch, tools)
        monkeypatch.setenv("HOCKNEY_MPICC", "my-mpicc")
    (mpi,), unusable = find(only)
    assert mpi.mpiexec == tools / "mpiexec"
    assert unusable == ()


def test_one_asked_for_that_is_not_there(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKNEY_MPICC", str(only / "mpicc"))
    found, (unusable,) = find(only)
    assert found == ()
    assert unusable.wrapper == only / "mpicc"
    assert unusable.reason == "HOCKNEY_MPICC names it, and no program that can be run is there"
    assert unusable.how == "correct HOCKNEY_MPICC or unset it"


def test_each_gets_the_mpiexec_of_its_own_name(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Debian has it: one folder, two libraries, and mpicc and mpiexec may lead to different ones."""
    tools = install(only / "a", "openmpi", wrapper="mpicc.openmpi", launcher="mpiexec.openmpi")
    other = install(only / "b", "mpich", wrapper="mpicc.mpich", launcher="mpiexec.mpich")
    for name in ("mpicc.mpich", "mpiexec.mpich"):
        shutil.copy(other / name, tools / name)
    (tools / "mpicc").symlink_to("mpicc.openmpi")
    (tools / "mpiexec").symlink_to("mpiexec.mpich")
    on_path(monkeypatch, tools)
    found, unusable = find(only)
    assert {mpi.kind: mpi.mpiexec.name for mpi in found} == {"openmpi": "mpiexec.openmpi", "mpich": "mpiexec.mpich"}
    assert unusable == ()


def test_a_stranger_beside_it_is_no_mpiexec(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "openmpi", launcher=None)
    script(tools / "mpiexec", "echo HYDRA build details:")
    on_path(monkeypatch, tools)
    found, (unusable,) = find(only)
    assert found == ()
    assert unusable.wrapper == tools / "mpicc"
    assert "there is no mpiexec of Open MPI beside" in unusable.reason


def test_a_broken_wrapper_is_told_and_the_rest_is_found(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = only / "broken"
    broken.mkdir()
    script(broken / "mpicc", "echo 'mpicc: cannot find its compiler' >&2; exit 127")
    on_path(monkeypatch, broken, install(only / "good", "mpich"))
    found, (unusable,) = find(only)
    assert [mpi.kind for mpi in found] == ["mpich"]
    assert "mpicc: cannot find its compiler" in unusable.reason


def test_a_wrapper_that_prints_an_unbalanced_quote_is_told_and_the_rest_is_found(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = only / "broken"
    broken.mkdir()
    script(broken / "mpicc", """echo 'gcc "-I/x'""")
    on_path(monkeypatch, broken, install(only / "good", "mpich"))
    found, (unusable,) = find(only)
    assert [mpi.kind for mpi in found] == ["mpich"]
    assert unusable.reason == 'mpicc cannot answer -show: no closing quotation in: gcc "-I/x'


def test_wrappers_that_hang_are_asked_side_by_side_once_and_leave_nothing_behind(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for the other to have begun: one after the other, neither would ever."""
    monkeypatch.setattr(compiler, "_ASK_LIMIT_S", 3.0)
    for name, other in (("a", "b"), ("b", "a")):
        (only / name).mkdir()
        waits = f"while ! [ -e {only}/{other}/pid ]; do :; done; : > {only}/{name}/met"
        begin = f"{SLEEP} 60 & echo $$ $! > {only}/{name}/pid"
        script(only / name / "mpicc", f"{begin}; {waits}; wait")
    on_path(monkeypatch, only / "a", only / "b", install(only / "good", "mpich"))
    found, unusable = find(only)
    assert [mpi.kind for mpi in found] == ["mpich"]
    assert [one.reason for one in unusable] == ["mpicc cannot answer -show: no end after 3 s"] * 2
    assert all((only / name / "met").exists() for name in ("a", "b"))
    for pid in " ".join((only / name / "pid").read_text() for name in ("a", "b")).split():
        assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    for name in ("a", "b"):
        (only / name / "pid").unlink()
    assert find(only) == (found, unusable)
    assert not any((only / name / "pid").exists() for name in ("a", "b"))


def test_a_wrapper_that_hangs_ends_with_a_program_that_is_interrupted(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = script(only / "mpicc", f"echo $$ > {only}/pid; : > {only}/ready; exec {SLEEP} 987")
    monkeypatch.setenv("HOCKNEY_MPICC", str(wrapper))
    monkeypatch.setenv("XDG_CACHE_HOME", str(only / "cache"))
    program = "from hockney.worker import compiler, mpi; compiler._ASK_LIMIT_S = 600.0; mpi.search()"
    asking = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    while not (only / "ready").exists():
        assert asking.poll() is None
        time.sleep(0.02)
    pid = int((only / "pid").read_text())
    try:
        asking.send_signal(signal.SIGINT)
        _, said = asking.communicate(timeout=60)
        assert b"KeyboardInterrupt" in said
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_one_that_hung_is_asked_again_later(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_ASK_LIMIT_S", 0.5)
    tools = install(only / "one", "mpich")
    wrapper = tools / "mpicc"
    slow = only / "slow"
    slow.touch()
    wrapper.write_text(wrapper.read_text().replace("case", f"[ -e {slow} ] && {SLEEP} 60; case"))
    on_path(monkeypatch, tools)
    assert find(only)[0] == ()
    slow.unlink()
    assert find(only)[0] == ()
    monkeypatch.setattr(compiler, "_ASK_LIMIT_S", 30.0)
    monkeypatch.setattr(compiler, "_ASK_AGAIN_S", 0.0)
    assert [mpi.kind for mpi in find(only)[0]] == ["mpich"]


def test_a_launcher_that_was_slow_once_is_asked_again(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich")
    slow = only / "slow"
    slow.touch()
    launcher = tools / "mpiexec"
    launcher.write_text(launcher.read_text().replace("cat", f"[ -e {slow} ] && exec {SLEEP} 60; cat"))
    on_path(monkeypatch, tools)
    with monkeypatch.context() as patched:
        patched.setattr(compiler, "_ASK_LIMIT_S", 0.5)
        assert find(only)[0] == ()
    slow.unlink()
    assert [mpi.kind for mpi in find(only)[0]] == ["mpich"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [(["shm", "tcp*"], []), (["mpi@mpich"], ["mpi"]), (["shm", "pvm:raw"], ["pvm"]), (["*"], None), (["mip"], None)],
)
def test_only_families_that_are_named_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, words: list[str], asked: list[str] | None
) -> None:
    families = catalogue._FAMILIES
    looked_for: list[str] = []

    def search(name: str) -> tuple[tuple[()], tuple[()]]:
        looked_for.append(name)
        return (), ()

    recorded = tuple(replace(one, search=functools.partial(search, one.name)) for one in families)
    monkeypatch.setattr(catalogue, "_FAMILIES", recorded)
    catalogue.load(words)
    assert sorted(looked_for) == sorted([one.name for one in families] if asked is None else asked)


def test_answers_are_kept_until_something_changes(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich")
    on_path(monkeypatch, tools)
    calls = only / "one" / "calls"
    first = find(only)
    calls.unlink()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert find(only) == first
    assert not calls.exists()
    monkeypatch.undo()


def test_an_upgraded_library_is_noticed(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich")
    on_path(monkeypatch, tools)
    assert find(only)[0][0].version == "4.2.1"
    wrapper = tools / "mpicc"
    wrapper.write_text(wrapper.read_text().replace("4.2.1", "4.3.10"))
    assert find(only)[0][0].version == "4.3.10"


def test_the_real_ones_are_told_apart() -> None:
    """A test for each MPI is no test where none is found: here it shows."""
    found = find_mpis()
    own = {"Open MPI": ("openmpi", False), "MPICH": ("mpich", False), "the wheel of MPICH": ("mpich", True)}
    missing = [name for name, what in own.items() if what not in {(mpi.kind, mpi.is_wheel) for mpi in found}]
    assert len({mpi.id for mpi in found}) == len(found)
    for mpi in found:
        assert mpi.kind in ("openmpi", "mpich", "intel", "other")
        assert mpi.mpiexec.exists()
        subprocess.run([mpi.mpicc, "--version"], check=True, stdout=subprocess.DEVNULL)
    if missing:
        pytest.skip(f"not here: {', '.join(missing)}")
