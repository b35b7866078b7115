"""From a suite, or a pattern and its options, to the list of points to measure.

What can't be measured is found here, before anything starts, with its reason; wrong words are the user's to mend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from hockney.errors import UsageError
from hockney.measure.estimate import FIRST_POINT_S, FIRST_ROUNDS_MIN, first_rounds_s
from hockney.model import CurveKey, Point, curve_of
from hockney.stats.npb import ft_obstacle
from hockney.suites import CacheShare, Ranks, Series, Sizes, Suite
from hockney.suites.toml_models import well_formed
from hockney.units import counted, format_duration_s
from hockney.worker.catalogue import Catalogue, OptionInfo, PatternInfo, TransportInfo, memory_obstacle, split_name
from hockney.worker.launch import START_LIMIT_S

Found = TypeVar("Found")
Table = TypeVar("Table", bound=BaseModel)

_DEFAULT_SIZES = "0:4M"
_NO_SIZES = "has no message sizes to choose"
_PATTERN_S = 60.0  # the time for a pattern where none is asked for
_LAUNCHES = 6  # the fewest whose medians enclose that of all starts in 95 of 100 cases
_FIRST_ROUND_S, _FIRST_ROUND_TIMES = 60.0, 10  # a first round may take so long, or so many times the budget
_POINT_S = 0.25  # what a point needs in a launch: some ten measurements, and the sizes that are added beside it
_TIMEOUT_S = (20.0, 60.0)  # the least and the most that follows from a budget
_START_LIMIT_MIN_S = 10  # to load a library's programs takes seconds, whatever limit suits a measurement


@dataclass(frozen=True)
class Skipped:
    """A point that can't be measured here, and why."""

    point: Point
    reason: str


@dataclass(frozen=True)
class Plan:
    """All that decides a run: it is stored with it, so that a resumed run goes on with the same.

    `precision` is the asked half-width of each interval as a fraction; `time_s` the budget for measuring; `timeout_s`
    the limit of a measurement, `start_limit_s` that of a job's start; `more_launches`: while there is time, what is not
    precise after all launches has more of them;
    `refine` the curves that get more sizes where they leave their line, with `exact` until the place of each jump is
    known; `grains` what sizes are multiples of, by pattern, where it is more than 1; `cpus` where the user placed the
    ranks, the first rank first: empty where hockney chooses.
    """

    suite: str
    points: tuple[Point, ...]
    skipped: tuple[Skipped, ...] = ()
    precision: float = 0.01
    time_s: float = 120.0
    launches: int = 1
    more_launches: bool = False
    oversubscribe: bool = False
    hosts: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    timeout_s: int = 60
    start_limit_s: int = START_LIMIT_S
    refine: frozenset[CurveKey] = field(default_factory=frozenset)
    exact: bool = False
    grains: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Everything but the points, which the store keeps by themselves."""
        return {
            "precision": self.precision,
            "time_s": self.time_s,
            "launches": self.launches,
            "more_launches": self.more_launches,
            "oversubscribe": self.oversubscribe,
            "hosts": list(self.hosts),
            "cpus": list(self.cpus),
            "timeout_s": self.timeout_s,
            "start_limit_s": self.start_limit_s,
            "refine": [[*curve[:3], [list(pair) for pair in curve[3]]] for curve in sorted(self.refine)],
            "exact": self.exact,
            "grains": dict(self.grains),
        }

    @classmethod
    def from_json(cls, suite: str, points: Iterable[Point], stored: dict[str, Any]) -> Plan:
        """The plan of a stored run, for the points given. Raises KeyError if a field is lacking."""
        curves = {
            (row[0], row[1], int(row[2]), tuple((str(pair[0]), str(pair[1])) for pair in row[3]))
            for row in stored["refine"]
        }
        return cls(
            suite=suite,
            points=tuple(points),
            precision=stored["precision"],
            time_s=stored["time_s"],
            launches=stored["launches"],
            more_launches=stored.get("more_launches", False),  # as runs of earlier versions were
            oversubscribe=stored["oversubscribe"],
            hosts=tuple(stored["hosts"]),
            cpus=tuple(stored.get("cpus", ())),
            timeout_s=stored["timeout_s"],
            start_limit_s=stored.get("start_limit_s", START_LIMIT_S),  # as in runs of earlier versions
            refine=frozenset(curves),
            exact=stored.get("exact", False),  # as runs of earlier versions were
            grains=stored.get("grains", {}),
        )


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for on top of a suite; None leaves the suite's own."""

    transports: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    precision: float | None = None
    time_s: float | None = None
    launches: int | None = None
    oversubscribe: bool = False
    hosts: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    timeout_s: int | None = None
    refine: bool | None = None


