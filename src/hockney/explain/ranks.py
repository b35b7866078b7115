"""What ranks and libraries do: one that is slower than the others, one that yields, one far above the floor."""

from __future__ import annotations

import statistics

from hockney.carriers import another_way
from hockney.explain.curve import Reading, finding_about
from hockney.explain.finding import Evidence, Finding, Found, Lacking, ratio, ratio_text
from hockney.explain.pairs import Outlier, outlier_text, why_no_matrix
from hockney.explain.shape import no_curve
from hockney.fit import Estimate
from hockney.stats import median
from hockney.units import counted, format_bytes, format_ns

# Patterns in which all ranks do the same, or all of the first half (of an even number).
_ALL = ("alltoall", "ring", "putring", "barrier")
_FIRST_HALF = ("pairs", "bisection")
_SLOW = 1.10
_VISITS_MAX = 1500
# Of fewer repetitions in a short sample, who happens to start first waits longer, whatever his pace: sockets on which a
# rank sleeps took 8 us on one side and 25 us on the other.
_BATCH_MIN = 8
_SAMPLE_MIN_NS = 1e6
_NAMED_MAX = 5
_SHORT_BYTES = 64
# Times the floor that a short message takes at most where nothing is odd: seen are 1.2 for shared memory, 3 to 5 for
# libraries. Transports of the kernel have no usual factor: a system call costs what it costs.
_USUAL = {"threads": 3.0, "shm": 3.0, "mpi": 10.0, "shmem": 10.0}
_YIELDS = " It yields the CPU while it waits, so this is the time of system calls."


def slow_ranks(reading: Reading) -> Found:
    """A rank that is slower than the others in a pattern in which all do the same."""
    import numpy as np

    ratios: dict[tuple[str, int, int], list[float]] = {}
    for visit, _ in reading.samples(_VISITS_MAX, (*_ALL, *_FIRST_HALF)):
        equal = visit.elapsed_ns.shape[0] // (2 if visit.point.pattern in _FIRST_HALF else 1)
        if visit.point.pattern not in (*_ALL, *_FIRST_HALF) or equal < 2:
            continue
        by_rank: list[float] = np.median(visit.elapsed_ns[:equal], axis=1).tolist()
        if visit.batch < _BATCH_MIN and max(by_rank) < _SAMPLE_MIN_NS:
            continue
        for rank, own_ns in enumerate(by_rank):
            others_ns = statistics.median(by_rank[:rank] + by_rank[rank + 1 :])
            key = (visit.point.transport, visit.point.ranks, rank)
            ratios.setdefault(key, []).append(own_ns / others_ns if others_ns > 0 else 1.0)
    if not ratios:
        return Lacking(
            "needs a pattern in which several ranks do the same (alltoall, ring, pairs of four ranks), in samples of "
            "eight repetitions or of a millisecond"
        )
    found = []
    for (transport, ranks, rank), own in ratios.items():
        over = median(own)
        if over.low is not None and over.high is not None and over.low > _SLOW:
            estimate = Estimate(over.value, over.low, over.high)
            found.append(
                Finding(
                    kind="a slow rank",
                    transport=transport,
                    sentence=(
                        f"Of {ranks} ranks that do the same, rank {rank} takes {ratio_text(estimate)} times as long as "
                        f"the others, over {counted(len(own), 'visit')}."
                    ),
                    effect=over.value - 1,
                    evidence=(Evidence("over the others", estimate, ""),),
                    remedy="`hockney doctor` says what shares its CPU.",
                )
            )
    return found


def slow_pairs(reading: Reading) -> Found:
    """Pairs of ranks, or ranks with most others, that are slower than what shares as much."""
    if not reading.matrices:
        single = why_no_matrix((curve.pattern, curve.ranks) for curve in reading.curves)
        if single is not None:
            return Lacking(single[0].lower() + single[1:].rstrip("."))
        return Lacking("needs the times between all pairs of ranks")
    found = []
    for matrix in reading.matrices:
        worst = sorted(matrix.outliers, key=lambda one: -one.factor)
        if not worst or matrix.oversubscribed:
            continue
        company = "one pair at a time" if matrix.load == "idle" else "disjoint pairs at once"
        more = f"; and {len(worst) - _NAMED_MAX} more" if len(worst) > _NAMED_MAX else ""
        found.append(
            Finding(
                kind="pairs that stand out",
                transport=matrix.transport,
                pattern=" ".join([matrix.pattern, *(f"{name}={value}" for name, value in matrix.options)]),
                ranks=matrix.ranks,
                state=matrix.state,
                sentence=f"{format_bytes(matrix.bytes)} between {matrix.ranks} ranks, {company}: "
                + "; ".join(outlier_text(one, matrix.hosts) for one in worst[:_NAMED_MAX])
                + f"{more}.",
                effect=worst[0].factor - 1,
                sizes_bytes=(matrix.bytes,),
                evidence=tuple(_evidence(one) for one in worst),
                remedy="`hockney show --tables`, with its number, has the run's matrix; doctor says what shares a CPU.",
            )
        )
    return found


def _evidence(outlier: Outlier) -> Evidence:
    return Evidence(f"ranks {', '.join(map(str, outlier.ranks))}", outlier.time, "ns")


def yields(reading: Reading) -> Found:
    """A library that gives the CPU away while it waits: noticed while measuring, and stored with the run."""
    if not reading.libraries:
        return Lacking("needs the CPU times of a run")
    return [
        Finding("a library that yields", warning.subject, warning.cause, effect=1.0, remedy=warning.remedy)
        for warning in reading.warnings
        if warning.kind == "yield"
    ]


def above_floor(reading: Reading) -> Found:
    """A short message that takes unusually many times the floor."""
    curves = reading.of("pingpong")
    if not curves:
        return no_curve(("pingpong",))
    if not reading.floors:
        return Lacking(f"needs a floor beside a ping-pong of {_SHORT_BYTES} B or less")
    yielding = {warning.subject: warning.remedy for warning in reading.warnings if warning.kind == "yield"}
    found = []
    for curve in curves:
        floor = reading.floors.get(curve.place)
        usual = _USUAL.get(curve.transport.partition("@")[0])
        short = [mark for mark in curve.marks if 0 < mark.bytes <= _SHORT_BYTES]
        if floor is None or usual is None or not short or ":" in curve.transport:
            continue
        times = ratio(short[0].time_ns, floor)
        other = another_way(reading.libraries.get(curve.transport, ""), reading.facts.get("environment"))
        if times.low > usual:
            found.append(
                finding_about(
                    curve,
                    "far above the floor",
                    sentence=(
                        f"Half a round trip of {format_bytes(short[0].bytes)} takes "
                        f"{format_ns(short[0].time_ns.value)}, {ratio_text(times)} times the floor of "
                        f"its visits ({format_ns(floor.value)}); up to {usual:.0f} times is usual through memory"
                        f"{f', but {other} (docs/transports.md)' if other else ''}."
                        f"{_YIELDS if curve.transport in yielding else ''}"
                    ),
                    effect=times.value / usual - 1,
                    sizes_bytes=(short[0].bytes,),
                    evidence=(Evidence("latency", short[0].time_ns, "ns"), Evidence("floor", floor, "ns")),
                    remedy=yielding.get(curve.transport),
                )
            )
    return found
