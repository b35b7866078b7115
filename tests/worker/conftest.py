"""Fixtures for tests of finding libraries, and of workers under sanitizers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.shared import made_once
from tests.worker.extra import ADDRESS, QUICK

from hockney.worker import build
from hockney.worker.build import Recipe, build_worker


@pytest.fixture(scope="session")
def checks(pytestconfig: pytest.Config) -> tuple[str, ...]:
    """Options of a compiler: sanitizers with --full, else none, as they double the time."""
    return ADDRESS.flags[1:] if pytestconfig.getoption("--full") else ()


@pytest.fixture(scope="session")
def checked(checks: tuple[str, ...]) -> Recipe:
    """The native worker; with --full the one under sanitizers."""
    return ADDRESS if checks else Recipe()


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the objects of a native worker, so that the tests below compile only differences."""

    def make(folder: Path) -> None:
        build_worker(QUICK, folder=folder / "cache")

    return made_once(tmp_path_factory, "objects-quick", make) / "cache"


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only libraries that a test makes are installed, in folders under the one returned, and the basic commands."""
    basic = tmp_path / "basic"
    basic.mkdir()
    for name in ("sh", "cat", "cc"):
        program = shutil.which(name)
        assert program
        (basic / name).symlink_to(program)
    monkeypatch.setenv("PATH", str(basic))
    for variable in ("HOCKNEY_MPICC", "HOCKNEY_OSHCC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    return tmp_path


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of the same names that may be changed: a program that does nothing, compiled in an instant."""
    copy = tmp_path / "csrc"
    shutil.copytree(build.SOURCES, copy)
    for path in copy.rglob("*.c"):
        path.write_text("/* cold */\n" if path.read_text().startswith("/* cold */\n") else "")
    (copy / "main.c").write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr(build, "SOURCES", copy)
    return copy
