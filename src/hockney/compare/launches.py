"""How many launches a comparison lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hockney.stats.shift import can_decide

_Sizes = tuple[int, int]  # launches of base and new


def launches_wanted(made: _Sizes, strata: Sequence[_Sizes], confidence: float) -> _Sizes:
    """Of how many launches a new run in place of each would probably do; 0 where the run has enough.

    Where a run's launches fell into several states of the machine, at least twice as many.
    """
    enough = launches_enough(confidence)
    seen = [max(of_side) for of_side in zip(*strata, strict=True)]
    base, new = (
        0 if most >= enough else enough if of_run == most else max(enough, 2 * of_run)
        for of_run, most in zip(made, seen, strict=True)
    )
    return base, new


def launches_enough(confidence: float) -> int:
    """The least number on each side, in one state of the machine, that can decide."""
    return next(n for n in itertools.count(1) if can_decide(n, n, confidence))
