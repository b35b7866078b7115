"""From the answer of a worker to a measurement that is stored: nothing is lost or swapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hockney.measure.plan import RunOptions, make_plan, pattern_suite
from hockney.measure.pool import Failures, WorkerPool
from hockney.model import Launch, Measurement
from hockney.worker.answers import MeasureAnswer
from hockney.worker.catalogue import load
from hockney.worker.session import WorkerSession


@pytest.mark.parametrize("pattern", ["oneway", "allreduce"])
def test_a_measurement_holds_the_workers_answer(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[MeasureAnswer] = []
    launches: list[Launch] = []
    measure = WorkerSession.measure

    def noting(*words: Any, **how: Any) -> MeasureAnswer:
        changed = {
            "cpu_user_ns": (10, 11),
            "cpu_system_ns": (20, 21),
            "wall_ns": (30, 31),
            "counters": {"turns": (1.0, 2.0)},
        }
        answers.append(measure(*words, **how).model_copy(update=changed))
        return answers[-1]

    def started(launch: Launch, strangers: int) -> int:
        launches.append(launch)
        assert strangers == 0
        return 7

    monkeypatch.setattr(WorkerSession, "measure", noting)
    catalogue = load()
    asked = RunOptions(transports=("shm",), sizes=(64,), oversubscribe=True)
    plan = make_plan(pattern_suite(pattern), asked, catalogue, cpus=2)
    how: dict[str, Any] = {"launch_index": 3, "seed": 1, "environment": {}, "failures": Failures()}
    with WorkerPool(plan, catalogue, started, steal=lambda: 0.25, **how) as pool:
        measurement = pool.measure(plan.points[0], round_=5, batch=4, samples=3, warmup=1, verify=True)
    (answer,), (launch,) = answers, launches
    assert (measurement.launch_id, measurement.round, measurement.steal, launch.index) == (7, 5, 0.25, 3)
    assert (measurement.point, measurement.places) == (plan.points[0], launch.places)
    assert measurement.elapsed_ns.tolist() == np.array(answer.elapsed_ns).tolist()
    assert measurement.verified
    for name in ("timed", "divisor", "bytes_per_rep", "messages_per_rep", "algorithm"):
        assert getattr(measurement.definition, name) == getattr(answer, name)
    kept = Measurement.__dataclass_fields__.keys() & MeasureAnswer.model_fields.keys() - {"elapsed_ns"}
    assert kept >= {"floor_ns", "pace_ns", "solo_ns", "started_ns", "counters"}
    for name in kept:
        assert getattr(measurement, name) == getattr(answer, name), name
