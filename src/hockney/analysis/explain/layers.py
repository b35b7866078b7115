"""What each layer adds to the one below it: differences of half round trips, in one state of the machine."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.estimates import difference, of_all
from hockney.analysis.explain.curve import Curve, Reading
from hockney.analysis.explain.pairs import PAIR_CLASSES
from hockney.stats.fit import Estimate

# (lower, upper): the upper adds its own cost to the lower one's. An @ stands for every library of that kind. The
# direct route of PVM within a host is a Unix-domain socket.
_PVM = ("pvm@", "pvm@:psend", "pvm@:inplace", "pvm@:raw", "pvm@:default")
_LAYERS = (("shm", "threads"), ("shm", "mpi@"), ("shm", "shmem@"), ("unix", "tcp"), *(("unix", way) for way in _PVM))
# Between hosts a library may use any network; tcp is what it would use without one of its own.
_BETWEEN_HOSTS = (("tcp", "mpi@"), ("tcp", "shmem@"))
_SAME = 0.25  # sizes at which a layer adds the same, within this tolerance, are one range
_SEEN = 0.03  # of the lower one's time: among many sizes some intervals miss by chance
_BYTES_MAX = 1 << 16  # longer messages cost what their bytes do, and layers then differ in rate


@dataclass(frozen=True)
class Layer:
    """What a transport adds to the half round trip of the one below it, or to the floor, in one state.

    It holds from `first_bytes` to `last_bytes`, and its interval encloses those of these sizes; the intervals at
    `unsure_bytes` are too wide to tell it from nothing. `is_seen`: there is a difference. `floor_ns` is the floor of
    the upper one's own measurements, where the lower one is the floor.
    """

    upper: str
    lower: str
    state: str
    added_ns: float
    low_ns: float
    high_ns: float
    first_bytes: int
    last_bytes: int
    is_seen: bool
    unsure_bytes: tuple[int, ...] = ()
    floor_ns: float | None = None


def layers_below(transport: str, layers: Sequence[tuple[str, str]] = _LAYERS) -> list[str]:
    """The transports that this one is built on. Variants of a library are built on none: they do something else."""
    kind = re.sub("@[^:]*", "@", transport)
    return [lower for lower, upper in layers if upper == kind]


def layer_at(size_bytes: int, upper: str, lower: str, state: str, upper_ns: Estimate, lower_ns: Estimate) -> Layer:
    """From the times of both at one size."""
    return _layer(upper, lower, state, [_added(size_bytes, upper_ns, lower_ns)])


def over_floor(size_bytes: int, state: str, time_ns: Estimate, floor_ns: Estimate) -> Layer:
    """What shm adds to the floor of the same measurements."""
    return replace(layer_at(size_bytes, "shm", "the floor", state, time_ns, floor_ns), floor_ns=floor_ns.value)


def layers_of(reading: Reading) -> list[Layer]:
    """Every layer, by ranges of sizes in which it adds the same."""
    curves = [curve for curve in reading.of("pingpong") if not curve.options]
    layers = []
    for curve in curves:
        floor = reading.floors.get(curve.place)
        short = [point for point in curve.points if 0 < point.bytes <= 64]
        if curve.transport == "shm" and floor is not None and short:
            layers.append(over_floor(short[0].bytes, curve.state, short[0].time_ns, floor))
    states = {curve.place: curve.state for curve in curves}
    between_hosts = [
        one.curve
        for one in reading.by_class
        if (one.pair_class, one.curve.pattern, one.curve.options) == (PAIR_CLASSES[-1], "pingpong", ())
        and one.curve.state == states.get(one.curve.place)
    ]
    for group, pairs in ((curves, _LAYERS), (between_hosts, _BETWEEN_HOSTS)):
        for upper, lower in itertools.permutations(group, 2):
            is_same = (lower.ranks, lower.state) == (upper.ranks, upper.state)
            if is_same and lower.transport in layers_below(upper.transport, pairs):
                layers.extend(_ranges(upper, lower))
    return layers


@dataclass(frozen=True)
class _Added:
    """What is added at a size, and whether that differs from nothing."""

    bytes: int
    time_ns: Estimate
    is_seen: bool


def _added(size_bytes: int, upper_ns: Estimate, lower_ns: Estimate) -> _Added:
    added = difference(upper_ns, lower_ns)
    return _Added(size_bytes, added, not _holds(added, 0.0) and abs(added.value) >= _SEEN * lower_ns.value)


def _ranges(upper: Curve, lower: Curve) -> Iterator[Layer]:
    """Neighbouring sizes are one range while one value lies in all of their intervals, or nearly so."""
    members: list[_Added] = []
    for point in upper.points:
        under = lower.at(point.bytes)
        if under is None or point.bytes > _BYTES_MAX:
            continue
        added = _added(point.bytes, point.time_ns, under)
        if members and not _agree([*members, added]):
            yield from _split(upper, lower, members)
            members = []
        members.append(added)
    if members:
        yield from _split(upper, lower, members)


def _agree(members: Sequence[_Added]) -> bool:
    """An unsure size agrees with the others if its interval holds both zero and their value."""
    if len({one.time_ns.value > 0 for one in members if one.is_seen}) > 1:
        return False
    seen = [one.time_ns for one in members if one.is_seen] or [one.time_ns for one in members]
    lowest = max(one.low - _SAME * abs(one.value) for one in seen)
    highest = min(one.high + _SAME * abs(one.value) for one in seen)
    middle = statistics.median(one.value for one in seen)
    return lowest <= highest and all(_holds(one.time_ns, middle) for one in members if one.time_ns not in seen)


def _holds(interval: Estimate, value: float) -> bool:
    return interval.low <= value <= interval.high


def _split(upper: Curve, lower: Curve, members: list[_Added]) -> Iterator[Layer]:
    """One layer; but where it is seen at fewer than half of the sizes, those are layers of their own."""
    parts = [members]
    if 0 < 2 * sum(one.is_seen for one in members) < len(members):
        parts = [list(part) for _, part in itertools.groupby(members, key=lambda one: one.is_seen)]
    for part in parts:
        yield _layer(upper.transport, lower.transport, upper.state, part)


def _layer(upper: str, lower: str, state: str, members: Sequence[_Added]) -> Layer:
    seen = [one for one in members if one.is_seen]
    counted = seen or members
    added = of_all([one.time_ns for one in counted])
    return Layer(
        upper,
        lower,
        state,
        added_ns=added.value,
        low_ns=added.low,
        high_ns=added.high,
        first_bytes=counted[0].bytes,
        last_bytes=counted[-1].bytes,
        is_seen=bool(seen),
        unsure_bytes=tuple(one.bytes for one in members if seen and not one.is_seen),
    )
