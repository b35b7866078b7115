"""What detectors look at: the curves of a run, or of a machine of the archive, and what is known beside them.

A run is read once and without its samples: the medians of its visits are stored. Of each transport (at each number of
ranks) only the state of the machine that most visits saw is looked at, because figures of different states can't be
set beside each other. A point without an interval in that state is not part of any curve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hockney.archive import Published
from hockney.errors import HockneyError
from hockney.explain.finding import Evidence, Finding
from hockney.fit import Estimate
from hockney.library import Run, Series
from hockney.model import Definition, Point, PointStatus, Visit, Warning_
from hockney.stats import MIXED, UNKNOWN, Interval, State, median, time_of
from hockney.store import VisitSummary

Options = tuple[tuple[str, str], ...]
Place = tuple[str, int]  # a transport and a number of ranks
Summarized = list[tuple[VisitSummary, State]]


@dataclass(frozen=True)
class Mark:
    """A figure of a curve: the pattern's time, by its definition, at one message size.

    The time stands for so many payload bytes; None where the pattern counts none.
    """

    bytes: int
    time_ns: Estimate
    payload_bytes: float | None = None

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

    `definition` is None where a report published the times. `peak_bytes_per_s` is a best rate that was published
    without its size. `counters` are sums over all visits, one number a rank.
    """

    transport: str
    pattern: str
    ranks: int
    options: Options
    state: str
    marks: tuple[Mark, ...]
    definition: Definition | None = None
    oversubscribed: bool = False
    peak_bytes_per_s: Estimate | None = None
    counters: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`oneway window=16`: the pattern with its options."""
        return " ".join([self.pattern, *(f"{name}={value}" for name, value in self.options)])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(mark.bytes for mark in self.marks)

    @property
    def place(self) -> Place:
        return self.transport, self.ranks

    def at(self, size_bytes: int) -> Estimate | None:
        """The time of a size that was measured."""
        return next((mark.time_ns for mark in self.marks if mark.bytes == size_bytes), None)

    def option(self, name: str) -> str | None:
        return dict(self.options).get(name)


@dataclass(frozen=True)
class Reading:
    """Everything that is looked at. What is not known of a machine is None or empty.

    `floors` are the floors beside the latency of each place. `recent` brings back at most so many visits with their
    samples, evenly chosen from the whole run. `published` are the archive's figures as they were printed. `notes` are
    sentences on what could not be used.
    """

    subject: str
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()
    floors: Mapping[Place, Estimate] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Warning_, ...] = ()
    published: tuple[Published, ...] = ()
    recent: Callable[[int], Sequence[tuple[Visit, State]]] = lambda most: ()

    def of(self, *patterns: str) -> list[Curve]:
        """The curves of these patterns, but for those of more ranks than CPUs: their times are the scheduler's."""
        return [curve for curve in self.curves if curve.pattern in patterns and not curve.oversubscribed]

    @property
    def page_bytes(self) -> int | None:
        size: int | None = self.facts.get("memory", {}).get("page_bytes")
        return size

    @property
    def caches(self) -> list[tuple[int, int]]:
        """(level, bytes) of the data caches, by level."""
        caches = self.facts.get("topology", {}).get("caches", ())
        data = [cache for cache in caches if cache["kind"] != "instruction" and cache["size_bytes"]]
        return sorted({(cache["level"], cache["size_bytes"]) for cache in data})


def finding_about(
    curve: Curve,
    kind: str,
    *,
    sentence: str,
    effect: float,
    sizes_bytes: tuple[int, ...] = (),
    evidence: tuple[Evidence, ...] = (),
    remedy: str | None = None,
    source: str | None = None,
) -> Finding:
    """A finding that is this curve's first of all."""
    return Finding(
        kind=kind,
        transport=curve.transport,
        sentence=sentence,
        effect=effect,
        pattern=curve.name,
        state=curve.state,
        sizes_bytes=sizes_bytes,
        evidence=evidence,
        remedy=remedy,
        source=source,
    )


def is_like(one: Curve, other: Curve) -> bool:
    """Whether two curves may be set beside each other: one transport, as many ranks, one state."""
    return one.place == other.place and one.state == other.state


# ---- a run ----------------------------------------------------------------------------------------------------------


def read_run(run: Run) -> Reading:
    """Raises HockneyError where there is no figure at all, or none with an interval."""
    summarized = run.summaries()
    if not any(visits for _, visits in summarized):
        raise HockneyError(f"{_subject(run)} has no figures, so there is nothing to explain: {_why_empty(run)}")
    states = _states(summarized)
    crowded = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    curves, unsure = _curves(summarized, states, crowded)
    if not curves and not unsure:
        raise HockneyError(f"{_subject(run)} has measured the harness alone (transport null), which explains nothing")
    if not curves:
        raise HockneyError(
            f"no figure of {_subject(run)} has an interval yet, so nothing can be told from noise: measure longer "
            "(--time), or go on with `hockney run --resume`"
        )
    return Reading(
        subject=_subject(run),
        curves=tuple(curves),
        notes=tuple(_notes(run, unsure, curves)),
        floors=_floors(summarized, states),
        libraries={launch.transport: launch.library for launch in run.launches.values()},
        facts=run.facts,
        warnings=run.warnings,
        recent=lambda most: _recent(summarized, most),
    )


def _subject(run: Run) -> str:
    return f"run {run.id}" + (f" ({run.label})" if run.label else "")


def _why_empty(run: Run) -> str:
    reasons = Counter(series.reason for series in run.series if series.reason)
    return reasons.most_common(1)[0][0] if reasons else "it has no visit; `hockney run --resume` goes on with it"


