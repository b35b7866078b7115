"""A run as CSV (a row per series and state of the machine) or JSON (everything), written to a text stream.

The JSON has `"format": "hockney-export"` and `"version": 1`. The version grows when a name changes its meaning or goes;
new names may come at any time. Its parts: `run` (what was asked and how it ended), `facts` (the machine), `launches`,
`warnings`, and `series`, each with its point, status, `figures` and `measurements`; a measurement carries
`elapsed_ns`, per rank a list of samples, where they were asked for. Unknown is null. Names of quantities end in their
unit.
"""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TextIO

from hockney.model import Launch, Measurement, Point, PointStatus
from hockney.results.store.records import StoredPoint, StoredRun
from hockney.results.store.store import Store
from hockney.stats import UNKNOWN, Figure, State, figures_of
from hockney.units import printable

FORMAT = "hockney-export"
VERSION = 2

CSV_COLUMNS = (
    "run",
    "label",
    "transport",
    "library",
    "pattern",
    "ranks",
    "bytes",
    "options",
    "role",
    "status",
    "reason",
    "state",
    "floor_ns",
    "time_ns",
    "time_low_ns",
    "time_high_ns",
    "coverage",
    "interval_over",
    "between_launches",
    "within_launches",
    "launches_needed",
    "measurements",
    "samples",
    "launches",
    "minimum_ns",
    "p99_ns",
    "rate_bytes_per_s",
    "rate_low_bytes_per_s",
    "rate_high_bytes_per_s",
    "messages_per_s",
    "messages_low_per_s",
    "messages_high_per_s",
    "slowest_rank",
    "slowest_share",
    "verified",
    "batch",
    "left_out",
    "short",
    "timed",
    "divisor",
    "bytes_per_rep",
    "messages_per_rep",
    "algorithm",
    "oversubscribed",
)

_Series = tuple[StoredPoint, list[Measurement], list[State], list[Figure]]


def write_csv(store: Store, run_id: int, stream: TextIO) -> None:
    """One row per series and state; a series without samples has one row, with its status and reason.

    Unknown is an empty field. The stream must be open with `newline=""`. Raises UsageError for an unknown run.
    """
    with store.snapshot():
        run = store.run(run_id)
        writer = csv.DictWriter(stream, CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        for stored, measurements, _, figures in _all_series(store, run):
            front = _csv_front(run, stored, measurements)
            rows = [{**front, **_csv_figure(figure)} for figure in figures] or [front]
            writer.writerows({name: _csv_text(value) for name, value in row.items()} for row in rows)


def _csv_text(value: object) -> object:
    return printable(value) if isinstance(value, str) else value


def _csv_front(run: StoredRun, stored: StoredPoint, measurements: Sequence[Measurement]) -> dict[str, object]:
    point = stored.point
    launches = [run.launches[number] for number in dict.fromkeys(measurement.launch_id for measurement in measurements)]
    return {
        "run": run.id,
        "label": run.info.label,
        "transport": point.transport,
        "library": "; ".join(dict.fromkeys(launch.library for launch in launches)),
        "pattern": point.pattern,
        "ranks": point.ranks,
        "bytes": point.bytes,
        "options": " ".join(f"{name}={value}" for name, value in point.options),
        "role": point.role,
        "status": stored.status.value,
        "reason": stored.reason,
        "oversubscribed": any(launch.oversubscribed for launch in launches) if launches else None,
    }


def _csv_figure(figure: Figure) -> dict[str, object]:
    definition = dataclasses.asdict(figure.definition)
    plain = {name: value for name, value in dataclasses.asdict(figure).items() if name != "definition"}
    renamed = {
        "value_ns": "time_ns",
        "low_ns": "time_low_ns",
        "high_ns": "time_high_ns",
        "n_measurements": "measurements",
        "n_samples": "samples",
        "n_launches": "launches",
        "n_left_out": "left_out",
        "is_short": "short",
    }
    return {renamed.get(name, name): value for name, value in plain.items()} | definition


def write_json(store: Store, run_id: int, stream: TextIO, *, samples: bool = False) -> None:
    """The whole run, series by series; `samples`: with every sample of every rank. Raises UsageError."""
    with store.snapshot():
        run = store.run(run_id)
        head: dict[str, object] = {
            "format": FORMAT,
            "version": VERSION,
            "run": _json_run(run),
            "facts": run.info.facts,
            "launches": [launch_json(launch_id, launch) for launch_id, launch in run.launches.items()],
            "warnings": [dataclasses.asdict(warning) for warning in run.warnings],
        }
        stream.write("{\n")
        for name, value in head.items():
            stream.write(f"{_json(name)}: {_json(value)},\n")
        stream.write('"series": [')
        for i, series in enumerate(_all_series(store, run)):
            stream.write(("," if i else "") + "\n" + _json(_json_series(*series, samples=samples)))
        stream.write("\n]\n}\n")


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)  # in ASCII: nothing in it steers a terminal


