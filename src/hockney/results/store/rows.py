"""Values of model.py from and to rows. The columns of each table stand here once."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hockney.model import Definition, Launch, Measurement, Point, PointStatus, RunInfo, RunStatus, Warning_
from hockney.results.store import checks, codec
from hockney.results.store.checks import DamagedRow, Rule, Rules, read_row
from hockney.results.store.records import MeasurementSummary, RunSummary, StoredPoint, StoredRun
from hockney.results.traits import pattern_traits, transport_traits
from hockney.stats.states import MachineProbe

Row = tuple[Any, ...]
Paces = tuple[tuple[float, ...], tuple[float, ...]]

_RUN: Rules = {
    "command": checks.TEXT,
    "suite": checks.TEXT,
    "label": checks.TEXT_OR_NONE,
    "started_unix_s": checks.MOMENT,
    "seed": checks.COUNT,
    "version": checks.TEXT,
    "facts": Rule((str,), form={}),
    "plan": Rule((str,), form={}),
}
_LAUNCH: Rules = {
    "launch_index": checks.COUNT,
    "transport": checks.TEXT,
    "library": checks.TEXT,
    "ranks": checks.RANKS,
    "started_unix_s": checks.MOMENT,
    "argv": Rule((str,), form=[str]),
    "cpus": Rule((str,), form=[int]),
    "hosts": Rule((str,), form=[str]),
    "oversubscribed": checks.COUNT,
    "clock_ns": checks.TIME,
}
_POINT: Rules = {
    "transport": checks.TEXT,
    "pattern": checks.TEXT,
    "ranks": checks.RANKS,
    "bytes": checks.COUNT,
    "options": Rule((str,), form=checks.OPTIONS),
    "role": checks.TEXT,
}
_WARNING: Rules = dict.fromkeys(("kind", "subject", "cause", "remedy"), checks.TEXT)
_DEFINITION: Rules = {
    "timed": checks.TIMED,
    "divisor": checks.POSITIVE,
    "bytes_per_rep": checks.COUNT,
    "messages_per_rep": checks.COUNT,
    "algorithm": checks.TEXT_OR_NONE,
}
_SUMMARY: Rules = {
    "measurement.point_id": checks.COUNT,
    "launch_id": checks.COUNT,
    "round": checks.COUNT,
    "samples": checks.COUNT,
    "batch": checks.POSITIVE,
    **_DEFINITION,
    **dict.fromkeys(("median_ns", "min_ns", "max_ns"), checks.TIME_OR_NONE),
    "steal": checks.SHARE_OR_NONE,
    **dict.fromkeys(("floor_before_ns", "floor_after_ns", "solo_before_ns", "solo_after_ns"), checks.FLOOR_OR_NONE),
    "CASE WHEN floor_kind = 'transport' THEN point.transport END": checks.TEXT_OR_NONE,
    "pace_ns": checks.TEXT_OR_NONE,
    "counters": checks.TEXT_OR_NONE,
}
_MEASUREMENT: Rules = {
    "point_id": checks.COUNT,
    "launch_id": checks.COUNT,
    "round": checks.COUNT,
    "started_unix_s": checks.MOMENT,
    "batch": checks.POSITIVE,
    **_DEFINITION,
    "floor_before_ns": checks.FLOOR_OR_NONE,
    "floor_after_ns": checks.FLOOR_OR_NONE,
    "steal": checks.SHARE_OR_NONE,
    "verified": checks.COUNT,
    **dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "wall_ns"), checks.NUMBERS),
    "counters": checks.TEXT_OR_NONE,
    "floor_kind": checks.FLOOR_KIND,
    "pace_ns": checks.TEXT_OR_NONE,
    "solo_before_ns": checks.FLOOR_OR_NONE,
    "solo_after_ns": checks.FLOOR_OR_NONE,
    "started_ns": checks.COUNT_OR_NONE,
}
_RUN_STATUS = checks.words(status.value for status in RunStatus)
_POINT_STATUS = checks.words(status.value for status in PointStatus)
_RUN_SUMMARY: Rules = {
    "id": checks.COUNT,
    "label": checks.TEXT_OR_NONE,
    "command": checks.TEXT,
    "suite": checks.TEXT,
    "started_unix_s": checks.MOMENT,
    "finished_unix_s": checks.MOMENT_OR_NONE,
    "status": _RUN_STATUS,
    "rounds": checks.COUNT,
    "idle_s": checks.MOMENT_OR_NONE,
    "seen_unix_s": checks.MOMENT,
}
RUN, LAUNCH, POINT, WARNING, SUMMARY, MEASUREMENT = map(
    ", ".join, (_RUN, _LAUNCH, _POINT, _WARNING, _SUMMARY, _MEASUREMENT)
)
MEASUREMENT_FIGURES = "samples, median_ns, min_ns, max_ns"  # written after MEASUREMENT, made from the samples
_COUNTERS = {...: [(int, float)]}
_NO_COUNTERS: Mapping[str, tuple[float, ...]] = {}
_NO_DEFINITION = Definition("root", 1, 0, 0)


def holes(columns: str) -> str:
    """`a, b` -> `?, ?`."""
    return ", ".join("?" * (columns.count(",") + 1))


def pack(value: object) -> str:
    """Compact JSON with sorted names, so that equal values are equal text. Raises ValueError for NaN."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)


