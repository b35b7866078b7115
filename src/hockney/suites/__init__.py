"""Suites: TOML files that select the points to measure. Those in this folder come with hockney; users write their own.

A suite is data only: patterns, sizes, ranks, options, and its time limit. A file with errors is refused with all of
them, each with its place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
    WrapValidator,
)

from hockney.errors import unknown
from hockney.suites.toml_models import FROM_FILE, Errors, listed, parsed, read_model, some, texts
from hockney.units import (
    DURATION_MAX_S,
    LAUNCHES_MAX,
    RANKS_MAX,
    START_LIMIT_S,
    parse_bytes,
    parse_duration_s,
    parse_fraction,
    parse_sizes,
)

_FOLDER = Path(__file__).parent
_CACHE_SHARE = re.compile(r"(?:([1-9]\d{0,3})\*)?L([1-9])(?:/([1-9]\d{0,3}))?")


@dataclass(frozen=True)
class CacheShare:
    """A size that depends on the machine: a multiple or a fraction of the cache of a level. `L1/2`, `4*L3`."""

    level: int
    times: int = 1
    over: int = 1

    def __str__(self) -> str:
        times = f"{self.times}*" if self.times > 1 else ""
        return f"{times}L{self.level}" + (f"/{self.over}" if self.over > 1 else "")

    def resolve(self, caches: Mapping[int, int], grain_bytes: int) -> int | None:
        """The size in bytes, down to a multiple of grain_bytes; None where that cache's size is not known."""
        if self.level not in caches:
            return None
        grain = max(1, grain_bytes)
        return max(grain, caches[self.level] * self.times // self.over // grain * grain)


def _cache_share(value: Any) -> CacheShare | None:
    match = _CACHE_SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    return CacheShare(int(match[2]), int(match[1] or 1), int(match[3] or 1)) if match else None


def read_sizes(value: Any) -> Any:
    """Sizes as files hold them: a number, words as `--bytes` takes them, or a list of both."""
    if isinstance(value, str) and _cache_share(value) is None:
        return parsed(parse_sizes, value)
    if not isinstance(value, int | list | str):
        return value
    items = value if isinstance(value, list) else [value]
    shares = [share for item in items for share in [_cache_share(item)] if share is not None]
    numbers = [parsed(parse_bytes, str(item)) for item in items if _cache_share(item) is None]
    return (*sorted(set(numbers)), *dict.fromkeys(shares))


def _read_fraction(value: Any, info: ValidationInfo) -> Any:
    """A file's number alone may be a part or per cent, so there it needs its unit, as on the command line."""
    return parsed(parse_fraction, str(value)) if isinstance(value, str) or info.context == FROM_FILE else value


SOME = AfterValidator(some)
Sizes = Annotated[tuple[int | CacheShare, ...], BeforeValidator(read_sizes), SOME]
_Number = Annotated[int, Field(ge=1, le=RANKS_MAX, strict=True)]
Ranks = Annotated[  # () for "cpus": as many as there are
    tuple[_Number, ...],
    BeforeValidator(listed),
    SOME,
    WrapValidator(lambda value, check: () if value == "cpus" else check(value)),
]
Names = Annotated[tuple[str, ...], BeforeValidator(listed)]
Seconds = Annotated[
    float,
    Field(strict=True, gt=0, le=DURATION_MAX_S, allow_inf_nan=False),
    BeforeValidator(lambda v: parsed(parse_duration_s, v) if isinstance(v, str) else v),
]
Options = Annotated[dict[str, str], BeforeValidator(texts)]
Fraction = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False), BeforeValidator(_read_fraction)]
Launches = Annotated[int, Field(ge=1, le=LAUNCHES_MAX, strict=True)]


