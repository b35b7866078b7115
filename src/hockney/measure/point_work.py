"""A point while it is measured: its measurements so far, its batch, and how far it has got."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hockney.errors import HockneyError
from hockney.measure.estimate import SAMPLES_MIN, SCHEDULE_EVENTS_MIN, events_on_schedule
from hockney.model import MachineProbe, Measurement, Point
from hockney.results.figures import main_state
from hockney.stats.figures import main_batch
from hockney.stats.interval import Interval, median_in_order
from hockney.stats.states import MIXED, State
from hockney.units import format_ns

FILL = 4  # a measurement begins with this part of a batch, untimed: 1 of 4
SCHEDULE_FILL = 20  # on schedule with this part of its events
ENDS_WANTED = 25  # a stream lasts as many times what its ends take, which then are 4 % of its figure
ENDS_EXACT = 100  # on a model
ENDS_LEAST = 8  # of a shorter one the batch makes the figure


class PointFailed(HockneyError):
    """A point cannot be measured any more; `skipped`: a limit of the transport or the machine, not a defect."""

    def __init__(self, reason: str, *, skipped: bool = False) -> None:
        self.skipped = skipped
        super().__init__(reason)


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
    ends_ns: float = 0.0  # what a batch of a stream takes besides its repetitions, if that makes it longer
    once: Measurement | None = None  # one repetition of a stream, until its ends are known
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
        self.asked_at, self.first_s = len(self.probes), None

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
        return {
            state: median_in_order([ns for batch, ns in pairs if batch == main[state]])
            for state, pairs in by_state.items()
        }


def batch_ns(measurement: Measurement) -> float:
    """How long a batch took, on the slowest rank: the middle one of its samples."""
    slowest_ns = sorted(measurement.elapsed_ns.max(axis=0).tolist())
    return max(1.0, float(slowest_ns[len(slowest_ns) // 2]))


def repetition_ns(measurement: Measurement) -> float:
    """How long a repetition took, on the slowest rank."""
    return batch_ns(measurement) / measurement.batch


# ---- the ends of a stream: the way of its first message, and of the last acknowledgement -----------------------------


def timed_ns(measurement: Measurement) -> list[float]:
    """How long the batch of each sample took, as its figure counts it."""
    times_ns: list[float] = measurement.times_ns().tolist()
    return [ns * measurement.batch * measurement.definition.divisor for ns in times_ns]


def ends_ns(once: Measurement, measurement: Measurement) -> float:
    """What a batch takes besides its repetitions; `once`: batches of one repetition, of which the quickest counts."""
    batch = measurement.batch
    if batch == 1:
        return 0.0
    return max(0.0, (batch * min(timed_ns(once)) - statistics.median(timed_ns(measurement))) / (batch - 1))


def batch_for_ends(measurement: Measurement, ends_ns: float, times: float) -> float:
    """The repetitions that last so many `times` what the ends take; infinite where repetitions take no time."""
    each_ns = (statistics.median(timed_ns(measurement)) - ends_ns) / measurement.batch
    return 0.0 if ends_ns <= 0 else times * ends_ns / each_ns if each_ns > 0 else math.inf


def refuse_short(measurement: Measurement, ends_ns: float, remedy: str) -> None:
    """Refuse the figure of a stream that its batch makes. Raises PointFailed."""
    if measurement.batch < batch_for_ends(measurement, ends_ns, ENDS_LEAST):
        raise PointFailed(
            f"its batch would make its figure: {measurement.batch} repetitions last less than {ENDS_LEAST} times the "
            f"way of a message and of its acknowledgement, {format_ns(ends_ns)}; {remedy}",
            skipped=True,
        )


def curve_in_one_state(works: Sequence[Work]) -> list[tuple[Point, Interval]]:
    """The points with an interval in the state with the most intervals: each state has a different line."""
    curves: dict[str, list[tuple[Point, Interval]]] = {}
    for work in works:
        for state, time in work.times_by_state().items():
            if time.low is not None:
                curves.setdefault(state, []).append((work.point, time))
    return max(curves.values(), key=len, default=[])


# ---- models ---------------------------------------------------------------------------------------------------------


def measure_exactly(
    point: Point, measure: Callable[..., Measurement], *, batch: int = 4, samples: int = SAMPLES_MIN
) -> Measurement:
    """A measurement of `samples` times `batch` repetitions; of a stream more, of events on schedule one each.

    Of what a launch does once it has one sample. `measure` takes a batch, `samples` and `warmup`. Raises PointFailed
    where there is no figure.
    """
    if point.traits.once:
        return measure(1, samples=1, warmup=0)
    if point.rate_hz:
        events = max(SCHEDULE_EVENTS_MIN, events_on_schedule(point.rate_hz))
        return measure(1, samples=events, warmup=max(1, events // SCHEDULE_FILL))
    if point.is_stream:
        return _measure_stream(functools.partial(measure, samples=samples), measure(1, samples=1, warmup=0))
    return refuse_no_time(measure(batch, samples=samples, warmup=max(1, batch // FILL)))


def _measure_stream(measure: Callable[..., Measurement], once: Measurement) -> Measurement:
    """Its samples have 256 events and are long enough for its ends, after what fills the buffer of a byte stream."""
    most = most_repetitions(once)
    batch = min(max(2, math.ceil(256 / once.definition.divisor)), most)
    warmup = max(1, batch // FILL)
    while True:
        measurement = refuse_no_time(measure(batch, warmup=warmup))
        ends = ends_ns(once, measurement)
        wanted = min(most, batch_for_ends(measurement, ends, ENDS_EXACT))
        if batch < wanted:
            batch = min(most, max(2 * batch, math.ceil(wanted)))
            warmup = max(1, batch // FILL)
        elif keeps_pace(measurement):
            refuse_short(measurement, ends, "longer messages take more time each")
            return measurement
        elif warmup < most:
            warmup = min(4 * warmup, most)
        else:
            raise PointFailed(
                f"{most} writes do not fill the buffer between writer and reader, so their times differ: choose longer "
                "writes, or a smaller buffer_bytes",
                skipped=True,
            )


def refuse_no_time(measurement: Measurement) -> Measurement:
    """The measurement, unless no time passed where it is timed. Raises PointFailed."""
    if any(timed_ns(measurement)):
        return measurement
    raise PointFailed(
        "the model has no cost for what the timed rank does, so it has no time: give it one, as send_cpu, or choose "
        "until=acked",
        skipped=True,
    )


def keeps_pace(measurement: Measurement) -> bool:
    """Whether writer and reader take as long as each other in every sample; of other patterns ranks differ."""
    if measurement.point.pattern != "stream":
        return True
    sides = measurement.elapsed_ns[:2]
    return bool((abs(sides[0] - sides[1]) <= sides.max(axis=0) / 50).all())


def most_repetitions(measurement: Measurement) -> int:
    """How many repetitions, 2 or more, a batch may have, so that no more messages are simulated than in a moment."""
    # A barrier counts no message. A stream's ends take a second repetition to be known.
    return max(2, (1 << 18) // max(measurement.point.ranks, measurement.definition.messages_per_rep))
