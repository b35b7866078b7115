"""Tables of facts next to the code, as TOML files."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@functools.cache
def rows_of(table: str, folder: Path = Path(__file__).parent) -> tuple[dict[str, Any], ...]:
    """The rows of `TABLE.toml`, in their order there."""
    return tuple(tomllib.loads((folder / f"{table}.toml").read_text(encoding="utf-8"))["row"])
