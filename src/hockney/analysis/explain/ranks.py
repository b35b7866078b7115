"""Slow links, pairs and ranks; libraries that yield, or that are far above the floor."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

from hockney.analysis.clusters import Pair
from hockney.analysis.explain.curve import Reading, subject_of
from hockney.analysis.finding import Absence, Facts, Finding, NotChecked, Subject, as_warned
from hockney.analysis.health.faults import SLOW, fast_hosts, locate
from hockney.analysis.health.matrices import usual
from hockney.analysis.pair_classes import FARTHEST
from hockney.analysis.pairs import PairMatrix, whole_hosts
from hockney.analysis.repeat import same_hosts, same_placement
from hockney.errors import Fix
from hockney.model import Point, pattern_text
from hockney.results.traits import pattern_traits, transport_traits
from hockney.stats import Estimate, median
from hockney.stats.interval import Interval
from hockney.worker.mpi_transport import another_way
from hockney.worker.placement import Placement

# The usual limit of a short message's time in floors: 1.2 is typical in shared memory, 3 to 5 with libraries.
_USUAL = {"memory": 3.0, "library": 10.0}  # by the carrier of the messages; the cost of a system call has no limit


def slow_links(reading: Reading) -> list[Finding] | NotChecked:
    """Links timed side by side that are slower than the others of ranks that share as much.

    Only patterns in which a rank times its own link: in a ring or barrier all ranks wait for the slowest.
    """
    import numpy as np

    ratios: dict[Subject, dict[Pair, list[float]]] = {}
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
                of_links = ratios.setdefault(Subject(point.transport, point.pattern_text, point.ranks), {})
                of_links.setdefault(link, []).append(by_rank[link[0]] / middle_ns)
    if not ratios:
        return NotChecked(Absence.NOT_MEASURED, why="links")
    findings = []
    for subject, of_links in ratios.items():
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
            fix = Fix("measure all pairs", ("hockney", "run", "allpairs", *same_placement(reading.plan)))
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
    """Hosts that are slow with most others where `slow_pairs` names none of theirs, by the method of `health`.

    Among three or four hosts times cannot show whether one is slow or farther off. Nothing where one host was measured.
    """
    hosts = Placement.of_plan(reading.plan).hosts
    matrices = [each for each in reading.matrices if len(set(each.hosts)) > 2 and not each.oversubscribed]
    how = Fix("measure all hosts", ("hockney", "health", *same_hosts(reading.plan)))
    if matrices:
        judged = [_slow_hosts(each, reading.run) for each in matrices]
        named = {(each.transport, each.hosts[rank]) for each in matrices for one in each.outliers for rank in one.ranks}
        by_host: dict[tuple[str, str], Finding] = {}  # that of the first matrix, which is the idle one
        for finding in (finding for findings, _ in judged for finding in findings):
            by_host.setdefault((finding.subject.transport, finding.facts["host"]), finding)
        left = [finding for key, finding in by_host.items() if key not in named]
        unclear = next((gap for _, gap in judged if gap is not None), None)
        return left if left or named or unclear is None else replace(unclear, how=how)
    if len(hosts) < 2 or any(len(set(matrix.hosts)) > 2 for matrix in reading.matrices):
        return []
    if len(hosts) == 2:
        return NotChecked(Absence.NOT_APPLICABLE, why="two hosts")
    return NotChecked(Absence.NOT_MEASURED, why="all hosts", how=how)


def _slow_hosts(matrix: PairMatrix, run: int | None) -> tuple[list[Finding], NotChecked | None]:
    """Those that a matrix shows, and why it may hide some."""
    names = list(dict.fromkeys(matrix.hosts))
    times = _times_of_hosts(matrix, names)
    usual_ns = usual({pair: time.value for pair, time in times.items()}, statistics.median_low) or 0.0

    def is_slow(pair: Pair) -> bool | None:
        time = times[pair]
        if SLOW * time.value <= usual_ns:
            return False
        return True if time.low is not None and SLOW * time.low > usual_ns else None

    located = locate(times, is_slow)
    findings = []
    for part in located.parts:
        known = [time for pair in part.pairs if (time := times[pair].estimate) is not None]
        if part.to is None and len(part.hosts) == 1 and known:
            time, others = Estimate.of_all(known), {host for pair in part.pairs for host in pair} - {*part.hosts}
            facts = {
                "host": names[part.hosts[0]],
                "way": part.way,
                "time_ns": time,
                "usual_ns": usual_ns,
                "slower_ratio": time.value / usual_ns,
                "others": len(others),
                "met": len(names) - 1,
                "load": matrix.load,
            }
            findings.append(
                _of_matrix(matrix, run, "slow host", facts, "slow or farther off", time.value / usual_ns - 1)
            )
    fast = fast_hosts(times, [pair for pair, time in times.items() if time.value < SLOW * usual_ns])
    if fast:
        fast_ns = statistics.median(time.value for pair, time in times.items() if {*fast}.issuperset(pair))
        facts = {"fast": [names[host] for host in fast], "fast_ns": fast_ns, "usual_ns": usual_ns}
        return findings, NotChecked(Absence.INSUFFICIENT_DATA, why="two times", facts=facts)
    if located.unclear and not located.are_many:
        facts = {"unclear": [f"{names[a]} to {names[b]}" for a, b in located.unclear]}
        return findings, NotChecked(Absence.INSUFFICIENT_DATA, why="few measurements", facts=facts)
    return findings, None


def _times_of_hosts(matrix: PairMatrix, names: Sequence[str]) -> dict[Pair, Interval]:
    """From each host to each other one, by their indices in `names`: of several pairs of ranks the median one."""
    of_hosts: dict[Pair, list[Interval]] = {}
    for a, b in itertools.permutations(range(matrix.ranks), 2):
        time = matrix.time(a, b)
        if time is not None and matrix.hosts[a] != matrix.hosts[b]:
            of_hosts.setdefault((names.index(matrix.hosts[a]), names.index(matrix.hosts[b])), []).append(time)
    return {pair: sorted(times, key=lambda time: time.value)[len(times) // 2] for pair, times in of_hosts.items()}


def slow_pairs(reading: Reading) -> list[Finding] | NotChecked:
    """Find the slowest outlier of each matrix of pairs, and the number of others."""
    if not reading.matrices:
        return NotChecked(Absence.NOT_MEASURED, why="all pairs")
    return [
        _slowest(matrix, reading.run) for matrix in reading.matrices if matrix.outliers and not matrix.oversubscribed
    ]


def _slowest(matrix: PairMatrix, run: int | None) -> Finding:
    # Links between hosts come before those within one.
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
    code, cause = "slow group" if worst.reach else "slow rank or pair", worst.may_be_farther * "slow or farther off"
    return _of_matrix(matrix, run, code, facts, cause, worst.factor - 1)


def _of_matrix(matrix: PairMatrix, run: int | None, code: str, facts: Facts, cause: str, effect: float) -> Finding:
    pattern = pattern_text(matrix.pattern, matrix.options)
    subject = Subject(matrix.transport, pattern, matrix.ranks, matrix.state, (matrix.bytes,))
    fix = Fix("show matrix", ("hockney", "show", str(run or "last"), "--tables"))
    return Finding(code, subject, facts, cause, fix, effect)


def yields(reading: Reading) -> list[Finding] | NotChecked:
    """Libraries that gave the CPU away while they waited, as the run's last warning about each has it."""
    if not reading.libraries:
        return NotChecked(Absence.NOT_MEASURED, why="counted yields")
    found: dict[str, Finding] = {}
    for each in (warning for warning in reading.warnings if warning.kind == "yield"):
        seen = {"seen": each.cause.removeprefix(f"{each.subject} ")}  # which screens name in plain words
        found[each.subject] = Finding("yielding library", Subject(each.subject), seen, "", as_warned(each.remedy), 1.0)
    return list(found.values())


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
                "usual_floors": usual,
                "usual_ns": usual * floor.value,
                **({"path": path} if path else {}),
            }
            cause = "yields" if remedy else "another path" if path else ""
            fix = as_warned(remedy) if remedy else None
            subject = subject_of(curve, (short.bytes,))
            findings.append(Finding("far above the floor", subject, facts, cause, fix, floors.value / usual - 1))
    return findings
