"""A full disk, a killed program, several writers: acknowledged data is there, and nothing is damaged."""

from __future__ import annotations

import contextlib
import random
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point
from tests.shared import finished

from hockney.errors import StoreError
from hockney.model import Point, RunStatus
from hockney.results.store import Store

POINTS = [make_point(size) for size in (8, 64, 4096)]


def samples_of(round_: int, point: Point) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The samples of a round follow from its number, so that every byte can be verified afterwards."""
    return np.random.default_rng([round_, point.bytes]).integers(0, 2**40, (2, 200))


def begin(store: Store) -> int:
    run_id = store.create_run(make_info(facts={"traits": {}}), POINTS)  # a disk is full of samples
    store.add_launch(run_id, make_launch())
    return run_id


def write(store: Store, run_id: int, round_: int) -> None:
    launch_id = next(iter(store.run(run_id).launches))
    store.write_round(
        run_id,
        [make_measurement(point, samples_of(round_, point), round_=round_, launch_id=launch_id) for point in POINTS],
    )


def assert_whole(path: Path, run_id: int, rounds: int) -> None:
    """This many whole rounds, every sample as written, and the file is sound and can be written."""
    with Store.open(path) as store:
        assert store.run(run_id).rounds == rounds
        for stored in store.points(run_id):
            measurements = store.measurements(stored).values()
            assert [measurement.round for measurement in measurements] == list(range(rounds))
            assert all(
                np.array_equal(measurement.elapsed_ns, samples_of(measurement.round, measurement.point))
                for measurement in measurements
            )
        store.finish_run(run_id, RunStatus.PARTIAL)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def refusal(store: Store, run_id: int, round_: int) -> str | None:
    try:
        write(store, run_id, round_)
    except StoreError as error:
        return str(error)
    return None


def write_until_it_fails(store: Store, run_id: int) -> tuple[int, str]:
    """Rounds acknowledged, and the sentence that ended it."""
    rounds = 0
    while (said := refusal(store, run_id, rounds)) is None:
        rounds += 1
    return rounds, said


def saved(rounds: int) -> str:
    count = f"{rounds} round{'' if rounds == 1 else 's'}"
    return f"; stored up to here: {count} of run 1, which can be resumed"


# ---- a full disk -----------------------------------------------------------------------------------------------------


def test_database_may_not_grow(path: Path) -> None:
    with Store.open(path) as store:
        run_id = begin(store)
        store.db.execute("PRAGMA max_page_count = 80")
        rounds, text = write_until_it_fails(store, run_id)
        assert text == f"results file {path}: the disk is full; make room{saved(rounds)}"
        assert rounds > 5
        store.db.execute("PRAGMA max_page_count = 1000000")
        write(store, run_id, rounds)  # room was made: the same store goes on
    assert_whole(path, run_id, rounds + 1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB. Only who may mount has one: root, or anybody's root under `unshare -rm`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    done = finished(argv)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here (`unshare -rm scripts/test` may): {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a test that fails leaves files open


def fill(folder: Path) -> None:
    with (folder / "rest").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


def fill_with_rounds(disk: Path) -> tuple[Store, int, int, str]:
    """A store next to a ballast, its run, the number of its rounds, and the sentence that ended it."""
    (disk / "ballast").write_bytes(bytes(400_000))
    store = Store.open(disk / "results.db")
    run_id = begin(store)
    rounds, text = write_until_it_fails(store, run_id)
    assert text.endswith(saved(rounds))
    return store, run_id, rounds, text


def test_disk_is_full(small_disk: Path) -> None:
    store, run_id, rounds, text = fill_with_rounds(small_disk)
    assert "the disk is full" in text
    assert rounds > 5
    (small_disk / "ballast").unlink()
    write(store, run_id, rounds)
    store.close()
    assert_whole(small_disk / "results.db", run_id, rounds + 1)


def test_disk_stays_full(small_disk: Path) -> None:
    store, run_id, rounds, text = fill_with_rounds(small_disk)
    assert write_until_it_fails(store, run_id)[1] == text
    with contextlib.suppress(StoreError):
        store.finish_run(run_id, RunStatus.STOPPED)
    store.close()
    path = small_disk / "results.db"
    fill(small_disk)
    with Store.open(path, readonly=True) as reader:
        assert [len(reader.measurements(stored)) for stored in reader.points(run_id)] == [rounds] * 3
    with Store.open(path) as store, pytest.raises(StoreError, match=f"full.*stored up to here: {rounds} rounds"):
        write(store, run_id, rounds)
    (small_disk / "ballast").unlink()
    assert_whole(path, run_id, rounds)


def test_disk_is_full_before_the_store_is_made(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(StoreError, match="full"):
        Store.open(small_disk / "results.db")
    (small_disk / "rest").unlink()
    with Store.open(small_disk / "results.db") as store:
        begin(store)


WRITER = """
import sys
from pathlib import Path
from hockney.results.store import Store
from tests.results.store import test_faults as here
store = Store.open(sys.argv[1])
run_id = here.begin(store)
for round_ in range(int(sys.argv[2])):
    try:
        here.write(store, run_id, round_)
    except here.StoreError as error:
        print(error)
        break
    print(run_id, round_, flush=True)
