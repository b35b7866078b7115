"""Results of a comparison of two runs, as data. report/documents/comparison.py makes the sentences."""

from __future__ import annotations

import enum
import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hockney.analysis.repeat import (
    LAUNCHES_WANTED,
    alternate,
    longer_health,
    more_launches,
    more_pairs,
    new_baseline,
)
from hockney.analysis.thresholds import thresholds_of
from hockney.errors import Fix
from hockney.model import CurveKey, Point, RunInfo, curve_of
from hockney.stats.interval import Estimate
from hockney.stats.shift import LAUNCHES_MIN, Shift

CPU, HOST, COMMIT = "CPU", "host", "commit of hockney"  # names of differences
VARIABLE = "variable "  # how the name of a difference in the environment begins


class Verdict(enum.Enum):
    """The verdict on a series."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "no difference seen"
    INCONCLUSIVE = "inconclusive"


MOVED = (Verdict.SLOWER, Verdict.FASTER)
ALIKE = 1.05  # the factor by which ratios of one row differ at most, where no row has a verdict


class ReasonCode(enum.Enum):
    """Why a series is inconclusive. The facts of each are in the comment."""

    FAILED = "failed"  # run, message
    SKIPPED = "skipped"  # run, message
    NO_SAMPLES = "no samples"  # run
    NO_STEADY_STATE = "no steady state"  # run: the state changed during each measurement
    NO_COMMON_STATE = "no common state"  # base, new: names of states; runs
    STATE_UNKNOWN = "state unknown"  # another benchmark measured one side
    OTHER_DEFINITION = "other definition"  # the time of the pattern is defined otherwise
    FEW_LAUNCHES = "few launches"  # base, new: launches in the state compared; needed; runs
    FEW_MEASUREMENTS = "few measurements"  # the same, of a link; of a host: partners
    FEW_PAIRS = "few launch pairs"  # pairs, needed: of an interleaved pair
    WIDE_INTERVAL = "wide interval"  # by: a fraction; a change by more than that is not excluded
    DRIFT = "drift"  # by: a fraction; shown_by: "floor", "pace", "wake-ups", a transport, or "other series"
    NOT_SIGNIFICANT = "not significant"  # of a check: the ratio is beyond the margin, its interval is not
    MAY_BE_CHANCE = "may be chance"  # the same, after correction for `among` series


@dataclass(frozen=True)
class Reason:
    """One reason with its facts."""

    code: ReasonCode
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """One thing in which the environments of two runs differ; None: not known there."""

    what: str
    base: str | None
    new: str | None


@dataclass(frozen=True)
class Contention:
    """Load of other programs during a run or just before it, or its early end: a sentence stored with the run."""

    run: int
    cause: str


@dataclass(frozen=True)
class SeriesChange:
    """The comparison of one series. `point` is named as in the new run.

    `states`: what base and new alone call the machine state compared; empty where there is none. `shift` is the ratio
    of new to base, of trimmed means of launch medians; `chance` the probability that chance alone makes any series
    differ as much, None where nothing was tested. `base_ns` and `new_ns` are the runs' own figures. `is_short`: a
    stream with fewer than 8 events per sample in either. `is_of_other_state`: tables of either run show it in another
    state. `launches` are those with samples in them, in any state.
    """

    point: Point
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    states: tuple[str, ...] = ()
    shift: Shift | None = None
    chance: float | None = None
    base_ns: float | None = None
    new_ns: float | None = None
    is_short: bool = False
    is_of_other_state: bool = False
    launches: tuple[int, int] = (0, 0)

    @property
    def is_exact(self) -> bool:
        """Whether it was measured on models without noise."""
        return self.shift is not None and self.shift.coverage == 1.0

    def has(self, code: ReasonCode) -> bool:
        """Whether this is a reason why it is inconclusive."""
        return any(reason.code is code for reason in self.reasons)

    @property
    def is_too_wide(self) -> bool:
        """Whether its interval decides nothing, by itself or among that of others."""
        return self.has(ReasonCode.WIDE_INTERVAL) or self.has(ReasonCode.MAY_BE_CHANCE)

    @property
    def ratio(self) -> Estimate | None:
        """That of new to base with its interval; None without one."""
        return None if self.shift is None else self.shift.estimate

    @property
    def is_apart(self) -> bool:
        """Whether its interval excludes the quotient of its figures, which are of all launches."""
        ratio = self.ratio
        if not ratio or not self.base_ns or not self.new_ns or self.is_exact:
            return False
        return not ratio.low <= self.new_ns / self.base_ns <= ratio.high

    @property
    def seen_ratio(self) -> float | None:
        """The ratio of its times where too little is known for a verdict; None where there is one, or no such ratio."""
        is_seen = any(map(self.has, (ReasonCode.STATE_UNKNOWN, ReasonCode.FEW_LAUNCHES, ReasonCode.FEW_MEASUREMENTS)))
        return self.new_ns / self.base_ns if is_seen and self.base_ns and self.new_ns else None

    @property
    def reach(self) -> float:
        """The upper end of its interval, a ratio of times; 0 without one."""
        return self.ratio.high if self.ratio else 0.0


@dataclass(frozen=True)
class Range:
    """Neighbouring sizes of one curve with the same verdict and reasons that moved alike. Not empty; sizes ascend.

    `limit` is the name of the documented limit between its first size and the size before, if there is one.
    """

    changes: tuple[SeriesChange, ...]
    limit: str | None = None

    @property
    def first(self) -> SeriesChange:
        return self.changes[0]

    @property
    def verdict(self) -> Verdict:
        return self.first.verdict

    @property
    def states(self) -> list[str]:
        """The runs' names of the machine states in which series were compared."""
        return list(dict.fromkeys(name for change in self.changes for name in change.states))

    @property
    def ratio(self) -> Estimate | None:
        """The median ratio, with an interval that encloses all of theirs; None where none has an interval."""
        known = [change.ratio for change in self.changes if change.ratio is not None]
        return Estimate.of_all(known) if known else None


