"""Values with intervals, combined. The interval of a result is the outermost one: wider than 95 %, never narrower."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hockney.stats.fit import Estimate


def difference(upper: Estimate, lower: Estimate) -> Estimate:
    """The first minus the second."""
    return Estimate(upper.value - lower.value, upper.low - lower.high, upper.high - lower.low)


def ratio(upper: Estimate, lower: Estimate) -> Estimate:
    """The first over the second, both above zero."""
    return Estimate(upper.value / lower.value, upper.low / lower.high, upper.high / lower.low)


def scaled(value: Estimate, factor: float) -> Estimate:
    """A positive multiple."""
    return Estimate(value.value * factor, value.low * factor, value.high * factor)


def of_all(values: Sequence[Estimate]) -> Estimate:
    """The median of the values, with an interval that encloses all of theirs."""
    middle = statistics.median(value.value for value in values)
    return Estimate(middle, min(value.low for value in values), max(value.high for value in values))


def is_above(upper: Estimate, lower: Estimate) -> bool:
    """Whether the whole first interval is above the second."""
    return upper.low > lower.high


def relative(value: Estimate) -> float:
    """The longer arm of the interval as a fraction of the value."""
    return max(value.high - value.value, value.value - value.low) / abs(value.value) if value.value else float("inf")
