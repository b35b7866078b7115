"""What to measure next, and when to stop: rounds over all points in random order until each is precise enough.

Every round measurements every unfinished point once, in random order, so that whatever disturbs the machine for a while
disturbs all points alike and shows as scatter between rounds instead of as a difference between points (Gropp and
Lusk 1999: repeat the whole sweep, not each point). The replicate is the measurement: samples of one measurement are
neighbours in time and share its luck. A point ends when the order-statistic interval of the median over measurements
in one state of the machine is as narrow as asked, or when the time is up; its status says which.

The sampler knows neither workers nor stores: it asks an Instrument and tells an Observer, so that whole runs can be
tested with a clock and a machine made up for the purpose.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

from hockney.errors import HockneyError
from hockney.measure.estimate import MIN_MEASUREMENTS, SAMPLES_MIN, SPAN_S, long_ns, stream_ns
from hockney.measure.plan import Plan
from hockney.model import CurveKey, Measurement, Point, PointStatus, curve_of
from hockney.results.runs import main_state
from hockney.stats.figures import of_one_batch, signs_of
from hockney.stats.fit.refine import sizes_to_add
from hockney.stats.interval import Interval, median
from hockney.stats.states import MIXED, MachineProbe, State, classify

_CALM_LOOKS = 2  # who stops at the first narrow interval stops at the lucky ones
_PATIENCE = 3  # times MIN_MEASUREMENTS
_RETRIES_MAX = 10  # of a size that was seen in another state than its curve: some seconds, for the state to come back
_LOOK_GROWTH = 1.02  # a look goes through all measurements, so the next waits for 2 % more: else long runs only look
_BATCH_NS = 20_000  # a batch this long makes a clock of 25 ns cost well below 1 %
_MEASUREMENT_NS = 4_000_000  # how long the samples of one measurement may take, if a repetition is shorter than that
_SAMPLES_MAX = 40
_STREAM_BATCH_NS = 1_000_000  # of a stream: an acknowledgement at its end then weighs little
_STREAM_EVENTS = 64  # of a stream, in a batch; a window of 16 messages is 16 events
_FILL = 4  # a measurement begins with a part of a batch, untimed: one of so many
_CALIBRATIONS_MAX = 5
_GROWTH_MAX = 100  # of a batch, at once: the first repetitions may have been quick
_REFINED_MAX = 12  # sizes added to one curve
_EXACT_MAX = 48  # where the exact place of each switch is asked for
_LOOK_AGAIN = 1.25  # a curve is looked at again when it has so many times the measurements


def reached_text(time: Interval | None, measurements: int, over: str = "measurements") -> str:
    """How far a point got. `time` is of the state in which most of its measurements were made.

    `measurements` counts them all.
    """
    if time is None or time.precision is None:
        return f"no interval yet; measurements in all: {measurements}"
    return (
        f"the interval is +-{time.precision:.1%} over {time.n} {over} in one state; measurements in all: {measurements}"
    )


class Instrument(Protocol):
    """What can measure a point. Every call ends within a time limit or raises."""

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        """One measurement. Raises PointFailed: the point can't be measured (any more); others may be."""
        ...

    def clock_ns(self, point: Point) -> float:
        """What reading the clock costs where this point is measured. Raises PointFailed."""
        ...


class PointFailed(HockneyError):
    """A point can't be measured; `skipped` where that is no defect but a limit of the transport or the machine."""

    def __init__(self, reason: str, *, skipped: bool = False) -> None:
        self.skipped = skipped
        super().__init__(reason)


