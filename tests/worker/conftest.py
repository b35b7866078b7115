"""Fixtures for tests of finding libraries."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only libraries that a test makes are installed, in folders under the one returned, and the basic commands."""
    basic = tmp_path / "basic"
    basic.mkdir()
    for name in ("sh", "cat", "cc"):
        found = shutil.which(name)
        assert found
        (basic / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(basic))
    for variable in ("HOCKNEY_MPICC", "HOCKNEY_OSHCC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    return tmp_path
