"""Values as one JSON document."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from hockney.render.streams import holds_document, print_line

JSON_VERSION = 3


def print_json(command: str, data: Mapping[str, Any]) -> None:
    """Print one JSON document with its format and version. NaN and infinity are refused; use None."""
    print_document({"format": f"hockney-{command}", "version": JSON_VERSION, **data})


def print_document(document: Mapping[str, Any]) -> None:
    """Print JSON as it is."""
    import json

    text = json.dumps(document, indent=2, allow_nan=False, default=_as_json)
    holds_document.set(True)
    print_line(text)


def _as_json(value: Any) -> Any:
    """A dataclass by its fields, a point with its options by name, numbers and arrays of numpy, sets, enumerations."""
    from hockney.model import Point  # 20 ms, which the help of all commands would take longer

    if isinstance(value, Point):
        return value.as_json()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
