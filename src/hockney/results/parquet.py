"""A run as a Parquet file: tidy, one row per series and machine state as in CSV, or one row per sample of a rank.

It needs pyarrow, an optional extra. Unknown is null.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from typing import IO, Any, get_type_hints

from hockney.errors import UsageError
from hockney.model import Definition
from hockney.results.export import CSV_COLUMNS, csv_front, figure_column, rows_of
from hockney.results.figures import COLUMNS
from hockney.results.runs import Run, Series

_OF_RUN = {"run": int, "label": str, "library": str, "ranks": int, "bytes": int, "oversubscribed": bool}
# Columns of a row of samples: those of CSV that it has, and others.
_POINT = {"run": int, "transport": str, "pattern": str, "ranks": int, "bytes": int, "options": str}
_SAMPLE = {
    **_POINT,
    "launch_id": int,
    "round": int,
    "state": str,
    "batch": int,
    "divisor": int,
    "rank": int,
    "sample": int,
    "elapsed_ns": float,
}


def write_parquet(run: Run, file: IO[bytes], *, samples: bool = False) -> None:
    """Write a run series by series. Raises UsageError without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(
            f"--parquet needs pyarrow: install it with {shlex.quote(sys.executable)} -m pip install pyarrow"
        ) from error
    arrow = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    kinds = _SAMPLE if samples else _column_kinds()
    schema = pa.schema([(name, arrow[kind]) for name, kind in kinds.items()])
    with pq.ParquetWriter(file, schema) as writer:
        if not samples:
            rows = [row for series in run.each_series() for row in rows_of(run, series)]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            return
        for series in run.each_series():
            tables = []
            for same, columns in _samples(run, series):
                count = len(columns["sample"])
                repeated = {
                    name: pa.repeat(pa.scalar(value, arrow[kinds[name]]), count) for name, value in same.items()
                }
                tables.append(pa.table({**repeated, **columns}, schema=schema))
            if tables:
                writer.write_table(pa.concat_tables(tables))


def _column_kinds() -> dict[str, type]:
    """The type of each column of the CSV, from the fields of a figure."""
    hints = {figure_column(name): kind for name, (kind, _) in COLUMNS.items()} | get_type_hints(Definition)
    kinds: dict[str, type] = {}
    for column in CSV_COLUMNS:
        kind = _OF_RUN.get(column, hints.get(column, str))
        kinds[column] = next(
            (part for part in (bool, int, float) if part in (kind, *getattr(kind, "__args__", ()))), str
        )
    return kinds


def _samples(run: Run, series: Series) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """For each measurement the columns that all its rows share, and the others: a row per sample of each rank."""
    import numpy as np

    imported, front = run.info.is_imported, csv_front(run, series)
    for measurement, state in zip(series.measurements, series.states, strict=True):
        ranks, count = measurement.elapsed_ns.shape
        elapsed_ns = measurement.elapsed_ns.reshape(-1) / (measurement.batch if imported else 1)
        same = {
            **{name: front[name] for name in _POINT},
            "launch_id": measurement.launch_id,
            "round": measurement.round,
            "state": state.name,
            "batch": None if imported else measurement.batch,
            "divisor": measurement.definition.divisor,
        }
        yield (
            same,
            {
                "rank": np.repeat(np.arange(ranks), count),
                "sample": np.tile(np.arange(count), ranks),
                "elapsed_ns": elapsed_ns,
            },
        )
