"""Comparisons of made-up runs of which the truth is known, and of runs that can't be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from tests.analysis.compare.made import SIZES, add_run, bounds_of, curve, slower
from tests.builders import HALF_ROUND_TRIP, SLOWEST, make_launch, make_point, measurements_with_medians

from hockney.analysis.compare import Difference, Reason, ReasonCode, Verdict, compare_runs
from hockney.analysis.compare.comparison import MatchedSeries, judge, most_telling
from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import UsageError
from hockney.model import DIGITS, Point, PointStatus
from hockney.results.runs import Run
from hockney.results.store import Store


def sizes(store: Store, base: int, new: int, verdict: Verdict) -> list[int]:
    return [change.point.bytes for change in compare_runs(store, base, new).changes if change.verdict is verdict]


def the_reason(store: Store, base: int, new: int) -> Reason:
    """That of every series."""
    comparison = compare_runs(store, base, new)
    assert comparison.counts == {Verdict.INCONCLUSIVE: len(comparison.changes)}
    assert all(change.reasons == comparison.changes[0].reasons for change in comparison.changes)
    (reason,) = comparison.changes[0].reasons
    return reason


def reasons_of(store: Store, runs: Sequence[int], size_bytes: int = 8) -> list[tuple[ReasonCode, Any]]:
    """Code and run of each reason why the series of a size is inconclusive."""
    (change,) = [change for change in compare_runs(store, *runs).changes if change.point.bytes == size_bytes]
    assert change.verdict is Verdict.INCONCLUSIVE
    return [(reason.code, reason.facts.get("run")) for reason in change.reasons]


# ---- verdicts -------------------------------------------------------------------------------------------------------


def test_a_slowdown_of_one_range_is_found_with_its_size(store: Store) -> None:
    base = add_run(store, curve("shm") | curve("tcp"))
    new = add_run(store, curve("shm") | slower(curve("tcp"), 1.25, 8192, 32768), seed=2)
    (moved,) = [alike for alike in compare_runs(store, base, new).ranges if alike.verdict is not Verdict.SAME]
    assert moved.verdict is Verdict.SLOWER
    assert [change.point.bytes for change in moved.changes] == [8192, 16384, 32768]
    assert moved.first.point.transport == "tcp"
    for change in moved.changes:
        low, high = bounds_of(change)
        assert low <= 1.25 <= high
        assert change.launches == (5, 5)
        assert (change.new_ns or 0) / (change.base_ns or 1) == pytest.approx(1.25, rel=0.05)
    assert compare_runs(store, base, new).launches == (5, 5)
    fewer = add_run(store, curve("shm"), launches=3, seed=3)
    assert compare_runs(store, base, fewer).launches == (5, 3)


def test_faster_is_the_same_from_the_other_side(store: Store) -> None:
    base = add_run(store, slower(curve(), 1.25, 64, 1024))
    assert sizes(store, base, add_run(store, curve(), seed=2), Verdict.FASTER) == [64, 1024]


def test_unchanged_runs_show_no_difference(store: Store) -> None:
    base, new = (add_run(store, curve("shm") | curve("tcp"), seed=seed, scatter=0.03) for seed in (1, 2))
    comparison = compare_runs(store, base, new)
    assert comparison.counts == {Verdict.SAME: 2 * len(SIZES)}
    assert (comparison.differences, comparison.ranges[0].first.reasons) == ((), ())


def test_the_slowdown_that_could_hide_is_the_largest_of_all_series(store: Store) -> None:
    base, new = (add_run(store, curve(), seed=seed) for seed in (1, 2))
    series = [
        MatchedSeries(make_point(size), "near", ([100 - off, 100, 100 + off],) * 2)
        for size, off in ((8, 0.1), (64, 9.0), (1024, 3.0))
    ]
    comparison = replace(compare_runs(store, base, new), changes=tuple(judge(series, None, 1.0)))
    assert comparison.counts == {Verdict.SAME: 3}
    assert comparison.widest is comparison.changes[1]
    assert replace(comparison, margin=1.25).widest is None


@pytest.mark.parametrize(
    ("ratio", "margin", "verdict"),
    [
        (1.0, 1.0, Verdict.SAME),
        (1.00042, 1.0, Verdict.SAME),
        (1.0006, 1.0, Verdict.SLOWER),
        (1.02, 1.05, Verdict.SAME),
        (0.9, 1.05, Verdict.FASTER),
    ],
)
def test_models_without_noise_are_decided_by_one_launch(
    store: Store, ratio: float, margin: float, verdict: Verdict
) -> None:
    """A change of the model is the cause; nothing is left to chance, and it is no drift."""

    def of_model(times_ns: dict[Point, float], latency: str, exact: bool = True) -> int:
        plan = {"precision": 0.01, "virtual": {"sim@mine": exact}}
        facts = {"models": {"sim@mine": {"parameters": [["class.all.latency", latency, "made up"]]}}}
        measured: dict[str, Any] = {"launches": 1, "measurements": (1.0,), "scatter": 0.0}
        return add_run(store, times_ns, plan=plan, facts=facts, **measured)

    before = curve("sim@mine", (1 << 20, 1 << 22))
    base, new = of_model(before, "100"), of_model({point: ratio * ns for point, ns in before.items()}, "200")
    comparison = compare_runs(store, base, new, margin=margin)
    assert comparison.counts == {verdict: 2}
    assert comparison.differences == (Difference("class.all.latency of sim@mine", "100", "200"),)
    assert (comparison.by_chance, comparison.widest, comparison.has_no_cause) == (0, None, False)
    assert all(change.shift and change.shift.ratio == pytest.approx(ratio, rel=2e-3) for change in comparison.changes)
    noisy = of_model(before, "100", exact=False)
    assert compare_runs(store, base, noisy).counts == {Verdict.INCONCLUSIVE: 2}


def test_a_difference_within_the_margin_is_none(store: Store) -> None:
    base = add_run(store, curve(), scatter=0.002)
    new = add_run(store, slower(curve(), 1.03, 0, 64), scatter=0.002, seed=2)
    assert sizes(store, base, new, Verdict.SLOWER) == [8, 64]
    comparison = compare_runs(store, base, new, margin=1.05)
    assert (comparison.counts, comparison.by_chance) == ({Verdict.SAME: len(SIZES)}, 0)


def test_one_of_two_hundred_series_that_differs_by_chance_is_counted(store: Store) -> None:
    points = {make_point(size): 1000.0 for size in range(1, 201)}
    base, new = (add_run(store, points, scatter=0.02, seed=seed, measurements=(1.0,)) for seed in (1, 2))
    comparison = compare_runs(store, base, new)
    assert comparison.counts == {Verdict.SAME: 200}
    assert comparison.by_chance > 0


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0088, Verdict.SAME), (1.012, Verdict.SLOWER)])
def test_runs_measured_in_alternation_differ_from_a_hundredth_on(store: Store, ratio: float, verdict: Verdict) -> None:
    """What the environment alone may move, as by its size."""
    runs = [
        add_run(
            store, {make_point(): ns}, launches=8, scatter=0.0, seed=seed, plan={INTERLEAVED: {"id": "x", "side": side}}
        )
        for seed, (side, ns) in enumerate((("base", 1000.0), ("new", 1000.0 * ratio)), 1)
    ]
    assert compare_runs(store, *runs).counts == {verdict: 1}


@pytest.mark.parametrize(
    ("pattern", "batch", "divisor", "is_short"),
    [
        ("oneway", 7, 1, True),
        ("oneway", 8, 1, False),
        ("oneway", 3, 2, True),
        ("oneway", 4, 2, False),
        ("pingpong", 1, 1, False),
    ],
)
def test_a_stream_of_few_events_is_marked(store: Store, pattern: str, batch: int, divisor: int, is_short: bool) -> None:
    point, definition = make_point(8, pattern=pattern), replace(SLOWEST, divisor=divisor)
    runs = [add_run(store, {point: 1000.0}, definition=definition, batch=size) for size in (64, batch)]
    assert [change.is_short for change in compare_runs(store, *runs).changes] == [is_short]


@pytest.mark.parametrize(
    ("digits_ns", "verdict"), [(1.0, Verdict.SLOWER), (100.0, Verdict.INCONCLUSIVE), (900.0, Verdict.INCONCLUSIVE)]
)
def test_rounded_times_are_no_more_precise_than_their_last_digit(
    store: Store, digits_ns: float, verdict: Verdict
) -> None:
    """As of another benchmark's output; a tenth of the time hides a difference of 15 %."""
    counters = {DIGITS: (digits_ns,)}
    base, new = (add_run(store, {make_point(): ns}, counters=counters, scatter=0.001) for ns in (1000.0, 1150.0))
    assert [change.verdict for change in compare_runs(store, base, new).changes] == [verdict]


