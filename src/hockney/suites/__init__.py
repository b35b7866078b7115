"""Suites: TOML files that say what to measure. Those in this folder come with hockney; users write their own.

A suite is data only: patterns, sizes, ranks, options, and how long it may take. A file with errors is refused with all
of them at once, each with its place in the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator

from hockney.errors import UsageError, unknown
from hockney.units import parse_bytes, parse_duration_s, parse_fraction, parse_sizes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent
_CACHE_SHARE = re.compile(r"(?:([1-9]\d{0,3})\*)?L([1-9])(?:/([1-9]\d{0,3}))?")


@dataclass(frozen=True)
class CacheShare:
    """A size that depends on the machine: so many times the cache of a level, divided by so much. `L1/2`, `4*L3`."""

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


def _sizes(value: Any) -> Any:
    if isinstance(value, str) and _cache_share(value) is None:
        return _said(parse_sizes, value)
    if isinstance(value, list | str):
        items = value if isinstance(value, list) else [value]
        shares = [share for item in items for share in [_cache_share(item)] if share is not None]
        numbers = {_said(parse_bytes, str(item)) for item in items if _cache_share(item) is None}
        return (*sorted(numbers), *dict.fromkeys(shares))
    return (_said(parse_bytes, str(value)),) if isinstance(value, int) else value


def _said(parse: Any, text: str) -> Any:
    """Our parsers raise UsageError; pydantic gathers ValueErrors."""
    try:
        return parse(text)
    except UsageError as error:
        raise ValueError(str(error)) from error


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, (int, str)) else value


def _texts(value: Any) -> Any:
    return {name: str(item) for name, item in value.items()} if isinstance(value, dict) else value


def _some(value: tuple[Any, ...]) -> tuple[Any, ...]:
    if not value:
        raise ValueError("there is not one")
    return value


Sizes = Annotated[tuple[int | CacheShare, ...], BeforeValidator(_sizes), AfterValidator(_some)]
_Number = Annotated[int, Field(ge=1, le=4096, strict=True)]
Ranks = Annotated[  # () for "cpus": as many as there are
    tuple[_Number, ...],
    BeforeValidator(_listed),
    AfterValidator(_some),
    WrapValidator(lambda value, check: () if value == "cpus" else check(value)),
]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Seconds = Annotated[float, BeforeValidator(lambda v: _said(parse_duration_s, v) if isinstance(v, str) else v)]
Fraction = Annotated[float, BeforeValidator(lambda v: _said(parse_fraction, v) if isinstance(v, str) else v)]


class Series(BaseModel):
    """One curve: a pattern over sizes, for each number of ranks. `refine` adds sizes where the curve bends.

    `pairs = "all"`: a curve for every source and target among the ranks; of a ring, for every distance; of rounds, for
    every round. `ranks = "cpus"`: as many as there are CPUs, unless the user says how many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    ranks: Ranks = (2,)
    bytes: Sizes = (8,)
    options: Annotated[dict[str, str], BeforeValidator(_texts)] = Field(default_factory=dict)
    transports: Names = ()  # empty: the suite's
    refine: bool = False
    pairs: Literal["all"] | None = None


class Suite(BaseModel):
    """A whole suite. `time_s` is the budget for measuring; `precision` the half-width asked of each interval."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str
    title: str
    transports: Names = ("shm", "mpi")
    precision: Fraction = Field(default=0.01, gt=0, lt=1)
    time_s: Seconds = Field(default=120.0, gt=0, allow_inf_nan=False, alias="time")
    launches: int = Field(default=1, ge=1, le=1000)
    series: Annotated[tuple[Series, ...], AfterValidator(_some)]


def builtin_names() -> list[str]:
    """Names of the suites that come with hockney."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


Check = Callable[[dict[str, Any]], list[tuple[str, str]]]


def load_suite(name_or_path: str, check: Check | None = None) -> Suite:
    """A suite by its name, or from a file whose name ends in .toml.

    `check` looks at the file's words, of which this module knows nothing, and gives (place, message) for each that is
    wrong. Raises UsageError: no such suite or file, or all that is wrong in it, each with its path in the file.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
    elif name_or_path in builtin_names():
        path = _FOLDER / f"{name_or_path}.toml"
    else:
        raise unknown("suite", name_or_path, builtin_names())
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the suite {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a suite: it is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    wrong = check(content) if check is not None else []
    try:
        suite = Suite.model_validate(content)
    except ValidationError as error:
        wrong = _form_errors(error) + wrong
    if wrong:
        lines = [f"{path} has {len(wrong)} error{'s' if len(wrong) > 1 else ''}:"]
        raise UsageError("\n".join([*lines, *(f"  {place or 'the file'}: {message}" for place, message in wrong)]))
    return suite


def _form_errors(error: ValidationError) -> list[tuple[str, str]]:
    """The findings of pydantic in our words, with their places: `series[1].bytes`."""
    wrong = []
    for item in error.errors():
        *above, key = item["loc"]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]).lstrip(".")
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            known = Series.model_fields if above else {**Suite.model_fields, "time": None}
            message = str(unknown("key", str(key), [name for name in known if name != "time_s"]))
        elif item["type"] == "missing":
            message = "it must be given"
        wrong.append((place, message))
    return wrong
