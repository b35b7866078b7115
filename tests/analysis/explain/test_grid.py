"""Detectors of grids: laws, rows, speeds and delays, on figures of known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.analysis.explain.readings import curve, found, lacking, reading

from hockney.analysis.explain.curve import Curve, Reading

LAW, BENT = "a scaling law broken", "a law that is not straight"
SIZES = (4, 64, 256, 1024)


def funnels(time_ns: Callable[[int, int], float], ranks: tuple[int, ...] = (5, 9, 17, 54)) -> Reading:
    return reading(
        *(
            curve(lambda size, n=n: time_ns(n - 1, size), "funnel", ranks=n, sizes=SIZES)  # type: ignore[misc]
            for n in ranks
        )
    )


def lawful(messages: int, size: int) -> float:
    return 50 + (100 + 0.5 * size) * messages


def test_a_row_that_breaks_the_law_of_the_others() -> None:
    (broken,) = found(LAW, funnels(lambda n, size: lawful(n, size) * (2 if n == 16 else 1)))
    assert "16 messages (17 ranks)" in broken.sentence
    assert broken.sizes_bytes == SIZES
    assert 0.9 < broken.effect < 1.2


def test_a_law_that_only_long_messages_break_is_one_of_bandwidth() -> None:
    (broken,) = found(LAW, funnels(lambda n, size: lawful(n, size) * (2 if n == 53 and size > 4 else 1)))
    assert broken.sizes_bytes == (64, 256, 1024)
    assert "keeps it at 4 B: bandwidth" in broken.sentence


def test_a_law_that_is_kept() -> None:
    assert found(LAW, funnels(lawful)) == []
    assert "four numbers of ranks" in lacking(LAW, funnels(lawful, (3, 5, 9)))


def test_rows_that_are_the_same() -> None:
    name = "two rows of a grid identical"
    (same,) = found(name, funnels(lambda n, size: lawful(max(n, 8), size), (5, 9, 17)))
    assert "among 5 takes as long as among 9" in same.sentence
    assert found(name, funnels(lawful, (5, 9, 17))) == []


ATLAS = (2, 4, 6, 8, 16, 26)  # as in the report's farms


def farm(time_ns: Callable[[int, int], float], counts: tuple[int, ...] = (2, 4, 8, 16)) -> Reading:
    """A push farm of so many senders and receivers, with messages of 16 B."""
    made: list[Curve] = []
    for senders in counts:
        for receivers in counts:
            time = time_ns(senders, receivers)
            made.append(
                curve(
                    lambda size, time=time: time,  # type: ignore[misc]
                    "pushfarm", ranks=senders + receivers + 1, sizes=[16], options={"senders": senders},
                    precision=0.0005,
                )
            )  # fmt: skip
    return reading(*made)


def test_a_farm_that_is_linear_in_its_senders_and_indifferent_to_its_receivers() -> None:
    of = farm(lambda senders, receivers: 30000 + 5000 * senders)
    assert found(LAW, of) == []
    assert found(BENT, of) == []


def test_a_number_of_receivers_at_which_a_farm_is_faster() -> None:
    (broken,) = found(LAW, farm(lambda senders, receivers: (30000 + 5000 * senders) * (0.92 if receivers == 16 else 1)))
    assert "16 receivers" in broken.sentence
    assert "less" in broken.sentence


def test_a_farm_that_is_not_linear_in_its_senders() -> None:
    (bent,) = found(BENT, farm(lambda senders, receivers: 30000 + 5000 * senders + 200 * senders**2))
    assert "not linear" in bent.sentence
    assert "farthest off with" in bent.sentence, "no four figures lie on one line"


@pytest.mark.parametrize("kinks", [{8: 1.05}, {8: 1.03, 26: 1.06}, {4: 0.96, 16: 1.04}])
def test_figures_that_are_off_the_line_of_the_others_are_named(kinks: dict[int, float]) -> None:
    of = farm(lambda senders, receivers: (30000 + 5000 * senders) * kinks.get(senders, 1.0), ATLAS)
    (bent,) = found(BENT, of)
    assert f"with {', '.join(map(str, kinks))} senders it is up to" in bent.sentence


@pytest.mark.parametrize("count", [8, 10, 16])
def test_a_curve_that_merely_bends_has_no_kinks(count: int) -> None:
    bends = farm(lambda senders, receivers: 10000 + 1000 * senders + 60 * senders**2, tuple(range(1, count + 1)))
    (bent,) = found(BENT, bends)
    assert "farthest off with" in bent.sentence


def test_noise_has_no_kinks() -> None:
    """Even where the intervals are 40 times too narrow: rows that scatter do not agree on who is off."""
    random, named = np.random.default_rng(5), 0
    for _ in range(50):
        noisy = {(n, m): (30000 + 5000 * n) * (1 + 0.02 * random.standard_normal()) for n in ATLAS for m in ATLAS}
        of = farm(lambda senders, receivers, noisy=noisy: noisy[senders, receivers], ATLAS)  # type: ignore[misc]
        named += any("senders it is up to" in one.sentence for one in found(BENT, of))
    assert named == 0


def robs(slopes: dict[int, float]) -> Reading:
    made = [
        curve(lambda size, n=n, slope=slope: (n - 1) * (3000 + slope * size), "robpush", ranks=n, sizes=SIZES)  # type: ignore[misc]
        for n, slope in slopes.items()
    ]
    alone = curve(lambda size: 3000 + 320 * size, "pairs", ranks=4, sizes=SIZES)
    return reading(*made, alone)


def test_two_speeds_and_which_other_pattern_has_one_of_them() -> None:
    (speeds,) = found("two speeds in one grid", robs({3: 320, 5: 210, 9: 330}))
    assert "robpush among 3 takes 320 ns per byte of a message, the rate of pairs among 4, among 5" in speeds.sentence
    assert found("two speeds in one grid", robs({3: 320, 5: 325, 9: 330})) == []


@pytest.mark.parametrize(("among_3", "told"), [(1.0, True), (1.5, False)])
def test_the_other_farm_says_whether_it_was_placed_like_that(among_3: float, told: bool) -> None:
    slow = robs({3: 320, 5: 210})
    pull = [
        curve(lambda size, n=n: (n - 1) * 235000 * (among_3 if n == 3 else 1), "robpull", ranks=n, sizes=(0,))  # type: ignore[misc]
        for n in (3, 5)
    ]
    same = "a message takes 235 us among 3 and 235 us among 5, so "
    (speeds,) = found("two speeds in one grid", reading(*slow.curves, *pull))
    assert (f"the first went another way. In robpull {same}it is not their place." in speeds.sentence) is told
    assert ("placed farther apart" in speeds.sentence) is not told
    # In a report the two patterns may have had places of their own.
    (printed,) = found("two speeds in one grid", reading(*slow.curves, *pull, published=True))
    assert "the first was placed farther apart." in printed.sentence
    assert (f"Not so in robpull: there {same}the two lay alike." in printed.sentence) is told


def test_delays_by_what_was_counted() -> None:
    def delayed(took_us: float) -> Reading:
        counters = {"delays": (100.0, 0.0), "delay_ns": (100 * 1e3 * took_us, 0.0)}
        return reading(curve(pattern="robpush", options={"delay_us": 400}, counters=counters))

    (longer,) = found("delays longer than asked for", delayed(440))
    assert "1.10 times" in longer.sentence
    assert found("delays longer than asked for", delayed(404)) == []


def test_delays_of_more_ranks_than_cpus_are_the_scheduler_s() -> None:
    counters = {"delays": (100.0, 0.0), "delay_ns": (440e5, 0.0)}
    crowded = curve(pattern="robpush", options={"delay_us": 400}, counters=counters, oversubscribed=True)
    assert "with a delay" in lacking("delays longer than asked for", reading(crowded))


def test_delays_by_what_they_add() -> None:
    def delayed(per_us: float) -> Reading:
        return reading(
            *(
                curve(lambda size, d=d: 40000 + 1e3 * per_us * d, "robpush", sizes=[64], options={"delay_us": d},  # type: ignore[misc]
                      precision=0.0005)
                for d in (100, 400, 1600)
            )
        )  # fmt: skip

    (longer,) = found("delays longer than asked for", delayed(1.15))
    assert "1.15" in longer.sentence
    assert found("delays longer than asked for", delayed(1.0)) == []


def test_the_own_block_takes_its_share_among_two() -> None:
    def alltoalls(two: float) -> Reading:
        times = {2: 0.1 * two, 4: 0.3}
        return reading(
            *(
                curve(lambda size, p=p: times[p] * size, "alltoall", ranks=p, sizes=[1 << 16, 1 << 20])  # type: ignore[misc]
                for p in times
            )
        )

    (share,) = found("the share of the own block", alltoalls(1.2))
    assert share.effect > 0.15
    assert found("the share of the own block", alltoalls(1.0)) == []
