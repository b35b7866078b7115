"""Drift of the machine is no difference between two runs, and the answer does not depend on which run is base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.analysis.compare import simulated
from tests.analysis.compare.made import SLEEPING, add_run, bounds_of, curve, slower
from tests.builders import make_point
from tests.matrix import matrix

from hockney.analysis.compare import ReasonCode, Verdict, compare_runs
from hockney.analysis.compare.drift import Drift
from hockney.analysis.compare.values import Contention
from hockney.measure.check import settled
from hockney.model import IMPORTED, MachineProbe, RunStatus
from hockney.report.documents.comparison import caution
from hockney.results.store import Store
from hockney.stats.shift import Shift


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


def add_sleeping(store: Store, ratio: float, wake_ns: float | None, seed: int = 2, *names: str, **info: Any) -> int:
    """A run of tcp and shm, or of these, whose times are `ratio` times those of `curve`."""
    times = {point: ns for name in names or ("tcp", "shm") for point, ns in curve(name).items()}
    facts = {"sleeping": [*SLEEPING]}
    return add_run(store, slower(times, ratio, 0, 1 << 20), wake_ns=wake_ns, seed=seed, facts=facts, **info)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_change_that_wake_ups_share_is_drift_where_ranks_sleep(store: Store, swapped: bool) -> None:
    """By two fifths, more than anything else explains; shm does not sleep."""
    base, new = add_sleeping(store, 1.0, 10_000, 1), add_sleeping(store, 1.4, 14_000)
    comparison = compare_runs(store, *((new, base) if swapped else (base, new)))
    moved = Verdict.FASTER if swapped else Verdict.SLOWER
    for change in comparison.changes:
        assert change.verdict is (moved if change.point.transport == "shm" else Verdict.INCONCLUSIVE)
        if change.point.transport == "tcp":
            (reason,) = change.reasons
            assert (reason.code, reason.facts["shown_by"]) == (ReasonCode.DRIFT, "wake-ups")
            assert reason.facts["by"] == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("transport", ["tcp", "pipe"])
def test_a_slowdown_by_a_quarter_is_found_where_wake_ups_are_steady(store: Store, transport: str) -> None:
    """Even of every series of the one transport."""
    base = add_sleeping(store, 1.0, 10_000, 1, transport)
    assert verdicts(store, base, add_sleeping(store, 1.25, 10_050, 2, transport)) == {Verdict.SLOWER: len(curve())}
    assert verdicts(store, base, add_sleeping(store, 1.25, 11_000, 2, transport)) == {Verdict.SLOWER: len(curve())}


def test_quicker_wake_ups_may_hide_a_slowdown(store: Store) -> None:
    """Times that stayed are inconclusive, and the interval includes the slowdown; slower wake-ups hide none."""
    base = add_sleeping(store, 1.0, 14_000, 1)
    for wake_ns, low, high in ((10_000, 0.92, 1.53), (19_000, 0.67, 1.08)):
        changes = compare_runs(store, base, add_sleeping(store, 1.0, wake_ns)).changes
        (change, *_) = [change for change in changes if change.point.transport == "tcp"]
        assert change.verdict is Verdict.INCONCLUSIVE
        assert bounds_of(change) == pytest.approx((low, high), abs=0.08)
        checked = settled(change, 1.15, among=1)
        assert checked.verdict is (Verdict.INCONCLUSIVE if wake_ns == 10_000 else Verdict.SAME)
        assert {change.verdict for change in changes if change.point.transport == "shm"} == {Verdict.SAME}


def test_where_ranks_sleep_a_verdict_takes_more_than_the_scatter_of_one_run(store: Store) -> None:
    """8 % are a change of shm, and no significant one of tcp."""
    runs = {
        name: [add_sleeping(store, ratio, 10_000, seed, name) for seed, ratio in ((1, 1.0), (2, 1.08))]
        for name in ("shm", "tcp")
    }
    assert {change.verdict for change in compare_runs(store, *runs["shm"], margin=1.02).changes} == {Verdict.SLOWER}
    for change in compare_runs(store, *runs["tcp"], margin=1.02).changes:
        assert change.verdict is Verdict.SAME
        low, high = bounds_of(change)
        assert low < 1.02 < 1.08 < high


def test_without_wake_ups_other_series_show_drift_of_sleeping_ranks(store: Store) -> None:
    """As between hosts."""
    base, new = (add_sleeping(store, ratio, None, seed, "tcp") for seed, ratio in ((1, 1.0), (2, 1.25)))
    for change in compare_runs(store, base, new).changes:
        assert [reason.facts["shown_by"] for reason in change.reasons] == ["other series"]


def test_a_slowdown_of_all_imported_sizes_is_no_drift(store: Store) -> None:
    """Nothing of an import shows drift but the library that is compared."""
    plan: dict[str, Any] = {IMPORTED: []}
    base, new = (add_sleeping(store, ratio, None, seed, "tcp", plan=plan) for seed, ratio in ((1, 1.0), (2, 1.25)))
    assert {change.verdict for change in compare_runs(store, base, new).changes} == {Verdict.SLOWER}


@pytest.mark.parametrize(("ratio", "is_drift"), [(1.009, False), (1.012, True), (1.28, True), (1.33, False)])
def test_a_floor_that_moved_by_1_to_30_percent_explains_a_change(ratio: float, is_drift: bool) -> None:
    base, new = ({"near": {launch: [MachineProbe((ns, ns))] for launch in range(5)}} for ns in (30.0, 30.0 * ratio))
    drift = Drift(base, new, (), {make_point(): ("near", Shift(1.02, 1.015, 1.025, 0.95, 5, 5))})
    assert (drift.explaining(make_point(), 1.0) is not None) is is_drift


@pytest.mark.parametrize("drift", simulated.WAKE_UPS)
@pytest.mark.parametrize("sizes", matrix([1, 4], short=[4]))
def test_drift_of_wake_ups_is_seldom_called_a_change(drift: str, sizes: int) -> None:
    """Floor and pace stay, each series drifts by itself, too. A slowdown of a transport by a quarter is found."""
    machine = simulated.Machine(3, sizes, drift=drift, seen=False, wakes=True)
    checks = [simulated.check(machine, seed) for seed in range(20)]
    assert sum(Verdict.SLOWER in check.values() for check in checks) <= 2
    if sizes > 1:  # of one size, a slowdown cannot be told from wake-ups that changed as much
        slower = [simulated.check(replace(machine, slower=sizes), seed) for seed in range(20)]
        assert sum(Verdict.SLOWER in check.values() for check in slower) >= 16


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
    checks, comparisons = 30, 60
    assert sum(Verdict.SLOWER in simulated.check(drifting, seed).values() for seed in range(checks)) <= 3
    moved = {Verdict.SLOWER, Verdict.FASTER}
    alarms = sum(not moved.isdisjoint(simulated.compare(drifting, seed).values()) for seed in range(comparisons))
    assert alarms <= 7


@pytest.mark.parametrize("slower", [1, 8])
def test_a_slowdown_on_a_steady_machine_is_found(slower: int) -> None:
    """By 10 %, of one series or of all, with a steady floor and pace."""
    machine = simulated.Machine(1, 8, scatter=0.015, slower=slower, ratio=1.1)
    assert sum(simulated.check(machine, seed)[0] is Verdict.SLOWER for seed in range(40)) >= 36


@pytest.mark.parametrize("bad", [None, "base", "new"])
def test_one_bad_launch_hides_no_slowdown(bad: str | None) -> None:
    """A launch in which all series are 25 % slow; nor does it raise a false alarm."""
    with_slowdown, unchanged = simulated.Machine(bad=bad, slower=1), simulated.Machine(bad=bad)
    assert sum(simulated.check(with_slowdown, seed)[0] is Verdict.SLOWER for seed in range(40)) >= 35
    assert sum(Verdict.SLOWER in simulated.check(unchanged, seed).values() for seed in range(40)) <= 2


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
    assert (caution(comparison) is not None) == (has_no_cause or bool(drifting))
    assert caution(replace(comparison, interleaved=True)) is None


def test_a_run_that_was_stopped_is_disturbed(store: Store) -> None:
    base, new = (add_run(store, curve(), seed=seed) for seed in (1, 2))
    store.finish_run(base, RunStatus.STOPPED)
    assert compare_runs(store, base, new).contention == (Contention(base, "It was stopped before its end."),)
