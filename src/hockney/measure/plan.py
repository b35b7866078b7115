"""From a suite, or a pattern and its options, to the list of points to measure.

All words are resolved first, and unknown ones refused; then every point is asked for once whether it can be measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hockney.analysis.repeat import LAUNCHES_WANTED
from hockney.errors import UsageError
from hockney.machine.limits import is_loopback_up
from hockney.machine.placement import usable_cpus
from hockney.machine.topology import read_topology
from hockney.machine.warned import fix_of
from hockney.measure.background import Background, Places, place
from hockney.measure.estimate import FIRST_POINT_S, FIRST_ROUNDS_MIN, first_rounds_s
from hockney.model import CurveKey, Point, curve_of, split_placed
from hockney.suites import CacheShare, Limits, Suite, SuiteSeries
from hockney.suites.words import all_ends, as_pairs, check_option, each_of, filled
from hockney.units import counted, format_duration_s
from hockney.worker.catalogue import Catalogue, PatternInfo, TransportInfo, split_name
from hockney.worker.hosts import Host
from hockney.worker.placement import Placement

if TYPE_CHECKING:
    from hockney.results.store import StoredRun

_STORED = ("oversubscribe", "exact", "grains", "virtual", "deadline_ns")  # as they are; parts store themselves


@dataclass(frozen=True)
class Skipped:
    """A point that cannot be measured here, and why."""

    point: Point
    reason: str


@dataclass(frozen=True)
class Plan:
    """Everything that determines a run; stored with it, so that a resumed run continues with the same plan.

    `refine`: the curves that get more sizes where they leave their line; `exact`: until the place of each switch is
    known. `grains`: the number of bytes that sizes are multiples of, by pattern, if above 1.

    `virtual`: the transports with a model's clock, each with whether it is exact, without noise: it is then measured
    once. `deadline_ns`: for each point, search the highest rate of events that is sustained within it (rates.py); None:
    no search. `background`: the traffic of other ranks while the points that name it are measured.
    """

    suite: str
    points: tuple[Point, ...]
    skipped: tuple[Skipped, ...] = ()
    placement: Placement = field(default_factory=Placement)
    limits: Limits = field(default_factory=Limits)
    oversubscribe: bool = False
    refine: frozenset[CurveKey] = field(default_factory=frozenset)
    exact: bool = False
    grains: Mapping[str, int] = field(default_factory=dict)
    virtual: Mapping[str, bool] = field(default_factory=dict)
    deadline_ns: float | None = None
    background: Background | None = None

    def hosts_of(self, point: Point) -> tuple[Host, ...]:
        """The hosts of a point's ranks, each with their number; () for this host. Raises UsageError."""
        return self.placement.hosts_of(point.ranks, point.per_host)

    def within(self, **limits: Any) -> Plan:
        """The plan with some other limits."""
        return replace(self, limits=replace(self.limits, **limits))

    def first_rounds_s(self, points: Sequence[Point] = ()) -> float:
        """The time of the first round of every launch, of all points or of these."""
        return first_rounds_s(points or self.points, self.limits.launches, on_hosts=bool(self.placement.hosts))

    def as_json(self) -> dict[str, Any]:
        """Everything but the suite and the points, which the store keeps by themselves."""
        own = {name: getattr(self, name) for name in _STORED}
        background = None if self.background is None else asdict(self.background)
        parts = asdict(self.limits) | self.placement.as_json()
        return {**parts, **own, "refine": sorted(self.refine), "background": background}

    @classmethod
    def of_run(cls, stored: StoredRun, points: Iterable[Point]) -> Plan:
        """The plan of a stored run for the points given. Raises UsageError if another version stored it."""
        plan = _with_tuples(stored.info.plan)
        try:
            known = {name: plan[name] for name in _STORED}
            known["placement"] = Placement.of_plan({name: plan[name] for name in Placement().as_json()})
            known["limits"], known["refine"] = Limits.of_plan(plan), frozenset(plan["refine"])
            if plan["background"] is not None:
                known["background"] = Background(**plan["background"])
            return cls(stored.info.suite, tuple(points), **known)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"run {stored.id} was stored by another version of hockney: begin a new one") from error


