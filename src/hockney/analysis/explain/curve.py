"""The input of detectors: curves of one machine state, and facts about the machine and its libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hockney.analysis.finding import Absence, NotChecked, Note, Subject
from hockney.analysis.impact import Impacts
from hockney.analysis.pair_classes import ClassOf
from hockney.analysis.pairs import PairMatrix
from hockney.machine.facts import data_caches
from hockney.model import Measurement, Point, Warning_, pattern_text
from hockney.results.store import MeasurementSummary
from hockney.results.traits import pattern_traits
from hockney.stats import State, time_of
from hockney.stats.fit import Estimate, LogGP, NoFit, SegmentFit, fit_segments

Options = tuple[tuple[str, str], ...]
JobKey = tuple[str, int]  # transport and number of ranks of a job
_LINKS = ("ends", "halves", "ring")


@dataclass(frozen=True)
class Fitted:
    """The curve of a fit: `pattern` with its options; `pair_class` is the class of the two ranks, "" if unknown."""

    transport: str
    pattern: str
    ranks: int
    pair_class: str
    state: str


@dataclass(frozen=True)
class Parameters(Fitted):
    """LogGP's parameters of one segment of a transport's round trips."""

    loggp: LogGP


@dataclass(frozen=True)
class CurvePoint:
    """The time of a pattern, by its definition, at one message size.

    `payload_bytes` arrive in that time, None for a pattern without payload. `measurements` are empty for
    published figures, and for a median over several pairs of ranks.
    """

    bytes: int
    time_ns: Estimate
    payload_bytes: float | None = None
    measurements: Sequence[MeasurementSummary] = field(default=(), compare=False, repr=False)

    @property
    def rate_bytes_per_s(self) -> Estimate | None:
        if not self.payload_bytes or self.time_ns.low <= 0:
            return None
        return 1e9 * self.payload_bytes / self.time_ns

    def over(self, other: CurvePoint) -> tuple[Estimate | None, int]:
        """The ratio to another's time by the rounds that measured both, which were alike for both; and their number.

        A paired comparison: R. A. Fisher, The Design of Experiments, 1935, chapter III.
        """
        others_ns = {each.round: each.median_ns for each in other.measurements}
        pairs = ((each.median_ns, others_ns.get(each.round), each.launch_id) for each in self.measurements)
        ratios = [(own_ns / other_ns, launch_id) for own_ns, other_ns, launch_id in pairs if own_ns and other_ns]
        return time_of(*zip(*ratios, strict=True))[0].estimate if ratios else None, len(ratios)


@dataclass(frozen=True)
class MeasuredCurve:
    """All sizes of a pattern on a transport in one state; `points` ascend.

    `peak_bytes_per_s` is a best rate that was published without its size. `algorithm` is whose a collective is, by the
    pattern's definition. `pair_class`: what the pairs of ranks share, whose `n_measurements` a curve by class is of.
    """

    transport: str
    pattern: str
    ranks: int
    options: Options
    state: str
    points: tuple[CurvePoint, ...]
    oversubscribed: bool = False
    peak_bytes_per_s: Estimate | None = None
    algorithm: str | None = None
    pair_class: str = ""
    n_measurements: int = 0

    @property
    def name(self) -> str:
        """`oneway window=16`: the pattern with its options."""
        return pattern_text(self.pattern, self.options)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(point.bytes for point in self.points)

    @property
    def job(self) -> JobKey:
        return self.transport, self.ranks

    @functools.cached_property
    def segments(self) -> SegmentFit | NoFit:
        """The straight segments, each time weighted by its interval."""
        errors = [point.time_ns.relative for point in self.points]
        return fit_segments(self.sizes, [point.time_ns.value for point in self.points], errors)

    def at(self, size_bytes: int) -> Estimate | None:
        """The time of a size that was measured."""
        return next((point.time_ns for point in self.points if point.bytes == size_bytes), None)

    def option(self, name: str) -> str | None:
        return dict(self.options).get(name)


# Returns about the given number of measurements with their samples, evenly chosen. No patterns means all patterns.
Samples = Callable[[int, Sequence[str]], Sequence[tuple[Measurement, State]]]


@dataclass(frozen=True)
class Reading:
    """A run, or a machine of the archive, as input of the detectors. None or empty: unknown.

    `curves` are in one state for each job, `by_class` in every state. `floors` belong to the latency of each job,
    `launchers` started the jobs of each transport. `class_of` returns the class of a pair of ranks in a launch.
    `matrices` are the times between all pairs, `loggp` the fits of prtt, or why there are none. `plan`: of the run, as
    stored. `measured`: its measurements of one state each. `impacts`: those of its background. `run`: its number.
    """

    subject: str
    curves: tuple[MeasuredCurve, ...]
    notes: tuple[Note, ...] = ()
    by_class: tuple[MeasuredCurve, ...] = ()
    floors: Mapping[JobKey, Estimate] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    launchers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Warning_, ...] = ()
    samples: Samples = lambda most, patterns: ()
    measured: Sequence[tuple[Point, MeasurementSummary]] = ()
    class_of: ClassOf = lambda pair, launch_id: ""
    matrices: tuple[PairMatrix, ...] = ()
    loggp: tuple[Parameters | NotChecked, ...] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)
    impacts: Impacts | None = None
    run: int | None = None

    def of(self, *patterns: str) -> list[MeasuredCurve]:
        """The curves of these patterns that are not oversubscribed."""
        return [curve for curve in self.curves if curve.pattern in patterns and not curve.oversubscribed]

    @functools.cached_property
    def shapes(self) -> list[MeasuredCurve]:
        """The curves whose shape is examined: those of the plainest pattern between two ranks, for each job.

        One pair alone is plainer than several at once, and a round trip than a stream. LogGP is fitted to prtt instead.
        """
        plainness: dict[MeasuredCurve, tuple[int, bool, bool]] = {}
        for curve in self.curves:
            traits = pattern_traits(self.facts, curve.pattern)
            if traits.payload and traits.links in _LINKS and curve.points and curve.pattern != "prtt":
                plainness[curve] = _LINKS.index(traits.links), traits.stream, curve.pattern != "pingpong"
        curves = [curve for curve in plainness if not curve.oversubscribed]
        plainest: dict[JobKey, str] = {}
        for curve in sorted(curves, key=plainness.__getitem__):
            plainest.setdefault(curve.job, curve.pattern)
        return [curve for curve in curves if curve.pattern == plainest[curve.job]]

    def shapes_of(self, sizes: int, why: str) -> list[MeasuredCurve] | NotChecked:
        """Those of `shapes` with this many sizes; if there is none, the reason (`why`: too few sizes)."""
        if not self.shapes:
            return NotChecked(Absence.NOT_MEASURED, why="two ranks")
        long = [curve for curve in self.shapes if len(curve.points) >= sizes]
        return long or NotChecked(Absence.INSUFFICIENT_DATA, why=why)

    def is_link(self, curve: MeasuredCurve) -> bool:
        """Whether its times are those of messages between two ranks, alone or next to other such pairs."""
        traits = pattern_traits(self.facts, curve.pattern)
        return traits.payload and traits.links in ("ends", "halves") and not curve.oversubscribed

    @property
    def caches(self) -> list[tuple[int, int]]:
        """(level, bytes) of the data caches, by level."""
        return data_caches(self.facts)


def subject_of(curve: MeasuredCurve, sizes_bytes: tuple[int, ...] = ()) -> Subject:
    """The curve as the subject of a finding."""
    return Subject(curve.transport, curve.name, curve.ranks, curve.state, sizes_bytes)


def is_like(curve: MeasuredCurve, other: MeasuredCurve) -> bool:
    """Whether two curves have the same transport, number of ranks and state."""
    return curve.job == other.job and curve.state == other.state
