"""TOML files read into pydantic models, or refused with a list of all errors; and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from hockney.errors import UsageError, unknown
from hockney.files import named_text, parse_toml
from hockney.units import counted, ordinal

FROM_FILE = "file"  # the context of hand-written content, which may be ambiguous
_TABLES = ("series", "expect", "figure")
_EXAMPLES = {  # of keys that must be there
    "name": '"my-suite"',
    "title": '"What it is"',
    "pattern": '"pingpong"',
    "transports": '["shm", "tcp"]',
    "source": '"data sheet"',
}
Model = TypeVar("Model", bound=BaseModel)
Errors = list[tuple[str, str]]  # the key in the file, `series[1].bytes`, and the error there


def parsed(parse: Any, text: str) -> Any:
    """Parse a text. A UsageError becomes a ValueError, which pydantic collects."""
    try:
        return parse(text)
    except UsageError as error:
        raise ValueError(str(error)) from error


def some(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """The list; raises ValueError if it is empty."""
    if not value:
        raise ValueError("it is empty: name one at least")
    return value


def listed(value: Any) -> Any:
    """A list as it is; a word or number alone as a list of one."""
    return (value,) if isinstance(value, int | str) else value


def texts(value: Any) -> Any:
    """Options with their values as texts; files may have numbers, and lists: `[0, 100]` is `0,100`."""
    if not isinstance(value, dict):
        return value
    return {name: ",".join(map(str, item if isinstance(item, list) else [item])) for name, item in value.items()}


def read_model(path: Path, what: str, whole: type[Model], check: Callable[[Model], Errors] | None = None) -> Model:
    """A file as a model; `what` names the file's kind.

    `check` finds errors that the models do not know, in a file of the right form. Raises UsageError: a file that cannot
    be read, or all its errors with their keys.
    """
    model = validated(read_toml(path, what), str(path), whole)
    wrong = check(model) if check is not None else []
    if wrong:
        raise _refusal(str(path), wrong)
    return model


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a file. Raises UsageError for one that cannot be read or is not TOML."""
    try:
        return parse_toml(named_text(path, what))
    except RecursionError as error:
        raise UsageError(f"{path} is not a {what}: its tables and lists are nested too deeply") from error
    except ValueError as error:  # of TOML, or of Python for a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {error}") from error


def validated(content: Mapping[str, Any], name: str, whole: type[Model]) -> Model:
    """The content of the file of that name, as a model. Raises UsageError with all errors and their keys."""
    try:
        return whole.model_validate(content, context=FROM_FILE)
    except ValidationError as error:
        raise _refusal(name, _form_errors(error, whole)) from error


def _refusal(path: str, wrong: Errors) -> UsageError:
    lines = (f"  {_for_people(key)}: {message}" for key, message in wrong)
    return UsageError("\n".join([f"{path} has {counted(len(wrong), 'error')}:", *lines]))


def _for_people(key: str) -> str:
    """`series[1].bytes` -> `bytes of the 2nd [[series]]`: readers of a file count from 1."""
    key = re.sub(r"\[(\d+)\]", lambda number: f"[{int(number[1]) + 1}]", key)
    table = re.fullmatch(rf"({'|'.join(_TABLES)})\[(\d+)\](?:\.(.+))?", key)
    if table is None:
        return key or "the file"
    return f"{f'{table[3]} of ' if table[3] else ''}the {ordinal(int(table[2]))} [[{table[1]}]]"


def _missing(key: str) -> str:
    if key in _TABLES:
        return f"there is none: add a table that begins with [[{key}]]"
    return "it is missing" + (f": add for example {key} = {_EXAMPLES[key]}" if key in _EXAMPLES else "")


def _form_errors(error: ValidationError, whole: type[BaseModel]) -> Errors:
    """The errors of pydantic with their keys, the value, and the nearest name for an unknown key."""
    wrong = []
    for item in error.errors():
        model, words = _walked(whole, item["loc"])
        key = "".join(f"[{word}]" if isinstance(word, int) else f".{word}" for word in words).lstrip(".")
        message, shown = item["msg"].removeprefix("Value error, "), str(item["input"])[:40]
        if item["type"] == "extra_forbidden":
            fields = model.model_fields
            message = str(unknown("key", str(words[-1]), [field.alias or name for name, field in fields.items()]))
        elif item["type"] == "union_tag_not_found":
            message = 'it has no kind: add for example kind = "switch"'
        elif item["type"] == "missing":
            message = _missing(str(words[-1]))
        elif item["type"] == "union_tag_invalid":
            message = f"{item['ctx']['tag']}: the kind should be one of {item['ctx']['expected_tags']}"
        elif item["type"] == "model_type":
            message = f"{shown}: it should be a table"
        elif item["type"] != "value_error":
            message = f"{shown}: {message[0].lower()}{message[1:]}"
        wrong.append((key, message))
    return wrong


def _walked(model: type[BaseModel], key: Sequence[int | str]) -> tuple[type[BaseModel], list[int | str]]:
    """The model of the table that a key is in, and the key without the kinds that pydantic adds to it."""
    words: list[int | str] = []
    for word in key:
        field = next((field for name, field in model.model_fields.items() if word in (name, field.alias)), None)
        if field is not None:
            model = _model_in(field.annotation, key) or model
        elif "kind" in model.model_fields and word == model.model_fields["kind"].default:
            continue
        words.append(word)
    return model, words


def _model_in(annotation: Any, key: Sequence[int | str]) -> type[BaseModel] | None:
    """The first model within an annotation; for a union by tag the one with the key's tag."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = [model for part in get_args(annotation) if (model := _model_in(part, key)) is not None]
    tagged = [model for model in models if "kind" in model.model_fields and model.model_fields["kind"].default in key]
    return next(iter(tagged or models), None)


# ---- writing --------------------------------------------------------------------------------------------------------


def toml(content: Mapping[str, Any], head: str) -> str:
    """The file: comment lines, then the values and tables of `content` in their order."""
    return "\n".join([*(f"# {line}" for line in head.splitlines()), *_table(content, ())]) + "\n"


def _table(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {name: value for name, value in content.items() if _is_table(name, value)}
    for name, value in content.items():
        if name not in tables:
            yield from _entry(name, value)
    for name, value in tables.items():
        inner = (*path, _key(name))
        for each in value if isinstance(value, list) else [value]:
            has_values = any(not _is_table(*part) for part in each.items())
            if isinstance(value, list) or has_values:
                yield ""
                yield f"[[{'.'.join(inner)}]]" if isinstance(value, list) else f"[{'.'.join(inner)}]"
            yield from _table(each, inner)


def _is_table(name: str, value: Any) -> bool:
    """Whether it is written as a table; costs and conditions are inline."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, Mapping) for each in value)
    is_cost = isinstance(value, Mapping) and all(isinstance(part, int | float) for part in value.values())
    return isinstance(value, Mapping) and not is_cost and name not in ("where", "options")


def _entry(name: str, value: Any) -> Iterator[str]:
    entry = f"{_key(name)} = {_value(value)}"
    if len(entry) > 120 and isinstance(value, list):
        yield f"{_key(name)} = ["
        yield from (f"    {_value(each)}," for each in value)
        yield "]"
    else:
        yield entry


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: Any) -> str:
    """A scalar in TOML. JSON writes it identically, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{_key(name)} = {_value(part)}" for name, part in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case _:
            return _text(value)