@dataclass(frozen=True)
class Comparison:
    """Two runs compared.

    `launches`: most of any series, in base and new. `margin`: the ratio that a difference must exceed. `infos`: the
    stored run info of base and new. `only_base` and `only_new`: points with samples that the other plan does not have.
    `libraries`: of the transports of both. `renamed`: the new run's name of a transport of base. Of a check, `again`
    measures new again, and `judged_again` is how many series were judged after its patience.
    """

    base: int
    new: int
    launches: tuple[int, int]
    margin: float
    differences: tuple[Difference, ...]
    changes: tuple[SeriesChange, ...]
    infos: tuple[RunInfo, RunInfo]
    only_base: tuple[Point, ...] = ()
    only_new: tuple[Point, ...] = ()
    contention: tuple[Contention, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    interleaved: bool = False  # measured in alternation, so there is no drift between the runs
    again: Fix | None = None
    judged_again: int = 0

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(change.verdict for change in self.changes)

    @property
    def is_of_hosts(self) -> bool:
        """Whether it compares the hosts and links of health runs."""
        return any(change.point.hosts for change in self.changes)

    @property
    def by_chance(self) -> int:
        """Series with an interval beyond the margin that do not stand out among all."""
        same = (change for change in self.changes if change.verdict is Verdict.SAME and not change.is_exact)
        return sum(change.shift is not None and change.shift.is_beyond(self.margin) for change in same)

    @property
    def has_no_cause(self) -> bool:
        """Whether a series moved, and no known difference may be the cause."""
        is_moved = any(change.verdict in MOVED and not change.is_exact for change in self.changes)
        return is_moved and all(difference.what == COMMIT for difference in self.differences)

    @property
    def drifting(self) -> list[str]:
        """The transports on which a series moved and whose ranks sleep while they wait."""
        sleeping = {name for info in self.infos for name in info.facts.get("sleeping", ())}
        moved = (change.point.transport for change in self.changes if change.verdict in MOVED)
        return [name for name in dict.fromkeys(moved) if name in sleeping]

    @property
    def other_cpu(self) -> Difference | None:
        """The CPU models, if the runs were measured on two."""
        return next((each for each in self.differences if each.what == CPU and each.base and each.new), None)

    @property
    def fixes(self) -> list[Fix]:
        """Fixes for series that are inconclusive, each once: more launches, or a new run for a common machine state.

        A run with too few launches, or without a state that lasts, gets twice its launches, LAUNCHES_WANTED at least;
        so does the run with fewer where intervals are wide.
        """
        wide = any(change.is_too_wide for change in self.changes)
        if self.is_of_hosts:
            few = any(change.has(ReasonCode.FEW_MEASUREMENTS) for change in self.changes)
            return [longer_health(self.infos[1])] if wide or few else []
        if self.interleaved and (wide or any(change.has(ReasonCode.FEW_PAIRS) for change in self.changes)):
            return [more_pairs(self.infos[0], 2 * max(LAUNCHES_WANTED, *self.launches))]
        reasons = [(change, reason) for change in self.changes for reason in change.reasons]
        wanted: list[int] = []
        for side, (name, run) in enumerate((("base", self.base), ("new", self.new))):
            made = [
                change.launches[side]
                for change, reason in reasons
                if (reason.code is ReasonCode.FEW_LAUNCHES and reason.facts[name] < LAUNCHES_MIN)
                or (reason.code is ReasonCode.NO_STEADY_STATE and reason.facts["run"] == run)
            ]
            of_run = self.launches[side]  # those that are missing anyway may see a common state
            if (wide and of_run == min(self.launches)) or (self.without_common_state and of_run < LAUNCHES_MIN):
                made.append(of_run)
            wanted.append(max(LAUNCHES_WANTED, 2 * max(made)) if made else 0)
        fixes: list[Fix] = []
        if wanted[0]:
            fixes.append(more_launches(self.base, self.infos[0], wanted[0], self.infos[1]))
        elif self.without_common_state:
            fixes.append(alternate(*self.infos) or new_baseline(self.base, self.infos[0]))
        if wanted[1]:
            fixes.append(self.again or more_launches(self.new, self.infos[1], wanted[1], self.infos[0]))
        return fixes

    @functools.cached_property
    def has_no_verdict(self) -> bool:
        """Whether every series is inconclusive: then times and ratios alone are shown."""
        return all(change.verdict is Verdict.INCONCLUSIVE for change in self.changes)

    @property
    def without_common_state(self) -> list[SeriesChange]:
        """The series that the two runs measured in different machine states."""
        return [change for change in self.changes if change.has(ReasonCode.NO_COMMON_STATE)]

    @functools.cached_property
    def is_by_factor(self) -> bool:
        """Whether changes are shown as factors, not in per cent: one is to half or double the time, or more."""
        known = [change.ratio.value for change in self.changes if change.ratio]
        seen = [change.seen_ratio or 1.0 for change in self.changes if self.has_no_verdict]
        return any(ratio >= 2 or ratio <= 0.5 for ratio in known + seen)

    @property
    def equal_within(self) -> float:
        """By which fraction series without a difference may differ: that of the margin, or where an interval ends."""
        same = (change.ratio for change in self.changes if change.verdict is Verdict.SAME and not change.is_exact)
        return max(self.margin - 1, *(max(ratio.high - 1, 1 - ratio.low) for ratio in same if ratio), 0.0)

    @property
    def widest(self) -> SeriesChange | None:
        """The series without a difference whose interval reaches farthest beyond the margin, if any does."""
        same = (change for change in self.changes if change.verdict is Verdict.SAME and not change.is_exact)
        return max((each for each in same if each.reach > self.margin), key=lambda each: each.reach, default=None)

    @property
    def ranges(self) -> list[Range]:
        """All series, neighbouring sizes that changed alike together; curves in the order of the plan.

        Of health runs hosts that changed alike are together, and links: in the order of their changes.
        """
        curves: dict[CurveKey, list[SeriesChange]] = {}
        for change in self.changes:
            names = tuple((name, "") for name, _ in change.point.options)
            curve = replace(change.point, options=names) if change.point.hosts else change.point
            curves.setdefault(curve_of(curve), []).append(change)
        ranges: list[Range] = []
        factor_max = ALIKE if self.has_no_verdict else math.inf
        for members in curves.values():
            before: SeriesChange | None = None
            for change in sorted(members, key=_row_order):
                if before is not None and _belongs(ranges[-1].changes, change, factor_max):
                    ranges[-1] = replace(ranges[-1], changes=(*ranges[-1].changes, change))
                else:
                    limit = None if before is None else self._limit_between(before.point, change.point)
                    ranges.append(Range((change,), limit))
                before = change
        return ranges

    def _limit_between(self, below: Point, above: Point) -> str | None:
        """The documented limit between two sizes, if there is just one."""
        facts, library = self.infos[1].facts, self.libraries.get(above.transport, "")
        names = [
            threshold.name
            for threshold in thresholds_of(above.transport, facts, library)
            if threshold.lies_between(below.bytes, above.bytes)
        ]
        return names[0] if len(names) == 1 else None


def _row_order(change: SeriesChange) -> tuple[int, str, float]:
    moved = change.ratio.value if change.ratio and change.point.hosts else 0.0
    return change.point.bytes, change.verdict.value if change.point.hosts else "", -moved


def _belongs(before: Sequence[SeriesChange], change: SeriesChange, factor_max: float) -> bool:
    """Whether a size belongs to the range before it: none moved more than twice as much, with intervals that agree.

    Ratios without a verdict differ by this factor at most.
    """
    if (change.verdict, change.reasons) != (before[0].verdict, before[0].reasons):
        return False
    if change.verdict not in MOVED:
        first, own = before[0].seen_ratio or 1.0, change.seen_ratio or 1.0
        return max(first / own, own / first) <= factor_max
    moved = _moved_by(change)
    pairs = (sorted((moved, _moved_by(other)), key=lambda pair: pair[1]) for other in before)
    return not any(more[0] > less[2] and more[1] > 2 * less[1] for less, more in pairs)


def _moved_by(change: SeriesChange) -> list[float]:
    """How far a series moved at least, about and at most: 0.08 is 8 % of the shorter time, 11 a factor of twelve."""
    assert change.shift is not None
    ends = (change.shift.low, change.shift.ratio, change.shift.high)
    return sorted(max(end, 1 / end) - 1 for end in ends if end is not None)
