"""What is odd between two patterns of the archive: orders that contradict each other, and data that leave a cache."""

from __future__ import annotations

from hockney.analysis.estimates import difference, is_above, ratio
from hockney.analysis.explain.curve import Curve, Options, Reading, subject_of
from hockney.analysis.explain.pattern_pairs import alike, common_sizes, loaded_and_idle
from hockney.analysis.finding import Finding, Subject
from hockney.stats.fit import Estimate

_FASTER, _SLOWER = 0.90, 1.02
_GAIN = 0.03
_STEP = 0.05


def half_round_trips(reading: Reading) -> list[Finding]:
    """One-way and two-way messages compared with half the round trip of the shortest common size.

    Streaming hides latency: it may be faster, and should not be slower.
    """
    pairs = [pair for pattern in ("oneway", "twoway") for pair in alike(reading, pattern, "pingpong")]
    return [finding for curve, pingpong in pairs if (finding := _order(curve, pingpong)) is not None]


def _order(curve: Curve, pingpong: Curve) -> Finding | None:
    sizes = common_sizes(curve, pingpong)
    if not sizes or curve.option("window"):
        return None
    size, time_ns, half_ns = sizes[0]
    over = ratio(time_ns, half_ns)
    is_faster = over.high < 1 and over.value < _FASTER
    if not is_faster and (over.low <= 1 or over.value < _SLOWER):
        return None
    facts = {"size_bytes": size, "time_ns": time_ns, "half_round_trip_ns": half_ns, "time_ratio": over}
    cause = "messages overlap" if is_faster else "the sender waits"
    effect = 0.0 if is_faster else over.value - 1
    return Finding("streaming against round trip", subject_of(curve, (size,)), facts, cause, effect=effect)


def faster_under_load(reading: Reading) -> list[Finding]:
    """Messages that are faster with others under way than alone: something else differs between the two."""
    findings = []
    for loaded, idle in loaded_and_idle(reading):
        faster = [sizes for sizes in common_sizes(loaded, idle) if sizes[1].high < (1 - _GAIN) * sizes[2].low]
        if faster:
            size, loaded_ns, idle_ns = faster[0]
            gain = difference(idle_ns, loaded_ns)
            facts = {
                "size_bytes": size,
                "loaded_ns": loaded_ns,
                "alone": idle.name,
                "alone_ns": idle_ns,
                "gain_ns": gain,
            }
            subject = subject_of(loaded, tuple(size for size, *_ in faster))
            findings.append(Finding("faster under load", subject, facts, effect=gain.value / idle_ns.value))
    return findings


def same_data(reading: Reading) -> list[Finding]:
    """Different data for each receiver compared with the same for all: where the gap begins, a cache ends."""
    groups: dict[tuple[str, Options, str], list[tuple[int, Estimate]]] = {}
    for out, multi in alike(reading, "outfarm", "multicast"):
        # The shortest size shows what a message costs, not what its data do.
        for size, out_ns, multi_ns in common_sizes(out, multi)[1:]:
            group = groups.setdefault((out.transport, out.options, out.state), [])
            group.append(((out.ranks - 1) * size, ratio(out_ns, multi_ns)))
    return [
        finding
        for (transport, _, state), totals in groups.items()
        if (finding := _end_of_cache(transport, state, totals)) is not None
    ]


def _end_of_cache(transport: str, state: str, totals: list[tuple[int, Estimate]]) -> Finding | None:
    """At the widest step between neighbouring totals, if all below are cheaper than all above."""
    totals = sorted(totals, key=lambda total: total[0])
    cut = max(range(1, len(totals)), key=lambda at: totals[at][1].value - totals[at - 1][1].value)
    below = max((over for _, over in totals[:cut]), key=lambda over: over.high)
    above = min((over for _, over in totals[cut:]), key=lambda over: over.low)
    if not is_above(above, below) or above.value - below.value < _STEP:
        return None
    low, high = totals[cut - 1][0], totals[cut][0]
    facts = {"within_bytes": low, "within_ratio": below, "beyond_bytes": high, "beyond_ratio": above}
    subject = Subject(transport, "outfarm and multicast", None, state, (low, high))
    return Finding("data beyond a cache", subject, facts, effect=above.value - below.value)
