"""Times of points on a model, gains of changes, and tolerances of changes, where all are known in closed form."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from tests.analysis.predict.machines import (
    GAP,
    LATENCY,
    PER_BYTE,
    RECEIVE,
    SEND,
    content,
    half_round_trip_ns,
    model,
)
from tests.builders import make_info, make_launch, make_point

from hockney.analysis.predict.change import changed, parse_change
from hockney.analysis.predict.fit import Basics, Figures, Fit
from hockney.errors import UsageError
from hockney.measure import predict as predicting
from hockney.measure.predict import (
    DRAWS,
    Checked,
    Tick,
    Validation,
    model_of,
    newest_validation,
    predict,
    times_of,
    validate,
)
from hockney.measure.what_if import Tolerance, effects_of, tolerances_of
from hockney.model import Point, Warning_
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.interval import Estimate
from hockney.worker.machine_model import Model

SIZE = 4096
LOAD = Warning_("load", "machine", "Other programs use 1.5 of 2 CPUs.", "Stop them.")
PINGPONG = make_point(SIZE, "sim@made-up")
BARRIER = make_point(0, "sim@made-up", pattern="barrier", ranks=8)
COMPUTING = make_point(8, "sim@made-up", pattern="oneway", options=(("delay_us", "3"), ("until", "sent")))


def times(*points: Point, of: Model | None = None) -> dict[Point, float]:
    predicted = times_of(points, {"sim@made-up": of or model()})
    assert predicted.failed == {}
    return predicted.time_ns


def effects(*points: Point, **tables: Any) -> dict[str, dict[Point, float]]:
    of = model(**tables)
    return {effect.change.word: dict(effect.gains) for effect in effects_of(times(*points, of=of), {"sim@made-up": of})}


def test_a_change_changes_the_time_by_its_part() -> None:
    models = changed({"sim@made-up": model()}, [parse_change("L=+1us"), parse_change("bandwidth=2x")])
    time_ns = times_of([PINGPONG], models).time_ns[PINGPONG]
    assert time_ns == pytest.approx(half_round_trip_ns(SIZE) + 1000 - PER_BYTE * SIZE / 2, rel=1e-4)


def test_the_gain_of_each_parameter_is_its_part_of_the_time() -> None:
    parts = {"L": LATENCY, "o_s": SEND, "o_r": RECEIVE, "g": GAP, "G": PER_BYTE * SIZE, "compute": 0.0}
    gains = effects(PINGPONG)
    assert {word: gain[PINGPONG] for word, gain in gains.items()} == {
        f"{name}=0.5x": pytest.approx(part / 2 / half_round_trip_ns(SIZE), abs=1e-4) for name, part in parts.items()
    }
    assert list(gains) == [f"{name}=0.5x" for name in sorted(parts, key=lambda name: -parts[name])]


def test_a_gain_of_several_points_is_that_of_their_geometric_mean() -> None:
    of = {"sim@made-up": model()}
    latency = effects_of(times(PINGPONG, BARRIER), of)[0]
    assert latency.change.word == "L=0.5x"
    kept = 1.0
    for point, gain in latency.gains.items():
        trip_ns = half_round_trip_ns(SIZE if point == PINGPONG else 0)
        assert gain == pytest.approx(LATENCY / 2 / trip_ns, abs=0.02)
        kept *= 1 - gain
    assert latency.gain == pytest.approx(1 - kept**0.5)


def test_computing_gains_from_computing() -> None:
    gains = {word: gain[COMPUTING] for word, gain in effects(COMPUTING).items()}
    assert gains["compute=0.5x"] == pytest.approx(1500 / (3000 + SEND), rel=0.01)
    assert gains["o_s=0.5x"] == pytest.approx(SEND / 2 / (3000 + SEND), rel=0.02)
    assert gains["L=0.5x"] == pytest.approx(0, abs=1e-3)


def test_a_funnel_waits_for_its_receiver() -> None:
    """Seven messages, each handled by its CPU for o_r, while their latencies overlap."""
    funnel = make_point(8, "sim@made-up", pattern="funnel", ranks=8)
    assert times(funnel)[funnel] == pytest.approx(7 * RECEIVE, rel=0.05)
    gains = {word: gain[funnel] for word, gain in effects(funnel).items()}
    assert gains["o_r=0.5x"] == pytest.approx(0.5, abs=0.05)
    assert max(abs(gain) for word, gain in gains.items() if word != "o_r=0.5x") < 0.05


def test_the_links_of_a_model_are_a_separate_parameter() -> None:
    """Its bytes cross two links, as quick as the channel and concurrent with it; the slower one counts."""
    slow = {"bytes_per_s": 1e9 / (2 * PER_BYTE), "source": "made up"}
    gains = {word: gain[PINGPONG] for word, gain in effects(PINGPONG, link=[slow]).items()}
    whole_ns = half_round_trip_ns(SIZE) - GAP + PER_BYTE * SIZE
    assert gains["link.bandwidth=2x"] == pytest.approx((PER_BYTE * SIZE - GAP) / whole_ns, rel=0.01)
    assert gains["G=0.5x"] == pytest.approx(0, abs=1e-4)


def tolerance(point: Point) -> tuple[Tolerance, Tolerance]:
    (row,) = tolerances_of(times(point), {"sim@made-up": model()}, with_curves=True)
    assert row.point == point
    return row.latency, row.bandwidth


def test_the_tolerance_of_a_round_trip() -> None:
    """A part p of its time is p T of latency, and p T / (G bytes) more time for each byte."""
    latency, bandwidth = tolerance(PINGPONG)
    whole_ns = half_round_trip_ns(SIZE)
    for part in (0.01, 0.02, 0.05):
        assert latency.limits[part] == pytest.approx(part * whole_ns, rel=0.01)
        more = part * whole_ns / (PER_BYTE * SIZE)
        assert bandwidth.limits[part] == pytest.approx(more / (1 + more), rel=0.01)
    assert list(latency.curve[-1]) == pytest.approx([4 * 0.05 * whole_ns, 0.2], rel=0.01)


def test_the_tolerance_of_a_barrier_is_shared_by_its_rounds() -> None:
    latency, bandwidth = tolerance(BARRIER)
    for part in (0.01, 0.02, 0.05):
        assert latency.limits[part] == pytest.approx(part * half_round_trip_ns(0), rel=0.03)
    assert set(bandwidth.limits.values()) == {None}


def test_a_point_without_messages_tolerates_any_latency() -> None:
    latency, bandwidth = tolerance(COMPUTING)
    assert set(latency.limits.values()) == set(bandwidth.limits.values()) == {None}


def test_noise_does_not_hide_gains_or_limits() -> None:
    """All models are run with one seed, so both sides of a comparison have the same noise."""
    noisy = {"sim@made-up": model(noise={"law": "lognormal", "sigma": 0.3, "source": "made up"})}
    times_ns = times(PINGPONG, of=noisy["sim@made-up"])
    whole_ns = half_round_trip_ns(SIZE)
    gains = {effect.change.word: effect.gain for effect in effects_of(times_ns, noisy)}
    assert gains["L=0.5x"] == pytest.approx(LATENCY / 2 / whole_ns, abs=0.02)
    assert gains["o_s=0.5x"] == pytest.approx(SEND / 2 / whole_ns, abs=0.01)
    (row,) = tolerances_of(times_ns, noisy, with_curves=False)
    for part in (0.01, 0.02, 0.05):
        assert row.latency.limits[part] == pytest.approx(part * whole_ns, rel=0.1)
    assert row.latency.curve == ()


def test_a_prediction_from_figures_without_an_interval_has_none() -> None:
    """A single measurement is its own range, but not exact."""
    single, interval = Estimate(1000, 1000, 1000), Estimate(5000, 4900, 5100)
    times = {8: single, 4096: interval}
    sizes = tuple(Basics(size, {"half": time, "gap": time}, acknowledged=1000) for size, time in times.items())
    short, long = (make_point(size, "shm") for size in (8, 4096))
    fit = Fit(Figures("shm", None, sizes, {}))
    predictions, *_ = predict([short, long], {"shm": model_of(fit, [short, long])}, fit)
    of = {prediction.point: prediction for prediction in predictions}
    assert (of[short].low_ns, of[short].high_ns) == (None, None)
    assert (of[long].low_ns or 0) < of[long].time_ns < (of[long].high_ns or 0)


def test_the_draws_of_an_interval_are_announced_and_can_be_left_out() -> None:
    interval, announced = Estimate(5000, 4900, 5100), list[tuple[str, int]]()
    sizes = (Basics(8, {"half": interval, "gap": interval}, acknowledged=1000),)

    def tick_of(step: str, points: int) -> Tick:
        announced.append((step, points))
        return lambda: None

    fit, point = Fit(Figures("shm", None, sizes, {})), make_point(8, "shm")
    models = {"shm": model_of(fit, [point])}
    predictions, _, takes_s = predict([point], models, fit, tick_of=tick_of, draws_s=0.0)
    assert announced == [("times", 1)]
    assert takes_s > 0
    assert [(each.point, each.low_ns) for each in predictions] == [(point, None)]
    predict([point], models, fit, tick_of=tick_of)
    assert announced[1:] == [("times", 1), ("intervals", DRAWS)]


@pytest.mark.parametrize(
    ("launch", "usable", "share"),
    [
        ({}, "0-1", True),
        ({"oversubscribed": False}, "0-1", False),
        ({"transport": "tcp"}, "0-1", False),
        ({"hosts": ("a", "a", "b", "b")}, "0-1", False),
        ({}, None, False),  # the run does not say how many CPUs there are
    ],
)
def test_ranks_that_shared_the_cpus_of_one_host_are_predicted_so(
    launch: dict[str, Any], usable: str | None, share: bool, store: Store
) -> None:
    alone, crowd, other, gone = (
        make_point(8, pattern="allreduce", ranks=ranks, options=options)
        for ranks, options in ((2, ()), (4, ()), (8, ()), (4, (("algorithm", "doubling"),)))
    )
    time = Estimate(1000, 990, 1010)
    basics = Basics(8, {"half": time, "gap": time}, acknowledged=1000)
    measured = {alone: time, crowd: time, other: time, gone: Estimate(0, 0, 0)}
    fit = Fit(Figures("shm", None, (basics,), measured))
    run_id = store.create_run(make_info(facts={"limits": {"usable_cpus": usable}}), [crowd])
    store.add_launch(run_id, make_launch(**{"ranks": 4, "hosts": ("a",) * 4, "oversubscribed": True, **launch}))

    def time_on(point: Point, cpus: int) -> float:
        of = Model.from_content("shm", fit.content(8 if not share or cpus == 0 else 4, cpus))
        return times_of([point], {"shm": of}).time_ns[point]

    assert time_on(crowd, 2) != time_on(crowd, 0)
    validation = validate(Run(store, run_id), fit)
    assert {row.point: row.predicted_ns for row in validation.rows} == {
        alone: time_on(alone, 0),
        crowd: time_on(crowd, 2 if share else 0),
        other: time_on(other, 0),
    }


@pytest.mark.parametrize(("limit", "within"), [(0.1, 1 / 4), (0.25, 3 / 4), (0.5, 1.0)])
def test_errors_of_predictions(limit: float, within: float) -> None:
    ratios = (0.75, 1.0, 1.25, 1.5)
    rows = [Checked(make_point(), 1000 * ratio, Estimate(1000, 900, 1100)) for ratio in ratios]
    validation = Validation(7, "shm", None, rows, {})
    assert [row.error for row in rows] == [-0.25, 0.0, 0.25, 0.5]
    assert (validation.median_error, validation.share_within(limit)) == (0.25, within)
    assert validation.largest_error == 0.5


# ---- times of points -------------------------------------------------------------------------------------------------


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


def test_with_noise_it_is_the_mean_and_always_the_same() -> None:
    noisy = model(noise={"law": "exponential", "mean_ns": 300, "source": "made up"})
    first, again = (times_of([make_point(8)], {"shm": noisy}).time_ns[make_point(8)] for _ in range(2))
    assert first == again
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


@pytest.mark.parametrize(("busy", "counts"), [({2, 3}, 1), ({3}, 2), ({1, 2, 3}, 3), (set(), 3)])
def test_a_validation_on_a_busy_machine_counts_only_without_another(
    busy: set[int], counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {n: SimpleNamespace(id=n, suite="validate", warnings=[LOAD] * (n in busy)) for n in (1, 2, 3)}
    results: Any = SimpleNamespace(runs=lambda: list(runs.values()), run=runs.__getitem__)
    monkeypatch.setattr(predicting, "fit_to_check", lambda run, _: object.__new__(Fit))
    monkeypatch.setattr(predicting, "validate", lambda run, _: SimpleNamespace(run=run.id, rows=["x"]))
    found = newest_validation(results, "shm")
    assert found is not None
    assert found.run == counts
