"""The greatest impact of a run's background on each transport."""

from __future__ import annotations

from typing import Any

from hockney.analysis.explain.curve import Reading
from hockney.analysis.finding import Finding, Subject
from hockney.analysis.impact import Impact
from hockney.model import pattern_text


def impacts(reading: Reading) -> list[Finding]:
    """Of each transport the point that its background slows most; none of a run without a background."""
    greatest: dict[str, Impact] = {}
    if reading.impacts is None:
        return []
    for impact in reading.impacts.impacts:
        transport, low = impact.point.transport, impact.factor.low
        known = greatest.get(transport)
        if low is not None and low > 1.05 and (known is None or impact.factor.value > known.factor.value):
            greatest[transport] = impact
    return [_finding(impact, reading.impacts.background) for impact in greatest.values()]


def _finding(impact: Impact, background: str) -> Finding:
    point, factor = impact.point, impact.factor
    facts: dict[str, Any] = {
        "background": background,
        "slower_ratio": factor.estimate,
        "idle_ns": impact.idle.p50_ns,
        "loaded_ns": impact.loaded.p50_ns,
        "rounds": impact.rounds,
    }
    if point.is_sized:
        facts["size_bytes"] = point.bytes
    if impact.idle.p99_ns is not None and impact.loaded.p99_ns is not None:
        facts |= {"idle_p99_ns": impact.idle.p99_ns, "loaded_p99_ns": impact.loaded.p99_ns}
    name = pattern_text(point.pattern, point.options)
    subject = Subject(point.transport, name, point.ranks, sizes_bytes=(point.bytes,))
    return Finding("impact", subject, facts, effect=factor.value - 1)
