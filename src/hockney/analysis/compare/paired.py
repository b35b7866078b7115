"""Two runs measured in alternation: their measurements in quadruples, judged launch pair by launch pair."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from hockney.analysis.compare.values import Reason, ReasonCode, SeriesChange, Verdict
from hockney.analysis.repeat import INTERLEAVED
from hockney.model import Point, RunInfo
from hockney.results.store import MeasurementSummary, StoredPoint, StoredRun
from hockney.stats import CONFIDENCE
from hockney.stats.pairs import PAIRS_MIN, chances, log_ratio, shift_of_pairs

Quadruples = Mapping[int, Mapping[int, tuple[list[float], list[float]]]]  # by launch and round, ns of base and of new


def names_of_pair(base: RunInfo, new: RunInfo) -> Mapping[str, str] | None:
    """What new calls base's transports where the two were measured in alternation; None where they were not."""
    links = [info.plan.get(INTERLEAVED) or {} for info in (base, new)]
    if [link.get("side") for link in links] != ["base", "new"] or links[0].get("id") != links[1].get("id"):
        return None
    names: Mapping[str, str] | None = links[0].get("names")
    return names


def quadruples_of(
    runs: Sequence[StoredRun],
    points: Sequence[Mapping[Point, StoredPoint]],
    measurements: Sequence[Sequence[MeasurementSummary]],
    common: Sequence[Point],
) -> dict[Point, Quadruples]:
    """The measurements of each series in both runs; `points` by the name they share."""
    found: dict[Point, dict[int, dict[int, tuple[list[float], list[float]]]]] = {point: {} for point in common}
    for side, (run, stored, of_run) in enumerate(zip(runs, points, measurements, strict=True)):
        series = {stored[point].id: found[point] for point in common}
        for measurement in of_run:
            if measurement.median_ns and measurement.point_id in series:
                of_launch = series[measurement.point_id].setdefault(run.launches[measurement.launch_id].index, {})
                of_launch.setdefault(measurement.round, ([], []))[side].append(measurement.median_ns)
    return dict(found)


def judge_pairs(
    series: Mapping[Point, Quadruples], missing: Mapping[Point, tuple[Reason, ...]], margin: float
) -> Iterator[SeriesChange]:
    """What became of each series. `missing`: why a point was not measured."""
    import numpy as np

    logs = {point: _log_ratios(quadruples) for point, quadruples in series.items()}
    judged = [point for point in series if point not in missing and len(logs[point]) >= PAIRS_MIN]
    launches = sorted({launch for point in judged for launch in logs[point]})
    table = np.array([[logs[point].get(launch, math.nan) for launch in launches] for point in judged])
    chance_of = dict(zip(judged, chances(table, margin).tolist(), strict=True)) if judged else {}
    for point, quadruples in series.items():
        values = list(logs[point].values())
        shift = shift_of_pairs(values) if values else None
        base_ns, new_ns = (_median_ns(quadruples, side) for side in (0, 1))
        change = SeriesChange(point, Verdict.SAME, (), None, shift, chance_of.get(point), base_ns, new_ns)
        verdict, reasons = Verdict.SAME, missing.get(point, ())
        if change.chance is None or shift is None:
            few = Reason(ReasonCode.FEW_PAIRS, {"pairs": len(values), "needed": PAIRS_MIN})
            verdict, reasons = Verdict.INCONCLUSIVE, reasons or (few,)
        elif change.chance <= 1 - CONFIDENCE and change.is_beyond(margin):
            verdict = Verdict.SLOWER if shift.ratio > 1 else Verdict.FASTER
        yield SeriesChange(point, verdict, reasons, None, shift, change.chance, base_ns, new_ns)


def _median_ns(quadruples: Quadruples, side: int) -> float | None:
    times_ns = [ns for rounds in quadruples.values() for pair in rounds.values() for ns in pair[side]]
    return statistics.median(times_ns) if times_ns else None


def _log_ratios(quadruples: Quadruples) -> dict[int, float]:
    """The value of each launch pair that has one."""
    values = ((launch, log_ratio(rounds.values())) for launch, rounds in sorted(quadruples.items()))
    return {launch: value for launch, value in values if value is not None}
