"""What a stored row must be like: the type and range of each column, and the form of what is stored as JSON.

A row that does not fit was damaged by a disk or an editor. It is named and left out; everything else can be read.
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
_NUMBER = (int, float)

Form = Any
"""The form of a JSON value: a type or several; {name: form} of the keys that are there; [form] of each item; a pattern
of a text; {...: form} of all values of an object. None fits anything.

An object within a list must have all of its keys but those that end in `?`.
"""


class DamagedRow(Exception):
    """A row that cannot be used; `column` is the first that is wrong."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True)
class Rule:
    """The types of a column's values, the range of its numbers, and a pattern for its texts.

    `form`: the text is JSON of this form.
    """

    types: tuple[type, ...]
    low: float | None = None
    high: float | None = None
    pattern: str | None = None
    form: Form = None

    def holds(self, values: Sequence[object]) -> bool:
        """Whether all values fit, but for the form. Each step is a loop in C: runs have 100,000s of measurements."""
        if not set(map(type, values)) <= set(self.types):
            return False
        known: list[Any] = [value for value in values if value is not None]
        if not known:
            return True
        if self.low is not None and self.high is not None:
            return bool(min(known) >= self.low and max(known) <= self.high)
        return self.pattern is None or all(re.fullmatch(self.pattern, text, re.DOTALL) for text in set(known))


Rules = Mapping[str, Rule]

TEXT, TEXT_OR_NONE = Rule((str,)), Rule((str, _NONE))
COUNT, COUNT_OR_NONE = (Rule((int, *more), 0, _COUNT_MAX) for more in ((), (_NONE,)))
POSITIVE = Rule((int,), 1, 1 << 48)
RANKS = Rule((int,), 1, RANKS_MAX)
MOMENT, MOMENT_OR_NONE = (Rule((int, float, *more), 0, _UNIX_S_MAX) for more in ((), (_NONE,)))
TIME, TIME_OR_NONE = (Rule((int, float, *more), 0, _NS_MAX) for more in ((), (_NONE,)))
FLOOR_OR_NONE = Rule((int, float, _NONE), 1e-3, _NS_MAX)
SHARE_OR_NONE = Rule((int, float, _NONE), 0, 1)
TIMED = Rule((str,), pattern=r"root|mean|sources|slowest|rank \d{1,4}")
FLOOR_KIND = Rule((str, _NONE), pattern="line|transport")
NUMBERS = Rule((str,), form=[_NUMBER])


def words(values: Iterable[str]) -> Rule:
    """One of these."""
    return Rule((str,), pattern="|".join(map(re.escape, values)))


def read_row(row: Sequence[object], columns: Rules) -> dict[str, Any]:
    """The values of a row by column, JSON decoded with lists as tuples. Raises DamagedRow."""
    values: dict[str, Any] = {}
    for value, (name, column) in zip(row, columns.items(), strict=True):
        if not column.holds((value,)):
            raise DamagedRow(name)
        decoded = loads(value, name, column.form) if column.form is not None and value is not None else value
        values[name] = tuple(decoded) if isinstance(decoded, list) else decoded
    return values


def all_hold(rows: Sequence[Sequence[object]], columns: Rules) -> bool:
    """Whether all rows fit, but for the forms."""
    return not rows or all(
        column.holds(values) for column, values in zip(columns.values(), zip(*rows, strict=True), strict=True)
    )


def loads(text: object, column: str, form: Form = None) -> Any:
    """The value of a JSON text. Raises DamagedRow where it is none, or does not fit the form."""
    try:
        value = json.loads(text)  # type: ignore[arg-type]  # what is no text is damaged
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedRow(column) from error
    if not fits(value, form):
        raise DamagedRow(column)
    return value


def fits(value: object, form: Form, *, whole: bool = False) -> bool:
    """Whether a value is of the form; `whole`: an object has all keys."""
    if form is None:
        return True
    if isinstance(form, dict) and ... in form:
        return isinstance(value, dict) and all(fits(below, form[...]) for below in value.values())
    if isinstance(form, dict):
        return (
            isinstance(value, dict)
            and not (whole and [name for name in form if name not in value and not name.endswith("?")])
            and all(fits(value[key], below) for name, below in form.items() if (key := name.rstrip("?")) in value)
        )
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0], whole=True) for item in value)
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    is_type = type(value) in (form if isinstance(form, tuple) else (form,))
    return is_type and not (type(value) in _NUMBER and not abs(value) <= _COUNT_MAX)  # type: ignore[arg-type]


def fitting(values: Mapping[str, Any], forms: Mapping[str, Form]) -> dict[str, Any]:
    """The keys of an object whose values are of their forms."""
    return {name: value for name, value in values.items() if fits(value, forms.get(name))}


_TEXT = (str, _NONE)
_FIGURE = (int, float, _NONE)
_CPUS = re.compile(r"(\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*)?")
_COUNT_TEXT = re.compile(r"\d{1,6}")
OPTIONS = {...: str}
COUNTED_OPTIONS = {  # read as numbers, or as a class of FT
    **dict.fromkeys(("source", "target", "round", "window"), _COUNT_TEXT),
    "class": re.compile("[SWA]"),
}
FACTS: Mapping[str, Form] = {
    "hostname": _TEXT,
    "board": _TEXT,
    "os": {"name": _TEXT, "kernel": _TEXT},
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
        **dict.fromkeys(("tcp_send_buffer_bytes", "tcp_receive_buffer_bytes"), _FIGURE),
        **dict.fromkeys(("send_buffer_bytes", "receive_buffer_bytes"), _FIGURE),
        "interfaces": [{"name": str, "driver": _TEXT, "bits_per_s": _FIGURE}],
    },
    "limits": {"usable_cpus": _CPUS},
    "surroundings": {"hypervisor": _TEXT, "container": _TEXT},
    "software": {"commit": _TEXT, "c_compiler": _TEXT, "c_options": _TEXT},
    "environment": {...: str},
    "transports": [str],
    "sleeping": [str],
    "traits": {
        "patterns": {
            ...: {
                **dict.fromkeys(("sized", "stream", "payload"), bool),
                **dict.fromkeys(("law", "links", "alone"), _TEXT),
            }
        },
        "transports": {
            ...: {
                "caps": [str],
                "carrier": str,
                **dict.fromkeys(("below", "below_remote"), _TEXT),
                "limits": [
                    {"bytes": int, "fact": _TEXT, **dict.fromkeys(("name", "meaning", "see", "source"), str)},
                ],
            }
        },
    },
}
PLAN: Mapping[str, Form] = {
    "precision": _NUMBER,
    "time_s": _NUMBER,
    "launches": int,
    "more_launches": bool,
    "oversubscribe": bool,
    "hosts": [str],
    "cpus": [int],
    "timeout_s": int,
    "start_limit_s": _NUMBER,
    "interleaved": {"id": int, "side": str, "names": {...: str}},
    "refine": [list],
    "exact": bool,
    "grains": {...: int},
}