def pattern_suite(*patterns: str) -> Suite:
    """Patterns as a suite: all sizes, more where a curve leaves its line, launches as time allows, a minute for each.

    A pattern that is named twice is measured once.
    """
    table = {pattern: {"pattern": pattern, "bytes": _DEFAULT_SIZES, "refine": True} for pattern in patterns}
    name = ",".join(table)
    series = tuple(map(Series.model_validate, table.values()))
    return Suite(name=name, title=name, series=series, time_s=_PATTERN_S * len(series), launches=None)


def transport_words(suite: Suite, wishes: RunOptions) -> list[str]:
    """All words by which a suite and the command line name transports."""
    own = () if wishes.transports else suite.transports
    return [*wishes.transports, *own, *(word for series in suite.series for word in series.transports)]


def make_plan(
    suite: Suite,
    wishes: RunOptions,
    catalogue: Catalogue,
    cpus: int,
    read_caches: Callable[[], Mapping[int, int]] = dict,
) -> Plan:
    """Every point of a suite on every transport that it names, or the reason why not.

    `cpus` is how many CPUs ranks may have; points with more ranks are skipped unless oversubscription is asked for, by
    the suite or the user, or the ranks live on several hosts. `read_caches` gives the size of the cache of each level,
    and is asked only where a suite wants sizes after the machine's caches. Raises UsageError for words that nothing
    here knows.
    """
    points: dict[Point, None] = {}
    skipped: dict[Point, str] = {}
    refine = set()
    patterns = [catalogue.pattern(series.pattern) for series in suite.series]
    _refuse_idle_wishes(suite, wishes, patterns)
    oversubscribe = suite.oversubscribe or wishes.oversubscribe
    cpus = len(set(wishes.cpus)) or cpus
    named = any(isinstance(size, CacheShare) for series in suite.series for size in series.bytes)
    caches = read_caches() if named else {}
    time_s = suite.time_s if wishes.time_s is None else wishes.time_s
    points_most = max(_FIRST_ROUND_S, _FIRST_ROUND_TIMES * time_s) / FIRST_POINT_S
    for series, pattern in zip(suite.series, patterns, strict=True):
        options = _options(pattern, series, wishes)
        known, unknown = _sizes(series, pattern, wishes, caches)
        for transport in _transports(suite, series, wishes, catalogue):
            if unknown:
                words = " and ".join(str(share) for share in unknown)
                for point in _points(series, pattern, transport, options, wishes, cpus, [0]):
                    skipped[point] = f"no size can be told for {words}: that cache is not known here"
            for point in _points(series, pattern, transport, options, wishes, cpus, known):
                reason = _why_not(point, catalogue, cpus, oversubscribe=oversubscribe, asked=wishes)
                if reason is not None:
                    skipped[point] = reason
                    continue
                points[point] = None
                if len(points) > points_most:
                    raise _too_many(suite, patterns, wishes, catalogue, cpus, caches, time_s)
                if pattern.sized and _wants_refinement(series, wishes):
                    refine.add(curve_of(point))
    if wishes.transports and not points and not skipped:
        own = dict.fromkeys(word for series in suite.series for word in series.transports)
        raise UsageError(f"no series of {suite.name} is for {', '.join(wishes.transports)}: they name {', '.join(own)}")
    launches = wishes.launches or suite.launches or _launches(tuple(points), time_s)
    return Plan(
        suite=suite.name,
        points=tuple(points),
        skipped=tuple(Skipped(point, reason) for point, reason in skipped.items()),
        precision=suite.precision if wishes.precision is None else wishes.precision,
        time_s=time_s,
        launches=launches,
        more_launches=launches > 1,
        oversubscribe=oversubscribe,
        hosts=wishes.hosts,
        cpus=wishes.cpus,
        timeout_s=round(sorted((*_TIMEOUT_S, time_s))[1]) if wishes.timeout_s is None else wishes.timeout_s,
        start_limit_s=START_LIMIT_S if wishes.timeout_s is None else max(_START_LIMIT_MIN_S, wishes.timeout_s),
        refine=frozenset(refine),
        exact=wishes.refine is True,
        grains={pattern.name: pattern.grain_bytes for pattern in patterns if pattern.grain_bytes > 1},
    )


