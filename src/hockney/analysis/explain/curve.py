"""What detectors look at: the curves of a run, or of a machine of the archive, and what is known beside them.

A run is read once and without its samples: the medians of its measurements are stored. Of each transport (at each
number of ranks) only the state of the machine in which most points have an interval is looked at, because figures of
different states can't be set beside each other. A point without an interval in that state is not part of any curve.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hockney.analysis.explain.finding import Evidence, Finding, of_all
from hockney.analysis.explain.loggp import Fitted, loggp_of
from hockney.analysis.explain.pairs import PAIR_PATTERNS, ClassOf, PairMatrix, classes_of, pair_matrices, pair_of
from hockney.analysis.explain.thresholds import unreadable
from hockney.analysis.finding import Subject
from hockney.archive import Published
from hockney.cli.rerun import LAUNCHES, going_on, more_launches
from hockney.errors import HockneyError
from hockney.model import Measurement, Point, PointStatus, RunStatus, Warning_
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED, UNKNOWN, Interval, State, median, time_of
from hockney.stats.fit import Estimate
from hockney.stats.fit.refine import sizes_to_add
from hockney.units import counted

Options = tuple[tuple[str, str], ...]
Key = tuple[str, str, int, Options]  # transport, pattern, ranks and options: a curve in any state
Place = tuple[str, int]  # a transport and a number of ranks
Summarized = list[tuple[MeasurementSummary, State]]
_CUT_SHORT = {RunStatus.KILLED: "killed before its end", RunStatus.INTERRUPTED: "stopped before its end"}
_INTERVAL_MIN = 6  # measurements; fewer give no 95 % interval of a median


@dataclass(frozen=True)
class Mark:
    """A figure of a curve: the pattern's time, by its definition, at one message size.

    The time stands for so many payload bytes; None where the pattern counts none. `measurements` are those that it is
    of: none of a figure that was printed, or that is of several pairs of ranks.
    """

    bytes: int
    time_ns: Estimate
    payload_bytes: float | None = None
    measurements: Sequence[MeasurementSummary] = field(default=(), compare=False, repr=False)

    @property
    def rate_bytes_per_s(self) -> Estimate | None:
        """The pattern's rate."""
        if not self.payload_bytes or self.time_ns.low <= 0:
            return None
        scale, time = 1e9 * self.payload_bytes, self.time_ns
        return Estimate(scale / time.value, scale / time.high, scale / time.low)


@dataclass(frozen=True)
class Curve:
    """All sizes of a pattern over a transport in one state; `marks` ascend.

    `peak_bytes_per_s` is a best rate that was published without its size. `counters` are sums over all measurements,
    one number a rank. `algorithm` says whose a collective is, as the pattern's definition has it.
    """

    transport: str
    pattern: str
    ranks: int
    options: Options
    state: str
    marks: tuple[Mark, ...]
    oversubscribed: bool = False
    peak_bytes_per_s: Estimate | None = None
    counters: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    algorithm: str | None = None

    @property
    def name(self) -> str:
        """`oneway window=16`: the pattern with its options."""
        return " ".join([self.pattern, *(f"{name}={value}" for name, value in self.options)])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(mark.bytes for mark in self.marks)

    @property
    def key(self) -> Key:
        return self.transport, self.pattern, self.ranks, self.options

    @property
    def place(self) -> Place:
        return self.transport, self.ranks

    def at(self, size_bytes: int) -> Estimate | None:
        """The time of a size that was measured."""
        return next((mark.time_ns for mark in self.marks if mark.bytes == size_bytes), None)

    def option(self, name: str) -> str | None:
        return dict(self.options).get(name)


@dataclass(frozen=True)
class ClassCurve:
    """A curve of all pairs of ranks that share as much (`pair_class`), in a state that so many measurements saw."""

    curve: Curve
    pair_class: str
    measurements: int


class Samples(Protocol):
    """What brings back measurements with their samples; see Reading."""

    def __call__(self, most: int, patterns: Sequence[str] = ()) -> Sequence[tuple[Measurement, State]]: ...


