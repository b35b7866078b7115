"""Two patterns on one transport: limits of full duplex, paths that several pairs share, collectives and their parts.

A library's collective should not be slower than its other operations that do the same, in the same run: J. L. Traeff,
W. Gropp, R. Thakur, Self-consistent MPI performance guidelines, IEEE TPDS 21 (2010) 698-709. Collectives that hockney
makes of messages itself are not judged.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.analysis.explain.curve import MeasuredCurve, Options, Reading, is_like, subject_of
from hockney.analysis.finding import Absence, Finding, NotChecked, load_of
from hockney.analysis.thresholds import own_command
from hockney.errors import Fix
from hockney.machine.files import rows_of
from hockney.model import IMPORTED, pattern_text
from hockney.results.traits import pattern_traits
from hockney.stats.fit import Estimate
from hockney.units import bytes_word
from hockney.worker.catalogue import split_name

_TURNS = (0.75, 1.33)  # the time over one direction's alone; 1 if they take turns all the time


def duplex(reading: Reading) -> list[Finding] | NotChecked:
    """Two-way time per message over the one-way time: 0.5 if both directions run concurrently, 1 if they take turns."""
    pairs = [
        (two_way, one_way)
        for two_way, one_way in itertools.product(reading.of("twoway"), reading.of("oneway"))
        if is_like(two_way, one_way) and one_way.options in (two_way.options, ())
    ]
    if not pairs:
        return NotChecked(Absence.NOT_MEASURED, why="both directions")
    return [finding for two_way, one_way in pairs if (finding := _duplex(two_way, one_way)) is not None]


def _duplex(two_way: MeasuredCurve, one_way: MeasuredCurve) -> Finding | None:
    times = ((point.bytes, point.time_ns, one_way.at(point.bytes)) for point in two_way.points)
    ratios = [(size, two_ns / one_ns) for size, two_ns, one_ns in times if one_ns is not None]
    slower = [(size, over) for size, over in ratios if over.low > 0.55]
    off = slower or [(size, over) for size, over in ratios if over.high < 0.45]
    if not off:
        return None
    (first, first_ratio), (last, last_ratio) = off[0], off[-1]
    facts = {"one_way": one_way.name, "first_bytes": first, "first_ratio": first_ratio}
    if len(off) > 1:
        facts |= {"last_bytes": last, "last_ratio": last_ratio}
    cause = "directions slow each other down" if slower else "one direction waits"
    if slower and _TURNS[0] < last_ratio.low and last_ratio.high < _TURNS[1]:
        cause = "directions take turns"
    effect = max(max(2 * over.low - 1, 1 - 2 * over.high) for _, over in off)
    return Finding("duplex limit", subject_of(two_way, tuple(size for size, _ in off)), facts, cause, effect=effect)


def shared_path(reading: Reading) -> list[Finding] | NotChecked:
    """A best rate under load that is a whole fraction of the best rate alone."""
    findings = []
    is_measured = False
    for loaded, idle in _loaded_and_idle(reading):
        loaded_rate, idle_rate = _peak(loaded), _peak(idle)
        if loaded_rate is None or idle_rate is None:
            continue
        is_measured = True
        quotient = idle_rate / loaded_rate
        sharing = round(quotient.value)
        is_ring = pattern_traits(reading.facts, loaded.pattern).links == "ring"
        at_once = loaded.ranks if is_ring else loaded.ranks // 2
        is_whole = sharing - 0.07 <= quotient.low and quotient.high <= sharing + 0.07
        if is_whole and 2 <= sharing <= at_once:
            facts = {
                "sharing": sharing,
                "of_alone_ratio": 1 / quotient.value,
                "alone": idle.name,
                "alone_bytes_per_s": idle_rate,
                "loaded_bytes_per_s": loaded_rate,
            }
            findings.append(Finding("shared path", subject_of(loaded), facts, effect=quotient.value - 1))
    if not is_measured:
        return NotChecked(Absence.NOT_MEASURED, why="alone and loaded")
    return findings


def _peak(curve: MeasuredCurve) -> Estimate | None:
    """The best rate of one message's payload from 64 KiB on, or the published one."""
    if curve.peak_bytes_per_s is not None:
        return curve.peak_bytes_per_s
    rates = [
        1e9 * point.bytes / point.time_ns for point in curve.points if point.bytes >= 1 << 16 and point.time_ns.low > 0
    ]
    return max(rates, key=lambda rate: rate.value, default=None)


