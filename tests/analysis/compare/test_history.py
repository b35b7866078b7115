"""Histories of made-up stores: planted steps are found, dated and explained, and nothing else is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.compare.nights import DAY_S, FACTS, LARGE, SHM, TCP, TIMES_NS, night, slower
from tests.builders import make_point

from hockney.analysis.compare.history import History, history_of
from hockney.errors import HockneyError, UsageError
from hockney.model import Point
from hockney.report.documents.history import history_document
from hockney.results.runs import Run
from hockney.results.store import Store


def changed(history: History) -> list[tuple[int, int, set[Point]]]:
    """Of each event the runs around it, and the points."""
    return [(event.base, event.new, {change.point for change in event.changes}) for event in history.events]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "r.db") as store:
        yield store


def test_a_planted_step_is_one_event_with_all_its_series_and_its_cause(store: Store) -> None:
    for number in range(24):
        facts = FACTS if number < 14 else {**FACTS, "os": {"kernel": "Linux 6.6"}}
        of_night = TIMES_NS if number < 14 else slower((TCP, LARGE))
        night(store, number, slower(TIMES_NS, 1.7) if number in (4, 9, 19) else of_night, facts=facts)
    history = history_of(store)
    assert changed(history) == [(14, 15, {TCP, LARGE})]
    (event,) = history.events
    assert [(each.what, each.base, each.new) for each in event.differences] == [("kernel", "Linux 6.1", "Linux 6.6")]
    for change in event.changes:
        assert change.ratio is not None
        assert change.ratio.low < 1.2 < change.ratio.high < 1.25
        assert change.new_ns == pytest.approx(1.2 * TIMES_NS[change.point], rel=0.02)
    assert {track.point: len(track.runs) for track in history.tracks} == dict.fromkeys(TIMES_NS, 24)
    assert {track.state for track in history.tracks} == {"near"}
    assert (history.overlaps, history.future) == ([], [])


def test_series_that_move_within_two_nights_are_one_event(store: Store) -> None:
    for number in range(24):
        night(store, number, slower([point for point, at in ((TCP, 12), (LARGE, 12), (SHM, 13)) if number >= at]))
    assert changed(history_of(store)) == [(12, 13, {TCP, LARGE, SHM})]


def test_a_new_version_of_a_library_continues_its_series(store: Store) -> None:
    for number in range(20):
        version = "4.1.4" if number < 10 else "5.0.1"
        point = make_point(8, f"mpi@openmpi-{version}")
        libraries = {point.transport: f"Open MPI {version}"}
        night(store, number, {point: 200.0 if number < 10 else 150.0}, libraries=libraries)
    history = history_of(store, ["pingpong@mpi"])
    assert changed(history) == [(10, 11, {make_point(8, "mpi@openmpi-5.0.1")})]
    assert ("library, mpi@openmpi-5.0.1", "Open MPI 4.1.4", "Open MPI 5.0.1") in [
        (each.what, each.base, each.new) for each in history.events[0].differences
    ]


def test_the_drift_of_the_pace_and_the_floor_is_no_change(store: Store) -> None:
    """Half of all runs are on a machine whose floor and times rise by a fifth one night."""
    for number in range(20):
        ratio = 1.0 if number < 10 else 1.2
        night(store, number, slower(TIMES_NS, ratio), floor_ns=30.0 * ratio)
    history = history_of(store)
    assert history.events == ()
    assert {track.fit.follows for track in history.tracks} == {"floor"}
    (track,) = history_of(store, ["pingpong@shm"]).tracks
    floors = [each.machine_ns["floor"] for each in track.runs]
    assert floors[-1] / floors[0] == pytest.approx(1.2, rel=0.01)


def test_nights_in_another_state_are_left_out_and_counted(store: Store) -> None:
    """On those nights both CPUs are far from each other during all launches, and times are four times as long."""
    for number in range(20):
        night(store, number, TIMES_NS, far=(0, 1) if number % 3 == 2 else ())
    history = history_of(store)
    assert history.events == ()
    assert [(track.state, len(track.runs), track.elsewhere) for track in history.tracks] == [("near", 14, 6)] * 3


def test_figures_are_those_that_tables_show_or_are_counted(store: Store) -> None:
    """On every third night one of the two launches is contended, and tables show both together."""
    for number in range(20):
        night(store, number, TIMES_NS, contended=(0,) if number % 3 == 2 else ())
    history, others = history_of(store), 0
    for track, figure in ((of, each) for of in history.tracks for each in of.runs):
        (series,) = Run(store, figure.run).find(transport=track.point.transport, bytes=track.point.bytes)
        assert series.shown is not None
        assert figure.is_of_other_state == (series.shown.state != track.state)
        assert (figure.time_ns == series.shown.time) is not figure.is_of_other_state
        others += figure.is_of_other_state
    assert others == 18
    assert any("`show` has 18 figures in another state." in str(block) for block in history_document(history))


def test_the_state_of_a_series_does_not_depend_on_the_words(store: Store) -> None:
    """One that was measured on far nights mostly is shown near, as the others."""
    for number in range(20):
        is_far = number % 3 == 2
        times_ns = {point: ns for point, ns in TIMES_NS.items() if point != TCP or is_far or number < 4}
        night(store, number, times_ns, far=(0, 1) if is_far else ())
    (asked,) = history_of(store, ["pingpong@tcp", "8"]).tracks
    assert (asked.point, asked.state, len(asked.runs), asked.elsewhere) == (TCP, "near", 3, 6)
    assert asked in history_of(store).tracks


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"cpu": {"model": "fast"}}, {"cpu": {"model": "slow"}}),
        ({"hostname": "a"}, {"hostname": "b"}),
        ({"machine_id": "1"}, {"machine_id": "2"}),
    ],
)
def test_each_machine_has_its_own_series(one: dict[str, Any], other: dict[str, Any], store: Store) -> None:
    """Two of them measure in turn, the first half of the runs on one of them."""
    for number in range(32):
        which = number % 2 if number < 16 else 1
        facts = {**FACTS, **(one, other)[which]}
        night(store, number, slower([TCP, LARGE, SHM], (1.0, 1.5)[which]), facts=facts)
    history = history_of(store)
    assert history.events == ()
    assert sorted(len(track.runs) for track in history.tracks) == [8] * 3 + [24] * 3
    assert len({(track.cpu, track.machine) for track in history.tracks}) == 2


def test_a_container_with_another_name_is_the_same_machine(store: Store) -> None:
    for number in range(8):
        night(store, number, TIMES_NS, facts={**FACTS, "machine_id": "1", "hostname": str(number)})
    assert [len(track.runs) for track in history_of(store).tracks] == [8] * 3


def test_words_and_labels_select(store: Store) -> None:
    for number in range(4):
        night(store, number, TIMES_NS, label="nightly" if number % 2 else None)

    def selected(*words: str, label: str | None = None) -> tuple[int, set[Point]]:
        history = history_of(store, words, label)
        return len(history.runs), {track.point for track in history.tracks}

    assert selected() == (4, {TCP, LARGE, SHM})
    assert selected("pingpong@tcp") == (4, {TCP, LARGE})
    assert selected("64K") == (4, {LARGE})
    assert selected("pingpong@tcp", "pingpong@shm", "8") == (4, {TCP, SHM})
    assert selected(label="nightly") == (2, {TCP, LARGE, SHM})
    for words in (["pingpnog"], ["pingpong@udp"], ["32"]):
        with pytest.raises(UsageError, match="unknown pattern, size or host"):
            history_of(store, words)
    with pytest.raises(UsageError, match="no series of these runs is of pingpong@shm and 64K"):
        history_of(store, ["pingpong@shm", "64K"])
    with pytest.raises(UsageError, match="unknown label 'nigthly': did you mean 'nightly'"):
        history_of(store, label="nigthly")


def test_one_run_is_no_history(store: Store) -> None:
    with pytest.raises(UsageError, match="no measurements"):
        history_of(store)
    night(store, 0, TIMES_NS, command="hockney run nightly.toml")
    with pytest.raises(HockneyError, match=r"run 1 is the only one.*repeat it every night with `hockney run"):
        history_of(store)


def test_runs_without_a_steady_state_are_one_sentence(store: Store) -> None:
    for number in range(2):
        night(store, number, TIMES_NS, unsteady=tuple(TIMES_NS))
    with pytest.raises(HockneyError, match="no series of these runs was measured in one machine state"):
        history_of(store)


def test_clocks_that_jump_are_named_and_nights_are_in_the_order_of_dates(store: Store) -> None:
    """The clock of the third run was a day late, and that of the last one a year early."""
    dates = [0, 1, -1, 2, 3, 400]
    ratios = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    now_s = time.time()
    for date, ratio in zip(dates, ratios, strict=True):
        started_s = now_s - 10 * DAY_S + date * DAY_S
        night(store, 0, slower(TIMES_NS, ratio), started_unix_s=started_s)
    history = history_of(store)
    assert (history.overlaps, history.future) == ([3], [6])
    assert [each.run for each in history.tracks[0].runs] == [3, 1, 2, 4, 5, 6]