class Observer(Protocol):
    """Who is told what happens: the store, the progress display. Methods must not take long."""

    def measured(self, measurement: Measurement) -> None:
        """A measurement has come back."""
        ...

    def round_done(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        """A round is over, or was cut short: its measurements, not yet told to anybody else."""
        ...

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """A point is finished, one way or another. A precise one goes on beside an added size, and ends again."""
        ...

    def points_added(self, points: Sequence[Point]) -> None:
        """Sizes were added where a curve bends."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a run is. `left_most_s` is the rest of its budget, which it has to end in.

    `left_s` estimates what the unfinished points still need if all goes well: intervals narrow, nothing is added.
    """

    round: int
    points: int
    finished: int
    elapsed_s: float
    left_s: float
    left_most_s: float


@dataclass
class Work:
    """A point under way."""

    point: Point
    signs: list[MachineProbe] = field(default_factory=list)  # of the machine's state, one a measurement
    medians_ns: list[float] = field(default_factory=list)  # one a measurement
    batches: list[int] = field(default_factory=list)  # one a measurement
    states: list[State] = field(default_factory=list)  # one a measurement, as of the last look
    batch: int = 0  # 0: not calibrated
    samples: int = 0
    is_long: bool = False  # a repetition is a measurement by itself
    warm: bool = False  # it was measured in this launch, if only for calibration
    last: Measurement | None = None
    cost_s: float = 0.0  # of one measurement, all included
    first_s: float | None = None  # when its first measurement was over
    time: Interval | None = None  # in the state with most measurements, as of the last look
    calm: int = 0  # looks in a row at which the interval was narrow enough
    precise: bool = False  # it ended so, though it may be measured again beside another
    retries: int = 0  # how often it was measured again for want of measurements in the state of its curve
    asked_at: int = 0  # how many measurements it had when more were asked for, beside a new neighbour

    def add(self, measurement: Measurement) -> None:
        times_ns = sorted(measurement.times_ns().tolist())
        half = len(times_ns) // 2
        self.batches.append(measurement.batch)
        self.last = measurement
        self.signs.append(signs_of(measurement))
        self.medians_ns.append(times_ns[half] if len(times_ns) % 2 else (times_ns[half - 1] + times_ns[half]) / 2)

    @property
    def precision(self) -> float | None:
        """The interval's longer arm as a fraction of the value."""
        return None if self.time is None else self.time.precision

    def set_batch(self, batch: int, repetition_ns: float) -> None:
        """How a measurement is made: so many samples of so many repetitions as its time allows."""
        least = 1 if self.point.is_stream else SAMPLES_MIN
        self.batch = batch
        self.samples = int(min(_SAMPLES_MAX, max(least, _MEASUREMENT_NS / (batch * repetition_ns))))

    @property
    def warmup(self) -> int:
        """Repetitions before the first sample: of a stream they fill it."""
        return 0 if self.is_long else max(1, self.batch // _FILL)

    def wants_check(self) -> bool:
        """Checking a long payload takes longer than sending it: once per point, and always where it is short."""
        return not self.signs or self.point.bytes <= 1 << 16

    def begin_anew(self) -> None:
        """As many measurements again as a point needs, and over as long a time."""
        self.asked_at, self.first_s, self.calm = len(self.signs), None, 0

    @property
    def measurements_since(self) -> int:
        """Measurements since it was last asked for more."""
        return len(self.signs) - self.asked_at

    def has_enough(self) -> bool:
        """Whether it has as many measurements as a point needs.

        Beside a new neighbour only those count in which the state lasted, for others are in no figure; but where it
        changes all the time there would be no end, so that is waited for only so long.
        """
        if self.asked_at == 0 or self.measurements_since >= _PATIENCE * MIN_MEASUREMENTS:
            return self.measurements_since >= MIN_MEASUREMENTS
        return sum(state != MIXED for state in self.states[self.asked_at :]) >= MIN_MEASUREMENTS

    @property
    def reached(self) -> str:
        """How far it got, for the reason of its end."""
        return reached_text(self.time, len(self.signs))


class Sampler:
    """One launch of a plan. `earlier` are measurements of a run that goes on: they count.

    `alike` are measurements of earlier launches, which are made again with as many repetitions.
    `measurements`: a point ends after so many, however precise, for what decides is the interval over launches.
    """

    def __init__(
        self,
        plan: Plan,
        instrument: Instrument,
        observer: Observer,
        *,
        seed: int,
        clock: Callable[[], float],
        earlier: Sequence[Measurement] = (),
        alike: Mapping[Point, Measurement] | None = None,
        start_round: int = 0,
        measurements: int | None = None,
    ) -> None:
        self._plan = plan
        self._instrument = instrument
        self._observer = observer
        self._random = random.Random(seed)
        self._clock = clock
        self._span_s = SPAN_S / plan.launches
        self._measurements = measurements
        self._deadline_s = math.inf
        self._round = self._first_round = start_round
        self._work = {point: Work(point) for point in plan.points}
        self._pending: list[Measurement] = []
        self._finished = 0
        self._looked_at = 0  # measurements, at the last look
        self._given_up: set[Point] = set()
        self._refined: Counter[CurveKey] = Counter(curve_of(point) for point in plan.points if point.role == "refined")
        self._looked: Counter[CurveKey] = Counter()  # measurements of a curve when it was last looked at
        self._alike = {**(alike or {}), **{measurement.point: measurement for measurement in earlier}}
        for measurement in earlier:
            if measurement.point in self._work:
                self._work[measurement.point].add(measurement)

    def run(self, budget_s: float) -> None:
        """Measure until every point has ended or budget_s have passed.

        What is measured is told round by round, also when an exception (Ctrl-C) ends it in the middle of one.
        """
        active = list(self._work.values())
        if any(work.signs for work in active):
            for work in active:
                if work.signs:
                    work.calm = _CALM_LOOKS - 1
                    work.first_s = self._clock() - self._span_s
            active = self._judge(active)  # what was precise already stays so
            active += self._measure_again([work for work in active if work.point.role == "refined"], active)
        start_s = self._clock()  # only now: to judge many earlier measurements may take longer than a short budget
        self._deadline_s = start_s + budget_s
        self._long_ns = long_ns(len(active), budget_s)
        self._stream_ns = stream_ns(len(active), budget_s, self._plan.timeout_s)
        for work in self._work.values():
            self._make_alike(work)
        try:
            while active and (self._round == self._first_round or not self._is_over()):
                self._one_round(active)
                over = self._is_over()
                if over or self._measurements_made() >= _LOOK_GROWTH * self._looked_at:
                    active = self._judge(active, refine=not over)
                self._tell_round(active, start_s, budget_s)
        except KeyboardInterrupt:
            if self._pending:
                self._tell_round(active, start_s, budget_s)
            for work in active:
                if work.signs:
                    self._end_early(work, PointStatus.STOPPED, "the run was stopped")
            raise
        finally:
            if self._pending:
                self._tell_round(active, start_s, budget_s)
        for work in active:
            self._end_early(work, PointStatus.BUDGET, "the time was up")

    def _make_alike(self, work: Work) -> None:
        """A figure never mixes batches: what was counted in an earlier launch is not counted again."""
        measurement = self._alike.get(work.point)
        if measurement is not None and measurement.elapsed_ns.size:
            work.batch, work.samples = measurement.batch, measurement.elapsed_ns.shape[1]
            work.is_long = work.batch == work.samples == 1 and _batch_ns(measurement) >= self._long_ns

    @property
    def alike(self) -> dict[Point, Measurement]:
        """The last measurement of every point, for the launches that follow."""
        own = {point: work.last for point, work in self._work.items() if work.last is not None}
        return {**self._alike, **own}

    @property
    def rounds(self) -> int:
        """Rounds so far, earlier ones included."""
        return self._round

    @property
    def points(self) -> tuple[Point, ...]:
        """The plan's and those that were added."""
        return tuple(self._work)

    def _is_over(self) -> bool:
        return self._clock() >= self._deadline_s

    # ---- one round ---------------------------------------------------------------------------------------------------

    def _one_round(self, active: list[Work]) -> None:
        order = active[:]
        if self._round > 0:  # the first goes through the plan as written, so that a first figure comes soon
            self._random.shuffle(order)
        for work in order:
            # The first round of a launch is always made whole: a figure with few measurements is worth more than none.
            if self._round > self._first_round and self._is_over():
                break
            begin_s = self._clock()
            try:
                if not work.warm:
                    self._calibrate(work)
                    begin_s = self._clock()
                measurements = self._take(work)
            except PointFailed as failure:
                active.remove(work)
                self._given_up.add(work.point)
                self._end(work, PointStatus.SKIPPED if failure.skipped else PointStatus.FAILED, str(failure))
                continue
            now_s = self._clock()
            work.cost_s = now_s - begin_s
            work.first_s = now_s if work.first_s is None else work.first_s
            for measurement in measurements:
                work.add(measurement)
                self._pending.append(measurement)
                self._observer.measured(measurement)
        self._round += 1

    def _take(self, work: Work) -> list[Measurement]:
        """The measurements of one point in one round."""
        return [self._measure_point(work)]

    def _measure_point(self, work: Work) -> Measurement:
        """A measurement whose batches are long enough.

        Repetitions may have been counted on a cold path, or while the machine was slower. One that shows it is made
        again, with more: reading the clock, and coming together before each batch, would be a part of its times.
        """
        verify = work.wants_check()
        for _ in range(_CALIBRATIONS_MAX):
            measurement = self._measure(work, work.batch, samples=work.samples, warmup=work.warmup, verify=verify)
            batch = self._next_batch(work, measurement)
            if batch == work.batch:
                break
            work.set_batch(batch, _repetition_ns(measurement))
        return measurement

    def _measure(self, work: Work, batch: int, *, samples: int, warmup: int, verify: bool = False) -> Measurement:
        return self._instrument.measure(
            work.point, round_=self._round, batch=batch, samples=samples, warmup=warmup, verify=verify
        )

    def _calibrate(self, work: Work) -> None:
        """How many repetitions make a batch, if that is not known from an earlier launch.

        These samples only warm up; they are not kept.
        """
        work.warm = True
        if work.batch > 0:
            if not work.is_long:
                self._measure(work, work.batch, samples=1, warmup=work.warmup)
            return
        long = self._long_repetition(work)
        if long is not None:
            work.set_batch(self._wanted_batch(work, long), _repetition_ns(long))
            work.is_long = work.batch == 1
            work.samples = 1
            return
        work.batch = 1
        for _ in range(_CALIBRATIONS_MAX):
            measurement = self._measure(work, work.batch, samples=SAMPLES_MIN, warmup=1)
            is_enough = _batch_ns(measurement) >= _BATCH_NS / 2
            wanted = self._wanted_batch(work, measurement)
            work.set_batch(
                wanted if is_enough else min(wanted, _GROWTH_MAX * measurement.batch), _repetition_ns(measurement)
            )
            if is_enough:
                break

    def _next_batch(self, work: Work, measurement: Measurement) -> int:
        """This batch, or a longer one where twice as many repetitions are wanted."""
        wanted = self._wanted_batch(work, measurement)
        return measurement.batch if measurement.batch >= wanted / 2 else min(wanted, _GROWTH_MAX * measurement.batch)

    def _wanted_batch(self, work: Work, measurement: Measurement) -> int:
        """As many repetitions as make reading the clock cost less than 1 % of a batch.

        Of a stream also so many that its ends weigh little, and no more than have room in a measurement.
        """
        repetition_ns = _repetition_ns(measurement)
        clocked = math.ceil(max(_BATCH_NS, 200 * self._instrument.clock_ns(work.point)) / repetition_ns)
        if not work.point.is_stream:
            return clocked
        # Of datagrams no more than a receiver has room for: ranks come together between batches alone.
        least_ns = 0 if "lost" in measurement.counters else _STREAM_BATCH_NS
        wanted = max(clocked, least_ns / repetition_ns, _STREAM_EVENTS / measurement.definition.divisor)
        return max(1, min(math.ceil(wanted), int(self._stream_ns / repetition_ns / (1 + 1 / _FILL))))

    def _long_repetition(self, work: Work) -> Measurement | None:
        """A repetition that may be a measurement by itself.

        The first may be long as the first: a second one tells, in time.

        By itself, so that a long one need not come twice within the limit. On a transport that keeps requests,
        mpi:persistent, it does come twice, at every measurement (docs/protocol.md).
        """
        for _ in range(2):
            measurement = self._measure(work, 1, samples=1, warmup=0)
            if _batch_ns(measurement) < self._long_ns:
                return None
            if self._is_over():
                break
        return measurement

    # ---- a look, after a round ---------------------------------------------------------------------------------------

    def _measurements_made(self) -> int:
        return sum(len(work.signs) for work in self._work.values())

    def _judge(self, active: list[Work], *, refine: bool = True) -> list[Work]:
        """End what is precise, look closer where a curve bends if there is time for it, and return what goes on."""
        # States are told from all measurements of the run: the more there are, the surer the levels.
        everything = list(self._work.values())
        self._looked_at = self._measurements_made()
        states = iter(classify([signs for work in everything for signs in work.signs]))
        for work in everything:
            work.states = [next(states) for _ in work.signs]
            work.time = _time_in_main_state(work)
        now_s = self._clock()
        going_on = []
        for work in active:
            spread = work.first_s is not None and now_s - work.first_s >= self._span_s
            enough = self._is_narrow(work) and work.has_enough()
            if self._measurements is not None:
                work.calm, enough = _CALM_LOOKS - 1, work.measurements_since >= self._measurements
            work.calm = work.calm + 1 if enough and spread else 0
            if work.calm >= _CALM_LOOKS:
                self._end(work, PointStatus.PRECISE, None)
            else:
                going_on.append(work)
        added = self._refine({work.point for work in going_on}) if refine else []
        return going_on + added + self._measure_again(added, going_on)

    def _is_narrow(self, work: Work) -> bool:
        return work.precision is not None and work.precision <= self._plan.precision

    def _refine(self, unfinished: set[Point]) -> list[Work]:
        """Sizes where a curve leaves its line, once all its points are known well enough.

        Also one that is there already, but known in another state of the machine than the rest.
        """
        added: list[Work] = []
        known_elsewhere: list[Work] = []
        room_at_most = _EXACT_MAX if self._plan.exact else _REFINED_MAX
        for curve in sorted(self._plan.refine):
            works = self._measured(curve)
            known = _curve_in_one_state(works)
            unknown = {work.point for work in works} - {point for point, _ in known}
            room = room_at_most - self._refined[curve]
            if room <= 0 or not known or not unfinished.isdisjoint(unknown):
                continue
            if not self._is_news(curve, works, unfinished):
                continue
            grain = self._plan.grains.get(works[0].point.pattern, 1)
            times = [(point.bytes, time) for point, time in known]
            points = [
                replace(works[0].point, bytes=size, role="refined")
                for size in sizes_to_add(times, grain_bytes=grain, exact=self._plan.exact)
            ]
            new = [Work(point) for point in [point for point in points if point not in self._work][:room]]
            self._refined[curve] += len(new)
            added += new
            elsewhere = [self._work[point] for point in points if point in unknown]
            known_elsewhere += [work for work in elsewhere if work.retries < _RETRIES_MAX]
        if added:
            self._work.update({work.point: work for work in added})
            self._observer.points_added([work.point for work in added])
        for work in known_elsewhere:
            work.retries += 1
            work.begin_anew()
        self._finished -= len(known_elsewhere)
        return added + known_elsewhere

    def _measured(self, curve: CurveKey) -> list[Work]:
        """A curve's points by size, without those that can't be measured."""
        works = [work for point, work in self._work.items() if curve_of(point) == curve]
        return sorted((work for work in works if work.point not in self._given_up), key=lambda work: work.point.bytes)

    def _measure_again(self, added: Sequence[Work], active: Sequence[Work]) -> list[Work]:
        """Beside each added size its neighbours: what is compared needs the same rounds, or drift counts as well.

        Gives those that had ended and now go on.
        """
        new = {work.point for work in added}
        under_way = {work.point for work in active}
        beside = {
            one.point: one
            for curve in {curve_of(point) for point in new}
            for pair in pairwise(self._measured(curve))
            if any(one.point in new for one in pair)
            for one in pair
            if one.point not in new
        }
        for work in beside.values():
            work.begin_anew()
        rejoined = [work for point, work in beside.items() if point not in under_way]
        self._finished -= len(rejoined)
        return rejoined

    def _is_news(self, curve: CurveKey, works: Sequence[Work], unfinished: set[Point]) -> bool:
        """Whether a curve has enough new measurements for another look, or its last ones."""
        measurements = sum(len(work.signs) for work in works)
        over = unfinished.isdisjoint(work.point for work in works)
        if measurements < self._looked[curve] * (1 if over else _LOOK_AGAIN) + 1:
            return False
        self._looked[curve] = measurements
        return True

    def _end_early(self, work: Work, status: PointStatus, why: str) -> None:
        """A point that was precise already stays so where more measurements have left it so."""
        if work.precise and self._is_narrow(work):
            self._end(work, PointStatus.PRECISE, None)
        else:
            self._end(work, status, f"{why}: {work.reached}")

    def _end(self, work: Work, status: PointStatus, reason: str | None) -> None:
        self._finished += 1
        work.precise = status is PointStatus.PRECISE
        self._observer.point_ended(work.point, status, reason)

    def _tell_round(self, active: list[Work], start_s: float, budget_s: float) -> None:
        elapsed_s = self._clock() - start_s
        most_s = max(0.0, budget_s - elapsed_s) if active else 0.0
        left_s = min(self._wanted_s(active), most_s)
        progress = Progress(self._round, len(self._work), self._finished, elapsed_s, left_s, most_s)
        # Last, and let go of before they are told: an interrupt must neither lose a round nor tell it twice.
        measurements, self._pending = self._pending, []
        self._observer.round_done(measurements, progress)

    def _wanted_s(self, active: Sequence[Work]) -> float:
        """For the measurements that points still need, and no less than until the last may end: see `_judge`."""
        known_s = [work.cost_s for work in active if work.cost_s]
        usual_s = sum(known_s) / max(1, len(known_s))  # of one that was just added
        measurements_s = sum((work.cost_s or usual_s) * self._measurements_wanted(work) for work in active)
        now_s = self._clock()
        begun_s = max((now_s if work.first_s is None else work.first_s for work in active), default=-math.inf)
        return max(measurements_s, begun_s + self._span_s - now_s)

    def _measurements_wanted(self, work: Work) -> float:
        """An interval narrows with the root of the number of measurements."""
        done = len(work.signs)
        if self._measurements is not None:
            return max(1, self._measurements - work.measurements_since)
        least = max(1, MIN_MEASUREMENTS - work.measurements_since, _CALM_LOOKS - work.calm)
        if work.precision is None:
            return least
        return max(least, done * ((work.precision / self._plan.precision) ** 2 - 1))


def _batch_ns(measurement: Measurement) -> float:
    """How long a batch took, on the slowest rank: the middle one of its samples."""
    slowest_ns = sorted(measurement.elapsed_ns.max(axis=0).tolist())
    return max(1.0, float(slowest_ns[len(slowest_ns) // 2]))


def _repetition_ns(measurement: Measurement) -> float:
    return _batch_ns(measurement) / measurement.batch


def _by_state(work: Work) -> dict[str, list[float]]:
    """The medians of a point's measurements by state, of those that a figure is made of."""
    found: dict[str, list[float]] = {}
    counts = of_one_batch([0] * len(work.batches), work.batches, work.states)
    for median_ns, state, is_counted in zip(work.medians_ns, work.states, counts, strict=True):
        if state != MIXED and is_counted:
            found.setdefault(state.name, []).append(median_ns)
    return found


def _time_in_main_state(work: Work) -> Interval | None:
    """The median over measurements in the state that counts; None without measurements."""
    by_state = _by_state(work)
    chosen = main_state([{state: len(medians_ns) for state, medians_ns in by_state.items()}])
    return None if chosen is None else median(by_state[chosen])


def _curve_in_one_state(works: Sequence[Work]) -> list[tuple[Point, Interval]]:
    """The points that have an interval in the state in which most of them have one: states make lines of their own."""
    curves: dict[str, list[tuple[Point, Interval]]] = {}
    for work in works:
        for state, medians_ns in _by_state(work).items():
            time = median(medians_ns)
            if time.low is not None:
                curves.setdefault(state, []).append((work.point, time))
    return max(curves.values(), key=len, default=[])
