"""Which protocol a range of sizes goes by, as far as the base's curves tell: on which side of their switches it lies.

A library sends short messages in another way than long ones, and what slows one of the ways down slows all its sizes.
The switches are those of the base, whose curve no slowdown has bent: a fit in straight segments, and what is documented
of the transport at that place (explain/thresholds.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.explain.thresholds import thresholds_of
from hockney.fit import SegmentFit, fit_segments
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


def known_switches(
    times_ns: Mapping[int, float], transport: str, facts: Mapping[str, Any], library: str
) -> tuple[KnownSwitch, ...]:
    """Those of a curve, from its time at each size, in one state of the machine. Bends and small jumps are none."""
    if len(times_ns) < _SIZES_MIN:
        return ()
    fit = fit_segments(list(times_ns), list(times_ns.values()))
    if not isinstance(fit, SegmentFit):
        return ()
    thresholds = [one for one in thresholds_of(transport, facts, library) if not one.is_of_build]
    found = []
    for switch in fit.switches:
        if not switch.is_jump:
            continue
        names = [one.name for one in thresholds if one.lies_between(switch.below_bytes, switch.above_bytes)]
        name = names[0] if len(names) == 1 else None  # of several nobody knows which it is
        found.append(KnownSwitch(switch.below_bytes, switch.above_bytes, name))
    return tuple(found)


def protocol_text(switches: Sequence[KnownSwitch], first_bytes: int, last_bytes: int) -> str | None:
    """`rendezvous: above the switch between 4 KiB and 8 KiB (btl_vader_eager_limit)`; None where no switch is known."""
    within = [one for one in switches if first_bytes <= one.below_bytes and one.above_bytes <= last_bytes]
    if within:
        return f"across {' and '.join(one.text for one in within)}"
    under = [one for one in switches if one.above_bytes <= first_bytes][-1:]
    over = [one for one in switches if last_bytes <= one.below_bytes][:1]
    sides = [f"above {one.text}" for one in under] + [f"below {one.text}" for one in over]
    name = "rendezvous: " if any(one.is_eager_limit for one in under) else ""
    name = "eager: " if any(one.is_eager_limit for one in over) else name
    return f"{name}{' and '.join(sides)}" if sides else None
