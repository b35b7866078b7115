"""What changes by itself is no difference between two runs, and which run is called base has no say in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import make_info, make_launch, make_point, visits_with_medians
from tests.cli.support import call
from tests.compare.made import add_run, curve, slower

from hockney.compare import Verdict, compare_runs
from hockney.errors import UsageError
from hockney.model import RunStatus
from hockney.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def add_launches(store: Store, launches: Sequence[float]) -> int:
    """A run of one point, with a launch for each of these times in us."""
    point = make_point(8, "shm")
    run = store.create_run(make_info(), [point])
    for index, time_us in enumerate(launches):
        launch_id = store.add_launch(run, make_launch("shm", index=index))
        store.write_round(run, visits_with_medians([1000 * time_us] * 6, point, launch_id=launch_id))
    store.finish_run(run, RunStatus.DONE)
    return run


@pytest.mark.parametrize("first_us", [0.97, 0.7])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_run_that_changed_by_half_as_much_decides_nothing(store: Store, first_us: float, swapped: bool) -> None:
    """After two of its launches; the others are a third quicker than those of the other run."""
    steady, stepped = [1.0, 1.01, 1.02, 1.0, 1.03, 1.01], [first_us, 1.01 * first_us, 0.65, 0.66, 0.65, 0.67]
    runs = add_launches(store, steady), add_launches(store, stepped)
    (change,) = compare_runs(store, *(reversed(runs) if swapped else runs)).changes
    if first_us == 0.7:
        assert change.verdict is (Verdict.SLOWER if swapped else Verdict.FASTER)
    else:
        assert change.verdict is Verdict.UNDECIDED
        assert change.reason is not None
        assert change.reason.startswith(f"run {runs[1]} itself changed by half of the difference, or more, between two")


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


def test_runs_that_differ_in_options_alone_are_told_apart(store: Store) -> None:
    runs = [add_run(store, {make_point(8, pattern="oneway", options=(("window", window),)): 1000.0}) for window in "48"]
    with pytest.raises(UsageError, match=r"window=4.*window=8"):
        compare_runs(store, *runs)


def said_of(folder: Path, ratio: float, facts: Sequence[dict[str, Any]], status: RunStatus = RunStatus.DONE) -> str:
    """What `compare` says of two runs with these facts, of which the new one took so many times as long at 8 B."""
    with Store.open(folder / "results.db") as opened:
        base = add_run(opened, curve("tcp") | curve("shm"), facts=facts[0])
        add_run(opened, slower(curve("tcp") | curve("shm"), ratio, 8, 8), seed=2, facts=facts[-1])
        opened.finish_run(base, status)
    return " ".join(call(folder, "compare", "1", "2").stdout.split())


NO_CAUSE = "No cause of what is slower or faster is known"
DRIFTED = "the machine may have drifted from one run to the other"


def test_command_says_what_drifts_and_what_was_stopped(tmp_path: Path) -> None:
    said = said_of(tmp_path, 1.25, [{"sleeping": ["tcp"]}], RunStatus.INTERRUPTED)
    assert "disturbed: run 1: it was stopped before its end" in said
    assert f"{NO_CAUSE}, but for what disturbed the runs: {DRIFTED}, above all on tcp, where ranks sleep" in said


def test_what_sleeps_drifts_whatever_changed(tmp_path: Path) -> None:
    facts = [{"sleeping": ["tcp"], "os": {"kernel": f"Linux {version}"}} for version in "67"]
    said = said_of(tmp_path, 1.25, facts)
    assert NO_CAUSE not in said
    assert "On tcp ranks sleep while they wait" in said


@pytest.mark.parametrize(
    ("ratio", "path", "is_told"),
    [(1.25, "commit", True), (0.8, "commit", True), (1.25, "libc", False), (1.0, "commit", False)],
)
def test_what_moved_without_a_known_cause_is_told_to_be_doubtful(
    tmp_path: Path, ratio: float, path: str, is_told: bool
) -> None:
    """The commit of hockney is none: what is measured is not hockney."""
    said = said_of(tmp_path, ratio, [{"software": {path: value}} for value in ("one", "two")])
    assert (f"{NO_CAUSE}: {DRIFTED}. Before you believe it, measure both anew in turns" in said) is is_told
    document = json.loads(call(tmp_path, "compare", "1", "2", "--json").stdout)
    assert (document["caution"] or "").startswith(NO_CAUSE) is is_told
    assert (document["caution"] is None) is not is_told
