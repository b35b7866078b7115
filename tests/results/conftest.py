"""A store in a fresh folder, with or without a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.builders import make_info, make_launch, make_point

from hockney.results.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def run_id(store: Store) -> int:
    """A run with launch 1 and the points of 8 and 64 B."""
    number = store.create_run(make_info(), [make_point(8), make_point(64)])
    assert store.add_launch(number, make_launch()) == 1
    return number


@pytest.fixture
def child_environment() -> dict[str, str]:
    """For Python programs that import hockney and tests.builders."""
    root = Path(__file__).resolve().parents[2]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
