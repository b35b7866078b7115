"""The command line, three runs of a made-up machine, and the page of the first one compared with the second."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import Cli, call_here
from tests.report.html.made import store_made


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `hockney` in a fresh folder with an empty store."""
    return lambda *arguments, **variables: call_here(tmp_path, *arguments, **variables)


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs with one label."""
    path = tmp_path_factory.mktemp("html") / "r.db"
    for slower in (1.0, 1.3, 1.0):
        store_made(path, slower=slower)
    return path


@pytest.fixture(scope="package")
def page_file(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the first run, compared with the second."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    done = call_here(path.parent, "report", "1", "2", "-o", str(path), "--store", str(store))
    assert done.returncode == 0, done.stderr
    return path