def _one_class(pair: tuple[int, int], launch_id: int) -> str:
    return ""


def _no_samples(most: int, patterns: Sequence[str] = ()) -> Sequence[tuple[Measurement, State]]:
    return ()


@dataclass(frozen=True)
class Reading:
    """Everything that is looked at. What is not known of a machine is None or empty.

    `by_class` are the curves between two ranks by what these share and by state, of every state; `curves` know one.
    `floors` are the floors beside the latency of each place, `launchers` what started the jobs of each transport.
    `samples(most, patterns)` brings back about so many measurements with their samples, of these patterns or of all,
    evenly chosen from each transport. `class_of` tells what a pair of ranks shares in a launch. `published` are the
    archive's figures as they were printed. `matrices` are the times between all pairs of ranks, `loggp` what prtt
    gives for each of its places and states. `grains` are what sizes of a pattern are multiples of, where not 1.
    `refined_s` is the time of a run that looked for the exact place of each jump; `precise` are curves of which all
    points got as precise as was asked for before its time was up. `notes` are sentences on what could not be used.
    """

    subject: str
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()
    by_class: tuple[ClassCurve, ...] = ()
    floors: Mapping[Place, Estimate] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    launchers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Warning_, ...] = ()
    published: tuple[Published, ...] = ()
    samples: Samples = _no_samples
    class_of: ClassOf = _one_class
    matrices: tuple[PairMatrix, ...] = ()
    loggp: tuple[Fitted, ...] = ()
    grains: Mapping[str, int] = field(default_factory=dict)
    refined_s: float | None = None
    precise: frozenset[Key] = frozenset()

    def of(self, *patterns: str) -> list[Curve]:
        """The curves of these patterns, but for those of more ranks than CPUs: their times are the scheduler's."""
        return [curve for curve in self.curves if curve.pattern in patterns and not curve.oversubscribed]

    def has_refined(self, curve: Curve, below_bytes: int, above_bytes: int) -> bool:
        """Whether a run that looked for exact places came to the end of it between two sizes: more time adds none."""
        if self.refined_s is None or curve.key not in self.precise:
            return False
        times = [(mark.bytes, mark.time_ns) for mark in curve.marks]
        known = [(size, Interval(time.value, time.low, time.high, 0, None)) for size, time in times]
        added = sizes_to_add(known, grain_bytes=self.grains.get(curve.pattern, 1), exact=True)
        return not any(below_bytes < size < above_bytes for size in added)

    @property
    def page_bytes(self) -> int | None:
        size: int | None = (self.facts.get("memory") or {}).get("page_bytes")
        return size

    @property
    def caches(self) -> list[tuple[int, int]]:
        """(level, bytes) of the data caches, by level."""
        caches = (self.facts.get("topology") or {}).get("caches") or ()
        data = [cache for cache in caches if cache.get("kind") != "instruction"]
        sizes = {(cache.get("level"), cache.get("size_bytes")) for cache in data}
        return sorted((level, size) for level, size in sizes if level and size)


def finding_about(
    curve: Curve,
    kind: str,
    *,
    sentence: str,
    effect: float,
    sizes_bytes: tuple[int, ...] = (),
    evidence: tuple[Evidence, ...] = (),
    remedy: str | None = None,
    sources: tuple[str, ...] = (),
) -> Finding:
    """A finding that is this curve's first of all."""
    return Finding(
        kind=kind,
        transport=curve.transport,
        sentence=sentence,
        effect=effect,
        pattern=curve.name,
        ranks=curve.ranks,
        state=curve.state,
        sizes_bytes=sizes_bytes,
        evidence=evidence,
        remedy=remedy,
        sources=sources,
    )


def subject_of(curve: Curve, sizes_bytes: tuple[int, ...] = ()) -> Subject:
    """The curve as the subject of a finding."""
    return Subject(curve.transport, curve.name, curve.ranks, curve.state, sizes_bytes)


def is_like(one: Curve, other: Curve) -> bool:
    """Whether two curves may be set beside each other: one transport, as many ranks, one state."""
    return one.place == other.place and one.state == other.state


