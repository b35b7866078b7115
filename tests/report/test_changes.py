"""Changes between two runs as text."""

from __future__ import annotations

import pytest
from tests.builders import make_point

from hockney.analysis.compare import Verdict
from hockney.analysis.compare.values import Range, SeriesChange
from hockney.report.changes import change_text
from hockney.stats.shift import Shift


@pytest.mark.parametrize(
    ("ratios", "text"),
    [
        ([(1.1, 1.02, 1.2)], "+10.0 % (+2.0 to +20)"),
        ([(1.1, 1.02, 1.4), (1.2, 1.05, 1.3), (1.3, 1.01, 1.35)], "+20.0 % (+1.0 to +40)"),
        ([(4.0, 3.0, 5.0), (5.0, 2.5, 8.0), (6.0, 4.0, 7.0)], "x5 (2.5 to 8)"),
        ([(2.5, 1.9, 3.5)], "+150.0 % (+90 to +250)"),  # maybe less than double
        ([(0.25, 0.2, 0.4)], "x0.25 (0.2 to 0.4)"),
        ([(0.5, 0.4, 0.6)], "-50.0 % (-60 to -40)"),  # maybe more than half
    ],
)
def test_a_range_has_the_median_change_and_the_widest_bounds(
    ratios: list[tuple[float, float, float]], text: str
) -> None:
    changes = (
        SeriesChange(make_point(8 << place), Verdict.SLOWER, shift=Shift(*ratio, 0.95, 5, 5))
        for place, ratio in enumerate(ratios)
    )
    assert change_text(Range(tuple(changes))) == text