def _too_many(
    suite: Suite,
    patterns: Sequence[PatternInfo],
    wishes: RunOptions,
    catalogue: Catalogue,
    cpus: int,
    caches: Mapping[int, int],
    time_s: float,
) -> UsageError:
    """The error for a plan of which not even the first round, which is made whole, fits into a multiple of its time."""
    count = sum(
        len(_transports(suite, series, wishes, catalogue))
        * len(_sizes(series, pattern, wishes, caches)[0])
        * sum(len(_ends(series, pattern, ranks)) for ranks in _ranks(series, pattern, wishes, cpus))
        for series, pattern in zip(suite.series, patterns, strict=True)
    )
    least_s = math.ceil(count * FIRST_POINT_S / 60) * 60.0
    return UsageError(
        f"{suite.name} has {counted(count, 'point')}: to measure each once takes about {format_duration_s(least_s)}, "
        f"and its time is {format_duration_s(time_s)}; name fewer sizes, ranks or transports, or give it more time "
        f"(--time {least_s / 60:.0f}m)"
    )


def refuse_empty(plan: Plan) -> None:
    """Raises UsageError for a plan without any point."""
    if not plan.points:
        reasons = sorted({skipped.reason for skipped in plan.skipped})
        raise UsageError(f"there is nothing to measure: {reasons[0] if reasons else 'the plan is empty'}")


def _launches(points: Sequence[Point], time_s: float) -> int:
    """Enough for an interval over launches, if each has the time for a figure of every point; else one.

    A start decides where memory lies, and with it some per cent of a latency: a few starts are more than none only if
    they are enough to tell.
    """
    least_s = max(_LAUNCHES * len(points) * _POINT_S, FIRST_ROUNDS_MIN * first_rounds_s(points, _LAUNCHES, time_s))
    return _LAUNCHES if time_s >= least_s else 1


def _refuse_idle_wishes(suite: Suite, wishes: RunOptions, patterns: Sequence[PatternInfo]) -> None:
    """Raises UsageError for what is asked for and would change nothing."""
    for name, _ in wishes.options:
        if not any(option.name == name for pattern in patterns for option in pattern.options):
            patterns[0].option(name)  # raises, and names what there is
    if wishes.sizes and not any(pattern.sized for pattern in patterns):
        raise UsageError(f"{' and '.join(dict.fromkeys(p.name for p in patterns))} {_NO_SIZES}")


def cpus_for(ranks: int, placed: Sequence[int], cpus: int) -> int:
    """How many CPUs so many ranks have: those that the user placed them on, or `cpus` where hockney chooses."""
    return len(set(placed[:ranks])) or cpus


def _why_not(
    point: Point, catalogue: Catalogue, cpus: int, *, oversubscribe: bool, asked: RunOptions | Plan
) -> str | None:
    """Why a point, of a transport and a pattern that are here, can't be measured, as a sentence; or None."""
    hosts, cpus = asked.hosts, cpus_for(point.ranks, asked.cpus, cpus)
    pattern, transport = catalogue.patterns[point.pattern], catalogue.transports[point.transport]
    reason = catalogue.obstacle(pattern, transport, point.ranks, point.bytes, point.options) or ft_obstacle(point)
    if reason is None and point.ranks > cpus and not (oversubscribe or hosts):
        reason = (
            f"{point.ranks} ranks on {counted(cpus, 'CPU')} would measure the scheduler; "
            + ("name more in --cpus" if asked.cpus else "allow this process more CPUs")
            + ", or add --oversubscribe to hockney run"
        )
    if reason is None and hosts and "hosts" not in transport.caps:
        able = {split_name(name)[0]: None for name, info in catalogue.transports.items() if "hosts" in info.caps}
        reason = f"{point.transport} works within one host; over several: {', '.join(able)}"
    if reason is None and not hosts:
        reason = memory_obstacle(pattern, point.ranks, point.bytes)
    return reason


def plan_again(
    suite: str, points: Iterable[Point], stored: dict[str, Any], catalogue: Catalogue, cpus: int, *, launches: int
) -> Plan:
    """The plan of a stored run for the same points, as far as they can be measured now; no size is added.

    Raises KeyError if a field is lacking, as of another version.
    """
    possible: list[Point] = []
    skipped: list[Skipped] = []
    plan = Plan.from_json(suite, (), stored)
    for point in points:
        catalogue.add_folder(point.transport)
        if point.transport not in catalogue.transports:
            reason: str | None = f"{point.transport} is not here any more"
        elif point.pattern not in catalogue.patterns:
            reason = f"this version of hockney has no pattern {point.pattern}"
        else:
            reason = _why_not(point, catalogue, cpus, oversubscribe=plan.oversubscribe, asked=plan)
        if reason is None:
            possible.append(point)
        else:
            skipped.append(Skipped(point, reason))
    return replace(
        plan,
        points=tuple(possible),
        skipped=tuple(skipped),
        launches=launches,
        more_launches=False,
        refine=frozenset(),
    )


