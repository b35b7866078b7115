"""The command line, three runs of a made-up machine, and the page of the first one compared with the second."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import Cli, call_here
from tests.report.html.made import store_made
from tests.shared import made_once


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `hockney` in a fresh folder with an empty store."""
    return lambda *arguments, **variables: call_here(tmp_path, *arguments, **variables)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs with one label; `report.html` next to them is the page of the first, compared with the second."""

    def make(folder: Path) -> None:
        for slower in (1.0, 1.3, 1.0):
            store_made(folder / "r.db", slower=slower)
        done = call_here(folder, "report", "1", "2", "-o", "report.html", "--store", str(folder / "r.db"))
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "html", make) / "r.db"


@pytest.fixture(scope="session")
def page_file(store: Path) -> Path:
    """Of the first run, compared with the second."""
    return store.with_name("report.html")
