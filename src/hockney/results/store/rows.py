"""Values from and to rows: dictionaries by column, whose checksum was right, of model.py and of the store alone."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from hockney.stats.interval import middle

Row = Mapping[str, Any]


ACCEPTED = "accepted"
"""In the facts of a run: each time that it was accepted as the baseline."""
VERDICT = "health_verdict"
"""In the facts of a health run: how many `findings` it has; of none, whether all `is_clear`."""


@dataclass(frozen=True)
class RunSummary:
    """One line of the list of runs. `points` counts them by status; statuses without a point are absent.

    `planned` counts the points that were not skipped, `measured` those of them with at least one measurement.
    `measured_least_s` is how long it was measured in total, up to its last write. `accepted`: who accepted it as the
    baseline last (`by`, `at_unix_s`), the run that it replaced and the one that replaced it (`replaces`,
    `replaced_by`); None: nobody did. `verdict`: VERDICT of a health run.
    """

    id: int
    label: str | None
    command: str
    suite: str
    started_unix_s: float
    finished_unix_s: float | None
    measured_least_s: float
    status: RunStatus
    rounds: int
    transports: tuple[str, ...]
    points: Mapping[PointStatus, int]
    measured: int
    accepted: Mapping[str, Any] | None = None
    verdict: Mapping[str, Any] | None = None

    @property
    def planned(self) -> int:
        return sum(self.points.values()) - self.points.get(PointStatus.SKIPPED, 0)

    @property
    def ending(self) -> str:
        """How it ended, in the word of its points."""
        return self.status.ending(self.points)

    @property
    def measured_s(self) -> float | None:
        """How long it was measured in total; None for a run that is running or was killed."""
        return None if self.finished_unix_s is None else self.measured_least_s


@dataclass(frozen=True)
class StoredRun:
    """Everything about a run except its points and measurements; with these a killed run can continue.

    `launches` are keyed by launch id. `measured_s` is how long it was measured in total, up to its last write.
    """

    id: int
    info: RunInfo
    status: RunStatus
    finished_unix_s: float | None
    measured_s: float
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

    `median_ns`, `min_ns` and `max_ns` of its samples are by the pattern's definition, None without samples. Those are
    times of one repetition; `total_ns` is the sum of all samples, and `slow_ns` is by how much each sample of more than
    twice their median exceeds it. `probe` gives the machine state, together with all others of the run. `verified`: its
    payload was checked.
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
    total_ns: float | None
    slow_ns: tuple[float, ...]
    verified: bool
    steal: float | None
    probe: MachineProbe
    counters: Mapping[str, tuple[float, ...]]


_POINT = ("transport", "pattern", "ranks", "bytes", "options", "role")
_DEFINITION = tuple(field.name for field in dataclasses.fields(Definition))
_LISTS = ("argv", "cpus", "hosts", "bound")  # of a launch
_PLAIN = ("launch_id", "round", "started_unix_s", "batch", "steal", "floor_kind", "started_ns")
_TIMES = ("median_ns", "min_ns", "max_ns", "total_ns")
_SUMMARY = ("id", "point_id", "launch_id", "round", "samples", "batch")
_PAIRS = ("floor", "solo", "wake")  # measured before and after, a column for each
_PER_RANK = ("cpu_user_ns", "cpu_system_ns", "wall_ns")


def pack(value: object) -> str:
    """Compact JSON with sorted names, so that equal values are equal text. Raises ValueError for NaN."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)


def _fields(kind: type, row: Row) -> dict[str, Any]:
    """The columns that are fields of a dataclass."""
    return {field.name: row[field.name] for field in dataclasses.fields(kind)}


# The kinds of what is read of facts: a list has items of one kind, "*" is each key. Anything may be None or not there.
_FACTS: Mapping[str, Any] = {
    **{name: {} for name in ("os", "cpu", "memory", "clock", "network", "limits", "surroundings", "software")},
    **{name: [str] for name in ("transports", "sleeping")},
    **{name: [{}] for name in ("hosts", ACCEPTED, VERDICT)},
    "environment": {"*": str},
    "models": {"*": {}},
    "topology": {"caches": [{}], "nodes": [{}]},
    "traits": {"*": {"*": {}}},
}


