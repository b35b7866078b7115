"""What libraries and kernels document of the sizes at which they change what they do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hockney.explain.data import rows_of
from hockney.units import format_bytes

_VERSION = re.compile(r"-(\d+(?:\.\d+)*)")


@dataclass(frozen=True)
class Threshold:
    """A documented size, in the library's default setting; `ask` is how the library at hand tells its own."""

    name: str
    bytes: int
    header_bytes: int
    meaning: str
    ask: str
    source: str

    def lies_between(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether a change at this size is one between these two, the library's own header taken off or not."""
        return below_bytes <= self.bytes and self.bytes - self.header_bytes <= above_bytes

    @property
    def text(self) -> str:
        return f"{self.name}, {format_bytes(self.bytes)} by default: {self.meaning} (see {self.ask})"


def thresholds_of(transport: str, facts: Mapping[str, Any]) -> Iterator[Threshold]:
    """What is documented of a transport, in the version that its name carries. `facts` are those of the run."""
    for row in rows_of("thresholds"):
        size = row.get("bytes") or (facts.get("network") or {}).get(row["fact"])
        if size and _is_meant(transport, row["transports"], *row["versions"]):
            yield Threshold(row["name"], size, row["header_bytes"], row["meaning"], row["ask"], row["source"])


def _is_meant(transport: str, begins: str, first: str, end: str) -> bool:
    name = transport.partition(":")[0]
    if "@" not in begins:
        return name == begins
    version = _VERSION.search(name)
    if not name.startswith(f"{begins}-") or version is None:
        return False
    own = _numbers(version[1])
    return _numbers(first) <= own and (not end or own < _numbers(end))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