# ---- a run ----------------------------------------------------------------------------------------------------------


def read_run(run: Run) -> Reading:
    """Raises HockneyError where there is no figure at all, or none with an interval."""
    # Samples of a point that failed are not known to be right.
    summarized = [
        (series, measurements) for series, measurements in run.summaries() if series.status is not PointStatus.FAILED
    ]
    if not any(measurements for _, measurements in summarized):
        raise HockneyError(f"{_subject(run)} has no figures, so there is nothing to explain: {_why_empty(run)}")
    states = _states(summarized)
    crowded = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    curves, unsure = _curves(summarized, states, crowded)
    if not curves and not unsure:
        raise HockneyError(f"{_subject(run)} has measured the harness alone (transport null), which explains nothing")
    if not curves:
        raise HockneyError(
            f"no figure of {_subject(run)} has an interval yet, so nothing can be told from noise: measure longer "
            f"(--time), or go on with {going_on(run.id, run.info)}"
        )
    return Reading(
        subject=_subject(run),
        curves=tuple(curves),
        notes=tuple(_notes(run, unsure, curves)),
        by_class=tuple(_by_class(run, summarized, crowded)),
        floors=_floors(summarized, states),
        libraries={launch.transport: launch.library for launch in run.launches.values()},
        launchers={launch.transport: launch.argv[0] for launch in run.launches.values() if launch.argv},
        facts=run.facts,
        warnings=run.warnings,
        grains=run.info.plan.get("grains", {}),
        refined_s=run.info.plan["time_s"] if run.info.plan.get("exact") else None,
        precise=_precise(run),
        samples=functools.partial(
            _samples, [(series, measurements) for series, measurements in summarized if _place(series) not in crowded]
        ),
        class_of=classes_of(run),
        matrices=tuple(pair_matrices(run)),
        loggp=tuple(loggp_of(run)),
    )


def _precise(run: Run) -> frozenset[Key]:
    found: dict[Key, bool] = {}
    for series in run.series:
        point = series.point
        key = point.transport, point.pattern, point.ranks, point.options
        found[key] = found.get(key, True) and series.status is PointStatus.PRECISE
    return frozenset(key for key, is_precise in found.items() if is_precise)


def _place(series: Series) -> Place:
    return series.point.transport, series.point.ranks


def _subject(run: Run) -> str:
    return f"run {run.id}" + (f" ({run.label})" if run.label else "")


def _why_empty(run: Run) -> str:
    reasons = Counter(series.reason for series in run.series if series.reason)
    return (
        reasons.most_common(1)[0][0]
        if reasons
        else f"it has no measurement; {going_on(run.id, run.info)} goes on with it"
    )


def _states(summarized: Iterable[tuple[Series, Summarized]]) -> dict[Place, State]:
    """The state of each place in which most points have an interval.

    Of several such the one that most measurements saw.

    Unknown only where there is no other, and mixed is no state.
    """
    count: dict[Place, Counter[State]] = {}
    known: dict[Place, Counter[State]] = {}
    for series, measurements in summarized:
        place, seen = _place(series), Counter(state for _, state in measurements if state != MIXED)
        count.setdefault(place, Counter()).update(seen)
        known.setdefault(place, Counter()).update(state for state in seen if seen[state] >= _INTERVAL_MIN)
    return {
        place: max(seen, key=lambda state: (state != UNKNOWN, known[place][state], seen[state]))
        for place, seen in count.items()
        if seen
    }