def has_facts(row: Row) -> bool:
    """Whether the facts in the row of a run are of the kinds that this version reads: another may have stored it."""
    return _is_like(json.loads(row["facts"]), _FACTS)


def _is_like(value: Any, kind: Any) -> bool:
    if value is None:
        return True
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_like(each, kind[0]) for each in value)
    if not isinstance(kind, Mapping):
        return isinstance(value, kind)
    of_each = kind.get("*")
    return isinstance(value, dict) and all(
        _is_like(each, kind.get(name, of_each)) for name, each in value.items() if name in kind or of_each is not None
    )


def run_values(info: RunInfo) -> dict[str, Any]:
    """The values by column."""
    return {**vars(info), "facts": pack(info.facts), "plan": pack(info.plan)}


def stored_run(
    row: Row, status: RunStatus, launches: Mapping[int, Launch], warnings: tuple[Warning_, ...]
) -> StoredRun:
    """A stored run from its row."""
    info = _fields(RunInfo, row) | {name: dict(json.loads(row[name])) for name in ("facts", "plan")}
    ended = row["finished_unix_s"], row["measured_s"], row["rounds"]
    return StoredRun(row["id"], RunInfo(**info), status, *ended, launches, warnings)


def run_summary(row: Row, status: RunStatus, points: Sequence[Row]) -> RunSummary:
    """A summary from the row of a run and those of its points."""
    names = ("id", "label", "command", "suite", "started_unix_s", "finished_unix_s", "rounds")
    return RunSummary(
        **{name: row[name] for name in names},
        measured_least_s=row["measured_s"],
        status=status,
        transports=tuple(sorted({each["transport"] for each in points})),
        points=Counter(PointStatus(each["status"]) for each in points),
        measured=sum(each["measurement_ids"] > 0 and each["status"] != PointStatus.SKIPPED.value for each in points),
        accepted=last_fact(row, ACCEPTED),
        verdict=last_fact(row, VERDICT),
    )


def last_fact(row: Row, name: str) -> Mapping[str, Any] | None:
    """The last of a list in the facts of a run; None without one."""
    if f'"{name}"' not in row["facts"]:  # seldom: facts are long
        return None
    known: Sequence[Mapping[str, Any]] = (json.loads(row["facts"]).get(name) if has_facts(row) else None) or [{}]
    return known[-1] or None


def accepted_of(runs: Iterable[RunSummary]) -> RunSummary | None:
    """The accepted run that no other replaced; None: nobody accepted one, or it was deleted."""
    return next((run for run in runs if run.accepted and run.accepted["replaced_by"] is None), None)


def launch_values(launch: Launch) -> dict[str, Any]:
    """The values by column."""
    values = dataclasses.asdict(launch)
    values |= {"launch_index": values.pop("index")} | {name: pack(values[name]) for name in _LISTS}
    return values


def launch(row: Row) -> Launch:
    """A launch from its row."""
    lists = {name: tuple(json.loads(row[name])) for name in _LISTS}
    known = {**row, "index": row["launch_index"], "oversubscribed": bool(row["oversubscribed"]), **lists}
    return Launch(**_fields(Launch, known))


def point_values(point: Point) -> dict[str, Any]:
    """The values by column. The options are canonical, since they are part of the table's unique key."""
    values = {name: getattr(point, name) for name in _POINT}
    return {**values, "options": pack(dict(point.options))}


def stored_point(row: Row, facts: Mapping[str, Any]) -> StoredPoint:
    """From the row of a point; `facts` are those of its run."""
    known = {name: row[name] for name in _POINT}
    known["options"] = tuple(sorted(json.loads(known["options"]).items()))
    traits = pattern_traits(facts, known["pattern"])
    if "payload" not in transport_traits(facts, known["transport"]).caps:
        traits = dataclasses.replace(traits, payload=False)
    return StoredPoint(row["id"], Point(**known, traits=traits), PointStatus(row["status"]), row["reason"])


def warning(row: Row) -> Warning_:
    """A warning from its row."""
    return Warning_(**_fields(Warning_, row))