def _with_tuples(stored: Any) -> Any:
    """A value from JSON, with a tuple for each list."""
    if isinstance(stored, dict):
        return {name: _with_tuples(value) for name, value in stored.items()}
    return tuple(map(_with_tuples, stored)) if isinstance(stored, list) else stored


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


def pattern_suite(*patterns: str, with_all_ranks: Collection[str] = ()) -> Suite:
    """Patterns as a suite: all sizes, more at the bends of a curve, launches as time allows, a minute for each.

    `with_all_ranks`: those with a rank on each host at least.
    """
    names, shared = dict.fromkeys(patterns), {"bytes": "0:4M", "refine": True}
    tables = ({"pattern": name, **shared, **({"ranks": "cpus"} if name in with_all_ranks else {})} for name in names)
    name, series = ",".join(names), tuple(map(SuiteSeries.model_validate, tables))
    return Suite(name=name, title=name, series=series, time_s=60.0 * len(series), launches=None)


def transport_words(suite: Suite, asked: RunOptions) -> list[str]:
    """All words by which a suite and the command line name transports."""
    if asked.machine is not None:
        return [f"sim@{asked.machine}"]
    of_suite = () if asked.transports else suite.transports
    return [*asked.transports, *of_suite, *(word for series in suite.series for word in series.transports)]


class _Grid(NamedTuple):
    """A series with its words resolved: a point of 0 B for each curve, and the sizes of all.

    `unknown_sizes` are shares of a cache whose size is not known here. `instead` has the points of transports that can
    send none of a suite's sizes: the largest power of two that they can.
    """

    curves: Sequence[Point]
    instead: Sequence[Point]
    sizes: Sequence[int]
    unknown_sizes: Sequence[str]
    is_refined: bool


def make_plan(suite: Suite, asked: RunOptions, catalogue: Catalogue, cpus: int | None = None) -> Plan:
    """Every point of a suite on every transport that it names, or the reason why it is skipped.

    `cpus`: how many CPUs ranks may have, None: this process's. Raises UsageError for unknown words, and for far more
    points than fit the time.
    """
    if asked.machine is not None:
        suite = suite.model_copy(update={"series": tuple(each for each in suite.series if not each.basic)})
    patterns = [catalogue.pattern(series.pattern) for series in suite.series]
    _refuse_unused(suite, asked, patterns, catalogue)
    if asked.deadline_ns is not None:
        _refuse_without_rate(patterns, catalogue)
    names_caches = any(isinstance(size, CacheShare) for series in suite.series for size in series.bytes)
    caches = read_topology().cache_sizes() if names_caches else {}
    placement, limits = asked.placement, asked.limits or suite.limits()
    cpus = len(set(placement.cpus)) or cpus or len(usable_cpus())
    # With a background "cpus" ranks are those of this host.
    every = placement.every(cpus) if asked.background is None else cpus
    grids = [
        _grid(suite, series, pattern, asked, catalogue, every, caches)
        for series, pattern in zip(suite.series, patterns, strict=True)
    ]
    _refuse_too_many(suite, sum(len(grid.curves) * len(grid.sizes) for grid in grids), limits.time_s)
    is_refined, unknown = _points_of(grids)
    background = None
    if asked.background is not None:
        background, placement = _with_background(asked.background, asked, is_refined, catalogue)
        is_refined = {each: False for point in is_refined for each in (point, point.under(asked.background))}
    plan = Plan(
        suite=suite.name,
        points=(),
        skipped=unknown,
        placement=placement,
        limits=limits,
        oversubscribe=suite.oversubscribe or asked.oversubscribe,
        exact=asked.refine is True,
        deadline_ns=asked.deadline_ns,
        background=background,
        grains={pattern.name: pattern.grain_bytes for pattern in patterns if pattern.grain_bytes > 1},
    )
    plan = _with_points(plan, is_refined, catalogue, cpus)
    if asked.transports and not plan.points and not plan.skipped:
        named = dict.fromkeys(word for series in suite.series for word in series.transports)
        raise UsageError(
            f"no series of {suite.name} is for {', '.join(asked.transports)}: name one of {', '.join(named)}"
        )
    is_exact = bool(plan.points) and all(plan.virtual.get(point.transport) for point in plan.points)
    is_search = asked.deadline_ns is not None
    launches = limits.launches or (1 if is_exact or is_search else _launches(plan.points, limits.time_s))
    adapts = limits.limit_adapts and bool(placement.hosts)
    refine = frozenset(curve_of(point) for point in plan.points if is_refined[point] and not is_search)
    return replace(plan, refine=refine).within(launches=launches, more_launches=launches > 1, limit_adapts=adapts)


