"""Two runs that were measured in alternation: their measurements in quadruples, judged launch pair by launch pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from hockney.analysis.compare.values import Difference, SeriesChange, Verdict
from hockney.model import Point, RunInfo
from hockney.results.store import MeasurementSummary, StoredPoint, StoredRun
from hockney.stats.pairs import PAIRS_MIN, chances, log_ratio, shift_of_pairs
from hockney.units import counted

PLAN_KEY = "interleaved"  # in the stored plan of both runs: id, side, and what new calls base's transports


def names_of_pair(base: RunInfo, new: RunInfo) -> Mapping[str, str] | None:
    """What new calls base's transports where the two were measured in alternation; None where they were not."""
    links = [info.plan.get(PLAN_KEY) or {} for info in (base, new)]
    if [link.get("side") for link in links] != ["base", "new"] or links[0].get("id") != links[1].get("id"):
        return None
    names: Mapping[str, str] | None = links[0].get("names")
    return names


def other_transports(names: Mapping[str, str], in_turns: bool) -> Iterator[Difference]:
    """The transports that took turns, where they are two."""
    for base, new in names.items() if in_turns else ():
        yield Difference("transport", base, new)


_Quadruples = Mapping[int, Mapping[int, tuple[list[float], list[float]]]]  # by launch and round, ns of base and of new


def quadruples_of(
    runs: tuple[StoredRun, StoredRun],
    points: tuple[Mapping[Point, StoredPoint], Mapping[Point, StoredPoint]],
    measurements: Sequence[Sequence[MeasurementSummary]],
    common: Sequence[Point],
) -> dict[Point, _Quadruples]:
    """The measurements of each series that both runs have, put together again. `points` by the name they share."""
    found: dict[Point, dict[int, dict[int, tuple[list[float], list[float]]]]] = {point: {} for point in common}
    for side, (run, of_run, listed) in enumerate(zip(runs, points, measurements, strict=True)):
        series = {of_run[point].id: found[point] for point in common}
        for measurement in listed:
            if measurement.median_ns and measurement.point_id in series:
                of_launch = series[measurement.point_id].setdefault(run.launches[measurement.launch_id].index, {})
                of_launch.setdefault(measurement.round, ([], []))[side].append(measurement.median_ns)
    return dict(found)


def judged_in_turns(
    series: Mapping[Point, _Quadruples], absent: Mapping[Point, str], margin: float, confidence: float
) -> Iterator[SeriesChange]:
    """What became of each series. `absent`: why a point can't be judged."""
    import numpy as np

    logs = {point: _logs(quadruples) for point, quadruples in series.items()}
    judged = [point for point in series if point not in absent and len(logs[point]) >= PAIRS_MIN]
    launches = sorted({launch for point in judged for launch in logs[point]})
    table = np.array([[logs[point].get(launch, math.nan) for launch in launches] for point in judged])
    chance_of = dict(zip(judged, chances(table, margin).tolist(), strict=True)) if judged else {}
    for point in series:
        values = list(logs[point].values())
        shift = shift_of_pairs(values) if values else None
        chance = chance_of.get(point)
        if chance is None or shift is None or shift.low is None or shift.high is None:
            pairs = f"{counted(len(values), 'launch pair')} measured it, and it takes {PAIRS_MIN}"
            yield SeriesChange(point, Verdict.INCONCLUSIVE, absent.get(point, pairs), (), shift, is_open=True)
            continue
        is_slower, is_faster = shift.low > margin, shift.high < 1 / margin
        verdict = Verdict.SAME
        if chance <= 1 - confidence and (is_slower or is_faster):
            verdict = Verdict.SLOWER if is_slower else Verdict.FASTER
        yield SeriesChange(point, verdict, None, (), shift, chance, is_open=True, is_beyond=is_slower or is_faster)


def _logs(quadruples: _Quadruples) -> dict[int, float]:
    """The value of each launch pair that has one."""
    values = ((launch, log_ratio(of_launch.values())) for launch, of_launch in sorted(quadruples.items()))
    return {launch: value for launch, value in values if value is not None}
