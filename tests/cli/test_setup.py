"""`hockney setup`: what it says of libraries that are installed, and of names that are none."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.cli.support import call_here
from tests.worker.test_mpi import install

from hockney.cli.schemas import schema


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a library that needs no package index."""
    folder = tmp_path / "mpich"
    install(folder, "mpich")
    monkeypatch.setattr("hockney.worker.wheels.install_wheel", lambda _: folder)
    return folder


def test_each_library_is_named_with_its_folder(index: Path, tmp_path: Path) -> None:
    done = call_here(tmp_path, "setup", "--mpi", "mpich,mpich")
    said = " ".join(done.stdout.split())
    assert (done.returncode, said.count("MPICH 4.2.1 is installed in")) == (0, 1)
    assert "Try it: `hockney run pingpong -t mpi@mpich`" in said
    document = json.loads(call_here(tmp_path, "setup", "--mpi", "mpich", "--json").stdout)
    jsonschema.validate(document, schema())
    assert document["installed"] == [{"library": "MPICH 4.2.1", "folder": str(index)}]


def test_a_library_that_does_not_work_is_not_called_installed(index: Path, tmp_path: Path) -> None:
    (index / "bin" / "mpiexec").unlink()
    done = call_here(tmp_path, "setup", "--mpi", "mpich")
    assert done.returncode == 3
    assert "but cannot be used: there is no mpiexec of the same library next to" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "name the libraries to install, for example: `hockney setup --mpi openmpi`"),
        (("--mpi", " , "), "name the libraries to install, for example: `hockney setup --mpi openmpi`"),
        (("--mpi", "openmpi,intl"), "unknown MPI 'intl': did you mean 'intel'?"),
    ],
)
def test_names_that_are_none(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = call_here(tmp_path, "setup", *arguments)
    assert (done.returncode, sentence in " ".join(done.stderr.split())) == (2, True), done.stderr
