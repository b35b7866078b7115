"""What is told of series that nothing decides, though all launches of one run lie apart from all of the other."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.compare.made import add_run, curve, slower
from tests.builders import make_info, make_point
from tests.cli.support import call
from tests.measure.test_check import found_fine, say

from hockney.analysis.compare import Verdict, compare_runs
from hockney.cli import check as cli_check
from hockney.cli.changes import range_sentence
from hockney.cli.junit import write_junit
from hockney.model import Point
from hockney.results.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


@pytest.mark.parametrize(("times", "left"), [(100.0, 25.0), (0.01, 0.04)])
def test_launches_that_lie_apart_in_whatever_state_are_told_though_nothing_is_decided(
    store: Store, times: float, left: float
) -> None:
    """The state `far` takes four times as long, which is what a factor of 100 loses at most, but for the scatter."""
    base = add_run(store, curve(), launches=5, far={4})
    new = add_run(store, slower(curve(), times, 64, 8192), launches=5, far={0, 1, 2, 3}, scatter=0.02, seed=2)
    changes = {change.point.bytes: change for change in compare_runs(store, base, new, confidence=0.993).changes}
    assert {change.verdict for change in changes.values()} == {Verdict.INCONCLUSIVE}
    for size, change in changes.items():
        assert (change.apart is not None) is (64 <= size <= 8192)
    assert changes[64].apart == pytest.approx(left, rel=0.15)


def test_what_another_state_may_do_is_no_verdict_but_told(store: Store) -> None:
    base = add_run(store, curve(), floor_ns=30)
    new = add_run(store, slower(curve(), 4.0, 0, 1 << 20), floor_ns=180, seed=2)
    (found,) = compare_runs(store, base, new).ranges
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.apart is not None
    assert 3.8 < found.apart < 4.0
    assert "; yet each launch of the new run took at least 3." in range_sentence(found)
    assert range_sentence(found).endswith(" times as long as any of the base, in whatever state")


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (16.268, "at least 16.2 times"),
        (1.9999, "at least 1.99 times"),
        (299.7, "at least 299 times"),
        (0.04441, "at most 0.0445 times"),
        (0.5, "at most 0.5 times"),
    ],
)
def test_how_far_launches_lie_apart_is_told_as_a_bound(store: Store, ratio: float, said: str) -> None:
    runs = [add_run(store, curve(), seed=seed, floor_ns=floor) for seed, floor in ((1, 30.0), (2, 180.0))]
    (found,) = compare_runs(store, *runs).ranges
    told = range_sentence(replace(found, changes=(replace(found.first, apart=ratio),)))
    assert told.endswith(f"; yet each launch of the new run took {said} as long as any of the base, in whatever state")


def test_a_launch_that_saw_no_steady_state_counts_too(store: Store) -> None:
    """Three launches of the base took longest of all, while the state of the machine changed."""
    (point,) = times = curve(sizes=(8,))
    base = add_run(store, times, launches=2)
    new = add_run(store, slower(times, 4.0, 0, 1 << 20), floor_ns=180.0, seed=2)
    assert [change.apart is not None for change in compare_runs(store, base, new).changes] == [True]
    longest = add_run(store, slower(times, 20.0, 0, 1 << 20), launches=3, unsteady=[point], seed=3)
    point_of = "(SELECT id FROM point WHERE run_id = ?)"
    store._db.execute(f"UPDATE measurement SET point_id = {point_of} WHERE point_id = {point_of}", (base, longest))
    store._db.execute("UPDATE launch SET run_id = ?, launch_index = launch_index + 2 WHERE run_id = ?", (base, longest))
    (change,) = compare_runs(store, base, new).changes
    assert (change.verdict, change.apart) == (Verdict.INCONCLUSIVE, None)


def test_sizes_that_got_much_slower_than_their_neighbours_are_a_range_of_their_own(store: Store) -> None:
    """As with another way below an eager limit: 50 times as long there, and half as long again above it."""
    base = add_run(store, curve())
    new = add_run(store, slower(slower(curve(), 50.0, 0, 1024), 1.5, 8192, 1 << 20), seed=2)
    below, above = compare_runs(store, base, new).ranges
    assert [change.point.bytes for change in below.changes] == [8, 64, 1024]
    assert {one.verdict for one in (below, above)} == {Verdict.SLOWER}
    # About as much is one range, however well it is known.
    new = add_run(store, slower(slower(curve(), 1.3, 0, 1024), 1.5, 8192, 1 << 20), scatter=0.001, seed=3)
    assert len(compare_runs(store, base, new).ranges) == 1


def test_command_names_what_lies_apart_first_of_all(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        points = {**curve("tcp"), **curve("unix")}
        add_run(opened, points, launches=2)
        add_run(opened, slower(points, 16.0, 64, 1024), launches=2, scatter=0.001, seed=2)
    lines = call(tmp_path, "compare", "1", "2").stdout.splitlines()
    few = "too few launches in one state (near): 2 of run 1 and 2 of run 2; it takes 3 of each"
    assert lines[2] == (
        f"Verdict: 14 inconclusive, all because {few}; of 4 every launch took much longer than any of the base"
    )
    apart = [line for line in lines if "; yet each launch of the new run took at least 1" in line]
    assert [line.split(";")[0] for line in apart] == [
        f"  pingpong on {name}, 2 ranks: from 64 B to 1 KiB" for name in ("tcp", "unix")
    ]
    assert "  pingpong on tcp, unix, 2 ranks: at 8 B, from 8 KiB to 64 KiB" in lines
    series = json.loads(call(tmp_path, "compare", "1", "2", "--json").stdout)["series"]
    assert [round(one["apart"]) for one in series if one["apart"] is not None] == [16] * 4


def test_what_is_inconclusive_but_lies_apart_says_how_far(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = found_fine(1.02, 1.02, 1.02)
    few = replace(
        checked.comparison.changes[0], verdict=Verdict.INCONCLUSIVE, reason="too few", shift=None, chance=None
    )
    sizes = [change.point for change in checked.comparison.changes]
    apart = (54.0, 16.0, None)
    changes = tuple(replace(few, point=point, apart=ratio) for point, ratio in zip(sizes, apart, strict=True))
    comparison = replace(checked.comparison, changes=changes)
    say(replace(checked, comparison=comparison))
    first, _, last = capsys.readouterr().out.splitlines()
    assert first == (
        "inconclusive: pingpong on tcp, 2 ranks: inconclusive from 1 KiB to 2 KiB, because too few; yet each launch "
        "of the "
        "new run took at least 16 times as long as any of the base, in whatever state"
    )
    assert last == "none of 3 series can be called ok against run 3; the check is run 7"
    write_junit(tmp_path / "j.xml", "title", cli_check._cases(comparison), 3)
    messages = [one.get("message") or "" for one in ET.parse(tmp_path / "j.xml").getroot().iter("skipped")]
    assert ["at least 54 times" in one for one in messages] == [True, False, False]
    assert ["at least 16 times" in one for one in messages] == [False, True, False]


def test_a_remedy_leaves_out_what_fails_and_names_what_to_restore(tmp_path: Path) -> None:
    """Not what still wants launches, nor what the command that is advised restores by itself."""

    def remedies(tcp: dict[Point, float], **info: Any) -> list[str]:
        with Store.open(tmp_path / f"{len(list(tmp_path.iterdir()))}.db") as store:
            failed = {make_point(8, "tcp"): "rank 1 hung"}
            base = add_run(store, {**curve(), **tcp}, launches=1, failed=failed, command="hockney run ring", **info)
            new = add_run(store, {**curve(), **tcp}, launches=1, failed=failed, command="hockney run ring", seed=2)
            return compare_runs(store, base, new).remedies

    wanted = "measure run 1 again with 6 launches: `hockney run ring --launches 6`"
    assert remedies(curve("tcp", (64,)))[0] == wanted
    assert remedies({})[0] == f"{wanted}, without tcp, of which points failed"
    facts = make_info().facts
    newer = remedies(curve("tcp", (64,)), version="0.0.9")[0]
    assert newer == f"{wanted}, once what changed is as it was then"
    assert remedies(curve("tcp", (64,)), facts={**facts, "environment": {}})[0] == wanted