class SuiteSeries(BaseModel):
    """One curve: a pattern over sizes, for each number of ranks. `refine` adds sizes where the curve bends.

    Ranks and sizes that are not given default to the pattern's: some patterns do not run on two, or do not take 8 B.

    An option may have several values, for a curve each: `0,100`; a file's list is that text.

    `pairs = "all"`: a curve for every source and target among the ranks; for a ring, for every distance; for rounds,
    for every round. `pairs = "from 0"`: from rank 0 to each other one.

    `ranks = "cpus"`: one per CPU, on several hosts one per host or slot, unless the user gives a number.

    `basic`: it is in no table; predictions need it. It has two ranks, and is not measured on a model.

    `first`: its points are measured before the others, and more often.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    ranks: Ranks = (2,)
    bytes: Sizes = (8,)
    options: Options = Field(default_factory=dict)
    transports: Names = ()  # empty: the suite's
    refine: StrictBool = False
    pairs: Literal["all", "from 0"] | None = None
    basic: StrictBool = False
    first: StrictBool = False


@dataclass(frozen=True)
class Limits:
    """How precisely and how long a run measures, and how long it waits.

    `time_s`: the budget for measuring. `precision`: the requested half-width of each interval, a fraction. `launches`:
    how often each job starts, 0: as often as an interval over launches needs, where the time is enough; else once.
    `more_launches`: points that are not precise after them get more, time permitting. `timeout_s`: the limit of a
    measurement, `limit_adapts`: or a shorter one that follows from measurements before it; `start_limit_s`: of a job's
    start.
    """

    time_s: float = 120.0
    precision: float = 0.01
    launches: int = 1
    more_launches: bool = False
    timeout_s: int = 60
    limit_adapts: bool = False
    start_limit_s: int = START_LIMIT_S

    @classmethod
    def of_plan(cls, stored: Mapping[str, Any]) -> Limits:
        """Those of a stored plan, which may have been stored before a limit came in that has a default."""
        return cls(**{each.name: stored[each.name] for each in fields(cls) if each.name in stored})


class Suite(BaseModel):
    """A whole suite. `time_s` is the budget for measuring; `precision` the half-width asked of each interval.

    `launches` None: as many as an interval over launches needs, where the time is enough for them; else one.
    `oversubscribe`: points with more ranks than CPUs are measured too, as times of the scheduler.
    `published_ranks`: the numbers of ranks are those of a report's tables; the user's number is the largest to measure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str
    title: str
    transports: Names = ("shm", "mpi")
    precision: Fraction = 0.01
    time_s: Seconds = Field(default=120.0, alias="time")
    launches: Launches | None = 1
    oversubscribe: StrictBool = False
    published_ranks: StrictBool = False
    series: Annotated[tuple[SuiteSeries, ...], SOME]

    def limits(self, **asked: Any) -> Limits:
        """Its limits, with those in their place that are not None. The limit of a measurement follows from the time."""
        given = {name: value for name, value in asked.items() if value is not None}
        limits = Limits(**{"time_s": self.time_s, "precision": self.precision, "launches": self.launches or 0, **given})
        if "timeout_s" not in given:
            return replace(limits, timeout_s=round(min(max(20.0, limits.time_s), 60.0)), limit_adapts=True)
        # Loading a library's programs takes seconds, with any limit of a measurement.
        return replace(limits, start_limit_s=max(10, limits.timeout_s))


def pattern_suite(
    *words: str, with_all_ranks: Collection[str] = (), benchmarks: Mapping[str, SuiteSeries] | None = None
) -> Suite:
    """Patterns as a suite: all sizes, more at the bends of a curve, launches as time allows, a minute for each.

    `with_all_ranks`: patterns with a rank on each host at least. `benchmarks`: the series of words that name benchmarks
    of MPI; without patterns only MPIs are measured.
    """
    chosen, benchmarks = [], benchmarks or {}
    for word in dict.fromkeys(words):
        table = {"pattern": word, "bytes": "0:4M", "refine": True}
        one = benchmarks[word] if word in benchmarks else SuiteSeries.model_validate(table)
        is_spread = one.pattern in with_all_ranks and "ranks" not in one.model_fields_set
        chosen.append(one.model_copy(update={"ranks": ()}) if is_spread else one)
    name = ",".join(dict.fromkeys(words))
    suite = Suite(name=name, title=name, series=tuple(chosen), time_s=60.0 * len(chosen), launches=None)
    return suite.model_copy(update={"transports": ("mpi",)} if benchmarks.keys() == {*words} else {})


def builtin_names() -> list[str]:
    """Names of the suites that come with hockney, and of the tools whose benchmarks are one."""
    return sorted(path.stem for path in (*_FOLDER.glob("*.toml"), *_FOLDER.glob("tools/*.toml")))


def load_suite(name_or_path: str, check: Callable[[Suite], Errors] | None = None) -> Suite:
    """A suite by its name, or from a file whose name ends in .toml; tools.load_named also knows those of tools.

    `check` knows the words of the file, which this module does not. Raises UsageError: no such suite or file, or all
    that is wrong in it, each with its place in the file.
    """
    if name_or_path in builtin_names():
        return read_model(_FOLDER / f"{name_or_path}.toml", "suite", Suite, check)
    if not name_or_path.endswith(".toml"):
        raise unknown("suite", name_or_path, builtin_names())

    def check_all(suite: Suite) -> Errors:
        wrong = check(suite) if check is not None else []
        if suite.name in builtin_names():  # the suite's name selects the tables of a run
            wrong.insert(0, ("name", f"'{suite.name}' is a suite that comes with hockney: give this one another name"))
        return wrong

    return read_model(Path(name_or_path), "suite", Suite, check_all)
