"""The benchmarks of OSU and IMB by their names: which series of hockney runs the same definition, and what differs.

Each tool is a file in this folder, with groups of its benchmarks and a row for each name. A collective is named once,
among the `operations` of a group: it has a row for each of the file's `forms`, or of those that its group names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hockney.errors import UsageError, unknown
from hockney.suites import Fraction, Seconds, Sizes, Suite, SuiteSeries, load_suite
from hockney.suites.toml_models import Errors, read_model

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

    def meant(self, word: str) -> dict[str, NamedSeries]:
        """The benchmarks of a name, a part or the whole tool, by their whole names; none of other words."""
        one, low = self.benchmark(word), word.lower()
        every = low == self.name
        return {name: row for name, row in self.benchmarks.items() if every or row is one or row.part.lower() == low}


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


@functools.cache
def benchmarks_in(words: str) -> Mapping[str, NamedSeries]:
    """The benchmarks that a run of these words measures, `osu_bw,osu_bibw` or `IMB-RMA`, by their whole names."""
    meant = (tool.meant(word.strip()) for word in words.split(",") for tool in tools().values())
    return {name: row for rows in meant for name, row in rows.items()}


def name_of(rows: Mapping[str, NamedSeries], pattern: str, transport: str, options: Mapping[str, str]) -> str:
    """`osu_bw`: which of these benchmarks a curve with such options is of; empty for none.

    `osu_put_latency without window=1` where an option is left out. A row has no option with the pattern's own value; of
    several values of `window` that is the last.
    """
    differs: dict[str, int] = {}
    base, _, variant = re.sub("@[^:]*", "", transport).partition(":")
    for name, row in ((name, row) for name, row in rows.items() if row.pattern == pattern):
        bases, _, variants = zip(*(word.partition(":") for word in row.transports or ("mpi",)), strict=True)
        others = [options.get(key) not in values.split(",") for key, values in row.options.items()]
        others += [key not in row.options for key in options]
        differs[name] = sum(others) + (base not in bases) + (variant not in variants)
    return ", ".join(_named(name, rows[name], options) for name in differs if differs[name] == min(differs.values()))


def _named(name: str, row: NamedSeries, options: Mapping[str, str]) -> str:
    gone = {key: values.split(",") for key, values in row.options.items() if key not in options}
    without = [f"{key}={values[0]}" for key, values in gone.items() if len(values) == 1]
    own = gone.get("window", [])[1:]
    return name + (f" without {' '.join(without)}" if without else "") + (f", window={own[-1]}" if own else "")


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


def load_named(name_or_path: str, check: Callable[[Suite], Errors] | None = None) -> Suite:
    """As load_suite; also that of a tool."""
    is_tool = name_or_path in (path.stem for path in _FOLDER.glob("*.toml"))
    return (tool_suite(name_or_path) if is_tool else None) or load_suite(name_or_path, check)
