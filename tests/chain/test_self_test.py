"""The self-test's judgement of figures, switches and slow ranks, where explain is right and where it is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chain import self_test as module
from tests.chain.self_test import FittedFigure, Switches, figures_of, self_test, slow_in, switches_of

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.fits import FittedLine
from hockney.analysis.finding import Finding, Subject
from hockney.stats.interval import Estimate

SUBJECT = Subject("shm", "pingpong")


def line(first: int, last: int, estimate: Estimate) -> FittedLine:
    """With a t_0 and an n_1/2, but no rate."""
    return FittedLine("shm", "pingpong", 2, "", "near", first, last, 5, estimate, None, estimate, 0.0)


def finding(code: str, **facts: Any) -> Finding:
    return Finding(code, SUBJECT, facts=facts)


def switch(below: int, above: int, answer: str = "confirmed") -> Finding:
    return finding("protocol switch", below_bytes=below, above_bytes=above, answer=answer)


@pytest.mark.parametrize(
    ("truth", "is_covered", "error"),
    [
        (90.0, True, 100 / 90 - 1),
        (110.0, True, 100 / 110 - 1),
        (89.9, False, 100 / 89.9 - 1),
        (111.0, False, -11 / 111),
    ],
)
def test_a_figure_is_covered_up_to_the_ends_of_its_interval(truth: float, *, is_covered: bool, error: float) -> None:
    figure = FittedFigure("t0_ns", 0, truth, Estimate(100.0, 90.0, 110.0))
    assert figure.is_covered == is_covered
    assert figure.error == pytest.approx(error)


@pytest.mark.parametrize(
    ("first", "last", "up_to"),
    [(0, 64, 64), (0, 65, None), (65, 128, 0), (64, 1 << 20, None), (65, 1 << 20, 0)],
)
def test_a_fit_has_true_figures_within_one_segment(first: int, last: int, up_to: int | None) -> None:
    explanation = Explanation("x", lines=(line(first, last, Estimate(10.0, 9.0, 11.0)),))
    truth = {64: {"t0_ns": 10.0, "r_inf_bytes_per_s": 1e9}, 0: {"t0_ns": 20.0}}
    figures = [(figure.name, figure.up_to_bytes) for figure in figures_of(truth, explanation)]
    assert figures == ([] if up_to is None else [("t0_ns", up_to)])


def test_switches_are_placed_invented_and_missed() -> None:
    """A jump after a size lies from there on, and before the size above."""
    suspected = switch(3000, 4000, "suspected")
    found = (switch(64, 128), switch(200, 256), suspected, switch(7000, 7100, "open"), finding("duplex"))
    explanation = Explanation("x", findings=found)
    assert switches_of([64, 256, 3999, 7050], explanation) == Switches(
        placed=((64, 128), (3000, 4000)), invented=((200, 256),), missed=(256, 7050)
    )
    assert switches_of([64, 256, 3999], explanation, answers=("confirmed",)).missed == (256, 3999)


def test_slow_ranks_pairs_and_groups_are_named_once() -> None:
    found = (
        finding("slow rank or pair", slow_pair=(0, 6), others=("2-3",)),
        finding("slow rank or pair", slow_rank=4, links=("0-6",)),
        finding("slow group", slow_group=(1, 2, 3)),
        finding("duplex", slow_pair=(8, 9)),
    )
    assert slow_in(Explanation("x", findings=found)) == [
        frozenset(ranks) for ranks in ((0, 6), (2, 3), (4,), (1, 2, 3))
    ]


def test_a_machine_without_its_jumps_and_slow_ranks_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explain finds another jump and another slow pair, and no interval contains the truth."""
    lines = (line(0, 8, Estimate(1.0, 1.0, 1.0)),)
    found = (switch(10, 20), finding("slow rank or pair", slow_pair=(7, 8)))
    monkeypatch.setattr(module, "explained", lambda *_, **__: Explanation("x", findings=found, lines=lines))
    checks = list(self_test())
    assert len({check.machine for check in checks}) > 4
    assert [check for check in checks if check.is_met] == []
    *_, share = checks
    assert (share.what, share.estimate) == ("intervals_share", Estimate(0.0, 0.0, 0.0))
