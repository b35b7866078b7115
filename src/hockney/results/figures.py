"""The figures of a run: one row for each point and machine state. Everything that shows or uses a figure takes its row.

The tables of a run show one machine state. A quiet state qualifies if it has an interval for at least half of the
points that have one in any state. Of those that qualify, tables show the one with most measurements; if none does, the
most frequent state. A job that was never measured in this state has its own, chosen by the same rule.

Tables show one row of each point: that of the state. If it has too few measurements for an interval, they show a mixed
row: of all measurements on its level, quiet or contended, or else of all states, if these are enough.

A figure is always a range: a 95 % interval, or the extremes seen if there are too few measurements for one.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hockney.model import DIGITS, Definition, Measurement, Point, PointStatus
from hockney.results.building import Building, building_of
from hockney.stats import MIXED, UNKNOWN, State, state_order
from hockney.stats.figures import (
    INTERVAL_MEASUREMENTS,
    RANGE,
    ROUNDING,
    STREAM_EVENTS_MIN,
    arrived_share,
    estimate_of,
    main_batch,
    needed_for,
    percentile,
    rate_per_s,
    scatter_of,
)
from hockney.stats.interval import Estimate

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series
    from hockney.results.store import MeasurementSummary

SEVERAL_STATES = "several states"
EITHER = "quiet or contended"  # of a level

Pairs = Sequence[tuple["MeasurementSummary", State]]
JobKey = tuple[str, int]  # transport and number of ranks of a job


class Tails(NamedTuple):
    """Figures that need samples: percentiles of single repetitions in ns, the rank most often slowest, its share."""

    p99_ns: float | None
    p999_ns: float | None
    slowest_rank: int | None
    slowest_share: float | None


@dataclass(frozen=True)
class Figure:
    """The time and the rates of a point in the machine state `state`, or, if `is_mixed`, in several states.

    `time` is in ns: the geometric mean of the launches' medians, or with one launch the median of its measurements'
    medians. `interval_over` says what its bounds cover: "launches" or "within one launch", with the probability
    `coverage`; "exact": a model without noise; "range": the extremes seen, as there are too few measurements for an
    interval; "rounding": the digits of a single imported figure.

    `arrived`: the share of messages that arrived, as UDP loses some. `verified`: whether the payload was checked in any
    measurement of the point; None: no payload. `batch`: the largest. `n_left_out`: measurements of a stream with
    another batch, and those by an earlier definition. `is_shown`: tables show this row; a point that failed has none.
    `is_short`: a stream with fewer than STREAM_EVENTS_MIN events in a sample. `measurements`: those of the figure.
    Imported outputs do not state everything: None.
    """

    state: str
    floor_ns: float | None
    time: Estimate
    interval_over: str
    coverage: float | None
    arrived: float
    n_measurements: int
    n_launches: int
    n_samples: int | None
    n_left_out: int
    minimum_ns: float | None
    verified: bool | None
    batch: int | None
    definition: Definition
    is_shown: bool
    is_mixed: bool
    is_short: bool
    is_exact: bool
    is_imported: bool
    is_oversubscribed: bool | None
    is_harness: bool
    series: Series = field(repr=False, compare=False)
    measurements: tuple[MeasurementSummary, ...] = field(repr=False, compare=False)

    @property
    def point(self) -> Point:
        return self.series.point

    @property
    def has_interval(self) -> bool:
        """Whether the bounds are a confidence interval, not the extremes seen."""
        return self.interval_over not in (RANGE, ROUNDING)

    @property
    def payload_bytes(self) -> float:
        """Bytes that arrive in the time."""
        return self.arrived * self.definition.bytes_per_rep / self.definition.divisor

    @property
    def bytes_per_s(self) -> Estimate | None:
        """The rate of payload that arrives; None without one."""
        return rate_per_s(self.payload_bytes, self.time)

    @property
    def pure_ns(self) -> float | None:
        """The time of the operation without computing, of the ranks whose time counts: the median over measurements.

        None unless each rank computes for as long between its start and its end (option overlap).
        """
        if dict(self.point.options).get("overlap") != "yes":
            return None
        rank, of_ranks = self.definition.timed_rank, statistics.fmean if self.definition.timed == "mean" else max
        delays = [(each.counters.get("delay_ns", ()), each.counters.get("delays", ())) for each in self.measurements]
        known = [[total / count for total, count in zip(*each, strict=True) if count] for each in delays]
        pure = [of_ranks(each if rank is None else each[rank : rank + 1] or each) for each in known if each]
        return statistics.median(pure) / self.definition.divisor if pure else None

    @property
    def overlap_percent(self) -> Estimate | None:
        """How much of the computing the operation hides, 0 to 100, as OSU and IMB have it: 100 (2 - time / pure)."""
        pure_ns = self.pure_ns
        return self.time.mapped(lambda ns: 100 * min(1.0, max(0.0, 2 - ns / pure_ns))) if pure_ns else None

    @property
    def messages_per_s(self) -> Estimate | None:
        """The rate of messages that arrive; None without any."""
        return rate_per_s(self.arrived * self.definition.messages_per_rep / self.definition.divisor, self.time)

    @property
    def is_range(self) -> bool:
        """Whether its bounds are not a confidence interval of one machine state."""
        return self.is_mixed or self.interval_over == RANGE

    @property
    def precision(self) -> float | None:
        """The larger half-width of the interval over the value: 0.01 means known to 1 %. None for a range."""
        is_known = self.has_interval and not self.is_mixed and self.time.value
        return self.time.relative if is_known else None

    @property
    def between_launches(self) -> float | None:
        """The relative standard deviation between launches, without the scatter of measurements."""
        return scatter_of(*medians_of(self.measurements))[0]

    @property
    def within_launches(self) -> float | None:
        """The relative standard deviation within a launch."""
        return scatter_of(*medians_of(self.measurements))[1]

    @property
    def launches_needed(self) -> int | None:
        """How many launches would reach the precision of the run; more than it has if it missed that precision."""
        asked = self.series.run.info.plan.get("precision")
        needed = None if asked is None else needed_for(*medians_of(self.measurements), asked)
        return max(needed, self.n_launches + 1) if needed and (self.precision or 0) > (asked or 1) else needed

    @functools.cached_property
    def samples_of(self) -> list[Measurement]:
        """Its measurements with their samples, which are read now."""
        wanted = {measurement.id for measurement in self.measurements}
        return [each for number, each in self.series.numbered.items() if number in wanted and each.elapsed_ns.size]

    @functools.cached_property
    def tails(self) -> Tails:
        """The figures of its samples; None: too few samples, batches of several, or not timed by the slowest rank."""
        import numpy as np

        measurements = [] if self.is_imported else self.samples_of
        p99_ns = p999_ns = rank = share = None
        if measurements and self.batch == 1:
            samples_ns = np.concatenate([each.times_ns() for each in measurements])
            p99_ns, p999_ns = percentile(samples_ns, 0.99), percentile(samples_ns, 0.999)
        if measurements and self.definition.timed == "slowest":
            slowest = np.concatenate([each.elapsed_ns.argmax(axis=0) for each in measurements])
            times_slowest = np.bincount(slowest)
            rank = int(times_slowest.argmax())
            share = float(times_slowest[rank] / times_slowest.sum())
        return Tails(p99_ns, p999_ns, rank, share)

    @functools.cached_property
    def cpu_shares(self) -> list[tuple[float, float]]:
        """User and system time over wall time of each rank, in all its measurements; [] if none is known."""
        import numpy as np

        times_ns = [(each.cpu_user_ns, each.cpu_system_ns, each.wall_ns) for each in self.samples_of]
        totals = np.sum(times_ns, axis=0).T.tolist() if times_ns else []  # shape (ranks, 3)
        return [(user / wall, system / wall) for user, system, wall in totals if wall]

    @functools.cached_property
    def building(self) -> Building | None:
        """Of events: the rate reached, each builder's share, late and lost ones, fairness; None of other patterns."""
        if not self.point.traits.events:
            return None
        counters = [each.counters for each in self.measurements]
        return building_of(self.point, self.time.value, counters, [] if self.is_imported else self.samples_of)

    def read(self) -> Figure:
        """The figure itself, once its samples are read: the file may then be closed."""
        _ = self.tails, self.building
        return self

    def columns(self) -> dict[str, Any]:
        """The exported values by name, as in CSV, JSON and Parquet; None: unknown."""
        return {name: _plain(self, path) for name, (_, path) in COLUMNS.items()}