def test_the_last_digit_of_a_time_is_at_most_half_of_it(store: Store) -> None:
    """A printed 1 may be 0.5 to 1.5: the ratio of two is known to a factor of three."""
    base, new = (add_run(store, {make_point(): 1000.0}, counters={DIGITS: (2000.0,)}, scatter=0.001) for _ in range(2))
    (change,) = compare_runs(store, base, new).changes
    assert bounds_of(change) == pytest.approx((1 / 3, 3), rel=0.01)


# ---- inconclusive series --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1.0, 5.0])
def test_single_launches_are_never_called_different(store: Store, times: float) -> None:
    base = add_run(store, curve(), launches=1)
    new = add_run(store, slower(curve(), times, 0, 1 << 20), launches=1, seed=2)
    facts = {"base": 1, "new": 1, "needed": 3, "runs": (base, new)}
    assert the_reason(store, base, new) == Reason(ReasonCode.FEW_LAUNCHES, facts)
    (alike,) = compare_runs(store, base, new).ranges
    for change in alike.changes:  # the times are known all the same
        assert (change.new_ns or 0) / (change.base_ns or 1) == pytest.approx(times, rel=0.1)


def test_too_few_launches_have_a_fix(store: Store) -> None:
    """Of one run four were made, in two states: it needs twice as many."""
    base = add_run(store, curve(), launches=4, far={1, 2, 3}, command="hockney run ring")
    new = add_run(store, curve(), launches=2, seed=2, command="hockney run ring")
    facts = {"base": 1, "new": 2, "needed": 3, "runs": (base, new)}
    assert the_reason(store, base, new) == Reason(ReasonCode.FEW_LAUNCHES, facts)
    fixes = compare_runs(store, base, new).fixes
    assert [fix.argv for fix in fixes] == [("hockney", "run", "ring", "--launches", n) for n in ("8", "6")]


