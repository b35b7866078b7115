"""The benchmarks of OSU and IMB by their names: which series of hockney runs the same definition, and what differs.

Each tool is a file in this folder, with a table for each group of its benchmarks and a row for each name.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hockney.errors import UsageError, unknown
from hockney.suites import Fraction, Names, Seconds, Sizes, Suite, SuiteSeries
from hockney.suites.toml_models import read_model

_FOLDER = Path(__file__).parent
_SHARED = ("ranks", "transports", "bytes")  # keys of a group that hold for each of its rows without them


class NamedSeries(SuiteSeries):
    """The series that runs a benchmark; its sizes are the benchmark's own.

    `differs`: in a few words, empty for the same definition. `title`: its name in the tool's output, where that is
    another.
    """

    differs: str = ""
    title: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that measures it."""
        ranks = ["-n", ",".join(map(str, self.ranks))] if self.ranks != (2,) else []
        options = [word for pair in self.options.items() for word in ("-o", "=".join(pair))]
        return ("hockney", "run", self.pattern, "-t", ",".join(self.transports) or "mpi", *ranks, *options)


class ToolGroup(BaseModel):
    """Benchmarks with something in common. `missing`: those that hockney has not, by the reason."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    benchmarks: dict[str, NamedSeries] = Field(default_factory=dict)
    missing: dict[str, Names] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _share(cls, table: Any) -> Any:
        """Gives the rows what stands above them; a row's own options are added to the group's."""
        shared = {key: table[key] for key in _SHARED if key in table}
        options, rows = table.get("options", {}), table.get("benchmarks", {})
        rows = {name: {**shared, **row, "options": {**options, **row.get("options", {})}} for name, row in rows.items()}
        return {**{key: table[key] for key in table if key not in (*_SHARED, "options")}, "benchmarks": rows}


class Tool(BaseModel):
    """A tool. As a suite its benchmarks have only `sizes`, `precision`, and `time_each_s` of time for each."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str
    title: str
    sizes: Sizes
    precision: Fraction
    time_each_s: Seconds = Field(alias="time_each")
    group: tuple[ToolGroup, ...]

    @property
    def benchmarks(self) -> dict[str, NamedSeries]:
        """All that hockney has, by their whole names: `osu_bw`, `IMB-MPI1:PingPong`."""
        return {self._whole(group, name): row for group in self.group for name, row in group.benchmarks.items()}

    @property
    def missing(self) -> dict[str, str]:
        """Why hockney has not the others, by their whole names."""
        reasons = ((group, why, names) for group in self.group for why, names in group.missing.items())
        return {self._whole(group, name): why for group, why, names in reasons for name in names}

    def _whole(self, group: ToolGroup, name: str) -> str:
        """A group without names is missing as a whole."""
        return name if name.startswith(f"{self.name}_") else f"{group.name}:{name}".rstrip(":")

    def names(self, word: str) -> bool:
        """Whether a word can only mean one of its benchmarks or groups."""
        return word.lower().startswith((f"{self.name}_", f"{self.name}-", f"{self.name}:"))

    def whole_name(self, word: str) -> str | None:
        """`IMB:pingpong` -> `IMB-MPI1:PingPong`: cases may differ, and the first program with that name is meant."""
        is_short = word.lower().startswith(f"{self.name}:")
        word = word.rpartition(":")[2] if is_short else word
        known = ((name.rpartition(":")[2] if is_short else name, name) for name in (*self.benchmarks, *self.missing))
        alike = [(own != word, name) for own, name in known if own.lower() == word.lower()]
        return min(alike, key=lambda each: each[0])[1] if alike else None


@functools.cache
def tools() -> Mapping[str, Tool]:
    """Both tools, by the names of their suites."""
    return {path.stem: read_model(path, "list of benchmarks", Tool) for path in sorted(_FOLDER.glob("*.toml"))}


def benchmark_of(word: str) -> NamedSeries | None:
    """The benchmark of that name; None if it names none. Raises UsageError for one that hockney has not."""
    tool = next((tool for tool in tools().values() if tool.names(word)), None)
    if tool is None:
        return None
    name = tool.whole_name(word)
    if name is None:
        known = [*tool.benchmarks, *tool.missing, *(group.name for group in tool.group)]
        raise unknown(f"benchmark of {tool.title}", word, known, listed_by=("hockney", "list", tool.name))
    if name in tool.missing:
        raise UsageError(f"{name} is not in hockney: it {tool.missing[name]}")
    return tool.benchmarks[name]


def tool_suite(word: str) -> Suite | None:
    """All benchmarks of a tool, or of a group, with few sizes; None for another word."""
    for tool in tools().values():
        groups = [group for group in tool.group if word.lower() in (tool.name, group.name.lower())]
        if rows := [row for group in groups for row in group.benchmarks.values()]:
            return Suite(
                name=word,
                title=tool.title,
                transports=("mpi",),
                precision=tool.precision,
                time_s=tool.time_each_s * len(rows),
                series=tuple(
                    row.model_copy(
                        update={"bytes": tuple(size for size in row.bytes if size in tool.sizes) or row.bytes}
                    )
                    for row in rows
                ),
            )
    return None
