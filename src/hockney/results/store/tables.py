"""The rows of a results file: read with their checksums, and written with these and the sums of ids (schema.py)."""

from __future__ import annotations

import sqlite3
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hockney.errors import DamagedRowWarning
from hockney.results.store import schema
from hockney.results.store.rows import Row
from hockney.units import counted


class SealedTables:
    """The tables behind a connection. Rows that are damaged or lost are reported, and left out.

    `sums`: by table, row and column, what the transaction will add to it.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.db = db
        self.path = path
        self.sums: defaultdict[tuple[str, int, str], float] = defaultdict(int)

    def read(self, query: str, *values: object) -> list[tuple[Row, bool]]:
        """Rows of whole tables, and whether each is sound."""
        cursor = self.db.execute(query, values)
        names = [column[0] for column in cursor.description]
        end = names.index("checksum") + 1
        return [(dict(zip(names, row, strict=True)), schema.is_sound(row[:end])) for row in cursor]

    def rows(self, what: str, parent: str, query: str, *values: object) -> tuple[list[Row], Counter[Any]]:
        """The sound rows, and the sum of the ids of all, by the column `parent`. The damaged are reported as `what`."""
        found: list[Row] = []
        ids: Counter[Any] = Counter()
        damaged: Counter[str] = Counter()
        for row, is_sound in self.read(query, *values):
            ids[row[parent]] += row["id"]
            if is_sound:
                found.append(row)
            else:
                damaged[what.format_map(row)] += 1
        for text, count in damaged.items():
            self.report_damaged(text, count)
        return found, ids

    def row(self, table: str, row_id: int) -> Row:
        """A row that must be there. Raises sqlite3.DatabaseError for a damaged one."""
        for row, is_sound in self.read(f"SELECT * FROM {table} WHERE id = ?", row_id):
            if is_sound:
                return row
        raise sqlite3.DatabaseError(schema.DAMAGED)

    def compare(self, what: str, expected: int | None, ids: int) -> None:
        """Report a lost row: the stored sum of ids is another one than that of the rows read."""
        if expected != ids:
            self.report(f"{what} is missing; restore the file from a copy")

    def report_damaged(self, what: str, count: int) -> None:
        """Report that rows are left out: `what` names one, "a launch of run 7"."""
        kind, of, whole = what.removeprefix("a ").partition(" of ")
        several = f"{counted(count, kind)}{of}{whole} are"
        self.report(f"{several if count > 1 else f'{what} is'} damaged and left out")

    def report(self, text: str) -> None:
        warnings.warn(DamagedRowWarning(f"results file {self.path}: {text}"), stacklevel=4)

    def insert(self, table: str, values: Mapping[str, Any], how: str = "INSERT") -> int:
        """The id of a new row with its checksum, and in the sum of its parent; 0 if it was ignored."""
        query = f"{how} INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        cursor = self.db.execute(query, tuple(values.values()))
        if not cursor.rowcount:
            return 0
        assert cursor.lastrowid is not None
        schema.seal(self.db, table, cursor.lastrowid)
        parent = schema.PARENTS[table]
        self.sums[parent, values.get(f"{parent}_id", 1), f"{table}_ids"] += cursor.lastrowid
        return cursor.lastrowid

    def change(self, table: str, row_id: int, **values: object) -> None:
        """Change columns of a row. Raises sqlite3.DatabaseError for a damaged one, which stays as it is."""
        self.row(table, row_id)
        self.db.execute(
            f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?", (*values.values(), row_id)
        )
        schema.seal(self.db, table, row_id)

    def add_sums(self) -> None:
        """Write the sums at the end of a transaction."""
        by_row: defaultdict[tuple[str, int], dict[str, float]] = defaultdict(dict)
        for (table, row_id, column), more in self.sums.items():
            by_row[table, row_id][column] = more
        for (table, row_id), columns in by_row.items():
            row = self.row(table, row_id)
            self.change(table, row_id, **{column: row[column] + more for column, more in columns.items()})
