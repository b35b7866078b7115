"""Drift of the machine is no difference between two runs, and the answer does not depend on which run is base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.analysis.compare import simulated
from tests.analysis.compare.made import add_run, curve, slower
from tests.builders import make_info, make_launch, make_point, measurements_with_medians

from hockney.analysis.compare import ReasonCode, Verdict, compare_runs
from hockney.analysis.compare.values import Contention
from hockney.model import RunStatus
from hockney.report.changes import caution_sentence
from hockney.results.store import Store


def add_launches(store: Store, launches: Sequence[float]) -> int:
    """A run of one point, with a launch for each of these times in us."""
    point = make_point(8, "shm")
    run = store.create_run(make_info(), [point])
    for index, time_us in enumerate(launches):
        launch_id = store.add_launch(run, make_launch("shm", index=index))
        store.write_round(run, measurements_with_medians([1000 * time_us] * 6, point, launch_id=launch_id))
    store.finish_run(run, RunStatus.DONE)
    return run


def verdicts(store: Store, *runs: int) -> dict[Verdict, int]:
    return dict(compare_runs(store, *runs).counts)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_change_that_the_floor_shares_is_drift(store: Store, swapped: bool) -> None:
    """Times, floor and all took 8 % longer; then times alone."""
    base = add_run(store, curve())
    drifted = add_run(store, slower(curve(), 1.08, 0, 1 << 20), floor_ns=32.4, seed=2)
    changed = add_run(store, slower(curve(), 1.25, 0, 64), floor_ns=30.1, seed=3)
    pair = (drifted, base) if swapped else (base, drifted)
    comparison = compare_runs(store, *pair)
    assert set(comparison.counts) == {Verdict.INCONCLUSIVE}
    for change in comparison.changes:
        (reason,) = change.reasons
        assert reason.code is ReasonCode.DRIFT
        assert reason.facts["by"] == pytest.approx(0.08, abs=0.03)
        assert reason.facts["shown_by"] in ("floor", "other series")
    comparison = compare_runs(store, base, changed)
    assert [change.point.bytes for change in comparison.changes if change.verdict is Verdict.SLOWER] == [8, 64]


def test_a_change_that_every_other_transport_shares_is_drift(store: Store) -> None:
    """One transport that stayed unchanged shows that the machine did."""
    both, steady = curve("shm") | curve("tcp"), curve("pipe")
    base = add_run(store, both | steady)
    moved = slower(both, 1.08, 0, 1 << 20)
    drifted = add_run(store, moved | slower(steady, 1.08, 0, 1 << 20), seed=2)
    assert verdicts(store, base, drifted) == {Verdict.INCONCLUSIVE: 3 * len(curve())}
    comparison = compare_runs(store, base, add_run(store, moved | steady, seed=3))
    worse = {change.point.transport for change in comparison.changes if change.verdict is Verdict.SLOWER}
    assert worse == {"shm", "tcp"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"os": {"kernel": "6.1"}}, {"os": {"kernel": "6.6"}}, Verdict.SLOWER),
        ({"software": {"c_options": "-O2"}}, {"software": {"c_options": "-O0"}}, Verdict.SLOWER),
        ({"software": {"c_compiler": "gcc 12"}}, {"software": {"c_compiler": "gcc 13"}}, Verdict.SLOWER),
        ({"environment": {"UCX_TLS": "a"}}, {"environment": {"UCX_TLS": "b"}}, Verdict.SLOWER),
        ({"hostname": "a"}, {"hostname": "b"}, Verdict.INCONCLUSIVE),
        ({"software": {"commit": "1"}}, {"software": {"commit": "2"}}, Verdict.INCONCLUSIVE),
    ],
)
def test_a_known_difference_rules_out_drift(
    store: Store, before: dict[str, Any], after: dict[str, Any], expected: Verdict
) -> None:
    """All transports are slower, by a fifth."""
    series = curve("shm") | curve("tcp")
    base = add_run(store, series, facts=before)
    new = add_run(store, slower(series, 1.2, 0, 1 << 20), seed=2, facts=after)
    assert verdicts(store, base, new) == {expected: len(series)}


@pytest.mark.parametrize("drift", simulated.DRIFTS)
@pytest.mark.parametrize(
    "machine",
    [
        simulated.Machine(2, 4, scatter=0.02, seen=False),
        simulated.Machine(1, 8, scatter=0.02),
        simulated.Machine(1, 1, scatter=0.02),
    ],
    ids=["other transports show it", "floor and pace show it", "one series"],
)
def test_drift_is_seldom_called_a_change(machine: simulated.Machine, drift: str) -> None:
    """Ten minutes later, in at most 5 % of the checks."""
    drifting = replace(machine, drift=drift)
    checks, comparisons = 40, 100
    assert sum(Verdict.SLOWER in simulated.check(drifting, seed).values() for seed in range(checks)) <= 4
    moved = {Verdict.SLOWER, Verdict.FASTER}
    alarms = sum(not moved.isdisjoint(simulated.compare(drifting, seed).values()) for seed in range(comparisons))
    assert alarms <= 12


@pytest.mark.parametrize("slower", [1, 8])
def test_a_slowdown_on_a_steady_machine_is_found(slower: int) -> None:
    """By 10 %, of one series or of all, with a steady floor and pace."""
    machine = simulated.Machine(1, 8, scatter=0.015, slower=slower, ratio=1.1)
    assert sum(simulated.check(machine, seed)[0] is Verdict.SLOWER for seed in range(60)) >= 54


@pytest.mark.parametrize("bad", [None, "base", "new"])
def test_one_bad_launch_hides_no_slowdown(bad: str | None) -> None:
    """A launch in which all series are 25 % slow; nor does it raise a false alarm."""
    with_slowdown, unchanged = simulated.Machine(bad=bad, slower=1), simulated.Machine(bad=bad)
    assert sum(simulated.check(with_slowdown, seed)[0] is Verdict.SLOWER for seed in range(60)) >= 52
    assert sum(Verdict.SLOWER in simulated.check(unchanged, seed).values() for seed in range(60)) <= 2


def test_runs_in_the_other_order_have_the_other_answer(store: Store) -> None:
    rng = np.random.default_rng(4)
    runs = [add_launches(store, rng.lognormal(shift, 0.02, 6).tolist()) for shift in (0.0, 0.08)]
    (there,), (back,) = compare_runs(store, *runs).changes, compare_runs(store, *reversed(runs)).changes
    assert there.shift is not None
    assert back.shift is not None
    assert there.shift.low is not None
    assert back.shift.high is not None
    assert there.shift.low * back.shift.high == pytest.approx(1)
    assert there.shift.ratio * back.shift.ratio == pytest.approx(1)
    assert there.chance == back.chance
    assert (there.verdict, back.verdict) == (Verdict.SLOWER, Verdict.FASTER)


@pytest.mark.parametrize(
    ("ratio", "facts", "has_no_cause", "drifting"),
    [
        (1.25, [{"software": {"commit": value}} for value in "12"], True, []),  # hockney is not the measured program
        (0.8, [{"software": {"commit": value}} for value in "12"], True, []),
        (1.25, [{"software": {"libc": value}} for value in "12"], False, []),
        (1.0, [{"software": {"commit": value}} for value in "12"], False, []),
        (1.25, [{"sleeping": ["tcp"]}], True, ["tcp"]),
        (1.25, [{"sleeping": ["tcp"], "os": {"kernel": value}} for value in "67"], False, ["tcp"]),
    ],
)
def test_a_change_without_a_known_cause_may_be_drift(
    store: Store, ratio: float, facts: Sequence[dict[str, Any]], has_no_cause: bool, drifting: list[str]
) -> None:
    """Ranks that sleep while they wait, with any other change."""
    both = curve("tcp") | curve("shm")
    base = add_run(store, both, facts=facts[0])
    comparison = compare_runs(store, base, add_run(store, slower(both, ratio, 8, 8), seed=2, facts=facts[-1]))
    assert (comparison.has_no_cause, comparison.drifting) == (has_no_cause, drifting)
    assert (caution_sentence(comparison) is not None) == (has_no_cause or bool(drifting))
    assert caution_sentence(replace(comparison, interleaved=True)) is None


def test_a_run_that_was_stopped_is_disturbed(store: Store) -> None:
    base, new = (add_run(store, curve(), seed=seed) for seed in (1, 2))
    store.finish_run(base, RunStatus.INTERRUPTED)
    assert compare_runs(store, base, new).contention == (Contention(base, "It was stopped before its end."),)
