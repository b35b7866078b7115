"""Stored values come back the same, and runs are found by their names."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from tests.builders import SLOWEST, make_info, make_launch, make_measurement, make_point, run_sql

from hockney.errors import DamagedRowWarning, StoreError, UsageError, WrongStoreError
from hockney.model import Definition, Launch, Measurement, PointStatus, RunStatus, Warning_
from hockney.results.runs import Run
from hockney.results.store import Store, rows, summary_of
from hockney.results.store.lock import alone, is_measured_now


def same(one: Measurement, other: Measurement) -> bool:
    """Measurements hold an array, so `==` can't say."""
    plain, others = dict(vars(one)), dict(vars(other))
    return np.array_equal(plain.pop("elapsed_ns"), others.pop("elapsed_ns")) and plain == others


def test_run_comes_back(store: Store) -> None:
    info = make_info(label="before upgrade")
    run_id = store.create_run(info, [])
    stored = store.run(run_id)
    assert stored.info == info
    assert (stored.status, stored.finished_unix_s, stored.rounds) == (RunStatus.KILLED, None, 0)
    assert (dict(stored.launches), stored.warnings) == ({}, ())


def test_a_run_is_stored_with_its_points_and_its_lock(store: Store, path: Path) -> None:
    def lock(run_id: int) -> None:
        held.enter_context(alone(path, run_id))
        with Store.open(path, readonly=True) as other:
            assert other.runs() == []  # nobody sees a run that has no lock yet

    with contextlib.ExitStack() as held:
        run_id = store.create_run(make_info(), [make_point(8)], {make_point(16): "there is no such size"}, lock=lock)
        with Store.open(path, readonly=True) as other:
            assert other.run(run_id).status is RunStatus.RUNNING
            assert [(row.point, row.status, row.reason) for row in other.points(run_id)] == [
                (make_point(8), PointStatus.PENDING, None),
                (make_point(16), PointStatus.SKIPPED, "there is no such size"),
            ]
    assert store.run(run_id).status is RunStatus.KILLED


