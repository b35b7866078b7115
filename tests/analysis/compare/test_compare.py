"""Comparisons of made-up runs of which the truth is known, and of every kind of run that can't be compared."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from tests.analysis.compare.made import SIZES, add_run, curve, slower
from tests.builders import HALF_ROUND_TRIP, SLOWEST, make_point
from tests.cli.support import call, command_line, environment

from hockney.analysis.compare import Difference, Verdict, compare_runs
from hockney.analysis.compare.comparison import _most_telling
from hockney.cli.changes import gathered_sentences, range_sentence, surroundings_lines
from hockney.errors import UsageError
from hockney.model import PointStatus, Warning_
from hockney.results.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def reasons(store: Store, base: int, new: int) -> set[str | None]:
    found = compare_runs(store, base, new)
    assert found.counts == {Verdict.INCONCLUSIVE: len(found.changes)}
    return {change.reason for change in found.changes}


def test_a_slowdown_of_one_range_is_found_with_its_size(store: Store) -> None:
    base = add_run(store, curve("shm") | curve("tcp"))
    new = add_run(store, curve("shm") | slower(curve("tcp"), 1.25, 8192, 32768), seed=2)
    ranges = compare_runs(store, base, new).ranges
    (found,) = [one for one in ranges if one.verdict is not Verdict.SAME]
    assert found.verdict is Verdict.SLOWER
    assert [change.point.bytes for change in found.changes] == [8192, 16384, 32768]
    assert found.first.point.transport == "tcp"
    for shift in found.shifts:
        assert shift.low is not None
        assert shift.high is not None
        assert shift.low <= 1.25 <= shift.high
        assert (shift.n_base, shift.n_new) == (5, 5)


def test_faster_is_the_same_seen_from_the_other_side(store: Store) -> None:
    base = add_run(store, slower(curve(), 1.25, 64, 1024))
    new = add_run(store, curve(), seed=2)
    found = compare_runs(store, base, new)
    assert [change.point.bytes for change in found.changes if change.verdict is Verdict.FASTER] == [64, 1024]


def test_unchanged_runs_show_no_difference(store: Store) -> None:
    base, new = (add_run(store, curve("shm") | curve("tcp"), seed=seed, scatter=0.03) for seed in (1, 2))
    found = compare_runs(store, base, new)
    assert found.counts == {Verdict.SAME: 2 * len(SIZES)}
    assert found.differences == ()


def test_what_is_smaller_than_the_margin_is_no_difference(store: Store) -> None:
    base = add_run(store, curve(), scatter=0.002)
    new = add_run(store, slower(curve(), 1.03, 0, 64), scatter=0.002, seed=2)
    assert compare_runs(store, base, new).counts[Verdict.SLOWER] == 2
    assert compare_runs(store, base, new, margin=1.05).counts == {Verdict.SAME: len(SIZES)}


@pytest.mark.parametrize("times", [1.0, 5.0])
def test_single_launches_are_never_called_different(store: Store, times: float) -> None:
    base = add_run(store, curve(), launches=1)
    new = add_run(store, slower(curve(), times, 0, 1 << 20), launches=1, seed=2)
    (reason,) = reasons(store, base, new)
    assert reason is not None
    assert "too few launches in one state (near): 1 of run 1 and 1 of run 2" in reason
    assert "it takes 3 of each" in reason
    assert {change.apart is None for change in compare_runs(store, base, new).changes} == {times < 3}


def test_another_state_is_no_slowdown(store: Store) -> None:
    base = add_run(store, curve(), floor_ns=30)
    new = add_run(store, slower(curve(), 4.0, 0, 1 << 20), floor_ns=180, seed=2)
    assert reasons(store, base, new) == {"no state of the machine in common: run 1 saw near; run 2 saw far"}


def test_a_series_is_compared_in_one_state_that_has_enough_launches(store: Store) -> None:
    """Those of the other state are left out; it is an uncontended one where there are enough of both."""
    base = add_run(store, curve(), launches=7, far={3, 4})
    new = add_run(store, slower(curve(), 1.25, 8, 64), launches=7, far={0, 1}, seed=2)
    found = compare_runs(store, base, new)
    assert [change.point.bytes for change in found.changes if change.verdict is Verdict.SLOWER] == [8, 64]
    for change in found.changes:
        assert change.states == ("near",)
        assert change.shift is not None
        assert (change.shift.n_base, change.shift.n_new) == (5, 5)


@pytest.mark.parametrize(
    ("launches", "measurements", "chosen"),
    [
        ({"near": 5, "near, one contended": 5}, {"near": 3, "near, one contended": 30}, "near"),
        ({"near": 3, "near, one contended": 9}, {"near": 3, "near, one contended": 3}, "near"),
        ({"near": 2, "near, one contended": 9}, {"near": 3, "near, one contended": 3}, "near, one contended"),
        ({"near": 4, "far": 5}, {"near": 3, "far": 3}, "far"),
        ({"near": 5, "far": 5}, {"near": 3, "far": 30}, "far"),
    ],
)
@pytest.mark.parametrize("step", [1, -1])
def test_which_state_is_compared(
    launches: dict[str, int], measurements: dict[str, int], chosen: str, step: Literal[1, -1]
) -> None:
    """An uncontended one that can decide before any other, then the one of most launches, then of most measurements."""
    side = {
        (state, HALF_ROUND_TRIP): {number: [100.0] * measurements[state] for number in range(launches[state])}
        for state in list(launches)[::step]
    }
    assert _most_telling(list(side), side, side)[0] == chosen


def test_too_few_launches_are_named_and_what_to_measure(store: Store) -> None:
    base = add_run(store, curve(), launches=4, far={1, 2}, command="hockney run ring")
    new = add_run(store, curve(), launches=2, seed=2, command="hockney run ring")
    (reason,) = reasons(store, base, new)
    assert reason == "too few launches in one state (near): 2 of run 1 and 2 of run 2; it takes 3 of each"
    remedies = compare_runs(store, base, new).remedies
    assert ["--launches 8" in remedies[0], "--launches 6" in remedies[1]] == [True, True]


def test_an_effect_of_more_than_two_has_its_interval_as_a_factor_too(store: Store) -> None:
    base = add_run(store, curve())
    new = add_run(store, slower(curve(), 16.0, 0, 1 << 20), seed=2)
    (found,) = compare_runs(store, base, new).ranges
    assert "slower by a factor of 1" in range_sentence(found)
    assert " %" not in range_sentence(found).replace("95 % interval", "")
    assert " times as long, outermost ends of the 95 % intervals" in range_sentence(found)


def test_a_pattern_without_sizes_is_named_without_one(store: Store) -> None:
    barriers = {make_point(0, pattern="barrier", transport=name): 200.0 for name in ("shm", "tcp")}
    base, new = (add_run(store, barriers, launches=1, seed=seed, definition=SLOWEST) for seed in (1, 2))
    found = compare_runs(store, base, new).ranges
    assert range_sentence(found[0]).startswith("barrier on shm, 2 ranks: inconclusive, because too few launches")
    assert list(gathered_sentences(found))[1:] == ["  barrier on shm, tcp, 2 ranks"]


def test_levels_are_those_of_both_runs_together(store: Store) -> None:
    """Each run alone has one near level; together they have two."""
    base = add_run(store, curve(), floor_ns=30)
    new = add_run(store, slower(curve(), 1.8, 0, 1 << 20), floor_ns=60, seed=2)
    (reason,) = reasons(store, base, new)
    assert reason is not None
    assert "no state of the machine in common: run 1 saw near 30.1 ns; run 2 saw near 60.3 ns" in reason


@pytest.mark.parametrize("measurements", [2, 30])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_an_odd_floor_between_two_states_lets_nothing_be_compared_across_them(
    store: Store, measurements: int, is_reversed: bool
) -> None:
    """One measurement, of a floor nearer than the gap to both levels.

    Held six launches in one to a launch in the other.
    """
    point = {make_point(8): 196.0}
    far = add_run(store, point, launches=6, measurements=(1.0,) * measurements, floor_ns=120.0)
    near = add_run(
        store, {make_point(8): 47.9}, launches=1, measurements=(1.0,) * 7 * measurements, floor_ns=60.0, odd_ns=84.0
    )
    found = compare_runs(store, near, far) if is_reversed else compare_runs(store, far, near)
    (change,) = found.changes
    assert (change.shift, change.states) == (None, ())
    assert change.reason is not None
    saw = [part.split(" saw ")[1].split()[0] for part in change.reason.split("; ")]
    assert saw == (["near", "far"] if is_reversed else ["far", "near"])


def test_states_that_differ_are_listed_in_one_order(store: Store) -> None:
    """However a point came upon them, so that one reason is one."""
    points = {make_point(8): 1000.0, make_point(64): 1000.0}
    base = add_run(store, points, launches=2, far={0}, floor_ns=30)
    new = add_run(store, points, launches=2, floor_ns=5000, seed=2)
    for other in (base, add_run(store, points, launches=2, far={1}, floor_ns=30, seed=3)):
        number = f"run {other} saw near / far; run {new} saw time-sliced"
        assert reasons(store, other, new) == {f"no state of the machine in common: {number}"}


def test_machines_of_two_models_have_levels_of_their_own(store: Store) -> None:
    base = add_run(store, curve(), floor_ns=30, facts={"cpu": {"model": "A"}})
    new = add_run(store, slower(curve(), 1.8, 0, 1 << 20), floor_ns=60, seed=2, facts={"cpu": {"model": "B"}})
    found = compare_runs(store, base, new)
    assert found.counts == {Verdict.SLOWER: len(SIZES)}
    assert [(one.what, one.base, one.new) for one in found.differences] == [("CPU", "A", "B")]


def test_times_of_two_definitions_are_not_compared(store: Store) -> None:
    base = add_run(store, curve())
    new = add_run(store, slower(curve(), 4.0, 0, 1 << 20), definition=SLOWEST, seed=2)
    assert reasons(store, base, new) == {"its times are defined otherwise in the two runs (docs/metrics.md)"}
    assert {change.apart for change in compare_runs(store, base, new).changes} == {None}


def test_a_point_that_failed_is_inconclusive_with_its_reason(store: Store) -> None:
    times, lost = curve(), make_point(8)
    base = add_run(store, times)
    new = add_run(
        store,
        {point: ns for point, ns in times.items() if point != lost},
        failed={lost: "rank 1 was killed by SIGKILL"},
        seed=2,
    )
    found = compare_runs(store, base, new)
    assert found.counts == {Verdict.INCONCLUSIVE: 1, Verdict.SAME: len(SIZES) - 1}
    assert found.changes[-1].reason == f"failed in run {new}: rank 1 was killed by SIGKILL"


def test_what_was_never_in_one_state_is_inconclusive_and_both_sides_are_named(store: Store) -> None:
    lost = make_point(8)
    base, new = (add_run(store, curve(), unsteady={lost}, seed=seed) for seed in (1, 2))
    found = compare_runs(store, base, new)
    (change,) = [change for change in found.changes if change.point == lost]
    lack = "has no samples of it in one steady state of the machine"
    assert (change.verdict, change.reason) == (Verdict.INCONCLUSIVE, f"run {base} {lack}; run {new} {lack}")
    assert len(found.changes) == len(SIZES)


def test_what_failed_in_both_runs_is_inconclusive_and_both_sides_are_named(store: Store) -> None:
    lost = make_point(131072)
    base, new = (add_run(store, curve(), failed={lost: f"rank {seed} hung"}, seed=seed) for seed in (1, 2))
    found = compare_runs(store, base, new)
    (change,) = [change for change in found.changes if change.point == lost]
    assert change.verdict is Verdict.INCONCLUSIVE
    assert change.reason == f"failed in run {base}: rank 1 hung; failed in run {new}: rank 2 hung"


def test_what_both_plans_skipped_is_no_series(store: Store) -> None:
    skipped = make_point(131072)
    base, new = (add_run(store, curve(), failed={skipped: "-"}, seed=seed) for seed in (1, 2))
    for run in (base, new):
        store.set_status(run, skipped, PointStatus.SKIPPED, "2 ranks on 1 CPU")
    assert compare_runs(store, base, new).counts == {Verdict.SAME: len(SIZES)}


@pytest.mark.parametrize("side", [0, 1])
def test_samples_of_a_point_that_failed_decide_nothing(store: Store, side: int) -> None:
    lost = make_point(8)
    runs = add_run(store, curve()), add_run(store, slower(curve(), 2.0, 8, 8), seed=2)
    store.set_status(runs[side], lost, PointStatus.FAILED, "rank 1 hung")
    found = compare_runs(store, *runs)
    (change,) = [change for change in found.changes if change.point == lost]
    assert (change.verdict, change.reason) == (Verdict.INCONCLUSIVE, f"failed in run {runs[side]}: rank 1 hung")


def test_runs_with_one_size_in_common(store: Store) -> None:
    base = add_run(store, curve(sizes=(8, 64)))
    new = add_run(store, curve(sizes=(8, 1024)), seed=2)
    found = compare_runs(store, base, new)
    assert [change.point.bytes for change in found.changes] == [8]
    assert ([p.bytes for p in found.only_base], [p.bytes for p in found.only_new]) == ([64], [1024])


def test_nothing_in_common_is_said_with_what_there_is(store: Store) -> None:
    base, new = add_run(store, curve("shm")), add_run(store, curve("tcp"))
    with pytest.raises(UsageError, match="no series in common: 1 has pingpong on shm; 2 has pingpong on tcp"):
        compare_runs(store, base, new)
    with pytest.raises(UsageError, match="with itself"):
        compare_runs(store, base, base)


def test_a_run_without_samples_decides_nothing(store: Store) -> None:
    base = add_run(store, curve())
    new, newer = (add_run(store, {}, failed=dict.fromkeys(curve(), "rank 1 hung")) for _ in range(2))
    assert reasons(store, base, new) == {f"failed in run {new}: rank 1 hung"}
    with pytest.raises(UsageError, match=f"run {new} has nothing to compare: none of its points has samples"):
        compare_runs(store, new, newer)


def test_a_library_of_another_version_is_the_same_series(store: Store) -> None:
    old, young = "mpi@openmpi-4.1.4", "mpi@openmpi-5.0.1"
    base = add_run(store, curve(old), libraries={old: "Open MPI 4.1.4"})
    new = add_run(store, slower(curve(young), 1.3, 8, 64), libraries={young: "Open MPI 5.0.1"}, seed=2)
    found = compare_runs(store, base, new)
    assert [change.point.bytes for change in found.changes if change.verdict is Verdict.SLOWER] == [8, 64]
    assert {change.point.transport for change in found.changes} == {young}
    (difference,) = found.differences
    assert difference.what == f"library, {young}"
    assert (difference.base, difference.new) == ("Open MPI 4.1.4", "Open MPI 5.0.1")


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("MPICH 4.0.2", "MPICH 4.0.2 (ch4:ucx)", False),  # before hockney asked for the device
        ("MPICH 4.0.2 (ch4:ucx ofi)", "MPICH 4.0.2", False),
        ("MPICH 4.0.2 (ch4:ucx)", "MPICH 4.0.2 (ch4:ofi)", True),
        ("MPICH 4.0.2", "MPICH 4.0.3 (ch4:ucx)", True),
        ("MPICH 4.0.2 (ch4:ucx)", "MPICH 4.0.3 (ch4:ucx)", True),
        ("Open MPI 4.1.4", "Open MPI 4.1.4 (ob1:vader:cma tcp)", False),
        ("Open MPI 4.1.4 (ob1:vader:cma tcp)", "Open MPI 4.1.4 (ob1:tcp)", True),
    ],
)
def test_a_device_that_only_one_run_tells_is_no_difference(
    store: Store, before: str, after: str, differs: bool
) -> None:
    base, new = (add_run(store, curve("mpi"), libraries={"mpi": library}) for library in (before, after))
    found = [(one.what, one.base, one.new) for one in compare_runs(store, base, new).differences]
    assert found == ([("library, mpi", before, after)] if differs else [])


def test_two_libraries_that_came_for_one_are_not_guessed(store: Store) -> None:
    base = add_run(store, curve("shm") | curve("mpi@openmpi-4.1.4"))
    new = add_run(store, curve("shm") | curve("mpi@openmpi-5.0.1") | curve("mpi@openmpi-5.0.2"), seed=2)
    found = compare_runs(store, base, new)
    assert {change.point.transport for change in found.changes} == {"shm"}
    assert len(found.only_base) == len(SIZES)


def test_surroundings_that_changed_are_named(store: Store) -> None:
    facts = {"cpu": {"model": "A", "governors": ["performance"]}, "os": {"kernel": "Linux 6.1"}, "environment": {}}
    facts["limits"] = {"nice": 0}
    later = {
        "cpu": {"model": "A", "governors": ["powersave"]},
        "os": {"kernel": "Linux 6.6"},
        "environment": {"OMPI_MCA_btl": "tcp"},
        "limits": {"nice": 19},
    }
    base, new = add_run(store, curve(), facts=facts), add_run(store, curve(), facts=later, seed=2)
    found = {one.what: (one.base, one.new) for one in compare_runs(store, base, new).differences}
    assert found == {
        "niceness": ("0", "19"),
        "governor": ("performance", "powersave"),
        "kernel": ("Linux 6.1", "Linux 6.6"),
        "variable OMPI_MCA_btl": ("not set", "tcp"),
    }


def test_what_no_run_noted_of_its_environment_is_not_known(store: Store) -> None:
    later = {"environment": {"OMPI_MCA_btl": "tcp", "OMPI_MCA_pml": ""}}
    base, new = add_run(store, curve(), facts={}), add_run(store, curve(), facts=later, seed=2)
    found = {one.what: (one.base, one.new) for one in compare_runs(store, base, new).differences}
    assert found == {"variable OMPI_MCA_btl": (None, "tcp"), "variable OMPI_MCA_pml": (None, "empty")}


def test_the_version_of_hockney_is_named(store: Store) -> None:
    base, new = add_run(store, curve(), version="0.0.9"), add_run(store, curve(), version="0.1.0", seed=2)
    (found,) = compare_runs(store, base, new).differences
    assert found == Difference("hockney", "0.0.9", "0.1.0")


def test_what_disturbed_a_run_is_told(store: Store) -> None:
    base, new = add_run(store, curve()), add_run(store, curve(), seed=2)
    store.add_warning(
        new, Warning_("load", "machine", "When the run began, other programs kept 1.0 CPUs busy.", "Stop them.")
    )
    store.add_warning(new, Warning_("virtual", "machine", "This is a virtual machine.", "Nothing."))
    for share in ("3 %", "5 %"):  # a run that goes on looks again
        store.add_warning(new, Warning_("steal", "machine", f"The hypervisor took {share}.", "Use its host."))
    for when in ("During 3 of 5 launches", "During 2 of 5 more launches"):  # but those launches stay as they were
        store.add_warning(new, Warning_("others", "machine", f"{when}, sh kept 0.8 CPUs busy.", "Stop it."))
    found = compare_runs(store, base, new)
    assert list(surroundings_lines(found)) == [
        "disturbed: run 2: when the run began, other programs kept 1.0 CPUs busy",
        "disturbed: run 2: the hypervisor took 5 %",
        "disturbed: run 2: during 3 of 5 launches, sh kept 0.8 CPUs busy",
        "disturbed: run 2: during 2 of 5 more launches, sh kept 0.8 CPUs busy",
    ]


def test_an_interval_without_zero_among_what_shows_no_difference_is_explained(store: Store) -> None:
    """One of two hundred series: by itself it would stand out, among them it does not."""
    points = {make_point(size): 1000.0 for size in range(1, 201)}
    base, new = (add_run(store, points, scatter=0.02, seed=seed, measurements=(1.0,)) for seed in (1, 2))
    found = compare_runs(store, base, new)
    assert found.counts == {Verdict.SAME: 200}
    assert 0 < found.by_chance == sum(change.is_beyond for change in found.changes)
    sentence = range_sentence(found.ranges[0])
    assert "outermost ends of the 95 % intervals over launches; " in sentence
    assert sentence.endswith(" B would be a difference by themselves, but do not stand out among all series)")


def test_a_difference_within_the_margin_needs_no_explanation(store: Store) -> None:
    base = add_run(store, curve(), scatter=0.002)
    new = add_run(store, slower(curve(), 1.03, 0, 1 << 20), scatter=0.002, seed=2)
    found = compare_runs(store, base, new, margin=1.05)
    assert found.by_chance == 0
    assert "would be a difference by itself" not in range_sentence(found.ranges[0])


def test_launches_of_some_series_alone_are_not_those_of_all(store: Store) -> None:
    base = add_run(store, curve(), launches=4)
    new = add_run(store, curve(), launches=5, failed={make_point(8): "rank 1 hung"}, seed=2)
    found = compare_runs(store, base, new)
    assert (found.launches_least, found.launches) == ((4, 1), (4, 5))


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a store of three runs: base, slow with a slowdown, single with one launch."""
    where = tmp_path_factory.mktemp("compare")
    with Store.open(where / "results.db") as opened:
        add_run(opened, curve("tcp"), label="base", facts={"os": {"kernel": "Linux 6.1"}})
        changed = slower(curve("tcp"), 1.25, 8192, 32768)
        add_run(opened, changed, label="slow", seed=2, facts={"os": {"kernel": "Linux 6.6"}})
        add_run(opened, curve("tcp"), label="single", launches=1)
    return where


