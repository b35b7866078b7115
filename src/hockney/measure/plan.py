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
from hockney.machine.placement import usable_cpus
from hockney.measure.estimate import FIRST_ROUNDS_MIN, first_rounds_s
from hockney.model import CurveKey, Point, curve_of
from hockney.suites import Limits, Suite
from hockney.worker.background import Background
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.hosts import Host
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions, Skipped, points_of, reasons, transport_words

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

    def is_exact(self, point: Point) -> bool:
        """Whether one measurement of a launch says all: on a model without noise, and of what a launch does once."""
        return point.traits.once or self.virtual.get(point.transport, False)

    def first_rounds_s(self, points: Sequence[Point] = (), start_s: float | None = None) -> float:
        """The time of the first round of every launch, of all points or of these; see measure.estimate."""
        on_hosts = bool(self.placement.hosts)
        return first_rounds_s(points or self.points, self.limits.launches, on_hosts=on_hosts, start_s=start_s)

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


def planned(suite: Suite, asked: RunOptions) -> tuple[Plan, Catalogue]:
    """The plan of a suite, and what can be measured here; libraries are looked for only where a word may mean one."""
    catalogue = load(transport_words(suite, asked))
    return make_plan(suite, asked, catalogue), catalogue


def make_plan(suite: Suite, asked: RunOptions, catalogue: Catalogue, cpus: int | None = None) -> Plan:
    """Every point of a suite on every transport that it names, or the reason why it is skipped.

    `cpus`: how many CPUs ranks may have, None: this process's. Raises UsageError for unknown words, and for far more
    points than fit the time.
    """
    limits, is_search = asked.limits or suite.limits(), asked.deadline_ns is not None
    answer = points_of(suite, asked, catalogue, len(set(asked.placement.cpus)) or cpus or len(usable_cpus()))
    points = tuple(answer.is_refined)
    if asked.transports and not points and not answer.skipped:
        named = dict.fromkeys(word for series in suite.series for word in series.transports)
        raise UsageError(
            f"no series of {suite.name} is for {', '.join(asked.transports)}: name one of {', '.join(named)}"
        )
    absent = [each for word in suite.transports if (each := catalogue.missing_for(word)) is not None]
    if absent and not points and not answer.skipped:
        first = absent[0]
        raise UsageError(f"there is nothing to measure: {first.name} is not here: {first.why}; {first.how}")
    virtual, names = _virtual(points, catalogue), dict.fromkeys(point.pattern for point in points)
    is_exact = bool(points) and all(virtual.get(point.transport) for point in points)
    launches = limits.launches or (1 if is_exact or is_search else _launches(points, limits.time_s))
    adapts = limits.limit_adapts and bool(answer.placement.hosts)
    return Plan(
        suite.name,
        points,
        answer.skipped,
        answer.placement,
        replace(limits, launches=launches, more_launches=launches > 1, limit_adapts=adapts),
        oversubscribe=suite.oversubscribe or asked.oversubscribe,
        refine=frozenset(curve_of(point) for point in points if answer.is_refined[point] and not is_search),
        exact=asked.refine is True,
        grains={name: grain for name in names if (grain := catalogue.patterns[name].grain_bytes) > 1},
        virtual=virtual,
        deadline_ns=asked.deadline_ns,
        background=answer.background,
    )


def _virtual(points: Iterable[Point], catalogue: Catalogue) -> dict[str, bool]:
    """The transports of models, each with whether it is exact, without noise."""
    models = {point.transport: catalogue.transports[point.transport].model for point in points}
    return {name: model.machine.noise is None for name, model in models.items() if model is not None}


def plan_again(stored: StoredRun, points: Iterable[Point], catalogue: Catalogue, *, launches: int) -> Plan:
    """The plan of a stored run for the same points, as far as they can be measured now; no size is added."""
    plan = Plan.of_run(stored, ()).within(launches=launches, more_launches=False)
    points = tuple(points)
    for point in points:
        catalogue.add(point.transport)
    shares = plan.oversubscribe
    why = reasons(points, catalogue, plan.placement, len(usable_cpus()), plan.background, oversubscribe=shares)
    measured = tuple(point for point in points if point not in why)
    skipped = tuple(Skipped(point, why[point]) for point in points if point in why)
    return replace(plan, points=measured, skipped=skipped, virtual=_virtual(measured, catalogue), refine=frozenset())


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