def _curves(
    summarized: Iterable[tuple[Series, Summarized]], states: Mapping[Place, State], crowded: set[Place]
) -> tuple[list[Curve], list[Point]]:
    """The curves in the order of the plan, and the points that have no interval in their state."""
    marks: dict[Key, list[Mark]] = {}
    counters: dict[Key, dict[str, tuple[float, ...]]] = {}
    algorithms: dict[Key, str | None] = {}
    unsure: list[Point] = []
    for series, measurements in summarized:
        point = series.point
        if not measurements or point.transport == "null":
            continue
        state = states.get(_place(series))
        # Definitions change only when a run is resumed by a later version; the later one's measurements are looked at.
        own = [measurement for measurement, at in measurements if at == state and measurement.median_ns is not None]
        own = [measurement for measurement in own if measurement.definition == own[-1].definition]
        mark = _mark(point.bytes, own)
        if mark is None:
            unsure.append(point)
            continue
        key = (point.transport, point.pattern, point.ranks, point.options)
        marks.setdefault(key, []).append(mark)
        _count(counters.setdefault(key, {}), own)
        algorithms[key] = own[-1].definition.algorithm
    curves = [
        Curve(
            *key,
            state=states[key[0], key[2]].name,
            marks=tuple(sorted(found, key=lambda mark: mark.bytes)),
            oversubscribed=(key[0], key[2]) in crowded,
            counters=counters[key],
            algorithm=algorithms[key],
        )
        for key, found in marks.items()
    ]
    return curves, unsure


def _by_class(run: Run, summarized: Iterable[tuple[Series, Summarized]], crowded: set[Place]) -> Iterator[ClassCurve]:
    """Of the patterns that measure a pair of ranks. Where several pairs share as much, their median is the class's."""
    class_of = classes_of(run)
    found: dict[tuple[str, str, int, Options, str, State], dict[int, list[_PairMark]]] = {}
    for series, measurements in summarized:
        point = series.point
        if (
            point.pattern not in PAIR_PATTERNS
            or point.transport == "null"
            or _place(series) in crowded
            or not measurements
        ):
            continue
        options = tuple(option for option in point.options if option[0] not in ("source", "target"))
        pair = pair_of(point)
        by_class: dict[tuple[str, State], list[MeasurementSummary]] = {}
        for measurement, state in measurements:
            if (
                state != MIXED
                and measurement.median_ns is not None
                and measurement.definition == measurements[-1][0].definition
            ):
                by_class.setdefault((class_of(pair, measurement.launch_id), state), []).append(measurement)
        for (pair_class, state), own in by_class.items():
            mark = _mark(point.bytes, own)
            if mark is not None:
                key = (point.transport, point.pattern, point.ranks, options, pair_class, state)
                found.setdefault(key, {}).setdefault(point.bytes, []).append((mark, len(own)))
    for (transport, pattern, ranks, options, pair_class, state), sizes in found.items():
        marks = tuple(_of_class(sizes[size]) for size in sorted(sizes))
        count = sum(count for members in sizes.values() for _, count in members)
        yield ClassCurve(Curve(transport, pattern, ranks, options, state.name, marks), pair_class, count)


_PairMark = tuple[Mark, int]  # with how many measurements


def _of_class(members: Sequence[_PairMark]) -> Mark:
    """The median of the pairs; the interval encloses those of all of them. No measurements are of several."""
    marks = [mark for mark, _ in members]
    if len(marks) == 1:
        return marks[0]
    return replace(marks[0], time_ns=of_all([mark.time_ns for mark in marks]), measurements=())


def _mark(size_bytes: int, measurements: Sequence[MeasurementSummary]) -> Mark | None:
    """None where the measurements are too few for an interval."""
    if not measurements:
        return None
    medians_ns = [measurement.median_ns for measurement in measurements if measurement.median_ns is not None]
    time = _estimate(time_of(medians_ns, [measurement.launch_id for measurement in measurements])[0])
    definition = measurements[0].definition
    payload_bytes = definition.bytes_per_rep / definition.divisor or None
    return None if time is None else Mark(size_bytes, time, payload_bytes, measurements)


def _count(sums: dict[str, tuple[float, ...]], measurements: Iterable[MeasurementSummary]) -> None:
    """Add what these measurements counted."""
    for measurement in measurements:
        for name, values in measurement.counters.items():
            before = sums.get(name, (0.0,) * len(values))
            sums[name] = tuple(one + other for one, other in zip(before, values, strict=True))


def _estimate(interval: Interval) -> Estimate | None:
    """None without an interval, or with one that holds 0: the clock can't tell so short a time."""
    if interval.low is None or interval.high is None or interval.low <= 0:
        return None
    return Estimate(interval.value, interval.low, interval.high)