def measurement_values(measurement: Measurement, blob: bytes) -> dict[str, Any]:
    """The values by column, except the point's; `blob` holds the samples."""
    summary = summary_of(measurement)
    pairs = ((name, getattr(measurement, f"{name}_ns") or (None, None)) for name in _PAIRS)
    return {
        **{name: getattr(measurement, name) for name in (*_PLAIN, "verified")},
        **{f"{name}_{when}_ns": pair[after] for name, pair in pairs for after, when in enumerate(("before", "after"))},
        **vars(measurement.definition),
        **{name: pack(getattr(measurement, name)) for name in _PER_RANK},
        "counters": pack(dict(measurement.counters)) if measurement.counters else None,
        "pace_ns": None if measurement.pace_ns is None else pack(measurement.pace_ns),
        **{name: getattr(summary, name) for name in ("samples", *_TIMES)},
        "slow_ns": pack(summary.slow_ns) if summary.slow_ns else None,
        "samples_crc": zlib.crc32(blob),
    }


def summary_of(measurement: Measurement) -> MeasurementSummary:
    """The summary of a measurement, whose own number and that of its point are not known (0)."""
    times_ns = measurement.times_ns()
    samples_ns = times_ns * (measurement.batch * measurement.definition.divisor)
    known: tuple[float | None, ...] = (None,) * len(_TIMES)
    slow_ns = samples_ns
    if len(times_ns):
        middle_ns = middle(samples_ns)
        known = middle(times_ns), float(times_ns.min()), float(times_ns.max()), float(samples_ns.sum())
        slow_ns = samples_ns[samples_ns > 2 * middle_ns] - middle_ns
    return MeasurementSummary(
        id=0,
        point_id=0,
        launch_id=measurement.launch_id,
        round=measurement.round,
        samples=len(times_ns),
        batch=measurement.batch,
        definition=measurement.definition,
        **dict(zip(_TIMES, known, strict=True)),
        slow_ns=tuple(slow_ns.tolist()),
        verified=measurement.verified,
        steal=measurement.steal,
        probe=measurement.probe,
        counters=measurement.counters,
    )


def measurement(row: Row, point: Point, launches: Mapping[int, Launch]) -> Measurement:
    """A measurement from its row, which holds its samples as well. Raises ValueError or TypeError for damaged ones."""
    if zlib.crc32(row["elapsed_ns"]) != row["samples_crc"]:
        raise ValueError("samples of another checksum")
    known = {name: row[name] for name in _PLAIN} | {name: tuple(json.loads(row[name])) for name in _PER_RANK}
    known |= {f"{name}_ns": _pair(row, name) for name in _PAIRS}
    return Measurement(
        point=point,
        definition=Definition(**_fields(Definition, row)),
        elapsed_ns=codec.decode(row["elapsed_ns"]),
        pace_ns=_pace(row["pace_ns"]),
        counters=_counters(row["counters"]),
        verified=bool(row["verified"]),
        places=launches[row["launch_id"]].places,
        **known,
    )


def measurement_summary(
    row: Row, transport: str, launches: Mapping[int, Launch], definitions: dict[Any, Definition]
) -> MeasurementSummary:
    """From the row of a measurement; `definitions` are those made so far."""
    key = tuple(row[name] for name in _DEFINITION)
    definition = definitions.get(key) or definitions.setdefault(key, Definition(*key))
    floor_ns, solo_ns, wake_ns = (_pair(row, name) for name in _PAIRS)
    reference, places = transport if row["floor_kind"] == "transport" else None, launches[row["launch_id"]].places
    probe = MachineProbe(floor_ns, _pace(row["pace_ns"]), solo_ns, reference, places, wake_ns)
    known, times_ns = ([row[name] for name in names] for names in (_SUMMARY, _TIMES))
    slow_ns = tuple(json.loads(row["slow_ns"])) if row["slow_ns"] else ()
    measured = bool(row["verified"]), row["steal"], probe, _counters(row["counters"])
    return MeasurementSummary._make([*known, definition, *times_ns, slow_ns, *measured])


def _counters(text: str | None) -> dict[str, tuple[float, ...]]:
    return {name: tuple(values) for name, values in json.loads(text).items()} if text else {}


def _pace(text: str | None) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if text is None:
        return None
    before, after = json.loads(text)
    return tuple(before), tuple(after)


def _pair(row: Row, name: str) -> tuple[float, float] | None:
    before, after = row[f"{name}_before_ns"], row[f"{name}_after_ns"]
    return None if before is None or after is None else (before, after)
