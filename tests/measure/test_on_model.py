"""Times of points on a model, by closed forms."""

from __future__ import annotations

import math

import pytest
from tests.analysis.predict.machines import LATENCY, RECEIVE, SEND, content, half_round_trip_ns, model
from tests.builders import make_point

from hockney.errors import UsageError
from hockney.measure.predict import times_of
from hockney.worker.machine_model import Model


def test_times_are_exact() -> None:
    trips = [make_point(size, ranks=ranks) for size in (0, 8, 4096) for ranks in (2, 5)]
    barriers = [make_point(0, pattern="barrier", ranks=ranks) for ranks in (2, 5, 64)]
    times = times_of([*trips, *barriers], {"shm": model()})
    assert times.failed == {}
    for point in trips:
        assert times.time_ns[point] == pytest.approx(half_round_trip_ns(point.bytes), rel=1e-4)
    for point in barriers:
        rounds = math.ceil(math.log2(point.ranks))
        assert times.time_ns[point] == pytest.approx(rounds * half_round_trip_ns(0), rel=0.03)


@pytest.mark.parametrize("latency_ns", [0.137, 1.37, 123.456, 4321.1])
def test_a_time_that_is_no_whole_number_of_ns_is_known(latency_ns: float) -> None:
    quick = content()
    quick["class"]["all"]["segment"] = [{"source": "made up", "latency": latency_ns}]
    (time_ns,) = times_of([make_point(8)], {"shm": Model.from_content("quick", quick)}).time_ns.values()
    assert time_ns == pytest.approx(latency_ns, rel=1e-4)


def test_with_noise_it_is_the_mean_and_depends_on_the_seed() -> None:
    noisy = model(noise={"law": "exponential", "mean_ns": 300, "source": "made up"})
    (first, again, other) = (
        times_of([make_point(8)], {"shm": noisy}, seed=seed).time_ns[make_point(8)] for seed in (1, 1, 2)
    )
    assert first == again != other
    # Each of o_s, L and o_r has its noise.
    assert first == pytest.approx(half_round_trip_ns(8) + 3 * 300, rel=0.05)


def test_a_failure_has_its_reason_and_leaves_the_others() -> None:
    put, crowd, trip = make_point(8, pattern="put"), make_point(8, ranks=65), make_point(8)
    times = times_of([put, crowd, trip], {"shm": model()})
    assert times.time_ns == {trip: pytest.approx(SEND + LATENCY + RECEIVE + 34, rel=1e-4)}
    assert "put" in times.failed[put]
    assert "64" in times.failed[crowd]
    assert times.has_broken  # the job could not start
    assert not times_of([put, trip], {"shm": model()}).has_broken  # no other time would help


def test_a_wrong_content_is_refused_with_its_place() -> None:
    wrong = content()
    wrong["class"]["all"]["segment"][0]["latency"] = -1
    with pytest.raises(UsageError, match=r"mine has 1 error:\n  class.all.segment\[1\].latency.*greater"):
        Model.from_content("mine", wrong)


def test_each_point_runs_on_the_model_of_its_transport() -> None:
    slow = content()
    slow["class"]["all"]["segment"][0]["latency"] = LATENCY + 5000
    here, there = make_point(8), make_point(8, "tcp")
    ticks: list[None] = []
    models = {"shm": model(), "tcp": Model.from_content("slow", slow)}
    times = times_of([here, there], models, tick=lambda: ticks.append(None))
    assert times.time_ns[there] == pytest.approx(times.time_ns[here] + 5000, rel=1e-4)
    assert len(ticks) == 2
    with pytest.raises(KeyError):
        times_of([make_point(8, "tcp:spin")], models)