@pytest.mark.parametrize(("margin", "is_wide"), [(1.0, True), (1.2, True), (100.0, False)])
def test_an_interval_that_includes_a_large_change_is_inconclusive(store: Store, margin: float, is_wide: bool) -> None:
    runs = [add_run(store, curve(), scatter=0.4, seed=seed, command="hockney run ring") for seed in (1, 2)]
    comparison = compare_runs(store, *runs, margin=margin)
    if not is_wide:
        assert comparison.counts == {Verdict.SAME: len(SIZES)}
        return
    wide = Reason(ReasonCode.WIDE_INTERVAL, {"by": pytest.approx(0.25)})
    assert [change.reasons for change in comparison.changes] == [(wide,)] * len(SIZES)
    assert [fix.argv for fix in comparison.fixes] == [("hockney", "run", "ring", "--launches", "10")] * 2


@pytest.mark.parametrize(("others", "code"), [(0, None), (200, ReasonCode.MAY_BE_CHANCE)])
def test_what_alone_would_be_a_change_may_be_chance_among_many(others: int, code: ReasonCode | None) -> None:
    """Its wide interval lies beyond the margin: the number of series is why there is no verdict."""
    one = MatchedSeries(make_point(), "near", ([100, 110, 105, 108], [140, 190, 165, 150]))
    same = [MatchedSeries(make_point(1000 + number), "near", ([100, 110, 105, 103],) * 2) for number in range(others)]
    change, *_ = judge([one, *same], None, 1.05)
    low, high = bounds_of(change)
    assert 1.05 < low < high
    assert high > 1.25
    assert [reason.code for reason in change.reasons] == ([] if code is None else [code])
    assert change.verdict is (Verdict.SLOWER if code is None else Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("digits", "bounds"), [((0.1, 0.0), (2 / 1.1, 2 / 0.9)), ((0.0, 0.2), (2 * 0.8, 2 * 1.2))], ids=["base", "new"]
)
def test_printed_digits_of_either_side_widen_the_interval(
    digits: tuple[float, float], bounds: tuple[float, float]
) -> None:
    series = MatchedSeries(make_point(), "near", ([100.0] * 5, [200.0] * 5), digits=digits)
    (change,) = judge([series], None, 1.0)
    assert bounds_of(change) == pytest.approx(bounds, rel=2e-3)


