"""What libraries and kernels document of the sizes at which they change what they do."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from hockney.analysis.explain.data import rows_of
from hockney.errors import UsageError
from hockney.units import format_bytes, parse_bytes
from hockney.worker.mpi_transport import begins_with, by_sockets, split_library

_VERSION = re.compile(r"-(\d+(?:\.\d+)*)")
# What is read as a size: MPICH reads the digits alone, and a number that begins with 0 is octal to Open MPI.
_SIZE = re.compile(r"0|[1-9]\d*([KMG]B?)?", re.IGNORECASE)
_DIGITS_ONLY = "MPIR_CVAR_"
_OFF = ("0", "no", "off", "false")  # to MPICH, in any case
_NOT_SET = ("UCX_RNDV_THRESH", "auto")  # UCX's own default: the segments decide, as where the variable is not there


@dataclass(frozen=True)
class Setting:
    """A variable of the run's environment that sets a documented size; None where its value can't be read as one."""

    variable: str
    value: str
    bytes: int | None


@dataclass(frozen=True)
class Threshold:
    """A documented size, or what the run had `set` in its place; `see` is where to learn more.

    `default_bytes` is the documented one, None where another variable rules in its place. `first_bytes` is the shortest
    message that is sent in the other way. `is_of_machine` says that the size was read from the machine, where other
    sizes are the library's defaults; `is_of_build`, that only some builds have or use it and it is not known whether
    this is one. `unless` is what would rule in its place, "" for nothing.
    """

    name: str
    default_bytes: int | None
    first_bytes: int
    is_of_machine: bool
    is_of_build: bool
    meaning: str
    see: str
    source: str
    set: Setting | None = None
    unless: str = ""

    def lies_between(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether of these two sizes the greater one alone is sent in the other way."""
        return below_bytes < self.first_bytes <= above_bytes

    def is_size_of(self, below_bytes: int, above_bytes: int) -> bool:
        """Whether it is documented of one of these two sizes that the very next one is sent in the other way."""
        return self.first_bytes in (below_bytes, above_bytes + 1)

    @property
    def text(self) -> str:
        sizes = []
        if self.set is not None:
            by = "" if self.set.variable == self.name else f" ({self.set.variable})"
            sizes.append(f"which this run had set to {self.set.value}{by}")
        if self.default_bytes is not None:
            is_own = self.source.startswith("docs/")  # hockney's, which nobody can set
            whose = " here" if self.is_of_machine else "" if is_own else " by default"
            sizes.append(f"{format_bytes(self.default_bytes)}{whose}")
        unless = f", unless {self.unless}" if self.unless else ""
        return f"{self.name}, {'; '.join(sizes)}: {self.meaning}{unless} (see {self.see})"


def thresholds_of(
    transport: str, facts: Mapping[str, Any], library: str = "", launcher: str = ""
) -> Iterator[Threshold]:
    """What is documented of a transport, in the version that its name carries.

    `facts` are those of the run, `library` is what the worker called the library, with what of it carries the bytes
    (runs of earlier versions don't tell it), and `launcher` what started its jobs. A size that the run had set to
    what can't be read is not known, so it is none.
    """
    for row in _rows(transport, facts, library):
        default_bytes = row.get("bytes") or (facts.get("network") or {}).get(row["fact"])
        setting = _setting(row, facts)
        size_bytes = default_bytes if setting is None else setting.bytes
        device = row.get("device")
        is_of_build = device is not None and split_library(library)[1] is None
        if not default_bytes or not size_bytes:
            continue
        told = Threshold(
            name=row["name"],
            default_bytes=default_bytes,
            first_bytes=size_bytes - row.get("header_bytes", 0) + (row["changes"] == "longer"),
            is_of_machine="fact" in row,
            is_of_build=is_of_build,
            meaning=f"with {device}, {row['meaning']}" if is_of_build else row["meaning"],
            see=_see(row, launcher),
            source=row["source"],
            set=setting,
            unless=row.get("unless", ""),
        )
        yield told if setting is None else _ruled(told, row, setting)


def unreadable(transport: str, facts: Mapping[str, Any], library: str = "") -> Iterator[tuple[str, Setting]]:
    """Documented sizes of a transport by name that the run had set to what is not read as a size."""
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


def _ruled(threshold: Threshold, row: Mapping[str, Any], setting: Setting) -> Threshold:
    """What is told where another variable rules: neither what it overrules, nor that it might."""
    source = row.get("rulers", {}).get(setting.variable)
    if source is None:
        return threshold
    name, build = setting.variable, f"with {row['device']}, " if threshold.is_of_build else ""
    meaning = f"{build}from there on a message is announced first"
    return replace(threshold, name=name, default_bytes=None, meaning=meaning, see=source, source=source, unless="")


def _bytes_of(variable: str, value: str) -> int | None:
    is_size = value.isdecimal() if variable.startswith(_DIGITS_ONLY) else _SIZE.fullmatch(value)
    try:
        return parse_bytes(value) if is_size else None
    except UsageError:  # longer than any message
        return None


def _see(row: Mapping[str, Any], launcher: str) -> str:
    """How to ask the library at hand, where its program is found here; else the documentation."""
    command = own_command(row["ask"], launcher)
    source: str = row["source"]
    is_told = source.startswith("docs/") or shutil.which(command.partition(" ")[0]) is not None
    return command if is_told else source


def sources_of(thresholds: Iterable[Threshold]) -> tuple[str, ...]:
    """Where they are documented, each place once."""
    return tuple(dict.fromkeys(threshold.source for threshold in thresholds))


def own_command(command: str, launcher: str) -> str:
    """A command with its `{folder}` filled in: that of what starts the library's jobs, where it is known.

    On the PATH may be the same command of another library.
    """
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
