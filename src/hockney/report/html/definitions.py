"""The meaning of words on the page: definitions.toml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hockney.machine.files import read_toml

PATH = Path(__file__).with_name("definitions.toml")


def words() -> Mapping[str, str]:
    """The meaning of each word."""
    known: Mapping[str, str] = read_toml(PATH)["word"]
    return known
