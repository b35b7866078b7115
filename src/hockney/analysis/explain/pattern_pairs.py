"""Two patterns on one transport: limits of full duplex, and paths that several pairs share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hockney.analysis.explain.curve import MeasuredCurve, Reading, is_like, subject_of
from hockney.analysis.finding import Absence, Finding, NotChecked
from hockney.results.traits import pattern_traits
from hockney.stats.fit import Estimate

_TURNS = (0.75, 1.33)  # the time over one direction's alone; 1 if they take turns all the time


def duplex(reading: Reading) -> list[Finding] | NotChecked:
    """Two-way time per message over the one-way time: 0.5 if both directions run concurrently, 1 if they take turns."""
    pairs = list(same_setting(reading, "twoway", "oneway"))
    if not pairs:
        return NotChecked(Absence.NOT_MEASURED, why="both directions")
    return [finding for two_way, one_way in pairs if (finding := _duplex(two_way, one_way)) is not None]


def _duplex(two_way: MeasuredCurve, one_way: MeasuredCurve) -> Finding | None:
    ratios = [(size, two_ns / one_ns) for size, two_ns, one_ns in common_sizes(two_way, one_way)]
    slower = [(size, over) for size, over in ratios if over.low > 0.55]
    off = slower or [(size, over) for size, over in ratios if over.high < 0.45]
    if not off:
        return None
    (first, first_ratio), (last, last_ratio) = off[0], off[-1]
    facts = {"one_way": one_way.name, "first_bytes": first, "first_ratio": first_ratio}
    if len(off) > 1:
        facts |= {"last_bytes": last, "last_ratio": last_ratio}
    cause = "directions slow each other down" if slower else "one direction waits"
    if slower and _TURNS[0] < last_ratio.low and last_ratio.high < _TURNS[1]:
        cause = "directions take turns"
    effect = max(max(2 * over.low - 1, 1 - 2 * over.high) for _, over in off)
    return Finding("duplex limit", subject_of(two_way, tuple(size for size, _ in off)), facts, cause, effect=effect)


def shared_path(reading: Reading) -> list[Finding] | NotChecked:
    """A best rate under load that is a whole fraction of the best rate alone."""
    findings = []
    is_measured = False
    for loaded, idle in loaded_and_idle(reading):
        loaded_rate, idle_rate = _peak(loaded), _peak(idle)
        if loaded_rate is None or idle_rate is None:
            continue
        is_measured = True
        quotient = idle_rate / loaded_rate
        sharing = round(quotient.value)
        is_ring = pattern_traits(reading.facts, loaded.pattern).links == "ring"
        at_once = loaded.ranks if is_ring else loaded.ranks // 2
        is_whole = sharing - 0.07 <= quotient.low and quotient.high <= sharing + 0.07
        if is_whole and 2 <= sharing <= at_once:
            facts = {
                "sharing": sharing,
                "of_alone_ratio": 1 / quotient.value,
                "alone": idle.name,
                "alone_bytes_per_s": idle_rate,
                "loaded_bytes_per_s": loaded_rate,
            }
            findings.append(Finding("shared path", subject_of(loaded), facts, effect=quotient.value - 1))
    if not is_measured:
        return NotChecked(Absence.NOT_MEASURED, why="alone and loaded")
    return findings


def _peak(curve: MeasuredCurve) -> Estimate | None:
    """The best rate of one message's payload from 64 KiB on, or the published one."""
    if curve.peak_bytes_per_s is not None:
        return curve.peak_bytes_per_s
    rates = [
        1e9 * point.bytes / point.time_ns for point in curve.points if point.bytes >= 1 << 16 and point.time_ns.low > 0
    ]
    return max(rates, key=lambda rate: rate.value, default=None)


def same_setting(reading: Reading, pattern: str, other: str) -> Iterator[tuple[MeasuredCurve, MeasuredCurve]]:
    """Curves of two patterns on one transport with the same options, if the second has options."""
    for first, second in itertools.product(reading.of(pattern), reading.of(other)):
        if is_like(first, second) and (first.options == second.options or not second.options):
            yield first, second


def loaded_and_idle(reading: Reading) -> Iterator[tuple[MeasuredCurve, MeasuredCurve]]:
    """Curves with many messages under way, each with its curve of one message alone."""
    for loaded in reading.curves:
        alone = pattern_traits(reading.facts, loaded.pattern).alone
        for idle in reading.of(alone) if alone and not loaded.oversubscribed else ():
            same = loaded.transport == idle.transport and loaded.state == idle.state
            if same and _compared(loaded) == _compared(idle):
                yield loaded, idle


def _compared(curve: MeasuredCurve) -> dict[str, str]:
    return {name: value for name, value in curve.options if name not in ("distance", "source", "target")}


def common_sizes(first: MeasuredCurve, second: MeasuredCurve) -> list[tuple[int, Estimate, Estimate]]:
    """The sizes that both curves have, with both times."""
    times = {point.bytes: point.time_ns for point in second.points}
    return [(point.bytes, point.time_ns, times[point.bytes]) for point in first.points if point.bytes in times]
