"""The sampler's interfaces: an Instrument that measures points, and an Observer of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hockney.errors import HockneyError
from hockney.model import Measurement, Point, PointStatus


class Instrument(Protocol):
    """Measures points. Every call ends within a time limit or raises."""

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        """One measurement. Raises PointFailed: this point cannot be measured any more; others may be."""
        ...

    def clock_ns(self, point: Point) -> float:
        """The cost of reading the clock in this point's job. Raises PointFailed."""
        ...


class PointFailed(HockneyError):
    """A point cannot be measured; `skipped`: because of a limit of the transport or the machine, not a defect."""

    def __init__(self, reason: str, *, skipped: bool = False) -> None:
        self.skipped = skipped
        super().__init__(reason)


class Observer(Protocol):
    """Receives events, for the store and the display. Methods must not take long."""

    def measured(self, measurement: Measurement) -> None:
        """A measurement is made."""
        ...

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        """A round is over, or was cut short, with these measurements."""
        ...

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """A point is finished. A precise one may go on next to an added size, and end again."""
        ...

    def points_added(self, points: Sequence[Point]) -> None:
        """Sizes were added where a curve bends."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a run is. `left_most_s` is the rest of its budget.

    `left_s` estimates the time for the unfinished points if intervals narrow as expected and no size is added.
    """

    round: int
    points: int
    finished: int
    elapsed_s: float
    left_s: float
    left_most_s: float
