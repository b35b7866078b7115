"""The words of a suite or an expectation file that name patterns, options and transports: are they known here?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from hockney.errors import UsageError
from hockney.model import Point
from hockney.suites import CacheShare
from hockney.suites.toml_models import Errors
from hockney.worker.catalogue import Catalogue, PatternInfo, matches

Table = TypeVar("Table", bound=BaseModel)


def as_pairs(pattern: PatternInfo, options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Options without the defaults, sorted: two ways to write one point must be one point."""
    return tuple((name, value) for name, value in sorted(options.items()) if value != pattern.option(name).default)


def each_of(options: Mapping[str, str]) -> list[dict[str, str]]:
    """One set of options for each combination of their values: `0,100` are two values."""
    values = itertools.product(*(map(str.strip, text.split(",")) for text in options.values()))
    return [dict(zip(options, each, strict=True)) for each in values]


def filled(table: Table, pattern: PatternInfo) -> Table:
    """The table with the pattern's own ranks and sizes where it names none."""
    defaults = {"ranks": (pattern.ranks_default,), "bytes": (pattern.bytes_default,)}
    return table.model_copy(update={key: value for key, value in defaults.items() if key not in table.model_fields_set})


def check_option(pattern: PatternInfo, name: str, value: str) -> None:
    """Raises UsageError for an option that the pattern has not, or values that it does not take."""
    option = pattern.option(name)
    for each in map(str.strip, value.split(",")):
        if wrong := option.check(each):
            raise UsageError(f"option {name} of {pattern.name} {wrong}, not '{each}'")


def all_ends(pattern: PatternInfo, ranks: int, pairs: str = "all") -> list[dict[str, str]]:
    """The options that `pairs` means, one set for each curve. Raises UsageError without such options."""
    known = {option.name for option in pattern.options}
    numbers = [str(rank) for rank in range(ranks)]
    if {"source", "target"} <= known:
        sources = numbers if pairs == "all" else numbers[:1]
        return [{"source": source, "target": target} for source in sources for target in numbers if source != target]
    if "distance" in known:
        return [{"distance": distance} for distance in numbers[1:]]
    if "round" in known:
        return [{"round": str(number)} for number in range(1, ranks + ranks % 2)]
    raise UsageError(f"{pattern.name} has no source and target, no distance and no round: leave pairs out")


def check_words(whole: BaseModel, tables: str, catalogue: Catalogue) -> Errors:
    """Unknown words, and tables without any point, in the order of the file, whose tables are in the list `tables`."""
    wrong: Errors = []

    def check(place: str, call: Callable[..., object], *words: Any) -> bool:
        """Whether a call succeeds; a UsageError is noted with its place."""
        try:
            call(*words)
        except UsageError as error:
            wrong.append((place, str(error)))
            return False
        return True

    name = getattr(whole, "name", "")
    if name in catalogue.patterns:
        wrong.append(("name", f"'{name}' is a pattern's name: give the suite another one"))
    listed = [(f"{tables}[{number}].", table) for number, table in enumerate(getattr(whole, tables))]
    for place, owner in [("", whole), *listed]:
        for word in getattr(owner, "transports", ()):
            if catalogue.missing_for(word) is None:
                check(f"{place}transports", catalogue.select, [word])
    asked: list[tuple[str, list[Point]]] = []
    for place, table in listed:
        if not check(f"{place}pattern", catalogue.pattern, table.pattern):
            continue
        pattern = catalogue.pattern(table.pattern)
        if getattr(table, "pairs", None) == "all":
            check(f"{place}pairs", all_ends, pattern, 2)
        right = [
            item for item in table.options.items() if check(f"{place}options.{item[0]}", check_option, pattern, *item)
        ]
        # The ranks of a suite may be named on the command line.
        given = table.ranks if "ranks" in table.model_fields_set else ()
        ranks = given or ((pattern.ranks_most,) if tables == "series" else (pattern.ranks_default,))
        if not pattern.sized and "bytes" in table.model_fields_set and {*table.bytes} - {0}:
            wrong.append((place.rstrip("."), f"{pattern.name} has no message sizes to choose: leave bytes out"))
        else:
            able = [name for name, info in catalogue.transports.items() if pattern.needs <= info.caps]
            named = getattr(table, "transports", ()) or getattr(whole, "transports", ())
            on = [name for name in able if any(matches(word, name) for word in named)]
            # A form needs a library, and cuda a device, that is not here.
            on = on or ([] if "form" in table.options or "cuda" in named else able[:1])
            asked.append((place.rstrip("."), _points(table, pattern, right, ranks, on)))
    obstacles = catalogue.obstacles([point for _, points in asked for point in points], one_host=False)
    wrong += [(place, obstacles[points[0]]) for place, points in asked if points and obstacles.keys() >= {*points}]
    order = {place.rstrip("."): number for number, (place, _) in enumerate(listed)}
    return sorted(wrong, key=lambda error: order.get(error[0].split(".")[0], -1))


def _points(
    table: Any, pattern: PatternInfo, options: Iterable[tuple[str, str]], ranks: Iterable[int], on: Iterable[str]
) -> list[Point]:
    """A table's points on transports that offer what its pattern needs; none with sizes of caches."""
    sizes = table.bytes if "bytes" in table.model_fields_set else ()
    if any(isinstance(size, CacheShare) for size in sizes):
        return []
    by_ranks = ("source", "target", "distance", "round") if table.model_fields_set & {"pairs", "pair_class"} else ()
    fixed = {name: value for name, value in options if name not in (*by_ranks, "algorithm")}
    return [
        Point(transport, pattern.name, count, size, tuple(each.items()))
        for transport in on
        for each in each_of(fixed)
        for count in ranks
        for size in sizes or (pattern.bytes_default,)
    ]
