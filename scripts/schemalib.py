"""The keys on docs/json.md, and from them one JSON Schema (2020-12) for each format of a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/json.md").read_text(encoding="utf-8")
FOLDER = ROOT / "src/hockney/schemas"
_TABLES = ("data-sheet", "classic-reports", "matrix-of-pairs", "highest-rates", "under-load", "health-of-hosts")
_SHOWN = (("show-run-and-quick",), _TABLES)
# Of each document the alternatives: the sections of its keys, and those whose keys may be missing.
DOCUMENTS: dict[str, tuple[tuple[Sequence[str], Sequence[str]], ...]] = {
    "check": ((("check---baseline", "compare"), ()), (("check---expect",), ())),
    "compare": ((("compare",), ()),),
    "completion": ((("completion",), ()),),
    "delete": ((("delete",), ()),),
    "doctor": ((("doctor",), ()),),
    "error": ((("errors",), ()),),
    "explain": ((("explain",), ()),),
    "export": ((("export",), ("highest-rates",)),),
    "health": ((("health",), ()),),
    "import": ((("import",), ()),),
    "list": ((("list",), ()),),
    "predict": ((("predict",), ()), (("predict---validate",), ())),
    "quick": (_SHOWN,),
    "report": ((("report",), ()),),
    "run": (_SHOWN, (("run---dry-run",), ())),
    "runs": ((("runs",), ()),),
    "show": (_SHOWN,),
}
_PLAIN = {"text": "string", "int": "integer", "num": "number", "bool": "boolean", "object": "object"}


@dataclass(frozen=True)
class Row:
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


def read_page() -> dict[str, list[Row]]:
    """The keys in the blocks of the page, by the anchor of the heading above them; indentation nests them."""
    sections: dict[str, list[Row]] = {}
    name, is_block, parents = "", False, [""]
    for line in PAGE.splitlines():
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
            sections.setdefault(name, []).extend(Row(key, match[3], match[4] or "") for key in keys)
            parents.append(f"{keys[0]}.")
    return sections


SECTIONS = read_page()
EVERY = "json"  # the keys of every document stand below the title


def version() -> int:
    """Of the documents on the page."""
    found = re.search(r"of these documents: (\d+)", PAGE)
    assert found is not None
    return int(found[1])


def schema_of(name: str) -> dict[str, Any]:
    """The schema of the documents of one command."""
    alternatives = [_object(sections, optional) for sections, optional in DOCUMENTS[name]]
    body: dict[str, Any] = alternatives[0] if len(alternatives) == 1 else {"type": "object", "anyOf": alternatives}
    text = json.dumps(body)
    parts: dict[str, Any] = {}
    while missing := set(re.findall(r"#/\$defs/(\w+)", text + json.dumps(parts))) - parts.keys():
        parts |= {part: _keys(SECTIONS[part.lower()]) for part in sorted(missing)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"hockney-{name}-{version()}.json",
        "title": f"hockney {name} --json, version {version()}",
        "description": "Made from docs/json.md by scripts/schemas. Keys may be added at any time.",
        **body,
        "properties": {
            **body.get("properties", {}),
            "format": {"const": f"hockney-{name}"},
            "version": {"const": version()},
        },
        **({"$defs": parts} if parts else {}),
    }


def _object(sections: Iterable[str], optional: Iterable[str]) -> dict[str, Any]:
    whole = _keys([row for section in (EVERY, *sections) for row in SECTIONS[section]])
    for section in optional:
        whole["properties"] |= _keys(SECTIONS[section])["properties"]
    return whole


def _keys(rows: Sequence[Row], below: str = "") -> dict[str, Any]:
    """The object whose keys are the rows one level below a path."""
    direct = [row for row in rows if row.key.startswith(below) and "." not in row.key[len(below) :]]
    known: dict[str, Any] = {"type": "object"}
    if direct:
        known["properties"] = {row.key[len(below) :]: _described(row, rows) for row in direct}
        known["required"] = [row.key[len(below) :] for row in direct if not row.may_be_absent]
    return known


def _described(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    return {**_typed(row.type, row, rows), **({"description": row.meaning} if row.meaning else {})}


def _typed(word: str, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
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
    return {"type": _PLAIN[word]} if word in _PLAIN else {"$ref": f"#/$defs/{word}"}


def texts() -> dict[str, str]:
    """The files of the schemas, by name."""
    return {f"hockney-{name}.json": json.dumps(schema_of(name), indent=1) + "\n" for name in DOCUMENTS}


def run(arguments: Sequence[str]) -> str | int:
    """Write all schemas, and remove obsolete ones; with --check only name those that are not those of the page."""
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    wanted = texts()
    differing = sorted({name for name, _ in found.items() ^ wanted.items()})
    if "--check" in arguments:
        return "\n".join(f"scripts/fmt would write {name}" for name in differing) or 0
    FOLDER.mkdir(exist_ok=True)
    for name in differing:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 0
