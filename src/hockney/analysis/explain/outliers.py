"""Samples that are slow again and again: how many, whose doing they are, and whether they come with a tick.

A disturbance shows as an outlier where it is longer than a sample, so what is seen of any begins there. That makes
disturbances of all kinds look alike; so transports are set beside each other only by those that each of them shows,
longer than a typical sample of any, and by how often these come, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hockney.analysis.explain.curve import Reading
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking, time_text
from hockney.model import Measurement
from hockney.stats import median
from hockney.stats.fit import Estimate
from hockney.units import format_ns

if TYPE_CHECKING:
    from hockney.model import FloatArray

_MEASUREMENTS_MAX = 6000
_SLOW = 2.0  # times the median of its measurement
_SHARE = 1e-3
_COUNT_MIN = 6
_ALIKE_MIN = 3  # transports: two are alike by chance too easily
_KNOWN_MIN = 50  # a rate from so many is known to a third
_TOLERANCE = 1.1  # what a machine does varies, and transports are not measured at the same moments
_TICKS_NS = (1_000_000, 2_000_000, 3_333_333, 4_000_000, 10_000_000)  # Linux: 1,000, 500, 300, 250, 100 a second
_MOMENT_NS = 1e5  # what a tick sets going comes so soon, and a sample's length is within
_MOMENTS_MAX = 4  # of a period: each CPU may have its own, and so may those of a host below this machine
_SAME = 1e-3  # of a period: 300 a second are rounded
_NEARLY = 0.8  # of what the surest tick makes: then the kernel's own may have made all of them
_CHANCE = 1e-3  # that a tick is none, all of them tried
_ANY_TIMER = (
    "A timer makes some {count:,} of them: the kernel's own, if its CONFIG_HZ says so many a second (one that has "
    "`nohz_full` can keep it from a CPU), or another program's: `hockney doctor` says what runs."
)
_KERNELS = (
    "The kernel's tick makes some {count:,} of them, {hz} times a second on each CPU that works (its CONFIG_HZ; one "
    "that has `nohz_full` can keep it from a CPU)."
)
_EITHER = (
    "The kernel's tick, {hz} times a second and at different moments on different CPUs, or another timer every "
    "{rival}, makes some {count:,} of them: `hockney doctor` says what runs."
)
_PROGRAMS = (
    "A timer makes some {count:,} of them, and not the kernel's tick, which comes {hz} times a second: `hockney "
    "doctor` says what runs."
)
_OTHERS = " What the others come from is not known."


@dataclass(frozen=True)
class _Seen:
    """What the measurements of a transport show; times are those of whole batches.

    Of each measurement its median and the sum of its samples; of each outlier how much longer it is, and than what. Of
    each disturbance, neighbours being one, when it began by the kernel's clock, and how much longer its first sample
    is; and when each sample began: as far as that was stored.
    """

    transport: str
    samples: int
    middle_ns: FloatArray
    total_ns: FloatArray
    excess_ns: FloatArray
    than_ns: FloatArray
    slow_at_ns: FloatArray
    slow_excess_ns: FloatArray
    sampled_at_ns: FloatArray

    def is_worth_telling(self, outliers: int) -> bool:
        """Whether so many are enough to speak of."""
        return outliers >= max(_COUNT_MIN, _SHARE * self.samples)

    def above(self, length_ns: float) -> _Above:
        """Of the measurements whose samples are no longer than that, and so show all that is."""
        shown = self.excess_ns[(self.than_ns <= length_ns) & (self.excess_ns > length_ns)] - length_ns
        return _Above(self, length_ns, 1e-9 * float(self.total_ns[self.middle_ns <= length_ns].sum()), shown)


@dataclass(frozen=True)
class _Above:
    """Disturbances longer than a length that shows in all samples of `sampled_s`, and by how much they are longer."""

    seen: _Seen
    length_ns: float
    sampled_s: float
    beyond_ns: FloatArray

    @property
    def rate(self) -> Estimate:
        """In a second of samples. The interval is a Poisson count's, by Byar's approximation."""
        count = len(self.beyond_ns)
        low, high = (
            n * (1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3 for n, z in ((count, -1.96), (count + 1, 1.96))
        )
        return Estimate(count / self.sampled_s, low / self.sampled_s, high / self.sampled_s)

    @property
    def beyond(self) -> Estimate:
        """By how much a typical one is longer than that."""
        return _typical(self.beyond_ns)


def _typical(values_ns: FloatArray) -> Estimate:
    """Their median; there are six or more."""
    typical = median(values_ns)
    assert typical.low is not None
    assert typical.high is not None
    return Estimate(typical.value, typical.low, typical.high)


@dataclass(frozen=True)
class _Tick:
    """So many of these disturbances lie at so many moments of a period, and so many would by chance.

    A timer of the shorter period `rival_ns` would make the same ones, or nearly; None: of none that is known.
    """

    period_ns: float
    moments: int
    on: int
    of: int
    by_chance: float
    log_chance: float
    rival_ns: float | None = None

    @property
    def beyond_chance(self) -> float:
        return self.on - self.by_chance

    @property
    def is_sure(self) -> bool:
        return self.log_chance <= math.log(_CHANCE)

    def is_kernels(self, hz: int) -> bool:
        """Whether it is as long as that of a kernel that ticks so often in a second."""
        return abs(self.period_ns * hz / 1e9 - 1) < _SAME


def outliers(reading: Reading) -> Found:
    """Samples of more than twice their measurement's median, with the tick that they come with, where there is one.

    Where the machine makes them, those of several transports are one finding.
    """
    import numpy as np

    by_transport: dict[str, list[Measurement]] = {}
    for measurement, _ in reading.samples(_MEASUREMENTS_MAX):
        if np.median(measurement.times_ns()) > 0:  # else the clock can't tell
            by_transport.setdefault(measurement.point.transport, []).append(measurement)
    if not by_transport:
        return Lacking("needs samples")
    seen = [_seen(transport, measurements) for transport, measurements in by_transport.items()]
    hz = (reading.facts.get("os") or {}).get("tick_hz")
    # A machine has one tick: the one that some transport shows the most surely.
    ticks = [
        tick
        for one in seen
        if one.slow_at_ns.size and (tick := _tick(one.slow_at_ns, one.sampled_at_ns, _TICKS_NS, hz))
    ]
    surest = min(ticks, key=lambda tick: tick.log_chance, default=None)
    ticks_ns = [] if surest is None else [surest.period_ns]
    if surest is not None and surest.rival_ns is not None and hz is not None and surest.is_kernels(hz):
        ticks_ns.append(surest.rival_ns)  # so that each finding tells that it may be either
    alike = _alike(seen)
    if not any(one.seen.is_worth_telling(len(one.beyond_ns)) for one in alike):
        alike = []
    of_machine = {one.seen.transport: one.length_ns for one in alike}
    warnings = {one.kind: one for one in reading.warnings}
    load = warnings.get("others", warnings.get("load"))
    own = [_of_transport(one, of_machine.get(one.transport, math.inf), ticks_ns, hz) for one in seen]
    found = [one for one in own if one is not None]
    if alike:
        found.append(_of_machine(alike, ticks_ns, hz, everywhere=len(alike) == len(seen)))
    return found if load is None else [replace(one, remedy=f"{load.cause} {load.remedy}") for one in found]


def _seen(transport: str, measurements: Sequence[Measurement]) -> _Seen:
    import numpy as np

    samples, middles_ns, totals_ns = 0, [], []
    none = np.empty(0)
    excess_ns, than_ns, slow_at_ns, slow_excess_ns, sampled_at_ns = [none], [none], [none], [none], [none]
    for measurement in measurements:
        times_ns = measurement.times_ns() * (measurement.batch * measurement.definition.divisor)
        middle_ns = float(np.median(times_ns))
        where = np.flatnonzero(times_ns > _SLOW * middle_ns)
        samples += len(times_ns)
        middles_ns.append(middle_ns)
        totals_ns.append(float(times_ns.sum()))
        at_ns = none if measurement.started_ns is None else measurement.started_ns + _begins_ns(measurement)
        sampled_at_ns.append(at_ns)
        if len(where):
            excess_ns.append(times_ns[where] - middle_ns)
            than_ns.append(np.full(len(where), middle_ns))
        if len(where) and len(at_ns):
            first = where[np.diff(at_ns[where], prepend=-np.inf) > _MOMENT_NS]
            slow_at_ns.append(at_ns[first])
            slow_excess_ns.append(times_ns[first] - middle_ns)
    lists = (excess_ns, than_ns, slow_at_ns, slow_excess_ns, sampled_at_ns)
    return _Seen(transport, samples, np.array(middles_ns), np.array(totals_ns), *map(np.concatenate, lists))


def _begins_ns(measurement: Measurement) -> FloatArray:
    """When each sample began, since the first meeting of the ranks; each meeting takes what a mean one does."""
    import numpy as np

    own_ns = measurement.elapsed_ns[0]
    meeting_ns = (measurement.wall_ns[0] - own_ns.sum()) / len(own_ns)
    begins_ns: FloatArray = np.cumsum(own_ns) - own_ns + meeting_ns * np.arange(1, len(own_ns) + 1)
    return begins_ns


def _alike(seen: Sequence[_Seen]) -> list[_Above]:
    """The transports that show what the machine does: most of them, and of all those with the fewest disturbances.

    None can have fewer than the machine makes. Above one length that each shows, they come as often and are as long: so
    that the intervals of each hold what all of them have together.
    """
    import numpy as np

    length_ns = max(float(np.median(one.middle_ns)) for one in seen)
    above = sorted((one.above(length_ns) for one in seen), key=lambda one: len(one.beyond_ns) / one.sampled_s)
    for count in range(len(above), max(_ALIKE_MIN, len(above) // 2 + 1) - 1, -1):
        alike = above[:count]
        if min(len(one.beyond_ns) for one in alike) < _KNOWN_MIN:
            continue
        beyond_ns = np.concatenate([one.beyond_ns for one in alike])
        rate = len(beyond_ns) / math.fsum(one.sampled_s for one in alike)
        typical_ns = float(np.median(beyond_ns))
        if all(_holds(one.rate, rate) and _holds(one.beyond, typical_ns) for one in alike):
            return alike
    return []


def _holds(known: Estimate, value: float) -> bool:
    return known.low / _TOLERANCE <= value <= known.high * _TOLERANCE


def _of_transport(seen: _Seen, up_to_ns: float, ticks_ns: Sequence[float], hz: int | None) -> Finding | None:
    """Its own outliers, but for longer ones that are the machine's; None where they are too few to speak of.

    The machine's may be shorter, too: so beside them only such are told as take more of the time than the longer ones.
    """
    is_own = seen.excess_ns <= up_to_ns
    excess_ns = seen.excess_ns[is_own]
    if not seen.is_worth_telling(len(excess_ns)) or excess_ns.sum() <= seen.excess_ns[~is_own].sum():
        return None
    excess = _typical(excess_ns)
    besides = f", but no more than {format_ns(up_to_ns)} longer" if math.isfinite(up_to_ns) else ""
    return _finding(
        f"{_share(len(excess_ns), seen.samples)} take more than twice their measurement's median{besides}. Such a "
        f"sample is "
        f"{time_text(excess)} longer.",
        seen.transport,
        float(excess_ns.sum() / seen.total_ns.sum()),
        [Evidence("excess", excess, "ns")],
        seen.slow_at_ns[seen.slow_excess_ns <= up_to_ns],
        seen.sampled_at_ns,
        ticks_ns,
        hz,
    )


def _of_machine(alike: Sequence[_Above], ticks_ns: Sequence[float], hz: int | None, everywhere: bool) -> Finding:
    import numpy as np

    names = ", ".join(one.seen.transport for one in alike)
    rates, beyond = ([getattr(one, which) for one in alike] for which in ("rate", "beyond"))
    length_ns = alike[0].length_ns
    length, count = format_ns(length_ns), sum(len(one.beyond_ns) for one in alike)
    longer_ns = math.fsum(float(one.beyond_ns.sum()) + length_ns * len(one.beyond_ns) for one in alike)
    return _finding(
        f"{_share(count, sum(one.seen.samples for one in alike))} are more than {length} longer than their "
        f"measurement's "
        f"median, which shows on each transport. They come about as often on {names} "
        f"({_range(rates, '{:,.0f}'.format)} in a second of samples), there they are about as much longer than that "
        f"({_range(beyond, format_ns)}){'' if everywhere else ', and nowhere do they come more seldom'}: that points "
        "to the machine, not to a transport.",
        "",
        1e-9 * longer_ns / math.fsum(one.sampled_s for one in alike),
        [
            *(Evidence(f"outliers in a second on {one.seen.transport}", one.rate, "1/s") for one in alike),
            *(Evidence(f"excess beyond {length} on {one.seen.transport}", one.beyond, "ns") for one in alike),
        ],
        np.concatenate([one.seen.slow_at_ns[one.seen.slow_excess_ns > length_ns] for one in alike]),
        np.concatenate([one.seen.sampled_at_ns for one in alike]),
        ticks_ns,
        hz,
    )


def _share(count: int, samples: int) -> str:
    return f"{count / samples:.2%} of the samples looked at ({count:,} of {samples:,})"


def _range(values: Sequence[Estimate], text: Callable[[float], str]) -> str:
    return f"{text(min(one.value for one in values))} to {text(max(one.value for one in values))}"


def _finding(
    what: str,
    transport: str,
    effect: float,
    evidence: Sequence[Evidence],
    slow_at_ns: FloatArray,
    sampled_at_ns: FloatArray,
    ticks_ns: Sequence[float],
    hz: int | None,
) -> Finding:
    """With the tick that they come with, of those; effect is their part of the time of all samples.

    `hz` is how often in a second the kernel's own comes, None where that is not known.
    """
    tick = _tick(slow_at_ns, sampled_at_ns, ticks_ns, hz) if slow_at_ns.size and ticks_ns else None
    when = "No tick of a kernel, every 1 to 10 ms, can be seen in when they come."
    if not sampled_at_ns.size:
        when = "When they came is not stored with this run, so no tick of a kernel was looked for."
    elif tick is not None:
        when = (
            f"Of {tick.of:,} disturbances {tick.on:,} come at {_moments_text(tick.moments)} of every "
            f"{format_ns(tick.period_ns)}, where {tick.by_chance:,.0f} would by chance."
        )
    period = [Evidence("period", Estimate(tick.period_ns, tick.period_ns, tick.period_ns), "ns")] if tick else []
    return Finding(
        kind="outliers",
        transport=transport,
        sentence=f"{what} {when}",
        effect=effect,
        evidence=(*evidence, *period),
        remedy=_timer(tick, hz) if tick else None,
    )


def _moments_text(moments: int) -> str:
    return "one moment" if moments == 1 else f"{moments} moments"


def _timer(tick: _Tick, hz: int | None) -> str:
    count = round(tick.beyond_chance)
    whose = _ANY_TIMER if hz is None else _KERNELS if tick.is_kernels(hz) else _PROGRAMS
    rival = ""
    if whose is _KERNELS and tick.rival_ns is not None:
        whose, rival = _EITHER, format_ns(tick.rival_ns)
    return whose.format(count=count, hz=hz, rival=rival) + (_OTHERS if 2 * count < tick.of else "")


def _tick(slow_at_ns: FloatArray, sampled_at_ns: FloatArray, ticks_ns: Sequence[float], hz: int | None) -> _Tick | None:
    """The tick at whose moments disturbances lie more often than by chance.

    A multiple of it shares them out among more moments, and a fraction of it has more of them by chance: so the surest
    is the tick itself. But two CPUs whose ticks lie half of a period apart look like one with a tick twice as often: so
    where the kernel's own is known, no other is told that makes hardly more of them.
    """
    tries = [_folded(slow_at_ns, sampled_at_ns, period_ns, len(ticks_ns)) for period_ns in ticks_ns]
    tick = min(tries, key=lambda one: one.log_chance)
    kernels = next((one for one in tries if hz is not None and one.is_kernels(hz) and one.is_sure), tick)
    if kernels is not tick and kernels.beyond_chance >= _NEARLY * tick.beyond_chance:
        tick = replace(kernels, rival_ns=tick.period_ns)
    return tick if tick.is_sure else None


def _folded(slow_at_ns: FloatArray, sampled_at_ns: FloatArray, period_ns: float, periods: int) -> _Tick:
    """The moment of a period with most disturbances, and further ones of which each is no chance among the rest."""
    left_ns = slow_at_ns % period_ns
    begins_ns: list[float] = []
    on, part = 0, 0.0
    while len(begins_ns) < _MOMENTS_MAX and left_ns.size:
        begin_ns, count = _densest(left_ns, period_ns)
        share = _share_of(sampled_at_ns, begin_ns, period_ns)
        # Each moment that was tried begins with one of them.
        chance = _log_chance(count - 1, left_ns.size - 1, min(1.0, share / (1 - part))) + math.log(left_ns.size)
        if begins_ns and (chance > math.log(_CHANCE) or part + share >= 1):
            break
        begins_ns.append(begin_ns)
        on, part = on + count, part + share
        left_ns = left_ns[(left_ns - begin_ns) % period_ns > _MOMENT_NS]
    of, moments = slow_at_ns.size, len(begins_ns)
    log_chance = _log_chance(on - moments, of - moments, part) + math.log(periods) + moments * math.log(of)
    rival_ns = period_ns / moments if moments > 1 and _are_even(begins_ns, period_ns) else None
    return _Tick(period_ns, moments, on, of, part * of, log_chance, rival_ns)


def _are_even(begins_ns: Sequence[float], period_ns: float) -> bool:
    """Whether moments lie evenly in a period, as those of a timer would that comes so many times as often."""
    step_ns = period_ns / len(begins_ns)
    off_ns = ((begin_ns - begins_ns[0]) % step_ns for begin_ns in begins_ns)
    return all(min(one, step_ns - one) <= _MOMENT_NS for one in off_ns)


def _densest(phases_ns: FloatArray, period_ns: float) -> tuple[float, int]:
    """Where the moment of a period begins that holds the most of these, and how many that are."""
    import numpy as np

    phases_ns = np.sort(phases_ns)
    ends = np.searchsorted(np.append(phases_ns, phases_ns + period_ns), phases_ns + _MOMENT_NS, side="right")
    counts = ends - np.arange(len(phases_ns))
    return float(phases_ns[counts.argmax()]), int(counts.max())


def _share_of(sampled_at_ns: FloatArray, begin_ns: float, period_ns: float) -> float:
    """How many would lie in a moment by chance: as if they came evenly, or as samples lie there."""
    import numpy as np

    return max(_MOMENT_NS / period_ns, float(np.mean((sampled_at_ns - begin_ns) % period_ns <= _MOMENT_NS)))


def _log_chance(on: int, of: int, part: float) -> float:
    """An upper bound of log P(binomial(of, part) >= on): Chernoff's."""
    if on <= part * of:
        return 0.0
    share = on / of
    rest = (1 - share) * math.log((1 - share) / (1 - part)) if share < 1 else 0.0
    return -of * (share * math.log(share / part) + rest)
