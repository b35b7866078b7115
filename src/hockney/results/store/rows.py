"""Values from and to rows: those of model.py, and those that only the store knows.

The columns of each table are listed here once, each with an SQL condition. A row that breaks its conditions was damaged
by a disk or an editor: its reader raises one of DAMAGE.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hockney.machine.facts import refuse_wrong_kinds
from hockney.model import (
    Definition,
    Launch,
    MachineProbe,
    Measurement,
    Point,
    PointStatus,
    RunInfo,
    RunStatus,
    Warning_,
)
from hockney.results.store import codec
from hockney.results.traits import pattern_traits, transport_traits
from hockney.units import RANKS_MAX

Row = tuple[Any, ...]
Columns = Mapping[str, str]
DAMAGE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


@dataclass(frozen=True)
class RunSummary:
    """One line of the list of runs. `points` counts them by status; statuses without a point are absent.

    `planned` counts the points that were not skipped, `measured` those of them with at least one measurement.
    `seen_unix_s` is the end of the run, or its last sign of life if it has no end. `idle_s` is the total time between
    an end and the resumption after it; None in a run of a version that did not store it.
    """

    id: int
    label: str | None
    command: str
    suite: str
    started_unix_s: float
    finished_unix_s: float | None
    seen_unix_s: float
    idle_s: float | None
    status: RunStatus
    rounds: int
    transports: tuple[str, ...]
    points: Mapping[PointStatus, int]
    measured: int

    @property
    def planned(self) -> int:
        return sum(self.points.values()) - self.points.get(PointStatus.SKIPPED, 0)

    @property
    def measured_s(self) -> float | None:
        """How long it was measured in total; None for a run that is running, was killed, or has no record of it."""
        return None if self.finished_unix_s is None else self.measured_least_s

    @property
    def measured_least_s(self) -> float | None:
        """The same, or without an end the time until its last sign of life, which is a lower bound."""
        return None if self.idle_s is None else self.seen_unix_s - self.started_unix_s - self.idle_s


@dataclass(frozen=True)
class StoredRun:
    """Everything about a run except its points and measurements; with these a killed run can continue.

    `launches` are keyed by launch id.
    """

    id: int
    info: RunInfo
    status: RunStatus
    finished_unix_s: float | None
    rounds: int
    launches: Mapping[int, Launch]
    warnings: tuple[Warning_, ...]


@dataclass(frozen=True)
class StoredPoint:
    """A point of a run and how far it got; `reason` is a sentence, or None."""

    id: int
    point: Point
    status: PointStatus
    reason: str | None


class MeasurementSummary(NamedTuple):
    """A measurement without its samples.

    `median_ns`, `min_ns` and `max_ns` of its samples are by the pattern's definition, None without samples. `probe`
    gives the machine state, together with all others of the run. `verified`: its payload was checked.
    """

    id: int
    point_id: int
    launch_id: int
    round: int
    samples: int
    batch: int
    definition: Definition
    median_ns: float | None
    min_ns: float | None
    max_ns: float | None
    verified: bool
    steal: float | None
    probe: MachineProbe
    counters: Mapping[str, tuple[float, ...]]


# ---- columns ---------------------------------------------------------------------------------------------------------


def _number(least: float, most: float) -> str:
    return f"{{0}} BETWEEN {least} AND {most}"  # to SQLite every text is more than any number


def _or_null(rule: str) -> str:
    return f"({{0}} IS NULL OR {rule})"


def _one_of(kind: type[enum.Enum]) -> str:
    return "{0} IN (" + ", ".join(f"'{member.value}'" for member in kind) + ")"


_TEXT = "typeof({0}) = 'text'"
_COUNT = _number(0, 2**63 - 1)
_POSITIVE = _number(1, 1 << 48)
_RANKS = _number(1, RANKS_MAX)
_MOMENT = _number(0, 1e11)  # the year 5138
_NS = _number(0, 1e18)
_FLOOR = _or_null(_number(1e-3, 1e18))

_RUN = {"command": _TEXT, "suite": _TEXT, "label": _or_null(_TEXT), "started_unix_s": _MOMENT}
_RUN_END = {"finished_unix_s": _or_null(_MOMENT), "rounds": _COUNT}
_RUN_INFO = {**_RUN, "seed": _COUNT, "version": _TEXT, "facts": _TEXT, "plan": _TEXT}
STORED_RUN = {"id": _COUNT, "status": _one_of(RunStatus), **_RUN_END, **_RUN_INFO}
RUN_SUMMARY = {"id": _COUNT, "status": _one_of(RunStatus), **_RUN_END, **_RUN, "idle_s": _or_null(_MOMENT)}
LAUNCH = {
    "launch_index": _COUNT,
    "transport": _TEXT,
    "library": _TEXT,
    "ranks": _RANKS,
    "started_unix_s": _MOMENT,
    "argv": _TEXT,
    "cpus": _TEXT,
    "hosts": _TEXT,
    "bound": _TEXT,
    "oversubscribed": _COUNT,
    "clock_ns": _NS,
}
_POINT = {"transport": _TEXT, "pattern": _TEXT, "ranks": _RANKS, "bytes": _COUNT, "options": _TEXT, "role": _TEXT}
STORED_POINT = {"id": _COUNT, "status": _one_of(PointStatus), "reason": _or_null(_TEXT), **_POINT}
WARNING = dict.fromkeys(("kind", "subject", "cause", "remedy"), _TEXT)
_DEFINITION = {
    "timed": "({0} IN ('root', 'mean', 'sources', 'slowest') OR {0} GLOB 'rank [0-9]*')",
    "divisor": _POSITIVE,
    "bytes_per_rep": _COUNT,
    "messages_per_rep": _COUNT,
    "algorithm": _or_null(_TEXT),
}
_PAIRS = ("floor", "solo", "wake")  # measured before and after, a column for each
_FLOORS = {f"{name}_{when}_ns": _FLOOR for name in _PAIRS for when in ("before", "after")}
_PACE_AND_COUNTERS = dict.fromkeys(("pace_ns", "counters"), _or_null(_TEXT))
_STEAL = {"steal": _or_null(_number(0, 1))}
SUMMARY = {
    "measurement.id": _COUNT,
    "measurement.point_id": _COUNT,
    "launch_id": _COUNT,
    "round": _COUNT,
    "samples": _COUNT,
    "batch": _POSITIVE,
    **_DEFINITION,
    **dict.fromkeys(("median_ns", "min_ns", "max_ns"), "CASE samples WHEN 0 THEN {0} IS NULL ELSE " + _NS + " END"),
    "verified": _COUNT,
    **_STEAL,
    **_FLOORS,
    "CASE WHEN floor_kind = 'transport' THEN point.transport END": _or_null(_TEXT),
    **_PACE_AND_COUNTERS,
}
MEASUREMENT = {
    "measurement.id": _COUNT,
    "launch_id": _COUNT,
    "round": _COUNT,
    "started_unix_s": _MOMENT,
    "batch": _POSITIVE,
    **_DEFINITION,
    **_STEAL,
    **_FLOORS,
    **_PACE_AND_COUNTERS,
    "verified": _COUNT,
    **dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "wall_ns"), _TEXT),
    "floor_kind": _or_null("{0} IN ('line', 'transport')"),
    "started_ns": _or_null(_COUNT),
}


def select(columns: Columns) -> str:
    """The columns for a SELECT, and last whether the row is sound."""
    return f"{', '.join(columns)}, {condition(columns)}"


def condition(columns: Columns) -> str:
    """The SQL condition for a sound row."""
    return " AND ".join(rule.format(name) for name, rule in columns.items())


def _sound(row: Row, columns: Columns) -> dict[str, Any]:
    """The values of a row of `select` by column. Raises ValueError for a damaged one."""
    *values, is_sound = row
    if not is_sound:
        raise ValueError("a value out of range")
    return dict(zip(columns, values, strict=True))


def pack(value: object) -> str:
    """Compact JSON with sorted names, so that equal values are equal text. Raises ValueError for NaN."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)