def run_row(info: RunInfo) -> Row:
    """For RUN. Raises ValueError for a seed that SQLite's integers cannot hold."""
    if not 0 <= info.seed < 2**63:
        raise ValueError(f"the seed {info.seed} does not fit the store: 0 <= seed < 2**63")
    return (
        *(info.command, info.suite, info.label, info.started_unix_s, info.seed, info.version),
        *(pack(info.facts), pack(info.plan)),
    )


def run_of(row: Row, status: RunStatus, launches: Mapping[int, Launch], warnings: tuple[Warning_, ...]) -> StoredRun:
    """Row: id, the stored status, finished_unix_s, rounds, then RUN. Raises DamagedRow.

    Facts and plan keep only what has its form: runs of earlier versions lack some of it.
    """
    columns = {"finished_unix_s": checks.MOMENT_OR_NONE, "rounds": checks.COUNT, **_RUN}
    known = read_row(row[2:], columns)
    finished_unix_s, rounds = known.pop("finished_unix_s"), known.pop("rounds")
    known["facts"] = checks.fitting(known["facts"], checks.FACTS)
    known["plan"] = checks.fitting(known["plan"], checks.PLAN)
    if not 1e-12 <= known["plan"].get("precision", 1) <= 1e6:
        del known["plan"]["precision"]
    return StoredRun(row[0], RunInfo(**known), status, finished_unix_s, rounds, launches, warnings)


def status_of(text: object) -> RunStatus:
    """The stored status of a run. Raises DamagedRow."""
    return RunStatus(read_row((text,), {"status": _RUN_STATUS})["status"])


def point_status_of(row: Row) -> tuple[str, PointStatus]:
    """Row: transport, status. Raises DamagedRow."""
    known = read_row(row, {"transport": checks.TEXT, "status": _POINT_STATUS})
    return known["transport"], PointStatus(known["status"])


def warning_of(row: Row) -> Warning_:
    """Row: WARNING. Raises DamagedRow."""
    return Warning_(**read_row(row, _WARNING))


def summary_of_run(
    row: Row, status: RunStatus, transports: tuple[str, ...], points: Mapping[PointStatus, int], measured: int
) -> RunSummary:
    """Row: the columns of _RUN_SUMMARY. Raises DamagedRow."""
    known = read_row(row, _RUN_SUMMARY)
    return RunSummary(**{**known, "status": status}, transports=transports, points=points, measured=measured)


