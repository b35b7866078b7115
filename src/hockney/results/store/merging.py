"""Copies the runs of another results file: each one whole and once, and all of them or none."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
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
LEFT_OUT = (FEWER, DAMAGED, MEASURED)  # so that something is missing
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
    with Store.open(path, readonly=True) as other, other.snapshot(), store._transaction():
        return list(_merged(store, other))


def _merged(store: Store, other: Store) -> Iterator[Merged]:
    known = {_identity(run): run for run, _ in store._read("SELECT * FROM run")}
    with other.snapshot():  # names that file in errors
        there = other._runs()
    for run in sorted(there, key=lambda row: (row["started_unix_s"], row["id"])):
        here = known.get(_identity(run))
        if here is not None:
            yield Merged(run["id"], here["id"], FEWER if here["rounds"] < run["rounds"] else HERE)
        elif is_measured_now(other.path, run["id"]):
            yield Merged(run["id"], None, MEASURED)
        elif not _is_whole(other, run["id"]):
            yield Merged(run["id"], None, DAMAGED)
        else:
            number = _copied(store, other, run)
            known[_identity(run)] = {**run, "id": number}
            yield Merged(run["id"], number)


def _identity(run: Row) -> tuple[object, ...]:
    return tuple(run[name] for name in _IDENTITY)


def _is_whole(other: Store, number: int) -> bool:
    """Whether no row of a run is damaged or lost."""
    with warnings.catch_warnings(record=True) as damaged:
        warnings.simplefilter("always", DamagedRowWarning)
        for read in (other.run, other.points, other.summaries):
            read(number)
    return not damaged


def _copied(store: Store, other: Store, run: Row) -> int:
    """The number of a run's copy, which nobody accepted as the baseline here."""
    facts = {name: value for name, value in json.loads(run["facts"]).items() if name != ACCEPTED}
    values = _without(run, *(f"{table}_ids" for table in _CHILDREN))
    number = store._insert("run", {**values, "facts": pack(facts)})
    ids: dict[str, dict[int, int]] = {table: {} for table in _CHILDREN}
    with other.snapshot():
        query = "SELECT * FROM {} WHERE run_id = ? ORDER BY id"
        rows = {table: other._read(query.format(table), run["id"]) for table in _CHILDREN}
        measured = other._read(
            """SELECT measurement.*, elapsed_ns FROM point JOIN measurement ON point_id = point.id
            JOIN measurement_samples ON measurement_id = measurement.id WHERE run_id = ? ORDER BY measurement.id""",
            run["id"],
        )
    for table in _CHILDREN:
        for row, _ in rows[table]:
            ids[table][row["id"]] = store._insert(table, {**_without(row, "measurement_ids"), "run_id": number})
    for row, _ in measured:
        parents = {f"{table}_id": ids[table][row[f"{table}_id"]] for table in ("point", "launch")}
        copy = store._insert("measurement", {**_without(row, "elapsed_ns"), **parents})
        store.db.execute("INSERT INTO measurement_samples VALUES (?, ?)", (copy, row["elapsed_ns"]))
    return number


def _without(row: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("id", "checksum", *names)}
