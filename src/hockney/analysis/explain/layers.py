"""What each layer adds to the one below it: differences of half round trips, in one state of the machine."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.explain.curve import Curve, Reading
from hockney.analysis.explain.finding import difference, of_all
from hockney.analysis.explain.pairs import PAIR_CLASSES
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns

# What stands on what: the upper adds its own cost to the lower one's. An @ stands for every library of that kind.
# The ways of PVM are those of the direct route, which within a host is a Unix-domain socket.
_PVM = ("pvm@", "pvm@:psend", "pvm@:inplace", "pvm@:raw", "pvm@:default")
_LAYERS = (("shm", "threads"), ("shm", "mpi@"), ("shm", "shmem@"), ("unix", "tcp"), *(("unix", way) for way in _PVM))
# Between hosts nobody knows which network a library uses; tcp is what it would have without one of its own.
_BETWEEN_HOSTS = (("tcp", "mpi@"), ("tcp", "shmem@"))
_ALIKE = 0.25  # on either side: a layer that adds so little more or less adds about the same
_SEEN = 0.03  # of the lower one's time: of so many sizes some intervals miss by chance
_BYTES_MAX = 1 << 16  # longer messages cost what their bytes do, and layers then differ in rate


@dataclass(frozen=True)
class Layer:
    """What a transport adds to the half round trip of the one below it (or to the floor), in one state.

    `floor_ns` is the floor in the very measurements of the upper one, where that is what it stands on. It holds for the
    sizes from `first_bytes` to `last_bytes`, whose intervals its own encloses. Those of `unsure_bytes`, among or beside
    them, are too uncertain to tell what is added from nothing. `is_seen` says whether there is a difference.
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

    @property
    def text(self) -> str:
        """As a sentence without sizes and state."""
        if not self.is_seen:
            range_ = f"{format_ns(self.low_ns)} to {format_ns(self.high_ns)}"
            of_some_size = "" if self.low_ns <= 0 <= self.high_ns else f" of {_SEEN:.0%} or more"
            return f"{self.upper}: no difference{of_some_size} from {self.lower} seen ({range_})"
        if self.floor_ns is not None and self.added_ns < 0:
            below = f"{format_ns(-self.high_ns)} to {format_ns(-self.low_ns)} below"
            return f"{self.upper} lies {below} the floor of {format_ns(self.floor_ns)} beside it"
        verb, word = ("adds", "to") if self.added_ns > 0 else ("saves", "against")
        low, high = sorted((abs(self.low_ns), abs(self.high_ns)))
        return (
            f"{self.upper} {verb} {format_ns(abs(self.added_ns))} ({format_ns(low)} to {format_ns(high)}) {word} "
            f"{self.lower}" + (f" of {format_ns(self.floor_ns)} beside it" if self.floor_ns is not None else "")
        )

    @property
    def remark(self) -> str:
        """What to think of it, after its sizes and state; empty where it speaks for itself."""
        if self.is_seen and self.floor_ns is not None and self.added_ns < 0:
            return (
                ": nothing is quicker than one word from cache to cache, so the floor was higher at the moment when it "
                "was measured"
            )
        return ""

    @property
    def sizes_text(self) -> str:
        unsure = ", ".join(map(format_bytes, self.unsure_bytes))
        remark = f" (too uncertain to tell at {unsure})" if unsure else ""
        if self.first_bytes == self.last_bytes:
            return f"at {format_bytes(self.first_bytes)}{remark}"
        return f"from {format_bytes(self.first_bytes)} to {format_bytes(self.last_bytes)}{remark}"


def layers_below(transport: str, layers: Sequence[tuple[str, str]] = _LAYERS) -> list[str]:
    """The transports that this one stands on. Variants of a library's kind stand on none: they do something else."""
    kind = re.sub("@[^:]*", "@", transport)
    return [lower for lower, upper in layers if upper == kind]


def layer_at(size_bytes: int, upper: str, lower: str, state: str, own: Estimate, under: Estimate) -> Layer:
    """From the times of both at one size, in ns."""
    return _layer(upper, lower, state, [_added(size_bytes, own, under)])


