"""What a comparison of two runs says, as values."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hockney.analysis.compare.protocols import Protocols
from hockney.cli.rerun import more_launches
from hockney.model import CurveKey, Point, RunInfo, curve_of
from hockney.stats.shift import Shift

CPU, HOST, COMMIT = "CPU", "host", "commit of hockney"  # as they are called in a difference


class Verdict(enum.Enum):
    """What became of a series."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "no difference seen"
    INCONCLUSIVE = "inconclusive"


_RESTORED = ("variable ", "usable CPUs", "CPUs of ranks")  # by the command that is advised
_MOVED = (Verdict.SLOWER, Verdict.FASTER)


@dataclass(frozen=True)
class Difference:
    """One thing in which the surroundings of two runs differ; None: not known there."""

    what: str
    base: str | None
    new: str | None


@dataclass(frozen=True)
class Disturbance:
    """What disturbed the machine while a run measured, or just before: a sentence that was stored with the run."""

    run: int
    cause: str


@dataclass(frozen=True)
class SeriesChange:
    """What became of one series from base to new, in the states of the machine that both saw.

    `shift` is the ratio of new times to base times, None where they have no state in common. `chance` is how often
    chance alone makes any of the series compared differ as much as this one; None where it can't be decided. `reason`
    is a sentence that says why a series is inconclusive. `is_open`: whether more launches of new may change the
    verdict, be it decided or not; they can't where it failed, base has no samples, or the times are defined otherwise.
    `is_beyond`: its own interval lies beyond the margin, whatever became of it among the others. `wanted`: how many
    launches a new run in place of base and of new should have, 0 where the run has enough. `apart`: of one that is
    inconclusive for lack of launches or of a state in common, the ratio of the times by which every launch of new was
    longer (above 1) or shorter (below 1) than any of base, in whatever state; None where that is nothing to tell.
    `point` is named as in the new run.
    """

    point: Point
    verdict: Verdict
    reason: str | None = None
    states: tuple[str, ...] = ()
    shift: Shift | None = None
    chance: float | None = None
    is_open: bool = False
    is_beyond: bool = False
    wanted: tuple[int, int] = (0, 0)
    apart: float | None = None


@dataclass(frozen=True)
class Range:
    """Neighbouring sizes of one curve with one verdict and reason, apart or moved alike. Not empty; sizes ascend.

    What moved lies on one side of each of the curve's switches, in both runs.
    """

    changes: tuple[SeriesChange, ...]
    protocols: Protocols | None = None  # of its curve

    @property
    def protocol(self) -> str | None:
        """On which side of the curve's switches it lies, in each run where they differ; None where none is known."""
        if self.protocols is None:
            return None
        return self.protocols.text(self.changes[0].point.bytes, self.changes[-1].point.bytes)

    @property
    def first(self) -> SeriesChange:
        return self.changes[0]

    @property
    def verdict(self) -> Verdict:
        return self.first.verdict

    @property
    def states(self) -> list[str]:
        """The states of the machine in which any of them was compared."""
        return list(dict.fromkeys(state for change in self.changes for state in change.states))

    @property
    def shifts(self) -> list[Shift]:
        return [change.shift for change in self.changes if change.shift is not None]

    @property
    def apart(self) -> float | None:
        """Of its series the ratio nearest to 1 by which the launches of the two runs lie apart, if they do."""
        ratios = [change.apart for change in self.changes if change.apart is not None]
        return min(ratios, key=lambda ratio: max(ratio, 1 / ratio), default=None)


