"""Which cases of a long matrix run in every `scripts/test`, and which only in `scripts/test --full`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def matrix(values: Iterable[Any], *, short: Collection[Any]) -> list[Any]:
    """All values as parameters; those not in `short` run with --full only."""
    return [value if value in short else pytest.param(value, marks=pytest.mark.full) for value in values]
