"""The results store: one SQLite file that a measuring run fills round by round and every other command reads."""

from __future__ import annotations

import contextlib
import sqlite3
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hockney.errors import DamagedRowWarning, StoreError, UsageError, WrongStoreError
from hockney.model import Launch, Measurement, Point, PointStatus, RunInfo, RunStatus, Warning_
from hockney.results.store import codec, opening, rows
from hockney.results.store.checks import DamagedRow
from hockney.results.store.lock import alone, is_measured_now
from hockney.results.store.records import MeasurementSummary, RunSummary, StoredPoint, StoredRun
from hockney.results.store.references import find_run
from hockney.stats.states import State, classify
from hockney.units import counted

Value = TypeVar("Value")

# When a run without an end was last heard of: it began or went on, or a measurement of it was stored.
_SEEN = """max(started_unix_s, coalesce(resumed_unix_s, 0), coalesce((SELECT max(measurement.started_unix_s)
    FROM measurement JOIN point ON point.id = point_id WHERE run_id = run.id), 0))"""


class Store:
    """An open results file; a context manager. Every method raises StoreError where the file can't be used.

    What a writing method has returned from survives a kill of this program. Several programs may write at once.
    A Store belongs to the thread that opened it.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self.path = path
        self._has_written = False
        self._opened = opening.identity(path)
        self._point_ids: dict[int, dict[Point, int]] = {}  # by run; only this program adds points to its runs
        self._launches_of: dict[int, dict[int, Launch]] = {}  # by run, those read so far: they never change

    @classmethod
    def open(cls, path: Path | str | None = None, *, create: bool = True, readonly: bool = False) -> Store:
        """Open `path`, else what HOCKNEY_STORE names, else `results.db` in the user's data folder.

        A missing or empty file is made, or is a StoreError if `create` is false or `readonly` is true. Of folders only
        the user's data folder is made. `readonly` also opens files that may not be written.
        """
        where = opening.default_path() if path is None else Path(path)
        db = opening.connect_to_read(where) if readonly else opening.connect_to_write(where, create=create)
        return cls(db, where)

    def close(self) -> None:
        with self._border():
            if self._has_written and not self.is_in_place():
                # SQLite leaves the log of a file that was moved where it is: its runs would lose their end, and the
                # next file of that name would get it.
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return opening.identity(self.path) == self._opened

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- writing -------------------------------------------------------------------------------------------------

    def create_run(
        self,
        info: RunInfo,
        points: Iterable[Point],
        skipped: Mapping[Point, str] | None = None,
        *,
        lock: Callable[[int], object] | None = None,
    ) -> int:
        """Store a run that starts now, with its points, or nothing; returns its number.

        `skipped` are points that cannot be measured, and why. `lock` is called with the number before anyone else can
        see the run: without its lock, others would take it for killed.
        """
        row = rows.run_row(info)
        with self._transaction():
            run_id = self._insert("run", f"{rows.RUN}, status, idle_s", (*row, RunStatus.RUNNING.value, 0.0))
            self._insert_points(run_id, points, skipped)
            if lock is not None:
                lock(run_id)
        return run_id

    def resume_run(self, run_id: int) -> None:
        """Set a run's status to "running" again; the time since its end, or since it was last seen, was idle."""
        now_s = time.time()
        with self._transaction():
            self._db.execute(
                "UPDATE run SET status = ?, finished_unix_s = NULL, resumed_unix_s = ?, idle_s = idle_s + max(0, ? - "
                f"coalesce(finished_unix_s, {_SEEN})) WHERE id = ?",
                (RunStatus.RUNNING.value, now_s, now_s, run_id),
            )

    def finish_run(self, run_id: int, status: RunStatus) -> None:
        """Store how a run ended, and that it ended now."""
        with self._transaction(run_id):
            self._db.execute(
                "UPDATE run SET status = ?, finished_unix_s = ? WHERE id = ?", (status.value, time.time(), run_id)
            )

    def label_run(self, run_id: int, label: str | None) -> None:
        """Give a run another label, or none."""
        with self._transaction():
            self._db.execute("UPDATE run SET label = ? WHERE id = ?", (label, run_id))

    def delete_runs(self, run_ids: Sequence[int]) -> None:
        """Delete runs with all that was measured of them, or none. Raises UsageError for one that is being measured."""
        of_run = "point_id IN (SELECT id FROM point WHERE run_id = ?)"
        with contextlib.ExitStack() as held:
            for run_id in run_ids:
                held.enter_context(alone(self.path, run_id))
            with self._transaction():
                for run_id in run_ids:
                    for table, where in (
                        ("measurement_samples", f"measurement_id IN (SELECT id FROM measurement WHERE {of_run})"),
                        ("measurement", of_run),
                        *((table, "run_id = ?") for table in ("point", "launch", "warning")),
                        ("run", "id = ?"),
                    ):
                        self._db.execute(f"DELETE FROM {table} WHERE {where}", (run_id,))

    def add_launch(self, run_id: int, launch: Launch) -> int:
        """Store one start of a job; gives the `launch_id` of its measurements."""
        with self._transaction(run_id):
            return self._insert("launch", f"run_id, {rows.LAUNCH}", (run_id, *rows.launch_row(launch)))

    def add_points(self, run_id: int, points: Sequence[Point]) -> dict[Point, int]:
        """Store points as "pending"; returns their ids. Points that the run has already keep their status and role."""
        with self._transaction(run_id):
            self._insert_points(run_id, points)
        ids = self._point_ids[run_id] = {stored.point: stored.id for stored in self._points_of(run_id, {})}
        return {point: ids[point] for point in points}

    def write_round(self, run_id: int, measurements: Sequence[Measurement]) -> None:
        """Store all measurements of a round, or none: one transaction.

        On a full disk nothing is half-written and the StoreError says how many rounds are stored. Raises ValueError
        for a measurement to a point that was not added.
        """
        ids = [self._point_id(run_id, measurement.point) for measurement in measurements]
        packed = [
            (rows.measurement_row(measurement, point_id), codec.encode(measurement.elapsed_ns))
            for measurement, point_id in zip(measurements, ids, strict=True)
        ]
        with self._transaction(run_id):
            for row, blob in packed:
                measurement_id = self._insert("measurement", f"{rows.MEASUREMENT}, {rows.MEASUREMENT_FIGURES}", row)
                self._insert("measurement_samples", "measurement_id, elapsed_ns", (measurement_id, blob))
            self._db.execute("UPDATE run SET rounds = rounds + 1 WHERE id = ?", (run_id,))

    def set_status(self, run_id: int, point: Point, status: PointStatus, reason: str | None = None) -> None:
        """Store how far a point got, and why. Raises ValueError for a point that was not added."""
        point_id = self._point_id(run_id, point)
        with self._transaction(run_id):
            self._db.execute(
                "UPDATE point SET status = ?, reason = ? WHERE id = ?", (status.value, reason or None, point_id)
            )

    def add_warning(self, run_id: int, warning: Warning_) -> None:
        """Store a warning; one that the run has already is not stored twice."""
        columns = f"run_id, {rows.WARNING}"
        with self._transaction(run_id):
            self._db.execute(
                f"INSERT OR IGNORE INTO warning ({columns}) VALUES ({rows.holes(columns)})",
                (run_id, warning.kind, warning.subject, warning.cause, warning.remedy),
            )

    # ---- reading -------------------------------------------------------------------------------------------------

    def runs(self) -> list[RunSummary]:
        """All runs, oldest first."""
        points: dict[int, Counter[PointStatus]] = {}
        transports: dict[int, set[str]] = {}
        counts = self._all("SELECT run_id, transport, status, count(*) FROM point GROUP BY run_id, transport, status")
        for run_id, *row, count in counts:
            known = self._sound(f"{counted(count, 'point')} of run {run_id}", rows.point_status_of, row)
            if known is not None:
                transport, status = known
                points.setdefault(run_id, Counter())[status] += count
                transports.setdefault(run_id, set()).add(transport)
        measured: dict[int, int] = dict(
            self._all(
                """SELECT run_id, count(*) FROM point WHERE status != ?
                AND EXISTS (SELECT 1 FROM measurement WHERE point_id = point.id) GROUP BY run_id""",
                PointStatus.SKIPPED.value,
            )
        )

        def summary(row: rows.Row) -> RunSummary:
            run_id = row[0]
            names = tuple(sorted(transports.get(run_id, ())))
            status = self._status(run_id, row[6])
            return rows.summary_of_run(row, status, names, points.get(run_id, {}), measured.get(run_id, 0))

        found = self._all(
            f"""SELECT id, label, command, suite, started_unix_s, finished_unix_s, status, rounds, idle_s,
            coalesce(finished_unix_s, {_SEEN}) FROM run ORDER BY id"""
        )
        summaries = (self._sound(f"run {row[0]}", summary, row) for row in found)
        return [each for each in summaries if each is not None]

    def _status(self, run_id: int, stored: object) -> RunStatus:
        """A killed program cannot store the end of its run, but its lock is gone. Raises DamagedRow."""
        status = rows.status_of(stored)
        is_left = status is RunStatus.RUNNING and not is_measured_now(self.path, run_id)
        return RunStatus.KILLED if is_left else status

    def find_run(self, reference: str) -> int:
        """The number of a run, from its number, its label (the newest run that has it), or `last`.

        `last~2` is the second before the last, `LABEL~1` the one before with this label. Raises UsageError, which
        names the nearest that there is.
        """
        found = self._all("SELECT id, label FROM run ORDER BY id DESC")
        known = [(int(run_id), label if isinstance(label, str) else None) for run_id, label in found]
        if not known:
            raise UsageError(f"there are no runs in {self.path} yet; measure one", argv=("hockney", "quick"))
        return find_run(reference, known)

    def run(self, run_id: int) -> StoredRun:
        """All of a run but its points. Raises UsageError for an unknown number."""
        found = self._all(f"SELECT id, status, finished_unix_s, rounds, {rows.RUN} FROM run WHERE id = ?", run_id)
        if not found:
            raise UsageError(f"there is no run {run_id} in {self.path}")
        stored = self._all(f"SELECT {rows.WARNING} FROM warning WHERE run_id = ? ORDER BY id", run_id)
        known = (self._sound(f"a warning of run {run_id}", rows.warning_of, row) for row in stored)
        try:
            status = self._status(run_id, found[0][1])
            limits = tuple(warning for warning in known if warning is not None)
            return rows.run_of(found[0], status, dict(self._launches(run_id)), limits)
        except DamagedRow as damage:
            raise WrongStoreError(
                f"results file {self.path}: run {run_id} is damaged (its {damage.column}); look at another run, or "
                "restore the file from a copy"
            ) from damage

    def _launches(self, run_id: int) -> Mapping[int, Launch]:
        known = self._launches_of.setdefault(run_id, {})
        new = f"SELECT id, {rows.LAUNCH} FROM launch WHERE run_id = ? AND id > ? ORDER BY id"
        for row in self._all(new, run_id, max(known, default=0)):
            launch = self._sound(f"launch {row[0]} of run {run_id}", rows.launch_of, row[1:])
            if launch is not None:
                known[row[0]] = launch
        return known

    def points(self, run_id: int) -> list[StoredPoint]:
        """All points of a run in the order they were added."""
        return self._points_of(run_id, rows.facts_of(*self._all("SELECT facts FROM run WHERE id = ?", run_id)))

    def _points_of(self, run_id: int, facts: Mapping[str, Any]) -> list[StoredPoint]:
        found = self._all(f"SELECT id, status, reason, {rows.POINT} FROM point WHERE run_id = ? ORDER BY id", run_id)
        points = (self._sound(f"a point of run {run_id}", lambda r: rows.point_of(r, facts), row) for row in found)
        return [point for point in points if point is not None]

    def summaries(self, run_id: int) -> list[MeasurementSummary]:
        """All measurements of a run without their samples, by point, then in the order of writing."""
        found = self._all(
            f"""SELECT {rows.SUMMARY} FROM point JOIN measurement ON measurement.point_id = point.id
            WHERE point.run_id = ? ORDER BY measurement.point_id, measurement.id""",
            run_id,
        )
        launches = self._launches(run_id)
        found = self._with_launch(found, launches, f"run {run_id}")
        summaries, damaged = rows.summaries_of(found, launches)
        for column in damaged:
            self._leave_out(f"a measurement of run {run_id}", column)
        return summaries

    def _with_launch(self, found: Sequence[rows.Row], launches: Mapping[int, Launch], whose: str) -> list[rows.Row]:
        """The rows (SUMMARY or MEASUREMENT) whose launch is known; the others are left out."""
        known = [row for row in found if row[1] in launches]
        if len(known) < len(found):
            self._leave_out(f"a measurement of {whose}", "launch_id")
        return known

    def _sound(self, what: str, read: Callable[[rows.Row], Value], row: Sequence[object]) -> Value | None:
        """The value of a row; a damaged one is named, and left out."""
        try:
            return read(tuple(row))
        except DamagedRow as damage:
            self._leave_out(what, damage.column)
            return None

    def _leave_out(self, what: str, column: str) -> None:
        text = f"results file {self.path}: {what} is damaged (its {column.rpartition('.')[2]}) and left out"
        warnings.warn(DamagedRowWarning(text), stacklevel=3)

    def states(self, run_id: int) -> dict[int, list[State]]:
        """The states of the machine at each measurement by point id, in the order of writing."""
        by_point: dict[int, list[State]] = {}
        for summary, state in self.summaries_with_states(run_id):
            by_point.setdefault(summary.point_id, []).append(state)
        return by_point

    def summaries_with_states(self, run_id: int) -> list[tuple[MeasurementSummary, State]]:
        """As `summaries`, each with the state of the machine then, classified over the whole run."""
        summaries = self.summaries(run_id)
        return list(zip(summaries, classify([each.signs for each in summaries]), strict=True))

    def measurements(self, stored: StoredPoint) -> list[Measurement]:
        """A point's measurements with their samples, in the order of writing."""
        found = self._all(
            f"""SELECT {rows.MEASUREMENT}, elapsed_ns FROM measurement
            LEFT JOIN measurement_samples ON measurement_id = measurement.id
            WHERE point_id = ? ORDER BY measurement.id""",
            stored.id,
        )
        if not found:
            return []
        (run_id,) = self._all("SELECT run_id FROM point WHERE id = ?", stored.id)[0]
        launches = self._launches(run_id)

        def measurement(row: rows.Row) -> Measurement:
            whole = self._sound(
                f"a measurement of {stored.point}", lambda r: rows.measurement_of(r, stored.point, launches), row
            )
            return rows.measurement_without_samples(stored.point, row[1]) if whole is None else whole

        try:
            return [measurement(row) for row in self._with_launch(found, launches, str(stored.point))]
        except StoreError as error:
            kind = StoreError if self._has_written else WrongStoreError
            raise kind(f"results file {self.path}: {stored.point}: {error}") from error

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, all reads see the file at one moment, whatever others write. Nothing may be written."""
        with self._border():
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):  # a failed read has ended it already
                self._db.execute("ROLLBACK")

    # ---- inside --------------------------------------------------------------------------------------------------

    def _point_id(self, run_id: int, point: Point) -> int:
        if run_id not in self._point_ids:
            self._point_ids[run_id] = {stored.point: stored.id for stored in self._points_of(run_id, {})}
        point_id = self._point_ids[run_id].get(point)
        if point_id is None:
            raise ValueError(f"{point} was not added to run {run_id}")
        return point_id

    def _insert(self, table: str, columns: str, row: rows.Row) -> int:
        cursor = self._db.execute(f"INSERT INTO {table} ({columns}) VALUES ({rows.holes(columns)})", row)
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _insert_points(self, run_id: int, points: Iterable[Point], skipped: Mapping[Point, str] | None = None) -> None:
        reasons = skipped or {}
        columns = f"run_id, status, reason, {rows.POINT}"
        self._db.executemany(
            f"INSERT OR IGNORE INTO point ({columns}) VALUES ({rows.holes(columns)})",
            [
                (
                    run_id,
                    (PointStatus.SKIPPED if point in reasons else PointStatus.PENDING).value,
                    reasons.get(point),
                    *rows.point_row(point),
                )
                for point in (*points, *reasons)
            ],
        )

    def _all(self, query: str, *values: object) -> list[rows.Row]:
        with self._border():
            return self._db.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self, run_id: int | None = None) -> Iterator[None]:
        """All of the body or nothing; the write lock is taken at its begin."""
        with self._border(run_id):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
                self._has_written = True
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                    self._db.execute("ROLLBACK")
                raise

    def _border(self, run_id: int | None = None) -> contextlib.AbstractContextManager[None]:
        """An error before anything is written means that the wrong file was named; later, data may be lost."""
        if not self._has_written and run_id is None:
            return opening.border(self.path)
        return opening.border(self.path, lambda: "" if run_id is None else self._saved(run_id))

    def _saved(self, run_id: int) -> str:
        """What the error adds that ends a run: how much of it is stored; "" where even reading fails."""
        try:
            (rounds,) = self._db.execute("SELECT rounds FROM run WHERE id = ?", (run_id,)).fetchone()
        except (sqlite3.Error, TypeError):
            return ""
        return f"; stored up to here: {counted(rounds, 'round')} of run {run_id}, which can be resumed"
