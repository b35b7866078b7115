"""A comparison has the figures and the machine states that each run alone has, as `show` prints them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.compare.made import SIZES, add_run, curve, slower

from hockney.analysis.compare import Comparison, ReasonCode, Verdict, compare_runs
from hockney.analysis.repeat import INTERLEAVED
from hockney.report.documents.comparison import footer, range_sentence
from hockney.results.figures import Figure
from hockney.results.runs import Run
from hockney.results.store import Store


def shown(store: Store, run: int) -> dict[int, Figure]:
    """The figures of a run alone by size."""
    return {figure.point.bytes: figure for figure in Run(store, run).shown}


def figures_of(comparison: Comparison) -> list[dict[int, float | None]]:
    """Those of base and of new by size."""
    return [
        {
            change.point.bytes: time_ns
            for change in comparison.changes
            for time_ns in [(change.base_ns, change.new_ns)[at]]
        }
        for at in (0, 1)
    ]


def values_of(store: Store, *runs: int) -> list[dict[int, float | None]]:
    return [{size: figure.time.value for size, figure in shown(store, run).items()} for run in runs]


@pytest.mark.parametrize("launches", [2, 5])
@pytest.mark.parametrize(
    "plan", [{}, {INTERLEAVED: {"id": "x", "names": {"shm": "shm"}}}], ids=["stored", "alternation"]
)
def test_base_and_new_are_the_figures_of_each_run_alone(store: Store, launches: int, plan: dict[str, Any]) -> None:
    """The change leaves out extreme launches; the figures do not."""
    runs = [
        add_run(
            store,
            slower(curve(), ratio, 8, 64),
            launches=launches,
            scatter=0.3,
            seed=seed,
            plan={name: {**link, "side": side} for name, link in plan.items()},
        )
        for seed, side, ratio in ((1, "base", 1.0), (2, "new", 3.0))
    ]
    comparison = compare_runs(store, *runs)
    assert figures_of(comparison) == values_of(store, *runs)
    assert "`show`" not in footer(comparison)


def test_base_and_new_of_series_without_a_common_state_are_those_that_tables_show(store: Store) -> None:
    runs = add_run(store, curve()), add_run(store, curve(), floor_ns=180.0, seed=2)
    assert figures_of(compare_runs(store, *runs)) == values_of(store, *runs)


def test_a_state_that_tables_do_not_show_has_its_own_figures(store: Store) -> None:
    """The tables of new show the far launches, of which base has none."""
    base = add_run(store, curve())
    new = add_run(store, curve(), launches=9, far={0, 1, 2, 3, 4, 5}, seed=2)
    assert {figure.state for figure in shown(store, new).values()} == {"far"}
    comparison = compare_runs(store, base, new)
    assert comparison.counts == {Verdict.SAME: len(SIZES)}
    assert {change.states for change in comparison.changes} == {("near", "near")}
    assert footer(comparison).endswith("`show` has some of these series in another machine state.")
    near = {series.point.bytes: series.figures_in("near")[0].time.value for series in Run(store, new).series}
    assert figures_of(comparison) == [*values_of(store, base), near]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_one_level_that_the_runs_name_differently_has_both_names(store: Store, is_reversed: bool) -> None:
    """Floors of 72 and 88 ns are one level, on either side of the 80 ns that divide near from far."""
    floors_ns = (88.0, 72.0) if is_reversed else (72.0, 88.0)
    runs = [add_run(store, curve(), floor_ns=floor_ns, seed=seed) for seed, floor_ns in enumerate(floors_ns, 1)]
    alone = tuple(next(iter(shown(store, run).values())).state for run in runs)
    assert alone == (("far", "near") if is_reversed else ("near", "far"))
    comparison = compare_runs(store, *runs)
    assert comparison.counts == {Verdict.SAME: len(SIZES)}
    assert {change.states for change in comparison.changes} == {alone}
    (alike,) = comparison.ranges
    assert alike.states == list(alone)
    assert f", {alone[0]} in run 1 and {alone[1]} in run 2" in range_sentence(alike, comparison)


def test_a_series_of_few_launches_has_the_states_of_each_run(store: Store) -> None:
    base, new = (add_run(store, curve(), launches=2, floor_ns=floor_ns) for floor_ns in (72.0, 88.0))
    (change, *_) = compare_runs(store, base, new).changes
    assert change.has(ReasonCode.FEW_LAUNCHES)
    assert change.states == ("near", "far")


@pytest.mark.parametrize("side", [0, 1])
def test_contention_that_a_run_alone_does_not_show_is_named_compared_with_the_other(store: Store, side: int) -> None:
    """A run that was slow throughout is quiet alone."""
    runs = [add_run(store, curve(), contended=range(5) if number == side else (), seed=number) for number in (0, 1)]
    assert {figure.state for run in runs for figure in shown(store, run).values()} == {"near"}
    (reason,) = compare_runs(store, *runs).changes[0].reasons
    expected = {
        ("base", "new")[1 - side]: ["near"],
        ("base", "new")[side]: [f"near, contended compared with run {2 - side}"],
    }
    assert reason.facts == {**expected, "runs": tuple(runs)}