def _json_run(run: StoredRun) -> dict[str, object]:
    info = run.info
    return {
        "id": run.id,
        "label": info.label,
        "command": info.command,
        "suite": info.suite,
        "status": run.status.value,
        "started_unix_s": info.started_unix_s,
        "finished_unix_s": run.finished_unix_s,
        "rounds": run.rounds,
        "seed": info.seed,
        "hockney_version": info.version,
        "plan": info.plan,
    }


def launch_json(launch_id: int, launch: Launch) -> dict[str, object]:
    """A launch as JSON holds it."""
    return {"id": launch_id, **dataclasses.asdict(launch)}


class Ended(Protocol):
    """A point and how far it got: a StoredPoint, or the library's Series."""

    @property
    def point(self) -> Point: ...
    @property
    def status(self) -> PointStatus: ...
    @property
    def reason(self) -> str | None: ...


def series_json(ended: Ended, figures: Iterable[Figure]) -> dict[str, Any]:
    """A series as JSON holds it, but for its measurements."""
    point = ended.point
    return {
        "transport": point.transport,
        "pattern": point.pattern,
        "ranks": point.ranks,
        "bytes": point.bytes,
        "options": dict(point.options),
        "role": point.role,
        "status": ended.status.value,
        "reason": ended.reason,
        "figures": [dataclasses.asdict(figure) for figure in figures],
    }


def _json_series(
    stored: StoredPoint, measurements: list[Measurement], states: list[State], figures: list[Figure], *, samples: bool
) -> dict[str, Any]:
    told = [
        _json_measurement(measurement, state, samples=samples)
        for measurement, state in zip(measurements, states, strict=True)
    ]
    return {**series_json(stored, figures), "measurements": told}


def _json_measurement(measurement: Measurement, state: State, *, samples: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "launch_id": measurement.launch_id,
        "round": measurement.round,
        "started_unix_s": measurement.started_unix_s,
        "started_ns": measurement.started_ns,
        "state": state.name,
        "floor_ns": measurement.floor_ns,
        "floor_kind": measurement.floor_kind,
        "pace_ns": measurement.pace_ns,
        "solo_ns": measurement.solo_ns,
        "steal": measurement.steal,
        "counters": {name: list(values) for name, values in measurement.counters.items()},
        "batch": measurement.batch,
        "verified": measurement.verified,
        "definition": dataclasses.asdict(measurement.definition),
        "cpu_user_ns": measurement.cpu_user_ns,
        "cpu_system_ns": measurement.cpu_system_ns,
        "wall_ns": measurement.wall_ns,
    }
    return plain | {"elapsed_ns": measurement.elapsed_ns.tolist()} if samples else plain


def _all_series(store: Store, run: StoredRun) -> Iterator[_Series]:
    states = store.states(run.id)
    for stored in store.points(run.id):
        measurements = store.measurements(stored)
        of_measurements = states.get(stored.id, [UNKNOWN] * len(measurements))
        yield (
            stored,
            measurements,
            of_measurements,
            figures_of(measurements, of_measurements, precision=run.info.plan.get("precision")),
        )
