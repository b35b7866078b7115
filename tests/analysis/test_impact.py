"""The impact of a background from known times."""

from __future__ import annotations

import numpy as np
import pytest
from tests.analysis.explain.readings import found, reading
from tests.builders import make_info, make_launch, make_measurement, make_point

from hockney.analysis.impact import Impact, Impacts, Times, impacts_of
from hockney.model import Definition, Point, PointStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats import Interval

IDLE = make_point(8, "tcp")
LOADED = IDLE.under("incast")
LENGTHS_NS = {IDLE: 1, LOADED: 4}


def store_rounds(store: Store, batches: dict[tuple[int, bool], int]) -> int:
    """Eight rounds that drift, of 1,000 samples of 1 to 1,000 ns, four times as long under load.

    `batches` are those that differ from 1, by round and whether loaded.
    """
    run_id = store.create_run(make_info(suite="pingpong"), [IDLE, LOADED])
    launch_id = store.add_launch(run_id, make_launch(transport="tcp"))
    for number in range(8):
        rows = []
        for point, length in LENGTHS_NS.items():
            batch = batches.get((number, point == LOADED), 1)
            times_ns = length * (number + 1) * np.arange(1, 1001)
            rows.append(
                make_measurement(
                    point,
                    np.array([times_ns * batch]),
                    launch_id=launch_id,
                    round_=number,
                    batch=batch,
                    definition=Definition("root", 1, 0, 0),
                    floor_ns=None,
                )
            )
        store.write_round(run_id, rows)
    return run_id


@pytest.mark.parametrize("grouped", [(0, False), (7, True)])
def test_percentiles_need_each_repetition_alone_in_its_sample(store: Store, grouped: tuple[int, bool]) -> None:
    impacts = impacts_of(Run(store, store_rounds(store, {grouped: 2})))
    assert impacts is not None
    (impact,) = impacts.impacts
    assert (impact.factor.value, impact.factor.low, impact.rounds) == pytest.approx((4, 4, 8))
    pooled_ns = np.outer(np.arange(1, 9), np.arange(1, 1001)).ravel()
    for is_loaded, times, length in ((False, impact.idle, 1), (True, impact.loaded, 4)):
        assert times.p50_ns == pytest.approx(length * 500.5 * 4.5)
        tails_ns = [None, None] if is_loaded == grouped[1] else length * np.quantile(pooled_ns, [0.99, 0.999])
        assert [times.p99_ns, times.p999_ns] == pytest.approx(list(tails_ns))


@pytest.mark.parametrize(("batches", "has_tails"), [({}, True), ({(0, False): 2}, False), ({(7, True): 2}, False)])
def test_a_finding_has_the_tails_of_both_or_none(
    store: Store, batches: dict[tuple[int, bool], int], has_tails: bool
) -> None:
    run = Run(store, store_rounds(store, batches))
    (finding,) = found("impacts of a background", reading(impacts=impacts_of(run)))
    assert finding.effect == pytest.approx(3)
    assert {"idle_p99_ns", "loaded_p99_ns"} & finding.facts.keys() == (
        {"idle_p99_ns", "loaded_p99_ns"} if has_tails else set()
    )


def impact(size_bytes: int, factor: float, low: float | None, transport: str = "tcp") -> Impact:
    times = Times(100.0, None, None)
    return Impact(make_point(size_bytes, transport), Interval(factor, low, 9.0, 8, 0.95), "launches", 8, times, times)


@pytest.mark.parametrize(
    ("impacts", "sizes"),
    [
        ([impact(8, 1.2, 1.06)], [8]),
        ([impact(8, 1.2, 1.04)], []),
        ([impact(8, 1.2, None)], []),
        ([impact(8, 2.0, 1.5), impact(64, 3.0, 1.1), impact(512, 2.5, 2.4)], [64]),
        ([impact(8, 2.0, 1.5), impact(64, 3.0, 1.0)], [8]),
        ([impact(8, 2.0, 1.5, "null")], []),
    ],
    ids=["surely", "not surely", "no interval", "the greatest", "the greatest that is sure", "of the harness"],
)
def test_the_point_that_is_slowed_most_is_named_if_by_a_twentieth(impacts: list[Impact], sizes: list[int]) -> None:
    findings = found("impacts of a background", reading(impacts=Impacts("incast", tuple(impacts))))
    assert [finding.facts["size_bytes"] for finding in findings] == sizes


@pytest.mark.parametrize("failed", [IDLE, LOADED])
def test_a_point_that_failed_has_no_impact(store: Store, failed: Point) -> None:
    """Its samples may be wrong."""
    run_id = store_rounds(store, {})
    store.set_status(run_id, failed, PointStatus.FAILED, "a payload was wrong")
    impacts = impacts_of(Run(store, run_id))
    assert impacts is not None
    assert impacts.impacts == ()
