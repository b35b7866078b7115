"""A point while it is measured: its measurements so far, its batch, and how far it has got."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hockney.measure.estimate import SAMPLES_MIN, SCHEDULE_EVENTS_MIN, events_on_schedule
from hockney.model import MachineProbe, Measurement, Point
from hockney.results.figures import main_state
from hockney.stats.figures import main_batch
from hockney.stats.interval import Interval, median
from hockney.stats.states import MIXED, State

FILL = 4  # a measurement begins with this part of a batch, untimed: 1 of 4
SCHEDULE_FILL = 20  # on schedule with this part of its events


def reached_text(precision: float | None, over: str, measurements: int) -> str:
    """How far a point got in its main state; `measurements` counts those of all states."""
    known = "no interval yet" if precision is None else f"the interval is +-{precision:.1%} over {over} in one state"
    return f"{known}; measurements in all: {measurements}"


@dataclass
class Work:
    """A point while it is measured. Lists hold one item per measurement; `states` and `time` are as judged last."""

    point: Point
    probes: list[MachineProbe] = field(default_factory=list)
    medians_ns: list[float] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    clock_ns: float = 0.0  # the cost of reading the clock there
    batch: int = 0  # 0: not calibrated
    batch_is_given: bool = False  # by an earlier launch
    samples: int = 0
    is_long: bool = False  # a repetition is a measurement by itself
    warm: bool = False  # it was measured in this launch, if only for calibration
    last: Measurement | None = None
    cost_s: float = 0.0  # of one measurement, with everything around it
    took_s: float = 0.0  # of all in this launch, calibration included, but without the start of its job
    first_s: float | None = None  # when its first measurement was over
    time: Interval | None = None  # in the main state
    narrow_checks: int = 0  # how often in a row the interval was narrow enough
    precise: bool = False  # it ended so, though it may be measured again next to an added size
    retries: int = 0  # how often it was measured again to see the state of its curve
    asked_at: int = 0  # how many measurements it had when more were asked for, next to an added size

    def add(self, measurement: Measurement) -> None:
        self.batches.append(measurement.batch)
        self.last = measurement
        self.probes.append(measurement.probe)
        self.medians_ns.append(statistics.median(measurement.times_ns().tolist()))

    @property
    def precision(self) -> float | None:
        return None if self.time is None else self.time.precision

    def set_batch(self, batch: int, repetition_ns: float) -> None:
        """How a measurement is made: samples of this many repetitions, as many as fit 4 ms, but no more than 40."""
        least = 1 if self.point.is_stream else SAMPLES_MIN
        self.batch = batch
        self.samples = int(min(40, max(least, 4_000_000 / (batch * repetition_ns))))

    @property
    def warmup(self) -> int:
        """Repetitions before the first sample: of a stream they fill it."""
        if self.point.rate_hz:
            return max(1, self.samples // SCHEDULE_FILL)
        return 0 if self.is_long else max(1, self.batch // FILL)

    def wants_check(self) -> bool:
        """Whether the next measurement verifies the payload: once per point, and always if it is short."""
        return not self.probes or self.point.bytes <= 1 << 16

    def begin_anew(self) -> None:
        """Begin again: the point needs as many measurements again, over as long a time."""
        self.asked_at, self.first_s, self.narrow_checks = len(self.probes), None, 0

    @property
    def measurements_since(self) -> int:
        """Measurements since it was last asked for more."""
        return len(self.probes) - self.asked_at

    @property
    def reached(self) -> str:
        """How far it got, for the reason of its end."""
        return reached_text(self.precision, f"{self.time.n if self.time else 0} measurements", len(self.probes))

    def time_in_main_state(self) -> Interval | None:
        """The median over its measurements in the main state; None without measurements."""
        times = self.times_by_state()
        chosen = main_state([{state: time.n for state, time in times.items()}])
        return None if chosen is None else times[chosen]

    def times_by_state(self) -> dict[str, Interval]:
        """The median over its measurements, of a stream those of one batch, in each state but "mixed"."""
        by_state: dict[str, list[tuple[int, float]]] = {}
        for batch, median_ns, state in zip(self.batches, self.medians_ns, self.states, strict=True):
            if state != MIXED:
                by_state.setdefault(state.name, []).append((batch if self.point.is_stream else 0, median_ns))
        main = {state: main_batch(batch for batch, _ in pairs) for state, pairs in by_state.items()}
        return {state: median([ns for batch, ns in pairs if batch == main[state]]) for state, pairs in by_state.items()}


def batch_ns(measurement: Measurement) -> float:
    """How long a batch took, on the slowest rank: the middle one of its samples."""
    slowest_ns = sorted(measurement.elapsed_ns.max(axis=0).tolist())
    return max(1.0, float(slowest_ns[len(slowest_ns) // 2]))


def repetition_ns(measurement: Measurement) -> float:
    """How long a repetition took, on the slowest rank."""
    return batch_ns(measurement) / measurement.batch


def curve_in_one_state(works: Sequence[Work]) -> list[tuple[Point, Interval]]:
    """The points with an interval in the state with the most intervals: each state has a different line."""
    curves: dict[str, list[tuple[Point, Interval]]] = {}
    for work in works:
        for state, time in work.times_by_state().items():
            if time.low is not None:
                curves.setdefault(state, []).append((work.point, time))
    return max(curves.values(), key=len, default=[])


# ---- models without noise -------------------------------------------------------------------------------------------


def measure_exactly(
    point: Point, measure: Callable[..., Measurement], *, batch: int = 4, samples: int = SAMPLES_MIN
) -> Measurement:
    """A measurement of `samples` times `batch` repetitions; of a stream more, of events on schedule one each.

    `measure` takes a batch, `samples` and `warmup`.
    """
    if point.rate_hz:
        events = max(SCHEDULE_EVENTS_MIN, events_on_schedule(point.rate_hz))
        return measure(1, samples=events, warmup=max(1, events // SCHEDULE_FILL))
    if point.is_stream:
        once = measure(1, samples=1, warmup=0)
        # After 256 events the ends weigh little.
        batch = max(1, min(math.ceil(256 / once.definition.divisor), most_repetitions(once)))
    return measure(batch, samples=samples, warmup=max(1, batch // FILL))


def most_repetitions(measurement: Measurement) -> int:
    """How many repetitions a batch may have, so that it has no more messages than are simulated in a moment."""
    # A barrier counts no message.
    return (1 << 18) // max(measurement.point.ranks, measurement.definition.messages_per_rep)
