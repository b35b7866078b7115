"""Samples that are much slower than the others of their measurement: how often they come, and how slow they are."""

from __future__ import annotations

import math

from hockney.analysis.explain.curve import Reading
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject, as_warned
from hockney.stats import median
from hockney.stats.fit import Estimate


def outliers(reading: Reading) -> list[Finding] | NotChecked:
    """Find, for each transport, samples of more than twice their measurement's median, if they are 0.1 % or more."""
    import numpy as np

    samples: dict[str, int] = {}
    total_ns: dict[str, float] = {}
    excess_ns: dict[str, list[float]] = {}
    for measurement, _ in reading.samples(6000, ()):
        times_ns = measurement.times_ns() * (measurement.batch * measurement.definition.divisor)
        middle_ns = float(np.median(times_ns))
        if middle_ns > 0:  # else the clock is too coarse
            transport = measurement.point.transport
            samples[transport] = samples.get(transport, 0) + len(times_ns)
            total_ns[transport] = total_ns.get(transport, 0.0) + float(times_ns.sum())
            slow_ns = times_ns[times_ns > 2 * middle_ns]
            excess_ns.setdefault(transport, []).extend((slow_ns - middle_ns).tolist())
    if not samples:
        return NotChecked(Absence.NOT_MEASURED, why="samples")
    busy = [warning for warning in reading.warnings if warning.kind in ("others", "load")]
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
        cause, fix = (busy[0].kind, as_warned(busy[0].remedy)) if busy else ("", None)
        findings.append(Finding("outliers", Subject(transport), facts, cause, fix, effect))
    return findings


def _poisson(count: int, of: float) -> Estimate:
    """The rate of a Poisson count, with Byar's approximation of its 95 % interval."""
    low, high = (n * (1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3 for n, z in ((count, -1.96), (count + 1, 1.96)))
    return Estimate(count / of, low / of, high / of)