store.close()
"""


@pytest.fixture
def writer(path: Path, child_environment: dict[str, str]) -> Callable[..., subprocess.Popen[str]]:
    """Starts a program that writes rounds into a new run and prints `run round` when one is acknowledged."""

    def start(rounds: int, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(rounds)],
            stdout=subprocess.PIPE,
            env=child_environment,
            text=True,
            preexec_fn=before,
        )

    return start


def test_file_size_is_limited(path: Path, writer: Callable[..., subprocess.Popen[str]]) -> None:
    """As with a quota: writes fail, but not because the disk is full."""
    child = writer(10_000, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)))
    said = child.communicate(timeout=120)[0].splitlines()
    assert child.returncode == 0
    rounds = len(said) - 1
    assert rounds > 5
    assert said[-1].startswith(f"results file {path}: ")
    assert "full" in said[-1]
    assert said[-1].endswith(saved(rounds))
    assert_whole(path, 1, rounds)


# ---- kill -9 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 2, 13, 40])
def test_killed_writer_loses_nothing_acknowledged(
    path: Path, writer: Callable[..., subprocess.Popen[str]], after: int
) -> None:
    child = writer(1_000_000)
    assert child.stdout is not None
    said = [child.stdout.readline() for _ in range(after)]
    for _ in range(random.Random(after).randrange(2000)):  # somewhere in the middle of a round
        pass
    child.send_signal(signal.SIGKILL)
    said += child.stdout.readlines()
    child.wait(timeout=60)
    child.stdout.close()
    acknowledged = sum(line.endswith("\n") for line in said)
    assert acknowledged >= after
    with Store.open(path, readonly=True) as store:
        assert store.run(1).status is RunStatus.KILLED
        stored = store.run(1).rounds
        assert stored - acknowledged in (0, 1)  # the last may have been stored and not yet said
    assert_whole(path, 1, stored)


# ---- concurrent programs ---------------------------------------------------------------------------------------------


def test_several_runs_into_one_store(path: Path, writer: Callable[..., subprocess.Popen[str]]) -> None:
    children = [writer(30) for _ in range(3)]
    said = [child.communicate(timeout=120)[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    numbers = [int(lines[0].split()[0]) for lines in said]
    assert sorted(numbers) == [1, 2, 3]
    for run_id, lines in zip(numbers, said, strict=True):
        assert lines == [f"{run_id} {round_}" for round_ in range(30)]
        assert_whole(path, run_id, 30)


def test_a_file_that_is_moved_while_it_is_written_keeps_all_of_its_run(tmp_path: Path) -> None:
    with Store.open(tmp_path / "before") as store:
        number = store.create_run(make_info("moved"), [])
        (tmp_path / "before").rename(tmp_path / "after")
        store.finish_run(number, RunStatus.DONE)
    with Store.open(tmp_path / "after", readonly=True) as store:
        assert [(run.label, run.status) for run in store.runs()] == [("moved", RunStatus.DONE)]
    log = tmp_path / "before-wal"
    assert not log.exists() or log.stat().st_size == 0, "the next file of that name would get it"
