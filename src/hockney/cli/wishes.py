"""From the words of `hockney run` to what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hockney.errors import UsageError, unknown
from hockney.plan import Wishes, pattern_suite
from hockney.suites import Suite, builtin_names, load_suite
from hockney.units import parse_duration_s, parse_fraction, parse_sizes
from hockney.worker.catalogue import native_patterns

_RANKS_MAX = 4096


def find_suite(what: str) -> Suite:
    """A suite, a pattern or a file. Raises UsageError with the likeliest meant one."""
    if what.endswith(".toml") or what in builtin_names():
        return load_suite(what)
    patterns = native_patterns()
    if what in patterns:
        return pattern_suite(what)
    raise unknown("suite or pattern", what, [*builtin_names(), *patterns])


def read_wishes(words: Mapping[str, Any]) -> Wishes:
    """The options of `run`, by their parameters' names. Raises UsageError."""
    limit_s = parse_duration_s(words["limit"])
    if limit_s < 1:
        raise UsageError(f"a time limit is at least 1s, not {words['limit']}")
    return Wishes(
        transports=_names(words["transport"]),
        ranks=tuple(_ranks(word) for word in _names(words["ranks"])),
        sizes=parse_sizes(words["sizes"]) if words["sizes"] else (),
        options=tuple(_pair(word) for word in words["options"]),
        precision=parse_fraction(words["precision"]) if words["precision"] else None,
        time_s=parse_duration_s(words["time_"]) if words["time_"] else None,
        launches=words["launches"],
        oversubscribe=words["oversubscribe"],
        hosts=_names(words["hosts"]),
        timeout_s=round(limit_s),
        refine=words["refine"],
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _ranks(word: str) -> int:
    if not (word.isascii() and word.isdigit() and 1 <= int(word) <= _RANKS_MAX):
        raise UsageError(f"'{word}' is not a number of ranks: write 2, or several as 2,4,8 (at most {_RANKS_MAX})")
    return int(word)


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise UsageError(f"'{word}' is not an option: write NAME=VALUE, for example window=16")
    return name, value
