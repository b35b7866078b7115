"""The highest rate of events that is sustained within a deadline, from the schedules that a search measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hockney.model import Measurement, Point
from hockney.results.runs import Run
from hockney.stats.figures import INTERVAL_MEASUREMENTS, percentile
from hockney.stats.interval import middle
from hockney.stats.rates import bounds, misses_of, next_hz


@dataclass(frozen=True)
class SustainedRate:
    """The result of a search for one point; the point has no fixed rate.

    `sustained_hz` is the highest rate below `missed_hz`, the lowest that was not sustained; None: no such rate was
    measured. `bytes_per_s` and the times are those of `sustained_hz`, over all events, `missed_by` (see misses_of) and
    `missed_p99_ns` are those of `missed_hz`; None: insufficient data. `is_provisional`: one of both rates has fewer
    than INTERVAL_MEASUREMENTS, and no model is exact. `is_over`: the search ended, and its result is not provisional.
    `low_hz` and `high_hz`: on a fitted machine the interval of `sustained_hz`, or `is_range`.
    """

    point: Point
    sustained_hz: int | None
    missed_hz: int | None
    missed_by: str | None
    missed_p99_ns: float | None
    is_provisional: bool
    is_over: bool
    bytes_per_s: float | None
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    low_hz: float | None = None
    high_hz: float | None = None
    is_range: bool = False


@dataclass(frozen=True)
class HighestRates:
    """All that a run searched, with its deadline."""

    deadline_ns: float
    rates: tuple[SustainedRate, ...]

    @property
    def has_result(self) -> bool:
        """Whether a search has ended and found a rate."""
        return any(rate.is_over and rate.sustained_hz for rate in self.rates)

    def groups(self) -> Iterable[list[SustainedRate]]:
        """The searches that differ only in the events in flight."""
        groups: dict[Point, list[SustainedRate]] = {}
        for rate in self.rates:
            groups.setdefault(rate.point.having("in_flight"), []).append(rate)
        return groups.values()


def at_rate(point: Point, rate_hz: int) -> Point:
    """The same point with events at this rate; 0: each as soon as it may."""
    return point.having("rate_hz", str(rate_hz) if rate_hz else "")


def highest_rates(run: Run) -> HighestRates | None:
    """The result of each search of a run; None if the run searched no rate."""
    deadline_ns = run.info.plan.get("deadline_ns")
    if deadline_ns is None:
        return None
    measured = {series.point: series.measurements for series in run.series}
    bases = [(series.point, series.is_exact) for series in run.series if not series.point.rate_hz]
    rates = (highest_of(base, measured, deadline_ns, is_exact=is_exact) for base, is_exact in bases)
    return HighestRates(deadline_ns, tuple(rates))


def highest_of(
    base: Point, measured: Mapping[Point, Sequence[Measurement]], deadline_ns: float, *, is_exact: bool = True
) -> SustainedRate:
    """The result for one point, from its measurements, which count the bytes of an event, and those on schedule."""
    import numpy as np

    own = {point.rate_hz: each for point, each in measured.items() if each and at_rate(point, 0) == base}
    times_ns = {rate_hz: np.concatenate([one.times_ns() for one in each]) for rate_hz, each in own.items()}
    event = own.pop(0)[0].definition if 0 in own else None
    first_hz = 1e9 / max(1.0, middle(times_ns[0])) if event else 0.0
    misses = {rate_hz: misses_of(each, deadline_ns) for rate_hz, each in own.items()}
    kept = {rate_hz: not missed for rate_hz, missed in misses.items()}
    best_hz, missed_hz = bounds(kept)
    ends = [rate_hz for rate_hz in (best_hz, missed_hz) if rate_hz is not None]
    is_provisional = not is_exact and any(len(own[rate_hz]) < INTERVAL_MEASUREMENTS for rate_hz in ends)

    def time_ns(rate_hz: int | None, share: float) -> float | None:
        return None if rate_hz is None else percentile(times_ns[rate_hz], share)

    return SustainedRate(
        point=base,
        sustained_hz=best_hz,
        missed_hz=missed_hz,
        missed_by=None if missed_hz is None else misses[missed_hz],
        missed_p99_ns=time_ns(missed_hz, 0.99),
        is_provisional=is_provisional,
        is_over=next_hz(first_hz, kept) is None and not is_provisional,
        bytes_per_s=best_hz * event.bytes_per_rep / event.divisor if best_hz and event else None,
        p50_ns=time_ns(best_hz, 0.5),
        p99_ns=time_ns(best_hz, 0.99),
        p999_ns=time_ns(best_hz, 0.999),
    )
