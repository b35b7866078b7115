"""`hockney health`: rounds of all pairs of hosts, as many as fit the time; unusable hosts are left out.

In a round every host meets one other. The first pass goes through the rounds in random order, each idle and loaded in
both directions; where it takes more than half of the time, and would take more than nine tenths, the rounds that it
has not reached are not measured, and every host has met as many others.
"""

from __future__ import annotations

import functools
import math
import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from hockney.analysis.clusters import Pair
from hockney.analysis.health import died, health_of
from hockney.analysis.health.absolute import EXPECTED
from hockney.analysis.health.counters import COUNTERS
from hockney.analysis.health.faults import SLOW
from hockney.analysis.health.matrices import DEMAND, REMEDIES, UNUSABLE, matrices_of, usual
from hockney.analysis.health.nights import NIGHT, NIGHTS_MAX, WORSE, Night, Worse, night_of, worse_hosts
from hockney.analysis.health.readable import readable
from hockney.analysis.health.stalls import STALLS, to_leave_out
from hockney.analysis.health.topology import SWITCHES
from hockney.analysis.host_series import RATE, SUITE, directed, time_of_rank
from hockney.errors import UsageError, notice
from hockney.measure.calibration import Calibration
from hockney.measure.estimate import LEAST_S, MIN_MEASUREMENTS
from hockney.measure.plan import Plan, make_plan
from hockney.measure.point_work import Work, repetition_ns
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.run import InterfaceMissing, Variant, measure_variants, one_side
from hockney.measure.sampler import Sampler
from hockney.model import Measurement, Point, PointStatus, RunInfo, RunStatus
from hockney.results.runs import Run
from hockney.results.store import VERDICT, Store
from hockney.stats.interval import median
from hockney.suites import load_suite
from hockney.units import counted, format_duration_s
from hockney.worker.catalogue import Catalogue
from hockney.worker.hosts import Host
from hockney.worker.points import FIRST_POINT_S, RunOptions
from hockney.worker.preflight import HostsUnusable, counters_of
from hockney.worker.starters import find_starter

HOSTS_MIN = 2
_LONG_NS = 1e9  # of a measurement: a pair that takes longer is slow by far
_FIRST_PASS = 0.5  # of the time, or up to _WHOLE_PASS where all rounds are reached by then
_WHOLE_PASS = 0.9
_HOST_S = 1.5e-4  # that a rank costs the first one in a measurement, with 256 on two virtual CPUs
_ANEW = 1 / 5  # of the time: where as much is left, a run without a dead host shows more than one until its death
_KNOWN = 0.9  # of the pairs of the others: where fewer have a rate, they get as much more time, once


def plan_health(asked: RunOptions, catalogue: Catalogue, seed: int) -> Plan:
    """All rounds in a random order; each idle, and loaded in both directions. Raises UsageError."""
    hosts, suite = asked.placement.hosts, load_suite("health")
    if len(hosts) < HOSTS_MIN:
        raise UsageError("health compares hosts: name two or more, as --hosts n1,n2 or n[1-8]")
    where = replace(asked.placement, hosts=tuple(Host(host.name, 1) for host in hosts))
    limits = asked.limits or suite.limits()
    if limits.limit_adapts:  # two measurements show a host that hangs; most of the time is for the others
        limits = replace(limits, timeout_s=round(min(10, max(LEAST_S, limits.time_s / 12, 0.1 * len(hosts)))))
    plan = make_plan(suite, replace(asked, placement=where, limits=limits, ranks=(len(hosts),)), catalogue)
    transports = sorted({point.transport for point in plan.points})
    if len(transports) > 1:
        raise UsageError(f"health measures one transport, and -t names {', '.join(transports)}: choose one of them")
    points: dict[int, list[Point]] = defaultdict(list)
    for point in plan.points:
        points[round_of(point)].append(point)
    order = sorted(points)
    random.Random(seed).shuffle(order)
    listed = tuple(point for number in order for point in points[number])
    return replace(plan, points=listed, refine=frozenset())


