"""Tables of facts next to the code, as TOML files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from hockney.machine.files import read_toml


@functools.cache
def rows_of(table: str, folder: Path = Path(__file__).parent) -> tuple[dict[str, Any], ...]:
    """The rows of `TABLE.toml`, in their order there."""
    return tuple(read_toml(folder / f"{table}.toml")["row"])