def _with_background(name: str, asked: RunOptions, points: Iterable[Point], catalogue: Catalogue) -> Places:
    """Where the ranks of these points run, and those of the background. Raises UsageError where it cannot be."""
    if any(catalogue.transports[point.transport].model is not None for point in points):
        raise UsageError("--background needs real ranks: on a model each job has a machine of its own")
    if asked.deadline_ns is not None:
        raise UsageError("--background measures at one rate: give one with -o rate=, in place of rate=max")
    victims = max((point.ranks for point in points), default=1)
    return place(name, asked.background_ranks, victims, catalogue, asked.placement, share=asked.oversubscribe)


def _points_of(grids: Iterable[_Grid]) -> tuple[dict[Point, bool], tuple[Skipped, ...]]:
    """Each point with whether sizes may be added to its curve; and sizes that depend on an unknown cache."""
    is_refined: dict[Point, bool] = {}
    unknown = []
    for grid in grids:
        for point in (*(replace(curve, bytes=size) for curve in grid.curves for size in grid.sizes), *grid.instead):
            is_refined[point] = is_refined.get(point, False) or grid.is_refined
        if grid.unknown_sizes:
            reason = f"the size of the cache is not known here, so {' and '.join(grid.unknown_sizes)} is no size"
            unknown += [Skipped(curve, reason) for curve in grid.curves]
    return is_refined, tuple(unknown)


def plan_again(stored: StoredRun, points: Iterable[Point], catalogue: Catalogue, *, launches: int) -> Plan:
    """The plan of a stored run for the same points, as far as they can be measured now; no size is added."""
    plan = Plan.of_run(stored, ()).within(launches=launches, more_launches=False)
    points = tuple(points)
    for point in points:
        catalogue.add(point.transport)
    return _with_points(replace(plan, refine=frozenset()), points, catalogue, len(usable_cpus()))


def _with_points(plan: Plan, points: Iterable[Point], catalogue: Catalogue, cpus: int) -> Plan:
    """The plan with the points that can be measured on this number of CPUs; others are skipped, with their reasons."""
    points, reasons = tuple(points), dict[Point, str]()
    for point in points:
        if point.transport not in catalogue.transports:
            reasons[point] = f"{point.transport} is no longer here"
        elif point.pattern not in catalogue.patterns:
            reasons[point] = f"this version of hockney has no pattern {point.pattern}"
    here = [point for point in points if point not in reasons]
    one_host = not plan.placement.hosts
    reasons |= catalogue.obstacles(here, one_host=one_host)
    if plan.background is not None:
        loads = {point: plan.background.point(point.transport) for point in here if point.background}
        for load, why in catalogue.obstacles(set(loads.values()), one_host=one_host).items():
            reasons |= {point: f"the background cannot run: {why}" for point in loads if loads[point] == load}
    is_cut_off = one_host and not is_loopback_up()
    for point in here:
        transport = catalogue.transports[point.transport]
        if point not in reasons and (reason := _misplaced(plan, point, catalogue, cpus)):
            reasons[point] = reason
        elif is_cut_off and "hosts" in transport.caps and transport.model is None:  # it uses sockets on one host, too
            reasons[point] = f"the loopback interface is down; {fix_of('loopback')}"
    measured = tuple(point for point in points if point not in reasons)
    models = {point.transport: catalogue.transports[point.transport].model for point in measured}
    return replace(
        plan,
        points=measured,
        virtual={name: model.machine.noise is None for name, model in models.items() if model is not None},
        skipped=(*plan.skipped, *(Skipped(point, reasons[point]) for point in points if point in reasons)),
    )


