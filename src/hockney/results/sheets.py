"""Data sheets of machines: small TOML files with hardware, versions and figures, of the archive and of users.

`hockney share` writes one. A published sheet names its `source`; its figures have no interval of ours.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hockney.errors import UsageError, unknown
from hockney.suites import SOME, Options
from hockney.suites.toml_models import parsed, read_toml, validated
from hockney.units import format_ns, format_rate, parse_rate_bytes_per_s, parse_time_ns

FORMAT, VERSION = "hockney-sheet", 1
_FOLDER = Path(__file__).parents[1] / "archive" / "sheets"


class SheetValue(NamedTuple):
    """A time in ns, or a rate in bytes/s if `is_rate`."""

    is_rate: bool
    value: float

    def __str__(self) -> str:
        return format_rate(self.value) if self.is_rate else format_ns(self.value)


def _quantity(text: Any) -> SheetValue:
    is_rate = str(text).endswith("/s")
    if re.fullmatch(r"[\d.]*", str(text)):
        raise ValueError(f'{text} has no unit: write for example "437 ns" or "31.6 GB/s"')
    return SheetValue(is_rate, parsed(parse_rate_bytes_per_s if is_rate else parse_time_ns, str(text)))


_Value = Annotated[SheetValue, BeforeValidator(_quantity)]


class SheetFigure(BaseModel):
    """A time or rate of one point; its 95 % interval is `low` to `high`, None where it was published without one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    transport: str
    library: str = ""
    ranks: int = Field(default=2, ge=1)
    hosts: int = Field(default=1, ge=1)
    bytes: int = Field(default=0, ge=0)
    options: Options = Field(default_factory=dict)
    state: str = ""
    value: _Value
    low: _Value | None = None
    high: _Value | None = None

    @model_validator(mode="after")
    def _in_order(self) -> SheetFigure:
        if self.low and self.high and not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} is not between {self.low} and {self.high}, or they have different units")
        return self

    @property
    def worst(self) -> float:
        """The worse end of the interval: the highest time or the lowest rate; of a published figure the value."""
        return ((self.low if self.value.is_rate else self.high) or self.value).value

    @property
    def key(self) -> tuple[object, ...]:
        """What two machines are compared by: the point without the size if it is a rate, and without the library."""
        size = None if self.value.is_rate else self.bytes
        return self.pattern, tuple(sorted(self.options.items())), medium(self.transport), self.ranks, self.hosts, size


class MachineSheet(BaseModel):
    """A file. `program` is what measured it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str
    version: int
    title: str
    date: str
    program: str
    source: str = ""
    hardware: dict[str, Any] = Field(default_factory=dict)
    software: dict[str, Any] = Field(default_factory=dict)
    figure: Annotated[tuple[SheetFigure, ...], SOME]

    @property
    def family(self) -> str:
        """That of its CPU."""
        return cpu_family(self.hardware.get("cpu"))


def medium(transport: str) -> str:
    """`mpi@openmpi-4.1.4` -> `mpi`, `mpi@mpich-5.0.2:sync` -> `mpi:sync`: without the library."""
    return re.sub("@[^:]*", "", transport)


def cpu_family(model: str | None) -> str:
    """`AMD EPYC 9654 96-Core Processor` -> `AMD EPYC`: its words up to a number, two at most; "" if unknown."""
    words = re.sub(r"\((R|TM)\)|\b(CPU|Processor)\b|\S*\d.*", "", model or "").split()
    return " ".join(words[:2]) or model or ""


def read_sheet(path: Path) -> MachineSheet:
    """The sheet in a file. Raises UsageError for one that is none, of a newer version, or with errors."""
    content = read_toml(path, "data sheet")
    if content.get("format") != FORMAT:
        raise UsageError(
            f'{path} is not a data sheet (it has no format = "{FORMAT}"). To write one', argv=("hockney", "share")
        )
    if not isinstance(version := content.get("version"), int) or version > VERSION:
        raise UsageError(
            f"{path} is a data sheet of version {version}; this hockney reads version {VERSION}: update it"
        )
    return validated(content, str(path), MachineSheet)


@functools.cache
def archived() -> Mapping[str, MachineSheet]:
    """The sheets of the archive by name."""
    return {path.stem: read_sheet(path) for path in sorted(_FOLDER.glob("*.toml"))}


def find_sheet(word: str, folder: Path = Path()) -> MachineSheet:
    """A sheet of the archive by its name, or the file `word.toml` in that folder. Raises UsageError."""
    if word.endswith(".toml"):
        return read_sheet(folder / word)
    if word not in archived():
        raise unknown("data sheet", word, archived())
    return archived()[word]
