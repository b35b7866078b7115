"""Samples that are much slower than the others of their measurement, and launches that fall into two groups."""

from __future__ import annotations

import math
import statistics

from hockney.analysis.explain.curve import Reading, subject_of
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject
from hockney.results.figures import medians_of
from hockney.stats import median
from hockney.stats.figures import by_launch
from hockney.stats.fit import Estimate

_APART = 1.5  # the slower group over the faster one
_GROUP_MIN = 2  # launches: one slow launch is an outlier


def outliers(reading: Reading) -> list[Finding] | NotChecked:
    """Find, for each transport, samples of more than twice their measurement's median, if they are 0.1 % or more."""
    samples: dict[str, int] = {}
    total_ns: dict[str, float] = {}
    excess_ns: dict[str, list[float]] = {}
    for point, measurement in reading.measured:
        if measurement.median_ns and measurement.total_ns:  # else the clock is too coarse
            transport = point.transport
            samples[transport] = samples.get(transport, 0) + measurement.samples
            total_ns[transport] = total_ns.get(transport, 0.0) + measurement.total_ns
            excess_ns.setdefault(transport, []).extend(measurement.slow_ns)
    if not samples:
        return NotChecked(Absence.NOT_MEASURED, why="samples")
    findings = []
    for transport, excess in excess_ns.items():
        if len(excess) < max(6, 1e-3 * samples[transport]):  # fewer than six have no median with an interval
            continue
        facts = {
            "outliers": len(excess),
            "samples": samples[transport],
            "slow_share": len(excess) / samples[transport],
            "rate_per_s": _poisson(len(excess), 1e-9 * total_ns[transport]),
            "excess_ns": median(excess).estimate,
        }
        effect = math.fsum(excess) / total_ns[transport]
        findings.append(Finding("outliers", Subject(transport), facts, effect=effect))
    return findings


def bimodal(reading: Reading) -> list[Finding] | NotChecked:
    """Find, for each curve, the size whose launches fall into the two groups that are farthest apart.

    By a factor of _APART, and by more than each group is wide; one slow launch alone is an outlier.
    """
    found: dict[Subject, Finding] = {}
    most = 0
    for of, point in ((curve, point) for curve in reading.curves for point in curve.points):
        ordered = sorted(map(statistics.median, by_launch(*medians_of(point.measurements))))
        most, cuts = max(most, len(ordered)), range(_GROUP_MIN, len(ordered) - _GROUP_MIN + 1)
        gap, at = max(((ordered[at] / ordered[at - 1], at) for at in cuts), default=(0.0, 1))
        if gap < _APART or max(ordered[at - 1] / ordered[0], ordered[-1] / ordered[at]) >= gap:
            continue
        fast_ns, slow_ns = statistics.median(ordered[:at]), statistics.median(ordered[at:])
        facts = {"launches": len(ordered), "slow_launches": len(ordered) - at, "fast_ns": fast_ns, "slow_ns": slow_ns}
        facts |= {"size_bytes": point.bytes} if point.bytes else {}
        finding = Finding("bimodal", subject_of(of, (point.bytes,)), facts, effect=slow_ns / fast_ns - 1)
        found[subject_of(of)] = max(found.get(subject_of(of), finding), finding, key=lambda one: one.effect)
    return list(found.values()) if most >= 2 * _GROUP_MIN else NotChecked(Absence.NOT_MEASURED, why="four launches")


def _poisson(count: int, of: float) -> Estimate:
    """The rate of a Poisson count, with Byar's approximation of its 95 % interval."""
    low, high = (n * (1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3 for n, z in ((count, -1.96), (count + 1, 1.96)))
    return Estimate(count / of, low / of, high / of)