def test_command_says_the_range_and_what_changed(folder: Path) -> None:
    done = call(folder, "compare", "base", "slow")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "changed: kernel: Linux 6.1 -> Linux 6.6" in lines
    (line,) = [line for line in lines if "tcp, 2 ranks: slower by" in line]
    assert "from 8 KiB to 32 KiB (near; time +" in line
    assert lines.index("changed: kernel: Linux 6.1 -> Linux 6.6") < lines.index(line)


def test_command_as_json(folder: Path) -> None:
    done = call(folder, "compare", "base", "slow", "--json")
    document = json.loads(done.stdout)
    assert document["format"] == "hockney-compare"
    assert document["counts"] == {"slower": 3, "no difference seen": 4}
    (found,) = [one for one in document["ranges"] if one["verdict"] == "slower"]
    assert found["bytes"] == [8192, 16384, 32768]
    assert all(one["shift"]["low"] < one["shift"]["ratio"] < one["shift"]["high"] for one in document["series"])


def test_command_on_runs_of_one_size_and_with_a_failed_point(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(8,)))
        add_run(opened, curve(sizes=(64,)), failed={make_point(8): "rank 1 hung"}, seed=2)
        add_run(opened, curve("tcp"))
    done = call(tmp_path, "compare", "1", "2")
    assert (done.returncode, done.stderr) == (3, "")
    assert "inconclusive at 8 B, because failed in run 2: rank 1 hung" in done.stdout
    done = call(tmp_path, "compare", "1", "3")
    assert done.returncode == 2
    assert done.stderr == (
        "hockney: runs 1 and 3 have no series in common: 1 has pingpong on shm; 3 has pingpong on tcp\n"
    )