COLUMNS: Mapping[str, tuple[type, str]] = {
    "state": (str, "state"),
    "shown": (bool, "is_shown"),
    "mixed": (bool, "is_mixed"),
    "floor_ns": (float, "floor_ns"),
    "value_ns": (float, "time.value"),
    "low_ns": (float, "time.low"),
    "high_ns": (float, "time.high"),
    "interval_over": (str, "interval_over"),
    "coverage": (float, "coverage"),
    "between_launches": (float, "between_launches"),
    "within_launches": (float, "within_launches"),
    "launches_needed": (int, "launches_needed"),
    "n_measurements": (int, "n_measurements"),
    "n_samples": (int, "n_samples"),
    "n_launches": (int, "n_launches"),
    "minimum_ns": (float, "minimum_ns"),
    "p99_ns": (float, "tails.p99_ns"),
    "p999_ns": (float, "tails.p999_ns"),
    "rate_bytes_per_s": (float, "bytes_per_s.value"),
    "rate_low_bytes_per_s": (float, "bytes_per_s.low"),
    "rate_high_bytes_per_s": (float, "bytes_per_s.high"),
    "messages_per_s": (float, "messages_per_s.value"),
    "messages_low_per_s": (float, "messages_per_s.low"),
    "messages_high_per_s": (float, "messages_per_s.high"),
    "slowest_rank": (int, "tails.slowest_rank"),
    "slowest_share": (float, "tails.slowest_share"),
    "verified": (bool, "verified"),
    "batch": (int, "batch"),
    "n_left_out": (int, "n_left_out"),
    "is_short": (bool, "is_short"),
    "oversubscribed": (bool, "is_oversubscribed"),
    "verdict": (str, "series.verdict"),
    "events_per_s": (float, "building.events_per_s"),
    "late_share": (float, "building.late"),
    "lost": (int, "building.lost"),
    "fairness": (float, "building.fairness"),
    "resent": (int, "building.resent"),
    "timeouts": (int, "building.timeouts"),
}
"""The exported values of a figure: the type of each, and the attribute that holds it."""


