"""A results file to read, and a way to call the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import Cli, Ended, call, fill


@pytest.fixture(scope="session")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "results.db"
    fill(path)
    return path


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `hockney` in a process of its own, in a fresh folder with an empty store."""

    def in_folder(*arguments: str, **variables: str) -> Ended:
        return call(tmp_path, *arguments, **variables)

    return in_folder
