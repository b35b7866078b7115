"""The texts of warnings, from warnings.toml: causes, and remedies, with which errors end too."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from hockney.machine.files import read_toml


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    return read_toml(Path(__file__).with_name("warnings.toml"))


def text_of(key: str, **values: Any) -> tuple[str, str]:
    """The cause and the remedy of a key, with values in them; `cma-met`, without a remedy, has that of `cma`."""
    remedy = _texts()[key].get("remedy") or _texts()[key.partition("-")[0]]["remedy"]
    return _texts()[key]["cause"].format(**values), remedy.format(**values)


def kinds_in(said: str) -> list[str]:
    """The limits that a library complains of in what it said."""
    return [kind for kind, text in _texts().items() if "said" in text and re.search(text["said"], said)]


def fix_of(kind: str) -> str:
    """The remedy as the end of an error's sentence."""
    remedy = _texts()[kind]["remedy"].removesuffix(".")
    return f"{remedy[0].lower()}{remedy[1:]}"
