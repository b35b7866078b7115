"""From the words of `hockney run` to what they ask for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hockney.cli.common import names
from hockney.errors import UsageError, unknown
from hockney.machine import refuse_unusable
from hockney.measure.plan import RunOptions, pattern_suite
from hockney.suites import LAUNCHES_MAX, Suite, builtin_names, load_suite
from hockney.suites.words import check_words, words_of
from hockney.units import RANKS_MAX, parse_count, parse_duration_s, parse_fraction, parse_sizes
from hockney.worker.catalogue import load, matches, native_patterns

_LIMIT_MAX_S = 86400


def find_suite(what: str) -> Suite:
    """A suite, patterns with commas between them, or a file. Raises UsageError with the likeliest meant one."""
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
        raise UsageError(f"{what} is no suite: the name of a suite's file ends in .toml")
    _refuse_transport(what)
    raise unknown("suite or pattern", what, [*builtin_names(), *patterns], listed_by="hockney list")


def _not_a_pattern(word: str, patterns: Sequence[str]) -> UsageError:
    """Of one word among several."""
    if word in builtin_names():
        return UsageError(f"'{word}' is a suite: run it by itself; only patterns are run together")
    return unknown("pattern", word, patterns, listed_by="hockney list")


def _check(content: dict[str, Any]) -> list[tuple[str, str]]:
    return check_words(content, load([word for _, word in words_of(content)]))


def _refuse_transport(what: str) -> None:
    """Raises UsageError for the name of a transport, with the command that was meant."""
    catalogue = load()
    if "@" not in what and catalogue.lack(what) is None and not any(matches(what, one) for one in catalogue.transports):
        return
    transport = catalogue.select([what])[0]
    runs = (
        name
        for name, pattern in catalogue.patterns.items()
        if catalogue.obstacle(pattern, transport, pattern.ranks_default, pattern.bytes_default) is None
    )
    raise UsageError(f"{what} is a transport: `hockney run {next(runs)} -t {shlex.quote(what)}`")


def read_wishes(words: Mapping[str, Any]) -> RunOptions:
    """The options of `run`, by their parameters' names. Raises UsageError."""
    limit_s = None if words["limit"] is None else parse_duration_s(words["limit"])
    if limit_s is not None and not 1 <= limit_s <= _LIMIT_MAX_S:
        raise UsageError(f"a time limit is 1s to 24h, not {words['limit']}")
    hosts, cpus = names("--hosts", words["hosts"]), read_cpus(words["cpus"])
    if hosts and cpus:
        raise UsageError("--cpus places ranks on this host only: leave out --hosts")
    return RunOptions(
        transports=names("--transport", words["transport"]),
        ranks=tuple(_ranks(word) for word in names("--ranks", words["ranks"])),
        sizes=parse_sizes(",".join(words["sizes"])) if words["sizes"] else (),
        options=tuple(_pair(word) for word in words["options"]),
        precision=None if words["precision"] is None else parse_fraction(words["precision"]),
        time_s=None if words["time_"] is None else parse_duration_s(words["time_"]),
        launches=None if words["launches"] is None else _launches(words["launches"]),
        oversubscribe=words["oversubscribe"],
        hosts=hosts,
        cpus=cpus,
        timeout_s=None if limit_s is None else round(limit_s),
        refine=words["refine"],
    )


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


def _ranks(word: str) -> int:
    ranks = parse_count(word, RANKS_MAX)
    if ranks is None:
        raise UsageError(f"'{word}' is not a number of ranks: write 2, or several as 2,4,8 (at most {RANKS_MAX})")
    return ranks


def _launches(word: str) -> int:
    launches = parse_count(word, LAUNCHES_MAX)
    if launches is None:
        raise UsageError(f"'{word}' is not a number of launches: write 1 to {LAUNCHES_MAX}, for example --launches 6")
    return launches


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise UsageError(f"'{word}' is not an option: write NAME=VALUE, for example window=16")
    return name, value
