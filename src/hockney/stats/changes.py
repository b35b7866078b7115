"""Change points of a series of runs: where its level changed and stayed, unlike single bad runs (docs/methods.md).

Levels are fitted with a bounded loss and a penalty for each change, exactly, over all levels (P. Fearnhead, G. Rigaill,
Changepoint Detection in the Presence of Outliers, JASA 114, 2019; the recursion over levels: R. Maidstone et al., On
Optimal Multiple Changepoint Algorithms for Large Data, Stat. Comput. 27, 2017). A new level needs more than
`_PENALTY` / `_BOUND` squared runs near it: four at the end, eight inside. Neighbouring runs resemble each other,
which the fit does not know: changes of less than `_LEAST` deviations are merged.

Drift of the machine is no change: of all fits in which the series follows the floor or the pace, the best one counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hockney.stats.interval import middle
from hockney.stats.shift import Shift, shifts

if TYPE_CHECKING:
    from hockney.model import FloatArray

RUNS_MIN = 8  # fewer show neither their scatter nor a change
_BOUND = 3.0  # deviations: a run farther from a level is an outlier of it
_PENALTY = 32.0  # for each change; with it about one in 10,000 runs has a false one
_LEAST = 2.5  # deviations
_WIDER = 3**0.5  # intervals, as if neighbours correlated by 0.5: the variance of a mean is then three times as large
_DEVIATION_MIN = 0.01  # less is the scatter of any machine
WINDOW = 10  # runs on each side of a median, and of a change where its size is found
_EXPONENTS = tuple(quarter / 4 for quarter in range(1, 9))  # how far a series may follow the machine


@dataclass(frozen=True)
class LevelChange:
    """A change before the run `index`, of times without what they follow of the machine.

    `before_ns` and `after_ns`: the median times of the runs on its sides, as measured.
    """

    index: int
    shift: Shift
    before_ns: float
    after_ns: float


@dataclass(frozen=True)
class LevelFit:
    """The changes of a series. `least`: smaller ratios may not show; None with too few runs.

    Its level follows what is named in `follows`, to the power of `exponent`.
    """

    changes: tuple[LevelChange, ...] = ()
    least: float | None = None
    follows: str | None = None
    exponent: float = 0.0


def changes(
    times_ns: Sequence[float],
    scatter: Sequence[float] = (),
    machine: Mapping[str, Sequence[float]] | None = None,
) -> LevelFit:
    """The changes of a series of positive times, one of each run, in order.

    `scatter`: the standard deviation of each time's logarithm within its run, 0 if it is not known. `machine`: what
    shows drift, positive values of each run (NaN: not known).
    """
    import numpy as np

    if len(times_ns) < RUNS_MIN:
        return LevelFit()
    logs = np.log(np.asarray(times_ns, dtype=float))
    drifts = {what: _smooth(np.log(np.asarray(values, dtype=float))) for what, values in (machine or {}).items()}
    ways: list[tuple[str | None, float]] = [(None, 0.0)]
    ways += [(what, exponent) for what in drifts for exponent in _EXPONENTS]
    rows = np.array([logs if what is None else logs - exponent * drifts[what] for what, exponent in ways])
    usual = min(_deviation(row) for row in rows)
    deviations = np.maximum(usual, np.asarray(scatter, dtype=float) if len(scatter) else 0.0 * logs)
    best, starts = _fitted(rows, deviations)
    starts = _merged(rows[best], starts, _LEAST * usual)
    edges = [0, *starts, len(logs)]
    found = []
    for first, index, last in zip(edges, starts, edges[2:], strict=False):
        sides = slice(max(first, index - WINDOW), index), slice(index, min(last, index + WINDOW))
        before, after = (_near(rows[best][side], deviations[side]) for side in sides)
        ((shift, _),) = shifts([(before, after)])
        found.append(LevelChange(index, _wider(shift), *(math.exp(middle(logs[side])) for side in sides)))
    return LevelFit(tuple(found), math.exp(_LEAST * middle(deviations)), *ways[best])


def _smooth(logs: FloatArray) -> FloatArray:
    """The running median of five runs, relative to that of all; zeros if a value of more than half is not known."""
    import numpy as np

    known = np.flatnonzero(np.isfinite(logs))
    if 2 * len(known) < len(logs):
        return np.zeros(len(logs))
    whole = np.interp(np.arange(len(logs)), known, logs[known])
    return np.array([middle(whole[max(0, at - 2) : at + 3]) for at in range(len(logs))]) - middle(whole)


def _deviation(logs: FloatArray) -> float:
    """The standard deviation of runs from their running median, by the median of its amounts."""
    import numpy as np

    middles = [middle(logs[max(0, at - WINDOW) : at + WINDOW + 1]) for at in range(len(logs))]
    return max(1.4826 * middle(abs(logs - np.array(middles))), _DEVIATION_MIN)


def _fitted(rows: FloatArray, deviations: FloatArray) -> tuple[int, list[int]]:
    """The row that levels fit best, and where its segments begin, without the first.

    Best: the least sum of bounded squares, and a penalty for each change. Of equal rows the first.
    """
    import numpy as np

    levels = np.linspace(rows.min(), rows.max(), 2 + int(np.ptp(rows) / deviations.min() * 4))
    loss = np.zeros((len(rows), len(levels)))  # of the best fit of the runs so far that ends on each level
    start = np.zeros(loss.shape, dtype=int)  # where its last segment begins
    before = np.zeros(rows.T.shape, dtype=int)  # the same of the best of all levels before each run
    every = np.arange(len(rows))
    for at, deviation in enumerate(deviations):
        if at:
            best = loss.argmin(axis=1)
            before[at], limit = start[every, best], loss[every, best][:, None] + _PENALTY
            start[loss > limit] = at
            loss = np.minimum(loss, limit)
        loss = loss + np.minimum(((rows[:, at, None] - levels) / deviation) ** 2, _BOUND**2)
    row = int(loss.min(axis=1).argmin())
    starts, at = [], int(start[row, loss[row].argmin()])
    while at:
        starts.append(at)
        at = int(before[at, row])
    return row, starts[::-1]


def _merged(logs: FloatArray, starts: list[int], least: float) -> list[int]:
    """Those where the level moves by `least` or more; the smallest change goes first."""
    while starts:
        edges = [0, *starts, len(logs)]
        levels = [middle(logs[first:last]) for first, last in itertools.pairwise(edges)]
        moves = [abs(after - before) for before, after in itertools.pairwise(levels)]
        if min(moves) >= least:
            break
        del starts[moves.index(min(moves))]
    return starts


def _wider(shift: Shift) -> Shift:
    """With an interval for runs that resemble each other."""
    low, high = (end and shift.ratio * (end / shift.ratio) ** _WIDER for end in (shift.low, shift.high))
    return replace(shift, low=low, high=high)


def _near(logs: FloatArray, deviations: FloatArray) -> list[float]:
    """The times of these runs without outliers."""
    import numpy as np

    near = logs[abs(logs - middle(logs)) <= _BOUND * deviations]
    return [float(time) for time in np.exp(near if 2 * len(near) >= len(logs) else logs)]
