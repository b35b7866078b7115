"""Which machine state the figures for a fit are of."""

from __future__ import annotations

import pytest
from tests.builders import make_info, make_launch, make_point, measurements_with_medians

from hockney.analysis.predict.basics import figures_of
from hockney.results.runs import Run
from hockney.results.store import Store

FLOORS_NS = {"near": (27.0, 28.0), "far": (184.0, 190.0)}
BASIC = [make_point(8), make_point(8, pattern="oneway", options=(("window", "16"),))]
OTHERS = [make_point(8, pattern="ring"), make_point(64, pattern="ring")]


@pytest.mark.parametrize(
    ("basic", "others", "state"),
    [({"near": 9, "far": 1}, {"near": 9}, "near"), ({"near": 9}, {"far": 6}, None), ({"far": 6}, {"near": 9}, None)],
    ids=["both", "no check", "no fit"],
)
def test_a_fit_needs_half_of_its_figures_and_half_of_the_others_in_one_state(
    store: Store, basic: dict[str, int], others: dict[str, int], state: str | None
) -> None:
    run_id = store.create_run(make_info(), [*BASIC, *OTHERS])
    launch_id = store.add_launch(run_id, make_launch())
    for points, counts in ((BASIC, basic), (OTHERS, others)):
        for point in points:
            for name, count in counts.items():
                rows = measurements_with_medians([500] * count, point, launch_id=launch_id, floor_ns=FLOORS_NS[name])
                store.write_round(run_id, rows)
    figures = figures_of(Run(store, run_id), "shm")
    assert (figures.state, figures.counts) == (state, (1, 2))


@pytest.mark.parametrize(
    ("caps", "state"), [(["syscalls"], None), (["syscalls", "spins"], "near"), (["spins"], "near"), ([], "near")]
)
def test_ranks_that_sleep_while_they_wait_have_figures_of_all_states(
    store: Store, caps: list[str], state: str | None
) -> None:
    facts = {"traits": {"transports": {"shm": {"caps": caps}}}}
    run_id = store.create_run(make_info(facts=facts), [*BASIC, *OTHERS])
    launch_id = store.add_launch(run_id, make_launch())
    for point in (*BASIC, *OTHERS):
        rows = measurements_with_medians([500] * 9, point, launch_id=launch_id, floor_ns=FLOORS_NS["near"])
        store.write_round(run_id, rows)
    assert figures_of(Run(store, run_id), "shm").state == state


def test_one_state_needs_no_more_than_half(store: Store) -> None:
    run_id = store.create_run(make_info(), [*BASIC, *OTHERS])
    launch_id = store.add_launch(run_id, make_launch())
    for point, state in zip([*BASIC, *OTHERS], ("near", "near", "near", "far"), strict=True):
        rows = measurements_with_medians([500] * 9, point, launch_id=launch_id, floor_ns=FLOORS_NS[state])
        store.write_round(run_id, rows)
    figures = figures_of(Run(store, run_id), "shm")
    assert (figures.state, figures.counts) == ("near", (1, 1))
