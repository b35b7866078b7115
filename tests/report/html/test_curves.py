"""Figures of the page's curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point
from tests.report.runs import Made, options, store_run

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.fits import FittedLine
from hockney.model import Point
from hockney.report.page.curves import CurveData, curves_of, fits_json
from hockney.results.runs import Run, open_results
from hockney.results.store import Store
from hockney.stats.interval import Estimate


def curve(low_ns: float = 200.0, high_ns: float = 500.0, payload: float | None = 2.0) -> CurveData:
    of = {"run": 1, "transport": "shm", "pattern": "twoway", "ranks": 2, "state": "near", "floor_ns": None}
    times_ns = {0: Estimate(100.0, 90.0, 110.0), 1000: Estimate(400.0, low_ns, high_ns)}
    return CurveData(**of, times_ns=times_ns, is_main=True, is_sized=True, payload=payload)  # type: ignore[arg-type]


def test_a_rate_is_the_payload_over_the_time_and_lowest_where_that_is_longest() -> None:
    assert curve(200.0, 500.0).rate_at(1000) == Estimate(5e9, 4e9, 1e10)


def test_a_pattern_without_payload_has_no_rate() -> None:
    assert curve(200.0, 500.0, payload=None).rate_at(1000) is None
    assert curve(200.0, 500.0).rate_at(8) is None


def test_lost_messages_are_in_no_rate(tmp_path: Path) -> None:
    one = Made(Point("udp", "oneway", 2, 1024, options(window=16)), 1000.0, divisor=16, bytes_per_rep=16 * 1024)
    lossy = replace(one, counters={"lost": (0.0, 0.25 * 3 * one.batch * 16)})
    store_run(tmp_path / "r.db", "mine", [lossy, replace(one, point=replace(one.point, bytes=64), bytes_per_rep=1024)])
    with open_results(tmp_path / "r.db") as results:
        (seen,) = curves_of(results.run())
        rates = {series.point.bytes: series.figures()[0].bytes_per_s for series in results.run().series}
    assert seen.arrived == {1024: pytest.approx(0.75)}
    for size, rate in rates.items():
        shown = seen.rate_at(size)
        assert shown is not None
        assert rate is not None
        assert shown.value == pytest.approx(rate.value)
    assert replace(seen, arrived={1024: 0.0}).rate_at(1024) is None


@pytest.mark.parametrize(("sizes", "is_drawn"), [((8, 64, 512), True), ((0, 8, 64), False)])
def test_a_curve_has_three_sizes_besides_the_empty_message(sizes: tuple[int, ...], is_drawn: bool) -> None:
    assert replace(curve(), times_ns=dict.fromkeys(sizes, Estimate(100.0, 90.0, 110.0))).is_drawn == is_drawn


def test_events_that_start_on_schedule_have_no_rate_of_their_payload(tmp_path: Path) -> None:
    points = [make_point(1024), make_point(1024, options=(("rate_hz", "100"),))]
    with Store.open(tmp_path / "results.db") as store:
        run_id = store.create_run(make_info(), points)
        launch_id = store.add_launch(run_id, make_launch())
        store.write_round(run_id, [make_measurement(point, [[10], [20]], launch_id=launch_id) for point in points])
        payloads = [curve.payload for curve in curves_of(Run(store, run_id))]
    assert [payload is not None for payload in payloads] == [True, False]


def test_a_fitted_line_is_drawn_over_its_sizes() -> None:
    t0_ns, rate = Estimate(50, 40, 60), Estimate(1e9, 0.9e9, 1.1e9)
    line = FittedLine("shm", "pingpong", 2, "", "near", 64, 4096, 7, t0_ns, rate, None, 0.01)
    (drawn,) = fits_json(Explanation("run 1", lines=(line,)), 1, ["tcp", "shm"])["segments"]
    assert (drawn["t"], drawn["from"], drawn["to"]) == (1, 64, 4096)
    assert (drawn["t0"], drawn["r"]) == (50, 1e9)
