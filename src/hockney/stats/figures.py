"""From the visits of one point to the figures that are shown: one per state of the machine.

The replicate is the median of one visit. Samples within a visit are neighbours in time and share whatever disturbed
it, so counting each as independent would give intervals several times too narrow. Where a job was restarted often
enough, the replicate is one launch (the median of its visits), because placement and addresses change between
launches only; `interval_over` says which it was. See T. Kalibera, R. Jones, Rigorous Benchmarking in Reasonable Time,
ISMM 2013.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hockney.model import Definition, Visit
from hockney.stats import interval
from hockney.stats.interval import CONFIDENCE, Interval
from hockney.stats.states import Signs, State, classify, place

P99_SAMPLES_MIN = 100  # fewer, and the 99th percentile is just the maximum


@dataclass(frozen=True)
class Figure:
    """What one point took in one state. Times are ns by `definition`, rates payload bytes/s over all its messages.

    `low_ns` and `high_ns` enclose the true median with the probability `coverage`; all three are None where there are
    too few visits to say. `p99_ns` is None where a sample is not one repetition, or below 100 samples. Rates are None
    where the pattern counts no bytes. `slowest_rank` is the rank that took longest in most samples and `slowest_share`
    in what part of them, where the definition takes the slowest (1 / ranks and little more: nobody stands out).
    """

    state: str
    floor_ns: float | None
    value_ns: float
    low_ns: float | None
    high_ns: float | None
    coverage: float | None
    interval_over: str  # "visits" or "launches"
    n_visits: int
    n_samples: int
    n_launches: int
    minimum_ns: float
    p99_ns: float | None
    rate_bytes_per_s: float | None
    rate_low_bytes_per_s: float | None
    rate_high_bytes_per_s: float | None
    slowest_rank: int | None
    slowest_share: float | None
    verified: bool | None  # whether any visit's payload was checked, in whatever state; None: no payload
    definition: Definition

    @property
    def precision(self) -> float | None:
        """As Interval.precision."""
        return Interval(self.value_ns, self.low_ns, self.high_ns, self.n_visits, self.coverage).precision


def figures_of(
    visits: Sequence[Visit], states: Sequence[State] | None = None, confidence: float = CONFIDENCE
) -> list[Figure]:
    """The figures of one point: per state from the nearest level on, then "mixed", then "unknown".

    `states` holds the state of each visit, best classified over the whole run; else the given visits alone decide.
    Visits without samples are left out; visits of different definitions (a run resumed by a later version) are never
    put into one figure.
    """
    of_visits = classify([signs_of(visit) for visit in visits]) if states is None else states
    groups: dict[tuple[State, Definition], list[Visit]] = {}
    for visit, state in zip(visits, of_visits, strict=True):
        if visit.elapsed_ns.size:
            groups.setdefault((state, visit.definition), []).append(visit)
    ordered = sorted(groups, key=lambda key: place(key[0].name, key[0].floor_ns))
    verified = _verified(visits)
    return [_figure(state, groups[state, definition], verified, confidence) for state, definition in ordered]


def signs_of(visit: Visit) -> Signs:
    """What tells the state of a visit."""
    return Signs(visit.floor_ns, visit.pace_ns, visit.solo_ns, visit.reference, visit.places)


def _verified(visits: Sequence[Visit]) -> bool | None:
    """Of a whole point: a long payload is checked in its first visit alone, whatever the state was then."""
    if any(visit.verified for visit in visits):
        return True
    return False if any(visit.has_payload for visit in visits) else None


def _figure(state: State, visits: list[Visit], verified: bool | None, confidence: float) -> Figure:
    import numpy as np

    definition = visits[0].definition
    times_ns = [visit.times_ns() for visit in visits]
    medians_ns = [float(np.median(times)) for times in times_ns]
    time, over = time_of(medians_ns, [visit.launch_id for visit in visits], confidence)
    samples_ns = np.concatenate(times_ns)
    single = all(visit.batch == 1 for visit in visits) and len(samples_ns) >= P99_SAMPLES_MIN
    slowest_rank, slowest_share = _slowest(visits)
    return Figure(
        state=state.name,
        floor_ns=state.floor_ns,
        value_ns=time.value,
        low_ns=time.low,
        high_ns=time.high,
        coverage=time.coverage,
        interval_over=over,
        n_visits=len(visits),
        n_samples=len(samples_ns),
        n_launches=len({visit.launch_id for visit in visits}),
        minimum_ns=float(samples_ns.min()),
        p99_ns=float(np.quantile(samples_ns, 0.99)) if single else None,
        rate_bytes_per_s=rate_bytes_per_s(definition, time.value),
        rate_low_bytes_per_s=rate_bytes_per_s(definition, time.high),
        rate_high_bytes_per_s=rate_bytes_per_s(definition, time.low),
        slowest_rank=slowest_rank,
        slowest_share=slowest_share,
        verified=verified,
        definition=definition,
    )


def rate_bytes_per_s(definition: Definition, time_ns: float | None) -> float | None:
    """Payload bytes of a repetition over its time; None where either is nothing."""
    if time_ns is None or time_ns <= 0 or definition.bytes_per_rep == 0:
        return None
    return definition.bytes_per_rep / (time_ns * definition.divisor) * 1e9


def time_of(
    medians_ns: Sequence[float], launch_ids: Sequence[int], confidence: float = CONFIDENCE
) -> tuple[Interval, str]:
    """The time of a point from its visits' medians: over launches if there are enough for an interval, else visits."""
    by_launch: dict[int, list[float]] = {}
    for launch_id, median_ns in zip(launch_ids, medians_ns, strict=True):
        by_launch.setdefault(launch_id, []).append(median_ns)
    if interval.order_ranks(len(by_launch), 0.5, confidence) is not None:
        launches_ns = [statistics.median(of_launch) for of_launch in by_launch.values()]
        return interval.median(launches_ns, confidence), "launches"
    return interval.median(medians_ns, confidence), "visits"


def _slowest(visits: list[Visit]) -> tuple[int | None, float | None]:
    import numpy as np

    if visits[0].definition.timed != "slowest":
        return None, None
    ranks = max(len(visit.elapsed_ns) for visit in visits)
    times_slowest = np.zeros(ranks, dtype=np.int64)
    for visit in visits:
        times_slowest += np.bincount(visit.elapsed_ns.argmax(axis=0), minlength=ranks)
    rank = int(times_slowest.argmax())
    return rank, float(times_slowest[rank] / times_slowest.sum())
