"""The keys on docs/json.md: their paths, types and meanings, by section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/json.md").read_text(encoding="utf-8")


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
