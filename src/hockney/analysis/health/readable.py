"""Facts of a run that health has stored, as far as this version can read them."""

from __future__ import annotations

import contextlib
from typing import TypeVar, cast

FactT = TypeVar("FactT")


def readable(kind: type[FactT], stored: object) -> list[FactT]:
    """Those of a stored list that are of a kind; what another version or a damaged file has there says nothing."""
    from pydantic import TypeAdapter, ValidationError

    adapter, found = TypeAdapter(kind), list[FactT]()
    for each in cast("list[object]", stored) if isinstance(stored, list) else ():
        with contextlib.suppress(ValidationError):
            found.append(adapter.validate_python(each))
    return found
