"""Reads TOML next to the code, and the small files in which Linux describes itself: None for one that can't be read."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hockney.files import parse_toml

ROOT = Path("/")


def read_text(path: Path) -> str | None:
    """A file's text without blanks at its ends; None if it can't be read or holds nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\x00\n\t ") or None
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """A file that holds one whole number."""
    try:
        return int(read_text(path) or "")
    except ValueError:
        return None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file next to the code."""
    return parse_toml(path.read_text(encoding="utf-8"))


@functools.cache
def rows_of(path: Path) -> tuple[dict[str, Any], ...]:
    """The rows of a TOML file of facts next to the code, in their order there."""
    return tuple(read_toml(path)["row"])


def parse_cpus(text: str | None) -> tuple[int, ...]:
    """`0-2,8` -> (0, 1, 2, 8): how Linux writes sets of CPUs. Any other text gives an empty tuple."""
    cpus: set[int] = set()
    for part in (text or "").split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            continue
        cpus.update(range(int(low), int(high if dash else low) + 1))
    return tuple(sorted(cpus))


def format_cpus(cpus: Iterable[int]) -> str:
    """(0, 1, 2, 8) -> `0-2,8`."""
    groups = itertools.groupby(enumerate(sorted(set(cpus))), key=lambda counted: counted[1] - counted[0])
    spans = ([cpu for _, cpu in group] for _, group in groups)
    return ",".join(f"{span[0]}-{span[-1]}" if span[1:] else f"{span[0]}" for span in spans)


def named_cpus(text: str) -> str:
    """`0-2,8`, as Linux writes them -> `CPUs 0-2,8`; `8` -> `CPU 8`."""
    return f"CPU{'' if text.isdecimal() else 's'} {text}"
