"""TOML files read into pydantic models, or refused with all errors at once."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from hockney.errors import UsageError, unknown
from hockney.units import counted, ordinal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FROM_FILE = "file"  # the context of what a person wrote, which may mean two things
_SHOWN_MAX = 40  # characters of a wrong value
Model = TypeVar("Model", bound=BaseModel)
Check = Callable[[dict[str, Any]], list[tuple[str, str]]]

# What is wrong with a value, by pydantic's name of the error; in braces the limit.
_WRONG = {
    "string_type": "is not text",
    "bool_type": "is neither true nor false",
    "float_type": "is not a number",
    "int_type": "is not a whole number",
    "finite_number": "is not a number to count with",
    "greater_than": "is too small, it must be above {gt:g}",
    "greater_than_equal": "is too small, it must be {ge} at least",
    "less_than": "is too large, it must be below {lt:g}",
    "less_than_equal": "is too large, it must be {le} at most",
    "literal_error": "is not known here",
    "dict_type": "is not a table",
    "model_type": "is not a table",
    "tuple_type": "is not a list",
    "bare_number": "lacks its unit, %",
}
# How a key is written where it is right.
_EXAMPLES = {
    "name": '"mine"',
    "title": '"What my application does"',
    "transports": '["shm", "tcp"]',
    "precision": '"1%"',
    "time": '"30s"',
    "launches": "4",
    "oversubscribe": "true",
    "pattern": '"pingpong"',
    "ranks": "[2, 4]",
    "bytes": '[8, "64K"]',
    "options": "{ window = 16 }",
    "refine": "true",
    "pairs": '"all"',
    "state": '"near"',
    "pair_class": '"one host"',
}


def said(parse: Any, text: str) -> Any:
    """Our parsers raise UsageError; pydantic gathers ValueErrors."""
    try:
        return parse(text)
    except UsageError as error:
        raise ValueError(str(error)) from error


def said_of_all(parse: Any, texts: Sequence[str]) -> list[Any]:
    """As said, for each text, with all errors at once."""
    wrong: list[str] = []

    def read(text: str) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            wrong.append(str(error))

    parsed = [read(text) for text in texts]
    if wrong:
        raise ValueError("; ".join(wrong))
    return parsed


def some(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """For lists that may not be empty."""
    if not value:
        raise ValueError("it is empty: name one at least")
    return value


def well_formed(kind: Any, value: Any) -> list[Any]:
    """The items of a value, or of a list, that have the form of a tuple's type; others are left out."""
    adapter = TypeAdapter[tuple[Any, ...]](kind)
    found: list[Any] = []
    for item in value if isinstance(value, list) else [value]:
        with contextlib.suppress(ValidationError):
            found += adapter.validate_python(item)
    return found


def read_model(path: Path, what: str, whole: type[Model], part: type[BaseModel], check: Check | None = None) -> Model:
    """A file as a model; `part` is the model of its tables, and `what` is what the file is called.

    `check` returns (place, message) for each wrong word that the models do not know. Raises UsageError: a file that
    cannot be read, or all its errors with their places.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the {what} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a {what}: it is not UTF-8 text") from error
    except ValueError as error:  # of TOML, or of Python for a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise _too_deep(path, what) from error
    try:
        wrong = check(content) if check is not None else []
        try:
            model = whole.model_validate(content, context=FROM_FILE)
        except ValidationError as error:
            wrong = _form_errors(error, whole, part) + wrong
    except RecursionError as error:
        raise _too_deep(path, what) from error
    if wrong:
        lines = [f"{path} has {counted(len(wrong), 'error')}:"]
        raise UsageError("\n".join([*lines, *(f"  {_for_people(place)}: {message}" for place, message in wrong)]))
    return model


def _too_deep(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{path} is not a {what}: its tables and lists are nested too deeply; a {what} has [[tables]] only"
    )


def _for_people(place: str) -> str:
    """`series[1].bytes` -> `bytes of the 2nd [[series]]`: who looks for a table in a file counts from 1."""
    table = re.fullmatch(r"(series|expect)\[(\d+)\](?:\.(.+))?", place)
    if table is None:
        return place or "the file"
    return f"{f'{table[3]} of ' if table[3] else ''}the {ordinal(int(table[2]) + 1)} [[{table[1]}]]"


def _form_errors(error: ValidationError, whole: type[BaseModel], part: type[BaseModel]) -> list[tuple[str, str]]:
    """The errors of pydantic in our words, with their places: `series[1].bytes`."""
    wrong = []
    for item in error.errors():
        *above, key = item["loc"] or ("",)
        place = "".join(f"[{word}]" if isinstance(word, int) else f".{word}" for word in item["loc"]).lstrip(".")
        name = next((word for word in reversed(item["loc"]) if isinstance(word, str)), "")
        if item["type"] == "value_error":
            message = item["msg"].removeprefix("Value error, ")
        elif item["type"] == "extra_forbidden":
            fields = (part if above else whole).model_fields
            message = str(unknown("key", str(key), [field.alias or name for name, field in fields.items()]))
        elif item["type"] == "missing":
            message = f"it must be given: {_remedy(name)}"
        else:
            what = _WRONG.get(item["type"], "is not right").format_map(item.get("ctx", {}))
            message = f"{_shown(item['input'])} {what}: {_remedy(name)}"
        wrong.append((place, message))
    return wrong


def _remedy(name: str) -> str:
    """How to write a key; one without an example is a list of tables."""
    example = _EXAMPLES.get(name)
    return f"write for example {name} = {example}" if example else f"write [[{name}]], and below it what it is"


def _shown(value: Any) -> str:
    """A value as the file has it, shortened."""
    text = str(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
