"""The results store: one SQLite file that a measuring run fills round by round and every other command reads."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.errors import StoreError, UsageError, WrongStoreError, unknown
from hockney.model import Definition, Launch, Measurement, Point, PointStatus, RunInfo, RunStatus, Warning_
from hockney.results.store import codec, opening, rows
from hockney.results.store.lock import alone, is_measured_now
from hockney.results.store.rows import MeasurementSummary, RunSummary, StoredPoint, StoredRun
from hockney.results.store.schema import roll_back, transaction
from hockney.results.store.tables import SealedTables
from hockney.units import counted, parse_count

_Packed = tuple[Point, dict[str, Any], bytes]


class Store:
    """An open results file; a context manager. Every method raises StoreError where the file can't be used.

    Data survives a kill of this program once the writing method has returned. Several programs may write concurrently.
    A Store belongs to the thread that opened it. `db` is its connection, `tables` are the rows.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.db = db
        self.path = path
        self.tables = SealedTables(db, path)
        self._has_written = False
        self._opened = opening.identity(path)
        self._launches_of: dict[int, tuple[int, Mapping[int, Launch]]] = {}  # by run: the sum of their ids, and they
        self._timed_s: dict[int, float] = {}  # by run measured here: up to when its time is stored (monotonic clock)

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
            if self._has_written and not self.is_unmoved:
                # SQLite leaves the log of a file that was moved where it is: its runs would lose their end, and the
                # next file of that name would get it.
                with contextlib.suppress(sqlite3.Error):
                    self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.db.close()

    @property
    def is_unmoved(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return opening.identity(self.path) == self._opened

    def check_unmoved(self) -> None:
        """Raises StoreError if the path no longer leads to the file that was opened: a run in it may be lost."""
        if not self.is_unmoved:
            raise StoreError(f"the results file {self.path} was removed, moved or replaced during this run")

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
        with self._transaction():
            run_id = self.tables.insert("run", {**rows.run_values(info), "status": RunStatus.RUNNING.value})
            self._insert_points(run_id, points, skipped or {})
            if lock is not None:
                lock(run_id)
        self._timed_s[run_id] = time.monotonic()
        return run_id

    def import_run(self, info: RunInfo, launches: Sequence[Launch], measurements: Sequence[Measurement]) -> int:
        """Store a run of another benchmark whole; returns its number. A `launch_id` is an index in `launches`."""
        ended = {"status": RunStatus.DONE.value, "finished_unix_s": time.time(), "rounds": 1}
        with self._transaction():
            run_id = self.tables.insert("run", {**rows.run_values(info), **ended})
            ids = [
                self.tables.insert("launch", {"run_id": run_id, **rows.launch_values(launch)}) for launch in launches
            ]
            self._insert_points(run_id, [each.point for each in measurements], {}, PointStatus.IMPORTED)
            stored = [replace(each, launch_id=ids[each.launch_id]) for each in measurements]
            self._insert_measurements(run_id, _packed(stored))
        return run_id

    def resume_run(self, run_id: int) -> None:
        """Set a run's status to "running" again; the time since it was last written to was idle."""
        with self._transaction():
            self.tables.change("run", run_id, status=RunStatus.RUNNING.value, finished_unix_s=None)
        self._timed_s[run_id] = time.monotonic()

    def finish_run(self, run_id: int, status: RunStatus) -> None:
        """Store how a run ended, and that it ended now."""
        with self._transaction(run_id):
            self.tables.change("run", run_id, status=status.value, finished_unix_s=time.time())

    def add_to_facts(self, run_id: int, name: str, value: object) -> None:
        """Append a value to a list in the facts of a run, which may be new."""
        with self._transaction(run_id):
            self._add_to_facts(run_id, name, value)

    def _add_to_facts(self, run_id: int, name: str, value: object) -> None:
        facts = json.loads(self.tables.row("run", run_id)["facts"])
        facts.setdefault(name, []).append(value)
        self.tables.change("run", run_id, facts=rows.pack(facts))

    def label_run(self, run_id: int, label: str | None) -> None:
        """Give a run another label, or none."""
        with self._transaction():
            self.tables.change("run", run_id, label=label)

    def accept_run(self, run_id: int, by: str) -> None:
        """Make a run the baseline of checks, in place of the one accepted before."""
        with self._transaction():
            before = self.accepted()
            values = {"by": by, "at_unix_s": time.time(), "replaces": before.id if before else None}
            if before:
                self._add_to_facts(before.id, rows.ACCEPTED, {**(before.accepted or {}), "replaced_by": run_id})
            self._add_to_facts(run_id, rows.ACCEPTED, {**values, "replaced_by": None})

    def accepted(self) -> RunSummary | None:
        """The run that is accepted as the baseline of checks."""
        return rows.accepted_of(self.runs())

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
                    self.tables.sums["store", 1, "run_ids"] -= run_id

    def add_launch(self, run_id: int, launch: Launch) -> int:
        """Store one start of a job; gives the `launch_id` of its measurements."""
        with self._transaction(run_id):
            return self.tables.insert("launch", {"run_id": run_id, **rows.launch_values(launch)})

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
            self.tables.sums["run", run_id, "rounds"] += 1

    def set_status(self, run_id: int, point: Point, status: PointStatus, reason: str | None = None) -> None:
        """Store how far a point got, and why. Raises ValueError for a point that was not added."""
        with self._transaction(run_id):
            self.tables.change("point", self._point_id(run_id, point), status=status.value, reason=reason or None)

    def add_warning(self, run_id: int, warning: Warning_) -> None:
        """Store a warning; one that the run has already is not stored twice."""
        with self._transaction(run_id):
            self.tables.insert("warning", {"run_id": run_id, **vars(warning)}, "INSERT OR IGNORE")

    # ---- reading -------------------------------------------------------------------------------------------------

    def runs(self) -> list[RunSummary]:
        """All runs, oldest first."""
        with self.snapshot():
            points, ids = self.tables.rows("a point of run {run_id}", "run_id", "SELECT * FROM point")
            runs = self._runs()
        of_run: defaultdict[int, list[rows.Row]] = defaultdict(list)
        for point in points:
            of_run[point["run_id"]].append(point)
        for row in runs:
            self.tables.compare(f"a point of run {row['id']}", row["point_ids"], ids[row["id"]])
        return [rows.run_summary(row, self._status(row), of_run[row["id"]]) for row in runs]

    def last_runs(self, suite: str, label: str | None, number: int) -> list[int]:
        """The numbers of the last runs of a suite with this label, the newest first; no others are read."""
        query = "SELECT * FROM run WHERE suite = ? AND label IS ? ORDER BY started_unix_s DESC LIMIT ?"
        with self.snapshot():
            found, _ = self.tables.rows("run {id}", "store_id", query, suite, label, number)
        return [row["id"] for row in found]

    def _runs(self) -> list[rows.Row]:
        runs, ids = self.tables.rows("run {id}", "store_id", "SELECT * FROM run ORDER BY id")
        stores, _ = self.tables.rows("the list of runs", "id", "SELECT * FROM store")
        self.tables.compare("a run", stores[0]["run_ids"] if stores else None, ids[1])
        return runs

    def _status(self, row: rows.Row) -> RunStatus:
        """A killed program cannot store the end of its run, but its lock is gone."""
        status = RunStatus(row["status"])
        is_left = status is RunStatus.RUNNING and not is_measured_now(self.path, row["id"])
        return RunStatus.KILLED if is_left else status

    def find_run(self, reference: str) -> int:
        """The number of a run, from its number, its label (the newest run that has it), `last`, or `accepted`.

        `last~2` is the second before the last, `LABEL~1` the one before with this label. Raises UsageError.
        """
        number = parse_count(reference, 1 << 62, 0)
        with self.snapshot():
            if number is not None and self.tables.read("SELECT * FROM run WHERE id = ?", number):
                return number
            stored = [*reversed(self._runs())]
            labels: dict[int, str | None] = {row["id"]: row["label"] for row in stored}
            for row, _ in [] if labels else self.tables.read("SELECT * FROM run ORDER BY id"):
                self._run(row["id"])  # it is damaged, as all are
        if not labels:
            raise UsageError(f"there are no runs in {self.path} yet; measure one", argv=("hockney", "quick"))
        if reference == rows.ACCEPTED and reference not in labels.values() and (accepted := self.accepted()):
            return accepted.id
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
        with self.snapshot():
            row = self._run(run_id)
            launches, warned = dict(self._launches(row)), self._children(row, "warning")
        return rows.stored_run(row, self._status(row), launches, tuple(map(rows.warning, warned)))

    def _run(self, run_id: int) -> rows.Row:
        for row, is_sound in self.tables.read("SELECT * FROM run WHERE id = ?", run_id):
            if is_sound and rows.has_facts(row):
                return row
            text = f"results file {self.path}: run {run_id} is damaged; name another run, or restore the file"
            raise WrongStoreError(f"{text} from a copy")
        raise UsageError(f"there is no run {run_id} in {self.path}; list its runs", argv=("hockney", "runs"))

    def _launches(self, run: rows.Row) -> Mapping[int, Launch]:
        """Those of a run, by number. They are read again if there are new ones: they never change."""
        ids, known = self._launches_of.get(run["id"], (0, {}))
        if ids != run["launch_ids"]:
            known = {row["id"]: rows.launch(row) for row in self._children(run, "launch")}
            self._launches_of[run["id"]] = run["launch_ids"], known
        return known

    def _children(self, run: rows.Row, table: str) -> list[rows.Row]:
        what = f"a {table} of run {run['id']}"
        found, ids = self.tables.rows(what, "run_id", f"SELECT * FROM {table} WHERE run_id = ? ORDER BY id", run["id"])
        self.tables.compare(what, run[f"{table}_ids"], ids[run["id"]])
        return found

    def points(self, run_id: int) -> list[StoredPoint]:
        """All points of a run in the order they were added."""
        with self.snapshot():
            run = self._run(run_id)
            points = self._children(run, "point")
        facts = json.loads(run["facts"])
        return [rows.stored_point(row, facts) for row in points]

    def summaries(self, run_id: int) -> list[MeasurementSummary]:
        """All measurements of a run by point, without samples; one whose samples are damaged is reported, left out."""
        with self.snapshot():
            run = self._run(run_id)
            launches = self._launches(run)
            points = {row["id"]: row for row in self._children(run, "point")}
            stored, ids = self.tables.rows(
                f"a measurement of run {run_id}",
                "point_id",
                """SELECT measurement.* FROM point JOIN measurement ON measurement.point_id = point.id
                WHERE point.run_id = ? ORDER BY measurement.point_id, measurement.id""",
                run_id,
            )
            without = self.db.execute(
                """SELECT measurement.id, point_id FROM point JOIN measurement ON measurement.point_id = point.id
                LEFT JOIN measurement_samples ON measurement_id = measurement.id
                WHERE point.run_id = ? AND crc32(elapsed_ns) IS NOT samples_crc""",
                (run_id,),
            ).fetchall()
        damaged = {number for number, _ in without}
        lost_samples = Counter(row["point_id"] for row in stored if row["id"] in damaged)
        stored = [row for row in stored if row["id"] not in damaged]
        for point_id, row in points.items():
            what = f"a measurement of {rows.stored_point(row, {}).point}"
            if lost_samples[point_id]:
                self.tables.report_damaged(what, lost_samples[point_id])
            self.tables.compare(what, row["measurement_ids"], ids[point_id])
        sound = {row["point_id"] for row in stored}
        lost = [str(rows.stored_point(points[each], {}).point) for each in points if each in ids and each not in sound]
        if lost:
            more = f"; and {counted(len(lost) - 3, 'more point')}" if lost[3:] else ""
            self.tables.report(f"run {run_id} has therefore no figure of {'; '.join(lost[:3])}{more}")
        definitions: dict[Any, Definition] = {}
        return [
            rows.measurement_summary(row, points[row["point_id"]]["transport"], launches, definitions)
            for row in stored
            if row["launch_id"] in launches and row["point_id"] in points
        ]

    def measurements(self, stored: StoredPoint) -> dict[int, Measurement]:
        """A point's measurements with their samples, by their number, in the order of writing."""
        what = f"a measurement of {stored.point}"
        with self.snapshot():
            point = self.tables.row("point", stored.id)
            listed, ids = self.tables.rows(
                what,
                "point_id",
                """SELECT measurement.*, elapsed_ns FROM measurement
                LEFT JOIN measurement_samples ON measurement_id = measurement.id
                WHERE point_id = ? ORDER BY measurement.id""",
                stored.id,
            )
            _, launches = self._launches_of.get(point["run_id"], (0, {}))
            if any(row["launch_id"] not in launches for row in listed):
                launches = self._launches(self._run(point["run_id"]))
        self.tables.compare(what, point["measurement_ids"], ids[stored.id])
        known = {}
        for row in listed:
            if row["launch_id"] in launches:
                try:
                    known[row["id"]] = rows.measurement(row, stored.point, launches)
                except (ValueError, TypeError):  # samples that are damaged, or are not there
                    self.tables.report(f"{what} is damaged and left out")
        return known

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, all reads see the file at one moment, during writes of others as well. Nothing may be written."""
        with self._border(), contextlib.ExitStack() as end:
            if not self.db.in_transaction:
                self.db.execute("BEGIN")
                end.callback(roll_back, self.db)  # a failed read has ended it already
            yield

    # ---- inside --------------------------------------------------------------------------------------------------

    def _point_id(self, run_id: int, point: Point) -> int:
        values = {"run_id": run_id, **rows.point_values(point)}
        names = ("run_id", "transport", "pattern", "ranks", "bytes", "options")
        same = " AND ".join(f"{name} = :{name}" for name in names)
        row = self.db.execute(f"SELECT id FROM point WHERE {same}", values).fetchone()
        if row is None:
            raise ValueError(f"{point} was not added to run {run_id}")
        return int(row[0])

    def _insert_measurements(self, run_id: int, packed: Iterable[_Packed]) -> None:
        for point, values, blob in packed:
            measurement_id = self.tables.insert("measurement", {"point_id": self._point_id(run_id, point), **values})
            self.db.execute("INSERT INTO measurement_samples VALUES (?, ?)", (measurement_id, blob))

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
            self.tables.insert("point", values | rows.point_values(point), "INSERT OR IGNORE")

    @contextlib.contextmanager
    def _transaction(self, run_id: int | None = None) -> Iterator[None]:
        """All of the body or nothing; the write lock is taken at its begin. A run's time is stored along."""
        self.tables.sums.clear()
        with self._border(run_id), transaction(self.db):
            yield
            now_s = time.monotonic()
            if run_id in self._timed_s:
                self.tables.sums["run", run_id, "measured_s"] += now_s - self._timed_s[run_id]
            self.tables.add_sums()
        if run_id in self._timed_s:
            self._timed_s[run_id] = now_s
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
    packed = [(each, codec.encode(each.elapsed_ns)) for each in measurements]
    return [(each.point, rows.measurement_values(each, blob), blob) for each, blob in packed]