def run_values(info: RunInfo) -> dict[str, Any]:
    """The values by column."""
    return {**vars(info), "facts": pack(info.facts), "plan": pack(info.plan)}


def stored_run(
    row: Row, status: RunStatus, launches: Mapping[int, Launch], warnings: tuple[Warning_, ...]
) -> StoredRun:
    """A stored run from a row of STORED_RUN; raises one of DAMAGE."""
    known = _sound(row, STORED_RUN)
    info = {name: known[name] for name in _RUN_INFO}
    info |= {name: dict(json.loads(info[name])) for name in ("facts", "plan")}
    refuse_wrong_kinds(info["facts"])
    return StoredRun(
        known["id"], RunInfo(**info), status, known["finished_unix_s"], known["rounds"], launches, warnings
    )


def run_summary(row: Row, **counted: Any) -> RunSummary:
    """A summary from a row of RUN_SUMMARY, and the fields that are counted; raises one of DAMAGE."""
    return RunSummary(**{**_sound(row, RUN_SUMMARY), **counted})


def launch_values(launch: Launch) -> dict[str, Any]:
    """The values by column."""
    values = dataclasses.asdict(launch)
    values |= {name: pack(values[name]) for name in ("argv", "cpus", "hosts", "bound")}
    return {"launch_index" if name == "index" else name: value for name, value in values.items()}


def launch(row: Row) -> Launch:
    """A launch from a row of LAUNCH; raises one of DAMAGE."""
    known = _sound(row, LAUNCH)
    known |= {name: tuple(map(str, json.loads(known[name]))) for name in ("argv", "hosts", "bound")}
    known["cpus"] = tuple(map(int, json.loads(known["cpus"])))
    known["oversubscribed"] = bool(known["oversubscribed"])
    return Launch(index=known.pop("launch_index"), **known)


