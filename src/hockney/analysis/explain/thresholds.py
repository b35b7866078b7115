"""The message sizes at which libraries and kernels document that they change what they do: thresholds.toml."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from hockney.analysis.explain.data import rows_of
from hockney.errors import UsageError
from hockney.units import parse_bytes
from hockney.worker.mpi_transport import begins_with, by_sockets, split_library

_VERSION = re.compile(r"-(\d+(?:\.\d+)*)")
# MPICH reads only the digits of a size, and a number that begins with 0 is octal to Open MPI.
_SIZE = re.compile(r"0|[1-9]\d*([KMG]B?)?", re.IGNORECASE)
_DIGITS_ONLY = "MPIR_CVAR_"
_OFF = ("0", "no", "off", "false")  # to MPICH, in any case
_NOT_SET = ("UCX_RNDV_THRESH", "auto")  # the default of UCX: the segment sizes decide


@dataclass(frozen=True)
class Setting:
    """A variable of the run's environment that sets a documented size; `bytes` is None where it is no size."""

    variable: str
    value: str
    bytes: int | None


@dataclass(frozen=True)
class Threshold:
    """A documented size, or what the run `set` instead; `see` is where to learn more.

    `default_bytes` is None where another variable rules. `first_bytes` is the shortest message after the change.
    `is_of_build`: only some builds have it, and the run does not say which this is. `unless` is what would override it.
    """

    name: str
    default_bytes: int | None
    first_bytes: int
    is_of_build: bool
    meaning: str
    see: str
    source: str
    set: Setting | None = None
    unless: str = ""

    def lies_between(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether of two sizes only the greater one is sent in the other way."""
        return below_bytes < self.first_bytes <= above_bytes

    def is_size_of(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether one of two sizes is the last before the documented change."""
        return self.first_bytes in (below_bytes, above_bytes + 1)

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of a finding that it is the cause of."""
        facts: dict[str, Any] = {"threshold": self.name, "meaning": self.meaning, "see": self.see}
        if self.default_bytes is not None:
            facts["default_bytes"] = self.default_bytes
        if self.set is not None:
            facts["set_value"] = f"{self.set.variable}={self.set.value}"
        return facts | ({"unless": self.unless} if self.unless else {})


def thresholds_of(
    transport: str, facts: Mapping[str, Any], library: str = "", launcher: str = ""
) -> Iterator[Threshold]:
    """What is documented of a transport, in the version that its name carries.

    `facts` are the run's, `library` is what the worker called the library, with what carries the bytes (earlier
    versions did not store it), `launcher` started its jobs. A size that the run set to something else is left out.
    """
    for row in _rows(transport, facts, library):
        default_bytes = row.get("bytes") or (facts.get("network") or {}).get(row["fact"])
        setting = _setting(row, facts)
        size_bytes = default_bytes if setting is None else setting.bytes
        device = row.get("device")
        is_of_build = device is not None and split_library(library)[1] is None
        if not default_bytes or not size_bytes:
            continue
        threshold = Threshold(
            name=row["name"],
            default_bytes=default_bytes,
            first_bytes=size_bytes - row.get("header_bytes", 0) + (row["changes"] == "longer"),
            is_of_build=is_of_build,
            meaning=f"with {device}: {row['meaning']}" if is_of_build else row["meaning"],
            see=_see(row, launcher),
            source=row["source"],
            set=setting,
            unless=row.get("unless", ""),
        )
        ruler = None if setting is None else row.get("rulers", {}).get(setting.variable)
        if setting is not None and ruler is not None:  # another variable rules: it is named, and nothing that it rules
            meaning = f"with {device}: rendezvous threshold" if is_of_build else "rendezvous threshold"
            more = {"name": setting.variable, "meaning": meaning, "see": ruler, "source": ruler}
            threshold = replace(threshold, default_bytes=None, unless="", **more)
        yield threshold


def unreadable(transport: str, facts: Mapping[str, Any], library: str = "") -> Iterator[tuple[str, Setting]]:
    """The names of documented sizes that the run set to something that is no size, with that setting."""
    for row in _rows(transport, facts, library):
        setting = _setting(row, facts)
        if setting is not None and setting.bytes is None:
            yield row["name"], setting


def _rows(transport: str, facts: Mapping[str, Any], library: str) -> Iterator[dict[str, Any]]:
    environment = facts.get("environment") or {}
    _, carrier = split_library(library)
    through = {True: "sockets", False: "memory", None: None}[by_sockets(library, environment)]
    for row in rows_of("thresholds"):
        device = row.get("device")
        is_other = carrier is not None and device is not None and not begins_with(carrier, device)
        is_other |= row.get("through", through) != through
        is_off = environment.get(row.get("switch", ""), "").lower() in _OFF
        if not is_other and not is_off and _is_meant(transport, row["transports"], *row["versions"]):
            yield row


def _setting(row: Mapping[str, Any], facts: Mapping[str, Any]) -> Setting | None:
    """The first of the variables that set a size which the run's environment had."""
    environment = facts.get("environment") or {}
    for variable in row.get("set_by", ()):
        value: str | None = environment.get(variable)
        if value is not None and (variable, value.lower()) != _NOT_SET:
            return Setting(variable, value, _bytes_of(variable, value))
    return None


def _bytes_of(variable: str, value: str) -> int | None:
    is_size = value.isdecimal() if variable.startswith(_DIGITS_ONLY) else _SIZE.fullmatch(value)
    try:
        return parse_bytes(value) if is_size else None
    except UsageError:  # longer than any message
        return None


def _see(row: Mapping[str, Any], launcher: str) -> str:
    """The command that asks the library, where its program is installed here; else the documentation."""
    command = own_command(row["ask"], launcher)
    source: str = row["source"]
    is_here = source.startswith("docs/") or shutil.which(command.partition(" ")[0]) is not None
    return command if is_here else source


def own_command(command: str, launcher: str) -> str:
    """A command with its `{folder}` filled in: that of the library's launcher, as the PATH may have another library."""
    folder = PurePath(launcher).parent
    return command.replace("{folder}", f"{folder}/" if folder.is_absolute() else "")


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
