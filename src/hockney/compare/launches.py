"""How many launches a comparison lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hockney.stats.shift import can_decide, launches_needed

_Sizes = tuple[int, int]  # launches of base and new


def launches_wanted(made: _Sizes, strata: Sequence[_Sizes], confidence: float) -> _Sizes:
    """Of how many launches a new run in place of each would probably do; 0 where the run has enough.

    The base has enough where no more new ones are needed beside it than beside as many. Where a run's launches fell
    into several states of the machine, at least twice as many.
    """
    enough = launches_enough(confidence)
    seen = max(strata, key=lambda sizes: (min(sizes), sum(sizes)))
    beside = launches_needed(seen[0], confidence)
    needed = (0, beside) if beside <= enough else (enough, enough)
    base, new = (
        0 if most >= least else least if of_run == most else max(least, 2 * of_run)
        for of_run, most, least in zip(made, seen, needed, strict=True)
    )
    return base, new


def launches_enough(confidence: float) -> int:
    """The least number on each side, in one state of the machine, that can decide."""
    return next(n for n in itertools.count(1) if can_decide(n, n, confidence))
