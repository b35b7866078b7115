"""Error rates of comparisons and checks on simulated launches; `scripts/check-rates --simulated 1000` prints the table.

The launches violate the method's assumptions: heavy tails, skewed outliers, correlated neighbours, a different scatter
on each side, and drift that moves each series, the floor and the pace by different amounts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.stats import binomtest
from tests.builders import make_point

from hockney.analysis.compare import SeriesChange, Verdict
from hockney.analysis.compare.comparison import BETWEEN_RUNS, MatchedSeries, judge
from hockney.analysis.compare.drift import Probes
from hockney.measure.check import EARLY_SHARE, END_SHARE, LOOKS, Gate
from hockney.model import MachineProbe
from hockney.stats.shift import shifts

if TYPE_CHECKING:
    from hockney.model import FloatArray

KINDS = ("normal", "heavy", "two levels", "sides")
LAUNCHES = ((3, 5), (4, 4), (5, 5), (6, 6), (5, 10), (10, 10))
SLOWDOWN = 1.25
SIGNIFICANT = 0.05
DRIFTS = ("walk", "day", "step")
WAKE_UPS = (*DRIFTS, "two states")  # how wake-ups drift
_LAUNCH_S = 4.0
_SHORT_S = 2.5  # a launch of a check
_GAP_S = 600.0


# ---- many series, side by side --------------------------------------------------------------------------------------


def noise(rng: np.random.Generator, kind: str, series: int, m: int, n: int) -> FloatArray:
    """Logs of times: 2 % of scatter; heavy tails; two levels that differ by 15 %; 0.5 % in base and 3 % in new.

    All series of a launch share another 2 % of scatter.
    """
    plain = rng.standard_normal((series, m + n))
    scatter = {
        "normal": 0.02 * plain,
        "heavy": 0.02 * rng.standard_t(2, (series, m + n)),
        "two levels": 0.15 * rng.integers(0, 2, (series, m + n)) + 0.005 * plain,
        "sides": np.where(np.arange(m + n) < m, 0.005, 0.03) * plain,
    }[kind]
    result: FloatArray = scatter + 0.02 * rng.standard_normal((1, m + n))
    return result


def named(logs: FloatArray, m: int) -> set[int]:
    """The series that are reported as different; the first m launches are those of base."""
    times = np.exp(logs)
    changes = shifts([(row[:m].tolist(), row[m:].tolist()) for row in times])
    return {number for number, (_, chance) in enumerate(changes) if chance is not None and chance <= SIGNIFICANT}


def holds(rng: np.random.Generator, kind: str, m: int, n: int, series: int = 1) -> bool:
    """Whether the interval of the first series contains the true ratio."""
    times = np.exp(noise(rng, kind, series, m, n))
    shift, _ = shifts([(row[:m].tolist(), row[m:].tolist()) for row in times])[0]
    assert shift.low is not None
    assert shift.high is not None
    return shift.low <= 1 <= shift.high


def alarms(rng: np.random.Generator, kind: str, m: int, n: int, series: int) -> bool:
    """Whether any unchanged series is reported as different."""
    return bool(named(noise(rng, kind, series, m, n), m))


def is_named(rng: np.random.Generator, kind: str, m: int, n: int, series: int) -> bool:
    """Whether the slowdown of one series is reported."""
    logs = noise(rng, kind, series, m, n)
    logs[0, m:] += math.log(SLOWDOWN)
    return 0 in named(logs, m)


def rate(trial: Callable[[np.random.Generator], bool], trials: int) -> float:
    """The share of trials that are true, with fixed seeds."""
    return sum(trial(np.random.default_rng(seed)) for seed in range(trials)) / trials


# ---- whole checks ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """The machine on which a baseline and its check run.

    `slower` series take `ratio` times as long in the check. `bad` is the run with one launch that is 25 % slower.
    `drift` is the kind of drift; floor and pace follow it only where it is `seen`. Ranks sleep where `wakes`: wake-ups
    then follow the drift, and each series follows it more or less, and drifts by itself too. `is_shared`: another job
    comes and goes, and makes half of the series slower by up to 15 % for some launches in a row. A check has time for
    `checked` launches, and patience for `patient` more.
    """

    transports: int = 2
    sizes: int = 4
    launches: int = 6
    slower: int = 0
    ratio: float = SLOWDOWN
    bad: str | None = None
    drift: str | None = None
    seen: bool = True
    wakes: bool = False
    scatter: float = 0.03
    checked: int = 24
    patient: int = 48
    is_shared: bool = False

    @property
    def series(self) -> int:
        return self.transports * self.sizes


def check(machine: Machine, seed: int, gap_s: float = _GAP_S, margin: float = 1.05) -> dict[int, Verdict]:
    """The verdict of a check on each series, by the rules of hockney.measure.check."""
    return check_and_count(machine, seed, gap_s, margin)[0]


def check_and_count(
    machine: Machine, seed: int, gap_s: float = _GAP_S, margin: float = 1.05
) -> tuple[dict[int, Verdict], int]:
    """The verdict of a check on each series, and how many launches it made."""
    maker = _Maker(machine, np.random.default_rng(seed))
    base = maker.run("base", 0.0, machine.launches)
    new = maker.run("new", gap_s, machine.checked + machine.patient, _SHORT_S)
    made = 0

    def compared(margin: float, share: float, first: int) -> list[SeriesChange]:
        return _changes(machine, base, new.of(first, made), margin, share)

    gate = Gate(compared, margin, base_id=1)
    for end in dict.fromkeys((machine.checked, machine.checked + machine.patient)):
        for made in (*(look for look in LOOKS if made < look < end), end):
            if made < end and gate.is_over():
                break
        gate.answer(made, EARLY_SHARE if made < end else END_SHARE)
        if gate.is_slower or not gate.open:
            break
    return {number: change.verdict for number, change in enumerate(gate.changes.values())}, made


def compare(machine: Machine, seed: int, gap_s: float = _GAP_S) -> dict[int, Verdict]:
    """The verdict of a comparison on each series."""
    maker = _Maker(machine, np.random.default_rng(seed))
    runs = maker.run("base", 0.0, machine.launches), maker.run("new", gap_s, machine.launches)
    return {number: change.verdict for number, change in enumerate(_changes(machine, *runs, 1.0))}


@dataclass(frozen=True)
class _Run:
    """Logs of times (series, launches), floors, paces and wake-ups (launches)."""

    logs: FloatArray
    floors: FloatArray
    paces: FloatArray
    wakes: FloatArray | None

    def of(self, first: int, launches: int) -> _Run:
        """Without those before the first, and after as many as there are so far."""
        some = slice(first, launches)
        wakes = None if self.wakes is None else self.wakes[some]
        return _Run(self.logs[:, some], self.floors[some], self.paces[some], wakes)

    def probes(self) -> Probes:
        wakes = [None] * len(self.floors) if self.wakes is None else [(wake, wake) for wake in 1e4 * np.exp(self.wakes)]
        each = zip(np.exp(self.floors), np.exp(self.paces), wakes, strict=True)
        return {
            "near": {
                launch: [MachineProbe((30 * floor, 30 * floor), ((0.6 * pace,) * 2,) * 2, None, None, (), wake)]
                for launch, (floor, pace, wake) in enumerate(each)
            }
        }


class _Maker:
    def __init__(self, machine: Machine, rng: np.random.Generator) -> None:
        self._machine, self._rng = machine, rng
        self._drift = _drift(rng, machine.drift)
        self._own = [_drift(rng, "walk" if machine.wakes else None) for _ in range(machine.series)]
        self._moved = rng.uniform(0.3 if machine.wakes else 0.6, 1.2 if machine.wakes else 1.4, (machine.series, 1))
        self._woken = rng.uniform(0.8, 1.2)
        self._shown = (rng.uniform(0.3, 1.2), rng.uniform(0.0, 1.0)) if machine.seen else (0.0, 0.0)
        self._scatter = {side: rng.uniform(0.005, machine.scatter, (machine.series, 1)) for side in ("base", "new")}

    def run(self, side: str, begin_s: float, launches: int, launch_s: float = _LAUNCH_S) -> _Run:
        """Launches of a side, one of them bad if that is the bad side."""
        machine, rng = self._machine, self._rng
        shape = machine.series, launches
        at_s = begin_s + launch_s * np.arange(launches, dtype=np.float64)
        drift, own = self._drift(at_s), np.array([0.5 * own(at_s) for own in self._own])
        logs = self._scatter[side] * rng.standard_t(3, shape) / math.sqrt(3)
        logs += 0.01 * _correlated(rng, launches) + self._moved * drift + own
        logs += np.where(rng.random(shape) < 0.02, rng.exponential(0.1, shape), 0.0)
        if machine.is_shared:
            is_there = np.repeat(rng.random(launches // 4 + 1) < 0.3, 4)[:launches]
            logs += is_there * (rng.random((machine.series, 1)) < 0.5) * rng.uniform(0, 0.15, shape)
        if machine.bad == side:
            logs[:, rng.integers(launches)] += math.log(1.25)
        if side == "new":
            logs[: machine.slower] += math.log(machine.ratio)
        floors, paces = (
            scatter * rng.standard_normal(launches) + shown * drift
            for scatter, shown in zip((0.004, 0.002), self._shown, strict=True)
        )
        wakes = 0.03 * rng.standard_t(3, launches) / math.sqrt(3) + self._woken * drift
        return _Run(logs, floors, paces, wakes if machine.wakes else None)


def _correlated(rng: np.random.Generator, launches: int) -> FloatArray:
    values = rng.standard_normal(launches)
    for number in range(1, launches):
        values[number] = 0.3 * values[number - 1] + math.sqrt(1 - 0.3**2) * values[number]
    return values


def _drift(rng: np.random.Generator, kind: str | None) -> Callable[[FloatArray], FloatArray]:
    """The logarithm of the drift at a time in s: a random walk, a slow sine, one step, two states in turn, or none."""
    if kind == "walk":
        walk = np.cumsum(rng.normal(0, 0.07 / math.sqrt(_GAP_S), 2000))
        return lambda at_s: cast("FloatArray", walk[at_s.astype(int)])
    if kind == "day":
        period_s, height, phase = rng.uniform(1200, 7200), rng.uniform(0.03, 0.15), rng.uniform(0, 2 * math.pi)
        return lambda at_s: height * np.sin(2 * math.pi * at_s / period_s + phase)
    if kind == "step":
        step_s, height = rng.uniform(-300, 900), rng.choice([-1, 1]) * rng.uniform(0.03, 0.2)
        return lambda at_s: cast("FloatArray", height * (at_s > step_s))
    if kind == "two states":
        changes_s, height = np.cumsum(rng.exponential(180, 100)), rng.uniform(0.15, 0.4)
        return lambda at_s: cast("FloatArray", height * (np.searchsorted(changes_s, at_s) % 2))
    return lambda at_s: 0.0 * at_s


def _changes(machine: Machine, base: _Run, new: _Run, margin: float, share: float = 1.0) -> list[SeriesChange]:
    points = [make_point(8 << size, f"t{name}") for name in range(machine.transports) for size in range(machine.sizes)]
    sleeping = [f"t{name}" for name in range(machine.transports)] if machine.wakes else []
    times = zip(np.exp(base.logs).tolist(), np.exp(new.logs).tolist(), strict=True)
    between = BETWEEN_RUNS if machine.wakes else 0.0
    series = [MatchedSeries(point, "near", both, between=between) for point, both in zip(points, times, strict=True)]
    return judge(series, (base.probes(), new.probes(), sleeping), margin, share)


# ---- the table ------------------------------------------------------------------------------------------------------


def print_rates(cases: int) -> None:
    """Print each row when it is ready; the whole table takes minutes."""
    lines = _gate_lines, _early_lines, _launch_lines, _bad_launch_lines, _drift_lines, _wake_up_lines
    for line in (line for of in lines for line in of(cases)):
        print(line, flush=True)


def _launch_lines(cases: int) -> Iterator[str]:
    yield "| launches | interval holds the truth | any of 30 called different | x1.25 in one of 30 named |"
    yield "| --- | --- | --- | --- |"
    for m, n in LAUNCHES:
        cells = []
        for trial in (holds, alarms, is_named):
            rates = (rate(partial(trial, kind=kind, m=m, n=n, series=30), cases) for kind in KINDS)
            cells.append(", ".join(f"{100 * share:.1f}" for share in rates))
        yield f"| {m} and {n} | {' % | '.join(cells)} % |"


def _bad_launch_lines(cases: int) -> Iterator[str]:
    yield "| a launch 25 % slow in | series | x1.25 found | unchanged: false alarms |"
    yield "| --- | --- | --- | --- |"
    for bad in (None, "base", "new"):
        for transports, sizes in ((1, 1), (2, 4), (5, 6)):
            machine = Machine(transports, sizes, bad=bad)
            slower = Machine(transports, sizes, bad=bad, slower=1)
            detected = _share([check(slower, seed)[0] is Verdict.SLOWER for seed in range(cases)])
            alarmed = _share([Verdict.SLOWER in check(machine, seed).values() for seed in range(cases)])
            yield f"| {bad or 'none'} | {machine.series} | {detected} | {alarmed} |"


def _drift_lines(cases: int) -> Iterator[str]:
    yield "| drift, 10 minutes later | plan | check: false alarms | compare: false alarms |"
    yield "| --- | --- | --- | --- |"
    plans = {
        "2 transports": Machine(2, 4, scatter=0.02),
        "2 transports, not seen in floor and pace": Machine(2, 4, scatter=0.02, seen=False),
        "1 transport": Machine(1, 8, scatter=0.02),
        "1 series": Machine(1, 1, scatter=0.02),
    }
    for name, machine in plans.items():
        for drift in DRIFTS:
            drifting = replace(machine, drift=drift)
            checked = _share([Verdict.SLOWER in check(drifting, seed).values() for seed in range(cases)])
            moved = {Verdict.SLOWER, Verdict.FASTER}
            compared = _share([not moved.isdisjoint(compare(drifting, seed).values()) for seed in range(cases)])
            yield f"| {drift} | {name} | {checked} | {compared} |"
        slower = replace(machine, slower=1, ratio=1.1, scatter=0.015)
        detected = _share([check(slower, seed)[0] is Verdict.SLOWER for seed in range(cases)])
        yield f"| none, one series x1.10 | {name} | found: {detected} | |"


def _wake_up_lines(cases: int) -> Iterator[str]:
    yield "| wake-ups drift | plan | check: false alarms | compare: false alarms | one transport x1.25 found |"
    yield "| --- | --- | --- | --- | --- |"
    for transports, sizes in ((1, 4), (3, 4)):
        for drift in (None, *WAKE_UPS):
            machine = Machine(transports, sizes, drift=drift, seen=False, wakes=True)
            checked = _share([Verdict.SLOWER in check(machine, seed).values() for seed in range(cases)])
            moved = {Verdict.SLOWER, Verdict.FASTER}
            compared = _share([not moved.isdisjoint(compare(machine, seed).values()) for seed in range(cases)])
            slower = replace(machine, slower=sizes)
            detected = _share([Verdict.SLOWER in check(slower, seed).values() for seed in range(cases)])
            yield f"| {drift or 'not'} | {transports} transports of {sizes} | {checked} | {compared} | {detected} |"


def _early_lines(cases: int) -> Iterator[str]:
    yield "| one series takes | plan | found | others called slower | ended within six launches |"
    yield "| --- | --- | --- | --- | --- |"
    for ratio in (1.0, 1.1, 1.25, 3.0, 26.0):
        for transports, sizes in ((1, 1), (2, 4), (5, 6)):
            machine = Machine(transports, sizes, slower=1, ratio=ratio, scatter=0.02)
            ended = [check_and_count(machine, seed) for seed in range(cases)]
            slower = _share([verdicts[0] is Verdict.SLOWER for verdicts, _ in ended])
            alarmed = _share([Verdict.SLOWER in list(verdicts.values())[1:] for verdicts, _ in ended])
            early = _share([launches <= LOOKS[1] for _, launches in ended])
            yield f"| x{ratio:g} | {machine.series} | {slower} | {alarmed} | {early} |"


def _gate_lines(cases: int) -> Iterator[str]:
    yield "| 100 series, baseline of | another job | false alarms | x1.10 found | x1.25 found | x2 found, launches |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for launches in (6, 12, 24, 48):
        for is_shared in (False, True):
            machine = Machine(5, 20, launches=launches, checked=60, patient=0, is_shared=is_shared)
            cells = [_share([Verdict.SLOWER in check(machine, seed).values() for seed in range(cases)])]
            for ratio in (1.1, 1.25, 2.0):
                slower = replace(machine, slower=1, ratio=ratio)
                ended = [check_and_count(slower, seed) for seed in range(cases)]
                cells.append(_share([verdicts[0] is Verdict.SLOWER for verdicts, _ in ended]))
            middle = sorted(made for _, made in ended)[len(ended) // 2]
            yield f"| {launches} launches | {'yes' if is_shared else 'no'} | {' | '.join(cells)}, {middle} |"


def _share(outcomes: list[bool]) -> str:
    interval = binomtest(sum(outcomes), len(outcomes)).proportion_ci()
    return f"{100 * np.mean(outcomes):.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
