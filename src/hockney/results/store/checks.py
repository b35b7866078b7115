"""What a stored row must be like: each column's type and range, and the form of what is stored as JSON.

A row that is not so was damaged, by a disk or by an editor. It is named and left out; everything else can be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.units import RANKS_MAX

_NS_MAX = 1e18  # 31 years
_UNIX_S_MAX = 1e11  # the year 5138
_COUNT_MAX = (1 << 63) - 1
_NONE = type(None)


class DamagedRow(Exception):
    """A row that can't be used; `column` is the first that is wrong."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True)
class Check:
    """The types of a column's values, the range of its numbers, and what its texts match as a whole."""

    types: frozenset[type]
    low: float | None = None
    high: float | None = None
    pattern: re.Pattern[str] | None = None

    def holds(self, values: Iterable[object]) -> bool:
        """Whether all are so. Fast for hundreds of thousands of them: each step is one loop in C."""
        distinct = values if isinstance(values, list) else list(values)
        if not set(map(type, distinct)) <= self.types:
            return False
        known: list[Any] = [value for value in distinct if value is not None]
        if not known:
            return True
        if self.low is not None and self.high is not None:
            return bool(min(known) >= self.low and max(known) <= self.high)
        return self.pattern is None or all(map(self.pattern.fullmatch, set(known)))


def _check(*types: type, low: float | None = None, high: float | None = None, pattern: str | None = None) -> Check:
    return Check(frozenset(types), low, high, None if pattern is None else re.compile(pattern, re.DOTALL))


def words(values: Iterable[str]) -> Check:
    """One of these."""
    return _check(str, pattern="|".join(map(re.escape, values)))


TEXT, TEXT_OR_NONE = _check(str), _check(str, _NONE)
COUNT, COUNT_OR_NONE = (_check(int, *more, low=0, high=_COUNT_MAX) for more in ((), (_NONE,)))
POSITIVE = _check(int, low=1, high=1 << 48)
RANKS = _check(int, low=1, high=RANKS_MAX)
MOMENT, MOMENT_OR_NONE = (_check(int, float, *more, low=0, high=_UNIX_S_MAX) for more in ((), (_NONE,)))
TIME, TIME_OR_NONE = (_check(int, float, *more, low=0, high=_NS_MAX) for more in ((), (_NONE,)))
FLOOR_OR_NONE = _check(int, float, _NONE, low=1e-3, high=_NS_MAX)
SHARE_OR_NONE = _check(int, float, _NONE, low=0, high=1)
TIMED = _check(str, pattern=r"root|mean|sources|slowest|rank \d{1,4}")
FLOOR_KIND = _check(str, _NONE, pattern="line|transport")

Checks = Mapping[str, Check]


def refuse_damaged(row: Sequence[object], checks: Checks) -> None:
    """Raises DamagedRow for the first value that is not as it must be."""
    for value, (column, check) in zip(row, checks.items(), strict=True):
        if not check.holds((value,)):
            raise DamagedRow(column)


def sound(rows: Sequence[Sequence[object]], checks: Checks) -> bool:
    """Whether all rows are as they must be."""
    columns = [list(values) for values in zip(*rows, strict=True)]
    return not rows or all(check.holds(values) for check, values in zip(checks.values(), columns, strict=True))


# ---- what is stored as JSON -----------------------------------------------------------------------------------------

_NUMBER = (int, float)
Form = Any
"""A type or several of one value; {name: form} of the keys that are there; [form] of each item; None of anything.

A table within a list must have all of its keys but those that end in `?`.
"""


@dataclass(frozen=True)
class MapOf:
    """The form of an object whose keys are data, with values of one type."""

    type: type


@dataclass(frozen=True)
class Between:
    """The form of a number of this range."""

    least: float
    most: float


