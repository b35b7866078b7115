"""Finding MPIs: made-up installations for every oddity, and the real ones of this machine."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest
from tests.shared import Fakes, script
from tests.worker import made_up
from tests.worker.made_up import on_path

from hockney.worker import catalogue, compiler
from hockney.worker.libraries import MPI

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


def test_no_mpi_at_all(only: Path) -> None:
    assert MPI() == ((), ())


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
    (mpi,), unusable = MPI()
    assert (mpi.id, mpi.name) == (name, text)
    assert mpi.program == tools / "mpiexec"
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
    mpis, unusable = MPI()
    assert [mpi.id for mpi in mpis] == ["mpi@openmpi-5.0.3", "mpi@mpich-4.2.1"]
    assert unusable == ()


def test_two_builds_of_one_version_have_two_names(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(monkeypatch, install(only / "first", "mpich"), install(only / "second", "mpich"))
    assert [mpi.id for mpi in MPI()[0]] == ["mpi@mpich-4.2.1", "mpi@mpich-4.2.1~2"]


def test_the_wheel_comes_first_and_is_marked(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(only / "venv", "mpich")
    (only / "venv" / "pyvenv.cfg").touch()
    on_path(monkeypatch, install(only / "system", "openmpi"))
    wheel, system = MPI()[0]
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
    (mpi,), unusable = MPI()
    assert mpi.program == tools / "mpiexec"
    assert unusable == ()


def test_one_asked_for_that_is_not_there(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKNEY_MPICC", str(only / "mpicc"))
    mpis, (unusable,) = MPI()
    assert mpis == ()
    assert unusable.name == str(only / "mpicc")
    assert unusable.why.startswith(f"there is no compiler '{only / 'mpicc'}'")
    assert "HOCKNEY_MPICC" in unusable.how


def test_each_library_gets_its_mpiexec(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Debian has it: one folder, two libraries, and mpicc and mpiexec may lead to different ones."""
    tools = install(only / "a", "openmpi", wrapper="mpicc.openmpi", launcher="mpiexec.openmpi")
    other = install(only / "b", "mpich", wrapper="mpicc.mpich", launcher="mpiexec.mpich")
    for name in ("mpicc.mpich", "mpiexec.mpich"):
        shutil.copy(other / name, tools / name)
    (tools / "mpicc").symlink_to("mpicc.openmpi")
    (tools / "mpiexec").symlink_to("mpiexec.mpich")
    on_path(monkeypatch, tools)
    mpis, unusable = MPI()
    assert {mpi.kind: mpi.program.name for mpi in mpis} == {"openmpi": "mpiexec.openmpi", "mpich": "mpiexec.mpich"}
    assert unusable == ()


def test_a_foreign_launcher_in_the_folder_is_no_mpiexec(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "openmpi", launcher=None)
    script(tools / "mpiexec", "echo HYDRA build details:")
    on_path(monkeypatch, tools)
    mpis, (unusable,) = MPI()
    assert mpis == ()
    assert unusable.name == str(tools / "mpicc")
    assert "there is no mpiexec of the same library next to" in unusable.why


def test_within_slurm_a_library_without_mpiexec_has_srun(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich", launcher=None)
    on_path(monkeypatch, tools, script(only / "slurm" / "srun", "true").parent)
    assert MPI()[0] == ()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    ((mpi,), _) = MPI()
    assert (mpi.kind, mpi.program) == ("mpich", only / "slurm" / "srun")


def test_a_broken_wrapper_is_reported_and_the_rest_is_found(
    only: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes
) -> None:
    broken = only / "broken"
    broken.mkdir()
    fake(broken / "mpicc", "echo 'mpicc: cannot find its compiler' >&2; exit 127")
    on_path(monkeypatch, broken, install(only / "good", "mpich"))
    mpis, (unusable,) = MPI()
    assert [mpi.kind for mpi in mpis] == ["mpich"]
    assert "mpicc: cannot find its compiler" in unusable.why


def test_wrappers_that_hang_are_asked_side_by_side_and_leave_nothing_behind(
    only: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes
) -> None:
    """Each waits for the other to have begun: one after the other, neither would ever."""
    monkeypatch.setattr(compiler, "_ASK_LIMIT_S", 3.0)
    for name, other in (("a", "b"), ("b", "a")):
        (only / name).mkdir()
        waits = f"while ! [ -e {only}/{other}/pid ]; do :; done; : > {only}/{name}/met"
        begin = f"{SLEEP} 60 & echo $$ $! > {only}/{name}/pid"
        fake(only / name / "mpicc", f"{begin}; {waits}; wait")
    on_path(monkeypatch, only / "a", only / "b", install(only / "good", "mpich"))
    mpis, unusable = MPI()
    assert [mpi.kind for mpi in mpis] == ["mpich"]
    assert [each.why for each in unusable] == ["mpicc cannot answer -show: no answer within 3 s"] * 2
    assert all((only / name / "met").exists() for name in ("a", "b"))
    pids = [int(pid) for name in ("a", "b") for pid in (only / name / "pid").read_text().split()]
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=60)
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in alive)


