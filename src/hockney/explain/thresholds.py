"""What libraries and kernels document of the sizes at which they change what they do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from hockney.explain.data import rows_of
from hockney.units import format_bytes

_VERSION = re.compile(r"-(\d+(?:\.\d+)*)")
_DEVICE = re.compile(r"^MPICH \S+ \((.+)\)$")  # the worker's name of the library: `MPICH 4.0.2 (ch4:ucx)`


@dataclass(frozen=True)
class Threshold:
    """A documented size; `ask` is how the library at hand tells its own.

    `first_bytes` is the shortest message that is sent in the other way. `is_of_machine` says that the size was read
    from the machine, where other sizes are the library's defaults; `is_of_build`, that some builds only have it and it
    is not known whether this is one.
    """

    name: str
    bytes: int
    first_bytes: int
    is_of_machine: bool
    is_of_build: bool
    meaning: str
    ask: str
    source: str

    def lies_between(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether of these two sizes the greater one alone is sent in the other way."""
        return below_bytes < self.first_bytes <= above_bytes

    @property
    def text(self) -> str:
        is_own = self.source.startswith("docs/")  # hockney's, which nobody can set
        whose = " here" if self.is_of_machine else "" if is_own else " by default"
        return f"{self.name}, {format_bytes(self.bytes)}{whose}: {self.meaning} (see {self.ask})"


def thresholds_of(
    transport: str, facts: Mapping[str, Any], library: str = "", launcher: str = ""
) -> Iterator[Threshold]:
    """What is documented of a transport, in the version that its name carries.

    `facts` are those of the run, `library` is what the worker called the library, with the device of an MPICH (runs of
    earlier versions don't tell it), and `launcher` what started its jobs.
    """
    known = _DEVICE.match(library)
    for row in rows_of("thresholds"):
        size = row.get("bytes") or (facts.get("network") or {}).get(row["fact"])
        device = row.get("device")
        if known and device is not None and not _begins_with(known[1], device):
            continue
        is_of_build = device is not None and known is None
        if size and _is_meant(transport, row["transports"], *row["versions"]):
            yield Threshold(
                name=row["name"],
                bytes=size,
                first_bytes=size - row.get("header_bytes", 0) + (row["changes"] == "longer"),
                is_of_machine="fact" in row,
                is_of_build=is_of_build,
                meaning=f"in builds with {device}, {row['meaning']}" if is_of_build else row["meaning"],
                ask=own_command(row["ask"], launcher),
                source=row["source"],
            )


def sources_of(thresholds: Iterable[Threshold]) -> tuple[str, ...]:
    """Where they are documented, each place once."""
    return tuple(dict.fromkeys(threshold.source for threshold in thresholds))


def own_command(command: str, launcher: str) -> str:
    """A command with its `{folder}` filled in: that of what starts the library's jobs, where it is known.

    On the PATH may be the same command of another library.
    """
    folder = PurePath(launcher).parent
    return command.replace("{folder}", f"{folder}/" if folder.is_absolute() else "")


def _begins_with(build: str, device: str) -> bool:
    """In whole words: a build for `ch4:ucx ofi` begins with `ch4` and with `ch4:ucx`."""
    return build == device or build.startswith((f"{device}:", f"{device} "))


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