def launch_row(launch: Launch) -> Row:
    """For LAUNCH."""
    fields = {**dataclasses.asdict(launch), "launch_index": launch.index}
    return tuple(pack(fields[name]) if column.form else fields[name] for name, column in _LAUNCH.items())


def launch_of(row: Row) -> Launch:
    """Row: LAUNCH. Raises DamagedRow."""
    known = read_row(row, _LAUNCH)
    known["oversubscribed"] = bool(known["oversubscribed"])
    return Launch(index=known.pop("launch_index"), **known)


def point_row(point: Point) -> Row:
    """For POINT. The options are canonical, since the table tells points apart by them."""
    return (point.transport, point.pattern, point.ranks, point.bytes, pack(dict(point.options)), point.role)


def facts_of(row: Row = ("{}",)) -> dict[str, Any]:
    """Row: facts. What of it has its form; nothing where it is damaged."""
    try:
        return checks.fitting(checks.loads(row[0], "facts", {}), checks.FACTS)
    except DamagedRow:
        return {}


def point_of(row: Row, facts: Mapping[str, Any]) -> StoredPoint:
    """Row: id, status, reason, then POINT. `facts` are those of its run. Raises DamagedRow."""
    known = read_row(row[1:], {"status": _POINT_STATUS, "reason": checks.TEXT_OR_NONE, **_POINT})
    if not checks.fits(known["options"], checks.COUNTED_OPTIONS):
        raise DamagedRow("options")
    known["options"] = tuple(sorted(known["options"].items()))
    status, reason = PointStatus(known.pop("status")), known.pop("reason")
    traits = pattern_traits(facts, known["pattern"])
    if "payload" not in transport_traits(facts, known["transport"]).caps:
        traits = dataclasses.replace(traits, payload=False)
    return StoredPoint(row[0], Point(**known, traits=traits), status, reason)


def measurement_row(measurement: Measurement, point_id: int) -> Row:
    """For MEASUREMENT and MEASUREMENT_FIGURES."""
    import numpy as np

    times_ns = measurement.times_ns()
    figures: Row = (0, None, None, None)
    if len(times_ns):
        figures = (len(times_ns), float(np.median(times_ns)), float(times_ns.min()), float(times_ns.max()))
    return (
        *(point_id, measurement.launch_id, measurement.round, measurement.started_unix_s, measurement.batch),
        *dataclasses.astuple(measurement.definition),
        *(measurement.floor_ns or (None, None)),
        *(measurement.steal, measurement.verified),
        *map(pack, (measurement.cpu_user_ns, measurement.cpu_system_ns, measurement.wall_ns)),
        pack(dict(measurement.counters)) if measurement.counters else None,
        measurement.floor_kind,
        None if measurement.pace_ns is None else pack(measurement.pace_ns),
        *(measurement.solo_ns or (None, None)),
        measurement.started_ns,
        *figures,
    )


def measurement_of(row: Row, point: Point, launches: Mapping[int, Launch]) -> Measurement:
    """Row: MEASUREMENT, then the blob. Raises DamagedRow."""
    known = read_row(row[:-1], _MEASUREMENT)
    try:
        elapsed_ns = codec.decode(row[-1])
    except codec.DamagedSamples as damage:
        raise DamagedRow("elapsed_ns") from damage
    if not len(elapsed_ns) or (elapsed_ns.size and elapsed_ns.min() < 0):
        raise DamagedRow("elapsed_ns")
    definition = Definition(**{name: known.pop(name) for name in _DEFINITION})
    if (definition.timed_rank or 0) >= len(elapsed_ns):
        raise DamagedRow("timed")
    known.pop("point_id")
    known["verified"] = bool(known["verified"])
    known["counters"] = _counters(known["counters"])
    known["pace_ns"] = _paces([known["pace_ns"]])[0]
    return Measurement(
        point=point,
        definition=definition,
        elapsed_ns=elapsed_ns,
        floor_ns=_pair(known.pop("floor_before_ns"), known.pop("floor_after_ns")),
        solo_ns=_pair(known.pop("solo_before_ns"), known.pop("solo_after_ns")),
        places=launches[known["launch_id"]].places,
        **known,
    )