def test_another_state_is_no_slowdown(store: Store) -> None:
    base = add_run(store, curve(), floor_ns=30)
    new = add_run(store, slower(curve(), 4.0, 0, 1 << 20), floor_ns=180, seed=2)
    facts = {"base": ["near"], "new": ["far"], "runs": (base, new)}
    assert the_reason(store, base, new) == Reason(ReasonCode.NO_COMMON_STATE, facts)
    comparison = compare_runs(store, base, new)
    assert comparison.without_common_state == list(comparison.changes)
    (fix,) = comparison.fixes
    assert fix.argv == ("hockney", "quick")


def test_another_state_of_runs_with_one_launch_asks_for_launches_not_for_a_baseline_of_one(store: Store) -> None:
    commands = ("hockney run ring", "hockney run halo")
    base, new = (
        add_run(store, curve(), launches=1, floor_ns=floor_ns, command=command)
        for floor_ns, command in zip((30, 180), commands, strict=True)
    )
    fixes = compare_runs(store, base, new).fixes
    assert [fix.argv for fix in fixes] == [(*command.split(), "--launches", "6") for command in commands]


def test_another_state_in_another_environment_asks_for_alternation(store: Store) -> None:
    base = add_run(store, curve(), floor_ns=30)
    new = add_run(store, curve(), floor_ns=180, seed=2, facts={"environment": {"UCX_TLS": "self"}})
    (fix,) = compare_runs(store, base, new).fixes
    assert fix.argv == ("hockney", "compare", "--interleave", "quick", "--new-env", "UCX_TLS=self")


def test_levels_are_those_of_both_runs_together(store: Store) -> None:
    """Each run alone has one near level; together they have two."""
    base = add_run(store, curve(), floor_ns=30)
    new = add_run(store, slower(curve(), 1.8, 0, 1 << 20), floor_ns=60, seed=2)
    facts = the_reason(store, base, new).facts
    assert (facts["base"], facts["new"]) == (["near 30.1 ns"], ["near 60.3 ns"])


def test_states_are_listed_in_one_order(store: Store) -> None:
    """However a point came upon them, so that one reason is one."""
    points = {make_point(8): 1000.0, make_point(64): 1000.0}
    new = add_run(store, points, launches=2, floor_ns=5000, seed=2)
    for far in ({0}, {1}):
        facts = the_reason(store, add_run(store, points, launches=2, far=far, seed=3), new).facts
        assert (facts["base"], facts["new"]) == (["near", "far"], ["time-sliced"])


def test_a_series_is_compared_in_one_state_with_enough_launches(store: Store) -> None:
    base = add_run(store, curve(), launches=7, far={3, 4})
    new = add_run(store, slower(curve(), 1.25, 8, 64), launches=7, far={0, 1}, seed=2)
    comparison = compare_runs(store, base, new)
    assert sizes(store, base, new, Verdict.SLOWER) == [8, 64]
    for change in comparison.changes:
        assert change.states == ("near", "near")
        assert change.shift is not None
        assert (change.shift.n_base, change.shift.n_new) == (5, 5)