def test_a_program_that_waits_for_a_lock_gets_one_that_others_respect(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who measured the run takes its file away while another waits for the lock of that very file."""
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(alone(path, 1))
        monkeypatch.setattr("fcntl.flock", _then(first.close, fcntl.flock))
        second.enter_context(alone(path, 1))
        monkeypatch.undo()
        assert is_measured_now(path, 1)
        with pytest.raises(UsageError, match="being measured"), alone(path, 1):
            pass


def _then(end: Callable[[], None], flock: Callable[[IO[str], int], None]) -> Callable[[IO[str], int], None]:
    def locks(file: IO[str], how: int) -> None:
        end()
        flock(file, how)

    return locks


def test_launches_come_back_by_id(store: Store, run_id: int) -> None:
    second = make_launch("mpi@mpich-4.3", oversubscribed=True, index=0)
    number = store.add_launch(run_id, second)
    assert dict(store.run(run_id).launches) == {1: make_launch(), number: second}


def test_points_come_back_in_order_with_their_role(store: Store, run_id: int) -> None:
    added = [make_point(32, options=(("queue", "4"), ("window", "2")), role="refined"), make_point(0)]
    store.add_points(run_id, added)
    stored = store.points(run_id)
    assert [each.point for each in stored] == [make_point(8), make_point(64), *added]
    assert [each.point.role for each in stored] == ["asked", "asked", "refined", "asked"]
    assert {(each.status, each.reason) for each in stored} == {(PointStatus.PENDING, None)}


def test_point_added_again_keeps_its_status(store: Store, run_id: int) -> None:
    store.set_status(run_id, make_point(8), PointStatus.FAILED, "rank 1 died")
    store.add_points(run_id, [make_point(8), make_point(16)])
    first, *others = store.points(run_id)
    assert (first.point, first.status, first.reason) == (make_point(8), PointStatus.FAILED, "rank 1 died")
    assert len(others) == 2


def test_measurements_come_back_by_point_in_order(store: Store, run_id: int) -> None:
    first = make_measurement(make_point(8), floor_ns=None, verified=False)
    other = make_measurement(
        make_point(64), [[1, 2], [3, 2**40], [5, 6]], definition=SLOWEST, batch=9, counters={"lost": (1.0, 2.5, 0.0)}
    )
    second = make_measurement(
        make_point(8),
        [[], []],
        round_=1,
        floor_kind="transport",
        pace_ns=((0.63, 0.64), (1.1, 0.63)),
        solo_ns=(0.63, 0.62),
        wake_ns=(9000.5, 9100.25),
        started_ns=2**53 + 1,
    )
    store.write_round(run_id, [first, other])
    store.write_round(run_id, [second])
    for point, written in zip(store.points(run_id), ([first, second], [other]), strict=True):
        pairs = zip(store.measurements(point).values(), written, strict=True)
        assert all(same(*pair) for pair in pairs)
    assert store.run(run_id).rounds == 2


def test_each_launch_is_read_once_and_new_ones_are_found(
    store: Store, run_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[rows.Row] = []

    def counted(row: rows.Row) -> Launch:
        read.append(row)
        return launch(row)

    launch = rows.launch
    monkeypatch.setattr(rows, "launch", counted)
    store.write_round(run_id, [make_measurement(make_point(8)), make_measurement(make_point(64))])
    with Store.open(store.path) as other:
        before = other.run(run_id)
        assert [len(other.measurements(each)) for each in other.points(run_id)] == [1, 1]
        assert len(read) == 1
        elsewhere = make_launch(hosts=("there", "there"))
        store.write_round(run_id, [make_measurement(make_point(8), launch_id=store.add_launch(run_id, elsewhere))])
        measurements = other.measurements(other.points(run_id)[0]).values()
        assert [measurement.places for measurement in measurements] == [make_launch().places, elsewhere.places]
        assert len(before.launches) == 1, "a value that was read has changed"


def test_summaries_are_those_of_the_measurements(store: Store, run_id: int) -> None:
    """Of every field: the time by the definition, outliers, counters, and all that gives the machine's state."""
    root = make_measurement(make_point(8), [[400, 480, 420, 1000], [1, 1, 1, 1]], batch=2)  # over 2 x 2
    slowest = make_measurement(
        make_point(64),
        [[5, 900, 7], [100, 8, 300]],
        definition=SLOWEST,
        floor_ns=(2e4, 2e4),
        floor_kind="transport",
        pace_ns=((0.63, 0.63), (0.63, 1.1)),
        solo_ns=(0.63, 0.62),
        wake_ns=(9000.5, 9100.25),
        counters={"lost": (1.0, 2.0)},
    )
    nothing = make_measurement(make_point(64), [[], []], floor_ns=None, steal=0.5, verified=False)
    written = [replace(each, places=make_launch().places) for each in (root, slowest, nothing)]
    store.write_round(run_id, written)
    summaries = store.summaries(run_id)
    assert [each._replace(id=0, point_id=0) for each in summaries] == list(map(summary_of, written))
    times = [(each.samples, each.median_ns, each.min_ns, each.max_ns, each.total_ns) for each in summaries]
    assert times == [(4, 112.5, 100, 250, 2300), (3, 300, 100, 900, 1300), (0, None, None, None, None)]
    assert [each.slow_ns for each in summaries] == [(550.0,), (600.0,), ()]


def test_states_are_classified_over_all_measurements_of_the_run(store: Store, run_id: int) -> None:
    floors = [(27.0, 28.0), (184.0, 190.0), (28.0, 186.0), None]
    store.write_round(run_id, [make_measurement(make_point(64), floor_ns=floor) for floor in floors])
    store.write_round(run_id, [make_measurement(make_point(8), floor_ns=(30.0, 28.0))])
    eight, sixty_four = Run(store, run_id).series
    assert [state.name for state in eight.states] == ["near"]
    assert [state.name for state in sixty_four.states] == ["near", "far", "mixed", "unknown"]


def test_unknown_is_null(store: Store, run_id: int, path: Path) -> None:
    store.write_round(run_id, [make_measurement(floor_ns=None, steal=None, definition=Definition("root", 1, 0, 1))])
    store.set_status(run_id, make_point(8), PointStatus.PRECISE, "")
    columns = "floor_before_ns, steal, algorithm, floor_kind, pace_ns, solo_before_ns, solo_after_ns, started_ns"
    columns += ", wake_before_ns, wake_after_ns, slow_ns, counters"
    assert run_sql(path, f"SELECT {columns} FROM measurement") == [(None,) * 12]
    assert run_sql(path, "SELECT label, finished_unix_s FROM run") == [(None, None)]
    assert run_sql(path, "SELECT DISTINCT reason FROM point") == [(None,)]


def test_text_is_data_never_sql(store: Store) -> None:
    nasty = "x'); DROP TABLE run; --"
    point = make_point(transport=nasty, options=((nasty, nasty),))
    run_id = store.create_run(make_info(label=nasty, command=nasty), [], {point: nasty})
    assert store.find_run(nasty) == run_id
    assert [(each.point, each.reason) for each in store.points(run_id)] == [(point, nasty)]


def test_round_with_an_unknown_point_is_refused_whole(store: Store, run_id: int) -> None:
    with pytest.raises(ValueError, match="pingpong of 4 KiB on shm, 2 ranks was not added to run 1"):
        store.write_round(run_id, [make_measurement(make_point(8)), make_measurement(make_point(4096))])
    assert store.summaries(run_id) == []
    assert store.run(run_id).rounds == 0


def test_round_of_an_unknown_launch_is_refused_whole(store: Store, run_id: int) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.write_round(run_id, [make_measurement(), make_measurement(launch_id=99)])
    assert store.summaries(run_id) == []
    store.write_round(run_id, [make_measurement()])
    assert len(store.summaries(run_id)) == 1


def test_warnings_are_stored_once(store: Store, run_id: int) -> None:
    governor = Warning_("governor", "cpu0", "The governor is powersave.", "Try performance.")
    steal = Warning_("steal", "machine", "Stolen.", "")
    for warning in (governor, steal, governor):
        store.add_warning(run_id, warning)
    assert store.run(run_id).warnings == (governor, steal)


def test_a_run_ends_and_is_resumed(store: Store, run_id: int) -> None:
    before_s = time.time()
    store.finish_run(run_id, RunStatus.STOPPED)
    stored = store.run(run_id)
    assert stored.status is RunStatus.STOPPED
    assert stored.finished_unix_s is not None
    assert before_s <= stored.finished_unix_s <= time.time()
    store.resume_run(run_id)
    stored = store.run(run_id)
    assert (stored.status, stored.finished_unix_s) == (RunStatus.KILLED, None)


def test_only_the_time_of_measuring_counts_by_a_clock_that_nobody_sets(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither pauses, nor a wall clock that jumps by a year, nor what a killed program did after its last write."""

    def at(now_s: float) -> None:
        monkeypatch.setattr("hockney.results.store.store.time.monotonic", lambda: now_s)

    def measured_s(of: Store = store) -> tuple[float | None, float]:
        (run,) = of.runs()
        return run.measured_s, run.measured_least_s

    at(1000)
    run_id = store.create_run(make_info(), [make_point(8)])
    launch_id = store.add_launch(run_id, make_launch())
    at(1005)
    store.write_round(run_id, [make_measurement(make_point(8), launch_id=launch_id)])
    assert measured_s() == (None, 5)
    at(1010)
    monkeypatch.setattr("hockney.results.store.store.time.time", lambda: 1e9)
    store.finish_run(run_id, RunStatus.STOPPED)
    assert measured_s() == (10, 10)
    with Store.open(path) as other:
        for resumed_s in (2000, 3000):  # killed before the first measurement, twice
            at(resumed_s)
            other.resume_run(run_id)
        at(3020)
        other.set_status(run_id, make_point(8), PointStatus.PRECISE)
        assert measured_s(other) == (None, 30)
        at(3025)
        store.label_run(run_id, "of another program")
        assert measured_s(other) == (None, 30)
        at(5000)
        other.resume_run(run_id)
        at(5003)
        other.finish_run(run_id, RunStatus.DONE)
        assert measured_s(other) == (33, 33)


def test_an_unknown_run_among_many_names_the_newest(store: Store) -> None:
    for number in range(40):
        store.create_run(make_info(f"a{number:02}"), [])
    with pytest.raises(UsageError) as caught:
        store.find_run("zzz")
    assert str(caught.value) == ("unknown run 'zzz': known are last, a39, a38, a37, a36, a35 …; list all")


def test_a_killed_run_is_resumed_in_another_program(store: Store, run_id: int, path: Path) -> None:
    store.write_round(run_id, [make_measurement(make_point(8)), make_measurement(make_point(64))])
    store.set_status(run_id, make_point(8), PointStatus.PRECISE)
    with Store.open(path) as other:
        assert other.run(run_id).info == make_info()
        assert [each.status for each in other.points(run_id)] == [PointStatus.PRECISE, PointStatus.PENDING]
        other.resume_run(run_id)
        other.write_round(run_id, [make_measurement(make_point(64), round_=1)])
        assert [len(other.measurements(each)) for each in other.points(run_id)] == [1, 2]


def test_runs_are_listed_oldest_first(store: Store) -> None:
    assert store.runs() == []
    points = [make_point(8, "tcp"), make_point(16, "tcp"), make_point(8, "shm")]
    first, second = store.create_run(make_info("a"), points), store.create_run(make_info(), [])
    store.set_status(first, points[0], PointStatus.PRECISE)
    store.set_status(first, points[2], PointStatus.PRECISE)
    listed = store.runs()
    assert [(run.id, run.label, run.transports) for run in listed] == [(first, "a", ("shm", "tcp")), (second, None, ())]
    assert dict(listed[0].points) == {PointStatus.PRECISE: 2, PointStatus.PENDING: 1}
    assert (listed[0].command, listed[0].status, listed[0].rounds) == ("hockney quick", RunStatus.KILLED, 0)


def test_unknown_run_number_is_a_usage_error(store: Store) -> None:
    with pytest.raises(UsageError, match="there is no run 3"):
        store.run(3)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("1", 1),
        ("4", 4),
        ("last", 5),
        ("last~0", 5),
        ("last~4", 1),
        ("nightly", 4),  # the newest of its name
        ("nightly~1", 2),
        ("a~1", 3),  # a label in the form of a step back
        ("2026", 1),  # a number that is a label only
        ("5", 5),  # a number wins over the label that run 1 does not have
    ],
)
def test_run_is_found(store: Store, reference: str, expected: int) -> None:
    for label in ("2026", "nightly", "a~1", "nightly", "last"):
        store.create_run(make_info(label), [])
    assert store.find_run(reference) == expected


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("17", "there is no run 17 in {path}; list its runs"),
        ("nigthly", "unknown run 'nigthly': did you mean 'nightly'?"),
        ("lats", "unknown run 'lats': did you mean 'last'?"),
        ("last~3", "'last~3' goes back too far: there are 3 runs; list all"),
        ("nightly~1", "'nightly~1' goes back too far: there is 1 run of that name; list all"),
        ("zzz", "unknown run 'zzz': known are last, nightly, 3, 2, 1"),
        ("", "unknown run '': known are last, nightly, 3, 2, 1"),
        ("~1", "unknown run '~1': did you mean '1'?"),
        ("-1", "unknown run '-1': did you mean '1'?"),
    ],
)
def test_run_that_is_not_there(store: Store, reference: str, text: str) -> None:
    for label in (None, "nightly", None):
        store.create_run(make_info(label), [])
    with pytest.raises(UsageError) as caught:
        store.find_run(reference)
    assert str(caught.value) == text.format(path=store.path)


def test_no_run_at_all(store: Store) -> None:
    with pytest.raises(UsageError, match=r"there are no runs in .* yet"):
        store.find_run("last")


def test_runs_that_are_all_damaged_are_not_called_none(store: Store, run_id: int, path: Path) -> None:
    run_sql(path, "UPDATE run SET label = 'x'")
    with (
        pytest.warns(DamagedRowWarning, match=f"run {run_id} is damaged and left out"),
        pytest.raises(WrongStoreError, match=f"run {run_id} is damaged; name another run, or restore the file"),
    ):
        store.find_run("last")


def test_damaged_measurements_are_counted_and_points_without_another_named(
    store: Store, run_id: int, path: Path
) -> None:
    sizes = [1 << power for power in range(5)]
    store.add_points(run_id, map(make_point, sizes))
    store.write_round(run_id, [make_measurement(make_point(size)) for size in (*sizes, 1)])
    run_sql(path, "UPDATE measurement SET verified = 0 WHERE id > 1")
    with pytest.warns(DamagedRowWarning) as said:
        assert len(store.summaries(run_id)) == 1
    counted, lost = (str(warning.message) for warning in said)
    assert counted.endswith(f"5 measurements of run {run_id} are damaged and left out")
    names = "; ".join(str(make_point(size)) for size in (8, 2, 4))  # as they were added
    assert lost.endswith(f"run {run_id} has therefore no figure of {names}; and 1 more point")


def test_snapshot_sees_one_moment(store: Store, run_id: int, path: Path) -> None:
    with Store.open(path, readonly=True) as reader:
        with reader.snapshot():
            assert reader.summaries(run_id) == []
            store.write_round(run_id, [make_measurement()])
            assert reader.summaries(run_id) == []
        assert len(reader.summaries(run_id)) == 1


def test_damaged_samples_are_named_and_the_others_keep_their_states(store: Store, run_id: int, path: Path) -> None:
    floors = [(27.0, 28.0), (184.0, 190.0), (27.0, 28.0)]
    store.write_round(run_id, [make_measurement(round_=at, floor_ns=floor) for at, floor in enumerate(floors)])
    run_sql(path, "UPDATE measurement_samples SET elapsed_ns = x'01aa' WHERE measurement_id = 1")
    series = Run(store, run_id).series[0]
    said = r"results\.db: a measurement of pingpong of 8 B on shm, 2 ranks is damaged and left out"
    with pytest.warns(DamagedRowWarning, match=said):
        assert [measurement.round for measurement in series.measurements] == [1, 2]
    with pytest.warns(DamagedRowWarning, match=said):
        assert [state.name for state in series.states] == ["far", "near"]
    with pytest.warns(DamagedRowWarning, match=said):
        assert len(store.summaries(run_id)) == 2


def test_damage_that_shows_after_opening_is_wrong_usage_until_something_is_written(path: Path) -> None:
    with Store.open(path) as store:
        run_id = store.create_run(make_info(), [make_point()])
    ((page,),) = run_sql(path, "SELECT rootpage FROM sqlite_master WHERE name = 'run'")
    ((page_bytes,),) = run_sql(path, "PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((page - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)
    for readonly in (False, True):
        with Store.open(path, readonly=readonly) as store, pytest.raises(WrongStoreError, match="it is damaged"):
            store.run(run_id)
    with Store.open(path) as store:
        store.set_status(run_id, make_point(), PointStatus.TIME_UP)
        with pytest.raises(StoreError, match="it is damaged") as caught:
            store.run(run_id)
    assert caught.value.exit_code == 3, "something may have been measured"


def test_a_run_is_running_while_somebody_measures_it(store: Store, run_id: int) -> None:
    with alone(store.path, run_id):
        assert (store.run(run_id).status, store.runs()[0].status) == (RunStatus.RUNNING, RunStatus.RUNNING)
        with pytest.raises(UsageError, match="being measured by another"), alone(store.path, run_id):
            pass
    assert (store.run(run_id).status, store.runs()[0].status) == (RunStatus.KILLED, RunStatus.KILLED)


def test_a_skipped_point_is_neither_planned_nor_measured(store: Store) -> None:
    """Though it has measurements: it was skipped later. One of 64 B has none yet, and one failed after its first."""
    points = [make_point(size) for size in (8, 16, 64, 512)]
    run_id = store.create_run(make_info(), points)
    launch_id = store.add_launch(run_id, make_launch())
    store.write_round(run_id, [make_measurement(points[at], launch_id=launch_id) for at in (0, 1, 3)])
    store.set_status(run_id, points[1], PointStatus.SKIPPED, "too long")
    store.set_status(run_id, points[3], PointStatus.FAILED, "rank 1 hung")
    (run,) = store.runs()
    assert (run.planned, run.measured) == (3, 2)