def measurement_without_samples(point: Point, launch_id: int) -> Measurement:
    """Stands for a damaged one, so that a measurement and its summary keep the same place; no figure counts it."""
    import numpy as np

    none = (0,) * point.ranks
    empty = np.zeros((point.ranks, 0), dtype=np.int64)
    return Measurement(point, launch_id, 0, 0.0, 1, _NO_DEFINITION, empty, none, none, none, None, verified=False)


def summaries_of(found: Sequence[Row], launches: Mapping[int, Launch]) -> tuple[list[MeasurementSummary], list[str]]:
    """Rows: SUMMARY. All at once, because a large run has hundreds of thousands of them.

    Also gives the columns that are damaged in any; a summary without samples stands for a damaged row.
    """
    damaged: dict[str, None] = {}
    try:
        if not (checks.all_hold(found, _SUMMARY) and all(map(_has_median, found))):
            raise DamagedRow("")
        paces, counters = _paces([row[-2] for row in found]), [_counters(row[-1]) for row in found]
    except DamagedRow:
        found = [_mend(row, damaged) for row in found]
        paces, counters = _paces([row[-2] for row in found]), [_counters(row[-1]) for row in found]
    definitions: dict[Row, Definition] = {}
    summaries = []
    for row, pace, counts in zip(found, paces, counters, strict=True):
        words = row[5:10]
        definition = definitions.get(words) or definitions.setdefault(words, Definition(*words))
        floor_ns, solo_ns, reference = _pair(*row[14:16]), _pair(*row[16:18]), row[18]
        probe = MachineProbe(floor_ns, pace, solo_ns, reference, launches[row[1]].places)
        fields = (*row[:5], definition, *row[10:14], probe, counts)
        summaries.append(MeasurementSummary._make(fields))
    return summaries, list(damaged)


def _mend(row: Row, damaged: dict[str, None]) -> Row:
    """The row, or one without samples in its place; its damaged column is added to `damaged`."""
    try:
        read_row(row, _SUMMARY)
        if not _has_median(row):
            raise DamagedRow("median_ns")
        _paces([row[-2]])
        _counters(row[-1])
    except DamagedRow as damage:
        damaged[damage.column] = None
        definition = dataclasses.astuple(_NO_DEFINITION)
        return (*row[:2], 0, 0, 1, *definition, *[None] * (len(_SUMMARY) - 10))
    return row


def _has_median(row: Row) -> bool:
    """Whether a summary has a median if, and only if, it has samples."""
    return bool(row[3] > 0) == (row[10] is not None)


def _counters(text: str | None) -> Mapping[str, tuple[float, ...]]:
    """One object for all measurements without counters, because a large run has hundreds of thousands of them."""
    if not text:
        return _NO_COUNTERS
    return {name: tuple(values) for name, values in checks.loads(text, "counters", _COUNTERS).items()}


def _paces(texts: Sequence[str | None]) -> list[Paces | None]:
    """Each is None or two lists of numbers above 0. Raises DamagedRow. Each step is a loop in C."""
    paces = checks.loads(f"[{','.join(text or 'null' for text in texts)}]", "pace_ns")
    known: list[Any] = [pace for pace in paces if pace is not None]
    if len(paces) == len(texts) and _types(known) <= {list} and set(map(len, known)) <= {2}:
        sides = list(itertools.chain.from_iterable(known))
        if _types(sides) <= {list}:
            numbers = list(itertools.chain.from_iterable(sides))
            if _types(numbers) <= {int, float} and min(numbers, default=1) > 0 and math.isfinite(sum(numbers)):
                return [None if pace is None else (tuple(pace[0]), tuple(pace[1])) for pace in paces]
    raise DamagedRow("pace_ns")


def _types(values: Iterable[object]) -> set[type]:
    return set(map(type, values))


def _pair(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)
