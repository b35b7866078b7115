"""A results file to read, and a way to call the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.cli.support import Cli, Ended, call, call_here, fill

from hockney.worker.build import Recipe, build_worker
from hockney.worker.catalogue import load


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """The workers are compiled: no command has to say that it does it first."""
    build_worker(Recipe("sim"))
    load()


@pytest.fixture(scope="module", autouse=True)
def described(workers_described_once: None) -> None:
    """Commands in this process ask no worker twice."""


@pytest.fixture(scope="session")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "results.db"
    fill(path)
    return path


@pytest.fixture
def path(tmp_path: Path, filled_store: Path) -> Path:
    """A results file for one test: run 1 has the label base, run 2 everything that a run can have."""
    return Path(shutil.copy(filled_store, tmp_path / "results.db"))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `hockney` in a fresh folder with an empty store, in this process where that does the same."""

    def in_folder(*arguments: str, **variables: str) -> Ended:
        others = variables.keys() & {"PATH", "CC", "HOME", "_HOCKNEY_COMPLETE"}
        return (call if others else call_here)(tmp_path, *arguments, **variables)

    return in_folder
