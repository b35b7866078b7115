"""Base, hops and changes of direction: known truths come back, and undetermined ones are reported."""

from __future__ import annotations

import itertools
import random

import pytest

from hockney.stats.fit import DistanceFit, NoFit, fit_distance

Pair = tuple[int, int]


def cube_ways() -> tuple[dict[Pair, int], dict[Pair, int]]:
    """A 4 x 2 x 2 torus with two ranks a node, routed dimension after dimension: hops and changes of every pair."""
    sides = (4, 2, 2)
    nodes = list(itertools.product(*map(range, sides)))
    hops, changes = {}, {}
    for source, target in itertools.permutations(range(2 * len(nodes)), 2):
        steps = [
            min(abs(a - b), side - abs(a - b))
            for a, b, side in zip(nodes[source // 2], nodes[target // 2], sides, strict=True)
        ]
        hops[source, target] = sum(steps)
        changes[source, target] = max(0, sum(step > 0 for step in steps) - 1)
    return hops, changes


def test_a_known_truth_comes_back_exactly() -> None:
    hops, changes = cube_ways()
    times = {pair: 1066.0 + 13.3 * hops[pair] + 26.6 * changes[pair] for pair in hops}
    fit = fit_distance(times, hops, changes)
    assert isinstance(fit, DistanceFit)
    assert fit.change_ns is not None
    assert [each.value for each in (fit.base_ns, fit.hop_ns, fit.change_ns)] == pytest.approx([1066.0, 13.3, 26.6])
    assert fit.rms_ns == pytest.approx(0, abs=1e-9)


def test_intervals_cover_the_truth() -> None:
    """Of 400 fits to scattered times, 95 % have each truth in its interval."""
    hops, changes = cube_ways()
    pairs = sorted(hops)[::7]
    source = random.Random(3)
    truth = {"base_ns": 1000.0, "hop_ns": 15.0, "change_ns": 25.0}
    covered = dict.fromkeys(truth, 0)
    for _ in range(400):
        times = {pair: 1000.0 + 15.0 * hops[pair] + 25.0 * changes[pair] + source.gauss(0, 8) for pair in pairs}
        fit = fit_distance(times, hops, changes)
        assert isinstance(fit, DistanceFit)
        assert fit.rms_ns == pytest.approx(8, rel=0.4)
        for name, value in truth.items():
            covered[name] += getattr(fit, name).low <= value <= getattr(fit, name).high
    assert all(0.92 <= count / 400 <= 0.98 for count in covered.values()), covered


def test_routes_without_directions() -> None:
    hops, _ = cube_ways()
    times = {(one, other): 80.0 + 40.0 * hops[one, other] + (1 if one < other else -1) for one, other in hops}
    fit = fit_distance(times, hops)
    assert isinstance(fit, DistanceFit)
    assert (fit.base_ns.value, fit.hop_ns.value) == pytest.approx((80.0, 40.0))
    assert fit.change_ns is None
    assert fit.rms_ns == pytest.approx(1.0)
    assert fit_distance({(0, 1): 1.0, (1, 0): 1.0}, hops) == NoFit("a fit of 2 parameters needs 3 pairs")


def test_one_slow_pair_moves_the_parameters_little() -> None:
    hops, changes = cube_ways()
    times = {pair: 1000.0 + 15.0 * hops[pair] + 25.0 * changes[pair] for pair in hops}
    times[5, 9] += 400
    fit = fit_distance(times, hops, changes)
    assert isinstance(fit, DistanceFit)
    assert fit.hop_ns.value == pytest.approx(15.0, abs=2)


@pytest.mark.parametrize(
    ("times", "hops", "changes", "why"),
    [
        ({(0, 1): 1.0}, {(0, 1): 1}, {(0, 1): 0}, "needs 4 pairs"),
        (dict.fromkeys([(0, n) for n in range(1, 6)], 1.0), {(0, n): n for n in range(1, 6)}, None, "separate"),
        (dict.fromkeys([(0, n) for n in range(1, 6)], 0.0), {(0, n): n for n in range(1, 6)}, None, "positive"),
    ],
)
def test_no_fit_and_why(
    times: dict[Pair, float], hops: dict[Pair, int], changes: dict[Pair, int] | None, why: str
) -> None:
    fit = fit_distance(times, hops, changes or dict.fromkeys(times, 0))
    assert isinstance(fit, NoFit)
    assert why in fit.reason


def test_a_pair_needs_a_route() -> None:
    with pytest.raises(KeyError):
        fit_distance({(0, n): 1.0 for n in range(1, 6)}, {}, {})
