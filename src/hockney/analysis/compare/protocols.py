"""Which protocol a range of sizes goes by in each of two runs: on which side of the switches of its curve it lies.

A library sends short messages in another way than long ones, what slows one of the ways down slows all its sizes, and
where a switch has moved, the sizes between go by another way now. A switch is a jump between two straight segments of
a run's own curve, or more than a rise in proportion to the size where a limit is documented (explain/thresholds.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.explain.thresholds import Threshold, thresholds_of
from hockney.stats.fit import JUMP, SegmentFit, fit_segments
from hockney.units import format_two_sizes

_SIZES_MIN = 6  # three on either side of a switch


@dataclass(frozen=True)
class KnownSwitch:
    """Somewhere between two sizes another protocol begins; `name` is that of the documented limit there, if any."""

    below_bytes: int
    above_bytes: int
    name: str | None = None

    @property
    def text(self) -> str:
        """`the switch between 4 KiB and 8 KiB (btl_vader_eager_limit)`."""
        documented = f" ({self.name})" if self.name else ""
        return f"the switch between {format_two_sizes(self.below_bytes, self.above_bytes)}{documented}"

    @property
    def is_eager_limit(self) -> bool:
        return self.name is not None and "eager" in self.name

    def is_same(self, other: KnownSwitch) -> bool:
        """Whether one of another run may lie at the same place, and is called the same."""
        meet = self.below_bytes < other.above_bytes and other.below_bytes < self.above_bytes
        return meet and self.name == other.name


@dataclass(frozen=True)
class Protocols:
    """The switches of one curve in base and in new, each in the order of sizes."""

    runs: tuple[int, int]
    base: tuple[KnownSwitch, ...]
    new: tuple[KnownSwitch, ...]

    @classmethod
    def of(cls, runs: tuple[int, int], base: Sequence[KnownSwitch], new: Sequence[KnownSwitch]) -> Protocols:
        """A jump of new's alone is a switch where a limit is documented, or where one of base's is gone from its place.

        Else it may be where a slowdown begins.
        """
        is_gone = any(not any(one.is_same(other) for other in new) for one in base)
        told = (one for one in new if one.name or is_gone or any(one.is_same(other) for other in base))
        return cls(runs, tuple(base), tuple(told))

    def part(self, lower_bytes: int, upper_bytes: int) -> bool:
        """Whether a switch of either run begins above the one size, and not above the other."""
        return any(lower_bytes < one.above_bytes <= upper_bytes for one in (*self.base, *self.new))

    def text(self, first_bytes: int, last_bytes: int) -> str | None:
        """`rendezvous: above the switch between 4 KiB and 8 KiB (btl_vader_eager_limit)`; None where none is known.

        Where that isn't the same in both runs, it is said of each.
        """
        sides = [_Side.of(switches, first_bytes, last_bytes) for switches in (self.base, self.new)]
        texts = [side.text for side in sides]
        if sides[0].is_same(sides[1]):
            return texts[0] or None
        if all(texts):
            texts[1] = texts[1].replace("the switch", "the one")
        return ", ".join(f"{text} in run {run}" for text, run in zip(texts, self.runs, strict=True) if text)


@dataclass(frozen=True)
class _Side:
    """Between which two switches of a curve sizes lie."""

    above: KnownSwitch | None
    below: KnownSwitch | None

    @classmethod
    def of(cls, switches: Sequence[KnownSwitch], first_bytes: int, last_bytes: int) -> _Side:
        above = [one for one in switches if one.above_bytes <= first_bytes][-1:]
        below = [one for one in switches if last_bytes <= one.below_bytes][:1]
        return cls(*above or (None,), *below or (None,))

    def is_same(self, other: _Side) -> bool:
        pairs = ((self.above, other.above), (self.below, other.below))
        return all(mine is its if mine is None or its is None else mine.is_same(its) for mine, its in pairs)

    @property
    def text(self) -> str:
        ends = {"above": self.above, "below": self.below}
        name = "rendezvous: " if self.above and self.above.is_eager_limit else ""
        name = "eager: " if self.below and self.below.is_eager_limit else name
        return name + " and ".join(f"{side} {switch.text}" for side, switch in ends.items() if switch)


def known_switches(
    times_ns: Mapping[int, float], transport: str, facts: Mapping[str, Any], library: str
) -> tuple[KnownSwitch, ...]:
    """Those of a curve, from its time at each size, in one state of the machine. Bends and small jumps are none."""
    thresholds = [one for one in thresholds_of(transport, facts, library) if not one.is_of_build]
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
    """That of the one limit documented there; of several none: it may be any."""
    there = [one for one in thresholds if one.lies_between(*place)]
    return there[0].name if len(there) == 1 else None
