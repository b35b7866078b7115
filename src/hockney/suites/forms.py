"""Files of a given form: TOML read into a pydantic model, or refused with all that is wrong at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hockney.errors import UsageError, unknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Model = TypeVar("Model", bound=BaseModel)
Check = Callable[[dict[str, Any]], list[tuple[str, str]]]


def said(parse: Any, text: str) -> Any:
    """Our parsers raise UsageError; pydantic gathers ValueErrors."""
    try:
        return parse(text)
    except UsageError as error:
        raise ValueError(str(error)) from error


def some(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """For lists that may not be empty."""
    if not value:
        raise ValueError("there is not one")
    return value


def read_model(path: Path, what: str, whole: type[Model], part: type[BaseModel], check: Check | None = None) -> Model:
    """A file as a model; `part` is the model of its tables, and `what` is what the file is called.

    `check` gives (place, message) for each wrong word of which the models know nothing. Raises UsageError: a file that
    can't be read, or all that is wrong in it, each with its path in the file.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the {what} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a {what}: it is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    wrong = check(content) if check is not None else []
    try:
        model = whole.model_validate(content)
    except ValidationError as error:
        wrong = _form_errors(error, whole, part) + wrong
    if wrong:
        lines = [f"{path} has {len(wrong)} error{'s' if len(wrong) > 1 else ''}:"]
        raise UsageError("\n".join([*lines, *(f"  {place or 'the file'}: {message}" for place, message in wrong)]))
    return model


def _form_errors(error: ValidationError, whole: type[BaseModel], part: type[BaseModel]) -> list[tuple[str, str]]:
    """The findings of pydantic in our words, with their places: `series[1].bytes`."""
    wrong = []
    for item in error.errors():
        *above, key = item["loc"] or ("",)
        place = "".join(f"[{word}]" if isinstance(word, int) else f".{word}" for word in item["loc"]).lstrip(".")
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            fields = (part if above else whole).model_fields
            message = str(unknown("key", str(key), [field.alias or name for name, field in fields.items()]))
        elif item["type"] == "missing":
            message = "it must be given"
        wrong.append((place, message))
    return wrong
