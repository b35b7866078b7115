"""How screens name the sizes, the precision and the end of a point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from tests.builders import make_point

from hockney.model import PointStatus
from hockney.report.notes import launches_advice, precision_text, sizes_text, status_text
from hockney.results.figures import Figure
from hockney.results.runs import Run


def figure(
    precision: float | None,
    needed: int | None = None,
    status: PointStatus = PointStatus.PRECISE,
    asked: float | None = None,
) -> Figure:
    run = SimpleNamespace(info=SimpleNamespace(plan={"precision": asked}))
    series = SimpleNamespace(status=status, run=run)
    return cast(Figure, SimpleNamespace(precision=precision, launches_needed=needed, series=series))


@pytest.mark.parametrize(
    ("sizes", "text"),
    [((64, 8), "8 B, 64 B"), ((1, 2, 3, 4), "1 B, 2 B, 3 B, 4 B"), ((5, 4, 3, 2, 1), "1 B, 2 B, 3 B, 4 B…")],
)
def test_the_four_smallest_sizes_are_named(sizes: tuple[int, ...], text: str) -> None:
    assert sizes_text(map(make_point, sizes)) == text


@pytest.mark.parametrize(
    ("status", "precision", "asked", "text"),
    [
        (PointStatus.PRECISE, 0.01, 0.01, "precise"),
        (PointStatus.PRECISE, 0.0101, 0.01, "-"),
        (PointStatus.PRECISE, None, 0.01, "-"),
        (PointStatus.PRECISE, 0.5, None, "precise"),
        (PointStatus.TIME_UP, 0.5, 0.01, "time up"),
        (PointStatus.FAILED, 0.5, 0.01, "failed"),
    ],
)
def test_a_point_that_is_precise_in_another_state_only_is_not_precise_here(
    status: PointStatus, precision: float | None, asked: float | None, text: str
) -> None:
    assert status_text(figure(precision, status=status, asked=asked)) == text


@pytest.mark.parametrize(
    ("figures", "asked", "launches"),
    [
        ([figure(0.02, needed=7), figure(0.009, needed=30), figure(None, 40)], 0.01, " 7 "),
        ([figure(0.01, needed=7)], 0.01, None),
        ([figure(0.02, needed=7)], None, None),
        ([figure(0.02), figure(None, needed=9)], 0.01, None),
    ],
)
def test_only_figures_that_missed_the_precision_need_launches(
    figures: list[Figure], asked: float | None, launches: str | None
) -> None:
    text = precision_text(figures, asked)
    assert (text is None) == (launches is None)
    assert launches is None or launches in (text or "")


def test_all_screens_give_the_same_advice_on_launches() -> None:
    """That on the figure which all of them show, also where the figures of rarer machine states are listed."""

    class Series:
        shown: Figure

    series = Series()
    states = [
        SimpleNamespace(precision=precision, launches_needed=needed, n_launches=launches, series=series)
        for precision, needed, launches in ((0.02, 8, 7), (0.2, 900, 3))
    ]
    for state in states:
        state.has_interval, state.interval_over = True, "launches"
    every = cast(list[Figure], states)
    series.shown = every[0]
    run = cast(Run, SimpleNamespace(info=SimpleNamespace(plan={"precision": 0.01})))
    advice = launches_advice(run, every[:1])
    assert advice == "Not all reached ±1.0%: that takes about 8 launches."
    assert launches_advice(run, every) == launches_advice(run, every[1:]) == advice
