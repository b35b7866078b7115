"""The documented message sizes above which libraries (thresholds.toml) and transports work differently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from hockney.errors import UsageError
from hockney.machine.files import rows_of
from hockney.model import split_placed
from hockney.results.traits import transport_traits
from hockney.units import parse_bytes
from hockney.worker.mpi_transport import begins_with, by_sockets, split_library


@dataclass(frozen=True)
class Threshold:
    """A documented size, or what the run set instead (`set_value`); `see` is where to learn more.

    `first_bytes` is the shortest message after the change.
    """

    name: str
    default_bytes: int
    first_bytes: int
    meaning: str
    see: str
    source: str
    set_value: str = ""

    def lies_between(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether of two sizes only the greater one is sent in the other way."""
        return below_bytes < self.first_bytes <= above_bytes

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of a finding that it is the cause of."""
        facts = {"threshold": self.name, "meaning": self.meaning, "see": self.see, "default_bytes": self.default_bytes}
        return facts | ({"set_value": self.set_value} if self.set_value else {})


def thresholds_of(
    transport: str, facts: Mapping[str, Any], library: str = "", launcher: str = ""
) -> Iterator[Threshold]:
    """The documented limits of a transport, in the version that its name carries.

    `facts` are the run's, `library` is the worker's name of the library with its device, `launcher` started its jobs.
    An environment value that is no size is ignored.
    """
    environment = facts.get("environment") or {}
    for row in _rows(transport, environment, library):
        size_bytes, set_value = row["bytes"], ""
        variable = next((name for name in row["set_by"] if environment.get(name, "auto").lower() != "auto"), None)
        if variable is not None:
            set_value = f"{variable}={environment[variable]}"
            try:
                size_bytes = parse_bytes(environment[variable])
            except UsageError:
                continue
        first_bytes = size_bytes - row.get("header_bytes", 0) + (row["changes"] == "longer")
        see = own_command(row["ask"], launcher)
        yield Threshold(row["name"], row["bytes"], first_bytes, row["meaning"], see, row["source"], set_value)
    for limit in transport_traits(facts, transport).limits:
        size_bytes = limit.bytes or (facts.get("network") or {}).get(limit.fact)
        if size_bytes:
            yield Threshold(limit.name, size_bytes, size_bytes + 1, limit.meaning, limit.see, limit.source)


def _rows(transport: str, environment: Mapping[str, str], library: str) -> Iterator[dict[str, Any]]:
    """The rows of a library's version and of its device; of every device where an import only names the library."""
    name = re.fullmatch(r"(.*)-(\d+(?:\.\d+)*)", split_placed(transport)[0].partition(":")[0])
    carrier = split_library(library)[1]
    if name is None or (carrier is None and library):
        return
    is_by_sockets = by_sockets(library, environment)
    through = None if is_by_sockets is None else "sockets" if is_by_sockets else "memory"
    for row in rows_of(Path(__file__).with_name("thresholds.toml")):
        first, end = map(_numbers, row["versions"])
        is_meant = row["transports"] == name[1] and first <= _numbers(name[2]) and (not end or _numbers(name[2]) < end)
        is_off = environment.get(row.get("switch", ""), "").lower() in ("0", "no", "off", "false")
        is_meant &= carrier is None or begins_with(carrier, row["device"])
        if is_meant and row.get("through", through) == through and not is_off:
            yield row


def own_command(command: str, launcher: str) -> str:
    """A command with its `{folder}` filled in: that of the library's launcher, as the PATH may have another library."""
    folder = PurePath(launcher).parent
    return command.replace("{folder}", f"{folder}/" if folder.is_absolute() else "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