def test_a_launcher_that_was_slow_once_is_asked_again(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich")
    slow = only / "slow"
    slow.touch()
    launcher = tools / "mpiexec"
    launcher.write_text(launcher.read_text().replace("cat", f"[ -e {slow} ] && exec {SLEEP} 60; cat"))
    on_path(monkeypatch, tools)
    with monkeypatch.context() as patched:
        patched.setattr(compiler, "_ASK_LIMIT_S", 0.5)
        assert MPI()[0] == ()
    slow.unlink()
    assert [mpi.kind for mpi in MPI()[0]] == ["mpich"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["shm", "tcp*"], []),
        (["mpi@mpich"], ["mpi"]),
        (["shm", "pvm:raw"], ["pvm"]),
        (["sim@gpmimd:pairs"], []),
        (["*"], ["mpi", "ofi", "pvm", "shmem", "ucx", "zmq"]),
        (None, ["mpi", "ofi", "pvm", "shmem", "ucx", "zmq"]),
    ],
)
def test_only_named_families_are_searched(
    monkeypatch: pytest.MonkeyPatch, words: list[str] | None, asked: list[str]
) -> None:
    looked_for: list[str] = []

    def search(name: str) -> tuple[tuple[()], tuple[()]]:
        looked_for.append(name)
        return (), ()

    recorded = {name: (functools.partial(search, name), name, "") for name in catalogue._FAMILIES}
    monkeypatch.setattr(catalogue, "_FAMILIES", recorded)
    catalogue.load(words)
    assert sorted(looked_for) == asked


def test_answers_are_kept_until_something_changes(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich")
    on_path(monkeypatch, tools)
    calls = only / "one" / "calls"
    first = MPI()
    calls.unlink()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert MPI() == first
    assert not calls.exists()
    monkeypatch.undo()


@pytest.mark.parametrize("wrong", [None, {"kind": "no such"}])
def test_edited_answers_are_asked_again(
    only: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str] | None
) -> None:
    """Without any of their fields, or of a kind of library that there is not."""
    on_path(monkeypatch, install(only / "one", "openmpi"))
    asked, _ = MPI()
    records = {path: json.loads(path.read_text()) for path in (only / "cache").rglob("probes/*.json")}
    assert len(records) == 3  # of the wrapper, the library and the launcher
    for path, record in records.items():
        if wrong is None or "library" in record["answer"]:
            path.write_text(json.dumps(record | {"answer": {} if wrong is None else record["answer"] | wrong}))
    assert MPI()[0] == asked


def test_an_upgraded_library_is_noticed(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "one", "mpich")
    on_path(monkeypatch, tools)
    assert MPI()[0][0].id == "mpi@mpich-4.2.1"
    wrapper = tools / "mpicc"
    wrapper.write_text(wrapper.read_text().replace("4.2.1", "4.3.10"))
    assert MPI()[0][0].id == "mpi@mpich-4.3.10"


def test_real_libraries_are_distinguished() -> None:
    """A test for each MPI is no test where none is found: here it shows."""
    mpis = MPI()[0]
    expected = {"Open MPI": ("openmpi", False), "MPICH": ("mpich", False), "the wheel of MPICH": ("mpich", True)}
    missing = [name for name, what in expected.items() if what not in {(mpi.kind, mpi.is_wheel) for mpi in mpis}]
    assert len({mpi.id for mpi in mpis}) == len(mpis)
    for mpi in mpis:
        assert mpi.kind in ("openmpi", "mpich", "intel", "mpiexec")
        assert mpi.program.exists()
        subprocess.run([*mpi.recipe.compiler, "--version"], check=True, stdout=subprocess.DEVNULL)
    if missing:
        pytest.skip(f"not here: {', '.join(missing)}")
