"""Runs in this process ask no worker twice what it can do."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def described(workers_described_once: None) -> None:
    """Described in tests/conftest.py."""