def _plain(figure: Figure, path: str) -> Any:
    value: Any = figure
    for name in path.split("."):
        value = getattr(value, name, None)
    return None if value == math.inf else value


# ---- the frame of a run ----------------------------------------------------------------------------------------------


class Frame:
    """Makes figures without samples; `states`: the one that tables show of each job, by transport and ranks."""

    def __init__(self, run: Run) -> None:
        members = [series for series in run.series if series.counts]
        carriers = [series for series in members if not series.is_harness] or members
        self._launches = run.launches
        self.states: dict[JobKey, str | None] = {}
        for is_reference in (False, True):  # floors between hosts and of cache lines are not compared
            chosen = main_state(series.counts for series in carriers if _is_reference(series) == is_reference)
            jobs: dict[JobKey, list[Counter[str]]] = {}
            for series in members:
                if _is_reference(series) == is_reference:
                    jobs.setdefault(series.job, []).append(series.counts)
            for job, counts in jobs.items():
                is_seen = any(chosen is not None and of_point[chosen] for of_point in counts)
                self.states.setdefault(job, chosen if is_seen else main_state(counts))

    def rows_of(self, series: Series, pairs: Pairs) -> tuple[Figure, ...]:
        """The figures of a point from these of its measurements, in the order of `state_order`, a mixed one last."""
        pairs = [pair for pair in pairs if pair[0].median_ns is not None]
        if not pairs:
            return ()
        last = pairs[-1][0].definition  # it changes only where a later version resumes a run
        names = sorted(
            {state.name: state.floor_ns for _, state in pairs}.items(), key=lambda state: state_order(*state)
        )
        rows: dict[tuple[str, ...], Figure] = {
            (name,): self._figure(series, pairs, (name,), last)
            for name, _ in names
            if any(pair[0].definition == last and pair[1].name == name for pair in pairs)
        }
        every = tuple(name for pool in rows for name in pool)
        main = State(self.states.get(series.job) or UNKNOWN.name, None)
        level = tuple(name for name in every if State(name, None).level == main.level)
        pools = [pool for pool in dict.fromkeys(((main.name,) if main.name in every else (), level, every)) if pool]
        for pool in pools:
            rows[pool] = rows.get(pool) or self._figure(series, pairs, pool, last)
        several = [pool for pool in pools if rows[pool].n_measurements > 1] or [
            every
        ]  # one has the range of its samples
        shown = next((pool for pool in pools if rows[pool].has_interval), several[0])
        keep = [pool for pool in rows if len(pool) == 1 or pool == shown]
        is_good = series.status is not PointStatus.FAILED  # else its payload may be wrong
        return tuple(replace(rows[pool], is_shown=is_good and pool == shown) for pool in keep)

    def _figure(self, series: Series, pairs: Pairs, states: Sequence[str], definition: Definition) -> Figure:
        run, every = series.run, [pair for pair in pairs if pair[1].name in states]
        alike = [pair for pair in every if pair[0].definition == definition]
        batches = {main_batch(each.batch for each, _ in alike)} if series.point.is_stream else set()
        kept = [pair for pair in alike if not batches or pair[0].batch in batches]
        measurements = tuple(measurement for measurement, _ in kept)
        time, over, coverage = measured_time(measurements, is_exact=series.is_exact)
        repetitions = sum(each.samples * each.batch for each in measurements)
        arrived = arrived_share(definition, repetitions, [each.counters for each in measurements])
        batch, is_imported = max(each.batch for each in measurements), run.info.is_imported
        launches = filter(None, (self._launches.get(number) for number in {each.launch_id for each in measurements}))
        has_payload = series.point.traits.payload and definition.bytes_per_rep > 0
        verified = any(each.verified for each, _ in pairs) or (False if has_payload and not is_imported else None)
        return Figure(
            state=_name(states),
            floor_ns=_floor_ns(kept),
            time=time,
            interval_over=ROUNDING if over == RANGE and is_imported and len(measurements) == 1 else over,
            coverage=coverage,
            arrived=arrived,
            n_measurements=len(measurements),
            n_launches=len({each.launch_id for each in measurements}),
            n_samples=None if is_imported else sum(each.samples for each in measurements),
            n_left_out=len(every) - len(measurements),
            minimum_ns=None if is_imported else min(each.min_ns or 0.0 for each in measurements),
            verified=verified,
            batch=None if is_imported else batch,
            definition=definition,
            is_shown=False,
            is_mixed=len(states) > 1 or states[0] == MIXED.name,
            is_short=series.point.is_stream
            and batch * definition.divisor < STREAM_EVENTS_MIN
            and not series.point.rate_hz,
            is_exact=series.is_exact,
            is_imported=is_imported,
            is_oversubscribed=None if is_imported else any(launch.oversubscribed for launch in launches),
            is_harness=series.is_harness,
            series=series,
            measurements=measurements,
        )


