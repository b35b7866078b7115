"""The points of a suite's series: all words are resolved, and unknown ones refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hockney.errors import UsageError
from hockney.machine.limits import is_loopback_up
from hockney.machine.topology import read_topology
from hockney.machine.warned import fix_of
from hockney.model import Point, split_placed
from hockney.suites import CacheShare, Limits, Suite, SuiteSeries
from hockney.units import counted, format_duration_s
from hockney.worker.background import Background, Places, place
from hockney.worker.catalogue import Catalogue, PatternInfo, TransportInfo, split_name
from hockney.worker.placement import Placement
from hockney.worker.words import all_ends, as_pairs, check_option, each_of, filled

_SIDES_OF_GRID = ("nx", "ny", "nz")
FIRST_POINT_S = 0.015  # of the first round, seen with sockets and MPIs on two virtual CPUs


@dataclass(frozen=True)
class Skipped:
    """A point that cannot be measured here, and why."""

    point: Point
    reason: str


@dataclass(frozen=True)
class RunOptions:
    """The options of `hockney run`; None or () leaves the suite's own.

    `machine`: the model that measures all, in place of the suite's transports, with the variants that it names.
    `background`: the traffic under which each point is measured a second time; see background.place.
    """

    transports: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    placement: Placement = field(default_factory=Placement)
    limits: Limits | None = None
    oversubscribe: bool = False
    refine: bool | None = None
    machine: str | None = None
    deadline_ns: float | None = None
    background: str | None = None
    background_ranks: int | None = None


def transport_words(suite: Suite, asked: RunOptions) -> list[str]:
    """All words by which a suite and the command line name transports."""
    if asked.machine is not None:
        return [f"sim@{asked.machine}"]
    of_suite = () if asked.transports else suite.transports
    return [*asked.transports, *of_suite, *(word for series in suite.series for word in series.transports)]


class Answer(NamedTuple):
    """The points that can be measured, each with whether sizes may be added to its curve; why others cannot."""

    is_refined: dict[Point, bool]
    skipped: tuple[Skipped, ...]
    placement: Placement
    background: Background | None


def points_of(suite: Suite, asked: RunOptions, catalogue: Catalogue, cpus: int) -> Answer:
    """Every point of a suite on its transports and this many CPUs. Raises UsageError for unknown words, or too many."""
    wanted = [series for series in suite.series if asked.machine is None or not series.basic]
    patterns = [catalogue.pattern(series.pattern) for series in wanted]
    _refuse_unused(suite, asked, patterns, catalogue)
    if asked.deadline_ns is not None:
        _refuse_without_rate(patterns, catalogue)
    # With a background "cpus" ranks are those of this host.
    every = asked.placement.every(cpus) if asked.background is None else cpus
    grids = [
        _Words(suite, series, pattern, asked, catalogue).grid(every)
        for series, pattern in zip(wanted, patterns, strict=True)
    ]
    _refuse_too_many(suite, asked, sum(len(grid.curves) * len(grid.sizes) for grid in grids))
    is_refined: dict[Point, bool] = {}
    for grid in grids:
        for point in (*(replace(curve, bytes=size) for curve in grid.curves for size in grid.sizes), *grid.instead):
            is_refined[point] = is_refined.get(point, False) or grid.is_refined
    where, background, shares = asked.placement, None, suite.oversubscribe or asked.oversubscribe
    if asked.background is not None:
        background, where = _with_background(asked.background, asked, is_refined, catalogue)
        is_refined = {each: False for point in is_refined for each in (point, point.under(asked.background))}
    why = reasons(is_refined, catalogue, where, cpus, background, oversubscribe=shares)
    skipped = [each for grid in grids for each in grid.unknown]
    skipped += [Skipped(point, why[point]) for point in is_refined if point in why]
    measured = {point: is_added for point, is_added in is_refined.items() if point not in why}
    return Answer(measured, tuple(skipped), where, background)


def reasons(
    points: Iterable[Point],
    catalogue: Catalogue,
    where: Placement,
    cpus: int,
    background: Background | None,
    *,
    oversubscribe: bool,
) -> dict[Point, str]:
    """Why points cannot be measured there, on this number of CPUs; those that can be are not in it."""
    points, known = tuple(points), dict[Point, str]()
    for point in points:
        if point.transport not in catalogue.transports:
            known[point] = f"{point.transport} is no longer here"
        elif point.pattern not in catalogue.patterns:
            known[point] = f"this version of hockney has no pattern {point.pattern}"
    here = [point for point in points if point not in known]
    one_host = not where.hosts
    known |= catalogue.obstacles(here, one_host=one_host)
    if background is not None:
        loads = {point: background.point(point.transport) for point in here if point.background}
        for load, why in catalogue.obstacles(set(loads.values()), one_host=one_host).items():
            known |= {point: f"the background cannot run: {why}" for point in loads if loads[point] == load}
    is_cut_off = one_host and not is_loopback_up()
    for point in here:
        transport = catalogue.transports[point.transport]
        if point not in known and (reason := _misplaced(point, catalogue, where, cpus, oversubscribe=oversubscribe)):
            known[point] = reason
        elif is_cut_off and "hosts" in transport.caps and transport.model is None:  # it uses sockets on one host, too
            known[point] = f"the loopback interface is down; {fix_of('loopback')}"
    return known


def _misplaced(point: Point, catalogue: Catalogue, where: Placement, cpus: int, *, oversubscribe: bool) -> str | None:
    """Why a point cannot be measured on these CPUs and hosts."""
    if catalogue.transports[point.transport].model is not None and not where.hosts:
        return None
    threads = catalogue.patterns[point.pattern].threads(point.options)
    cpus = where.cpus_for(point.ranks * threads, cpus)
    if not where.hosts and point.ranks * threads > cpus and not oversubscribe:
        more = "name more in --cpus" if where.cpus else "allow this process more CPUs"
        busy = "ranks" if threads == 1 else f"threads ({point.ranks * threads})"
        return f"more {busy} than CPUs ({cpus}) would measure the scheduler; {more}, or use run --oversubscribe"
    if where.hosts and "hosts" not in catalogue.transports[point.transport].caps:
        # MPIs are listed even where -t named none, so that none was looked for.
        every = catalogue.transports.items()
        able = {*(split_name(name)[0] for name, info in every if "hosts" in info.caps), "mpi"}
        return f"the transport works within one host; across hosts use -t {' or '.join(sorted(able))}"
    try:
        where.hosts_of(point.ranks, point.per_host)
    except UsageError as error:
        return str(error)
    return None


def _with_background(name: str, asked: RunOptions, points: Iterable[Point], catalogue: Catalogue) -> Places:
    """Where the ranks of these points run, and those of the background. Raises UsageError where it cannot be."""
    if any(catalogue.transports[point.transport].model is not None for point in points):
        raise UsageError("--background needs real ranks: on a model each job has a machine of its own")
    if asked.deadline_ns is not None:
        raise UsageError("--background measures at one rate: give one with -o rate=, in place of rate=max")
    victims = max((point.ranks for point in points), default=1)
    return place(name, asked.background_ranks, victims, catalogue, asked.placement, share=asked.oversubscribe)


class _Grid(NamedTuple):
    """A series with its words resolved: a point of 0 B for each curve, and the sizes of all.

    `unknown`: the curves with sizes that are shares of a cache whose size is not known here. `instead` has the points
    of transports that can send none of a suite's sizes: the largest power of two that they can.
    """

    curves: Sequence[Point]
    instead: Sequence[Point]
    sizes: Sequence[int]
    unknown: Sequence[Skipped]
    is_refined: bool


class _Words(NamedTuple):
    """The words of a series of a suite, and of the command."""

    suite: Suite
    series: SuiteSeries
    pattern: PatternInfo
    asked: RunOptions
    catalogue: Catalogue

    def grid(self, every: int) -> _Grid:
        """Raises UsageError for unknown words. `every`: the number of ranks that "cpus" means.

        An option of the command line goes to every pattern that has it, but not to a basic series.
        """
        series, pattern, asked = self.series, self.pattern, self.asked
        known = {option.name for option in pattern.options}
        more = {} if series.basic else {name: value for name, value in asked.options if name in known}
        is_grid = more.get("distances", "grid") == "grid"  # other neighbours have no sides
        own = {name: value for name, value in series.options.items() if is_grid or name not in _SIDES_OF_GRID}
        options = {**own, **more}
        if asked.deadline_ns is not None:  # how many are best is part of the search
            options.setdefault("in_flight", "1,4,16,64")
        for name, value in options.items():
            check_option(pattern, name, value)
        table, transports = filled(series, pattern), self._transports()
        curves = [
            (placed, count, {**each, **ends})
            for transport in transports
            for count in self._ranks(table.ranks, transports, every)
            for placed in self._placements(transport, count)
            for each in each_of(options)
            for ends in (all_ends(pattern, count, series.pairs) if series.pairs else [{}])
        ]
        if asked.machine is not None:
            curves = [
                (variant, count, of_curve)
                for transport, count, of_curve in curves
                for variant in self._variants(transport, count, of_curve)
            ]
        role = "basic" if series.basic else "first" if series.first else "asked"
        points = {
            Point(info.name, pattern.name, count, 0, as_pairs(pattern, of_curve), role, pattern.traits_on(info)): info
            for info, count, of_curve in curves
        }
        wanted = (asked.sizes or table.bytes) if pattern.sized else (0,)
        shares = [size for size in wanted if isinstance(size, CacheShare)]
        caches = read_topology().cache_sizes() if shares else {}
        resolved = {size: size.resolve(caches, pattern.grain_bytes) for size in shares}
        unknown = " and ".join(str(share) for share, size in resolved.items() if size is None)
        sizes = [resolved[size] if isinstance(size, CacheShare) else size for size in wanted]
        known_sizes = list(dict.fromkeys(size for size in sizes if size is not None))
        shortest = 0 if asked.sizes else min(known_sizes, default=0)
        return _Grid(
            list(points),
            instead=[
                replace(point, bytes=1 << info.max_bytes.bit_length() - 1)
                for point, info in points.items()
                if 0 < info.max_bytes < shortest
            ],
            sizes=known_sizes,
            unknown=[
                Skipped(
                    replace(point, traits=replace(point.traits, sized=False)),  # else it would be of 0 B
                    f"the size of the cache is not known here, so {unknown} is left out",
                )
                for point in points
                if unknown
            ],
            is_refined=pattern.sized
            and any(not transport.is_harness for transport, _, _ in curves)
            and (series.refine and not asked.sizes if asked.refine is None else asked.refine),
        )

    def _ranks(self, named: Sequence[int], transports: Sequence[TransportInfo], every: int) -> Sequence[int]:
        """The numbers of ranks: of the command, of the suite, of the model, or as many as there are."""
        least, most, step = self.pattern.ranks
        if self.suite.published_ranks and self.asked.ranks:
            return tuple(count for count in named if count <= max(self.asked.ranks))
        keeps_ranks = self.series.basic or (least == most and "ranks" in self.series.model_fields_set)
        ranks = (self.asked.ranks if not keeps_ranks else ()) or named or (max(2, least, every - every % step),)
        model = transports[0].model if self.asked.machine is not None and transports else None
        if model is not None and not self.asked.ranks and "ranks" not in self.series.model_fields_set:
            return (model.machine.default_ranks or ranks[0],)
        return ranks

    def _placements(self, transport: TransportInfo, ranks: int) -> list[TransportInfo]:
        """A transport with each placement of its ranks: of two ranks between hosts and within the first one."""
        is_placed, where = split_placed(transport.name)[1] != "", self.asked.placement
        if is_placed and not where.hosts:
            raise UsageError(f"{transport.name} places ranks on hosts: name them with --hosts")
        if is_placed or ranks < 2 or "hosts" not in transport.caps or not where.hosts:
            return [transport]
        if where.per_host:
            return [self.catalogue.filling(transport, number) for number in where.per_host]
        first, *others = where.hosts
        has_both = ranks == 2 and others and first.slots != 1 and not self.series.basic
        return [transport, self.catalogue.filling(transport, 2)] if has_both else [transport]

    def _variants(self, transport: TransportInfo, ranks: int, options: Mapping[str, str]) -> list[TransportInfo]:
        """The variants that a model names for such a curve."""
        model = transport.model
        variants = [""] if model is None else model.variants_for(self.pattern.name, ranks, options)
        return self.catalogue.select([transport.name + f":{variant}" * bool(variant) for variant in variants])

    def _transports(self) -> list[TransportInfo]:
        """The transports of the series: those asked for, or the suite's.

        A series with its own list is measured on those of the list that were asked for, their variants, and the
        harness. Missing transports are left out of a suite's list (the catalogue says why), but not of the user's.
        """
        catalogue, asked, own = self.catalogue, self.asked, self.series.transports
        harness = {info.name for info in catalogue.transports.values() if info.is_harness}
        if asked.machine is not None:
            return [] if own and harness.issuperset(own) else catalogue.select([f"sim@{asked.machine}"])
        named = catalogue.select(asked.transports) if asked.transports else []
        if named and not own:
            return named
        listed = catalogue.select([each for each in own or self.suite.transports if not catalogue.missing_for(each)])
        names = harness | {info.name for info in named}
        return [info for info in listed if not named or info.name in names or info.name.partition(":")[0] in names]


def _refuse_unused(suite: Suite, asked: RunOptions, patterns: Sequence[PatternInfo], catalogue: Catalogue) -> None:
    """Raises UsageError for options that no pattern of the suite takes."""
    for name, _ in asked.options:
        if any(option.name == name for pattern in patterns for option in pattern.options):
            continue
        others = [other.name for other in catalogue.patterns.values() if any(name == o.name for o in other.options)]
        if not others and name in ("builders", "receivers") and patterns[0].senders:
            raise UsageError(
                f"{patterns[0].name} has no option '{name}': all ranks but the manager and the senders build; for 16 "
                "readouts and 8 builders write -n 25 -o senders=16"
            )
        if not others:
            patterns[0].option(name)  # raises, and names the known options
        raise UsageError(f"{suite.name} has no option '{name}': it is of {', '.join(others)}")
    if asked.sizes and not any(pattern.sized for pattern in patterns):
        names = " and ".join(dict.fromkeys(pattern.name for pattern in patterns))
        raise UsageError(f"{names} has no message sizes to choose: leave --bytes out")


def _refuse_without_rate(patterns: Sequence[PatternInfo], catalogue: Catalogue) -> None:
    """Raises UsageError for patterns whose events cannot start on schedule."""
    able = [
        pattern.name for pattern in catalogue.patterns.values() if any(o.name == "rate_hz" for o in pattern.options)
    ]
    other = next((pattern.name for pattern in patterns if pattern.name not in able), None)
    if other is not None:
        raise UsageError(f"{other} has no events on schedule, so no highest rate: name {', '.join(able)}")


def _refuse_too_many(suite: Suite, asked: RunOptions, count: int) -> None:
    """Raises UsageError for a plan whose first round, whole for short messages, takes far longer than its time."""
    time_s = (asked.limits or suite.limits()).time_s
    if count * FIRST_POINT_S <= max(60.0, 10 * time_s):
        return
    minutes = math.ceil(count * FIRST_POINT_S / 60)
    raise UsageError(
        f"{suite.name} has {counted(count, 'point')}: measuring each once takes about {minutes} min, and its time is "
        f"{format_duration_s(time_s)}; name fewer sizes, ranks or transports, or more time (--time {minutes}m)"
    )
