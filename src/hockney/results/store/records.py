"""Values read from the store: those of model.py with fields that only the store knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hockney.model import Definition, Launch, MachineProbe, Point, PointStatus, RunInfo, RunStatus, Warning_


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
