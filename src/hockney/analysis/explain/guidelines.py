"""Collectives of a library that are slower than its other operations that do the same, in the same run.

J. L. Traeff, W. Gropp, R. Thakur, Self-consistent MPI performance guidelines, IEEE TPDS 21 (2010) 698-709. Collectives
that hockney makes of messages itself ("portable") are not judged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from hockney.analysis.explain.curve import MeasuredCurve, Reading, is_like, subject_of
from hockney.analysis.explain.thresholds import own_command
from hockney.analysis.finding import Absence, Finding, NotChecked
from hockney.errors import Fix
from hockney.stats.fit import Estimate

# The variable that chooses an algorithm (of a collective in lower and in upper case), and the command that lists them:
# none of MPICH, whose `mpivars` prints hundreds of variables.
_CHOICES = {
    "mpi@openmpi": (
        "OMPI_MCA_coll_tuned_use_dynamic_rules=1 and OMPI_MCA_coll_tuned_{0}_algorithm",
        "{folder}ompi_info --param coll tuned --level 9",
    ),
    "mpi@mpich": ("MPIR_CVAR_{1}_INTRA_ALGORITHM", ""),
}
_PARTS = ("portable", "native parts")  # algorithms made of other operations of the library


@dataclass(frozen=True)
class _Made:
    """A collective's time and that of its parts at one size; `parts` is an algorithm in _PARTS, or "round trips"."""

    curve: MeasuredCurve
    bytes: int
    time_ns: Estimate
    parts_ns: Estimate
    parts: str

    @property
    def ratio(self) -> Estimate:
        return self.time_ns / self.parts_ns


def slower_than_parts(reading: Reading) -> list[Finding] | NotChecked:
    """Find collectives that are 5 % slower than their parts, each at the size with the largest factor."""
    made = [*_by_algorithm(reading), *_barriers(reading)]
    if not made:
        return NotChecked(Absence.NOT_MEASURED, why="two algorithms")
    slower: dict[tuple[str, str, str], list[_Made]] = {}
    for point in made:
        if point.ratio.low > 1.05:
            slower.setdefault((point.curve.transport, point.curve.name, point.parts), []).append(point)
    return [_finding(points, reading) for points in slower.values()]


def _finding(points: list[_Made], reading: Reading) -> Finding:
    worst = max(points, key=lambda point: point.ratio.value)
    facts = {
        **({"size_bytes": worst.bytes} if worst.bytes else {}),
        "time_ns": worst.time_ns,
        "parts": worst.parts,
        "parts_ns": worst.parts_ns,
        "slower_ratio": worst.ratio,
        "points": len({(point.curve.ranks, point.curve.state, point.bytes) for point in points}),
    }
    subject = subject_of(worst.curve, tuple(sorted({point.bytes for point in points})))
    fix = _choose(worst.curve, reading.launchers.get(worst.curve.transport, ""))
    return Finding("slower than its parts", subject, facts, "", fix, worst.ratio.value - 1)


def _choose(curve: MeasuredCurve, launcher: str) -> Fix | None:
    """The fix that chooses another algorithm, and lists them if possible; None for other libraries."""
    name = {"broadcast": "bcast"}.get(curve.pattern, curve.pattern)
    for library, (variable, command) in _CHOICES.items():
        if curve.transport.startswith(library):
            argv = tuple(own_command(command, launcher).split())
            facts = {"variable": variable.format(name, name.upper())}
            return Fix("list algorithms" if argv else "choose algorithm", argv, facts)
    return None


def _by_algorithm(reading: Reading) -> Iterator[_Made]:
    """Collectives of the library and the same by another algorithm: both are timed in the same way."""
    natives = [curve for curve in reading.curves if curve.algorithm == "native" and not curve.oversubscribed]
    others = [(curve, curve.algorithm) for curve in reading.curves if curve.algorithm in _PARTS]
    for whole, (other, parts) in itertools.product(natives, others):
        if whole.pattern != other.pattern or not is_like(whole, other) or _options(whole) != _options(other):
            continue
        # The library's alltoall copies the own block too, which is taken to cost as much as another message.
        blocks = whole.ranks / (whole.ranks - 1) if whole.pattern == "alltoall" else 1.0
        for point in whole.points:
            time = other.at(point.bytes)
            if time is not None:
                yield _Made(whole, point.bytes, point.time_ns, time * blocks, parts)


def _options(curve: MeasuredCurve) -> list[tuple[str, str]]:
    return [(name, value) for name, value in curve.options if name != "algorithm"]


def _barriers(reading: Reading) -> Iterator[_Made]:
    """Dissemination: log2 P rounds of half a round trip each. Used only without a measured barrier by messages."""
    barriers = reading.of("barrier")
    by_messages = [(curve.job, curve.state) for curve in barriers if curve.algorithm == "portable"]
    pingpongs = [curve for curve in reading.of("pingpong") if not curve.option("source") and not curve.option("target")]
    for whole, pingpong in itertools.product(barriers, pingpongs):
        is_same = (whole.transport, whole.state) == (pingpong.transport, pingpong.state)
        if is_same and whole.points and (whole.job, whole.state) not in by_messages:
            time = pingpong.points[0].time_ns * math.ceil(math.log2(whole.ranks))
            yield _Made(whole, 0, whole.points[0].time_ns, time, "round trips")
