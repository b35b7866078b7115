"""The shift between few launches: exact where it can be counted by hand, and what it promises, by simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.stats import simulated
from tests.stats.simulated import shift

from hockney.stats.shift import _orders_by_statistic as orders_by_statistic
from hockney.stats.shift import can_decide, can_decide_over, family_p, launches_needed, shift_over

if TYPE_CHECKING:
    from hockney.model import BoolArray, FloatArray


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (3, 4), (4, 3), (5, 5)])
def test_orders_are_counted_right(m: int, n: int) -> None:
    """Against all orders, counted one by one."""
    counted: Counter[int] = Counter()
    for places in itertools.combinations(range(m + n), n):
        counted[sum(place - rank for rank, place in enumerate(places))] += 1
    assert orders_by_statistic(m, n) == [counted[u] for u in range(m * n + 1)]


def test_two_single_launches_are_never_told_apart() -> None:
    found = shift([100.0], [1000.0])
    assert found.ratio == pytest.approx(10)
    assert (found.low, found.high, found.coverage) == (None, None, None)


@pytest.mark.parametrize(("base", "needed"), [(1, 39), (2, 8), (3, 5), (4, 4), (5, 3), (8, 2)])
def test_how_many_launches_can_decide_at_all(base: int, needed: int) -> None:
    assert launches_needed(base) == needed
    assert launches_needed(1, 0.999) == 1999
    assert not can_decide(base, needed - 1)
    rng = np.random.default_rng(1)
    low, high = np.exp(rng.normal(0, 0.01, base)), np.exp(rng.normal(5, 0.01, needed))
    found = shift(low.tolist(), high.tolist())
    assert found.low is not None
    assert found.low > 1
    assert shift(low.tolist(), high.tolist()[:-1]).low is None


def test_shift_of_four_and_four_is_the_whole_range() -> None:
    found = shift([100, 101, 102, 103], [200, 202, 204, 206])
    assert found.low == pytest.approx(200 / 103)
    assert found.high == pytest.approx(206 / 100)
    assert found.coverage == pytest.approx(1 - 2 / 70)


def test_shift_of_swapped_runs_is_the_inverse() -> None:
    rng = np.random.default_rng(2)
    one, two = rng.lognormal(0, 0.1, 6).tolist(), rng.lognormal(0.1, 0.1, 9).tolist()
    there, back = shift(one, two), shift(two, one)
    assert there.low is not None
    assert back.high is not None
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low == pytest.approx(1 / back.high)


def test_one_wild_launch_moves_little() -> None:
    calm = shift([100, 101, 102, 103, 104], [100, 101, 102, 103, 104])
    wild = shift([100, 101, 102, 103, 104], [100, 101, 102, 103, 9999])
    assert wild.ratio == pytest.approx(calm.ratio, rel=0.02)


@pytest.mark.parametrize("kind", simulated.KINDS)
@pytest.mark.parametrize(("m", "n"), simulated.LAUNCHES)
def test_interval_encloses_the_true_ratio_as_often_as_promised(kind: str, m: int, n: int) -> None:
    trials = 1000
    coverage = simulated.slowed_shift(np.random.default_rng(3), kind, m, n).coverage
    assert coverage is not None
    assert coverage >= 0.95
    least = coverage - 3 * math.sqrt(coverage * (1 - coverage) / trials)
    assert simulated.rate(simulated.holds, kind, m, n, trials) >= least


@pytest.mark.parametrize("kind", simulated.KINDS)
@pytest.mark.parametrize(("m", "n"), simulated.LAUNCHES)
def test_of_thirty_unchanged_series_rarely_one_stands_out(kind: str, m: int, n: int) -> None:
    """Part of the scatter is common to all series of a launch: they were measured side by side."""
    trials = 200 if m + n < 20 else 50  # of more launches each costs many times as much
    alarms = simulated.rate(partial(simulated.alarms, series=30), kind, m, n, trials)
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


@pytest.mark.parametrize(
    ("m", "n", "kind"), [*[(m, n, "normal") for m, n in simulated.LAUNCHES], (10, 10, "two levels")]
)
def test_one_slowdown_among_thirty_is_named(m: int, n: int, kind: str) -> None:
    assert simulated.rate(partial(simulated.is_named, series=30), kind, m, n, 50) >= 0.96


@pytest.mark.parametrize("series", [1, 20, 1000])
def test_a_slowdown_of_a_quarter_stands_out_among_many(series: int) -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(50):
        base, new = (np.exp(0.02 * rng.standard_normal((series, 5))) for _ in range(2))
        new[0] *= 1.25
        found += family_p(base, new)[0] <= 0.05
    assert found == 50


def test_margin_is_taken_off_what_is_seen() -> None:
    rng = np.random.default_rng(6)
    base = np.exp(0.005 * rng.standard_normal((10, 6)))
    new = 1.04 * np.exp(0.005 * rng.standard_normal((10, 6)))
    assert (family_p(base, new) <= 0.05).all()
    assert (family_p(base, new, 1.05) > 0.05).all()


def test_series_without_values_in_some_launches() -> None:
    rng = np.random.default_rng(7)
    base, new = (np.exp(0.02 * rng.standard_normal((20, 6))) for _ in range(2))
    new[3] *= 1.5
    base[3, :2] = new[3, 4:] = np.nan
    base[5] = np.nan
    base[6] = new[6] = np.nan
    found = family_p(base, new)
    assert found[3] <= 0.05
    assert (np.delete(found, 3) > 0.05).all()
    assert found[5] == found[6] == 1


@pytest.mark.parametrize("sizes", simulated.STRATA)
@pytest.mark.parametrize("kind", simulated.KINDS)
def test_an_interval_over_states_of_the_machine_holds_the_truth(sizes: tuple[tuple[int, int], ...], kind: str) -> None:
    trials = 500
    coverage = shift_over(simulated.in_states(np.random.default_rng(3), kind, sizes, 1.0)).coverage
    assert coverage is not None
    assert coverage >= 0.95
    found = simulated.rate_in_states(partial(simulated.holds_over_states, sizes=sizes), kind, trials)
    assert found >= coverage - 3 * math.sqrt(coverage * (1 - coverage) / trials)


@pytest.mark.parametrize("sizes", simulated.STRATA[:2])
def test_states_together_decide_what_none_of_them_could(sizes: tuple[tuple[int, int], ...]) -> None:
    assert not any(can_decide(*of_state) for of_state in sizes)
    assert can_decide_over(sizes)
    found = simulated.rate_in_states(partial(simulated.is_named_over_states, sizes=sizes, series=30), "normal", 20)
    assert found >= 0.9


@pytest.mark.parametrize("kind", ["normal", "heavy"])
@pytest.mark.parametrize("sizes", simulated.STRATA[1:])
def test_no_false_difference_among_many_series_in_several_states(sizes: tuple[tuple[int, int], ...], kind: str) -> None:
    trials = 60
    found = simulated.rate_in_states(partial(simulated.alarms_over_states, sizes=sizes, series=10), kind, trials)
    assert found <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_one_stratum_is_what_it_is_without() -> None:
    rng = np.random.default_rng(8)
    base, new = (np.exp(0.02 * rng.standard_normal((20, 6))) for _ in range(2))
    assert family_p(base, new, starts=range(20)) == pytest.approx(family_p(base, new))


def test_a_stratum_of_one_side_says_nothing() -> None:
    """Its values scatter so much that nothing would stand out if they counted."""
    rng = np.random.default_rng(9)
    base, new = (np.exp(0.02 * rng.standard_normal((4, 6))) for _ in range(2))
    new[0] *= 2
    assert family_p(base, new)[0] <= 0.05
    wild = np.exp(5 * rng.standard_normal((1, 6)))
    with_stratum = np.insert(base, 1, wild, axis=0)
    for own, speaks in ((np.full((1, 6), np.nan), False), (wild, True)):
        found = family_p(with_stratum, np.insert(new, 1, own, axis=0), starts=[0, 2, 3, 4])
        assert (found[0] > 0.05) == speaks


def test_nothing_in_no_family() -> None:
    assert len(family_p(np.empty((0, 4)), np.empty((0, 4)))) == 0


@pytest.mark.parametrize(("base", "new"), [([], [1.0]), ([1.0], [])])
def test_a_side_without_values_is_refused(base: list[float], new: list[float]) -> None:
    with pytest.raises(ValueError, match="both sides"):
        shift(base, new)


def plain_family_p(base: FloatArray, new: FloatArray, margin: float, starts: list[int]) -> list[float]:
    """The definition, one series and one division after the other: a series has the rows from its start to the next."""
    m, n = base.shape[1], new.shape[1]
    logs = np.log(np.hstack([base, new]))
    series = [logs[begin:end] for begin, end in itertools.pairwise([*starts, len(logs)])]

    def apart(rows: FloatArray, is_new: BoolArray, beyond: float) -> tuple[float, float]:
        """What is new beside what is base in standard errors of unit scatter, by least squares, and the scatter."""
        known = [~np.isnan(row) for row in rows]
        strata = [i for i, own in enumerate(known) if (own & is_new).any() and (own & ~is_new).any()]
        values = np.concatenate([np.empty(0), *(rows[i][known[i]] for i in strata)])
        of_new = np.concatenate([np.empty(0), *(is_new[known[i]] for i in strata)])
        stratum = np.repeat(strata, [known[i].sum() for i in strata])
        freedom = len(values) - len(strata) - 1
        if not strata or freedom < 1:
            return 0.0, math.inf
        columns = np.column_stack([of_new, *(stratum == i for i in strata)])
        found = np.linalg.lstsq(columns, values)[0]
        scatter = math.sqrt(((values - columns @ found) ** 2).sum() / freedom)
        standard_error = math.sqrt(np.linalg.inv(columns.T @ columns)[0, 0])
        return max(abs(found[0]) - beyond, 0.0) / standard_error, scatter

    def statistics(chosen: Iterable[int], beyond: float) -> list[float]:
        is_new = np.isin(np.arange(m + n), list(chosen))
        found = [apart(rows, is_new, beyond) for rows in series]
        finite = sorted(scatter for _, scatter in found if math.isfinite(scatter))
        usual = max(finite[(len(finite) - 1) // 2], 1e-9) if finite else 1.0
        return [difference / (scatter + usual) for difference, scatter in found]

    observed = tuple(range(m, m + n))
    seen = statistics(observed, math.log(margin))
    others = [chosen for chosen in itertools.combinations(range(m + n), n) if chosen != observed]
    largest = [max(seen), *(max(statistics(chosen, 0.0)) for chosen in others)]
    return [sum(value >= own * (1 - 1e-9) for value in largest) / len(largest) if own > 0 else 1.0 for own in seen]


@pytest.mark.parametrize("missing", [0.0, 0.15, 0.5])
@pytest.mark.parametrize(("m", "n", "margin"), [(4, 4, 1.0), (3, 4, 1.02), (1, 7, 1.0), (4, 3, 1.05)])
@pytest.mark.parametrize("starts", [[0], [0, 1], [0, 1, 2, 3, 4], [0, 1, 3, 4]])
def test_all_series_at_once_are_as_one_after_the_other(
    starts: list[int], m: int, n: int, margin: float, missing: float
) -> None:
    """Also of series with strata, which have values of other launches."""
    rng = np.random.default_rng(8)
    base, new = (np.exp(0.02 * rng.standard_normal((5, launches))) for launches in (m, n))
    new *= np.exp(0.1 * rng.integers(0, 2, (5, 1)))
    for side in (base, new):
        side[rng.random(side.shape) < missing] = np.nan
    plain = plain_family_p(base, new, margin, starts)
    assert family_p(base, new, margin, starts).tolist() == pytest.approx(plain, abs=1e-12)
    if len(starts) == 5:
        assert family_p(base, new, margin).tolist() == pytest.approx(plain, abs=1e-12)