def loads(text: object, column: str, form: Form = None) -> Any:
    """What a text holds as JSON. Raises DamagedRow where it is none, or not of the form."""
    try:
        value = json.loads(text)  # type: ignore[arg-type]  # what is no text is damaged
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedRow(column) from error
    if form is not None and not fits(value, form):
        raise DamagedRow(column)
    return value


def numbers(text: object, column: str) -> tuple[Any, ...]:
    """Raises DamagedRow where these are none."""
    return tuple(loads(text, column, [_NUMBER]))


def fits(value: object, form: Form, *, whole: bool = False) -> bool:
    """Whether a value is of the form; `whole`: with all keys of a table."""
    if form is None:
        return True
    if isinstance(form, dict):
        return (
            isinstance(value, dict)
            and not (whole and [name for name in form if name not in value and not name.endswith("?")])
            and all(fits(value[key], below) for name, below in form.items() if (key := name.rstrip("?")) in value)
        )
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0], whole=True) for item in value)
    if isinstance(form, MapOf):
        return isinstance(value, dict) and all(type(below) is form.type for below in value.values())
    if isinstance(form, Between):
        return isinstance(value, _NUMBER) and form.least <= value <= form.most
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    is_type = type(value) in (form if isinstance(form, tuple) else (form,))
    return is_type and not (type(value) in _NUMBER and not abs(value) <= _COUNT_MAX)  # type: ignore[arg-type]


def fitting(value: object, forms: Mapping[str, Form]) -> dict[str, Any]:
    """Of a table the keys whose values are of their forms; what is no table has none."""
    table = value if isinstance(value, dict) else {}
    return {name: below for name, below in table.items() if fits(below, forms.get(name))}


_TEXT = (str, _NONE)
_FIGURE = (int, float, _NONE)
OPTIONS = {  # of a pattern: what the program reads as numbers must be some
    **dict.fromkeys(("source", "target", "round", "window"), re.compile(r"\d{1,6}")),
    "class": re.compile("[SWA]"),
}
_CPUS = re.compile(r"(\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*)?")
FACTS: Mapping[str, Form] = {
    "hostname": _TEXT,
    "board": _TEXT,
    "os": {"name": _TEXT, "kernel": _TEXT, "tick_hz": _FIGURE},
    "cpu": {"model": _TEXT, "cores": _FIGURE, "frequency_now_hz": _FIGURE, "frequency_max_hz": _FIGURE},
    "topology": {
        "source": _TEXT,
        "cores": [_CPUS],
        "packages": [_CPUS],
        "nodes": [{"cpus": _CPUS, "memory_bytes": _FIGURE}],
        "caches": [{"level": int, "kind": _TEXT, "size_bytes": int, "line_bytes?": _FIGURE, "shared_by?": [_CPUS]}],
        "slower": _CPUS,
    },
    "memory": {"total_bytes": _FIGURE, "page_bytes": (int, _NONE)},
    "clock": {"source": _TEXT},
    "network": {
        "tcp_send_buffer_bytes": _FIGURE,
        "tcp_receive_buffer_bytes": _FIGURE,
        "send_buffer_bytes": _FIGURE,
        "receive_buffer_bytes": _FIGURE,
        "interfaces": [{"name": str, "driver": _TEXT, "bits_per_s": _FIGURE}],
    },
    "limits": {"usable_cpus": _CPUS},
    "surroundings": {"hypervisor": _TEXT, "container": _TEXT},
    "software": {"commit": _TEXT, "c_compiler": _TEXT, "c_options": _TEXT},
    "environment": MapOf(str),
    "transports": [str],
    "sleeping": [str],
}
PLAN: Mapping[str, Form] = {
    "precision": Between(1e-12, 1e6),
    "time_s": _NUMBER,
    "launches": int,
    "more_launches": bool,
    "oversubscribe": bool,
    "hosts": [str],
    "cpus": [int],
    "timeout_s": int,
    "start_limit_s": _NUMBER,
    "interleaved": {"id": int, "side": str, "names": MapOf(str)},
    "refine": [list],
    "exact": bool,
    "grains": MapOf(int),
}