@pytest.mark.parametrize(
    ("launches", "measurements", "chosen"),
    [
        ({"near": 5, "near, contended": 5}, {"near": 3, "near, contended": 30}, "near"),
        ({"near": 3, "near, contended": 9}, {"near": 3, "near, contended": 3}, "near"),
        ({"near": 2, "near, contended": 9}, {"near": 3, "near, contended": 3}, "near, contended"),
        ({"near": 4, "far": 5}, {"near": 3, "far": 3}, "far"),
        ({"near": 5, "far": 5}, {"near": 3, "far": 30}, "far"),
    ],
)
@pytest.mark.parametrize("step", [1, -1])
def test_which_state_is_compared(
    launches: dict[str, int], measurements: dict[str, int], chosen: str, step: Literal[1, -1]
) -> None:
    """One that can decide, then an uncontended one, then that of most launches, then of most measurements."""
    times_ns = {
        state: {number: [100.0] * measurements[state] for number in range(launches[state])}
        for state in list(launches)[::step]
    }
    sides: Any = [side_of(times_ns, shown) for shown in (None, None)]
    assert most_telling(*sides) == chosen


def side_of(times_ns: dict[str, dict[int, list[float]]], shown: str | None) -> Any:
    """A series with these times, in a run whose tables show this state."""
    run = SimpleNamespace(state_of=lambda *_: shown)
    names = {state: state for state in times_ns}
    return SimpleNamespace(times_ns=times_ns, names=names, series=SimpleNamespace(run=run, job=("shm", 2)))


@pytest.mark.parametrize(
    ("base", "new", "chosen"),
    [
        ("near, contended", "near", "near, contended"),
        ("time-sliced", "near, contended", "near, contended"),  # that of base is not common
        ("far", "near, contended", "near, contended"),  # that of base has too few launches
        ("time-sliced", "far", "near"),
    ],
)
def test_the_state_that_tables_show_is_compared(base: str, new: str, chosen: str) -> None:
    times_ns = {
        state: {number: [100.0] for number in range(launches)}
        for state, launches in (("near", 9), ("near, contended", 3), ("far", 2))
    }
    sides: Any = [side_of(times_ns, shown) for shown in (base, new)]
    assert most_telling(*sides) == chosen


def test_no_state_is_compared_that_the_tables_of_base_do_not_show(store: Store) -> None:
    """Of 40 launches three were quiet: enough to decide, and a state that `show` does not show."""
    made: dict[str, Any] = {"launches": 40, "measurements": (1.0,), "contended": {*range(40)} - {5, 6, 7}}
    base, new = (add_run(store, curve(), seed=seed, **made) for seed in (1, 2))
    shown = {series.shown.state for series in Run(store, base).series if series.shown}
    assert {change.states for change in compare_runs(store, base, new).changes} == {("near, contended",) * 2}
    assert shown == {"near, contended"}


def test_machines_of_two_cpu_models_have_separate_levels(store: Store) -> None:
    base = add_run(store, curve(), floor_ns=30, facts={"cpu": {"model": "A"}})
    new = add_run(store, slower(curve(), 1.8, 0, 1 << 20), floor_ns=60, seed=2, facts={"cpu": {"model": "B"}})
    comparison = compare_runs(store, base, new)
    assert comparison.counts == {Verdict.SLOWER: len(SIZES)}
    assert comparison.differences == (Difference("CPU", "A", "B"),)
    assert comparison.other_cpu == comparison.differences[0]


def test_times_of_two_definitions_are_not_compared(store: Store) -> None:
    base = add_run(store, curve())
    new = add_run(store, slower(curve(), 4.0, 0, 1 << 20), definition=SLOWEST, seed=2)
    assert the_reason(store, base, new) == Reason(ReasonCode.OTHER_DEFINITION)


def test_of_a_run_that_a_later_version_resumed_the_last_definition_is_compared(store: Store) -> None:
    point = make_point(8)
    resumed = add_run(store, {point: 4000.0}, definition=SLOWEST)
    launches = (store.add_launch(resumed, make_launch(point.transport, index=index)) for index in range(5, 10))
    definition = replace(HALF_ROUND_TRIP, bytes_per_rep=2 * point.bytes)
    for launch in launches:
        measurements = measurements_with_medians([1000.0] * 6, point, definition)
        store.write_round(resumed, [replace(measurement, launch_id=launch) for measurement in measurements])
    (change,) = compare_runs(store, resumed, add_run(store, {point: 1000.0}, scatter=0.001, seed=2)).changes
    assert change.verdict is Verdict.SAME
    assert change.base_ns == pytest.approx(1000.0)


