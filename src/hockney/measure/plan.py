"""From a suite, or a pattern and its options, to the list of points to measure.

All words are resolved first, and unknown ones refused; then every point is asked for once whether it can be measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hockney.analysis.repeat import LAUNCHES_WANTED
from hockney.errors import UsageError
from hockney.machine.limits import is_loopback_up
from hockney.machine.placement import usable_cpus
from hockney.machine.warned import fix_of
from hockney.measure.background import Background, Places, place
from hockney.measure.estimate import FIRST_ROUNDS_MIN, first_rounds_s
from hockney.model import CurveKey, Point, curve_of
from hockney.suites import Limits, Suite
from hockney.suites.points import RunOptions, Skipped, points_of
from hockney.worker.catalogue import Catalogue, split_name
from hockney.worker.hosts import Host
from hockney.worker.placement import Placement

if TYPE_CHECKING:
    from hockney.results.store import StoredRun

_STORED = ("oversubscribe", "exact", "grains", "virtual", "deadline_ns")  # as they are; parts store themselves


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


def make_plan(suite: Suite, asked: RunOptions, catalogue: Catalogue, cpus: int | None = None) -> Plan:
    """Every point of a suite on every transport that it names, or the reason why it is skipped.

    `cpus`: how many CPUs ranks may have, None: this process's. Raises UsageError for unknown words, and for far more
    points than fit the time.
    """
    placement, limits = asked.placement, asked.limits or suite.limits()
    cpus = len(set(placement.cpus)) or cpus or len(usable_cpus())
    is_refined, unknown = points_of(suite, asked, catalogue, cpus)
    background = None
    if asked.background is not None:
        background, placement = _with_background(asked.background, asked, is_refined, catalogue)
        is_refined = {each: False for point in is_refined for each in (point, point.under(asked.background))}
    names = dict.fromkeys(point.pattern for point in is_refined)
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
        grains={name: grain for name in names if (grain := catalogue.patterns[name].grain_bytes) > 1},
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


def _launches(points: Sequence[Point], time_s: float) -> int:
    """Enough launches for an interval over launches, if each has time for a figure of every point; else one."""
    point_s = 0.25  # of a launch: time for some ten measurements, and for added sizes
    least_s = max(LAUNCHES_WANTED * len(points) * point_s, FIRST_ROUNDS_MIN * first_rounds_s(points, LAUNCHES_WANTED))
    return LAUNCHES_WANTED if time_s >= least_s else 1
