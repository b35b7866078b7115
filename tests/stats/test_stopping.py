"""Points that end as precise: their intervals contain the truth, and where nothing correlates they end no later."""

from __future__ import annotations

import math

import pytest
from tests.stats.stopping import KINDS, SHAPES, series_of, stopped


def least(rate: float, series: int) -> float:
    """Five standard errors among these series below the lowest rate of docs/validation.md, in per cent."""
    return rate - 5 * math.sqrt(rate * (100 - rate) / series)


@pytest.mark.parametrize("kind", ["autoregressive", "averages"])
@pytest.mark.parametrize("shape", ["normal", "two levels"])
def test_intervals_of_precise_points_cover_the_truth_though_neighbours_correlate(kind: str, shape: str) -> None:
    ends, former = stopped(series_of(kind, shape, 0.5, 400, 1500), 0.01)
    assert ends.after.all()
    assert ends.share > least(93.0, 400)
    assert ends.measurements > 1.5 * former.measurements


@pytest.mark.parametrize("precision", [0.01, 0.05])
def test_independent_measurements_are_no_more(precision: float) -> None:
    ends, former = stopped(series_of("autoregressive", "normal", 0.0, 400, 1000), precision)
    assert ends.share > least(94.6, 400)
    assert ends.measurements < 1.1 * former.measurements


def test_the_truth_of_all_series_is_one() -> None:
    for kind in KINDS:
        for shape in SHAPES:
            assert (series_of(kind, shape, 0.5, 200, 200) < 1).mean() == pytest.approx(0.5, abs=0.05), (kind, shape)
