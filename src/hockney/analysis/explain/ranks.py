"""Slow links, pairs and ranks; libraries that yield, or that are far above the floor."""

from __future__ import annotations

import statistics

from hockney.analysis.explain.clusters import Pair
from hockney.analysis.explain.curve import JobKey, Options, Reading, subject_of
from hockney.analysis.explain.pairs import FARTHEST, PairMatrix, whole_hosts
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject, as_warned
from hockney.analysis.repeat import hosts_of, same_hosts, same_places
from hockney.errors import Fix
from hockney.model import Point, pattern_text
from hockney.results.traits import pattern_traits, transport_traits
from hockney.stats import Estimate, median
from hockney.worker.mpi_transport import another_way

# The usual limit of a short message's time in floors: 1.2 is typical in shared memory, 3 to 5 with libraries.
_USUAL = {"memory": 3.0, "library": 10.0}  # by what carries messages; the cost of a system call has no limit


def slow_links(reading: Reading) -> list[Finding] | NotChecked:
    """Links timed side by side that are slower than the others of ranks that share as much.

    Only patterns in which a rank times its own link: in a ring or barrier all ranks wait for the slowest.
    """
    import numpy as np

    ratios: dict[tuple[JobKey, str, Options], dict[Pair, list[float]]] = {}
    patterns = sorted({curve.pattern for curve in reading.curves})
    patterns = [name for name in patterns if pattern_traits(reading.facts, name).links in ("halves", "ring")]
    for measurement, _ in reading.samples(1500, patterns) if patterns else ():
        by_rank: list[float] = np.median(measurement.elapsed_ns, axis=1).tolist()
        if measurement.batch < 8 and max(by_rank) < 1e6:  # then the rank that starts first waits longer
            continue
        point = measurement.point
        links = _links(point)
        classes = {link: reading.class_of((min(link), max(link)), measurement.launch_id) for link in links}
        for link in links:
            others_ns = [by_rank[a] for a, b in links if (a, b) != link and classes[a, b] == classes[link]]
            if others_ns and (middle_ns := statistics.median(others_ns)) > 0:
                of_links = ratios.setdefault(((point.transport, point.ranks), point.pattern, point.options), {})
                of_links.setdefault(link, []).append(by_rank[link[0]] / middle_ns)
    if not ratios:
        return NotChecked(Absence.NOT_MEASURED, why="links")
    findings = []
    for ((transport, ranks), pattern, options), of_links in ratios.items():
        over = {link: median(values).estimate for link, values in of_links.items()}
        slow = {link: times for link, times in over.items() if times is not None and times.low > 1.10}
        if slow:
            common = set.intersection(*(set(link) for link in slow)) if len(slow) > 1 else set()
            times = Estimate.of_all(list(slow.values()))
            facts = {
                "links": [f"{a}-{b}" for a, b in slow],
                "slower_ratio": times,
                "timed": len(of_links),
                **({"common_ranks": sorted(common)} if common else {}),
            }
            fix = Fix("measure all pairs", ("hockney", "run", "allpairs", *same_places(reading.plan)))
            subject = Subject(transport, pattern_text(pattern, options), ranks)
            findings.append(Finding("slow rank or pair", subject, facts, "", fix, times.value - 1))
    return findings


def _links(point: Point) -> list[Pair]:
    """Each rank that times its own link, with the rank at the other end."""
    if point.traits.links == "ring":
        distance = int(dict(point.options).get("distance", "1"))
        return [(rank, (rank + distance) % point.ranks) for rank in range(point.ranks)]
    half = point.ranks // 2
    return [(rank, rank + half) for rank in range(half)]


def slow_hosts(reading: Reading) -> list[Finding] | NotChecked:
    """Nothing where one host was measured, or the times between all pairs, which `slow_pairs` judges."""
    hosts = hosts_of(reading.plan)
    if len(hosts) < 2 or any(len(set(matrix.hosts)) > 2 for matrix in reading.matrices):
        return []
    if len(hosts) == 2:
        return NotChecked(Absence.NOT_APPLICABLE, why="two hosts")
    how = Fix("measure all hosts", ("hockney", "health", *same_hosts(reading.plan)))
    return NotChecked(Absence.NOT_MEASURED, why="all hosts", how=how)


