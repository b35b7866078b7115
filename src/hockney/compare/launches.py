"""How many launches a comparison lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hockney.again import LAUNCHES
from hockney.stats.shift import can_decide, launches_needed

_Sizes = tuple[int, int]  # launches of base and new


def launches_wanted(made: _Sizes, strata: Sequence[_Sizes], confidence: float) -> _Sizes:
    """Of how many launches a new run in place of each would probably do; 0 where the run has enough.

    The base has enough where it takes less than twice as many new ones beside it as beside as many. Where a run's
    launches fell into several states of the machine, at least twice as many.
    """
    seen = max(strata, key=lambda sizes: (min(sizes), sum(sizes)))
    beside = launches_beside(seen[0], confidence)
    enough = launches_enough(confidence)
    needed = (enough, enough) if beside is None else (0, beside)
    base, new = (
        0 if most >= least else max(least, LAUNCHES) if of_run == most else max(least, LAUNCHES, 2 * of_run)
        for of_run, most, least in zip(made, seen, needed, strict=True)
    )
    return base, new


def launches_beside(base: int, confidence: float) -> int | None:
    """How many new ones decide beside so many of the base; None where it takes less to have more of both."""
    beside = launches_needed(base, confidence)
    return beside if beside < 2 * launches_enough(confidence) else None


def launches_enough(confidence: float) -> int:
    """The least number on each side, in one state of the machine, that can decide."""
    return next(n for n in itertools.count(1) if can_decide(n, n, confidence))
