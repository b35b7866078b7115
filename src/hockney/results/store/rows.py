"""Values of model.py <-> rows. Column lists stand here once, beside what packs and unpacks them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hockney.model import (
    Definition,
    Launch,
    Measurement,
    Point,
    PointStatus,
    RunInfo,
    RunStatus,
    Warning_,
)
from hockney.results.store import checks, codec
from hockney.results.store.checks import Checks, DamagedRow, refuse_damaged, sound
from hockney.results.store.records import MeasurementSummary, RunSummary, StoredPoint, StoredRun
from hockney.stats.states import MachineProbe

Row = tuple[Any, ...]

_RUN: Checks = {
    "command": checks.TEXT,
    "suite": checks.TEXT,
    "label": checks.TEXT_OR_NONE,
    "started_unix_s": checks.MOMENT,
    "seed": checks.COUNT,
    "version": checks.TEXT,
    "facts": checks.TEXT,
    "plan": checks.TEXT,
}
_LAUNCH: Checks = {
    "launch_index": checks.COUNT,
    "transport": checks.TEXT,
    "library": checks.TEXT,
    "ranks": checks.RANKS,
    "started_unix_s": checks.MOMENT,
    "argv": checks.TEXT,
    "cpus": checks.TEXT,
    "hosts": checks.TEXT,
    "oversubscribed": checks.COUNT,
    "clock_ns": checks.TIME,
}
_POINT: Checks = {
    "transport": checks.TEXT,
    "pattern": checks.TEXT,
    "ranks": checks.RANKS,
    "bytes": checks.COUNT,
    "options": checks.TEXT,
    "role": checks.TEXT,
}
_WARNING: Checks = dict.fromkeys(("kind", "subject", "cause", "remedy"), checks.TEXT)
_DEFINITION: Checks = {
    "timed": checks.TIMED,
    "divisor": checks.POSITIVE,
    "bytes_per_rep": checks.COUNT,
    "messages_per_rep": checks.COUNT,
    "algorithm": checks.TEXT_OR_NONE,
}
_SUMMARY: Checks = {
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
_MEASUREMENT: Checks = {
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
    **dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "wall_ns"), checks.TEXT),
    "counters": checks.TEXT_OR_NONE,
    "floor_kind": checks.FLOOR_KIND,
    "pace_ns": checks.TEXT_OR_NONE,
    "solo_before_ns": checks.FLOOR_OR_NONE,
    "solo_after_ns": checks.FLOOR_OR_NONE,
    "started_ns": checks.COUNT_OR_NONE,
}
RUN, LAUNCH, POINT, WARNING, SUMMARY, MEASUREMENT = map(
    ", ".join, (_RUN, _LAUNCH, _POINT, _WARNING, _SUMMARY, _MEASUREMENT)
)
MEASUREMENT_FIGURES = "samples, median_ns, min_ns, max_ns"  # beside MEASUREMENT when written, made from the samples
_RUN_STATUS = checks.words(status.value for status in RunStatus)
_POINT_STATUS = checks.words(status.value for status in PointStatus)
_RUN_SUMMARY: Checks = {
    "label": checks.TEXT_OR_NONE,
    "command": checks.TEXT,
    "suite": checks.TEXT,
    "started_unix_s": checks.MOMENT,
    "finished_unix_s": checks.MOMENT_OR_NONE,
    "status": _RUN_STATUS,
    "rounds": checks.COUNT,
    "idle_s": checks.MOMENT_OR_NONE,
    "resumed_unix_s": checks.MOMENT,
}
_NUMBERS = [(int, float)]
_NO_DEFINITION = Definition("root", 1, 0, 0)
_NO_COUNTERS: Mapping[str, tuple[float, ...]] = {}


def holes(columns: str) -> str:
    """`a, b` -> `?, ?`."""
    return ", ".join("?" * (columns.count(",") + 1))


def pack(value: object) -> str:
    """Compact JSON with sorted names, so that equal values are equal text. Raises ValueError for NaN."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)