def _floors(summarized: Iterable[tuple[Series, Summarized]], states: Mapping[Place, State]) -> dict[Place, Estimate]:
    """The floor beside each place's shortest messages with its interval.

    The very measurements that it is the floor of.
    """
    short = [
        (-series.point.bytes, not series.point.options, _place(series), measurements)
        for series, measurements in summarized
        if series.point.pattern == "pingpong" and 0 < series.point.bytes <= 64
    ]
    floors = {}
    for _, _, place, measurements in sorted(
        short, key=lambda one: one[:2]
    ):  # the shortest plain one comes last, and stays
        values_ns = [
            sum(measurement.signs.floor_ns) / 2
            for measurement, state in measurements
            if measurement.signs.floor_ns is not None
            and measurement.signs.reference is None
            and state == states.get(place)
        ]
        floor = _estimate(median(values_ns)) if values_ns else None
        if floor is not None:
            floors[place] = floor
    return floors


def _samples(
    summarized: Iterable[tuple[Series, Summarized]], most: int, patterns: Sequence[str] = ()
) -> list[tuple[Measurement, State]]:
    """Whole series, evenly chosen from each transport, until they have about so many measurements.

    None of mixed state.
    """
    by_transport: dict[str, list[tuple[Series, int]]] = {}
    for series, measurements in summarized:
        point = series.point
        if measurements and point.transport != "null" and (not patterns or point.pattern in patterns):
            by_transport.setdefault(point.transport, []).append((series, len(measurements)))
    chosen: list[Series] = []
    for own in by_transport.values():
        step = -(-sum(measurements for _, measurements in own) * len(by_transport) // most)
        chosen += [series for series, _ in own[::step]]
    return [
        (measurement, state)
        for series in chosen
        for measurement, state in zip(series.measurements, series.states, strict=True)
        if state != MIXED and measurement.elapsed_ns.size
    ]


def started_once(run: Run) -> str:
    """What the intervals of a run of one launch do not hold, and how to see it; "" of a run of several."""
    if len({launch.index for launch in run.launches.values()}) != 1:
        return ""
    more = more_launches(run.id, run.info, LAUNCHES)
    return f"Intervals hold within one launch. For the variation from launch to launch, {more}."


def _notes(run: Run, unsure: Sequence[Point], curves: Sequence[Curve]) -> Iterable[str]:
    """What limits the findings, a sentence each."""
    from hockney import __version__

    if run.info.version != __version__:
        yield (
            f"The run was measured by hockney {run.info.version} and is read by {__version__}: definitions may have "
            "changed in between."
        )
    if run.status in _CUT_SHORT:
        yield f"It was {_CUT_SHORT[run.status]}: {going_on(run.id, run.info)} goes on with it."
    elif run.status is RunStatus.RUNNING:
        yield "It is being measured still: what it says may change."
    few = started_once(run)
    if few and run.status not in (*_CUT_SHORT, RunStatus.RUNNING):
        yield few
    of_transport = {launch.transport: launch.library for launch in run.launches.values()}
    yield from dict.fromkeys(
        f"{setting.variable} was set to '{setting.value}', which can't be read as a size here: where {name} lies in "
        "this run is not known."
        for transport, library in of_transport.items()
        for name, setting in unreadable(transport, run.facts, library)
    )
    if unsure:
        yield (
            f"{_points(len(unsure))} left out, for want of measurements in one state: measure longer ({unsure[0]}, "
            f"for one)."
        )
    failed = [series for series in run.series if series.status is PointStatus.FAILED]
    if failed:
        yield f"{_points(len(failed))} left out because measuring failed: {failed[0].point}: {failed[0].reason}."
    crowded = {f"{curve.transport}, {curve.ranks} ranks" for curve in curves if curve.oversubscribed}
    if crowded:
        yield (
            "More ranks than CPUs, whose times are the scheduler's: looked at only for a library that yields: "
            f"{'; '.join(sorted(crowded))}."
        )


def _points(count: int) -> str:
    return f"{counted(count, 'point')} {'is' if count == 1 else 'are'}"
