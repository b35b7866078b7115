"""Whether the points of a run of several launches are precise, judged over all launches."""

from __future__ import annotations

from collections.abc import Sequence

from hockney.measure.estimate import MIN_MEASUREMENTS
from hockney.measure.point_work import reached_text
from hockney.model import Point, PointStatus
from hockney.results.runs import Run, main_state
from hockney.results.store import MeasurementSummary, Store
from hockney.stats import BETWEEN_LAUNCHES, MIXED, ONE_LAUNCH, State, needed_for, time_of
from hockney.stats.interval import LAUNCHES_USEFUL
from hockney.units import counted


def judge_over_launches(store: Store, run_id: int, precision: float) -> set[Point]:
    """Replace each point's end, which is of its last launch, by one over all launches.

    Returns the points that are not precise yet.
    """
    unknown = set()
    for series, measurements in Run(store, run_id).summaries():
        if series.status in (PointStatus.PRECISE, PointStatus.BUDGET):
            status, reason = _end_over_launches(measurements, precision)
            store.set_status(run_id, series.point, status, reason)
            if status is not PointStatus.PRECISE:
                unknown.add(series.point)
    return unknown


def _end_over_launches(
    measurements: Sequence[tuple[MeasurementSummary, State]], precision: float
) -> tuple[PointStatus, str | None]:
    by_state: dict[str, list[MeasurementSummary]] = {}
    for measurement, state in measurements:
        if state != MIXED and measurement.samples:
            by_state.setdefault(state.name, []).append(measurement)
    chosen = main_state([{state: len(of_state) for state, of_state in by_state.items()}])
    counts = [] if chosen is None else by_state[chosen]
    medians_ns = [measurement.median_ns for measurement in counts if measurement.median_ns is not None]
    launch_ids = [measurement.launch_id for measurement in counts]
    time, over = time_of(medians_ns, launch_ids) if counts else (None, ONE_LAUNCH)
    reached = None if time is None else time.precision
    if len(counts) >= MIN_MEASUREMENTS and reached is not None and reached <= precision:
        return PointStatus.PRECISE, None
    count = counted(len({measurement.launch_id for measurement, _ in measurements}), "launch", "launches")
    needed = needed_for(medians_ns, launch_ids, precision) if counts else None
    more = f"; about {needed} launches would reach {precision:.1%}" if needed and needed <= LAUNCHES_USEFUL else ""
    unit = "launches" if over == BETWEEN_LAUNCHES else "measurements"
    return PointStatus.BUDGET, f"all launches were made: {reached_text(time, len(measurements), unit)} in {count}{more}"
