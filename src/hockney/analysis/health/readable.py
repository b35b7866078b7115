"""Facts of a run that health has stored, as far as this version can read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from hockney.errors import notice

FactT = TypeVar("FactT")


def readable(kind: type[FactT], facts: Mapping[str, Any], name: str) -> list[FactT]:
    """Those of a stored list that are of a kind; that others are left out is said once."""
    from pydantic import TypeAdapter, ValidationError

    adapter, found, stored = TypeAdapter(kind), list[FactT](), facts.get(name, [])
    for each in cast("list[object]", stored) if isinstance(stored, list) else [None]:
        try:
            found.append(adapter.validate_python(each))
        except ValidationError:  # noqa: PERF203 - a few facts
            other = f"{name.replace('_', ' ')} of another version, or damaged"
            notice.get()(f"stored runs of health have {other}: what cannot be read is left out")
    return found
