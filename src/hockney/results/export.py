"""A run as CSV or Parquet (a row per series and state of the machine) or JSON (everything).

The version of the JSON, whose parts docs/json.md lists, grows if a name changes its meaning or is removed; new names
may come at any time. Parquet may have a row per sample of a rank instead. It needs pyarrow, an optional extra.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, TextIO

from hockney.errors import UsageError
from hockney.model import Measurement
from hockney.results.figures import COLUMNS, Figure
from hockney.results.rates import highest_rates
from hockney.results.runs import Run, Series
from hockney.stats import State
from hockney.units import printable

FORMAT = "hockney-export"
VERSION = 3
# Fields of a figure that CSV calls otherwise.
_IN_CSV = {
    "value_ns": "time_ns",
    "low_ns": "time_low_ns",
    "high_ns": "time_high_ns",
    "n_measurements": "measurements",
    "n_samples": "samples",
    "n_launches": "launches",
    "n_left_out": "left_out",
    "is_short": "short",
}
_OF_POINT = {"run": int, "transport": str, "pattern": str, "ranks": int, "bytes": int, "options": str}
CSV_COLUMNS: Mapping[str, type] = {
    name: _OF_POINT.get(name, str)
    for name in ("run", "label", "transport", "library", "pattern", "ranks", "bytes", "options", "role", "status")
} | {
    "reason": str,
    **{_IN_CSV.get(name, name): kind for name, (kind, _) in COLUMNS.items()},
    "timed": str,
    "divisor": int,
    "bytes_per_rep": int,
    "messages_per_rep": int,
    "algorithm": str,
}
"""The type of each column of CSV and Parquet."""
_SAMPLE_COLUMNS = _OF_POINT | {
    "launch_id": int,
    "round": int,
    "state": str,
    "batch": int,
    "divisor": int,
    "rank": int,
    "sample": int,
    "elapsed_ns": float,
}


def write_csv(run: Run, stream: TextIO) -> None:
    """One row per series and state; a series without samples has one row, with its status and reason.

    `shown` marks the one row of a series that screens show. Unknown is an empty field. The stream must be open with
    `newline=""`.
    """
    writer = csv.DictWriter(stream, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for series in run.each_series():
        for row in rows_of(run, series):
            writer.writerow({name: _cell(value) if isinstance(value, str) else value for name, value in row.items()})


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula; `printable` leaves no tab or carriage return at its begin."""
    return f"'{printable(text)}" if text.startswith(("=", "+", "-", "@")) else printable(text)


def rows_of(run: Run, series: Series) -> list[dict[str, Any]]:
    """The rows of a series by column: one per state; one without a figure where it has no samples."""
    front = _csv_front(run, series)
    return [
        front | {_IN_CSV.get(name, name): value for name, value in (figure.columns() | vars(figure.definition)).items()}
        for figure in series.figures()
    ] or [front]


def _csv_front(run: Run, series: Series) -> dict[str, object]:
    """The values that all rows of a series share, by column."""
    return {
        **_series_front(series),
        "run": run.id,
        "label": run.label,
        "library": "; ".join(dict.fromkeys(launch.library for launch in series.launches)),
        "options": " ".join(f"{name}={value}" for name, value in series.point.options),
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
    kinds = _SAMPLE_COLUMNS if samples else CSV_COLUMNS
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


def _samples(run: Run, series: Series) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """For each measurement the columns that all its rows share, and the others: a row per sample of each rank."""
    import numpy as np

    imported, front = run.info.is_imported, _csv_front(run, series)
    for measurement, state in zip(series.measurements, series.states, strict=True):
        ranks, count = measurement.elapsed_ns.shape
        same = {
            **{name: front[name] for name in _OF_POINT},
            "launch_id": measurement.launch_id,
            "round": measurement.round,
            "state": state.name,
            "batch": None if imported else measurement.batch,
            "divisor": measurement.definition.divisor,
        }
        columns = {
            "rank": np.repeat(np.arange(ranks), count),
            "sample": np.tile(np.arange(count), ranks),
            "elapsed_ns": measurement.elapsed_ns.reshape(-1) / (measurement.batch if imported else 1),
        }
        yield same, columns


def write_json(run: Run, stream: TextIO, *, samples: bool = False) -> None:
    """The whole run, series by series; `samples`: with every sample of every rank."""
    head: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "run": _json_run(run),
        "facts": run.facts,
        "launches": launches_json(run),
        "warnings": [dataclasses.asdict(warning) for warning in run.warnings],
    }
    if highest := highest_rates(run):
        head["deadline_ns"] = highest.deadline_ns
        head["rates"] = [{**vars(rate), "point": rate.point.as_json()} for rate in highest.rates]
    stream.write("{\n")
    for name, value in head.items():
        stream.write(f"{_json(name)}: {_json(value)},\n")
    stream.write('"series": [')
    for i, series in enumerate(run.each_series()):
        pairs = zip(series.measurements, series.states, strict=True)
        measurements = [_json_measurement(measurement, state, samples=samples) for measurement, state in pairs]
        if run.info.is_imported:
            measurements = list(map(_without_batch, measurements))
        stream.write(("," if i else "") + "\n")
        stream.write(_json({**series_json(series, series.figures()), "measurements": measurements}))
    stream.write("\n]\n}\n")


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)  # in ASCII: nothing in it steers a terminal


def _json_run(run: Run) -> dict[str, object]:
    info = {name: value for name, value in vars(run.info).items() if name not in ("facts", "version")}
    return {
        "id": run.id,
        **info,
        "hockney_version": run.info.version,
        "status": run.ending,
        "finished_unix_s": run.finished_unix_s,
        "rounds": run.rounds,
    }


def launches_json(run: Run) -> list[dict[str, object]]:
    """The launches as JSON holds them; of those of another benchmark little is known."""
    unknown = dict.fromkeys(("started_unix_s", "oversubscribed", "clock_ns")) if run.info.is_imported else {}
    return [{"id": number, **dataclasses.asdict(launch), **unknown} for number, launch in run.launches.items()]


def figure_json(figure: Figure) -> dict[str, Any]:
    """A figure in JSON form."""
    return {**figure.columns(), "definition": dataclasses.asdict(figure.definition)}


def series_json(series: Series, figures: Iterable[Figure]) -> dict[str, Any]:
    """A series in JSON form, without its measurements."""
    return {**_series_front(series), "figures": list(map(figure_json, figures))}


def _series_front(series: Series) -> dict[str, Any]:
    """What every export says of a series."""
    return {
        **series.point.as_json(),
        "status": series.status.value,
        "reason": series.reason,
    }


def _json_measurement(measurement: Measurement, state: State, *, samples: bool) -> dict[str, Any]:
    left_out = ("point", "places", "elapsed_ns")
    plain = {name: value for name, value in vars(measurement).items() if name not in left_out}
    plain |= {"state": state.name, "definition": dataclasses.asdict(measurement.definition)}
    return plain | {"elapsed_ns": measurement.elapsed_ns.tolist()} if samples else plain


def _without_batch(measurement: dict[str, Any]) -> dict[str, Any]:
    """One of another benchmark, whose batch is not known: its time is that of one repetition."""
    unknown: dict[str, Any] = {"batch": None, "started_unix_s": None, "verified": measurement["verified"] or None}
    if "elapsed_ns" in measurement:
        batch = measurement["batch"]
        unknown["elapsed_ns"] = [[elapsed_ns / batch for elapsed_ns in rank] for rank in measurement["elapsed_ns"]]
    return measurement | unknown