@pytest.mark.parametrize("side", [0, 1])
def test_samples_of_a_point_that_failed_decide_nothing(store: Store, side: int) -> None:
    """They may be wrong, so there is no time either."""
    runs = add_run(store, curve()), add_run(store, slower(curve(), 2.0, 8, 8), seed=2)
    store.set_status(runs[side], make_point(8), PointStatus.FAILED, "rank 1 hung")
    comparison = compare_runs(store, *runs)
    assert comparison.counts == {Verdict.INCONCLUSIVE: 1, Verdict.SAME: len(SIZES) - 1}
    change = comparison.changes[0]
    assert change.reasons == (Reason(ReasonCode.FAILED, {"run": runs[side], "message": "rank 1 hung"}),)
    assert [time_ns is None for time_ns in (change.base_ns, change.new_ns)] == [side == 0, side == 1]


def test_a_reason_common_to_both_runs_names_both(store: Store) -> None:
    runs = [add_run(store, curve(), unsteady={make_point(8)}, seed=seed) for seed in (1, 2)]
    assert reasons_of(store, runs) == [(ReasonCode.NO_STEADY_STATE, run) for run in runs]
    assert len(compare_runs(store, *runs).fixes) == 2  # each run again, with twice its launches
    runs = [add_run(store, curve(), failed={make_point(131072): f"rank {seed} hung"}, seed=seed) for seed in (1, 2)]
    assert reasons_of(store, runs, 131072) == [(ReasonCode.FAILED, run) for run in runs]


def test_a_point_skipped_in_both_plans_is_no_series(store: Store) -> None:
    skipped = make_point(131072)
    base, new = (add_run(store, curve(), failed={skipped: "-"}, seed=seed) for seed in (1, 2))
    for run in (base, new):
        store.set_status(run, skipped, PointStatus.SKIPPED, "2 ranks on 1 CPU")
    assert compare_runs(store, base, new).counts == {Verdict.SAME: len(SIZES)}


def test_a_run_without_samples_decides_nothing(store: Store) -> None:
    base = add_run(store, curve())
    new, newer = (add_run(store, {}, failed=dict.fromkeys(curve(), "rank 1 hung")) for _ in range(2))
    assert the_reason(store, base, new).code is ReasonCode.FAILED
    with pytest.raises(UsageError, match=f"runs {new} and {newer} have no series in common that has samples"):
        compare_runs(store, new, newer)


# ---- which series are the same --------------------------------------------------------------------------------------


def test_runs_with_one_size_in_common(store: Store) -> None:
    base = add_run(store, curve(sizes=(8, 64)))
    new = add_run(store, curve(sizes=(8, 1024)), seed=2)
    comparison = compare_runs(store, base, new)
    assert [change.point.bytes for change in comparison.changes] == [8]
    assert ([p.bytes for p in comparison.only_base], [p.bytes for p in comparison.only_new]) == ([64], [1024])


def test_nothing_in_common_is_refused(store: Store) -> None:
    base, new = add_run(store, curve("shm")), add_run(store, curve("tcp"))
    with pytest.raises(UsageError, match="runs 1 and 2 have no series in common"):
        compare_runs(store, base, new)
    with pytest.raises(UsageError, match="with itself"):
        compare_runs(store, base, base)


def test_a_range_that_begins_at_a_documented_limit_says_so(store: Store) -> None:
    openmpi = "mpi@openmpi-4.1.4"
    libraries = {openmpi: "Open MPI 4.1.4 (ob1:vader:cma tcp)"}
    times = curve(openmpi, [2**n for n in range(3, 15)])
    base = add_run(store, times, scatter=0.003, libraries=libraries)
    new = add_run(store, slower(times, 1.25, 4096, 16384), scatter=0.003, seed=2, libraries=libraries)
    ranges = [same for same in compare_runs(store, base, new).ranges if same.verdict is Verdict.SLOWER]
    # With its header a message of 4 KiB is longer than Open MPI's eager limit.
    assert [(same.first.point.bytes, same.limit) for same in ranges] == [(4096, "btl_vader_eager_limit")]


