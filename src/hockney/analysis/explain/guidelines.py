"""Operations of a library that are slower than what they can be made of, by figures of the same run.

What a library offers as one operation should not be slower than the same done by hand with its other operations (J. L.
Traeff, W. Gropp, R. Thakur, Self-consistent MPI performance guidelines, IEEE Transactions on Parallel and Distributed
Systems 21 (2010) 698-709). A finding needs intervals that are apart. Where a transport has no such operation, hockney
makes it of the parts itself, and there is nothing to judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hockney.analysis.explain.curve import Curve, Reading, finding_about, is_like
from hockney.analysis.explain.finding import (
    Evidence,
    Finding,
    Found,
    Lacking,
    difference,
    ratio,
    ratio_text,
    scaled,
)
from hockney.analysis.explain.thresholds import own_command
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns

_SLOWER = 0.05
_SHORT_BYTES = 64  # what bytes cost is no part of so short a message
# How a library tells which other algorithms it has.
_CHOICES = {"mpi@openmpi": "{folder}ompi_info --param coll tuned --level 9", "mpi@mpich": "{folder}mpivars"}
# How each is made of messages where a program, or hockney, does it by hand.
_BY_MESSAGES = {
    "alltoall": "all messages sent at once, with a share for the own block",
    "multicast": "a message to each",
    "allreduce": "recursive doubling over messages",
    "barrier": "dissemination over messages",
}
Made = tuple[Curve, int, Estimate, Estimate, str]  # operation, size, its time, that of its parts, what these are


def slower_than_parts(reading: Reading) -> Found:
    """Every operation at every size beside what it can be made of; of each operation the worst is said."""
    made = [*_by_messages(reading), *_barriers(reading)]
    if not made:
        return Lacking(
            "needs barrier beside pingpong, or an operation of the library's own beside the same by messages"
        )
    return _slower(made, reading)


def allreduce(reading: Reading) -> Found:
    """An allreduce beside the library's own reduction and broadcast, which do the same."""
    made = list(_beside(reading, "allreduce", "native parts", "a reduction and a broadcast"))
    if not made:
        return Lacking("needs the library's own allreduce as it is and with algorithm=parts")
    return _slower(made, reading)


def _slower(made: list[Made], reading: Reading) -> list[Finding]:
    slower: dict[tuple[str, str], list[Made]] = {}
    for one in made:
        curve, _, own, parts, _ = one
        if curve.algorithm != "portable" and own.low > (1 + _SLOWER) * parts.high:
            slower.setdefault((curve.transport, curve.name), []).append(one)
    return [_finding(found, reading) for found in slower.values()]


def _finding(found: list[Made], reading: Reading) -> Finding:
    curve, size, own, parts, what = max(found, key=lambda one: one[2].value / one[3].value)
    operation = curve.name if curve.pattern == "barrier" else f"{curve.name} of {format_bytes(size)}"
    asked = next((how for begins, how in _CHOICES.items() if curve.transport.startswith(begins)), None)
    # A point that is slower than several of its parts is one point.
    others = {(one[0].ranks, one[0].state, one[1]) for one in found} - {(curve.ranks, curve.state, size)}
    more = f"; so it is at {len(others)} more of its points" if others else ""
    return finding_about(
        curve,
        "slower than its parts",
        sentence=(
            f"{operation} among {curve.ranks} takes {format_ns(own.value)}, "
            f"{ratio_text(ratio(own, parts))} times {what} ({format_ns(parts.value)}){more}."
        ),
        effect=own.value / parts.value - 1,
        sizes_bytes=tuple(sorted({one[1] for one in found})),
        evidence=(Evidence(curve.name, own, "ns"), Evidence(what, parts, "ns")),
        remedy=None if asked is None else _choices(asked, reading.launchers.get(curve.transport, "")),
    )


def _choices(asked: str, launcher: str) -> str:
    return f"`{own_command(asked, launcher)}` lists the algorithms that the library has to choose from."


def _by_messages(reading: Reading) -> Iterator[Made]:
    for pattern, what in _BY_MESSAGES.items():
        yield from _beside(reading, pattern, "portable", what)


def _beside(reading: Reading, pattern: str, algorithm: str, what: str) -> Iterator[Made]:
    """The library's own operation and the same by another algorithm.

    Both are timed alike, which other patterns are not: a stream of messages hides what an exchange has to wait for.
    """
    curves = reading.of(pattern)
    for whole in (curve for curve in curves if curve.algorithm == "native"):
        for other in (curve for curve in curves if curve.algorithm == algorithm):
            if is_like(whole, other) and _but_for_algorithm(whole) == _but_for_algorithm(other):
                for mark in whole.marks:
                    part = other.at(mark.bytes)
                    if part is not None:
                        if pattern == "alltoall":
                            part = _with_own_block(other, part)
                        yield whole, mark.bytes, mark.time_ns, part, what


def _with_own_block(flat: Curve, time: Estimate) -> Estimate:
    """What the messages to all others would take with the own block, which the library's operation copies too.

    It costs no more than each of them, but for what a message costs without bytes, where that was measured.
    """
    shortest = flat.marks[0]
    of_bytes = difference(time, shortest.time_ns) if shortest.bytes <= _SHORT_BYTES else time
    own = scaled(of_bytes, 1 / (flat.ranks - 1))
    return Estimate(time.value + max(own.value, 0.0), time.low + max(own.low, 0.0), time.high + max(own.high, 0.0))


def _but_for_algorithm(curve: Curve) -> list[tuple[str, str]]:
    return [(name, value) for name, value in curve.options if name != "algorithm"]


def _barriers(reading: Reading) -> Iterator[Made]:
    """Dissemination: log2 P rounds of one message each way at once, rounded up.

    A pingpong is timed otherwise, on one rank, so it stands in only where the barrier by messages was not measured.
    """
    barriers = reading.of("barrier")
    for whole in barriers:
        if any(other is not whole and is_like(whole, other) and other.algorithm == "portable" for other in barriers):
            continue
        for pingpong in reading.of("pingpong"):
            # One of many pairs may be nearer than those that a barrier brings together.
            plain = not (pingpong.option("source") or pingpong.option("target"))
            if plain and whole.transport == pingpong.transport and whole.state == pingpong.state and whole.marks:
                rounds = math.ceil(math.log2(whole.ranks))
                shortest = pingpong.marks[0]
                count = "half a round trip" if rounds == 1 else f"{rounds} half round trips"
                trips = f"{count} of {format_bytes(shortest.bytes)}"
                what = f"{trips} timed on one rank"
                yield whole, 0, whole.marks[0].time_ns, scaled(shortest.time_ns, rounds), what