def _misplaced(plan: Plan, point: Point, catalogue: Catalogue, cpus: int) -> str | None:
    """Why a point cannot be measured on these CPUs and hosts."""
    placement = plan.placement
    if catalogue.transports[point.transport].model is not None and not placement.hosts:
        return None
    cpus = placement.cpus_for(point.ranks, cpus)
    if not placement.hosts and point.ranks > cpus and not plan.oversubscribe:
        more = "name more in --cpus" if placement.cpus else "allow this process more CPUs"
        return f"more ranks than CPUs ({cpus}) would measure the scheduler; {more}, or use run --oversubscribe"
    if placement.hosts and "hosts" not in catalogue.transports[point.transport].caps:
        # MPIs are listed even where -t named none, so that none was looked for.
        every = catalogue.transports.items()
        able = {*(split_name(name)[0] for name, info in every if "hosts" in info.caps), "mpi"}
        return f"the transport works within one host; across hosts use -t {' or '.join(sorted(able))}"
    try:
        plan.hosts_of(point)
    except UsageError as error:
        return str(error)
    return None


def refuse_empty(plan: Plan, *, what: str = "measure") -> None:
    """Raises UsageError, with the most frequent reason, for a plan without any point."""
    if not plan.points:
        reasons = Counter(sorted(skipped.reason for skipped in plan.skipped)) or Counter(["the plan is empty"])
        raise UsageError(f"there is nothing to {what}: {reasons.most_common(1)[0][0]}")


def _refuse_unused(suite: Suite, asked: RunOptions, patterns: Sequence[PatternInfo], catalogue: Catalogue) -> None:
    """Raises UsageError for options that no pattern of the suite takes."""
    for name, _ in asked.options:
        if any(option.name == name for pattern in patterns for option in pattern.options):
            continue
        others = [other.name for other in catalogue.patterns.values() if any(name == o.name for o in other.options)]
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


def _refuse_too_many(suite: Suite, count: int, time_s: float) -> None:
    """Raises UsageError for a plan whose first round, whole for short messages, takes far longer than its time."""
    if count * FIRST_POINT_S <= max(60.0, 10 * time_s):
        return
    minutes = math.ceil(count * FIRST_POINT_S / 60)
    raise UsageError(
        f"{suite.name} has {counted(count, 'point')}: measuring each once takes about {minutes} min, and its time is "
        f"{format_duration_s(time_s)}; name fewer sizes, ranks or transports, or more time (--time {minutes}m)"
    )


def _launches(points: Sequence[Point], time_s: float) -> int:
    """Enough launches for an interval over launches, if each has time for a figure of every point; else one."""
    point_s = 0.25  # of a launch: time for some ten measurements, and for added sizes
    least_s = max(LAUNCHES_WANTED * len(points) * point_s, FIRST_ROUNDS_MIN * first_rounds_s(points, LAUNCHES_WANTED))
    return LAUNCHES_WANTED if time_s >= least_s else 1


