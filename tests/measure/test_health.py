"""The sampler of `hockney health` on a made-up network: whole rounds, and the last of the time for slow pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.analysis.health.made import store_health
from tests.builders import make_measurement, make_placement
from tests.measure.made_up_machine import Notes, OwnClock

from hockney.analysis.clusters import Pair
from hockney.analysis.compare import Verdict
from hockney.analysis.health.matrices import DEMAND, REMEDIES, UNUSABLE
from hockney.analysis.host_series import RATE, directed
from hockney.errors import UsageError, notice
from hockney.measure.check import check
from hockney.measure.health import PairSampler, measure_health, pairs_text, plan_health, remember, round_of
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.run import Variant, _refuse_without_interface
from hockney.model import Definition, Measurement, PatternTraits, Point, PointStatus, RunStatus
from hockney.results.store import Store, StoredRun
from hockney.suites import Limits, load_suite
from hockney.worker.catalogue import load
from hockney.worker.hosts import Host
from hockney.worker.points import RunOptions

HOSTS = 6
WINDOW = 16


@pytest.fixture(autouse=True)
def _no_hosts_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_count", "remember"):
        monkeypatch.setattr(f"hockney.measure.health.{name}", lambda *_: None)


class Network(OwnClock):
    """An Instrument: a message takes 10 us, and more times as long from some hosts to others; its clock is its own.

    From one to another unsteady one it takes up to 30 % longer by chance.
    """

    def __init__(
        self,
        slow: Mapping[Pair, float],
        pause_s: float,
        unsteady: Pair | None = None,
        scatter: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._slow = slow
        self._scatter = scatter
        self._unsteady = unsteady
        self._pause_s = pause_s
        self.measured: list[Point] = []

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        times_ns = np.full((HOSTS, samples), 10_000.0 * batch * WINDOW)
        for a, b in directed(point):
            luck = (
                0.3 * (len(self.measured) * 0.618 % 1) if (a, b) == self._unsteady else 0.01 * (len(self.measured) % 3)
            )
            times_ns[[a, b]] *= self._slow.get((a, b), 1.0) * (1 + luck) * self._scatter()
        self.measured.append(point)
        self.now_s += self._pause_s
        return make_measurement(
            point,
            times_ns.astype(np.int64),
            round_=round_,
            batch=batch,
            definition=Definition("slowest", WINDOW, WINDOW * point.bytes, WINDOW),
        )


def points() -> tuple[Point, ...]:
    """All rounds, each with its three points."""
    listed = []
    for number in range(1, HOSTS):
        options = (("round", str(number)),) if number > 1 else ()
        listed.append(Point("tcp", "rounds", HOSTS, 8, options))
        for way in ((), (("direction", "down"),)):
            given = (*way, *options, ("window", "16"))
            listed.append(Point("tcp", RATE, HOSTS, 16384, given, traits=PatternTraits(stream=True)))
    return tuple(listed)


def sample(network: Network, time_s: float) -> Notes:
    notes = Notes()
    plan = Plan("health", points(), limits=Limits(precision=0.05, time_s=time_s))
    PairSampler(plan, network, notes, seed=1, clock=network.clock).run(time_s)
    return notes


def test_all_pairs_are_measured_until_they_are_precise() -> None:
    network = Network({}, pause_s=0.02)
    notes = sample(network, 60)
    assert network.now_s < 20
    for point, (status, reason) in notes.ends.items():
        assert status is (PointStatus.PRECISE if point.pattern == RATE else PointStatus.TIME_UP), reason


def test_latencies_end_after_ten_measurements() -> None:
    notes = sample(Network({}, pause_s=0.02), 60)
    counts = Counter(each.point for measurements in notes.rounds for each in measurements)
    assert {count for point, count in counts.items() if point.pattern != RATE} == {10}
    assert min(counts.values()) == 10
    reasons = {(reason or "").partition(":")[0] for point, (_, reason) in notes.ends.items() if point.pattern != RATE}
    assert reasons == {"ten were asked for"}


def test_a_round_goes_on_until_the_last_of_its_pairs_is_precise() -> None:
    network = Network({}, pause_s=0.02, unsteady=(0, 3))
    sample(network, 20)
    counts = Counter(point for point in network.measured if point.pattern == RATE)
    (unsteady,) = [point for point in counts if (0, 3) in directed(point)]
    assert counts.pop(unsteady) > 2 * max(counts.values())


def of_health(hosts: str, limits: Limits | None = None, **fields: Any) -> RunOptions:
    return RunOptions(("tcp",), placement=make_placement((hosts,), **fields), limits=limits)


@pytest.mark.parametrize(
    ("hosts", "time_s", "asked_s", "limit_s"),
    [(2, 120, None, 10), (2, 60, None, 5), (2, 10, None, 4), (128, 10, None, 10), (2, 120, 5, 5), (2, 10, 30, 30)],
)
def test_a_host_that_dies_is_found_in_a_twelfth_of_the_time_unless_a_limit_is_given(
    hosts: int, time_s: float, asked_s: int | None, limit_s: int
) -> None:
    asked = of_health(f"n[1-{hosts}]", limits=load_suite("health").limits(time_s=time_s, timeout_s=asked_s))
    assert plan_health(asked, load(), seed=1).limits.timeout_s == limit_s


@pytest.mark.parametrize(
    ("took_s", "hosts", "reached", "status", "runs"),
    [
        (80, "n[1-4]", True, RunStatus.PARTIAL, [(4, 100), (3, 20)]),  # a fifth of the time is left
        (81, "n[1-4]", True, RunStatus.PARTIAL, [(4, 100)]),
        (70, "n[1-4]", False, RunStatus.PARTIAL, [(4, 100), (3, 50)]),  # a fifth more, once
        (110, "n[1-4]", False, RunStatus.PARTIAL, [(4, 100), (3, 20)]),
        (10, "n[1-2]", True, RunStatus.PARTIAL, [(2, 100)]),  # one host is no pair
        (10, "n[1-4]", True, RunStatus.STOPPED, [(4, 100)]),
        (67, "n[1-4]", False, RunStatus.STOPPED, [(4, 100)]),
    ],
)
def test_the_other_hosts_are_measured_again_where_enough_of_the_time_is_left_or_most_pairs_are_unknown(
    tmp_path: Path,
    took_s: float,
    hosts: str,
    reached: bool,
    status: RunStatus,
    runs: list[tuple[int, float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[tuple[int, float]] = []
    now_s = 1000.0

    def measure(variants: list[Variant], *_: object, **__: object) -> list[RunOutcome]:
        nonlocal now_s
        (variant,) = variants
        measured.append((len(variant.plan.placement.hosts), variant.plan.limits.time_s))
        now_s += took_s
        return [RunOutcome(1, status, 0, {f"n{2 * len(measured)}": "no route"})]

    monkeypatch.setattr("hockney.measure.health.measure_variants", measure)
    monkeypatch.setattr("hockney.measure.health.time", SimpleNamespace(monotonic=lambda: now_s))
    store_health(tmp_path / "r.db", 4, unmeasured=() if reached else (1,))
    with Store.open(tmp_path / "r.db") as store:
        lab = Lab(load(), store, cast("Any", Notes()))
        measure_health(of_health(hosts, limits=Limits(time_s=100)), lab, label=None)
    assert [number for number, _ in measured] == [number for number, _ in runs]
    assert [time_s for _, time_s in measured] == pytest.approx([time_s for _, time_s in runs])


def test_the_first_pass_ends_after_a_whole_round() -> None:
    network = Network({}, pause_s=0.1)
    notes = sample(network, 2.5)
    of_round: dict[int, set[Point]] = {}
    for point in network.measured:
        of_round.setdefault(round_of(point), set()).add(point)
    assert 0 < len(of_round) < HOSTS - 1
    assert all(len(measured) == 3 for measured in of_round.values())
    assert len(notes.ends) == len(points())
    reasons = {
        (reason or "").partition(":")[0] for point, (_, reason) in notes.ends.items() if point not in network.measured
    }
    assert reasons == {"the time was up"}


@pytest.mark.parametrize(("time_s", "rounds"), [(3.4, 3), (3.9, 5)])
def test_a_first_pass_that_is_nearly_through_after_half_of_the_time_goes_on(time_s: float, rounds: int) -> None:
    """If nine tenths are enough for all rounds."""
    network = Network({}, pause_s=0.1)
    sample(network, time_s)
    assert len({round_of(point) for point in network.measured}) == rounds


def test_the_last_part_of_the_time_is_for_slow_pairs() -> None:
    """Whether this one is slow is not certain for long."""
    network = Network({(0, 3): 1.05}, pause_s=0.05, unsteady=(0, 3))
    sample(network, 7)
    counts = Counter(point for point in network.measured if point.pattern == RATE)
    (slow,) = [point for point in counts if (0, 3) in directed(point)]
    assert counts[slow] >= 3 + max(count for point, count in counts.items() if point != slow)


@pytest.mark.parametrize("factor", [1.5, 26.0, 20_000.0])
def test_a_round_with_a_slow_pair_ends_when_that_is_certain(factor: float) -> None:
    """If it takes seconds, with fewer messages. The other rounds end as without it."""
    network = Network({(0, 3): factor}, pause_s=0.02)
    notes = sample(network, 60)
    counts = Counter(each.point for measurements in notes.rounds for each in measurements if each.point.pattern == RATE)
    (slow,) = [point for point in counts if (0, 3) in directed(point)]
    assert notes.ends[slow][0] is PointStatus.PRECISE
    assert counts.pop(slow) in range(6, 8)
    assert min(counts.values()) >= 10
    batches = {each.batch for measurements in notes.rounds for each in measurements if each.point == slow}
    assert (1 in batches) == (factor > 1000)


def test_an_early_end_is_of_no_healthy_pair() -> None:
    """In ten networks whose times scatter by 10 %, with tails, no round of the 100 ends before ten measurements."""
    draw = np.random.default_rng(7)
    for _ in range(10):
        network = Network({}, pause_s=0.02, scatter=lambda: float(np.exp(0.1 * draw.standard_t(3))))
        counts = Counter(each.point for measurements in sample(network, 12).rounds for each in measurements)
        assert min(counts.values()) >= 10


def test_the_time_is_printed_before_anything_is_measured() -> None:
    assert pairs_text(8, 120) == "28 pairs of 8 hosts in 7 rounds, about 5 s at 1 Gbit/s"
    assert pairs_text(7, 120) == "21 pairs of 7 hosts in 7 rounds, about 5 s at 1 Gbit/s"  # in each round one rests
    whole = "499,500 pairs of 1,000 hosts in 999 rounds, about 1 h 26 min at 1 Gbit/s"
    assert pairs_text(1000, 3600) == whole
    some = "about 115 rounds fit the time: each host meets as many others, drawn anew in each run"
    assert pairs_text(1000, 120) == f"{whole}; {some}"


def test_hosts_without_the_interface_are_left_out_unless_too_few_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Variant] = []
    without = {"n2": "no network interface eth1 with an address (it has none)"}

    def measure(variants: list[Variant], *_: object, **__: object) -> list[RunOutcome]:
        (variant,) = variants
        known = [{"name": host.name, "interfaces": interfaces(host.name)} for host in variant.plan.placement.hosts]
        _refuse_without_interface(known, "eth1")
        measured.append(variant)
        return [RunOutcome(1, RunStatus.DONE, 0)]

    def interfaces(name: str) -> list[dict[str, object]]:
        return [] if name == "n2" else [{"name": "eth1", "address": "10.0.0.1"}]

    def health(hosts: str) -> None:
        notes: Any = Notes()
        measure_health(of_health(hosts, interface="eth1"), Lab(load(), notes, notes), label=None)

    monkeypatch.setattr("hockney.measure.health.measure_variants", measure)
    said: list[str] = []
    before = notice.set(said.append)
    try:
        health("n[1-3]")
    finally:
        notice.reset(before)
    assert said == [f"n2 cannot be used ({without['n2']}): measuring the other hosts"]
    assert [variant.plan.placement.hosts for variant in measured] == [(Host("n1", 1), Host("n3", 1))]
    assert measured[0].link == {UNUSABLE: without, DEMAND: "reachable on eth1", REMEDIES: {}}
    with pytest.raises(UsageError, match=r"n2 has no network interface eth1 .*: name one with --interface that all"):
        health("n[1-2]")


def test_one_transport_is_measured() -> None:
    with pytest.raises(UsageError, match="-t names tcp, udp: choose one of them"):
        plan_health(replace(of_health("n1,n2"), transports=("tcp", "udp")), load(), seed=1)


@pytest.mark.parametrize(
    ("path", "of_last", "named"),
    [
        ({}, {}, ["n3"]),
        ({"interface": "eth1"}, {}, []),
        ({}, {"interface": "eth1"}, []),
    ],
    ids=["alike", "others elsewhere", "the last elsewhere"],
)
def test_runs_on_one_network_are_compared(
    tmp_path: Path, path: dict[str, str], of_last: dict[str, str], named: list[str]
) -> None:
    """Stored out of order, as runs of another file are: the two slow ones come first."""
    slow = {(2, other): 0.88 for other in range(4) if other != 2}
    for number, rates in enumerate([slow, slow, {}, {}, {}, {}]):
        plan = of_last if number == 0 else path
        store_health(tmp_path / "r.db", 4, rates=rates, plan=plan, started_unix_s=1e9 - 100 * number)
    with Store.open(tmp_path / "r.db") as store:
        for number in (6, 5, 4, 3, 2, 1):
            remember(store, number)
        worse = [stored["host"] for stored in store.run(1).info.facts.get("worse_hosts", ())]
    assert worse == named


@pytest.mark.parametrize(("rate", "verdict"), [(0.7, Verdict.SLOWER), (1.0, Verdict.SAME)])
def test_a_check_measures_the_hosts_of_a_baseline_again(
    rate: float, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where hosts are as fast as they were, and where n3 sends more slowly."""
    asked = of_health("n[1-4]", interface="eth1", limits=Limits(time_s=77))
    files: dict[str, object] = {
        "expected": [{"pattern": "flows", "transports": ["tcp"], "hosts": ["*"], "bandwidth": 1.0}]
    }
    files |= {"switches": {"leaf": "n[1-4]"}}
    plan = plan_health(asked, load(), seed=1).as_json() | files
    slow = {(2, other): rate for other in range(4) if other != 2}

    def measured(again: RunOptions, *_: object, label: str | None, **stored: object) -> RunOutcome:
        assert (label, stored) == (None, files)
        assert again.limits is not None
        assert (again.transports, again.placement.interface, again.limits.time_s) == (("tcp",), "eth1", 77)
        assert [host.name for host in again.placement.hosts] == ["n1", "n2", "n3", "n4"]
        store_health(tmp_path / "r.db", 4, rates=slow, plan=plan, scatter=0.02)
        return RunOutcome(2, RunStatus.DONE, 0)

    monkeypatch.setattr("hockney.measure.check.measure_health", measured)
    store_health(tmp_path / "r.db", 4, plan=plan, scatter=0.02)
    with Store.open(tmp_path / "r.db") as store:
        comparison = check("1", Lab(load(), store, cast("Any", Notes())), max_slowdown=0.05)
    sent = {each.verdict for each in comparison.changes if dict(each.point.options).get("from") == "n3"}
    others = {each.verdict for each in comparison.changes if "n3" not in each.point.hosts}
    assert (verdict in sent, others) == (True, {Verdict.SAME})


def test_runs_of_the_last_nights_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a store has."""
    slow = {(2, other): 0.88 for other in range(4) if other != 2}
    for number, rates in enumerate([{}, {}, {}, {}, slow, slow]):
        store_health(tmp_path / "r.db", 4, rates=rates, started_unix_s=1e9 + number)
    read: list[int] = []

    def noted(number: int) -> StoredRun:
        read.append(number)
        return whole(number)

    monkeypatch.setattr("hockney.measure.health.NIGHTS_MAX", 4)
    with Store.open(tmp_path / "r.db") as store:
        monkeypatch.setattr(store, "runs", None)
        for number in range(1, 6):
            remember(store, number)
        whole = store.run
        monkeypatch.setattr(store, "run", noted)
        remember(store, 6)
        assert [stored["host"] for stored in store.run(6).info.facts["worse_hosts"]] == ["n3"]
    assert {*read} == {2, 3, 4, 5, 6}
