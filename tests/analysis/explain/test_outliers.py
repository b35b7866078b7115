"""Outliers of known truth, in measurements as the sampler makes them: 40 samples of some 20 us.

And idle time in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.analysis.explain.readings import curve, found, lacking, reading
from tests.builders import make_measurement, make_point

from hockney.analysis.explain import explain
from hockney.analysis.explain.curve import Reading
from hockney.analysis.explain.finding import Finding
from hockney.analysis.explain.outliers import _Tick, _timer
from hockney.cli.explain import _print
from hockney.model import Measurement, Warning_
from hockney.stats import State

OUTLIERS = "outliers and their period"
MACHINE = "that points to the machine"
SAMPLES = 40
MEETING_NS = 1_000  # of the ranks, untimed, before each sample

Random = np.random.Generator
Delay = Callable[[float, float], float]
"""By how many ns whatever begins between two moments, in ns, delays the rank that runs."""


def ticking(random: Random, *ticks_ns: tuple[float, float], cost_us: float = 60, seen: float = 0.6) -> Delay:
    """At each tick, of (period, phase), so much, most of the times."""

    def delay(begin_ns: float, end_ns: float) -> float:
        count = sum((end_ns - at) // period - (begin_ns - at) // period for period, at in ticks_ns)
        return 1000 * cost_us * float(random.binomial(int(count), seen))

    return delay


def at_random(random: Random, rate_per_s: float, length_us: Callable[[], float]) -> Delay:
    """So often on average, independent of anything."""

    def delay(begin_ns: float, end_ns: float) -> float:
        return 1000 * sum(length_us() for _ in range(random.poisson(1e-9 * rate_per_s * (end_ns - begin_ns))))

    return delay


def measurements(
    random: Random, *delays: Delay, transport: str = "shm", count: int = 150, sample_us: float = 20
) -> list[Measurement]:
    made, now_ns = [], 5e12
    for _ in range(count):
        now_ns += random.uniform(2e6, 9e6)
        started_ns, elapsed_ns = now_ns, []
        for plain_ns in 1000 * sample_us * random.uniform(0.97, 1.03, SAMPLES):
            now_ns += MEETING_NS
            elapsed_ns.append(plain_ns + sum(delay(now_ns, now_ns + plain_ns) for delay in delays))
            now_ns += elapsed_ns[-1]
        measurement = make_measurement(
            make_point(transport=transport), [elapsed_ns] * 2, batch=8, started_ns=int(started_ns)
        )
        made.append(replace(measurement, wall_ns=(int(now_ns - started_ns),) * 2))
    return made


def told(*made: Iterable[Measurement]) -> list[Finding]:
    return found(OUTLIERS, read(*made))


def read(*made: Iterable[Measurement]) -> Reading:
    all_of = [(measurement, State("near", 30.0)) for one in made for measurement in one]
    return reading(curve(), samples=lambda most, patterns=(): all_of[:most])


# ---- ticks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tick", ["1.00 ms", "2.00 ms", "3.33 ms", "4.00 ms", "10.0 ms"])
def test_outliers_with_the_tick_that_makes_them(tick: str) -> None:
    """Most measurements are shorter than the tick, and as many outliers come by themselves."""
    random = np.random.default_rng(1)
    period_ns = 3_333_333 if tick == "3.33 ms" else 1e6 * float(tick.split()[0])
    alone = at_random(random, 0.6e9 / period_ns, lambda: random.exponential(60))
    (slow,) = told(measurements(random, ticking(random, (period_ns, 0.7 * period_ns)), alone, count=500))
    assert f"at one moment of every {tick}, where" in slow.sentence
    (period,) = [one.value for one in slow.evidence if one.what == "period"]
    assert period.value == period_ns
    (excess,) = [one.value for one in slow.evidence if one.what == "excess"]
    assert excess.low <= 61_000
    assert excess.high >= 59_000


def test_a_tick_that_two_cpus_have_at_different_moments() -> None:
    random = np.random.default_rng(2)
    (slow,) = told(measurements(random, ticking(random, (4e6, 0), (4e6, 7e5)), count=400))
    assert "of every 4.00 ms" in slow.sentence


def test_ticks_of_two_cpus_half_a_period_apart_are_those_of_the_kernel_where_its_own_are_known() -> None:
    random = np.random.default_rng(2)
    of = read(measurements(random, ticking(random, (4e6, 0), (4e6, 2e6)), count=400))
    (slow,) = found(OUTLIERS, of)
    assert "at one moment of every 2.00 ms, where" in slow.sentence
    assert "the kernel's own, if its CONFIG_HZ says so" in (slow.remedy or "")
    (slow,) = found(OUTLIERS, replace(of, facts={"os": {"tick_hz": 250}}))
    assert "at 2 moments of every 4.00 ms, where" in slow.sentence
    either = (
        r"The kernel's tick, 250 times a second and at different moments .*, or another timer every 2\.00 ms, makes"
    )
    assert re.match(either, slow.remedy or "")


@pytest.mark.parametrize(("timer", "hz"), [(1, 250), (2, 250), (2, 100), (5, 100)])
def test_a_timer_that_comes_several_times_in_a_kernels_tick_is_not_said_to_be_it(timer: int, hz: int) -> None:
    random = np.random.default_rng(2)
    of = read(measurements(random, ticking(random, (timer * 1e6, 3e5)), count=400))
    (slow,) = found(OUTLIERS, replace(of, facts={"os": {"tick_hz": hz}}))
    assert f"or another timer every {timer}.00 ms" in (slow.remedy or "")


def test_the_kernels_own_tick_is_named() -> None:
    random = np.random.default_rng(2)
    of = read(measurements(random, ticking(random, (4e6, 0), (4e6, 7e5)), count=400))
    (slow,) = found(OUTLIERS, replace(of, facts={"os": {"tick_hz": 250}}))
    assert "at 2 moments of every 4.00 ms, where" in slow.sentence
    assert re.match(r"The kernel's tick makes some \d+ of them, 250 times a second", slow.remedy or "")


def test_another_timer_is_not_taken_for_the_kernels() -> None:
    random = np.random.default_rng(2)
    of = read(measurements(random, ticking(random, (1e6, 3e5)), count=400))
    (slow,) = found(OUTLIERS, replace(of, facts={"os": {"tick_hz": 300}}))
    assert "at one moment of every 1.00 ms, where" in slow.sentence
    assert "and not the kernel's tick, which comes 300 times a second" in (slow.remedy or "")


def test_a_machine_has_one_tick() -> None:
    """What another timer does to one transport is not told as a second one."""
    random = np.random.default_rng(11)
    other = measurements(random, ticking(random, (1e7, 0), seen=1.0), transport="tcp", count=400)
    ticks, others = told(measurements(random, ticking(random, (4e6, 0)), count=800), other)
    assert "of every 4.00 ms, where" in ticks.sentence
    assert "every 10.0 ms" not in others.sentence  # half of them come at one moment of the 4 ms, too


def test_with_other_programs_busy_they_are_what_to_look_at_first() -> None:
    random = np.random.default_rng(1)
    load = Warning_("load", "machine", "At the start, other programs kept 2.0 CPUs busy.", "Stop them.")
    of = replace(read(measurements(random, ticking(random, (4e6, 0)), count=400)), warnings=(load,))
    (slow,) = found(OUTLIERS, of)
    assert slow.remedy == "At the start, other programs kept 2.0 CPUs busy. Stop them."
    others = Warning_("others", "machine", "During 2 of 6 launches, other programs kept 1.0 CPUs busy.", "Wait.")
    (slow,) = found(OUTLIERS, replace(of, warnings=(load, others)))
    assert slow.remedy == "During 2 of 6 launches, other programs kept 1.0 CPUs busy. Wait."


def test_outliers_at_random_have_no_tick() -> None:
    """Asked for is one in 1,000 at most."""
    invented = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        (slow,) = told(measurements(random, at_random(random, 1500, lambda: random.exponential(60)), count=60))  # noqa: B023
        invented += "at one moment" in slow.sentence
    assert invented <= 1


def test_a_while_in_which_all_samples_are_slow_is_no_tick() -> None:
    made = measurements(np.random.default_rng(3), count=50, sample_us=10)
    made[20].elapsed_ns[:, 10:18] += 12_000
    made[20] = replace(made[20], wall_ns=tuple(ns + 8 * 12_000 for ns in made[20].wall_ns))
    (slow,) = told(made)
    assert "(8 of 2,000)" in slow.sentence
    assert "No tick of a kernel, every 1 to 10 ms, can be seen" in slow.sentence


def test_measurements_that_start_with_the_tick_lend_it_no_outliers() -> None:
    """All samples lie at the same moments of it, the slow ones and the others."""
    random = np.random.default_rng(4)
    made = measurements(random, at_random(random, 1500, lambda: random.exponential(60)))
    (slow,) = told([replace(measurement, started_ns=int(4e6 * i)) for i, measurement in enumerate(made)])
    assert "at one moment" not in slow.sentence


def test_of_measurements_without_a_start_no_tick_is_denied() -> None:
    random = np.random.default_rng(5)
    made = measurements(random, ticking(random, (4e6, 0)), count=300)
    (slow,) = told([replace(measurement, started_ns=None) for measurement in made])
    assert "When they came is not stored with this run, so no tick of a kernel was looked for" in slow.sentence


# ---- whose doing ---------------------------------------------------------------------------------------------------

NAMES = ("shm", "threads", "tcp:spin", "mpi@a-1", "mpi@b-2")


def alike(random: Random, lengths_us: Sequence[float] = (12, 16, 20, 25, 30)) -> list[list[Measurement]]:
    """One machine disturbs all of them, whose samples are of different lengths."""
    return [
        measurements(
            random, at_random(random, 900, lambda: random.exponential(40)), transport=name, sample_us=us, count=300
        )
        for name, us in zip(NAMES, lengths_us, strict=False)
    ]


def test_what_a_machine_does_to_all_transports_is_one_finding_and_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(6)
    more = at_random(random, 4000, lambda: random.exponential(90))
    of = read(*alike(random), measurements(random, more, transport="tcp"))
    tcp, together = [one for one in explain(of).findings if one.kind == "outliers"]
    assert (tcp.transport, together.transport) == ("tcp", "")
    assert explain(of).findings[-1] == together
    assert MACHINE not in tcp.sentence
    assert MACHINE in together.sentence
    assert "which shows on each transport" in together.sentence
    rates = {one.what: one.value for one in together.evidence if one.unit == "1/s"}
    assert set(rates) == {f"outliers in a second on {name}" for name in NAMES}
    longer_than_30_us = 900 * np.exp(-30 / 40)
    assert all(rate.low / 1.1 <= longer_than_30_us <= rate.high * 1.1 for rate in rates.values())
    assert together.effect == pytest.approx(
        900e-6 * np.exp(-30 / 40) * 70, rel=0.2
    )  # an exponential's mean beyond 30 us
    _print(explain(of), everything=True, lacking=False)
    assert "\nSeveral transports\n  outliers: " in capsys.readouterr().out


def test_a_transport_s_own_shorter_outliers_are_told_beside_those_of_the_machine() -> None:
    random = np.random.default_rng(10)
    machine, lengths_us = 900 * np.exp(-30 / 40), (12, 16, 20, 25, 30)
    made = [
        measurements(
            random,
            at_random(random, machine, lambda: 32 + random.exponential(40)),
            at_random(random, 4000 if name == "shm" else 0, lambda: 14),
            transport=name,
            sample_us=us,
            count=300,
        )
        for name, us in zip(NAMES, lengths_us, strict=True)
    ]
    own, together = told(*made)
    assert (own.transport, together.transport) == ("shm", "")
    assert "no more than 30.0 us longer. Such a sample is 14.0 us" in own.sentence
    assert own.effect > together.effect


def test_a_clock_that_can_not_tell_samples_shows_no_outliers() -> None:
    stands = make_measurement(make_point(), [[0] * 10, [1] * 10])
    coarse = make_measurement(make_point(), [[0] * 14 + [1000] * 6] * 2)
    assert lacking(OUTLIERS, read([stands, coarse])) == "needs samples"
    assert told([stands], measurements(np.random.default_rng(1))) == []


@pytest.mark.parametrize("count", [40, 150, 500])
@pytest.mark.parametrize("tails", ["exponential", "Pareto"])
def test_tails_that_only_begin_at_the_same_length_are_not_the_machine_s(tails: str, count: int) -> None:
    """Their outliers are about as long on all, for all begin at 20 us: 27 to 32 us as medians go."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        made = []
        for name, scale in zip(
            NAMES, (8, 10, 14, 16, 20) if tails == "exponential" else (2, 3.4, 6, 10, 16), strict=True
        ):

            def length_us(scale: float = scale, random: Random = random) -> float:
                return scale * (random.exponential() if tails == "exponential" else 1 + random.pareto(1.5))

            made.append(measurements(random, at_random(random, 3000, length_us), transport=name, count=count))
        assert not any(MACHINE in one.sentence for one in told(*made))


