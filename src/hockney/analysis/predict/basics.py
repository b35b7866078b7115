"""The figures of a run that models are fitted to, those of two ranks, and the others, which check a fit."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from hockney.analysis.explain.fits import delay_of
from hockney.model import Point, PointStatus
from hockney.results.runs import Run, Series, main_state
from hockney.results.store import MeasurementSummary
from hockney.results.traits import transport_traits
from hockney.stats import MIXED, UNKNOWN, State, time_of
from hockney.stats.interval import Estimate
from hockney.suites import Suite
from hockney.suites.words import each_of

WINDOW = 16
_STREAM = (("window", str(WINDOW)),)
_BASIC = {  # the basic figures of two ranks that a pattern with these options measures
    ("pingpong", ()): "half",
    ("oneway", _STREAM): "gap",
    ("twoway", _STREAM): "both",
    ("put", ()): "put",
    ("putpong", ()): "putpong",
    ("get", ()): "get",
}


Members = Sequence[tuple[Series, list[tuple[MeasurementSummary, State]]]]


@dataclass(frozen=True)
class Basics:
    """The times of two ranks at one message size, in ns, by name.

    `half`: half a round trip; `gap`: per message of a stream; `both`: likewise, of two streams at once; `one`, `burst`,
    `one_delayed`, `spaced`: of prtt with 1 and n messages, without and with a delay; `put`, `putpong`, `get`.
    `messages` is that n, `delay_ns` the real length of the delay. A stream ends with one acknowledgement after
    `acknowledged` messages.
    """

    bytes: int
    times: dict[str, Estimate] = field(default_factory=dict)
    messages: int = 0
    delay_ns: float = 0.0
    acknowledged: int = 0


@dataclass(frozen=True)
class Figures:
    """The times of a transport in a run, in one machine state; None: in all of them.

    All states are used for ranks that sleep while they wait (they have no floor), and if one state has less than half
    of the data for a fit or for its check.
    """

    transport: str
    state: str | None
    basics: tuple[Basics, ...]
    others: dict[Point, Estimate]

    @property
    def complete(self) -> tuple[Basics, ...]:
        """The sizes with all figures that a fit needs."""
        return tuple(each for each in self.basics if {"half", "gap"} <= each.times.keys())

    @property
    def counts(self) -> tuple[int, int]:
        """How many sizes are complete, and how many other figures of two ranks there are."""
        return len(self.complete), sum(point.ranks == 2 for point in self.others)


def figures_of(run: Run, transport: str, checks: Suite | None = None) -> Figures:
    """The figures of a transport: those of two ranks that a fit uses, by size, and the others.

    A fit does not use the points of the suite `checks`.
    """
    left_out = {
        (series.pattern, tuple(sorted(options.items())), size)
        for series in (() if checks is None else checks.series)
        for options in each_of(series.options)
        for size in series.bytes
    }
    members = [
        (series, measurements)
        for series, measurements in run.summaries()
        if series.point.transport == transport and not series.point.background
        if series.status is not PointStatus.FAILED
    ]
    counts = (Counter(of.name for _, of in each if of != MIXED) for series, each in members if series.point.ranks == 2)
    state = None if transport_traits(run.facts, transport).sleeps else main_state(counts)
    in_all = _figures(transport, members, None, left_out)
    in_state = in_all if state in (None, UNKNOWN.name) else _figures(transport, members, state, left_out)
    is_half = (2 * here >= everywhere for here, everywhere in zip(in_state.counts, in_all.counts, strict=True))
    return in_state if all(is_half) else in_all


def _figures(
    transport: str,
    members: Members,
    state: str | None,
    left_out: Collection[tuple[str, tuple[tuple[str, str], ...], object]],
) -> Figures:
    basics: dict[int, Basics] = {}
    others: dict[Point, Estimate] = {}
    for series, measurements in members:
        in_state = [each for each, of in measurements if state is None or of.name == state]
        time, point = _time(in_state, is_exact=series.is_exact), series.point
        if time is None or point.rate_hz:
            continue
        if (point.pattern, point.options, point.bytes) in left_out or not _takes(basics, point, time, in_state):
            others[point] = time
    return Figures(transport, state, tuple(basics[size] for size in sorted(basics)), others)


def _time(measurements: Sequence[MeasurementSummary], *, is_exact: bool) -> Estimate | None:
    """A time; with too few measurements for an interval, their range replaces it."""
    medians_ns = [each.median_ns for each in measurements if each.median_ns is not None]
    if not medians_ns:
        return None
    interval = time_of(medians_ns, [each.launch_id for each in measurements if each.median_ns is not None])[0]
    if is_exact or interval.value <= 0:
        return Estimate(interval.value, interval.value, interval.value)
    return interval.estimate or Estimate(statistics.median(medians_ns), min(medians_ns), max(medians_ns))


def _takes(basics: dict[int, Basics], point: Point, time: Estimate, measurements: Sequence[MeasurementSummary]) -> bool:
    """Whether a figure is a basic one: then it is entered."""
    options = dict(point.options)
    messages, delay = int(options.pop("messages", 1)), int(options.pop("delay_ns", 0))
    name = _BASIC.get((point.pattern, point.options))
    if point.pattern == "prtt" and not options:
        name = ("one_delayed" if delay else "one") if messages == 1 else "spaced" if delay else "burst"
    if name is None or point.ranks != 2:
        return False
    of_size = basics.get(point.bytes, Basics(point.bytes))
    of_size = replace(of_size, times={**of_size.times, name: time}, messages=max(messages, of_size.messages))
    if delay:
        of_size = replace(of_size, delay_ns=delay_of(measurements) or of_size.delay_ns)
    if name == "gap":
        of_size = replace(of_size, acknowledged=measurements[-1].batch * measurements[-1].definition.divisor)
    basics[point.bytes] = of_size
    return True
