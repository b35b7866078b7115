"""A model as the text of its TOML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def toml(content: Mapping[str, Any], head: str) -> str:
    """The file: comment lines, then the values and tables of `content` in their order."""
    return "\n".join([*(f"# {line}" for line in head.splitlines()), *_table(content, ())]) + "\n"


def _table(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {name: value for name, value in content.items() if _is_table(name, value)}
    for name, value in content.items():
        if name not in tables:
            yield from _entry(name, value)
    for name, value in tables.items():
        inner = (*path, _key(name))
        for each in value if isinstance(value, list) else [value]:
            has_values = any(not _is_table(*part) for part in each.items())
            if isinstance(value, list) or has_values:
                yield ""
                yield f"[[{'.'.join(inner)}]]" if isinstance(value, list) else f"[{'.'.join(inner)}]"
            yield from _table(each, inner)


def _is_table(name: str, value: Any) -> bool:
    """Whether it is written as a table; costs and conditions are inline."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, Mapping) for each in value)
    is_cost = isinstance(value, Mapping) and all(isinstance(part, int | float) for part in value.values())
    return isinstance(value, Mapping) and not is_cost and name not in ("where", "options")


def _entry(name: str, value: Any) -> Iterator[str]:
    entry = f"{_key(name)} = {_value(value)}"
    if len(entry) > 120 and isinstance(value, list):
        yield f"{_key(name)} = ["
        yield from (f"    {_value(each)}," for each in value)
        yield "]"
    else:
        yield entry


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: Any) -> str:
    """A scalar in TOML. JSON writes it identically, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{_key(name)} = {_value(part)}" for name, part in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case _:
            return _text(value)