def _wants_refinement(series: Series, wishes: RunOptions) -> bool:
    """Who names the sizes gets these, unless more are asked for by name."""
    return (series.refine and not wishes.sizes) if wishes.refine is None else wishes.refine


def _tables_of(content: dict[str, Any], tables: str) -> list[dict[str, Any]]:
    listed = content.get(tables)
    return [series for series in listed if isinstance(series, dict)] if isinstance(listed, list) else []


def words_of(content: dict[str, Any], tables: str = "series") -> Iterable[tuple[str, str]]:
    """Each word of a file that names transports, with its place before it."""
    every = enumerate(_tables_of(content, tables))
    for place, table in [("transports", content), *((f"{tables}[{n}].transports", series) for n, series in every)]:
        words = table.get("transports")
        for word in [words] if isinstance(words, str) else words if isinstance(words, list) else []:
            if isinstance(word, str):
                yield place, word


def check_words(content: dict[str, Any], catalogue: Catalogue, tables: str = "series") -> list[tuple[str, str]]:
    """What in a suite's file, or one with `tables` of another name, names something that is not here.

    Gives (place, message) for each.

    Takes the file as it was read: what has not the right form is not looked at, and found elsewhere.
    """
    wrong: list[tuple[str, str]] = []
    every = _tables_of(content, tables)
    name = content.get("name")
    if isinstance(name, str) and name in catalogue.patterns:
        wrong.append(("name", f"'{name}' is a pattern's name: give the suite another one"))
    for place, word in words_of(content, tables):
        if catalogue.lack(word) is None:
            _note(wrong, place, catalogue.select, [word])
    for number, series in enumerate(every):
        name, options = series.get("pattern"), series.get("options")
        if not isinstance(name, str):
            continue
        pattern = _note(wrong, f"{tables}[{number}].pattern", catalogue.pattern, name)
        if pattern is not None and series.get("pairs") == "all":
            _note(wrong, f"{tables}[{number}].pairs", _ends, Series(pattern=name, pairs="all"), pattern, 2)
        if pattern is None:
            continue
        given = {key: str(value) for key, value in options.items()} if isinstance(options, dict) else {}
        for key, value in given.items():
            _note(wrong, f"{tables}[{number}].options.{key}", _checked, pattern, key, value)
        own = [] if tables == "series" else [pattern.ranks_default]  # a suite's ranks may be asked for with it
        asked = well_formed(Ranks, series["ranks"]) if "ranks" in series else own
        unfit = _unfit(series, pattern, given, asked or [pattern.ranks_most])
        wrong += ((f"{tables}[{number}].{key}", message) for key, message in unfit)
    return wrong


def _unfit(
    series: dict[str, Any], pattern: PatternInfo, options: Mapping[str, str], asked: Sequence[int]
) -> Iterable[tuple[str, str]]:
    """Ranks, sizes and options of which no point comes, on whatever transport: the key, and why.

    Where some fit they are measured, and the others skipped with the reason.
    """
    known = {option.name: option for option in pattern.options}
    given = [(name, value) for name, value in options.items() if name in known and known[name].check(value) is None]
    ends_follow = bool(series.keys() & {"pairs", "pair_class"})  # from the ranks, and not from the options

    def obstacle(ranks: int) -> tuple[str, str] | None:
        why = pattern.ranks_obstacle(ranks, given)
        if why is not None:
            return "ranks", why
        why = None if ends_follow else pattern.options_obstacle(ranks, given)
        return None if why is None else ("options", why)

    obstacles = [obstacle(ranks) for ranks in asked]
    if None not in obstacles:
        yield from dict.fromkeys(filter(None, obstacles))
    sizes = dict.fromkeys(well_formed(Sizes, series["bytes"]) if "bytes" in series else ())
    if not pattern.sized:
        if sizes.keys() - {0}:
            yield "bytes", f"{pattern.name} {_NO_SIZES}: leave bytes out"
    elif not any(isinstance(size, CacheShare) or pattern.sizes_obstacle([size]) is None for size in sizes):
        why = pattern.sizes_obstacle(sizes)
        if why is not None:
            yield "bytes", why