def over_floor(size_bytes: int, state: str, own: Estimate, floor: Estimate) -> Layer:
    """What shm adds to the floor of the same measurements."""
    return replace(layer_at(size_bytes, "shm", "the floor", state, own, floor), floor_ns=floor.value)


def layers_of(reading: Reading) -> list[Layer]:
    """Every layer by ranges of sizes in which it adds the same, as far as that can be told."""
    curves = [curve for curve in reading.of("pingpong") if not curve.options]
    found = []
    for curve in curves:
        floor = reading.floors.get(curve.place)
        short = [mark for mark in curve.marks if 0 < mark.bytes <= 64]
        if curve.transport == "shm" and floor is not None and short:
            found.append(over_floor(short[0].bytes, curve.state, short[0].time_ns, floor))
    states = {curve.place: curve.state for curve in curves}
    between = [
        one.curve
        for one in reading.by_class
        if (one.pair_class, one.curve.pattern, one.curve.options) == (PAIR_CLASSES[-1], "pingpong", ())
        and one.curve.state == states.get(one.curve.place)
    ]
    for own, layers in ((curves, _LAYERS), (between, _BETWEEN_HOSTS)):
        for upper, lower in itertools.permutations(own, 2):
            alike = (lower.ranks, lower.state) == (upper.ranks, upper.state)
            if alike and lower.transport in layers_below(upper.transport, layers):
                found.extend(_ranges(upper, lower))
    return found


@dataclass(frozen=True)
class _Added:
    """What is added at a size, and whether that is told from nothing."""

    bytes: int
    time_ns: Estimate
    is_told: bool


def _added(size_bytes: int, own: Estimate, under: Estimate) -> _Added:
    added = difference(own, under)
    return _Added(size_bytes, added, not _holds(added, 0.0) and abs(added.value) >= _SEEN * under.value)


def _ranges(upper: Curve, lower: Curve) -> Iterator[Layer]:
    """Neighbouring sizes belong to one range while some one value lies in all of their intervals, or nearly so."""
    range_: list[_Added] = []
    for mark in upper.marks:
        under = lower.at(mark.bytes)
        if under is None or mark.bytes > _BYTES_MAX:
            continue
        added = _added(mark.bytes, mark.time_ns, under)
        if range_ and not _agree([*range_, added]):
            yield from _split(upper, lower, range_)
            range_ = []
        range_.append(added)
    if range_:
        yield from _split(upper, lower, range_)


def _agree(added: Sequence[_Added]) -> bool:
    """Too wide to tell is an interval that holds both zero and what is seen at the others; it agrees with them.

    More and less time are two things, however near to each other.
    """
    if len({one.time_ns.value > 0 for one in added if one.is_told}) > 1:
        return False
    alike = [one.time_ns for one in added if one.is_told] or [one.time_ns for one in added]
    lowest = max(one.low - _ALIKE * abs(one.value) for one in alike)
    highest = min(one.high + _ALIKE * abs(one.value) for one in alike)
    middle = statistics.median(one.value for one in alike)
    return lowest <= highest and all(_holds(one.time_ns, middle) for one in added if one.time_ns not in alike)


def _holds(interval: Estimate, value: float) -> bool:
    return interval.low <= value <= interval.high


def _split(upper: Curve, lower: Curve, range_: list[_Added]) -> Iterator[Layer]:
    """One layer, unless it is seen at fewer than half of the sizes: then those stand by themselves."""
    parts = [range_]
    if 0 < 2 * sum(one.is_told for one in range_) < len(range_):
        parts = [list(part) for _, part in itertools.groupby(range_, key=lambda one: one.is_told)]
    for part in parts:
        yield _layer(upper.transport, lower.transport, upper.state, part)


def _layer(upper: str, lower: str, state: str, range_: Sequence[_Added]) -> Layer:
    told = [one for one in range_ if one.is_told]
    meant = told or range_
    over_all = of_all([one.time_ns for one in meant])
    return Layer(
        upper,
        lower,
        state,
        added_ns=over_all.value,
        low_ns=over_all.low,
        high_ns=over_all.high,
        first_bytes=meant[0].bytes,
        last_bytes=meant[-1].bytes,
        is_seen=bool(told),
        unsure_bytes=tuple(one.bytes for one in range_ if told and not one.is_told),
    )
