"""Copies the runs of another results file: each one whole and once, and all of them or none."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hockney.errors import UsageError
from hockney.results.store import opening
from hockney.results.store.lock import is_measured_now
from hockney.results.store.rows import Row
from hockney.results.store.store import Store

_IDENTITY = ("started_unix_s", "seed", "command", "plan")  # of a run: what stays when it is resumed
HERE, DAMAGED, MEASURED = "here already", "damaged", "being measured"  # why a run is not copied
LEFT_OUT = (DAMAGED, MEASURED)  # so that something is missing
_CHILDREN = ("launch", "point", "warning")
_Tables = Mapping[str, Sequence[Row]]


class Merged(NamedTuple):
    """A run of another file: its number there, and here, if it is here; `why` it was not copied; empty: it was."""

    was: int
    run: int | None
    why: str = ""


def merge(store: Store, path: Path) -> list[Merged]:
    """Copy the runs of a results file, the oldest first. Raises StoreError, and UsageError for the file itself."""
    if opening.identity(path) == opening.identity(store.path):
        raise UsageError(f"{path} is the results file itself: name another one, or with --store the one to copy to")
    with Store.open(path, readonly=True) as other, other.snapshot(), store._transaction():
        return list(_merged(store, other))


def _merged(store: Store, other: Store) -> Iterator[Merged]:
    known = {_identity(run): run["id"] for run, _ in store._read("SELECT * FROM run")}
    with other.snapshot():
        there = other._read("SELECT * FROM run ORDER BY started_unix_s, id")
    for run, is_sound in there:
        if is_sound and _identity(run) in known:
            yield Merged(run["id"], known[_identity(run)], HERE)
        elif is_measured_now(other.path, run["id"]):
            yield Merged(run["id"], None, MEASURED)
        elif not is_sound or (tables := _tables(other, run)) is None:
            yield Merged(run["id"], None, DAMAGED)
        else:
            known[_identity(run)] = _copied(store, run, tables)
            yield Merged(run["id"], known[_identity(run)])


def _identity(run: Row) -> tuple[object, ...]:
    return tuple(run[name] for name in _IDENTITY)


def _tables(other: Store, run: Row) -> _Tables | None:
    """The rows that belong to a run, measurements with their samples; None if any is damaged or lost."""
    queries = {table: f"SELECT * FROM {table} WHERE run_id = ? ORDER BY id" for table in _CHILDREN}
    queries["measurement"] = """SELECT measurement.*, elapsed_ns FROM point JOIN measurement ON point_id = point.id
        LEFT JOIN measurement_samples ON measurement_id = measurement.id WHERE run_id = ? ORDER BY measurement.id"""
    with other.snapshot():  # names this file in errors
        read = {table: other._read(query, run["id"]) for table, query in queries.items()}
    tables = {table: [row for row, is_sound in found if is_sound] for table, found in read.items()}
    ids: Counter[Any] = Counter()
    for row in tables["measurement"]:
        ids[row["point_id"]] += row["id"]
    is_whole = (
        all(len(tables[table]) == len(read[table]) for table in read)
        and all(sum(row["id"] for row in tables[table]) == run[f"{table}_ids"] for table in _CHILDREN)
        and all(ids[row["id"]] == row["measurement_ids"] for row in tables["point"])
        and all(zlib.crc32(row["elapsed_ns"] or b"") == row["samples_crc"] for row in tables["measurement"])
    )
    return tables if is_whole else None


def _copied(store: Store, run: Row, tables: _Tables) -> int:
    """The number of a run's copy."""
    number = store._insert("run", _without(run, *(f"{table}_ids" for table in _CHILDREN)))
    ids: dict[str, dict[int, int]] = {table: {} for table in tables}
    for table in _CHILDREN:
        for row in tables[table]:
            ids[table][row["id"]] = store._insert(table, {**_without(row, "measurement_ids"), "run_id": number})
    for row in tables["measurement"]:
        parents = {f"{table}_id": ids[table][row[f"{table}_id"]] for table in ("point", "launch")}
        copy = store._insert("measurement", {**_without(row, "elapsed_ns"), **parents})
        store.db.execute("INSERT INTO measurement_samples VALUES (?, ?)", (copy, row["elapsed_ns"]))
    return number


def _without(row: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("id", "checksum", *names)}
