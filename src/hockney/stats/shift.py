"""How much longer series take than before, from few launches of each, and how sure that is among many series.

The shift of a series is the difference of the trimmed means of the logarithms of its launches: a ratio. From five
launches on the lowest and the highest fifth are left out, so that one bad launch neither moves the shift nor widens its
interval much. Interval and p-value are Student's t after Yuen and Welch: both sides may scatter differently.

The variance of a few launches is sometimes small by luck, above all where launches fall on two levels. So where there
are several series, a variance is no less than is usual among them, which also counts as `_BORROWED` launches more.
Among many series some differ by chance: Holm's correction keeps the probability that any does at 1 - confidence.

Sources: K. K. Yuen, The Two-Sample Trimmed t for Unequal Population Variances, Biometrika 61, 1974; G. K. Smyth, Linear
Models and Empirical Bayes Methods, Stat. Appl. Genet. Mol. Biol. 3, 2004 (variances borrowed among series); S. Holm, A
Simple Sequentially Rejective Multiple Test Procedure, Scand. J. Stat. 6, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.stats.interval import CONFIDENCE

if TYPE_CHECKING:
    from hockney.model import FloatArray

LAUNCHES_MIN = 3  # on each side: with fewer nothing is decided
_TRIMMED = 0.2  # of the launches, at either end
_BORROWED = 4
_SERIES_MIN = 3  # that tell a usual variance
_RESOLUTION = 1e-4  # the least standard error of a ratio: times that are alike to the last digit prove nothing

Pair = tuple[Sequence[float], Sequence[float]]  # the times of a series' launches, of base and of new


@dataclass(frozen=True)
class Shift:
    """The ratio of new times to base times: 1.1 is 10 % longer. `low` and `high` are None where there are too few."""

    ratio: float
    low: float | None
    high: float | None
    coverage: float | None
    n_base: int
    n_new: int


def can_decide(n_base: int, n_new: int) -> bool:
    """Whether so many launches on each side can show a difference."""
    return min(n_base, n_new) >= LAUNCHES_MIN


def shifts(
    pairs: Sequence[Pair], margin: float = 1.0, confidence: float = CONFIDENCE
) -> list[tuple[Shift, float | None]]:
    """The shift of each series between positive times, one or more on each side, and its chance.

    That is how often chance alone makes any of the series differ beyond `margin`, up or down, as much as this one; None
    where there are too few launches. Each interval has the `confidence` by itself.
    """
    import numpy as np
    from scipy.special import stdtr, stdtrit

    sides = [_Side.of([pair[number] for pair in pairs]) for number in (0, 1)]
    counts = [(len(base), len(new)) for base, new in pairs]
    decided = np.array([can_decide(*sizes) for sizes in counts], dtype=bool)
    ratios = sides[1].means - sides[0].means
    variances = [side.borrowed(decided) for side in sides]
    variance = np.maximum(variances[0] + variances[1], _RESOLUTION**2)
    parts = [of_side**2 / side.freedom(decided) for of_side, side in zip(variances, sides, strict=True)]
    freedom = variance**2 / np.maximum(parts[0] + parts[1], variance**2 / 1e6)
    error = np.sqrt(variance)
    arms = stdtrit(freedom, (1 + confidence) / 2) * error
    beyond = np.maximum(np.abs(ratios) - math.log(margin), 0.0) / error
    chances = np.ones(len(pairs))
    chances[decided] = _holm(2 * stdtr(freedom[decided], -beyond[decided]))
    return [
        (Shift(math.exp(ratio), math.exp(ratio - arm), math.exp(ratio + arm), confidence, *sizes), float(chance))
        if can_decide(*sizes)
        else (Shift(math.exp(ratio), None, None, None, *sizes), None)
        for ratio, arm, chance, sizes in zip(ratios, arms, chances, counts, strict=True)
    ]


@dataclass(frozen=True)
class _Side:
    """One run: of each series the trimmed mean of logarithms, its variance, and how many launches were kept."""

    means: FloatArray
    variances: FloatArray
    kept: FloatArray

    @classmethod
    def of(cls, launches: Sequence[Sequence[float]]) -> _Side:
        import numpy as np

        rows = [_trimmed(np.sort(np.log(np.asarray(times, dtype=float)))) for times in launches]
        return cls(*np.array(rows, dtype=float).reshape(-1, 3).T)

    def _has_usual(self, decided: FloatArray) -> bool:
        return int(decided.sum()) >= _SERIES_MIN

    def borrowed(self, decided: FloatArray) -> FloatArray:
        """Variances of the means, none below the usual one of a launch over the number of its launches."""
        import numpy as np

        if not self._has_usual(decided):
            return self.variances
        # A median of variances is too small, the more the fewer launches each is of (Wilson and Hilferty 1931).
        low = (1 - 2 / (9 * np.maximum(self.kept - 1, 1))) ** 3
        usual = float(np.median((self.variances * self.kept / low)[decided]))
        result: FloatArray = np.maximum(self.variances, usual / self.kept)
        return result

    def freedom(self, decided: FloatArray) -> FloatArray:
        """Degrees of freedom of the variances."""
        import numpy as np

        result: FloatArray = np.maximum(self.kept - 1, 1) + (_BORROWED if self._has_usual(decided) else 0)
        return result


def _trimmed(ordered: FloatArray) -> tuple[float, float, int]:
    """The trimmed mean, its variance by the winsorized values, and how many values are in it."""
    import numpy as np

    cut = int(_TRIMMED * len(ordered))
    kept = len(ordered) - 2 * cut
    if kept < 2:
        return float(ordered.mean()), 0.0, kept
    winsorized = np.clip(ordered, ordered[cut], ordered[-1 - cut])
    squares = float(((winsorized - winsorized.mean()) ** 2).sum())
    return float(ordered[cut : len(ordered) - cut].mean()), squares / (kept * (kept - 1)), kept


def _holm(chances: FloatArray) -> FloatArray:
    """Each corrected for how many there are."""
    import numpy as np

    order = np.argsort(chances)
    corrected = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    result: FloatArray = np.empty(len(chances))
    result[order] = np.minimum(corrected, 1.0)
    return result