def slow_pairs(reading: Reading) -> list[Finding] | NotChecked:
    """Find the slowest outlier of each matrix of pairs, and the number of others."""
    if not reading.matrices:
        return NotChecked(Absence.NOT_MEASURED, why="all pairs")
    return [_slowest(matrix) for matrix in reading.matrices if matrix.outliers and not matrix.oversubscribed]


def _slowest(matrix: PairMatrix) -> Finding:
    # What is between hosts comes before what is within one.
    worst, *less = sorted(matrix.outliers, key=lambda each: (not each.class_name.startswith(FARTHEST), -each.factor))
    others = ["-".join(whole_hosts(each.ranks, matrix.hosts) or map(str, each.ranks)) for each in less]
    who: dict[str, object] = {"slow_pair": list(worst.ranks)}
    if worst.reach:
        who = {"slow_group": list(worst.ranks), "reach": worst.reach}
    elif len(worst.ranks) == 1:
        who = {"slow_rank": worst.ranks[0], "pairs": worst.of_pairs}
    names = whole_hosts(worst.ranks, matrix.hosts)
    if len(names) == 1:
        who["slow_host"] = names[0]
    elif names:
        who["slow_hosts" if worst.reach else "slow_host_pair"] = names
    elif len(set(matrix.hosts)) > 1:
        who["hosts"] = [matrix.hosts[rank] for rank in worst.ranks]
    facts = {
        "load": matrix.load,
        "time_ns": worst.time,
        "slower_ratio": worst.factor,
        "class": worst.class_name,
        "class_ns": worst.class_ns,
        **who,
        **({"others": others} if others else {}),
    }
    return Finding(
        "slow group" if worst.reach else "slow rank or pair",
        Subject(
            matrix.transport, pattern_text(matrix.pattern, matrix.options), matrix.ranks, matrix.state, (matrix.bytes,)
        ),
        facts,
        "slow or farther off" if worst.may_be_farther else "",
        Fix("show matrix", ("hockney", "show", "--tables")),
        worst.factor - 1,
    )


def yields(reading: Reading) -> list[Finding] | NotChecked:
    """Libraries that gave the CPU away while they waited, as the run's warnings have it."""
    if not reading.libraries:
        return NotChecked(Absence.NOT_MEASURED, why="CPU times")
    return [
        Finding(
            "yielding library", Subject(warning.subject), {"seen": warning.cause}, "", as_warned(warning.remedy), 1.0
        )
        for warning in reading.warnings
        if warning.kind == "yield"
    ]


def above_floor(reading: Reading) -> list[Finding] | NotChecked:
    """Short messages through memory that take more floors than usual."""
    curves = reading.of("pingpong")
    if not curves or not reading.floors:
        return NotChecked(Absence.NOT_MEASURED, why="floor")
    remedies = {warning.subject: warning.remedy for warning in reading.warnings if warning.kind == "yield"}
    findings = []
    for curve in curves:
        floor = reading.floors.get(curve.job)
        usual = _USUAL.get(transport_traits(reading.facts, curve.transport).carrier)
        short = next((point for point in curve.points if 0 < point.bytes <= 64), None)
        if floor is None or usual is None or short is None or ":" in curve.transport:
            continue
        floors = short.time_ns / floor
        if floors.low > usual:
            path = another_way(reading.libraries.get(curve.transport, ""), reading.facts.get("environment"))
            remedy = remedies.get(curve.transport)
            facts = {
                "size_bytes": short.bytes,
                "latency_ns": short.time_ns,
                "floor_ns": floor,
                "floors_ratio": floors,
                "usual_ratio": usual,
                **({"path": path} if path else {}),
            }
            cause = "yields" if remedy else "another path" if path else ""
            fix = as_warned(remedy) if remedy else None
            subject = subject_of(curve, (short.bytes,))
            findings.append(Finding("far above the floor", subject, facts, cause, fix, floors.value / usual - 1))
    return findings