def pairs_text(hosts: int, time_s: float) -> str:
    """What will be measured, how long that takes at most where no pair is slow, and how much of it fits the time."""
    rounds = hosts - 1 + hosts % 2
    data_s = 96 * 16384 / 125e6  # of a flow: 64 messages, those that fill it, and those that verify it
    round_s = 3 * (FIRST_POINT_S + hosts * _HOST_S) + 2 * data_s
    pairs, fitting = hosts * (hosts - 1) // 2, max(1, int(_FIRST_PASS * time_s / round_s))
    cost = f"about {format_duration_s(rounds * MIN_MEASUREMENTS * round_s)} at 1 Gbit/s"
    if fitting < rounds and rounds * round_s > _WHOLE_PASS * time_s:
        cost += f"; about {fitting:,} rounds fit the time: each host meets as many others, drawn anew in each run"
    return f"{pairs:,} pair{'' if pairs == 1 else 's'} of {hosts:,} hosts in {counted(rounds, 'round')}, {cost}"


def round_of(point: Point) -> int:
    """The round that a point of the suite belongs to."""
    return int(dict(point.options).get("round", "1"))


def measure_health(
    asked: RunOptions,
    lab: Lab,
    *,
    label: str | None,
    expected: Sequence[Mapping[str, Any]] = (),
    switches: Mapping[str, str] | None = None,
) -> RunOutcome:
    """Measure the hosts that can be used; why others cannot is stored with the plan.

    So are the limits `expected`, and the hosts behind each of `switches`.

    If a host dies, the others are measured in another run if there is time; its outcome is then returned.
    Raises HostsUnusable where less than two can, UsageError, StoreError.
    """
    seed = random.SystemRandom().randrange(1 << 32)
    unusable: dict[str, str] = {}
    link: dict[str, Any] = {UNUSABLE: unusable, **({EXPECTED: list(expected)} if expected else {})}
    link |= {SWITCHES: switches} if switches else {}
    make_sampler = functools.partial(one_side, kind=PairSampler)
    end_s = least_s = more_s = 0.0
    while True:
        plan = plan_health(asked, lab.catalogue, seed)
        variant = Variant(plan, label=label, link=link, seed=seed)
        hosts, budget_s = asked.placement.hosts, plan.limits.time_s
        if not end_s:
            least_s = more_s = _ANEW * budget_s
            end_s = time.monotonic() + budget_s
        try:
            (outcome,) = measure_variants([variant], lab, make_sampler=make_sampler)
        except (HostsUnusable, InterfaceMissing) as error:
            left = tuple(host for host in hosts if host.name not in error.causes)
            if len(left) < HOSTS_MIN:
                raise
            said = "; ".join(f"{name} cannot be used ({cause})" for name, cause in error.causes.items())
            notice.get()(f"{said}: measuring the other hosts")
            unusable |= error.causes
            link |= {DEMAND: error.demand, REMEDIES: {**link.get(REMEDIES, {}), **error.remedies}}
            asked = replace(asked, placement=replace(asked.placement, hosts=left))
            continue
        _count(asked, lab, outcome)
        stuck = sorted(to_leave_out(outcome.stalls))
        left = tuple(host for host in hosts if host.name not in {*outcome.lost_hosts, *stuck})
        if more_s and len(left) < len(hosts) and not _are_known(lab.store, outcome.run_id, left):
            end_s, more_s = max(end_s, time.monotonic()) + more_s, 0.0
        left_s = end_s - time.monotonic()
        is_over = outcome.status is RunStatus.STOPPED or left_s < least_s
        if len(left) == len(hosts) or is_over or len(left) < HOSTS_MIN:
            if outcome.status is not RunStatus.STOPPED:
                remember(lab.store, outcome.run_id)
            return outcome
        gone = [f"no answer from {host}" for host in outcome.lost_hosts]
        gone += [f"{host} keeps the others waiting" for host in stuck]
        notice.get()(f"{'; '.join(gone)}: measuring the other hosts again")
        unusable |= died(outcome.lost_hosts)
        link[STALLS] = [*link.get(STALLS, []), *map(asdict, outcome.stalls)]
        limits = replace(asked.limits or plan.limits, time_s=left_s)
        asked = replace(asked, placement=replace(asked.placement, hosts=left), limits=limits)


