"""Which figures a fit takes."""

from __future__ import annotations

import pytest
from tests.builders import make_info, make_launch, make_point, measurements_with_medians

from hockney.analysis.predict.fit import figures_of
from hockney.results.runs import Run
from hockney.results.store import Store

FLOORS_NS = {"near": (27.0, 28.0), "far": (184.0, 190.0)}
BASIC = [make_point(8), make_point(8, pattern="oneway", options=(("window", "16"),))]
OTHERS = [make_point(8, pattern="ring"), make_point(64, pattern="ring")]


@pytest.mark.parametrize(
    ("basic", "others", "state"),
    [
        ({"near": 9, "far": 1}, {"near": 9}, "near"),
        ({"near": 9}, {"far": 6}, "near"),
        ({"near": 3, "far": 9}, {"near": 2}, "far"),
        ({"near": 3}, {"near": 9}, "near"),
    ],
)
def test_a_fit_has_the_figures_that_are_shown(
    store: Store, basic: dict[str, int], others: dict[str, int], state: str
) -> None:
    run_id = store.create_run(make_info(), [*BASIC, *OTHERS])
    launch_id = store.add_launch(run_id, make_launch())
    for points, counts in ((BASIC, basic), (OTHERS, others)):
        for point in points:
            for name, count in counts.items():
                time_ns = {"near": 500, "far": 900}[name]
                rows = measurements_with_medians(
                    [time_ns] * count, point, launch_id=launch_id, floor_ns=FLOORS_NS[name]
                )
                store.write_round(run_id, rows)
    run = Run(store, run_id)
    figures = figures_of(run, "shm")
    assert figures.has_ranges is (basic.get("near", 0) < 6 and basic.get("far", 0) < 6)
    assert (figures.state, len(figures.complete)) == (state, 1)
    shown = {series.point: series.shown.time for series in run.series if series.shown is not None}
    assert figures.others == {point: shown[point] for point in OTHERS}
    assert figures.basics[0].times == {"half": shown[BASIC[0]], "gap": shown[BASIC[1]]}