@dataclass(frozen=True)
class Comparison:
    """Two runs compared. `only_base` and `only_new` are points with samples that the other run's plan has not.

    `launches` are those of base and new, of the series with most, `launches_least` of that with fewest; `margin` is the
    ratio that a difference must exceed to count, `confidence` that of each interval, and that no difference at all is
    there by chance alone. `protocols` has the switches of the curves in which something is slower or faster.
    `infos` are what is stored of base and new, `failed` the transports of which points failed in either, with what
    that run calls them, `disturbances` what disturbed the runs.
    """

    base: int
    new: int
    launches: tuple[int, int]
    margin: float
    confidence: float
    differences: tuple[Difference, ...]
    changes: tuple[SeriesChange, ...]
    only_base: tuple[Point, ...]
    only_new: tuple[Point, ...]
    protocols: Mapping[CurveKey, Protocols] = field(default_factory=dict)
    launches_least: tuple[int, int] | None = None
    disturbances: tuple[Disturbance, ...] = ()
    infos: tuple[RunInfo, ...] = ()
    failed: tuple[Mapping[str, str], ...] = ({}, {})
    interleaved: bool = False  # both were measured in alternation, so that no drift is between them

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(change.verdict for change in self.changes)

    @property
    def by_chance(self) -> int:
        """Series whose own interval lies beyond the margin, but which do not stand out among all."""
        return sum(change.verdict is Verdict.SAME and change.is_beyond for change in self.changes)

    @property
    def has_no_cause(self) -> bool:
        """Whether something is slower or faster, and nothing is known to have changed that may have made it so."""
        is_moved = any(change.verdict in _MOVED for change in self.changes)
        return is_moved and all(one.what == COMMIT for one in self.differences)

    @property
    def drifting(self) -> list[str]:
        """The transports on which something is slower or faster, and whose ranks sleep while they wait."""
        sleeping = {name for info in self.infos for name in info.facts.get("sleeping", ())}
        moved = (change.point.transport for change in self.changes if change.verdict in _MOVED)
        return [name for name in dict.fromkeys(moved) if name in sleeping]

    @property
    def other_cpu(self) -> Difference | None:
        """The models of the CPUs, where the runs were measured on two."""
        return self._known_difference(CPU)

    @property
    def other_host(self) -> Difference | None:
        """The names of the hosts, where they differ."""
        return self._known_difference(HOST)

    def _known_difference(self, what: str) -> Difference | None:
        return next((one for one in self.differences if one.what == what and one.base and one.new), None)

    @property
    def remedies(self) -> list[str]:
        """What to measure again, for the series that are inconclusive for lack of launches."""
        inconclusive = [change for change in self.changes if change.verdict is Verdict.INCONCLUSIVE]
        found = []
        for side, (run, info) in enumerate(zip((self.base, self.new), self.infos, strict=False)):
            lacking = [change for change in inconclusive if change.wanted[side]]
            if lacking:
                launches = max(change.wanted[side] for change in lacking)
                found.append(more_launches(run, info, launches, but=self._but(side, lacking)))
        return found

    def _but(self, side: int, lacking: Sequence[SeriesChange]) -> str:
        """What is to be left out of a run that is measured anew, for it fails again, and what to restore before."""
        wanted = {change.point.transport for change in lacking}
        failed = [own for name, own in self.failed[side].items() if name not in wanted]
        changed = any(one.base and one.new and not one.what.startswith(_RESTORED) for one in self.differences)
        return (f", without {', '.join(failed)}, of which points failed" if failed else "") + (
            ", once what changed is as it was then" if changed and side == 0 else ""
        )

    @property
    def widest(self) -> SeriesChange | None:
        """Of the series not called slower that whose interval reaches farthest beyond the margin; None: none does."""
        return max((change for change in self.changes if self.may_hide(change)), key=_reach, default=None)

    def may_hide(self, change: SeriesChange) -> bool:
        """Whether a series without a difference seen may still be slower by more than the margin."""
        return change.verdict is Verdict.SAME and _reach(change) > self.margin

    @property
    def ranges(self) -> list[Range]:
        """All series, neighbouring sizes of a kind together; curves in the order of the plan."""
        curves: dict[CurveKey, list[SeriesChange]] = {}
        for change in self.changes:
            curves.setdefault(curve_of(change.point), []).append(change)
        found: list[Range] = []
        for curve, members in curves.items():
            members.sort(key=lambda change: change.point.bytes)
            begun, protocols = 0, self.protocols.get(curve)
            for place in range(1, len(members) + 1):
                if place == len(members) or not _belongs(members[begun:place], members[place], protocols):
                    found.append(Range(tuple(members[begun:place]), protocols))
                    begun = place
        return found


def _reach(change: SeriesChange) -> float:
    """The upper end of a series' interval, as a ratio of times; 0 without one."""
    return 0.0 if change.shift is None or change.shift.high is None else change.shift.high


def _belongs(range_: Sequence[SeriesChange], next_: SeriesChange, protocols: Protocols | None) -> bool:
    """Whether a size belongs to the range before it: where both moved, by one protocol and about as much as each other.

    Apart is what moved more than twice as much, and surely more: the intervals say so.
    """
    if _kind(next_) != _kind(range_[0]):
        return False
    if next_.verdict not in _MOVED:
        return True
    if protocols is not None and protocols.part(range_[-1].point.bytes, next_.point.bytes):
        return False
    own = _moved_by(next_)
    for less, more in (sorted((own, _moved_by(other)), key=lambda moved: moved[1]) for other in range_):
        if more[0] > less[2] and more[1] > 2 * less[1]:
            return False
    return True


def _moved_by(change: SeriesChange) -> list[float]:
    """How far what moved did at the least, about and at the most, as parts of the shorter of its two times.

    0.08 is 8 % slower, 11 twelve times as long, or a twelfth.
    """
    assert change.shift is not None
    ends = (change.shift.low, change.shift.ratio, change.shift.high)
    return sorted(max(end, 1 / end) - 1 for end in ends if end is not None)


def _kind(change: SeriesChange) -> tuple[Verdict, str | None, bool | None]:
    return change.verdict, change.reason, None if change.apart is None else change.apart > 1