def _loaded_and_idle(reading: Reading) -> Iterator[tuple[MeasuredCurve, MeasuredCurve]]:
    """Curves with many messages under way, each with its curve of one message alone."""
    for loaded in reading.curves:
        alone = pattern_traits(reading.facts, loaded.pattern).alone
        for idle in reading.of(alone) if alone and not loaded.oversubscribed else ():
            same = loaded.transport == idle.transport and loaded.state == idle.state
            if same and _compared(loaded) == _compared(idle):
                yield loaded, idle


def _compared(curve: MeasuredCurve) -> dict[str, str]:
    return {name: value for name, value in curve.options if name not in ("distance", "source", "target")}


# ---- collectives and their parts -------------------------------------------------------------------------------------

_SLOWER = 1.05  # the factor that a finding exceeds
_CHOICES = rows_of(Path(__file__).with_name("algorithms.toml"))
# Algorithms that are made of other collectives of the library; all others are made of its messages.
_OF_COLLECTIVES = {"parts", *(name for row in _CHOICES for name in row["collectives"].split())}


@dataclass(frozen=True)
class _Made:
    """A collective's time and that of its parts at one size, which are made by an algorithm or, "", are round trips."""

    curve: MeasuredCurve
    bytes: int
    time_ns: Estimate
    parts_ns: Estimate
    algorithm: str
    paired: Estimate | None = None  # the ratio by the rounds that measured both

    @property
    def parts(self) -> str:
        if not self.algorithm:
            return "round trips"
        return "collectives" if self.algorithm in _OF_COLLECTIVES else "messages"

    @property
    def ratio(self) -> Estimate:
        return self.time_ns / self.parts_ns

    @property
    def is_sure(self) -> bool:
        """Whether the rounds that measured both say so, too."""
        return self.paired is not None and self.paired.low > _SLOWER


def slower_than_parts(reading: Reading) -> list[Finding] | NotChecked:
    """Find collectives that are 5 % slower than their parts: one finding for each, with what is faster."""
    made = [*_by_algorithm(reading), *_barriers(reading)]
    if not made:
        return NotChecked(Absence.NOT_MEASURED, why="two algorithms")
    is_busy = load_of(reading.warnings) is not None
    slower: dict[tuple[str, str, bool], list[_Made]] = {}
    for point in made:
        if point.ratio.low > _SLOWER:  # under load, certain and uncertain ones are separate findings
            slower.setdefault((point.curve.transport, point.curve.name, is_busy and point.is_sure), []).append(point)
    return [_finding(points, reading, is_paired=is_paired) for (*_, is_paired), points in slower.items()]


def _finding(points: list[_Made], reading: Reading, *, is_paired: bool) -> Finding:
    """The largest factor that is certain, and all sizes around it at which the same algorithm is faster.

    `is_paired`: the factors are those of the rounds that measured both.
    """

    def ratio_of(point: _Made) -> Estimate:
        return point.paired if is_paired and point.paired else point.ratio

    worst = max(points, key=lambda point: (point.is_sure, ratio_of(point).low))
    curve = worst.curve
    alike = [point for point in points if (point.algorithm, point.is_sure) == (worst.algorithm, worst.is_sure)]
    by_it = {point.bytes for point in alike if point.curve == curve}
    runs = [tuple(run) for _, run in itertools.groupby(curve.sizes, by_it.__contains__)]
    around = next((run for run in runs if worst.bytes in run), (worst.bytes,))
    slow = tuple(sorted({point.bytes for point in points}))
    others = [size for size in slow if size not in around]
    facts = {
        "operation": pattern_text(curve.pattern, _options(curve)),
        **({"size_bytes": worst.bytes, "first_bytes": around[0]} if worst.bytes else {}),
        **({"last_bytes": around[-1]} if len(around) > 1 else {}),
        **({"others_bytes": others} if others else {}),
        "time_ns": worst.time_ns,
        "parts": worst.parts,
        **({"algorithm": worst.algorithm} if worst.algorithm else {}),
        "parts_ns": worst.parts_ns,
        "slower_ratio": ratio_of(worst),
        **({"is_paired": True} if is_paired else {}),
        "points": len({(point.curve.ranks, point.curve.state, point.bytes) for point in points}),
    }
    fix = _choose(curve, around, reading)
    return Finding("slower than its parts", subject_of(curve, slow), facts, "", fix, ratio_of(worst).value - 1)


