"""What ranks and libraries do: slow links and ranks, a library that yields, one far above the floor."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from hockney.analysis.explain.clusters import Pair
from hockney.analysis.explain.curve import Options, Place, Reading, finding_about
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking, of_all, ratio, ratio_text
from hockney.analysis.explain.pairs import Outlier, outlier_text, why_no_matrix
from hockney.analysis.explain.shape import no_curve
from hockney.model import Point
from hockney.stats import median
from hockney.stats.fit import Estimate
from hockney.units import counted, format_bytes, format_ns
from hockney.worker.mpi_transport import another_way

# Patterns in which a rank times its own link with one other rank, whatever the rest do. In alltoall, ring and barrier
# all ranks wait for the slowest one, so their times are alike and name nobody.
_OF_HALVES = ("pairs", "bisection")  # rank r of the first half with rank r of the second
_OF_RING = "putring"  # each rank to the one `distance` further on
_SLOW = 1.10
_MEASUREMENTS_MAX = 1500
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


def slow_links(reading: Reading) -> Found:
    """Links of two ranks, among those timed side by side, that are slower than others of ranks that share as much."""
    import numpy as np

    ratios: dict[tuple[Place, str, Options], dict[Pair, list[float]]] = {}
    for measurement, _ in reading.samples(_MEASUREMENTS_MAX, (*_OF_HALVES, _OF_RING)):
        links = _links(measurement.point)
        by_rank: list[float] = np.median(measurement.elapsed_ns, axis=1).tolist()
        if measurement.batch < _BATCH_MIN and max(by_rank) < _SAMPLE_MIN_NS:
            continue
        classes = {link: reading.class_of((min(link), max(link)), measurement.launch_id) for link in links}
        for link in links:
            others_ns = [by_rank[one[0]] for one in links if one != link and classes[one] == classes[link]]
            if others_ns and (middle_ns := statistics.median(others_ns)) > 0:
                key = (
                    (measurement.point.transport, measurement.point.ranks),
                    measurement.point.pattern,
                    measurement.point.options,
                )
                ratios.setdefault(key, {}).setdefault(link, []).append(by_rank[link[0]] / middle_ns)
    if not ratios:
        return Lacking(
            "needs a pattern in which each rank times a link of its own (putring; pairs, bisection of four ranks), in "
            "samples of eight repetitions or of a millisecond"
        )
    found = []
    for (place, pattern, options), of_links in ratios.items():
        slow = {
            link: Estimate(over.value, over.low, over.high)
            for link, over in ((link, median(own)) for link, own in of_links.items())
            if over.low is not None and over.high is not None and over.low > _SLOW
        }
        if slow:
            found.append(
                _slow_links(place, " ".join([pattern, *(f"{n}={v}" for n, v in options)]), slow, len(of_links))
            )
    return found


def _slow_links(place: Place, name: str, slow: Mapping[Pair, Estimate], links: int) -> Finding:
    """One finding for all: several slow links may be one slow rank, cable or switch."""
    transport, ranks = place
    over = of_all(list(slow.values()))
    named = [f"{a} and {b}" for a, b in slow][:_NAMED_MAX]
    more = f" and {len(slow) - _NAMED_MAX} more links" if len(slow) > _NAMED_MAX else ""
    common = set.intersection(*(set(link) for link in slow)) if len(slow) > 1 else set()
    return Finding(
        kind="a slow rank or pair",
        transport=transport,
        pattern=name,
        ranks=ranks,
        sentence=(
            f"Of {links} links timed side by side, {counted(len(slow), 'link')} (ranks {', '.join(named)}{more}) "
            f"{'takes' if len(slow) == 1 else 'take'} {ratio_text(over)} times as long as the others."
            + "".join(f" Rank {rank} is in each of them." for rank in sorted(common))
        ),
        effect=over.value - 1,
        evidence=tuple(Evidence(f"ranks {a}, {b}", estimate, "") for (a, b), estimate in slow.items()),
        remedy="`hockney run allpairs` shows whether a rank, a link or a switch is slow; `hockney doctor`, what shares "
        "a CPU.",
    )


def _links(point: Point) -> list[Pair]:
    """Each rank that times a link of its own, with the rank at the other end."""
    if point.pattern in _OF_HALVES:
        return [(rank, rank + point.ranks // 2) for rank in range(point.ranks // 2)]
    if point.pattern == _OF_RING:
        distance = int(dict(point.options).get("distance", "1"))
        return [(rank, (rank + distance) % point.ranks) for rank in range(point.ranks)]
    return []


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
                        f"its measurements ({format_ns(floor.value)}); up to {usual:.0f} times is usual through memory"
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