def main_state(points: Iterable[Mapping[str, int]]) -> str | None:
    """The one state that stands for these points, each given as its number of measurements by the name of their state.

    Of the quiet states with enough measurements, the one with most; if none has enough, the most frequent state. Enough
    is an interval for at least half of the points that have one in any state. "mixed" and "unknown" are chosen only if
    there is no other state. None without measurements.
    """
    total: Counter[str] = Counter()
    precise: Counter[str] = Counter()
    precise_points = 0
    for point in points:
        total.update(point)
        precise.update(name for name, count in point.items() if count >= INTERVAL_MEASUREMENTS)
        precise_points += any(count >= INTERVAL_MEASUREMENTS for count in point.values())

    def rank(name: str) -> tuple[bool, bool, int]:
        has_enough = 0 < precise[name] >= precise_points / 2
        is_known = name not in (MIXED.name, UNKNOWN.name)
        return is_known, has_enough and not State(name, None).is_contended, total[name]

    return max(total, key=rank, default=None)


def _is_reference(series: Series) -> bool:
    return any(measurement.probe.reference is not None for measurement, _ in series.pairs)


def _name(states: Sequence[str]) -> str:
    if len(states) == 1:
        return states[0]
    levels = {State(name, None).level for name in states}
    return f"{levels.pop()}, {EITHER}" if len(levels) == 1 else SEVERAL_STATES


def _floor_ns(pairs: Pairs) -> float | None:
    """The floor of the one state, or the median of those of several."""
    floors_ns = {state.name: state.floor_ns for _, state in pairs}
    if len(floors_ns) == 1:
        return next(iter(floors_ns.values()))
    known = [sum(each.probe.floor_ns) / 2 for each, _ in pairs if each.probe.floor_ns]
    return statistics.median(known) if known else None


def medians_of(measurements: Iterable[MeasurementSummary]) -> tuple[list[float], list[int]]:
    """The medians that are known, each with its launch."""
    known = [(each.median_ns, each.launch_id) for each in measurements if each.median_ns is not None]
    return [median_ns for median_ns, _ in known], [launch_id for _, launch_id in known]


def measured_time(
    measurements: Sequence[MeasurementSummary], *, is_exact: bool = False
) -> tuple[Estimate, str, float | None]:
    """As stats.estimate_of, of measurements that have a time. Bounds of printed times include their rounding."""
    medians_ns, launch_ids = medians_of(measurements)
    digits_ns = max((each.counters[DIGITS][0] for each in measurements if DIGITS in each.counters), default=0.0)
    ends = [end for each in measurements[:1] for end in (each.min_ns, each.max_ns) if end is not None]
    is_exact = is_exact and not digits_ns
    time, over, coverage = estimate_of(medians_ns, launch_ids, exact=is_exact, extremes=ends)
    digits_ns *= over != RANGE or time.low == time.high  # a range is of what was seen
    return replace(time, low=max(0.0, time.low - digits_ns), high=time.high + digits_ns), over, coverage
