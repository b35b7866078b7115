"""The protocol switches of a curve in two runs, and on which side of them a range of sizes lies.

A switch is a jump between two segments of a run's own curve, or a rise by more than the size where a library documents
a limit (explain/thresholds.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.explain.thresholds import Threshold, thresholds_of
from hockney.stats.fit import JUMP, SegmentFit, fit_segments

_SIZES_MIN = 6  # of a curve that is fitted: three on either side of a switch


@dataclass(frozen=True)
class KnownSwitch:
    """A switch between two neighbouring sizes; `name` is that of the documented limit there, if there is just one."""

    below_bytes: int
    above_bytes: int
    name: str | None = None

    def is_same(self, other: KnownSwitch) -> bool:
        """Whether one of another run may lie at the same place, and has the same name."""
        overlap = self.below_bytes < other.above_bytes and other.below_bytes < self.above_bytes
        return overlap and self.name == other.name


@dataclass(frozen=True)
class Side:
    """The nearest switches of a run below and above a range of sizes."""

    above: KnownSwitch | None
    below: KnownSwitch | None

    def is_same(self, other: Side) -> bool:
        """Whether a range may lie on the same side of the same switches in both runs."""
        pairs = ((self.above, other.above), (self.below, other.below))
        return all(mine is its if mine is None or its is None else mine.is_same(its) for mine, its in pairs)


@dataclass(frozen=True)
class Protocols:
    """The switches of one curve in base and in new, each in the order of sizes."""

    base: tuple[KnownSwitch, ...]
    new: tuple[KnownSwitch, ...]

    @classmethod
    def of(cls, base: Sequence[KnownSwitch], new: Sequence[KnownSwitch]) -> Protocols:
        """Without the jumps of new at which only a slowdown may begin.

        A jump of new is a switch if a limit is documented there, or base has one there, or one of base's is gone.
        """
        is_gone = any(not any(one.is_same(other) for other in new) for one in base)
        known = (one for one in new if one.name or is_gone or any(one.is_same(other) for other in base))
        return cls(tuple(base), tuple(known))

    def separate(self, lower_bytes: int, upper_bytes: int) -> bool:
        """Whether a switch of either run lies between two sizes."""
        return any(lower_bytes < one.above_bytes <= upper_bytes for one in (*self.base, *self.new))

    def sides(self, first_bytes: int, last_bytes: int) -> tuple[Side, Side]:
        """Where a range of sizes lies in base and in new."""
        base, new = (
            Side(
                next((one for one in reversed(switches) if one.above_bytes <= first_bytes), None),
                next((one for one in switches if last_bytes <= one.below_bytes), None),
            )
            for switches in (self.base, self.new)
        )
        return base, new


def known_switches(
    times_ns: Mapping[int, float], transport: str, facts: Mapping[str, Any], library: str
) -> tuple[KnownSwitch, ...]:
    """The switches of a curve, from its time at each size in one machine state."""
    thresholds = list(thresholds_of(transport, facts, library))
    places = list(_jumps(times_ns))
    for below, above in itertools.pairwise(sorted(times_ns)):
        is_steep = times_ns[above] * below > (1 + JUMP) * times_ns[below] * above > 0
        is_new = not any(first < above and below < last for first, last in places)
        if is_steep and is_new and any(one.lies_between(below, above) for one in thresholds):
            places.append((below, above))
    return tuple(KnownSwitch(*place, _name_at(place, thresholds)) for place in sorted(places))


def _jumps(times_ns: Mapping[int, float]) -> Iterator[tuple[int, int]]:
    if len(times_ns) >= _SIZES_MIN:
        fit = fit_segments(list(times_ns), list(times_ns.values()))
        if isinstance(fit, SegmentFit):
            yield from ((one.below_bytes, one.above_bytes) for one in fit.switches if one.is_jump)


def _name_at(place: tuple[int, int], thresholds: Sequence[Threshold]) -> str | None:
    names = [one.name for one in thresholds if one.lies_between(*place)]
    return names[0] if len(names) == 1 else None
