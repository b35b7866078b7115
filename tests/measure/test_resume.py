"""What a run that is resumed measures: what was cut short, further launches, added sizes, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_info, make_point
from tests.measure.test_run import Silent, measure, statuses

from hockney.errors import UsageError
from hockney.measure import run as running
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab
from hockney.model import PointStatus, RunStatus, curve_of
from hockney.results.store import Store
from hockney.worker.catalogue import Catalogue

SMALL, LARGE = make_point(8), make_point(64)


def test_a_stopped_run_of_one_launch_is_resumed_with_one(catalogue: Catalogue, tmp_path: Path) -> None:
    stop = Silent(stop_after_rounds=1)
    outcome = measure(catalogue, tmp_path / "r.db", SMALL, display=stop, precision=1e-6, time_s=0.2)
    with Store.open(tmp_path / "r.db") as store:
        running.resume("last", Lab(catalogue, store, Silent()))
        measurements = len(store.measurements(store.points(outcome.run_id)[0]))
    status, reason = statuses(tmp_path / "r.db", outcome.run_id)[SMALL]
    assert status is PointStatus.TIME_UP
    assert reason is not None
    assert reason.startswith("the time was up: ")
    assert reason.endswith(f"; measurements in all: {measurements}")


@pytest.mark.parametrize(
    ("launches", "end", "counted"), [(1, RunStatus.STOPPED, 1), (1, RunStatus.DONE, 0), (2, RunStatus.DONE, 0)]
)
def test_precise_points_of_one_launch_stay_so_and_those_of_several_are_judged_again(
    launches: int, end: RunStatus, counted: int, catalogue: Catalogue, tmp_path: Path
) -> None:
    begins: list[tuple[bool, int]] = []

    class StopsAtOnce(Silent):
        def begun(self, run_id: int, plan: Plan, *, goes_on: bool, precise: int) -> None:
            begins.append((goes_on, precise))
            raise KeyboardInterrupt

    outcome = measure(catalogue, tmp_path / "r.db", SMALL, LARGE, launches=launches, time_s=0.1)
    with Store.open(tmp_path / "r.db") as store:
        store.set_status(outcome.run_id, SMALL, PointStatus.PRECISE)
        store.set_status(outcome.run_id, LARGE, PointStatus.TIME_UP)
        store.finish_run(outcome.run_id, end)
        running.resume("last", Lab(catalogue, store, StopsAtOnce()))
    assert begins == [(True, counted)]


@pytest.mark.parametrize("end", [PointStatus.TIME_UP, PointStatus.PRECISE])
def test_a_finished_run_of_one_launch_goes_on_adding_sizes_unless_all_are_precise(
    end: PointStatus, catalogue: Catalogue, tmp_path: Path
) -> None:
    refined = frozenset({curve_of(SMALL)})
    plans: list[Plan] = []

    class StopsAtOnce(Silent):
        def begun(self, run_id: int, plan: Plan, *, goes_on: bool, precise: int) -> None:
            plans.append(plan)
            raise KeyboardInterrupt

    outcome = measure(catalogue, tmp_path / "r.db", SMALL, time_s=0.1)
    with Store.open(tmp_path / "r.db") as store:
        stored = store.run(outcome.run_id)
        plan = replace(Plan.of_run(stored, [SMALL]), refine=refined)
        info = replace(stored.info, plan=plan.as_json())
        copy = store.create_run(info, [SMALL])
        store.add_launch(copy, next(iter(stored.launches.values())))
        store.set_status(copy, SMALL, end)
        store.finish_run(copy, RunStatus.DONE)
        running.resume(str(copy), Lab(catalogue, store, StopsAtOnce()))
    (plan,) = plans
    assert plan.refine == (refined if end is PointStatus.TIME_UP else frozenset())


def test_resume_without_a_run_takes_the_last_that_is_unfinished(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    stopped = measure(catalogue, path, SMALL, display=Silent(stop_after_rounds=3), precision=1e-6, time_s=60)
    with Store.open(path) as store:
        for never in (make_info(suite="health"), make_info(plan={"interleaved": 1})):  # which cannot be resumed
            store.finish_run(store.create_run(never, [SMALL]), RunStatus.STOPPED)
    complete = measure(catalogue, path, SMALL, launches=2)
    with Store.open(path) as store:
        store.set_status(complete.run_id, SMALL, PointStatus.PRECISE)
        assert running.resume("", Lab(catalogue, store, Silent(stop_after_rounds=5))).run_id == stopped.run_id
        store.delete_runs([stopped.run_id])
        with pytest.raises(UsageError, match=f"run {complete.run_id} is complete: there is nothing to resume"):
            running.resume("", Lab(catalogue, store, Silent()))