def test_a_library_of_another_version_is_the_same_series(store: Store) -> None:
    old, young = "mpi@openmpi-4.1.4", "mpi@openmpi-5.0.1"
    base = add_run(store, curve(old), libraries={old: "Open MPI 4.1.4"})
    new = add_run(store, slower(curve(young), 1.3, 8, 64), libraries={young: "Open MPI 5.0.1"}, seed=2)
    comparison = compare_runs(store, base, new)
    assert sizes(store, base, new, Verdict.SLOWER) == [8, 64]
    assert {change.point.transport for change in comparison.changes} == {young}
    assert comparison.differences == (Difference(f"library, {young}", "Open MPI 4.1.4", "Open MPI 5.0.1"),)


@pytest.mark.parametrize(
    ("base", "new", "is_named"),
    [("tcp", "unix", False), ("tcp", "mpi@a", False), ("mpi@a", "mpi@b", True)],
)
def test_variants_that_differ_in_transport_are_not_said_to_differ_in_library(
    base: str, new: str, is_named: bool, store: Store
) -> None:
    link = {"id": "x", "names": {base: new}}
    runs = [
        add_run(store, curve(name), libraries={name: text}, plan={INTERLEAVED: {**link, "side": side}})
        for name, text, side in ((base, "one text", "base"), (new, "another", "new"))
    ]
    told = [each.what for each in compare_runs(store, *runs).differences]
    assert told == ["transport", *([f"library, {new}"] if is_named else [])]


def test_two_libraries_that_came_for_one_are_not_guessed(store: Store) -> None:
    base = add_run(store, curve("shm") | curve("mpi@openmpi-4.1.4"))
    new = add_run(store, curve("shm") | curve("mpi@openmpi-5.0.1") | curve("mpi@openmpi-5.0.2"), seed=2)
    comparison = compare_runs(store, base, new)
    assert {change.point.transport for change in comparison.changes} == {"shm"}
    assert len(comparison.only_base) == len(SIZES)


# ---- ranges ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_faster", [False, True])
@pytest.mark.parametrize(
    ("factors", "together"),
    [
        ((22.5, 21.5, 21.0, 14.9, 91.0, 12.9, 11.9, 9.1), [4, 1, 3]),
        ((4.75, 4.45, 4.43, 3.29, 8.33, 3.3), [4, 1, 1]),
        ((1.08, 1.1, 1.11, 1.09), [4]),
        ((1.25, 1.4, 1.3, 2.0), [3, 1]),
    ],
)
def test_a_change_more_than_twice_as_large_is_a_separate_range(
    store: Store, factors: Sequence[float], together: list[int], is_faster: bool
) -> None:
    points = {make_point(2**at): 1000.0 for at in range(3, 3 + len(factors))}
    longer = {point: 1000.0 * factor for point, factor in zip(points, factors, strict=True)}
    runs = [
        add_run(store, times, scatter=0.003, seed=seed)
        for seed, times in enumerate([longer, points] if is_faster else [points, longer], start=1)
    ]
    assert [len(alike.changes) for alike in compare_runs(store, *runs).ranges] == together


@pytest.mark.parametrize(("factor", "together"), [(1.044, [2]), (1.056, [1, 1])])
def test_ratios_without_a_verdict_are_one_range_within_a_twentieth(
    store: Store, factor: float, together: list[int]
) -> None:
    points = curve(sizes=(8, 64))
    runs = [
        add_run(store, slower(points, ratio, 64, 64), launches=1, scatter=0.0, seed=seed)
        for seed, ratio in ((1, 1.0), (2, factor))
    ]
    assert [len(alike.changes) for alike in compare_runs(store, *runs).ranges] == together