def options_text(point: Point) -> str:
    """Canonical, since the table tells points apart by it."""
    return pack(dict(point.options))


def run_row(info: RunInfo) -> Row:
    """For RUN. Raises ValueError for a seed that SQLite's integers can't hold."""
    if not 0 <= info.seed < 2**63:
        raise ValueError(f"the seed {info.seed} does not fit the store: 0 <= seed < 2**63")
    return (
        info.command,
        info.suite,
        info.label,
        info.started_unix_s,
        info.seed,
        info.version,
        pack(info.facts),
        pack(info.plan),
    )


def run_of(row: Row, status: RunStatus, launches: Mapping[int, Launch], warnings: tuple[Warning_, ...]) -> StoredRun:
    """Row: id, the stored status, finished_unix_s, rounds, then RUN. Raises DamagedRow.

    Of `facts` and `plan` only what has its form is taken: runs of earlier versions lack some of it, too.
    """
    run_id, _, finished_unix_s, rounds, command, suite, label, started_unix_s, seed, version, facts, plan = row
    refuse_damaged(row[2:], {"finished_unix_s": checks.MOMENT_OR_NONE, "rounds": checks.COUNT, **_RUN})
    known = checks.fitting(checks.loads(facts, "facts", {}), checks.FACTS)
    asked = checks.fitting(checks.loads(plan, "plan", {}), checks.PLAN)
    info = RunInfo(command, suite, label, started_unix_s, seed, version, known, asked)
    return StoredRun(run_id, info, status, finished_unix_s, rounds, launches, warnings)


def status_of(text: object) -> RunStatus:
    """The stored status of a run. Raises DamagedRow."""
    refuse_damaged((text,), {"status": _RUN_STATUS})
    return RunStatus(text)


def point_status_of(row: Row) -> tuple[str, PointStatus]:
    """Row: transport, status. Raises DamagedRow."""
    transport, status = row
    refuse_damaged(row, {"transport": checks.TEXT, "status": _POINT_STATUS})
    return transport, PointStatus(status)


def warning_of(row: Row) -> Warning_:
    """Row: WARNING. Raises DamagedRow."""
    refuse_damaged(row, _WARNING)
    return Warning_(*row)


def summary_of_run(
    row: Row, status: RunStatus, transports: tuple[str, ...], points: Mapping[PointStatus, int], measured: int
) -> RunSummary:
    """Row: id, label, command, suite, started, finished (unix_s), the stored status, rounds, idle_s, seen_unix_s.

    Raises DamagedRow.
    """
    refuse_damaged(row[1:], _RUN_SUMMARY)
    run_id, label, command, suite, started_s, finished_s, _, rounds, idle_s, seen_s = row
    return RunSummary(
        *(run_id, label, command, suite, started_s, finished_s, seen_s, idle_s, status, rounds),
        *(transports, points, measured),
    )


def launch_row(launch: Launch) -> Row:
    """For LAUNCH."""
    return (
        launch.index,
        launch.transport,
        launch.library,
        launch.ranks,
        launch.started_unix_s,
        pack(launch.argv),
        pack(launch.cpus),
        pack(launch.hosts),
        launch.oversubscribed,
        launch.clock_ns,
    )


def launch_of(row: Row) -> Launch:
    """Row: LAUNCH. Raises DamagedRow."""
    index, transport, library, ranks, started_unix_s, argv, cpus, hosts, oversubscribed, clock_ns = row
    refuse_damaged(row, _LAUNCH)
    return Launch(
        transport,
        library,
        ranks,
        started_unix_s,
        tuple(checks.loads(argv, "argv", [str])),
        tuple(checks.loads(cpus, "cpus", [int])),
        tuple(checks.loads(hosts, "hosts", [str])),
        bool(oversubscribed),
        clock_ns,
        index,
    )