def _choose(curve: MeasuredCurve, sizes: Sequence[int], reading: Reading) -> Fix | None:
    """The fix that races the algorithms, or that chooses another one, and lists them; None without such a setting."""
    from hockney.analysis.tune.files import can_be_ruled  # it loads a library, and few runs have such a finding

    name, is_blocking = curve.pattern, curve.option("form") in (None, "blocking")
    is_here = not (IMPORTED in reading.plan or reading.plan.get("hosts"))  # tune races ranks of one host
    for row in _CHOICES:
        if curve.transport.startswith(row["transports"]) and name in row["collectives"].split() and is_blocking:
            version = tuple(map(int, re.findall(r"\d+", split_name(curve.transport)[1])))
            if is_here and not can_be_ruled(row["transports"].removeprefix("mpi@"), name, version):
                options = [word for each in _options(curve) for word in ("-o", "=".join(each))]
                words = ("--bytes", ",".join(map(bytes_word, sizes))) if any(sizes) else ()
                argv = ("hockney", "tune", name, "-t", curve.transport, "-n", str(curve.ranks), *options, *words)
                return Fix("tune", argv, run_facts=reading.facts)
            argv = tuple(own_command(row["ask"], reading.launchers.get(curve.transport, "")).split())
            facts = {"variable": row["variable"].format(name, name.upper())}
            return Fix("list algorithms" if argv else "choose algorithm", argv, facts)
    return None


def _by_algorithm(reading: Reading) -> Iterator[_Made]:
    """Collectives of the library and the same by another algorithm: both are timed in the same way."""
    natives = [curve for curve in reading.curves if curve.algorithm == "native" and not curve.oversubscribed]
    others = [(curve, curve.algorithm) for curve in reading.curves if curve.algorithm not in (None, "native")]
    for whole, (other, algorithm) in itertools.product(natives, others):
        if whole.pattern != other.pattern or not is_like(whole, other) or _options(whole) != _options(other):
            continue
        # The library's alltoall copies the own block too, which is taken to cost as much as another message.
        blocks = whole.ranks / (whole.ranks - 1) if algorithm == "flat" else 1.0
        for point, part in itertools.product(whole.points, other.points):
            if point.bytes == part.bytes and algorithm:
                paired, times = point.over(part)[0], (point.time_ns, part.time_ns * blocks)
                yield _Made(whole, point.bytes, *times, algorithm, paired and paired * (1 / blocks))


def _options(curve: MeasuredCurve) -> Options:
    return tuple((name, value) for name, value in curve.options if name != "algorithm")


def _barriers(reading: Reading) -> Iterator[_Made]:
    """Dissemination: log2 P rounds of half a round trip each. Used only without a measured barrier by messages."""
    barriers = reading.of("barrier")
    by_messages = [(curve.job, curve.state) for curve in barriers if curve.algorithm not in (None, "native")]
    pingpongs = [curve for curve in reading.of("pingpong") if not curve.option("source") and not curve.option("target")]
    for whole, pingpong in itertools.product(barriers, pingpongs):
        is_same = (whole.transport, whole.state) == (pingpong.transport, pingpong.state)
        if is_same and whole.points and (whole.job, whole.state) not in by_messages:
            time = pingpong.points[0].time_ns * math.ceil(math.log2(whole.ranks))
            yield _Made(whole, 0, whole.points[0].time_ns, time, "")
