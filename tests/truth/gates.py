"""Gates made of recorded launches: `python -m tests.truth.gates RESULTS.db RUN GATES BASE NEW` counts what they find.

Each side of a gate has launches of one stored run, drawn again with all their series: so many of a baseline and of a
check, which nothing changed, and then one series is made slower. What differs between two runs is not in it.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest

from hockney.analysis.compare import SeriesChange, Verdict
from hockney.analysis.compare.comparison import BETWEEN_RUNS, MatchedSeries, judge
from hockney.measure.check import END_SHARE, Gate
from hockney.model import Point
from hockney.results.runs import Run
from hockney.results.store import Store

if TYPE_CHECKING:
    from hockney.model import FloatArray

_MARGIN = 1.05


def launches_of(run: Run) -> dict[Point, FloatArray]:
    """Of each series shown the logarithm of each launch's median, in its state; where it has none, another launch's."""
    found = {}
    for series in run.series:
        for figure in series.figures()[:1]:
            row = np.full(1 + max(launch.index for launch in run.launches.values()), np.nan)
            for each in figure.measurements:
                number = series.unit_of(each)
                own = (other.median_ns for other in figure.measurements if series.unit_of(other) == number)
                row[number] = math.log(statistics.median(filter(None, own)))
            row[np.isnan(row)] = np.resize(row[~np.isnan(row)], np.isnan(row).sum())
            found[series.point] = row
    return found


def slower(base: FloatArray, new: FloatArray, points: list[Point], sleeping: set[str]) -> set[Point]:
    """The series that a gate calls slower at its end."""
    between = [BETWEEN_RUNS if point.transport in sleeping else 0.0 for point in points]

    def compare(margin: float, share: float, first: int) -> list[SeriesChange]:
        times = zip(np.exp(base).tolist(), np.exp(new[:, first:]).tolist(), strict=True)
        rows = zip(points, times, between, strict=True)
        series = [MatchedSeries(point, "near", both, between=more) for point, both, more in rows]
        return judge(series, None, margin, share)

    gate = Gate(compare, _MARGIN, base_id=1)
    gate.answer(new.shape[1], END_SHARE)
    return {change.point for change in gate.changes.values() if change.verdict is Verdict.SLOWER}


def main() -> None:
    """Print the rates."""
    path, run_id, gates, of_base, of_new = Path(sys.argv[1]), *map(int, sys.argv[2:])
    with Store.open(path, readonly=True) as store:
        run = Run(store, run_id)
        known, sleeping = launches_of(run), set(run.facts.get("sleeping", ()))
    points, logs = list(known), np.array(list(known.values()))
    kinds: dict[str, Callable[[Point], bool]] = {
        "ranks spin, up to 64 KiB": lambda point: point.transport not in sleeping and point.bytes <= 1 << 16,
        "ranks sleep": lambda point: point.transport in sleeping,
        "every series": lambda _: True,
    }
    counts, alarms = Counter[tuple[str, float, bool]](), 0
    for seed in range(gates):
        rng = np.random.default_rng(seed)
        base, new = (logs[:, rng.integers(0, logs.shape[1], count)] for count in (of_base, of_new))
        alarms += bool(slower(base, new, points, sleeping))
        number = int(rng.integers(len(points)))
        for factor in (1.1, 1.25):
            changed = new.copy()
            changed[number] += math.log(factor)
            is_found = points[number] in slower(base, changed, points, sleeping)
            counts.update((kind, factor, is_found) for kind, is_one in kinds.items() if is_one(points[number]))
    print(f"{len(points)} series, {of_base} and {of_new} launches: {alarms} false alarms in {gates} gates")
    for kind in kinds:
        for factor in (1.1, 1.25):
            hits, missed = (counts[kind, factor, is_found] for is_found in (True, False))
            if hits + missed:
                rate = binomtest(hits, hits + missed).proportion_ci()
                share = 100 * hits / (hits + missed)
                print(f"  x{factor} found where {kind}: {share:.0f} % ({100 * rate.low:.0f}-{100 * rate.high:.0f})")


if __name__ == "__main__":
    main()
