"""Estimates how much longer series take than before, from few launches of each, corrected for many series.

Student's t after Yuen and Welch on the logarithms of launch medians. From five launches on, the lowest and the highest
fifth are trimmed: one bad launch neither moves the ratio nor widens its interval much. From three series on, no
variance is below the usual one of its transport's series, because variances of few launches are sometimes small by
luck. Holm's correction keeps the probability that any unchanged series differs by chance at 5 %; a margin is for each
by itself.

Sources: K. K. Yuen, The Two-Sample Trimmed t for Unequal Population Variances, Biometrika 61, 1974; G. K. Smyth, Linear
Models and Empirical Bayes Methods, Stat. Appl. Genet. Mol. Biol. 3, 2004 (variances borrowed among series); S. Holm, A
Simple Sequentially Rejective Multiple Test Procedure, Scand. J. Stat. 6, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.stats.interval import CONFIDENCE, Estimate, middle

if TYPE_CHECKING:
    from hockney.model import FloatArray

LAUNCHES_MIN = 3  # on each side: with fewer nothing is decided

Pair = tuple[Sequence[float], Sequence[float]]  # the times of a series' launches in base and in new


@dataclass(frozen=True)
class Shift:
    """The ratio of new times to base times: 1.1 is 10 % longer. `low` and `high` are None with too few launches."""

    ratio: float
    low: float | None
    high: float | None
    coverage: float | None
    n_base: int
    n_new: int

    @property
    def estimate(self) -> Estimate | None:
        """The ratio with its bounds; None where there are none."""
        return Estimate.if_known(self.ratio, self.low, self.high)

    def is_beyond(self, margin: float) -> bool:
        """Whether its interval lies beyond the margin, on either side."""
        return self.estimate is not None and (self.estimate.low > margin or self.estimate.high < 1 / margin)

    def may_be_beyond(self, margin: float) -> bool:
        """Whether its interval reaches beyond the margin, on either side, or is not known."""
        return self.estimate is None or self.estimate.high > margin or self.estimate.low < 1 / margin


def can_decide(n_base: int, n_new: int) -> bool:
    """Whether these numbers of launches can show a difference."""
    return min(n_base, n_new) >= LAUNCHES_MIN


def shifts(
    pairs: Sequence[Pair], margin: float = 1.0, share: float = 1.0, kinds: Sequence[str] = ()
) -> list[tuple[Shift, float | None]]:
    """The shift of each series between positive times, one or more on each side, and its chance.

    The chance is the larger of two probabilities: that chance alone makes any of the series differ, up or down, as much
    as this one; and that it makes this one differ so much if it is at the `margin`. None with too few launches. Each
    interval has 95 % by itself.

    `share`: of a look at launches that go on, its part of the 5 % of all looks. The chance is then that of all looks,
    and so is the interval's, which is wider. `kinds`: of the series, such as transports. One of three or more
    has a usual variance of its own.
    """
    import numpy as np
    from scipy.special import stdtr, stdtrit

    counts = [(len(base), len(new)) for base, new in pairs]
    decided = np.array([can_decide(*sizes) for sizes in counts], dtype=bool)
    base, new = (_Side([pair[number] for pair in pairs], decided, kinds) for number in (0, 1))
    ratios = new.means - base.means
    # Times that are alike to the last digit prove nothing: the least standard error of a ratio is 1e-4.
    variance = np.maximum(base.variances + new.variances, 1e-8)
    parts = base.variances**2 / base.freedom + new.variances**2 / new.freedom
    freedom = variance**2 / np.maximum(parts, variance**2 / 1e6)
    error = np.sqrt(variance)
    widths = stdtrit(freedom, 1 - share * (1 - CONFIDENCE) / 2) * error
    own, changed = (
        2 * stdtr(freedom, -np.maximum(np.abs(ratios) - math.log(limit), 0.0) / error)[decided]
        for limit in (margin, 1.0)
    )
    chances = np.ones(len(pairs))
    chances[decided] = np.minimum(np.maximum(own, holm(changed)) / share, 1.0)
    ends = (np.exp(values).tolist() for values in (ratios, ratios - widths, ratios + widths))
    return [
        (Shift(ratio, low, high, CONFIDENCE, *sizes), chance)
        if can_decide(*sizes)
        else (Shift(ratio, None, None, None, *sizes), None)
        for ratio, low, high, chance, sizes in zip(*ends, chances.tolist(), counts, strict=True)
    ]


class _Side:
    """One run: of each series the trimmed mean of logarithms, its variance and the degrees of freedom of that."""

    def __init__(self, launches: Sequence[Sequence[float]], decided: FloatArray, kinds: Sequence[str]) -> None:
        import numpy as np

        self.means, self.variances, kept = (np.empty(len(launches)) for _ in range(3))
        by_count: dict[int, list[int]] = {}
        for index, times in enumerate(launches):
            by_count.setdefault(len(times), []).append(index)
        for indices in by_count.values():
            logs = np.sort(np.log(np.array([launches[index] for index in indices], dtype=float)), axis=1)
            self.means[indices], self.variances[indices], kept[indices] = _trimmed(logs)
        self.freedom = np.maximum(kept - 1, 1)
        if int(decided.sum()) >= 3:
            # A median of variances is too small, the more the fewer launches each is of (Wilson and Hilferty 1931).
            whole = self.variances * kept / (1 - 2 / (9 * self.freedom)) ** 3
            usual = np.full(len(launches), middle(whole[decided]))
            for alike in (decided & (np.array(kinds) == kind) for kind in {*kinds}):
                if alike.sum() >= 3:
                    usual[alike] = middle(whole[alike])
            self.variances = np.maximum(self.variances, usual / kept)
            self.freedom = self.freedom + 4  # the usual variance counts as four launches


def _trimmed(ordered: FloatArray) -> tuple[FloatArray, FloatArray | float, int]:
    """The trimmed mean of each row, its variance by the winsorized values, and the number of values in it."""
    import numpy as np

    count = ordered.shape[1]
    cut = int(0.2 * count)
    kept = count - 2 * cut
    means = ordered[:, cut : count - cut].mean(axis=1)
    if kept < 2:
        return means, 0.0, kept
    winsorized = np.clip(ordered, ordered[:, [cut]], ordered[:, [-1 - cut]])
    squares = ((winsorized - winsorized.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return means, squares / (kept * (kept - 1)), kept


def holm(chances: FloatArray | Sequence[float]) -> FloatArray:
    """Each corrected for how many there are."""
    import numpy as np

    chances = np.asarray(chances, dtype=float)
    order = np.argsort(chances)
    corrected = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    result: FloatArray = np.empty(len(chances))
    result[order] = np.minimum(corrected, 1.0)
    return result