def _are_known(store: Store, run_id: int, hosts: Sequence[Host]) -> bool:
    """Whether most pairs of these hosts have a rate."""
    known, names = matrices_of(Run(store, run_id)), {host.name for host in hosts}
    met = {frozenset(pair) for pair in known.bytes_per_s if names.issuperset(known.hosts[end] for end in pair)}
    return len(met) >= _KNOWN * math.comb(len(names), 2)


def _count(asked: RunOptions, lab: Lab, outcome: RunOutcome) -> None:
    """Store what the interfaces of the hosts that answer have counted by now."""
    where = asked.placement
    names = [host.name for host in where.hosts if host.name not in outcome.lost_hosts]
    starter = find_starter(where.launcher, where.hosts, os.environ)
    lab.store.add_to_facts(outcome.run_id, COUNTERS, counters_of(names, starter))


def remember(store: Store, run_id: int) -> None:
    """Store how each host did in a run, who did better in earlier ones with its label and network, and the verdict."""
    run = Run(store, run_id)
    now = night_of(matrices_of(run))
    earlier = []
    for number in reversed(store.last_runs(SUITE, run.info.label, NIGHTS_MAX + 1)):
        info = store.run(number).info
        if number != run_id and _path_of(info) == _path_of(run.info):
            worse = {(each.host, each.way) for each in readable(Worse, info.facts, WORSE)}
            nights = readable(Night, info.facts, NIGHT)
            earlier += [(night, worse) for night in nights if 2 * len(now.keys() & night) > len(now)]
    store.add_to_facts(run_id, NIGHT, now)
    for found in worse_hosts(now, earlier):
        store.add_to_facts(run_id, WORSE, asdict(found))
    result = health_of(Run(store, run_id))
    store.add_to_facts(run_id, VERDICT, {"findings": len(result.findings), "is_clear": result.is_clear})


def _path_of(info: RunInfo) -> tuple[object, ...]:
    """What carries the messages of a run."""
    transports = sorted({*(info.facts.get("traits") or {}).get("transports", ())})
    return (*transports, info.plan.get("interface"))


class _PairsCalibration(Calibration):
    """Of rounds of pairs, which are all of one kind; `known` are those of the run."""

    def __init__(self, known: Mapping[Point, Work], *more: Any) -> None:
        super().__init__(*more)
        self._known = known

    def calibrate(self, work: Work) -> None:
        """Use the batch of the last point of this pattern: no two rounds differ much."""
        for each in self._known.values():
            is_alike = (each.point.pattern, each.point.bytes) == (work.point.pattern, work.point.bytes)
            if is_alike and each.probes and not work.batch:
                work.batch, work.samples, work.is_long = each.batch, each.samples, each.is_long
        super().calibrate(work)

    def wanted_batch(self, work: Work, measurement: Measurement) -> int:
        """No longer than one that shows a slow pair."""
        wanted = super().wanted_batch(work, measurement)
        return wanted if work.point.pattern != RATE else max(1, min(wanted, int(_LONG_NS / repetition_ns(measurement))))