def _note(wrong: list[tuple[str, str]], place: str, look: Callable[..., Found], *words: object) -> Found | None:
    """What look finds; what it raises is noted with its place."""
    try:
        return look(*words)
    except UsageError as error:
        wrong.append((place, str(error)))
        return None


def _transports(suite: Suite, series: Series, wishes: RunOptions, catalogue: Catalogue) -> list[TransportInfo]:
    """A suite's transports give way to those asked for; of a series' own those stay that are, their variants, and null.

    Those missing here are left out of a suite's list (the catalogue says why), but not of the user's.
    """
    wished = catalogue.select(wishes.transports) if wishes.transports else []
    if wished and not series.transports:
        return wished
    words: Sequence[str] = series.transports or suite.transports
    own = catalogue.select([word for word in words if catalogue.lack(word) is None])
    names = {"null", *(info.name for info in wished)}
    return [info for info in own if info.name in names or info.name.partition(":")[0] in names] if wished else own


def _options(pattern: PatternInfo, series: Series, wishes: RunOptions) -> dict[str, str]:
    """Checked. What the command line asks for goes to every pattern that has such an option."""
    known = {option.name for option in pattern.options}
    given = {**series.options, **{name: value for name, value in wishes.options if name in known}}
    for name, value in given.items():
        _checked(pattern, name, value)
    return given


def as_pairs(pattern: PatternInfo, options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Without the defaults, sorted: two ways to write one point must be one point."""
    return tuple((name, value) for name, value in sorted(options.items()) if value != pattern.option(name).default)


def _checked(pattern: PatternInfo, name: str, value: str) -> OptionInfo:
    option = pattern.option(name)
    wrong = option.check(value)
    if wrong is not None:
        raise UsageError(f"option {name} of {pattern.name} {wrong}, not '{value}'")
    return option


def _sizes(
    series: Series, pattern: PatternInfo, wishes: RunOptions, caches: Mapping[int, int]
) -> tuple[list[int], list[CacheShare]]:
    """Sizes in bytes, and the shares of caches of which nothing is known."""
    if not pattern.sized:
        return [0], []
    known: dict[int, None] = {}
    unknown = []
    for size in wishes.sizes or filled(series, pattern).bytes:
        resolved = size.resolve(caches, pattern.grain_bytes) if isinstance(size, CacheShare) else size
        if resolved is not None:
            known[resolved] = None
        elif isinstance(size, CacheShare):
            unknown.append(size)
    return list(known), unknown


def filled(table: Table, pattern: PatternInfo) -> Table:
    """A table of a file that names no ranks or no sizes has the pattern's own."""
    own = {"ranks": (pattern.ranks_default,), "bytes": (pattern.bytes_default,)}
    return table.model_copy(update={key: value for key, value in own.items() if key not in table.model_fields_set})


def _ranks(series: Series, pattern: PatternInfo, wishes: RunOptions, cpus: int) -> tuple[int, ...]:
    """A series of a pattern that knows one number of ranks only keeps it in a suite, whatever the others run on."""
    own = filled(series, pattern).ranks or (max(2, cpus),)
    least, most, _ = pattern.ranks
    return own if least == most and "ranks" in series.model_fields_set else wishes.ranks or own


def _ends(series: Series, pattern: PatternInfo, ranks: int) -> list[dict[str, str]]:
    """The options that `pairs` stands for: one set for each curve. Raises UsageError where the pattern has no ends."""
    if series.pairs is None:
        return [{}]
    known = {option.name for option in pattern.options}
    if {"source", "target"} <= known:
        return [
            {"source": str(source), "target": str(target)}
            for source in range(ranks)
            for target in range(ranks)
            if source != target
        ]
    if "distance" in known:
        return [{"distance": str(distance)} for distance in range(1, ranks)]
    if "round" in known:
        return [{"round": str(number)} for number in range(1, ranks + ranks % 2)]
    raise UsageError(f"{pattern.name} has no source and target, no distance and no round: pairs says nothing to it")


def _points(
    series: Series,
    pattern: PatternInfo,
    transport: TransportInfo,
    options: Mapping[str, str],
    wishes: RunOptions,
    cpus: int,
    sizes: Sequence[int],
) -> list[Point]:
    return [
        Point(transport.name, pattern.name, ranks, size, as_pairs(pattern, {**options, **ends}))
        for ranks in _ranks(series, pattern, wishes, cpus)
        for ends in _ends(series, pattern, ranks)
        for size in sizes
    ]
