"""Values read from the store: those of model.py with fields that only the store knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hockney.model import Definition, Launch, MachineProbe, Point, PointStatus, RunInfo, RunStatus, Warning_


@dataclass(frozen=True)
class RunSummary:
    """One line of the list of runs. `points` counts them by status; statuses without a point are absent.

    `planned` counts them without those that were skipped, `measured` those of these that were measured once at least.
    `seen_unix_s` is when it ended or, of one without an end, when it was last heard of; `idle_s` is how long it lay
    between its end and its going on; None in a run stored before that was noted.
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
        """The same at the least: of one without an end until it was last heard of."""
        return None if self.idle_s is None else self.seen_unix_s - self.started_unix_s - self.idle_s


@dataclass(frozen=True)
class StoredRun:
    """All of a run but its points and measurements; with those a killed run can go on.

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

    `median_ns` is by the pattern's definition, None without samples. `probe` gives the machine state, together with all
    others of the run.
    """

    point_id: int
    launch_id: int
    round: int
    samples: int
    batch: int
    definition: Definition
    median_ns: float | None
    steal: float | None
    probe: MachineProbe
    counters: Mapping[str, tuple[float, ...]]
