"""The ranks that had less than a whole core, by the paces of their CPUs.

Least squares divide the paces of a CPU in a run into two classes (W. D. Fisher, JASA 53, 1958). They are two levels
under three conditions. The medians differ by 12 % (30 % for fewer than 40 paces) and by six standard deviations of the
quick class. Each class has 1 % of the paces, or eight. Values are missing between the medians: a drifting clock leaves
no gap. A pace is contended if it is 6 % and four standard deviations above the quick median, or half way to the slow
one.
"""

from __future__ import annotations

import itertools
import math
import operator
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from hockney.model import MachineProbe, Place

CONTENDED = "contended"


def is_contended(probe: MachineProbe, limits_ns: Mapping[Place, float]) -> bool:
    """Whether any rank had less than a whole core just before or just after a measurement; False without paces."""
    limits = [limits_ns.get(cpu, math.inf) for cpu in _cpus(probe)]  # none where it only shared its core
    return any(
        _shares_core(probe, when) or any(map(operator.gt, paces, limits))
        for when, paces in enumerate(probe.pace_ns or ())
    )


def _shares_core(probe: MachineProbe, when: int) -> bool:
    """Whether the ranks 0 and 1 were threads of one core, before (0) or after (1) a measurement."""
    if probe.solo_ns is None or probe.pace_ns is None:
        return False
    return probe.pace_ns[when][0] >= 1.25 * probe.solo_ns[when]


def pace_limits(probes: Iterable[MachineProbe]) -> dict[Place, float]:
    """The pace of each CPU above which it is contended."""
    paces_ns: dict[Place, list[float]] = {}
    for probe in probes:
        for when, paces in enumerate(probe.pace_ns or ()):
            if not _shares_core(probe, when):
                for cpu, pace_ns in zip(_cpus(probe), paces, strict=True):
                    paces_ns.setdefault(cpu, []).append(pace_ns)
    return {cpu: pace_limit(of_cpu) for cpu, of_cpu in paces_ns.items()}


def _cpus(probe: MachineProbe) -> tuple[Place, ...]:
    """The CPUs of the ranks; where they are not known, each rank is one."""
    ranks = len(probe.pace_ns[0]) if probe.pace_ns else 0
    return probe.places if len(probe.places) == ranks else tuple(("", -1 - rank) for rank in range(ranks))


def pace_limit(paces_ns: Sequence[float]) -> float:
    """The pace above which a CPU is contended; infinite where its paces have one level."""
    # Sorted before some are left out: the result must not depend on which run came first.
    known = sorted(pace_ns for pace_ns in paces_ns if 0 < pace_ns < math.inf)
    logs = [math.log(pace_ns) for pace_ns in known[:: 1 + len(known) // 2000]]  # more only cost time
    n = len(logs)
    cut = _best_cut(logs)
    if min(cut, n - cut) < min(max(2, 0.01 * n), 8):
        return math.inf
    quick, slow = statistics.median(logs[:cut]), statistics.median(logs[cut:])
    # The quick class may hold contended paces, or steps of a coarse clock: the smaller of two estimates counts.
    deviation = statistics.median(abs(log - quick) for log in logs[:cut])
    sigma = min(1.483 * deviation, (logs[cut - 1 - cut // 10] - logs[cut // 10]) / 2.563)
    different = max(math.log(1.12 if n >= 40 else 1.3), 6 * sigma)
    if slow - quick < different or not _is_hollow(logs, cut, quick, slow):
        return math.inf
    return math.exp(quick + min(max(math.log(1.06), 4 * sigma), (slow - quick) / 2))


def _best_cut(ordered: Sequence[float]) -> int:
    """How many values the lower of two classes has, where the squares within both are least."""
    n, total, lower = len(ordered), math.fsum(ordered), 0.0
    best, cut = -math.inf, 0
    for i in range(1, n):
        lower += ordered[i - 1]
        between = (lower / i - (total - lower) / (n - i)) ** 2 * i * (n - i)
        if between > best:
            best, cut = between, i
    return cut


def _is_hollow(ordered: Sequence[float], cut: int, quick: float, slow: float) -> bool:
    """Whether values are missing between the medians of the two classes.

    Either half of the range is empty, or a band of it holds at most half as many values as usual bands of the slow
    class, and significantly fewer.
    """
    way = [quick, *ordered[bisect_right(ordered, quick) : bisect_left(ordered, slow)], slow]
    if max(above - below for below, above in itertools.pairwise(way)) >= (slow - quick) / 2:
        return True
    slow_part = ordered[cut:]
    step = math.log(1.03)
    span = slow_part[9 * (len(slow_part) - 1) // 10] - slow_part[0]
    for width in (step, 2 * step, 4 * step):
        usual = len(slow_part) * width / max(span, width)
        lows = [quick + step * number for number in range(1, int((slow - quick - width) / step) + 1)]
        counts = [bisect_right(ordered, low + width) - bisect_right(ordered, low) for low in lows]
        if min(counts, default=math.inf) <= min(usual / 2, usual - 2.5 * math.sqrt(usual)):
            return True
    return False
