"""Curves made from known segments, and how well their fits find them again. Run it to print the tables of methods.md.

Sizes are those of real runs: 0 and powers of two to 4 MiB, alone or with one or two sizes between each. A time errs by
normal noise of the same fraction everywhere. From one segment to the next the time jumps by a factor of 1.1 to 2, and
by five times the noise at least, in four of five cases upwards, and the rate changes by a factor of up to two.
Outliers are single sizes that take 1.2 to 2 times as long, and ten times the noise longer at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hockney.fit import Estimate, SegmentFit, fit_segments

Floats = NDArray[np.float64]
GRIDS = {24: (1.0,), 36: (1.0, 1.5), 60: (1.0, 1.25, 1.5)}
SEGMENT_SIZES = 6  # of a segment, at least
STRONG = 10.0  # a switch of this strength is one that must be found
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


def sizes_of(count: int) -> list[int]:
    """So many sizes up to 4 MiB; the smallest of the grid are left out where there are too many."""
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
    """What the best single line leaves of times without noise: root of the sum of squares, relative."""
    columns = np.stack([np.full(len(size), 1.0), size / size[-1]], axis=1) / times[:, None]
    best, *_ = np.linalg.lstsq(columns, np.ones(len(size)), rcond=None)
    return float(np.linalg.norm(columns @ best - 1))


@dataclass
class Score:
    """Counts over many curves."""

    curves: int = 0
    invented: int = 0  # curves with more segments than there are
    strong: int = 0  # curves with switches, all of them strong
    placed: int = 0  # of these: as many segments as there are, every switch within one size
    outliers: int = 0
    outliers_found: int = 0
    outliers_invented: int = 0  # curves with an outlier that is none
    intervals: int = 0  # of t0, 1 / r_inf, r_inf and n_1/2 where all switches are strong and placed
    covered: int = 0
    known: int = 0  # those that reach 2 % at most to either side
    near: int = 0  # of these: values within 2 % of the truth

    def add(self, one: Curve, *, errors: bool = False) -> None:
        """Fit a curve and compare with the truth."""
        fit = fit_segments(one.sizes_bytes, one.times_ns, [1.96 * one.noise] * len(one.times_ns) if errors else None)
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
        for estimate, truth in _parameters(one, fit) if placed and strong else ():
            self.intervals += 1
            self.covered += estimate.low <= truth <= estimate.high
            if max(estimate.high - estimate.value, estimate.value - estimate.low) <= 0.02 * abs(estimate.value):
                self.known += 1
                self.near += abs(estimate.value / truth - 1) <= 0.02


def _placed(one: Curve, fit: SegmentFit) -> bool:
    """The measured sizes on either side of each switch are the true ones or their neighbours."""
    at = {size: index for index, size in enumerate(one.sizes_bytes)}
    return len(fit.segments) == len(one.lines) and all(
        abs(at[switch.below_bytes] - (start - 1)) <= 1 and abs(at[switch.above_bytes] - start) <= 1
        for switch, start in zip(fit.switches, one.starts[1:], strict=True)
    )


def _parameters(one: Curve, fit: SegmentFit) -> Iterator[tuple[Estimate, float]]:
    for segment, (t0, slope) in zip(fit.segments, one.lines, strict=True):
        yield segment.t0_ns, t0
        yield segment.ns_per_byte, slope
        if segment.r_inf_bytes_per_s is not None:
            yield segment.r_inf_bytes_per_s, 1e9 / slope
        if segment.n_half_bytes is not None:
            yield segment.n_half_bytes, t0 / slope


def score(*, noise: float, switched: bool, outliers: int, curves: int = 200) -> Score:
    """Of random curves that are straight or have one to three switches; errors are known in every second one."""
    rng = np.random.default_rng(1994)
    total = Score()
    for number in range(curves):
        segments = int(rng.integers(2, 5)) if switched else 1
        total.add(curve(rng, segments=segments, noise=noise, outliers=outliers), errors=number % 2 == 1)
    return total


HEAD = (
    "curves | noise | outliers in each | a switch invented | strong switches placed | outliers found | "
    "an outlier invented | intervals that hold the truth | known to 2 % | of these, within 2 %"
)


def share(part: int, whole: int) -> str:
    """In percent, as documents write it."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def found_by_strength(curves: int) -> list[str]:
    """One row for each range of strengths: how many curves, in how many all switches are placed; all noises alike."""
    rng = np.random.default_rng(1893)
    counts = {ends: [0, 0] for ends in STRENGTHS}
    for number in range(curves):
        one = curve(rng, segments=int(rng.integers(2, 5)), noise=NOISES[number % len(NOISES)])
        fit = fit_segments(one.sizes_bytes, one.times_ns)
        assert isinstance(fit, SegmentFit)
        for (low, high), count in counts.items():
            if low <= one.strength < high:
                count[0] += 1
                count[1] += _placed(one, fit)
    return [f"| {low} to {high} | {each[0]} | {share(each[1], each[0])} |" for (low, high), each in counts.items()]


def main() -> None:
    """Print the tables."""
    print(f"| {HEAD} |\n|{' --- |' * len(HEAD.split('|'))}")
    for switched in (False, True):
        for noise in NOISES:
            for outliers in (0, 2):
                s = score(noise=noise, switched=switched, outliers=outliers, curves=1000)
                shares = [
                    share(s.invented, s.curves),
                    share(s.placed, s.strong),
                    share(s.outliers_found, s.outliers),
                    share(s.outliers_invented, s.curves),
                    share(s.covered, s.intervals),
                    share(s.known, s.intervals),
                    share(s.near, s.known),
                ]
                kind = "one to three switches" if switched else "straight"
                print(f"| {kind} | {100 * noise:.0f} % | {outliers} | {' | '.join(shares)} |")
    print("\n| strength of the weakest switch | curves | switches placed |\n| --- | --- | --- |")
    print("\n".join(found_by_strength(6000)))


if __name__ == "__main__":
    main()
