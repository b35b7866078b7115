"""What was found: typed values with their evidence, a sentence, and a remedy where there is one.

An `Estimate` is a value with the interval that its figures leave. Intervals of differences and ratios are the outermost
ones: wider than 95 %, never narrower.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hockney.analysis.finding import Finding as NewFinding
from hockney.analysis.finding import NotChecked
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns

_BOUND = 0.1  # a value with one arm so much shorter than the other stands at the end of its interval


@dataclass(frozen=True)
class Evidence:
    """One figure that a finding rests on. `unit` is "ns", "ns/B", "B/s", "1/s" or "" for a ratio."""

    what: str
    value: Estimate
    unit: str


@dataclass(frozen=True)
class Finding:
    """One thing that is worth saying of a curve or of several.

    `transport` is "" where it is of several. `ranks` is their number where all that is said is of one. `effect` orders
    findings: by which fraction of a time (or rate) the thing shows, 1 meaning as much again. `state` is the state of
    the machine, or of the archive's figures the scope they were taken in. `sources` are where numbers that were not
    measured come from. So many findings of the same pattern with other options say the same (`more_alike`).
    """

    kind: str
    transport: str
    sentence: str
    effect: float
    pattern: str = ""
    ranks: int | None = None
    state: str = ""
    sizes_bytes: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedy: str | None = None
    sources: tuple[str, ...] = ()
    more_alike: int = 0
    typed: NewFinding | None = None


@dataclass(frozen=True)
class Lacking:
    """Why something could not be looked for or fitted, as the end of a sentence that begins with its name, `what`.

    `got_by` is the command that measures it, where one does. A detector knows its name no more than its suite: both are
    filled in by who calls it.
    """

    reason: str
    got_by: str = ""
    what: str = ""

    @property
    def text(self) -> str:
        return f"{self.reason} ({self.got_by})" if self.got_by else self.reason


Found = list[Finding] | list[NewFinding] | list[Finding | NewFinding] | Lacking | NotChecked


def as_old(finding: Finding | NewFinding) -> Finding:
    """Until every detector returns the typed ones."""
    if isinstance(finding, Finding):
        return finding
    about = finding.subject
    return Finding(
        finding.code,
        about.transport,
        "",
        finding.effect,
        pattern=about.pattern,
        ranks=about.ranks,
        state=about.state,
        sizes_bytes=about.sizes_bytes,
        remedy=finding.fix.text if finding.fix else None,
        sources=finding.sources,
        typed=finding,
    )


def as_lacking(gap: Lacking | NotChecked) -> Lacking:
    """Until every detector returns the typed ones."""
    if isinstance(gap, Lacking):
        return gap
    return Lacking(gap.detail, "" if gap.how is None else gap.how.text)


def difference(upper: Estimate, lower: Estimate) -> Estimate:
    """What the first is more than the second."""
    return Estimate(upper.value - lower.value, upper.low - lower.high, upper.high - lower.low)


def ratio(upper: Estimate, lower: Estimate) -> Estimate:
    """The first over the second, both above zero."""
    return Estimate(upper.value / lower.value, upper.low / lower.high, upper.high / lower.low)


def scaled(value: Estimate, factor: float) -> Estimate:
    """A positive multiple."""
    return Estimate(value.value * factor, value.low * factor, value.high * factor)


def negative(value: Estimate) -> Estimate:
    """What is below zero as what it lacks."""
    return Estimate(-value.value, -value.high, -value.low)


def of_all(values: Sequence[Estimate]) -> Estimate:
    """Their median, with the interval that encloses all of theirs."""
    middle = statistics.median(one.value for one in values)
    return Estimate(middle, min(one.low for one in values), max(one.high for one in values))


def is_above(upper: Estimate, lower: Estimate) -> bool:
    """Whether the intervals are apart, this way round."""
    return upper.low > lower.high


def relative(value: Estimate) -> float:
    """The longer arm of the interval as a fraction of the value."""
    return max(value.high - value.value, value.value - value.low) / abs(value.value) if value.value else float("inf")


def time_text(value: Estimate) -> str:
    """`1.90 us (1.72 us to 2.05 us)`."""
    return _interval_text(value, format_ns)


def ratio_text(value: Estimate) -> str:
    """`1.10 (1.09 to 1.12)`."""
    return _interval_text(value, _three_digits)


def _interval_text(value: Estimate, text: Callable[[float], str]) -> str:
    """The value alone where its digits leave nothing open; where it is a bound itself, both: `237 ns to 364 ns`."""
    own, low, high = map(text, (value.value, value.low, value.high))
    if low == high:
        return own
    short, long = sorted((value.value - value.low, value.high - value.value))
    is_bound = own in (low, high) and short < _BOUND * long
    return f"{low} to {high}" if is_bound else f"{own} ({low} to {high})"


def _three_digits(ratio: float) -> str:
    return f"{ratio:#.3g}" if ratio < 99.95 else f"{ratio:,.0f}"


def sizes_text(sizes: tuple[int, ...]) -> str:
    """`at 64 B`, `at 64 B and 1 KiB`, `from 64 B to 1 MiB`."""
    if len(sizes) > 2:
        return f"from {format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
    return "at " + " and ".join(format_bytes(size) for size in sizes)