def test_transports_that_the_machine_spares_show_that_it_is_not_the_machine() -> None:
    random = np.random.default_rng(7)
    spared = [measurements(random, transport=name, count=300) for name in ("pipe", "unix")]
    assert [one.transport for one in told(*alike(random), *spared)] == list(NAMES)


def test_two_transports_may_be_alike_by_chance() -> None:
    random = np.random.default_rng(8)
    assert [one.transport for one in told(*alike(random)[:2])] == ["shm", "threads"]
    (alone,) = told(alike(random)[0])
    assert alone.transport == "shm"


def test_what_few_of_many_transports_share_is_not_said_to_be_the_machine_s() -> None:
    random = np.random.default_rng(12)
    others = [
        measurements(random, at_random(random, rate, lambda: random.exponential(40)), transport=name)
        for name, rate in (("pipe", 3000), ("unix", 5000), ("tcp", 9000))
    ]
    assert len(told(*alike(random)[:3], *others)) == 6


def test_few_outliers_tell_nobody_s_doing() -> None:
    random = np.random.default_rng(9)
    few = [made[:40] for made in alike(random)]
    assert not any(MACHINE in one.sentence for one in told(*few))


def test_as_many_of_other_lengths_are_not_the_same_disturbances() -> None:
    """Longer ones that come the more seldom, so that as many are above 20 us."""
    random = np.random.default_rng(10)
    made = []
    for name, scale in zip(NAMES, (15, 30, 60, 120, 240), strict=True):
        rate = 600 / np.exp(-20 / scale)
        delay = at_random(random, rate, lambda scale=scale: random.exponential(scale))  # type: ignore[misc]
        made.append(measurements(random, delay, transport=name, count=300))
    assert [one.transport for one in told(*made)] == list(NAMES)


def test_samples_without_outliers() -> None:
    random = np.random.default_rng(11)
    assert told(measurements(random)) == []
    assert lacking(OUTLIERS, reading(curve())) == "needs samples"


@pytest.mark.parametrize(("on", "of", "is_most"), [(184, 4185, False), (253, 363, True)])
def test_no_more_outliers_than_come_with_the_tick_are_said_to_be_a_timers(on: int, of: int, is_most: bool) -> None:
    told = _timer(_Tick(4e6, 1, on, of, by_chance=9.0, log_chance=-100.0), hz=None)
    assert told.startswith(f"A timer makes some {on - 9} of them: ")
    assert ("What the others come from is not known." in told) is not is_most