class PairSampler(Sampler):
    """Ends a point when each of its pairs is known as precisely as asked, not only the slowest.

    Latencies end after ten measurements: a fault is a multiple. A round with a slow pair ends when each of its pairs
    has its interval on one side of the limit; one that takes long has fewer messages. The last part of the time is for
    slow pairs, whose intervals decide.
    """

    def __init__(self, *args: Any, **launch: Any) -> None:
        super().__init__(*args, **launch)
        self._times_ns: defaultdict[tuple[Point, Pair], list[float]] = defaultdict(list)
        self._begin_s = self._budget_s = 0.0
        self._last_part_s = math.inf
        self._last: Work | None = None

    def run(self, budget_s: float) -> None:
        self._begin_s, self._budget_s = self._clock(), budget_s
        # The last part is for points with a slow pair, if there are any.
        self._last_part_s = self._begin_s + 0.6 * budget_s
        super().run(budget_s)

    def _is_cut_before(self, work: Work) -> bool:
        if self.round > self._first_round or self._last is None:
            is_cut = super()._is_cut_before(work)
        else:
            is_cut = round_of(work.point) != round_of(self._last.point) and self._takes_too_long()
        self._last = work
        return is_cut

    def _takes_too_long(self) -> bool:
        """Whether the first pass has had half of the time, and at its pace needs more than nine tenths."""
        took_s = self._clock() - self._begin_s
        if took_s < _FIRST_PASS * self._budget_s:
            return False
        rounds = {round_of(point) for point in self._work}
        reached = {round_of(work.point) for work in self._work.values() if work.probes}
        return took_s * len(rounds) > _WHOLE_PASS * self._budget_s * len(reached)

    def _order(self, active: Sequence[Work]) -> list[Work]:
        order = super()._order(active)
        if self._clock() < self._last_part_s:
            return order
        limit_ns = self._limit_ns()
        slow = {
            point
            for (point, _), times_ns in self._times_ns.items()
            if point.pattern == RATE and statistics.median(times_ns) > limit_ns
        }
        if not any(work.point in slow for work in order):
            return order
        return [work for work in order if work.point in slow or work.point.pattern != RATE]

    def _limit_ns(self) -> float:
        """The time of a message from which on a pair is slow."""
        times_ns = {pair: times for (point, pair), times in self._times_ns.items() if point.pattern == RATE}
        usual_ns = usual({pair: statistics.median(times) for pair, times in times_ns.items()}, statistics.median_low)
        return math.inf if usual_ns is None else usual_ns / SLOW

    def _make_calibration(self, points: int, budget_s: float) -> Calibration:
        return _PairsCalibration(self._work, self._plan, self._instrument, self._clock, points, budget_s)

    def _took(self, work: Work, measurements: Sequence[Measurement]) -> None:
        for measurement in measurements:
            if work.point.pattern == RATE and not work.probes:
                work.batch = min(work.batch, self._calibration.wanted_batch(work, measurement))
            for pair in directed(work.point):
                self._times_ns[work.point, pair].append(time_of_rank(measurement, pair[0]))
        super()._took(work, measurements)

    def _judge(self, active: list[Work], *, refine: bool = True) -> list[Work]:
        """Latencies of ten measurements end, slow rounds, and those that the first pass did not reach."""
        going_on, limit_ns = [], self._limit_ns()
        for work in super()._judge(active, refine=refine):
            if self._is_surely_slow(work, limit_ns):
                self._end(work, PointStatus.PRECISE, None)
            elif work.probes and (work.point.pattern == RATE or len(work.probes) < MIN_MEASUREMENTS):
                going_on.append(work)
            else:
                self._end_early(work, PointStatus.TIME_UP, "ten were asked for" if work.probes else "the time was up")
        return going_on

    def _is_surely_slow(self, work: Work, limit_ns: float) -> bool:
        """Whether a pair of a round is slow, and no other one may become so; of six measurements or more."""
        if work.point.pattern != RATE or not work.probes:
            return False
        times = [median(self._times_ns[work.point, pair]).estimate for pair in directed(work.point)]
        sides = {None if time is None or time.low <= limit_ns <= time.high else time.low > limit_ns for time in times}
        return True in sides and None not in sides

    def _is_narrow(self, work: Work) -> bool:
        if work.point.pattern != RATE or not work.probes:
            return False
        reached = [median(self._times_ns[work.point, pair]).precision for pair in directed(work.point)]
        return all(each is not None and each <= self._plan.limits.precision for each in reached)
