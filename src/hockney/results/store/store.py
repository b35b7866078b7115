"""The results store: one SQLite file that a measuring run fills round by round and every other command reads."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hockney.errors import DamagedRowWarning, UsageError, WrongStoreError, unknown
from hockney.model import Definition, Launch, Measurement, Point, PointStatus, RunInfo, RunStatus, Warning_
from hockney.results.store import codec, opening, rows
from hockney.results.store.lock import alone, is_measured_now
from hockney.results.store.rows import MeasurementSummary, RunSummary, StoredPoint, StoredRun
from hockney.results.store.schema import transaction
from hockney.units import counted, parse_count

Value = TypeVar("Value")
_Packed = tuple[Point, dict[str, Any], bytes]

# Last sign of life of a run without an end: it began or was resumed, or a measurement of it was stored.
_SEEN = """max(started_unix_s, coalesce(resumed_unix_s, 0), coalesce((SELECT max(measurement.started_unix_s)
    FROM measurement JOIN point ON point.id = point_id WHERE run_id = run.id), 0))"""


class Store:
    """An open results file; a context manager. Every method raises StoreError where the file can't be used.

    Data survives a kill of this program once the writing method has returned. Several programs may write concurrently.
    A Store belongs to the thread that opened it. `db` is its connection.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.db = db
        self.path = path
        self._has_written = False
        self._opened = opening.identity(path)
        self._launches_of: dict[int, dict[int, Launch]] = {}  # by run, those read so far: they never change

    @classmethod
    def open(cls, path: Path | str | None = None, *, create: bool = True, readonly: bool = False) -> Store:
        """Open `path`, else the file in HOCKNEY_STORE, else `results.db` in the user's data folder.

        A missing or empty file is created, or is a StoreError if `create` is false or `readonly` is true. The only
        folder created is the user's data folder. `readonly` also opens files that may not be written.
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
                    self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.db.close()

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return opening.identity(self.path) == self._opened

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
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
        values = {**rows.run_values(info), "status": RunStatus.RUNNING.value, "idle_s": 0.0}
        with self._transaction():
            run_id = self._insert("run", values)
            self._insert_points(run_id, points, skipped or {})
            if lock is not None:
                lock(run_id)
        return run_id

    def import_run(self, info: RunInfo, launches: Sequence[Launch], measurements: Sequence[Measurement]) -> int:
        """Store a run that another benchmark measured, whole or not at all; returns its number.

        The `launch_id` of a measurement is the place of its launch in `launches`.
        """
        now_s = time.time()
        ended = {"status": RunStatus.DONE.value, "idle_s": 0.0, "finished_unix_s": now_s, "rounds": 1}
        with self._transaction():
            run_id = self._insert("run", {**rows.run_values(info), **ended})
            ids = [self._insert("launch", {"run_id": run_id, **rows.launch_values(launch)}) for launch in launches]
            self._insert_points(run_id, [each.point for each in measurements], {}, PointStatus.IMPORTED)
            stored = [replace(each, launch_id=ids[each.launch_id]) for each in measurements]
            self._insert_measurements(run_id, _packed(stored))
        return run_id

    def resume_run(self, run_id: int) -> None:
        """Set a run's status to "running" again; the time since its end, or since it was last seen, was idle."""
        now_s = time.time()
        with self._transaction():
            self.db.execute(
                "UPDATE run SET status = ?, finished_unix_s = NULL, resumed_unix_s = ?, idle_s = idle_s + max(0, ? - "
                f"coalesce(finished_unix_s, {_SEEN})) WHERE id = ?",
                (RunStatus.RUNNING.value, now_s, now_s, run_id),
            )

    def finish_run(self, run_id: int, status: RunStatus) -> None:
        """Store how a run ended, and that it ended now."""
        with self._transaction(run_id):
            self.db.execute(
                "UPDATE run SET status = ?, finished_unix_s = ? WHERE id = ?", (status.value, time.time(), run_id)
            )

    def add_to_facts(self, run_id: int, name: str, value: object) -> None:
        """Append a value to a list in the facts of a run, which may be new."""
        with self._transaction(run_id):
            (text,) = self.db.execute("SELECT facts FROM run WHERE id = ?", (run_id,)).fetchone()
            facts = json.loads(text)
            facts.setdefault(name, []).append(value)
            self.db.execute("UPDATE run SET facts = ? WHERE id = ?", (rows.pack(facts), run_id))

    def label_run(self, run_id: int, label: str | None) -> None:
        """Give a run another label, or none."""
        with self._transaction():
            self.db.execute("UPDATE run SET label = ? WHERE id = ?", (label, run_id))

    def delete_runs(self, run_ids: Sequence[int]) -> None:
        """Delete runs with all their measurements, or none. Raises UsageError for a run that is being measured."""
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
                        self.db.execute(f"DELETE FROM {table} WHERE {where}", (run_id,))

    def add_launch(self, run_id: int, launch: Launch) -> int:
        """Store one start of a job; gives the `launch_id` of its measurements."""
        with self._transaction(run_id):
            return self._insert("launch", {"run_id": run_id, **rows.launch_values(launch)})

    def add_points(self, run_id: int, points: Iterable[Point]) -> None:
        """Store points as "pending". Points that the run has already keep their status and role."""
        with self._transaction(run_id):
            self._insert_points(run_id, points, {})

    def write_round(self, run_id: int, measurements: Sequence[Measurement]) -> None:
        """Store all measurements of a round, or none: one transaction.

        On a full disk nothing is half-written and the StoreError says how many rounds are stored. Raises ValueError
        for a measurement to a point that was not added.
        """
        packed = _packed(measurements)  # before the write lock is taken
        with self._transaction(run_id):
            self._insert_measurements(run_id, packed)
            self.db.execute("UPDATE run SET rounds = rounds + 1 WHERE id = ?", (run_id,))

    def set_status(self, run_id: int, point: Point, status: PointStatus, reason: str | None = None) -> None:
        """Store how far a point got, and why. Raises ValueError for a point that was not added."""
        with self._transaction(run_id):
            changed = (status.value, reason or None, self._point_id(run_id, point))
            self.db.execute("UPDATE point SET status = ?, reason = ? WHERE id = ?", changed)

    def add_warning(self, run_id: int, warning: Warning_) -> None:
        """Store a warning; one that the run has already is not stored twice."""
        with self._transaction(run_id):
            self._insert("warning", {"run_id": run_id, **vars(warning)}, "INSERT OR IGNORE")

    # ---- reading -------------------------------------------------------------------------------------------------

    def runs(self) -> list[RunSummary]:
        """All runs, oldest first."""
        points: dict[int, Counter[PointStatus]] = {}
        transports: dict[int, set[str]] = {}
        measured: Counter[int] = Counter()
        for run_id, transport, status, count, count_measured in self._all(
            f"""SELECT run_id, transport, status, count(*),
            sum(EXISTS (SELECT 1 FROM measurement WHERE point_id = point.id))
            FROM point WHERE {rows.condition(rows.STORED_POINT)} GROUP BY run_id, transport, status"""
        ):
            points.setdefault(run_id, Counter())[PointStatus(status)] += count
            transports.setdefault(run_id, set()).add(transport)
            measured[run_id] += 0 if status == PointStatus.SKIPPED.value else count_measured

        def summary(row: rows.Row) -> RunSummary:
            run_id, seen_unix_s = row[0], row[-1]
            return rows.run_summary(
                row[:-1],
                seen_unix_s=seen_unix_s,
                status=self._status(run_id, row[1]),
                transports=tuple(sorted(transports.get(run_id, ()))),
                points=points.get(run_id, {}),
                measured=measured[run_id],
            )

        listed = self._all(
            f"SELECT {rows.select(rows.RUN_SUMMARY)}, coalesce(finished_unix_s, {_SEEN}) FROM run ORDER BY id"
        )
        return self._sound("run {}", summary, listed)

    def _status(self, run_id: int, stored: str) -> RunStatus:
        """A killed program cannot store the end of its run, but its lock is gone. Raises ValueError."""
        status = RunStatus(stored)
        is_left = status is RunStatus.RUNNING and not is_measured_now(self.path, run_id)
        return RunStatus.KILLED if is_left else status

    def find_run(self, reference: str) -> int:
        """The number of a run, from its number, its label (the newest run that has it), or `last`.

        `last~2` is the second before the last, `LABEL~1` the one before with this label. Raises UsageError.
        """
        labels: dict[int, str | None] = dict(self._all("SELECT id, label FROM run ORDER BY id DESC"))
        if not labels:
            raise UsageError(f"there are no runs in {self.path} yet; measure one", argv=("hockney", "quick"))
        number = parse_count(reference, 1 << 62, 0)
        if number in labels:
            return number
        step = re.fullmatch(r"(.+)~(\d{1,18})", reference)
        for name, back in [(reference, 0), *([(step[1], int(step[2]))] if step else [])]:
            runs = [run_id for run_id, label in labels.items() if label == name or name == "last"]
            if back < len(runs):
                return runs[back]
            if back and runs:
                have = f"{'is' if len(runs) == 1 else 'are'} {counted(len(runs), 'run')}"
                have += " of that name" * (name != "last")
                raise UsageError(f"'{reference}' goes back too far: there {have}; list all", argv=("hockney", "runs"))
        if number is not None:
            raise UsageError(f"there is no run {number} in {self.path}; list its runs", argv=("hockney", "runs"))
        names = dict.fromkeys(filter(None, labels.values()))
        raise unknown("run", reference, ["last", *names, *map(str, labels)], listed_by=("hockney", "runs"))

    def run(self, run_id: int) -> StoredRun:
        """All of a run but its points. Raises UsageError for an unknown number."""
        stored = self._all(f"SELECT {rows.select(rows.STORED_RUN)} FROM run WHERE id = ?", run_id)
        if not stored:
            raise UsageError(f"there is no run {run_id} in {self.path}; list its runs", argv=("hockney", "runs"))
        limits = self._all(f"SELECT {rows.select(rows.WARNING)} FROM warning WHERE run_id = ? ORDER BY id", run_id)
        limits_read = tuple(self._sound(f"a warning of run {run_id}", rows.warning, limits))
        try:
            status = self._status(run_id, stored[0][1])
            return rows.stored_run(stored[0], status, dict(self._launches(run_id)), limits_read)
        except rows.DAMAGE as damage:
            raise WrongStoreError(
                f"results file {self.path}: run {run_id} is damaged; name another run, or restore the file from a copy"
            ) from damage

    def _launches(self, run_id: int) -> Mapping[int, Launch]:
        known = self._launches_of.setdefault(run_id, {})
        new = self._all(
            f"SELECT id, {rows.select(rows.LAUNCH)} FROM launch WHERE run_id = ? AND id > ? ORDER BY id",
            *(run_id, max(known, default=0)),
        )
        known |= self._sound(f"launch {{}} of run {run_id}", lambda row: (row[0], rows.launch(row[1:])), new)
        return known

    def points(self, run_id: int) -> list[StoredPoint]:
        """All points of a run in the order they were added."""
        facts: dict[str, Any] = {}
        with contextlib.suppress(*rows.DAMAGE):
            facts = dict(json.loads(self._all("SELECT facts FROM run WHERE id = ?", run_id)[0][0]))
        stored = self._all(f"SELECT {rows.select(rows.STORED_POINT)} FROM point WHERE run_id = ? ORDER BY id", run_id)
        return self._sound(f"a point of run {run_id}", lambda row: rows.stored_point(row, facts), stored)

    def summaries(self, run_id: int) -> list[MeasurementSummary]:
        """All measurements of a run without their samples, by point, then in the order of writing."""
        launches = self._launches(run_id)
        definitions: dict[rows.Row, Definition] = {}
        stored = self._all(
            f"""SELECT {rows.select(rows.SUMMARY)} FROM point JOIN measurement ON measurement.point_id = point.id
            WHERE point.run_id = ? ORDER BY measurement.point_id, measurement.id""",
            run_id,
        )
        return self._sound(
            f"a measurement of run {run_id}",
            lambda row: rows.measurement_summary(row, launches, definitions),
            [row for row in stored if row[2] in launches],
        )

    def measurements(self, stored: StoredPoint) -> dict[int, Measurement]:
        """A point's measurements with their samples, by their number, in the order of writing."""
        listed = self._all(
            f"""SELECT {rows.select(rows.MEASUREMENT)}, elapsed_ns FROM measurement
            LEFT JOIN measurement_samples ON measurement_id = measurement.id
            WHERE point_id = ? ORDER BY measurement.id""",
            stored.id,
        )
        if not listed:
            return {}
        launches = self._launches(self._all("SELECT run_id FROM point WHERE id = ?", stored.id)[0][0])
        return dict(
            self._sound(
                f"a measurement of {stored.point}",
                lambda row: (row[0], rows.measurement(row[:-1], row[-1], stored.point, launches)),
                [row for row in listed if row[1] in launches],
            )
        )

    def _sound(self, what: str, read: Callable[[rows.Row], Value], stored: Iterable[rows.Row]) -> list[Value]:
        """The values of rows. A damaged row is reported (`what`, with its first column), and left out."""
        values = []
        for row in stored:
            try:
                values.append(read(row))
            except rows.DAMAGE:  # noqa: PERF203  # each row by itself
                text = f"results file {self.path}: {what.format(row[0])} is damaged and left out"
                warnings.warn(DamagedRowWarning(text), stacklevel=3)
        return values

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, all reads see the file at one moment, during writes of others as well. Nothing may be written."""
        with self._border():
            self.db.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):  # a failed read has ended it already
                self.db.execute("ROLLBACK")

    # ---- inside --------------------------------------------------------------------------------------------------

    def _point_id(self, run_id: int, point: Point) -> int:
        values = {"run_id": run_id, **rows.point_values(point)}
        names = ("run_id", "transport", "pattern", "ranks", "bytes", "options")
        same = " AND ".join(f"{name} = :{name}" for name in names)
        row = self.db.execute(f"SELECT id FROM point WHERE {same}", values).fetchone()
        if row is None:
            raise ValueError(f"{point} was not added to run {run_id}")
        return int(row[0])

    def _insert(self, table: str, values: Mapping[str, Any], how: str = "INSERT") -> int:
        query = f"{how} INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        cursor = self.db.execute(query, tuple(values.values()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _insert_measurements(self, run_id: int, packed: Iterable[_Packed]) -> None:
        for point, values, blob in packed:
            measurement_id = self._insert("measurement", {"point_id": self._point_id(run_id, point), **values})
            self._insert("measurement_samples", {"measurement_id": measurement_id, "elapsed_ns": blob})

    def _insert_points(
        self,
        run_id: int,
        points: Iterable[Point],
        skipped: Mapping[Point, str],
        others: PointStatus = PointStatus.PENDING,
    ) -> None:
        for point in (*points, *skipped):
            status = PointStatus.SKIPPED if point in skipped else others
            values = {"run_id": run_id, "status": status.value, "reason": skipped.get(point)}
            self._insert("point", values | rows.point_values(point), "INSERT OR IGNORE")

    def _all(self, query: str, *values: object) -> list[rows.Row]:
        with self._border():
            return self.db.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self, run_id: int | None = None) -> Iterator[None]:
        """All of the body or nothing; the write lock is taken at its begin."""
        with self._border(run_id):
            with transaction(self.db):
                yield
            self._has_written = True

    def _border(self, run_id: int | None = None) -> contextlib.AbstractContextManager[None]:
        """An error before anything is written means that the wrong file was named; later, data may be lost."""
        if not self._has_written and run_id is None:
            return opening.border(self.path)
        return opening.border(self.path, lambda: "" if run_id is None else self._saved(run_id))

    def _saved(self, run_id: int) -> str:
        """The sentence about stored data in the error that ends a run; "" if even reading fails."""
        try:
            (rounds,) = self.db.execute("SELECT rounds FROM run WHERE id = ?", (run_id,)).fetchone()
        except (sqlite3.Error, TypeError):
            return ""
        return f"; stored up to here: {counted(rounds, 'round')} of run {run_id}, which can be resumed"


def _packed(measurements: Iterable[Measurement]) -> list[_Packed]:
    """The point, the columns and the samples of each measurement."""
    return [(each.point, rows.measurement_values(each), codec.encode(each.elapsed_ns)) for each in measurements]
