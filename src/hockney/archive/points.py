"""The points of hockney that published figures correspond to, as the archive's files and its conclusions write them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Spec:
    """`stream bytes=65500 write=nonblocking`: a pattern, or one of several (`put|oneway`), with its options.

    None of `ranks` or `bytes`: any. `on`: the library or PVM's way of sending that it is of ("native": not PVM).
    `per_node`: ranks on each host, where there are several. `level`: where the data of loads are: L1 or memory.
    A figure of loads is of `loads` of them, which carry `load_bytes` together (0: the point's size).
    """

    patterns: tuple[str, ...]
    ranks: int | None = None
    bytes: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    on: str = ""
    per_node: int = 0
    level: str = ""
    loads: int = 1
    load_bytes: int = 0


@functools.cache
def parse(text: str) -> Spec | None:
    """The point that a text of the archive names; None of an empty one."""
    if not text:
        return None
    names, *words = text.split()
    given = dict(word.split("=", 1) for word in words)
    numbers = {name: int(given.pop(name)) for name in _NUMBERS if name in given}
    texts = {name: given.pop(name) for name in ("on", "level") if name in given}
    return Spec(tuple(names.split("|")), options=given, **texts, **numbers)  # type: ignore[arg-type]


_NUMBERS = ("ranks", "bytes", "per_node", "loads", "load_bytes")