def point_row(point: Point) -> Row:
    """For POINT."""
    return (point.transport, point.pattern, point.ranks, point.bytes, options_text(point), point.role)


def point_of(row: Row) -> StoredPoint:
    """Row: id, status, reason, then POINT. Raises DamagedRow."""
    point_id, status, reason, transport, pattern, ranks, size_bytes, options, role = row
    refuse_damaged(row[1:], {"status": _POINT_STATUS, "reason": checks.TEXT_OR_NONE, **_POINT})
    given = checks.loads(options, "options", checks.OPTIONS)
    if not checks.fits(given, checks.MapOf(str)):
        raise DamagedRow("options")
    point = Point(transport, pattern, ranks, size_bytes, tuple(sorted(given.items())), role)
    return StoredPoint(point_id, point, PointStatus(status), reason)


def measurement_row(measurement: Measurement, point_id: int) -> Row:
    """For MEASUREMENT and MEASUREMENT_FIGURES."""
    import numpy as np

    times_ns = measurement.times_ns()
    figures: Row = (0, None, None, None)
    if len(times_ns):
        figures = (len(times_ns), float(np.median(times_ns)), float(times_ns.min()), float(times_ns.max()))
    return (
        point_id,
        measurement.launch_id,
        measurement.round,
        measurement.started_unix_s,
        measurement.batch,
        measurement.definition.timed,
        measurement.definition.divisor,
        measurement.definition.bytes_per_rep,
        measurement.definition.messages_per_rep,
        measurement.definition.algorithm,
        *(measurement.floor_ns or (None, None)),
        measurement.steal,
        measurement.verified,
        pack(measurement.cpu_user_ns),
        pack(measurement.cpu_system_ns),
        pack(measurement.wall_ns),
        pack(dict(measurement.counters)) if measurement.counters else None,
        measurement.floor_kind,
        None if measurement.pace_ns is None else pack(measurement.pace_ns),
        *(measurement.solo_ns or (None, None)),
        measurement.started_ns,
        *figures,
    )


def measurement_of(row: Row, point: Point, launches: Mapping[int, Launch]) -> Measurement:
    """Row: MEASUREMENT, then the blob. Raises DamagedRow."""
    refuse_damaged(row[:-1], _MEASUREMENT)
    _, launch_id, round_, started_unix_s, batch, timed, divisor, per_rep, messages, algorithm = row[:10]
    before_ns, after_ns, steal, verified, cpu_user_ns, cpu_system_ns, wall_ns, counters, *state, blob = row[10:]
    try:
        elapsed_ns = codec.decode(blob)
    except codec.DamagedSamples as damage:
        raise DamagedRow("elapsed_ns") from damage
    if not len(elapsed_ns) or (elapsed_ns.size and elapsed_ns.min() < 0):
        raise DamagedRow("elapsed_ns")
    if timed.startswith("rank ") and int(timed.removeprefix("rank ")) >= len(elapsed_ns):
        raise DamagedRow("timed")
    return Measurement(
        point=point,
        launch_id=launch_id,
        round=round_,
        started_unix_s=started_unix_s,
        batch=batch,
        definition=Definition(timed, divisor, per_rep, messages, algorithm),
        elapsed_ns=elapsed_ns,
        cpu_user_ns=checks.numbers(cpu_user_ns, "cpu_user_ns"),
        cpu_system_ns=checks.numbers(cpu_system_ns, "cpu_system_ns"),
        wall_ns=checks.numbers(wall_ns, "wall_ns"),
        floor_ns=_pair(before_ns, after_ns),
        verified=bool(verified),
        steal=steal,
        counters=_counters(counters),
        floor_kind=state[0],
        pace_ns=_paces(state[1]),
        solo_ns=_pair(*state[2:4]),
        started_ns=state[4],
        places=launches[launch_id].places,
    )