def point_values(point: Point) -> dict[str, Any]:
    """The values by column. The options are canonical, since they are part of the table's unique key."""
    values = {name: getattr(point, name) for name in _POINT}
    return {**values, "options": pack(dict(point.options))}


def stored_point(row: Row, facts: Mapping[str, Any]) -> StoredPoint:
    """From a row of STORED_POINT; `facts` are those of its run. Raises one of DAMAGE."""
    known = _sound(row, STORED_POINT)
    point_id, status, reason = known.pop("id"), PointStatus(known.pop("status")), known.pop("reason")
    known["options"] = tuple(sorted((name, str(value)) for name, value in json.loads(known["options"]).items()))
    traits = pattern_traits(facts, known["pattern"])
    if "payload" not in transport_traits(facts, known["transport"]).caps:
        traits = dataclasses.replace(traits, payload=False)
    return StoredPoint(point_id, Point(**known, traits=traits), status, reason)


def warning(row: Row) -> Warning_:
    """A warning from a row of WARNING; raises one of DAMAGE."""
    return Warning_(**_sound(row, WARNING))


def measurement_values(measurement: Measurement) -> dict[str, Any]:
    """The values by column, except the point's."""
    import numpy as np

    times_ns = measurement.times_ns()
    plain = ("launch_id", "round", "started_unix_s", "batch", "steal", "verified", "floor_kind", "started_ns")
    pairs = (value for name in _PAIRS for value in getattr(measurement, f"{name}_ns") or (None, None))
    return {
        **{name: getattr(measurement, name) for name in plain},
        **dict(zip(_FLOORS, pairs, strict=True)),
        **vars(measurement.definition),
        **{name: pack(getattr(measurement, name)) for name in ("cpu_user_ns", "cpu_system_ns", "wall_ns")},
        "counters": pack(dict(measurement.counters)) if measurement.counters else None,
        "pace_ns": None if measurement.pace_ns is None else pack(measurement.pace_ns),
        "samples": len(times_ns),
        "median_ns": float(np.median(times_ns)) if len(times_ns) else None,
        "min_ns": float(times_ns.min()) if len(times_ns) else None,
        "max_ns": float(times_ns.max()) if len(times_ns) else None,
    }


def measurement(row: Row, blob: Any, point: Point, launches: Mapping[int, Launch]) -> Measurement:
    """A measurement from a row of MEASUREMENT and its samples; raises one of DAMAGE."""
    known = _sound(row, MEASUREMENT)
    del known["measurement.id"]
    elapsed_ns = codec.decode(blob)
    definition = Definition(**{name: known.pop(name) for name in _DEFINITION})
    if (definition.timed_rank or 0) >= len(elapsed_ns) or elapsed_ns.min(initial=0) < 0:
        raise ValueError("samples that cannot be")
    known |= {f"{name}_ns": _pair(*(known.pop(f"{name}_{when}_ns") for when in ("before", "after"))) for name in _PAIRS}
    known |= {name: tuple(json.loads(known[name])) for name in ("cpu_user_ns", "cpu_system_ns", "wall_ns")}
    return Measurement(
        point=point,
        definition=definition,
        elapsed_ns=elapsed_ns,
        places=launches[known["launch_id"]].places,
        **{
            **known,
            "verified": bool(known["verified"]),
            "pace_ns": _pace(known["pace_ns"]),
            "counters": _counters(known["counters"]),
        },
    )


def measurement_summary(
    row: Row, launches: Mapping[int, Launch], definitions: dict[Row, Definition]
) -> MeasurementSummary:
    """From a row of SUMMARY; `definitions` are those made so far. Raises one of DAMAGE."""
    if not row[-1]:
        raise ValueError("a value out of range")
    definition = definitions.get(row[6:11])
    if definition is None:
        definition = definitions[row[6:11]] = Definition(*row[6:11])
    *floors, reference, pace, counters, _ = row[16:]
    floor_ns, solo_ns, wake_ns = (_pair(*pair) for pair in zip(floors[::2], floors[1::2], strict=True))
    probe = MachineProbe(floor_ns, _pace(pace), solo_ns, reference, launches[row[2]].places, wake_ns)
    known = *row[:6], definition, *row[11:14], bool(row[14]), row[15], probe, _counters(counters)
    return MeasurementSummary._make(known)


def _counters(text: str | None) -> dict[str, tuple[float, ...]]:
    return {name: tuple(map(float, values)) for name, values in json.loads(text).items()} if text else {}


def _pace(text: str | None) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if text is None:
        return None
    before, after = json.loads(text)
    return tuple(map(float, before)), tuple(map(float, after))


def _pair(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)
