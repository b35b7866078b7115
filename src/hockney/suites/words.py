"""The words of a suite or an expectation file that name patterns, options and transports: are they known here?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from hockney.errors import UsageError
from hockney.model import Point
from hockney.suites import CacheShare, Ranks, Sizes
from hockney.suites.toml_models import well_formed
from hockney.worker.catalogue import Catalogue, PatternInfo

_ENDS = ("source", "target", "distance", "round")
Table = TypeVar("Table", bound=BaseModel)


def as_pairs(pattern: PatternInfo, options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Options without the defaults, sorted: two ways to write one point must be one point."""
    return tuple((name, value) for name, value in sorted(options.items()) if value != pattern.option(name).default)


def filled(table: Table, pattern: PatternInfo) -> Table:
    """The table with the pattern's own ranks and sizes where it names none."""
    own = {"ranks": (pattern.ranks_default,), "bytes": (pattern.bytes_default,)}
    return table.model_copy(update={key: value for key, value in own.items() if key not in table.model_fields_set})


def check_option(pattern: PatternInfo, name: str, value: str) -> None:
    """Raises UsageError for an option that the pattern has not, or a value that it does not take."""
    wrong = pattern.option(name).check(value)
    if wrong is not None:
        raise UsageError(f"option {name} of {pattern.name} {wrong}, not '{value}'")


def all_ends(pattern: PatternInfo, ranks: int) -> list[dict[str, str]]:
    """The options that `pairs = "all"` stands for, one set for each curve. Raises UsageError without such options."""
    known = {option.name for option in pattern.options}
    numbers = [str(rank) for rank in range(ranks)]
    if {"source", "target"} <= known:
        return [{"source": source, "target": target} for source in numbers for target in numbers if source != target]
    if "distance" in known:
        return [{"distance": distance} for distance in numbers[1:]]
    if "round" in known:
        return [{"round": str(number)} for number in range(1, ranks + ranks % 2)]
    raise UsageError(f"{pattern.name} has no source and target, no distance and no round: leave pairs out")


def _tables_of(content: dict[str, Any], tables: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each table with its place, `series[0]`."""
    listed = content.get(tables)
    for number, table in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(table, dict):
            yield f"{tables}[{number}]", table


def words_of(content: dict[str, Any], tables: str = "series") -> Iterator[tuple[str, str]]:
    """Each word of a file that names transports, after its place."""
    for place, table in [("", content), *_tables_of(content, tables)]:
        words = table.get("transports")
        for word in [words] if isinstance(words, str) else words if isinstance(words, list) else []:
            if isinstance(word, str):
                yield f"{place}.transports".lstrip("."), word


def check_words(content: dict[str, Any], catalogue: Catalogue, tables: str = "series") -> list[tuple[str, str]]:
    """(place, message) for each word of a file as read that is unknown here, and for each table without any point.

    Values of the wrong form are left to the file's model.
    """
    wrong: list[tuple[str, str]] = []

    def check(place: str, *words: Any) -> bool:
        """Whether the call of the first word with the others raises no UsageError; it is noted with its place."""
        try:
            words[0](*words[1:])
        except UsageError as error:
            wrong.append((place, str(error)))
            return False
        return True

    name = content.get("name")
    if isinstance(name, str) and name in catalogue.patterns:
        wrong.append(("name", f"'{name}' is a pattern's name: give the suite another one"))
    for place, word in words_of(content, tables):
        if catalogue.lack(word) is None:
            check(place, catalogue.select, [word])
    for place, table in _tables_of(content, tables):
        name, options = table.get("pattern"), table.get("options")
        if not isinstance(name, str) or not check(f"{place}.pattern", catalogue.pattern, name):
            continue
        pattern = catalogue.pattern(name)
        if table.get("pairs") == "all":
            check(f"{place}.pairs", all_ends, pattern, 2)
        given = {key: str(value) for key, value in options.items()} if isinstance(options, dict) else {}
        right = [item for item in given.items() if check(f"{place}.options.{item[0]}", check_option, pattern, *item)]
        # The ranks of a suite may be named on the command line.
        default = [] if tables == "series" else [pattern.ranks_default]
        asked = well_formed(Ranks, table["ranks"]) if "ranks" in table else default
        wrong += (
            (f"{place}.{key}", reason)
            for key, reason in _unfit(table, pattern, right, asked or [pattern.ranks_most], catalogue)
        )
    return wrong


def _unfit(
    table: dict[str, Any],
    pattern: PatternInfo,
    options: list[tuple[str, str]],
    asked: Iterable[int],
    catalogue: Catalogue,
) -> Iterator[tuple[str, str]]:
    """Ranks, sizes and options of which no point comes, whatever the transport: the key, and why."""
    transport = next((info for info in catalogue.transports.values() if pattern.needs <= info.caps), None)
    if transport is None:
        return
    follow_ranks = _ENDS if table.keys() & {"pairs", "pair_class"} else ()
    fixed = tuple(pair for pair in options if pair[0] not in (*follow_ranks, "algorithm"))
    point = Point(transport.name, pattern.name, pattern.ranks_default, pattern.bytes_default)
    by_ranks = [replace(point, ranks=ranks, options=fixed) for ranks in asked]
    sizes = dict.fromkeys(well_formed(Sizes, table["bytes"]) if "bytes" in table else ())
    by_size = [replace(point, bytes=size) for size in sizes if not isinstance(size, CacheShare)]
    plain = [replace(asked_for, options=()) for asked_for in by_ranks]
    found = catalogue.obstacles([*by_ranks, *plain, *by_size], one_host=False)
    if all(asked_for in found for asked_for in by_ranks):
        keys = ("ranks" if without in found else "options" for without in plain)
        yield from dict.fromkeys(zip(keys, (found[asked_for] for asked_for in by_ranks), strict=True))
    if not pattern.sized:
        if sizes.keys() - {0}:
            yield "bytes", f"{pattern.name} has no message sizes to choose: leave bytes out"
    elif len(by_size) == len(sizes) and by_size and all(asked_for in found for asked_for in by_size):
        yield "bytes", found[by_size[0]]