def measurement_without_samples(point: Point, launch_id: int) -> Measurement:
    """In the place of a damaged one, so that a measurement and its summary keep the same place; no figure counts it."""
    import numpy as np

    none = (0,) * point.ranks
    empty = np.zeros((point.ranks, 0), dtype=np.int64)
    return Measurement(point, launch_id, 0, 0.0, 1, _NO_DEFINITION, empty, none, none, none, None, verified=False)


def mend_summary(row: Row) -> tuple[Row, str | None]:
    """The row, or one without samples in its place and which column is damaged."""
    try:
        refuse_damaged(row, _SUMMARY)
        if not _has_median(row):
            raise DamagedRow("median_ns")
        _paces(row[-2])
        _counters(row[-1])
    except DamagedRow as damage:
        definition = (_NO_DEFINITION.timed, 1, 0, 0, None)
        return (*row[:2], 0, 0, 1, *definition, *[None] * (len(_SUMMARY) - 10)), damage.column
    return row, None


def are_sound(found: Sequence[Row]) -> bool:
    """Whether none of these rows, SUMMARY, is damaged, as far as that can be seen fast."""
    return sound(found, _SUMMARY) and all(map(_has_median, found))


def _has_median(row: Row) -> bool:
    """Of no samples there is none, of some there is."""
    return bool(row[3] > 0) == (row[10] is not None)


def summaries_of(found: Sequence[Row], launches: Mapping[int, Launch]) -> list[MeasurementSummary]:
    """Rows: SUMMARY. All at once, because a large run has hundreds of thousands of them. Raises DamagedRow."""
    paces = checks.loads(f"[{','.join(row[-2] or 'null' for row in found)}]", "pace_ns")
    if len(paces) != len(found) or not _are_paces(paces):
        raise DamagedRow("pace_ns")
    definitions: dict[Row, Definition] = {}
    summaries = []
    for row, pace in zip(found, paces, strict=True):
        point_id, launch_id, round_, samples, batch, *_ = row
        median_ns, min_ns, max_ns, steal, floor_ns, floor_too_ns, solo_ns, solo_too_ns, reference, _, counters = row[
            10:
        ]
        words = row[5:10]
        definition = definitions.get(words) or definitions.setdefault(words, Definition(*words))
        signs = MachineProbe(
            _pair(floor_ns, floor_too_ns),
            _as_paces(pace),
            _pair(solo_ns, solo_too_ns),
            reference,
            launches[launch_id].places,
        )
        times = median_ns, min_ns, max_ns
        counts = _counters(counters)
        summaries.append(
            MeasurementSummary(point_id, launch_id, round_, samples, batch, definition, *times, steal, signs, counts)
        )
    return summaries


def _counters(text: str | None) -> Mapping[str, tuple[float, ...]]:
    """Of a measurement without any the same for all, because a large run has hundreds of thousands of them."""
    if not text:
        return _NO_COUNTERS
    found = checks.loads(text, "counters")
    if not isinstance(found, dict) or not all(checks.fits(values, _NUMBERS) for values in found.values()):
        raise DamagedRow("counters")
    return {name: tuple(values) for name, values in found.items()}


def _paces(text: str | None) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    pace = None if text is None else checks.loads(text, "pace_ns")
    if not _are_paces([pace]):
        raise DamagedRow("pace_ns")
    return _as_paces(pace)


def _as_paces(value: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    return None if value is None else (tuple(value[0]), tuple(value[1]))


def _are_paces(values: Iterable[object]) -> bool:
    """Whether each is None or two lists of numbers above 0. Of hundreds of thousands of them: each step is in C."""
    known: list[Any] = [value for value in values if value is not None]
    if not (set(map(type, known)) <= {list} and set(map(len, known)) <= {2}):
        return False
    sides = list(itertools.chain.from_iterable(known))
    if not set(map(type, sides)) <= {list}:
        return False
    paces = list(itertools.chain.from_iterable(sides))
    return set(map(type, paces)) <= {int, float} and min(paces, default=1) > 0 and math.isfinite(sum(paces))


def _pair(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)