def test_command_that_can_decide_nothing_says_so(folder: Path) -> None:
    done = call(folder, "compare", "base", "single")
    assert done.returncode == 3
    assert "too few launches in one state (near): 5 of run 1 and 1 of run 3; it takes 3 of each" in done.stdout


def test_one_inconclusive_series_has_its_reason_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        for seed in (1, 2):
            add_run(opened, curve("tcp", sizes=(8,)), launches=1, seed=seed)
    lines = call(tmp_path, "compare", "1", "2").stdout.splitlines()
    assert lines[2].startswith("Verdict: 1 inconclusive because too few launches in one state")


def test_command_says_the_verdict_before_the_series_and_gathers_what_is_inconclusive(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        points = {**curve("tcp"), **curve("unix")}
        failed = {make_point(8, transport="tcp"): "rank 1 hung"}
        add_run(opened, points, launches=1)
        add_run(opened, points, launches=1, seed=2, failed=failed)
    done = call(tmp_path, "compare", "1", "2")
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    few = "too few launches in one state (near): 1 of run 1 and 1 of run 2; it takes 3 of each"
    assert lines[1] == "Surroundings: no difference known."
    assert lines[2] == f"Verdict: 14 inconclusive, 13 of them because {few}"
    assert lines[-7:] == [
        "Inconclusive: 14 series",
        f"13 series, because {few}:",
        "  pingpong on tcp, 2 ranks: from 64 B to 64 KiB",
        "  pingpong on unix, 2 ranks: from 8 B to 64 KiB",
        "pingpong on tcp, 2 ranks: inconclusive at 8 B, because failed in run 2: rank 1 hung",
        "remedy: measure run 1 again with 6 launches: `hockney run quick --launches 6`",
        "remedy: measure run 2 again with 6 launches: `hockney run quick --launches 6`",
    ]
    each = call(tmp_path, "compare", "1", "2", "--all").stdout
    assert f"pingpong on unix, 2 ranks: inconclusive from 8 B to 64 KiB, because {few}" in each


def test_command_says_which_run_a_label_of_several_stands_for(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        for seed in (1, 2, 3):
            add_run(opened, curve(), label="twice" if seed < 3 else "new", seed=seed)
    done = call(tmp_path, "compare", "twice", "new", "--json")
    assert done.stderr == "'twice' names 2 runs: the newest is taken, run 2; twice~1 is run 1\n"
    assert json.loads(done.stdout)["base"] == 2
    assert call(tmp_path, "compare", "twice~1", "new").stderr == ""


def test_command_goes_on_where_nobody_reads_which_run_a_label_stands_for(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        for seed in (1, 2):
            add_run(opened, curve(), label="twice", seed=seed)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command_line("compare", "twice", "1", "--json"),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=writing,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert json.loads(done.stdout)["base"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["base", "base"], "can't be compared with itself"),
        (["base", "bas"], "did you mean 'base'"),
        (["base", "slow", "--margin", "much"], "write for example 1%"),
        (["base", "slow", "--margin", "2"], "write 2%, or 200%"),
    ],
)
def test_command_refuses_in_a_sentence(folder: Path, arguments: list[str], said: str) -> None:
    done = call(folder, "compare", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
