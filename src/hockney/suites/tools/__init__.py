"""The benchmarks of OSU and IMB by their names: which series of hockney runs the same definition, and what differs.

Each tool is a file in this folder, with groups of its benchmarks and a row for each name. A collective is named once,
among the `operations` of a group: it has a row for each of the file's `forms`, or of those that its group names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hockney.errors import UsageError, unknown
from hockney.suites import Fraction, Seconds, Sizes, Suite, SuiteSeries
from hockney.suites.toml_models import read_model

_FOLDER = Path(__file__).parent
_OWN = ("forms", "operations", "benchmarks")  # keys of a group; all others are those of each of its rows


class NamedSeries(SuiteSeries):
    """The series that runs a benchmark; its sizes are the benchmark's own.

    `part`: the program of IMB, or what the benchmarks of OSU have in common. `differs`: in a few words, empty for the
    same definition. `title`: its name in the tool's output, where that is another.
    """

    part: str = ""
    differs: str = ""
    title: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that measures it."""
        ranks = ["-n", ",".join(map(str, self.ranks))] if self.ranks != (2,) else []
        options = [word for pair in self.options.items() for word in ("-o", "=".join(pair))]
        return ("hockney", "run", self.pattern, "-t", ",".join(self.transports) or "mpi", *ranks, *options)


class Tool(BaseModel):
    """A tool. As a suite its benchmarks have only `sizes`, `precision`, and `time_each_s` of time for each.

    `benchmarks`: all that hockney has, by their whole names: `osu_bw`, `IMB-MPI1:PingPong`. `missing`: why it has not
    the others; a name there may be what the names of several begin with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str
    title: str
    sizes: Sizes
    precision: Fraction
    time_each_s: Seconds = Field(alias="time_each")
    benchmarks: dict[str, NamedSeries]
    missing: dict[str, str]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, table: Any) -> Any:
        """Gives each row what its form and its group have; a row's own words come last."""
        forms, rows = table["forms"], {}
        for group in table["group"]:
            above, made = {key: group[key] for key in group if key not in _OWN}, {}
            for form in (forms[name] for name in group.get("forms", forms)):
                for operation, word in group.get("operations", {}).items():
                    texts = {key: form[key].format(operation, word) for key in ("part", "name", "title") if key in form}
                    made[texts["name"]] = {"pattern": operation, **form, **texts}
            own = group.get("benchmarks", {})
            for name in {**made, **own}:
                tables = made.get(name, {}), above, own.get(name, {})
                row = {key: value for each in tables for key, value in each.items() if key != "name"}
                row["options"] = {key: value for each in tables for key, value in each.get("options", {}).items()}
                rows[name if name.startswith("osu_") else f"{row['part']}:{name}"] = row
        parts = [*dict.fromkeys(row["part"] for row in rows.values())]
        known = dict(sorted(rows.items(), key=lambda item: parts.index(item[1]["part"])))
        missing = {name: why for why, names in table["missing"].items() for name in names}
        own_keys = {key: table[key] for key in table if key not in ("forms", "group")}
        return {**own_keys, "benchmarks": known, "missing": missing}

    @property
    def words(self) -> dict[str, str]:
        """The names of its benchmarks, also without their programs (`IMB:PingPong`), with the whole ones; its parts."""
        of_first = {re.sub("-.*:", ":", name): name for name in reversed(self.benchmarks)}
        return {row.part: "" for row in self.benchmarks.values()} | of_first | {name: name for name in self.benchmarks}

    def names(self, word: str) -> bool:
        """Whether a word can only mean one of its benchmarks or parts."""
        return word.lower().startswith((f"{self.name}_", f"{self.name}-", f"{self.name}:"))

    def benchmark(self, word: str) -> NamedSeries | None:
        """The benchmark of a name, in any case; of several programs' the first."""
        name = self.words.get(word) or {each.lower(): name for each, name in self.words.items()}.get(word.lower())
        return self.benchmarks[name] if name else None

    def several(self, word: str) -> list[str]:
        """The benchmarks of a name without its program, if there are several, and none is of IMB-MPI1."""
        short = {name: re.sub("-.*:", ":", name) for name in self.benchmarks}
        alike = [name for name in short if short[name] == word]
        alike = alike or [name for name in short if short[name].lower() == word.lower()]
        return alike if len(alike) > 1 and "MPI1" not in "".join(alike) else []


@functools.cache
def tools() -> Mapping[str, Tool]:
    """Both tools, by the names of their suites."""
    return {path.stem: read_model(path, "list of benchmarks", Tool) for path in sorted(_FOLDER.glob("*.toml"))}


def benchmark_of(word: str) -> NamedSeries | None:
    """The benchmark of that name; None if it names none. Raises UsageError for one that hockney has not."""
    for tool in (tool for tool in tools().values() if tool.names(word)):
        if several := tool.several(word):
            raise UsageError(f"{word} is {' or '.join(several)}: write one of them")
        if found := tool.benchmark(word):
            return found
        for name, why in tool.missing.items():
            if re.match(f"{name}([:_]|$)", word, re.IGNORECASE):
                raise UsageError(f"{word} is not in hockney: it {why}")
        known = [*tool.words, *tool.missing]
        raise unknown(f"benchmark of {tool.title}", word, known, listed_by=("hockney", "list", tool.name))
    return None


def tool_suite(word: str) -> Suite | None:
    """All benchmarks of a tool, or of a part, with few sizes; None for another word."""
    for tool in tools().values():
        rows = [row for row in tool.benchmarks.values() if word.lower() in (tool.name, row.part.lower())]
        if rows:
            few = ({"bytes": tuple(size for size in row.bytes if size in tool.sizes) or row.bytes} for row in rows)
            return Suite(
                name=word,
                title=tool.title,
                transports=("mpi",),
                precision=tool.precision,
                time_s=tool.time_each_s * len(rows),
                series=tuple(row.model_copy(update=sizes) for row, sizes in zip(rows, few, strict=True)),
            )
    return None
