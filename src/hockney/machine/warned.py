"""The texts of warnings, from warnings.toml: causes, and remedies, with which errors end too."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

from hockney.machine.files import read_toml


class Text(NamedTuple):
    """A cause and its remedy, each a sentence or more."""

    cause: str
    remedy: str


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    return read_toml(Path(__file__).with_name("warnings.toml"))


def text_of(key: str, **values: Any) -> Text:
    """The text of that key with values in it; a variant without a remedy, as `cma-met`, has that of its kind."""
    remedy = _texts()[key].get("remedy") or _texts()[key.partition("-")[0]]["remedy"]
    return Text(_texts()[key]["cause"].format(**values), remedy.format(**values))


def fix_of(kind: str) -> str:
    """The remedy as the end of an error's sentence."""
    remedy = _texts()[kind]["remedy"].removesuffix(".")
    return f"{remedy[0].lower()}{remedy[1:]}"