def _states(summarized: Iterable[tuple[Series, Summarized]]) -> dict[Place, State]:
    """The state of each place that most visits saw; mixed and unknown only where there is no other."""
    count: dict[Place, Counter[State]] = {}
    for series, visits in summarized:
        place = (series.point.transport, series.point.ranks)
        count.setdefault(place, Counter()).update(state for _, state in visits)
    return {
        place: max(seen, key=lambda state: (state not in (MIXED, UNKNOWN), state != MIXED, seen[state]))
        for place, seen in count.items()
        if seen
    }


def _curves(
    summarized: Iterable[tuple[Series, Summarized]], states: Mapping[Place, State], crowded: set[Place]
) -> tuple[list[Curve], list[Point]]:
    """The curves in the order of the plan, and the points that have no interval in their state."""
    groups: dict[tuple[str, str, int, Options], list[tuple[int, Summarized]]] = {}
    unsure: list[Point] = []
    for series, visits in summarized:
        point = series.point
        if not visits or point.transport == "null":
            continue
        state = states[point.transport, point.ranks]
        # Definitions change only when a run is resumed by a later version; the later one's visits are looked at.
        own = [(visit, at) for visit, at in visits if at == state and visit.median_ns is not None]
        own = [(visit, at) for visit, at in own if visit.definition == own[-1][0].definition]
        if _time(own) is None:
            unsure.append(point)
        else:
            groups.setdefault((point.transport, point.pattern, point.ranks, point.options), []).append(
                (point.bytes, own)
            )
    return [_curve(*key, states[key[0], key[2]].name, found, crowded) for key, found in groups.items()], unsure


def _curve(
    transport: str,
    pattern: str,
    ranks: int,
    options: Options,
    state: str,
    found: list[tuple[int, Summarized]],
    crowded: set[Place],
) -> Curve:
    found.sort(key=lambda one: one[0])
    counters: dict[str, list[float]] = {}
    for _, visits in found:
        for visit, _ in visits:
            for name, values in visit.counters.items():
                sums = counters.setdefault(name, [0.0] * len(values))
                counters[name] = [one + other for one, other in zip(sums, values, strict=True)]
    return Curve(
        transport=transport,
        pattern=pattern,
        ranks=ranks,
        options=options,
        state=state,
        marks=tuple(_mark(size, visits) for size, visits in found),
        definition=found[-1][1][-1][0].definition,
        oversubscribed=(transport, ranks) in crowded,
        counters={name: tuple(sums) for name, sums in counters.items()},
    )


def _mark(size_bytes: int, visits: Summarized) -> Mark:
    definition, time = visits[-1][0].definition, _time(visits)
    assert time is not None  # those without are left out before
    return Mark(size_bytes, time, definition.bytes_per_rep / definition.divisor or None)


def _time(visits: Summarized) -> Estimate | None:
    medians = [(visit.median_ns, visit.launch_id) for visit, _ in visits if visit.median_ns is not None]
    return _estimate(time_of([ns for ns, _ in medians], [number for _, number in medians])[0]) if medians else None


def _estimate(interval: Interval) -> Estimate | None:
    if interval.low is None or interval.high is None:
        return None
    return Estimate(interval.value, interval.low, interval.high)


def _floors(summarized: Iterable[tuple[Series, Summarized]], states: Mapping[Place, State]) -> dict[Place, Estimate]:
    """The floor beside each place's shortest messages with its interval: the very visits that it is the floor of."""
    found: dict[Place, list[float]] = {}
    for series, visits in summarized:
        place = (series.point.transport, series.point.ranks)
        if series.point.pattern == "pingpong" and series.point.bytes <= 64:
            found.setdefault(place, []).extend(
                sum(visit.floor_ns) / 2
                for visit, state in visits
                if visit.floor_ns is not None and visit.floor_kind != "transport" and state == states[place]
            )
    floors = {place: _estimate(median(values_ns)) for place, values_ns in found.items() if values_ns}
    return {place: floor for place, floor in floors.items() if floor is not None}


def _recent(summarized: Sequence[tuple[Series, Summarized]], most: int) -> list[tuple[Visit, State]]:
    """Whole series, evenly chosen, until they have so many visits; those of mixed state are left out."""
    measured = [(series, len(visits)) for series, visits in summarized if visits and series.point.transport != "null"]
    total = sum(visits for _, visits in measured)
    step = max(1, -(-total // most))
    return [
        (visit, state)
        for series, _ in measured[::step]
        for visit, state in zip(series.visits, series.states, strict=True)
        if state != MIXED and visit.elapsed_ns.size
    ]


def _notes(run: Run, unsure: Sequence[Point], curves: Sequence[Curve]) -> Iterable[str]:
    """What limits the findings, a sentence each."""
    from hockney import __version__

    if run.info.version != __version__:
        yield (
            f"The run was measured by hockney {run.info.version} and is read by {__version__}: definitions may have "
            "changed in between."
        )
    if len({launch.index for launch in run.launches.values()}) == 1:
        yield (
            "Every job was started once: what changes from start to start (where memory lies, which path a library "
            "takes) is in no interval. `--launches 6` or more shows it."
        )
    if unsure:
        yield (
            f"{_points(len(unsure))} left out, for want of visits in one state: measure longer ({unsure[0]}, for one)."
        )
    failed = [series for series in run.series if series.status is PointStatus.FAILED]
    if failed:
        yield f"{_points(len(failed))} left out because measuring failed: {failed[0].point}: {failed[0].reason}."
    crowded = {f"{curve.transport}, {curve.ranks} ranks" for curve in curves if curve.oversubscribed}
    if crowded:
        yield f"More ranks than CPUs, so only looked at for time slices: {'; '.join(sorted(crowded))}."


def _points(count: int) -> str:
    return "1 point is" if count == 1 else f"{count} points are"
