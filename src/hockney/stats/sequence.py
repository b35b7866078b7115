"""Intervals and tests of a median that hold at every look, so that measuring may end as soon as they decide.

If each value exceeds the median with probability 1/2, whatever came before, `interval` misses it at any of all looks
with a chance of `alpha` at most, and `chance_above` is ever `alpha` or less without cause with the same. Of launches in
pairs, drift must have cancelled within each pair; no distribution is assumed.

A bet on the side of the next value multiplies a stake by 1 + bet or 1 - bet. The chance that the mean stake of many
bettors ever reaches E is 1 / E at most (Ville). Bets are the cosines of equal angles (Krichevsky and Trofimov).

Sources: I. Waudby-Smith, A. Ramdas, Estimating Means of Bounded Random Variables by Betting, J. R. Stat. Soc. B 86,
2024; S. R. Howard, A. Ramdas, Sequential Estimation of Quantiles, Bernoulli 28, 2022.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Sequence

from hockney.stats.interval import CONFIDENCE, Interval
from hockney.stats.shift import Shift, holm

VALUES_MIN = 7  # from which there is an interval of 95 %
_BETTORS = 64
_BETS = [math.cos((number + 0.5) * math.pi / 2 / _BETTORS) for number in range(_BETTORS)]
_WON, _LOST = ([math.log1p(sign * bet) for bet in _BETS] for sign in (1, -1))


@functools.lru_cache(maxsize=1 << 16)
def _chance(wins: int, count: int) -> float:
    """One over the mean stake of all who bet on this side, after this many values on it, of all."""
    logs = [wins * won + (count - wins) * lost for won, lost in zip(_WON, _LOST, strict=True)]
    most = max(logs)
    return min(1.0, math.exp(-min(most, 700.0)) * _BETTORS / math.fsum(math.exp(log - most) for log in logs))


@functools.lru_cache(maxsize=4096)
def wins_needed(count: int, alpha: float) -> int:
    """How many of the values must lie beyond a limit to show at this chance that the median does; count + 1: never."""
    return bisect.bisect_left(range(count + 1), -alpha, key=lambda wins: -_chance(wins, count))


def values_needed(series: int, alpha: float = 1 - CONFIDENCE) -> int:
    """From how many values on, of each, a difference in one of several series can be certain."""
    return next(count for count in itertools.count(VALUES_MIN) if 2 * series * _chance(count, count) <= alpha)


def chance_above(values: Sequence[float], limit: float) -> float:
    """The smallest chance of error at which the median exceeds the limit. Of many series, multiply it by their number.

    Its reciprocal is an e-value: means of those of several series, and products of independent ones, are e-values.
    """
    return _chance(sum(value > limit for value in values), len(values))


def chance_below(values: Sequence[float], limit: float) -> float:
    """The same of a median below the limit."""
    return _chance(sum(value < limit for value in values), len(values))


def interval(values: Sequence[float], alpha: float = 1 - CONFIDENCE) -> Interval:
    """The median of one value or more, and where it certainly is: each end is wrong with half of `alpha` at most.

    Without an interval below VALUES_MIN values at 5 %.
    """
    ordered, count = sorted(values), len(values)
    value = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    rank = count + 1 - wins_needed(count, alpha / 2)  # 1 is the smallest and the largest
    if rank == 0:
        return Interval(value, None, None, count, None)
    return Interval(value, ordered[rank - 1], ordered[count - rank], count, 1 - alpha)


def shifts_at_any_time(series: Sequence[Sequence[float]], margin: float = 1.0) -> list[tuple[Shift, float | None]]:
    """As shifts(), from the ratios of each series' launch pairs, at every look: the chance is Holm's, of both sides."""
    known = [interval(ratios) for ratios in series]
    chances = [2 * min(chance_above(ratios, margin), chance_below(ratios, 1 / margin)) for ratios in series]
    corrected = holm(chances)
    return [
        (Shift(each.value, each.low, each.high, each.coverage, each.n, each.n), chance if each.coverage else None)
        for each, chance in zip(known, corrected, strict=True)
    ]
