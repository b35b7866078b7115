"""Copies the runs of another results file, each one whole and once.

Each run is a separate transaction, so that a program which measures into the store waits for one run at most. A copy
that ends early has copied whole runs, and continues when it is repeated.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hockney.errors import DamagedRowWarning, UsageError
from hockney.results.store import opening
from hockney.results.store.lock import is_measured_now
from hockney.results.store.rows import ACCEPTED, Row, pack
from hockney.results.store.store import Store

_IDENTITY = ("started_unix_s", "seed", "command", "plan")  # of a run: what stays when it is resumed
HERE, DAMAGED, MEASURED = "here already", "damaged", "being measured"  # why a run is not copied
FEWER = "here with fewer measurements"  # it was resumed there
OTHER = "here with other measurements"  # it was resumed here and there
LEFT_OUT = (FEWER, OTHER, DAMAGED, MEASURED)  # so that something is missing
_CHILDREN = ("launch", "point", "warning")


class Merged(NamedTuple):
    """A run of another file: its number there, and here, if it is here; `why` it was not copied; empty: it was."""

    was: int
    run: int | None
    why: str = ""


def merge(store: Store, path: Path) -> list[Merged]:
    """Copy the runs of a results file, the oldest first. Raises StoreError, and UsageError for the file itself."""
    if opening.identity(path) == opening.identity(store.path):
        raise UsageError(f"{path} is the results file itself: name another one, or with --store the one to copy to")
    with Store.open(path, readonly=True) as other, other.snapshot():
        runs = sorted(other._runs(), key=lambda row: (row["started_unix_s"], row["id"]))
        return [_merged(store, other, run) for run in runs]


def _merged(store: Store, other: Store, run: Row) -> Merged:
    there, number = run["id"], _number_of(store, run)
    if number is None:
        if is_measured_now(other.path, there):
            return Merged(there, None, MEASURED)
        if not _is_whole(other, there):
            return Merged(there, None, DAMAGED)
        rows = _rows_of(other, there)
        with store._transaction():
            number = _number_of(store, run)  # another program may have copied it meanwhile
            if number is None:
                return Merged(there, _insert(store, run, rows))
    theirs, ours = _measurements(other, there), _measurements(store, number)
    return Merged(there, number, HERE if theirs <= ours else FEWER if ours <= theirs else OTHER)


def _number_of(store: Store, run: Row) -> int | None:
    """The number of a run's copy, if it is here."""
    same = " AND ".join(f"{name} = ?" for name in _IDENTITY)
    with store.snapshot():
        found = store.tables.read(f"SELECT * FROM run WHERE {same}", *(run[name] for name in _IDENTITY))
    return found[0][0]["id"] if found else None


def _measurements(store: Store, number: int) -> set[tuple[float, int]]:
    """When each measurement of a run began, and the checksum of its samples."""
    query = "SELECT measurement.started_unix_s, samples_crc FROM point JOIN measurement ON point_id = point.id"
    with store.snapshot():
        return {*store.db.execute(f"{query} WHERE run_id = ?", (number,))}


def _is_whole(other: Store, number: int) -> bool:
    """Whether no row of a run is damaged or lost."""
    with warnings.catch_warnings(record=True) as damaged:
        warnings.simplefilter("always", DamagedRowWarning)
        for read in (other.run, other.points, other.summaries):
            read(number)
    return not damaged


def _rows_of(other: Store, number: int) -> dict[str, list[Row]]:
    """The rows of a run by their tables; those of measurements with their samples."""
    queries = {table: f"SELECT * FROM {table} WHERE run_id = ? ORDER BY id" for table in _CHILDREN}
    queries["measurement"] = """SELECT measurement.*, elapsed_ns FROM point JOIN measurement ON point_id = point.id
        JOIN measurement_samples ON measurement_id = measurement.id WHERE run_id = ? ORDER BY measurement.id"""
    return {table: [row for row, _ in other.tables.read(query, number)] for table, query in queries.items()}


def _insert(store: Store, run: Row, rows: Mapping[str, Sequence[Row]]) -> int:
    """The number of a run's copy, which nobody accepted as the baseline here."""
    facts = {name: value for name, value in json.loads(run["facts"]).items() if name != ACCEPTED}
    values = _without(run, *(f"{table}_ids" for table in _CHILDREN))
    number = store.tables.insert("run", {**values, "facts": pack(facts)})
    ids: dict[str, dict[int, int]] = {table: {} for table in _CHILDREN}
    for table in _CHILDREN:
        for row in rows[table]:
            ids[table][row["id"]] = store.tables.insert(table, {**_without(row, "measurement_ids"), "run_id": number})
    for row in rows["measurement"]:
        parents = {f"{table}_id": ids[table][row[f"{table}_id"]] for table in ("point", "launch")}
        copy = store.tables.insert("measurement", {**_without(row, "elapsed_ns"), **parents})
        store.db.execute("INSERT INTO measurement_samples VALUES (?, ?)", (copy, row["elapsed_ns"]))
    return number


def _without(row: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("id", "checksum", *names)}
