"""Values of model.py <-> rows. Column lists stand here once, beside what packs and unpacks them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hockney.model import (
    Definition,
    Launch,
    Point,
    PointStatus,
    RunInfo,
    RunStatus,
    Visit,
    Warning_,
)
from hockney.stats.states import Signs
from hockney.store import codec
from hockney.store.records import RunSummary, StoredPoint, StoredRun, VisitSummary

Row = tuple[Any, ...]

RUN = "command, suite, label, started_unix_s, seed, version, facts, plan"
LAUNCH = "launch_index, transport, library, ranks, started_unix_s, argv, cpus, hosts, oversubscribed, clock_ns"
POINT = "transport, pattern, ranks, bytes, options, role"
WARNING = "kind, subject, cause, remedy"
SUMMARY = (
    "visit.point_id, launch_id, round, samples, timed, divisor, bytes_per_rep, messages_per_rep, algorithm, median_ns, "
    "min_ns, max_ns, steal, floor_before_ns, floor_after_ns, solo_before_ns, solo_after_ns, "
    "CASE WHEN floor_kind = 'transport' THEN point.transport END, pace_ns, counters"
)
VISIT = (
    "point_id, launch_id, round, started_unix_s, batch, timed, divisor, bytes_per_rep, messages_per_rep, algorithm, "
    "floor_before_ns, floor_after_ns, steal, verified, cpu_user_ns, cpu_system_ns, wall_ns, counters, "
    "floor_kind, pace_ns, solo_before_ns, solo_after_ns, started_ns"
)
VISIT_FIGURES = "samples, median_ns, min_ns, max_ns"  # beside VISIT when written, made from the samples
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
    """Row: id, the stored status, finished_unix_s, rounds, then RUN."""
    run_id, _, finished_unix_s, rounds, command, suite, label, started_unix_s, seed, version, facts, plan = row
    info = RunInfo(command, suite, label, started_unix_s, seed, version, json.loads(facts), json.loads(plan))
    return StoredRun(run_id, info, status, finished_unix_s, rounds, launches, warnings)


def summary_of_run(
    row: Row, status: RunStatus, transports: tuple[str, ...], points: Mapping[PointStatus, int], visited: int
) -> RunSummary:
    """Row: id, label, command, suite, started, finished (unix_s), the stored status, rounds, idle_s, seen_unix_s."""
    run_id, label, command, suite, started_s, finished_s, _, rounds, idle_s, seen_s = row
    return RunSummary(
        *(run_id, label, command, suite, started_s, finished_s, seen_s, idle_s, status, rounds),
        *(transports, points, visited),
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
    """Row: LAUNCH."""
    index, transport, library, ranks, started_unix_s, argv, cpus, hosts, oversubscribed, clock_ns = row
    return Launch(
        transport,
        library,
        ranks,
        started_unix_s,
        tuple(json.loads(argv)),
        tuple(json.loads(cpus)),
        tuple(json.loads(hosts)),
        bool(oversubscribed),
        clock_ns,
        index,
    )


def point_row(point: Point) -> Row:
    """For POINT."""
    return (point.transport, point.pattern, point.ranks, point.bytes, options_text(point), point.role)


def point_of(row: Row) -> StoredPoint:
    """Row: id, status, reason, then POINT."""
    point_id, status, reason, transport, pattern, ranks, size_bytes, options, role = row
    point = Point(transport, pattern, ranks, size_bytes, tuple(sorted(json.loads(options).items())), role)
    return StoredPoint(point_id, point, PointStatus(status), reason)


def visit_row(visit: Visit, point_id: int) -> Row:
    """For VISIT and VISIT_FIGURES."""
    import numpy as np

    times_ns = visit.times_ns()
    figures: Row = (0, None, None, None)
    if len(times_ns):
        figures = (len(times_ns), float(np.median(times_ns)), float(times_ns.min()), float(times_ns.max()))
    return (
        point_id,
        visit.launch_id,
        visit.round,
        visit.started_unix_s,
        visit.batch,
        visit.definition.timed,
        visit.definition.divisor,
        visit.definition.bytes_per_rep,
        visit.definition.messages_per_rep,
        visit.definition.algorithm,
        *(visit.floor_ns or (None, None)),
        visit.steal,
        visit.verified,
        pack(visit.cpu_user_ns),
        pack(visit.cpu_system_ns),
        pack(visit.wall_ns),
        pack(dict(visit.counters)) if visit.counters else None,
        visit.floor_kind,
        None if visit.pace_ns is None else pack(visit.pace_ns),
        *(visit.solo_ns or (None, None)),
        visit.started_ns,
        *figures,
    )


def visit_of(row: Row, point: Point, launches: Mapping[int, Launch]) -> Visit:
    """Row: VISIT, then the blob."""
    _, launch_id, round_, started_unix_s, batch, timed, divisor, per_rep, messages, algorithm = row[:10]
    before_ns, after_ns, steal, verified, cpu_user_ns, cpu_system_ns, wall_ns, counters, *state, blob = row[10:]
    return Visit(
        point=point,
        launch_id=launch_id,
        round=round_,
        started_unix_s=started_unix_s,
        batch=batch,
        definition=Definition(timed, divisor, per_rep, messages, algorithm),
        elapsed_ns=codec.decode(blob),
        cpu_user_ns=tuple(json.loads(cpu_user_ns)),
        cpu_system_ns=tuple(json.loads(cpu_system_ns)),
        wall_ns=tuple(json.loads(wall_ns)),
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


def summaries_of(found: Sequence[Row], launches: Mapping[int, Launch]) -> list[VisitSummary]:
    """Rows: SUMMARY. All at once, because a large run has hundreds of thousands of them."""
    paces = json.loads(f"[{','.join(row[-2] or 'null' for row in found)}]")
    definitions: dict[Row, Definition] = {}
    summaries = []
    for row, pace in zip(found, paces, strict=True):
        point_id, launch_id, round_, samples, *_ = row
        median_ns, min_ns, max_ns, steal, floor_ns, floor_too_ns, solo_ns, solo_too_ns, reference, _, counters = row[9:]
        words = row[4:9]
        definition = definitions.get(words) or definitions.setdefault(words, Definition(*words))
        signs = Signs(
            _pair(floor_ns, floor_too_ns),
            None if pace is None else (tuple(pace[0]), tuple(pace[1])),
            _pair(solo_ns, solo_too_ns),
            reference,
            launches[launch_id].places,
        )
        times = median_ns, min_ns, max_ns
        counts = _counters(counters)
        summaries.append(VisitSummary(point_id, launch_id, round_, samples, definition, *times, steal, signs, counts))
    return summaries


def _counters(text: str | None) -> Mapping[str, tuple[float, ...]]:
    """Of a visit without any the same for all, because a large run has hundreds of thousands of them."""
    return {name: tuple(values) for name, values in json.loads(text).items()} if text else _NO_COUNTERS


def _paces(text: str | None) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if text is None:
        return None
    before, after = json.loads(text)
    return tuple(before), tuple(after)


def _pair(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)