def _grid(
    suite: Suite,
    series: SuiteSeries,
    pattern: PatternInfo,
    asked: RunOptions,
    catalogue: Catalogue,
    every: int,
    caches: Mapping[int, int],
) -> _Grid:
    """Raises UsageError for unknown words. `every`: the number of ranks that "cpus" means.

    An option of the command line goes to every pattern that has it, but not to a basic series.
    """
    known = {option.name for option in pattern.options}
    more = {} if series.basic else {name: value for name, value in asked.options if name in known}
    options = {**series.options, **more}
    if asked.deadline_ns is not None:  # how many are best is part of the search
        options.setdefault("in_flight", "1,4,16,64")
    for name, value in options.items():
        check_option(pattern, name, value)
    table = filled(series, pattern)
    least, most, step = pattern.ranks
    keeps_ranks = series.basic or (least == most and "ranks" in series.model_fields_set)
    transports = _transports(suite, series, asked, catalogue)
    model = transports[0].model if asked.machine is not None and transports else None
    ranks = (asked.ranks if not keeps_ranks else ()) or table.ranks or (max(2, least, every - every % step),)
    if model is not None and not asked.ranks and "ranks" not in series.model_fields_set:
        ranks = (model.machine.default_ranks or ranks[0],)
    wanted = (asked.sizes or table.bytes) if pattern.sized else (0,)
    sizes = {
        size: size.resolve(caches, pattern.grain_bytes) if isinstance(size, CacheShare) else size for size in wanted
    }
    curves = [
        (placement, count, {**each, **ends})
        for transport in transports
        for count in ranks
        for placement in _placements(transport, count, series, asked, catalogue)
        for each in each_of(options)
        for ends in (all_ends(pattern, count) if series.pairs else [{}])
    ]
    if asked.machine is not None:
        curves = [
            (variant, count, of_curve)
            for transport, count, of_curve in curves
            for variant in _variants(catalogue, transport, pattern.name, count, of_curve)
        ]
    role = "basic" if series.basic else "first" if series.first else "asked"
    points = {
        Point(info.name, pattern.name, count, 0, as_pairs(pattern, of_curve), role, pattern.traits_on(info)): info
        for info, count, of_curve in curves
    }
    known_sizes = list(dict.fromkeys(size for size in sizes.values() if size is not None))
    shortest = 0 if asked.sizes else min(known_sizes, default=0)
    return _Grid(
        list(points),
        instead=[
            replace(point, bytes=1 << info.max_bytes.bit_length() - 1)
            for point, info in points.items()
            if 0 < info.max_bytes < shortest
        ],
        sizes=known_sizes,
        unknown_sizes=[str(share) for share, size in sizes.items() if size is None],
        is_refined=pattern.sized
        and any(not transport.is_harness for transport, _, _ in curves)
        and (series.refine and not asked.sizes if asked.refine is None else asked.refine),
    )


def _placements(
    transport: TransportInfo, ranks: int, series: SuiteSeries, asked: RunOptions, catalogue: Catalogue
) -> list[TransportInfo]:
    """A transport with each placement of its ranks: of two ranks between hosts and within the first one."""
    is_placed = split_placed(transport.name)[1] != ""
    where = asked.placement
    if is_placed and not where.hosts:
        raise UsageError(f"{transport.name} places ranks on hosts: name them with --hosts")
    if is_placed or ranks < 2 or "hosts" not in transport.caps or not where.hosts:
        return [transport]
    if where.per_host:
        return [catalogue.filling(transport, number) for number in where.per_host]
    first, *others = where.hosts
    has_both = ranks == 2 and others and first.slots != 1 and not series.basic
    return [transport, catalogue.filling(transport, 2)] if has_both else [transport]


def _variants(
    catalogue: Catalogue, transport: TransportInfo, pattern: str, ranks: int, options: Mapping[str, str]
) -> list[TransportInfo]:
    """The variants that a model names for such a curve."""
    variants = transport.model.variants_for(pattern, ranks, options) if transport.model is not None else [""]
    return catalogue.select([transport.name + f":{variant}" * bool(variant) for variant in variants])


def _transports(suite: Suite, series: SuiteSeries, asked: RunOptions, catalogue: Catalogue) -> list[TransportInfo]:
    """The transports of a series: those asked for, or the suite's.

    A series with its own list is measured on those of the list that were asked for, their variants, and the harness.
    Missing transports are left out of a suite's list (the catalogue says why), but not of the user's.
    """
    harness = {info.name for info in catalogue.transports.values() if info.is_harness}
    if asked.machine is not None:
        is_of_harness = series.transports and harness.issuperset(series.transports)
        return [] if is_of_harness else catalogue.select([f"sim@{asked.machine}"])
    named = catalogue.select(asked.transports) if asked.transports else []
    if named and not series.transports:
        return named
    words = series.transports or suite.transports
    listed = catalogue.select([word for word in words if catalogue.missing_for(word) is None])
    names = harness | {info.name for info in named}
    return [info for info in listed if not named or info.name in names or info.name.partition(":")[0] in names]
