"""The JSON Schema (2020-12) of the documents that `--json` prints, made from the keys on docs/json.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hockney.cli.commands import COMMANDS, docs_folder
from hockney.render.json import JSON_VERSION

_TABLES = (
    "data-sheet", "classic-reports", "matrix-of-pairs", "highest-rates", "clocks", "under-load", "health-of-hosts"
)  # fmt: skip
_EVERY = "json"  # the keys of every document stand below the title
_SHOWN = ("show-run-and-quick", *_TABLES)
# Of each format the alternatives, by the sections of their keys.
FORMATS: dict[str, Sequence[Sequence[str]]] = {
    **{name: ((name,),) for name in COMMANDS},
    "check": (("check---baseline", "compare"), ("check---expect",)),
    "error": (("errors",),),
    "export": (("export", "highest-rates"),),
    "import": (("import",), ("import-of-runs",)),
    "predict": (("predict",), ("predict---validate",)),
    "quick": (_SHOWN,),
    "run": (_SHOWN, ("run---dry-run",)),
    "show": (_SHOWN,),
}
_PLAIN = {"text": "string", "int": "integer", "num": "number", "bool": "boolean", "object": "object"}


@dataclass(frozen=True)
class Key:
    """A key of the page: its path, its type, and its meaning."""

    key: str
    type: str
    meaning: str

    @property
    def may_be_absent(self) -> bool:
        """Whether documents without it are complete."""
        return "absent" in self.meaning


def anchor(title: str) -> str:
    """The link target of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@functools.cache
def sections() -> dict[str, list[Key]]:
    """The keys in the blocks of the page, by the anchor of the heading above them; indentation nests them."""
    found: dict[str, list[Key]] = {}
    name, is_block, parents = "", False, [""]
    for line in (docs_folder() / "json.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            is_block = not is_block
        elif line.startswith("#") and not is_block:
            name = anchor(line.lstrip("# "))
        elif is_block:
            match = re.fullmatch(r"( *)(\w+(?:, \w+)*) {2,}(\S+)(?: {2,}(.*))?", line)
            if match is None:
                raise ValueError(f"docs/json.md: {line!r} is not a key, its type and its meaning")
            del parents[len(match[1]) // 2 + 1 :]
            keys = [f"{parents[-1]}{key}" for key in match[2].split(", ")]
            found.setdefault(name, []).extend(Key(key, match[3], match[4] or "") for key in keys)
            parents.append(f"{keys[0]}.")
    return found


def schema() -> dict[str, Any]:
    """One schema for all documents. Each format has a definition, and so has each section of the page with keys."""
    shared = {section: rows for section, rows in sections().items() if section not in _sections_of_formats()}
    definitions = {
        **{f"hockney-{name}": _format(name) for name in sorted(FORMATS)},
        **{_definition(each): _keys(sections()[each]) for each in sorted(_sections_of_formats())},
        **{section.title(): _keys(rows) for section, rows in sorted(shared.items())},
    }
    for section in _TABLES:  # the keys of one may all be missing
        definitions[_definition(section)]["required"] = []
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"hockney-{JSON_VERSION}.json",
        "title": f"documents of hockney --json, version {JSON_VERSION}",
        "description": "Made from docs/json.md. Keys may be added at any time.",
        "anyOf": [_refer(f"hockney-{name}") for name in sorted(FORMATS)],
        "$defs": definitions,
    }


def _sections_of_formats() -> set[str]:
    return {_EVERY, *(section for alternatives in FORMATS.values() for named in alternatives for section in named)}


def _refer(definition: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{definition}"}


def _definition(section: str) -> str:
    return "every-document" if section == _EVERY else section.replace("---", "-")


def _format(name: str) -> dict[str, Any]:
    """The documents with one `format`."""
    alternatives = [
        {"allOf": [_refer(_definition(section)) for section in (_EVERY, *named)]} for named in FORMATS[name]
    ]
    return {
        "properties": {"format": {"const": f"hockney-{name}"}, "version": {"const": JSON_VERSION}},
        **(alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}),
    }


def _keys(rows: Sequence[Key], below: str = "") -> dict[str, Any]:
    """The object whose keys are the rows one level below a path."""
    direct = [row for row in rows if row.key.startswith(below) and "." not in row.key[len(below) :]]
    known: dict[str, Any] = {"type": "object"}
    if direct:
        known["properties"] = {row.key[len(below) :]: _described(row, rows) for row in direct}
        known["required"] = [row.key[len(below) :] for row in direct if not row.may_be_absent]
    return known


def _described(row: Key, rows: Sequence[Key]) -> dict[str, Any]:
    meaning = re.sub(r"^absent(?:; |$)", "", row.meaning)
    return {**_typed(row.type, row, rows), **({"description": meaning} if meaning else {})}


def _typed(word: str, row: Key, rows: Sequence[Key]) -> dict[str, Any]:
    """A type as the page writes it: `num?`, `[object]`, `{[num]}`, `Figure`."""
    if word.endswith("?"):
        known = _typed(word[:-1], row, rows)
        if set(known) <= {"type", "items"} and isinstance(known["type"], str):
            return {**known, "type": [known["type"], "null"]}
        return {"anyOf": [known, {"type": "null"}]}
    if word.startswith("["):
        return {"type": "array", "items": _typed(word[1:-1], row, rows)}
    if word.startswith("{"):
        inner = word[1:-1]
        return {"type": "object", **({"additionalProperties": _typed(inner, row, rows)} if inner else {})}
    if word == "object":
        return _keys(rows, f"{row.key}.")
    if word == "list":  # a row of a table: texts, and objects with the keys below
        return {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, {**_keys(rows, f"{row.key}."), "required": []}]},
        }
    if word in _PLAIN:
        return {"type": _PLAIN[word]}
    more = _keys(rows, f"{row.key}.")
    return {"allOf": [_refer(word), more]} if "properties" in more else _refer(word)
