"""Operations that are slower than what they can be made of, by figures of the same run.

What a library offers as one operation should not be slower than the same done by hand with its other operations (J. L.
Traeff, W. Gropp, R. Thakur, Self-consistent MPI performance guidelines, IEEE Transactions on Parallel and Distributed
Systems 21 (2010) 698-709). A finding needs intervals that are apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hockney.explain.curve import Curve, Reading, finding_about, is_like
from hockney.explain.finding import Evidence, Finding, Found, Lacking, is_above, ratio, ratio_text, scaled
from hockney.fit import Estimate
from hockney.units import format_bytes, format_ns

_SLOWER = 0.05
Made = tuple[Curve, int, Estimate, Estimate, str]  # operation, size, its time, that of its parts, what these are


def slower_than_parts(reading: Reading) -> Found:
    """Every operation at every size beside what it can be made of; of each operation the worst is said."""
    made = [*_alltoalls(reading), *_multicasts(reading), *_barriers(reading)]
    if not made:
        return Lacking("needs alltoall beside pairs, multicast beside outfarm, or barrier beside pingpong")
    return _slower(made)


def allreduce(reading: Reading) -> Found:
    """An allreduce beside the library's own reduction and broadcast, which do the same."""
    made = list(_allreduces(reading))
    if not made:
        return Lacking("needs the pattern allreduce as it is and with algorithm=parts")
    return _slower(made)


def _slower(made: list[Made]) -> list[Finding]:
    slower: dict[tuple[str, str], list[Made]] = {}
    for one in made:
        curve, _, own, parts, _ = one
        if is_above(own, parts) and own.value > (1 + _SLOWER) * parts.value:
            slower.setdefault((curve.transport, curve.name), []).append(one)
    return [_finding(found) for found in slower.values()]


def _finding(found: list[Made]) -> Finding:
    curve, size, own, parts, what = max(found, key=lambda one: one[2].value / one[3].value)
    more = f"; so it is at {len(found) - 1} more of its points" if len(found) > 1 else ""
    return finding_about(
        curve,
        "slower than its parts",
        sentence=(
            f"{curve.name} of {format_bytes(size)} among {curve.ranks} takes {format_ns(own.value)}, "
            f"{ratio_text(ratio(own, parts))} times {what} ({format_ns(parts.value)}){more}."
        ),
        effect=own.value / parts.value - 1,
        sizes_bytes=tuple(sorted({one[1] for one in found})),
        evidence=(Evidence(curve.name, own, "ns"), Evidence(what, parts, "ns")),
    )


def _alltoalls(reading: Reading) -> Iterator[Made]:
    """P - 1 rounds, in each of which every rank sends to one other and then receives from it."""
    for whole in reading.of("alltoall"):
        for pairs in reading.of("pairs"):
            if is_like(whole, pairs) and not pairs.option("window"):
                rounds = 2 * (whole.ranks - 1)
                for mark in whole.marks:
                    part = pairs.at(mark.bytes)
                    if part is not None:
                        yield whole, mark.bytes, mark.time_ns, scaled(part, rounds), f"{rounds} messages of pairs"


def _multicasts(reading: Reading) -> Iterator[Made]:
    """A message to each."""
    for whole in reading.of("multicast"):
        for out in reading.of("outfarm"):
            if is_like(whole, out) and whole.option("until") == out.option("until"):
                for mark in whole.marks:
                    part = out.at(mark.bytes)
                    if part is not None:
                        yield whole, mark.bytes, mark.time_ns, part, "an outfarm of as many messages"


def _allreduces(reading: Reading) -> Iterator[Made]:
    """A reduction to rank 0 and a broadcast from there, measured as one."""
    curves = reading.of("allreduce")
    for whole in curves:
        for parts in curves:
            if is_like(whole, parts) and parts.option("algorithm") == "parts" != whole.option("algorithm"):
                for mark in whole.marks:
                    part = parts.at(mark.bytes)
                    if part is not None:
                        yield whole, mark.bytes, mark.time_ns, part, "a reduction and a broadcast"


def _barriers(reading: Reading) -> Iterator[Made]:
    """Dissemination: log2 P rounds of one message each way at once, rounded up."""
    for whole in reading.of("barrier"):
        for pingpong in reading.of("pingpong"):
            # One of many pairs may be nearer than those that a barrier brings together.
            plain = not (pingpong.option("source") or pingpong.option("target"))
            if plain and whole.transport == pingpong.transport and whole.state == pingpong.state and whole.marks:
                rounds = math.ceil(math.log2(whole.ranks))
                shortest = pingpong.marks[0]
                what = f"{rounds} half round trip{'s' if rounds > 1 else ''} of {format_bytes(shortest.bytes)}"
                yield whole, 0, whole.marks[0].time_ns, scaled(shortest.time_ns, rounds), what
