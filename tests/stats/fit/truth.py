"""Curves made from known segments, and how well their fits find them. Run it to print the tables of validation.md.

Sizes are those of real runs: 0 and powers of two to 4 MiB, alone or with one or two sizes between each. A time errs by
normal noise of the same fraction everywhere. From one segment to the next the time jumps by a factor of 1.1 to 2, and
by five times the noise at least, in four of five cases upwards, and the rate changes by a factor of up to two.
Outliers are single sizes that take 1.2 to 2 times as long, and ten times the noise longer at least.

Curves that are not quite lines are a line times a random wave, whose neighbours within some factor of the size are
alike; machines for LogGP have random parameters (tests/stats/fit/test_loggp.py says what they mean).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tests.stats.fit.bounds import (
    best_division,
    best_divisions,
    chance_within,
    errors_of_line,
    errors_of_loggp,
    noise_of,
)

from hockney.stats.fit import Estimate, NoFit, RoundTrips, Segment, SegmentFit, fit_line, fit_loggp, fit_segments

Floats = NDArray[np.float64]
GRIDS = {24: (1.0,), 36: (1.0, 1.5), 60: (1.0, 1.25, 1.5)}
SEGMENT_SIZES = 6  # of a segment, at least
STRONG = 10.0  # a switch of this strength is one that must be found
LINE_GRIDS = {
    "8 sizes": [0, 8, 64, 512, 4096, 32768, 262144, 1 << 20],
    "24 sizes": [0, *(2**n for n in range(23))],
}
STRENGTHS = ((2, 4), (4, 6), (6, 8), (8, 10), (10, 15), (15, 30))
NOISES = (0.01, 0.03, 0.1)


@dataclass(frozen=True)
class Curve:
    """A curve and the truth about it."""

    sizes_bytes: list[int]
    times_ns: list[float]
    noise: float
    starts: list[int]  # of each segment, as indices
    lines: list[tuple[float, float]]  # t0_ns, ns_per_byte
    outliers: set[int]
    strength: float  # of the weakest switch

    def true_ns(self, at: int) -> float:
        """Without noise and outliers."""
        t0, slope = self.lines[max(i for i, start in enumerate(self.starts) if start <= at)]
        return t0 + slope * self.sizes_bytes[at]


def sizes_of(count: int) -> list[int]:
    """This many sizes up to 4 MiB, without the smallest of the grid if there are too many."""
    grid = sorted({round(step * 2**n) for n in range(23) for step in GRIDS[count] if step * 2**n <= 1 << 22})
    return [0, *grid[-(count - 1) :]]


def curve(rng: np.random.Generator, *, segments: int, noise: float, outliers: int = 0) -> Curve:
    """A random curve."""
    grids = [count for count in GRIDS if count >= segments * SEGMENT_SIZES + 2]
    sizes = sizes_of(grids[rng.integers(len(grids))])
    starts = _starts(rng, len(sizes), segments)
    lines = _lines(rng, [sizes[start] for start in starts], noise)
    ends = [*starts[1:], len(sizes)]
    size = np.array(sizes, dtype=float)
    times = np.concatenate([t0 + slope * size[a:b] for (t0, slope), a, b in zip(lines, starts, ends, strict=True)])
    strengths = [_miss(size[a:b], times[a:b]) / noise for a, b in zip(starts, ends[1:], strict=False)]
    times *= 1 + rng.normal(0, noise, len(size))
    blips = rng.choice(np.arange(1, len(size) - 1), outliers, replace=False)
    times[blips] *= 1 + np.maximum(rng.uniform(0.2, 1.0, outliers), 10 * noise)
    return Curve(sizes, times.tolist(), noise, starts, lines, set(blips.tolist()), min(strengths, default=np.inf))


def _starts(rng: np.random.Generator, sizes: int, segments: int) -> list[int]:
    while True:
        starts = [0, *sorted(rng.choice(np.arange(1, sizes), segments - 1, replace=False).tolist())]
        if min(b - a for a, b in zip(starts, [*starts[1:], sizes], strict=True)) >= SEGMENT_SIZES:
            return starts


def _lines(rng: np.random.Generator, firsts: Sequence[int], noise: float) -> list[tuple[float, float]]:
    t0, slope = 10 ** rng.uniform(2, 4.3), 10 ** rng.uniform(-1.3, 0.3)
    lines = [(t0, slope)]
    for first in firsts[1:]:
        factor = 1 + max(10 ** rng.uniform(-1, 0), 5 * noise)
        here = (t0 + slope * first) * (factor if rng.random() < 0.8 else 1 / factor)
        slope = min(slope * 2 ** rng.uniform(-1, 1), 0.9 * here / first)  # t0 stays above zero
        t0 = here - slope * first
        lines.append((t0, slope))
    return lines


def _miss(size: Floats, times: Floats) -> float:
    """The residual of the best single line of times without noise: root of the sum of squares, relative."""
    columns = np.stack([np.full(len(size), 1.0), size / size[-1]], axis=1) / times[:, None]
    best, *_ = np.linalg.lstsq(columns, np.ones(len(size)), rcond=None)
    return float(np.linalg.norm(columns @ best - 1))


@dataclass
class Parameters:
    """Counts of fitted parameters and their true values."""

    intervals: int = 0
    covered: int = 0
    within: int = 0  # values within 2 % of the truth
    known: int = 0  # those whose interval reaches 2 % at most to either side
    near: int = 0  # of these: values within 2 % of the truth
    best: float = 0.0  # values that would be within 2 % at the least error of any unbiased method

    def count(self, estimate: Estimate, truth: float, least: float) -> None:
        """One of them; no unbiased method has a standard error below `least` of it."""
        near = abs(estimate.value / truth - 1) <= 0.02
        self.intervals += 1
        self.covered += estimate.low <= truth <= estimate.high
        self.within += near
        self.best += chance_within(least)
        if max(estimate.high - estimate.value, estimate.value - estimate.low) <= 0.02 * abs(estimate.value):
            self.known += 1
            self.near += near

    def shares(self) -> list[str]:
        """As the tables have them."""
        return [
            share(self.covered, self.intervals),
            share(self.within, self.intervals),
            share(self.best, self.intervals),
            share(self.known, self.intervals),
            share(self.near, self.known),
        ]


@dataclass
class Score(Parameters):
    """Counts over many curves; parameters are t_0, slope, r_inf and n_1/2 where all switches are strong and found."""

    curves: int = 0
    invented: int = 0  # curves with more segments than there are
    strong: int = 0  # curves with switches, all of them strong
    placed: int = 0  # of these: as many segments as there are, every switch within one size
    outliers: int = 0
    outliers_found: int = 0
    outliers_invented: int = 0  # curves with an outlier that is none

    def add(self, one: Curve) -> None:
        """Fit a curve and compare with the truth."""
        self.compare(one, one.times_ns, [1.96 * one.noise] * len(one.times_ns))

    def compare(self, one: Curve, times_ns: Sequence[float], errors: Sequence[float]) -> None:
        """The fit of these times with the truth of a curve."""
        fit = fit_segments(one.sizes_bytes, times_ns, errors)
        assert isinstance(fit, SegmentFit)
        placed = _placed(one, fit)
        self.curves += 1
        self.invented += len(fit.segments) > len(one.lines)
        strong = one.strength >= STRONG  # so is a curve without switches
        if strong and len(one.lines) > 1:
            self.strong += 1
            self.placed += placed
        self.outliers += len(one.outliers)
        self.outliers_found += len(one.outliers & set(fit.outliers))
        self.outliers_invented += not set(fit.outliers) <= one.outliers
        for parameter in _parameters(one, fit, one.noise) if placed and strong else ():
            self.count(*parameter)


def _placed(one: Curve, fit: SegmentFit) -> bool:
    """The measured sizes on either side of each switch are the true ones or their neighbours."""
    at = {size: index for index, size in enumerate(one.sizes_bytes)}
    return len(fit.segments) == len(one.lines) and all(
        abs(at[switch.below_bytes] - (start - 1)) <= 1 and abs(at[switch.above_bytes] - start) <= 1
        for switch, start in zip(fit.switches, one.starts[1:], strict=True)
    )


def _parameters(one: Curve, fit: SegmentFit, noise: float) -> Iterator[tuple[Estimate, float, float]]:
    ends = [*one.starts[1:], len(one.sizes_bytes)]
    for segment, line, start, end in zip(fit.segments, one.lines, one.starts, ends, strict=True):
        sizes = np.array([one.sizes_bytes[at] for at in range(start, end) if at not in one.outliers], dtype=float)
        yield from _of_segment(segment, line, sizes, noise_of(len(sizes), noise))


def _of_segment(
    segment: Segment, line: tuple[float, float], sizes: Floats, covariance: Floats
) -> Iterator[tuple[Estimate, float, float]]:
    """Of each parameter that the segment has its estimate, the truth, and the least error of any unbiased method."""
    t0, slope = line
    of_t0, of_slope, of_n_half = errors_of_line(sizes, t0, slope, covariance)
    yield segment.t0_ns, t0, of_t0
    yield segment.ns_per_byte, slope, of_slope
    if segment.r_inf_bytes_per_s is not None:
        yield segment.r_inf_bytes_per_s, 1e9 / slope, of_slope
    if segment.n_half_bytes is not None:
        yield segment.n_half_bytes, t0 / slope, of_n_half


@functools.cache  # several tests judge the same curves
def score(*, noise: float, switched: bool, outliers: int, curves: int = 200) -> Score:
    """Of random curves that are straight or have one to three switches."""
    rng = np.random.default_rng(1994)
    total = Score()
    for _ in range(curves):
        segments = int(rng.integers(2, 5)) if switched else 1
        total.add(curve(rng, segments=segments, noise=noise, outliers=outliers))
    return total


def lines_score(grid: str, *, missed: float, alike: float, unequal: bool, curves: int = 200) -> Score:
    """One line through curves that are not quite lines: every size is off by about the fraction `missed`.

    Neighbours within a factor of 2 to the power `alike` are off alike. Errors: 1 %, or `unequal`, 0.3 to 20 %.
    """
    rng = np.random.default_rng(1862)
    sizes = np.array(LINE_GRIDS[grid], dtype=float)
    powers = np.log2(np.maximum(sizes, 1))
    together = np.exp(-(((powers[:, None] - powers) / alike) ** 2)) if alike else np.eye(len(sizes))
    together += 1e-9 * np.eye(len(sizes))
    waves = missed * np.linalg.cholesky(together)
    total = Score()
    for _ in range(curves):
        t0, slope = 10 ** rng.uniform(2, 4.3), 10 ** rng.uniform(-1.3, 0.3)
        errors = 10 ** rng.uniform(-2.5, -0.7, len(sizes)) if unequal else np.full(len(sizes), 0.01)
        off = waves @ rng.standard_normal(len(sizes)) + errors / 1.96 * rng.standard_normal(len(sizes))
        segment = fit_line(LINE_GRIDS[grid], ((t0 + slope * sizes) * np.exp(off)).tolist(), errors.tolist())
        assert isinstance(segment, Segment)
        total.curves += 1
        covariance = missed**2 * together + np.diag((errors / 1.96) ** 2)
        for parameter in _of_segment(segment, (t0, slope), sizes, covariance):
            total.count(*parameter)
    return total


MESSAGES = 16
DELAY_NS = 5e7


@dataclass(frozen=True)
class Machine:
    """LogGP as its authors mean it: a message costs o at each end, L on the way, and g + size G to its successor."""

    latency_ns: float = 900.0
    send_ns: float = 300.0
    receive_ns: float = 200.0
    gap_ns: float = 450.0
    gap_ns_per_byte: float = 0.08

    def way_ns(self, size: int) -> float:
        return self.send_ns + self.latency_ns + size * self.gap_ns_per_byte + self.receive_ns

    def round_trip_ns(self, size: int, messages: int, delay_ns: float) -> float:
        """PRTT(n, d) for no delay, or for one that is longer than a round trip."""
        if delay_ns:
            return messages * (self.send_ns + delay_ns) + self.receive_ns
        return 2 * self.way_ns(size) + (messages - 1) * (self.gap_ns + size * self.gap_ns_per_byte)

    def trips(
        self,
        size: int,
        noise: float | Sequence[float] = 0.0,
        rng: np.random.Generator | None = None,
        *,
        heavy: bool = False,
        known: bool = False,
    ) -> RoundTrips:
        """Noise is of the communication; a delay ends by the clock.

        Noise is one fraction of all four times, or different for each. `heavy` has wild values; `known` noise is known
        to a quarter.
        """
        calls = [(1, 0.0), (MESSAGES, 0.0), (1, DELAY_NS), (MESSAGES, DELAY_NS)]
        delays = np.array([messages * delay_ns for messages, delay_ns in calls])
        busy = np.array([self.round_trip_ns(size, *call) for call in calls]) - delays
        errors_ns = noise * busy
        times, claimed = busy, np.ones(4)
        if rng is not None:
            luck = rng.standard_t(4, 4) / 2**0.5 if heavy else rng.standard_normal(4)
            times = np.maximum(busy + errors_ns * luck, busy / 10)
            claimed = np.exp(0.25 * rng.standard_normal(4)) if heavy else claimed
        widths = (1.96 * errors_ns * claimed).tolist()
        one, burst, delayed, spaced = (times + delays).tolist()
        return RoundTrips(size, MESSAGES, one, burst, delayed, spaced, DELAY_NS, tuple(widths) if known else (0.0,) * 4)


SUITE_SIZES = (0, 8, 64, 256, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384)  # of the suite loggp
LOGGP = {"L": "latency_ns", "o_s": "send_ns", "o_r": "receive_ns", "g": "gap_ns", "G": "gap_ns_per_byte"}


def loggp_score(
    *, noise: float = 0.0, machines: int = 200, wide: bool = False, known: bool = False, sizes: Sequence[int] = ()
) -> dict[str, Parameters]:
    """The parameters of random machines of one segment, measured at 36 sizes or those given.

    `wide`: L, o_s and o_r are anywhere between 100 ns and 10 us, g between a third and five times the longer overhead,
    and noise is heavy. Without `noise` each time has a different one of 0.3 to 10 %.
    """
    rng = np.random.default_rng(12)
    scores = {name: Parameters() for name in LOGGP}
    sizes = sizes or sizes_of(36)
    for _ in range(machines):
        latency, send, receive, gap = rng.uniform(200, 2000, 4).tolist()
        if wide:
            latency, send, receive = (10 ** rng.uniform(2, 4, 3)).tolist()
            gap = max(send, receive) * float(10 ** rng.uniform(-0.5, 0.7))
        truth = Machine(latency, send, receive, gap, float(10 ** rng.uniform(-2, 0)))
        noises = 10 ** rng.uniform(-2.5, -1, (len(sizes), 4)) if not noise else np.full((len(sizes), 4), noise)
        pairs = zip(sizes, noises, strict=True)
        trips = [truth.trips(size, errors, rng, heavy=wide, known=known) for size, errors in pairs]
        fits = fit_loggp(trips)
        assert not isinstance(fits, NoFit)
        if len(fits) > 1:
            continue  # a switch was invented
        values = [getattr(truth, attribute) for attribute in LOGGP.values()]
        least = errors_of_loggp(np.array(sizes, dtype=float), values, MESSAGES, noises.T.ravel())
        for (name, attribute), value, error in zip(LOGGP.items(), values, least, strict=True):
            scores[name].count(getattr(fits[0], attribute), value, error)
    return scores


PARAMETERS = "intervals that hold the truth | within 2 % | at the least error | known to 2 % | of these, within 2 %"
KNOWING = "noise known | noise and number of switches known"
HEAD = (
    "curves | noise | outliers in each | a switch invented | strong switches placed | outliers found | "
    f"an outlier invented | {PARAMETERS}"
)


def share(part: float, whole: int) -> str:
    """In percent, as documents write it."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def found_by_strength(curves: int) -> list[str]:
    """A row for each range of strengths, one for all, and one for straight curves: how many curves, and in how many all
    switches are placed, and no other found; by the fit and by those who know more."""
    rng = np.random.default_rng(1893)
    every = STRENGTHS[0][0], STRENGTHS[-1][1]
    counts = {ends: np.zeros(4, dtype=int) for ends in (*STRENGTHS, every)}
    for number in range(curves):
        made = curve(rng, segments=int(rng.integers(2, 5)), noise=NOISES[number % len(NOISES)])
        if every[0] <= made.strength < every[1]:
            counted = _found_of(made)
            for (low, high), count in counts.items():
                count += counted * (low <= made.strength < high)
    named = {f"{low} to {high}": count for (low, high), count in counts.items()}
    named["none, straight"] = np.zeros(4, dtype=int)
    for number in range(curves // 6):
        named["none, straight"] += _found_of(curve(rng, segments=1, noise=NOISES[number % len(NOISES)]))
    return [_row(name, str(each[0]), *(share(part, each[0]) for part in each[1:])) for name, each in named.items()]


def _found_of(one: Curve) -> NDArray[np.int_]:
    fit = fit_segments(one.sizes_bytes, one.times_ns, [1.96 * one.noise] * len(one.times_ns))
    assert isinstance(fit, SegmentFit)
    return np.array([1, _placed(one, fit), *_placed_at_best(one)])


def _placed_at_best(one: Curve) -> tuple[bool, bool]:
    """By who knows the noise, and by who also knows how many switches there are."""
    true_ns = np.array([one.true_ns(at) for at in range(len(one.sizes_bytes))])
    sizes, times = np.array(one.sizes_bytes, dtype=float), np.array(one.times_ns)
    divisions = best_divisions(sizes, times, true_ns, SEGMENT_SIZES)
    best = divisions[len(one.lines) - 1], best_division(divisions, one.noise)
    return _are_near(one.starts, best[1].starts), _are_near(one.starts, best[0].starts)


def _are_near(truth: Sequence[int], found: Sequence[int]) -> bool:
    return len(found) == len(truth) and all(abs(a - b) <= 1 for a, b in zip(truth, found, strict=True))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(text: str) -> str:
    return f"\n| {text} |\n|{' --- |' * len(text.split('|'))}"


def _curves_row(kind: str, noise: float, outliers: int, s: Score) -> str:
    return _row(
        kind,
        f"{100 * noise:.0f} %",
        str(outliers),
        share(s.invented, s.curves),
        share(s.placed, s.strong),
        share(s.outliers_found, s.outliers),
        share(s.outliers_invented, s.curves),
        *s.shares(),
    )


def main() -> None:
    """Print the tables."""
    print(_head(f"strength of the weakest switch | curves | switches placed | {KNOWING}"))
    print("\n".join(found_by_strength(6000)))
    print(_head(HEAD))
    kinds = {False: "straight", True: "one to three switches"}
    for switched, kind in kinds.items():
        for noise in NOISES:
            for outliers in (0, 2):
                counts = score(noise=noise, switched=switched, outliers=outliers, curves=1000)
                print(_curves_row(kind, noise, outliers, counts))
    print(_head(f"sizes | each off its line by about | alike over a factor of | errors of the times | {PARAMETERS}"))
    for grid in LINE_GRIDS:
        for missed, alike, unequal in ((0.1, 0.0, False), (0.1, 0.0, True), (0.1, 1.5, False), (0.1, 3.0, False)):
            counts = lines_score(grid, missed=missed, alike=alike, unequal=unequal, curves=1000)
            errors = "0.3 to 20 %" if unequal else "1 %"
            print(_row(grid, f"{100 * missed:.0f} %", f"{2**alike:.3g}" if alike else "-", errors, *counts.shares()))
    print(_head(f"LogGP's | noise | {PARAMETERS}"))
    for noise in NOISES[:2]:
        for name, parameters in loggp_score(noise=noise, machines=1000).items():
            print(_row(name, f"{100 * noise:.0f} %", *parameters.shares()))
    for sizes in ((), SUITE_SIZES):
        for noise, known in ((0.01, True), (0.0, False), (0.0, True)):
            noise_text = f"{100 * noise:.0f} %" if noise else "0.3 to 10 %, " + ("known" if known else "not known")
            wide = loggp_score(noise=noise, machines=300, wide=True, known=known, sizes=sizes)
            for name, parameters in wide.items():
                print(_row(f"{name}, wide, {len(sizes) or 36} sizes", noise_text, *parameters.shares()))


if __name__ == "__main__":
    main()
