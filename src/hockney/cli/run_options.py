"""From the words of `hockney run` to a suite and its options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hockney.cli.common import names
from hockney.cli.rerun import typed
from hockney.errors import UsageError, unknown
from hockney.machine import refuse_unusable
from hockney.measure.plan import RunOptions, pattern_suite
from hockney.model import Point
from hockney.suites import LAUNCHES_MAX, Suite, builtin_names, load_suite
from hockney.suites.words import check_words
from hockney.units import RANKS_MAX, parse_count, parse_duration_s, parse_fraction, parse_sizes
from hockney.worker.catalogue import load, matches, native_patterns

_LIMIT_MAX_S = 86400
Value = TypeVar("Value")


def find_suite(what: str) -> Suite:
    """A suite, patterns with commas between them, or a file. Raises UsageError with the nearest name."""
    if what in builtin_names():
        return load_suite(what)
    if what.endswith(".toml"):
        return load_suite(what, check=_check)
    patterns = native_patterns()
    words = [word.strip() for word in what.split(",")]
    if all(word in patterns for word in words):
        return pattern_suite(*words)
    if len(words) > 1:
        raise _not_a_pattern(next(word for word in words if word not in patterns), patterns)
    if Path(what).exists():
        raise UsageError(f"{what} is not a suite: name a file that ends in .toml")
    _refuse_transport(what)
    raise unknown("suite or pattern", what, [*builtin_names(), *patterns], listed_by="hockney list")


def _not_a_pattern(word: str, patterns: Sequence[str]) -> UsageError:
    if word in builtin_names():
        return UsageError(f"'{word}' is a suite: run it by itself; only patterns are run together")
    return unknown("pattern", word, patterns, listed_by="hockney list")


def _check(suite: Suite) -> list[tuple[str, str]]:
    words = {*suite.transports, *(word for series in suite.series for word in series.transports)}
    return check_words(suite, "series", load(sorted(words)))


def _refuse_transport(what: str) -> None:
    """Raises UsageError for the name of a transport, with the command that was meant."""
    catalogue = load()
    if "@" not in what and catalogue.lack(what) is None and not any(matches(what, one) for one in catalogue.transports):
        return
    transport = catalogue.select([what])[0]
    points = [
        Point(transport.name, pattern.name, pattern.ranks_default, pattern.bytes_default)
        for pattern in catalogue.patterns.values()
    ]
    obstacles = catalogue.obstacles(points)
    runs = (point.pattern for point in points if point not in obstacles)
    raise UsageError(f"{what} is a transport: {typed('run', next(runs), '-t', what)}")


def read_options(words: Mapping[str, Any]) -> RunOptions:
    """The options of `run`, by their parameters' names. Raises UsageError."""

    def read(name: str, parse: Callable[[str], Value]) -> Value | None:
        return None if words[name] is None else parse(words[name])

    hosts, cpus = names("--hosts", words["hosts"]), read_cpus(words["cpus"])
    if hosts and cpus:
        raise UsageError("--cpus places ranks on this host only: leave out --hosts")
    return RunOptions(
        transports=names("--transport", words["transport"]),
        ranks=tuple(_number("ranks", RANKS_MAX, word) for word in names("--ranks", words["ranks"])),
        sizes=parse_sizes(",".join(words["sizes"])) if words["sizes"] else (),
        options=tuple(_pair(word) for word in words["options"]),
        precision=read("precision", parse_fraction),
        time_s=read("time_", parse_duration_s),
        launches=read("launches", functools.partial(_number, "launches", LAUNCHES_MAX)),
        oversubscribe=words["oversubscribe"],
        hosts=hosts,
        cpus=cpus,
        timeout_s=read("limit", _limit_s),
        refine=words["refine"],
    )


def _limit_s(word: str) -> int:
    limit_s = parse_duration_s(word)
    if not 1 <= limit_s <= _LIMIT_MAX_S:
        raise UsageError(f"'{word}' is not a time limit: write 1s to 24h")
    return round(limit_s)


def _number(what: str, most: int, word: str) -> int:
    number = parse_count(word, most)
    if number is None:
        raise UsageError(f"'{word}' is not a number of {what}: write 1 to {most}, for example --{what} 6")
    return number


def read_cpus(words: Sequence[str]) -> tuple[int, ...]:
    """`0,4-6` -> (0, 4, 5, 6), the first rank's first. Raises UsageError."""
    found: list[int] = []
    for word in names("--cpus", words):
        low, dash, high = word.partition("-")
        numbers = (low, high) if dash else (low, low)
        if not all(number.isascii() and number.isdigit() and len(number) < 6 for number in numbers):
            raise UsageError(f"'{word}' is not a CPU: write its number, or several as 0,2 or 0-3")
        first, last = map(int, numbers)
        if first > last:
            raise UsageError(f"'{word}' is not a range of CPUs: write {last}-{first}")
        found += range(first, last + 1)
    refuse_unusable(found)
    return tuple(found)


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise UsageError(f"'{word}' is not an option: write NAME=VALUE, for example window=16")
    return name, value
