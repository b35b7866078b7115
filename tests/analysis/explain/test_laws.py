"""Scaling laws on figures of known truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.analysis.explain.readings import curve, found, not_checked, reading

from hockney.analysis.explain.curve import MeasuredCurve, Reading
from hockney.analysis.explain.laws import Odd, is_off, rows
from hockney.analysis.finding import Absence
from hockney.stats.fit import Estimate

SIZES = (4, 64, 256, 1024)
ATLAS = (2, 4, 6, 8, 16, 26)  # the numbers of senders of the report's farms


def funnels(time_ns: Callable[[int, int], float], ranks: tuple[int, ...] = (5, 9, 17, 54)) -> Reading:
    return reading(
        *(
            curve(lambda size, n=n: time_ns(n - 1, size), "funnel", ranks=n, sizes=SIZES)  # type: ignore[misc]
            for n in ranks
        )
    )


def lawful(messages: int, size: int) -> float:
    return 50 + (100 + 0.5 * size) * messages


def farm(time_ns: Callable[[int, int], float], counts: tuple[int, ...] = (2, 4, 8, 16)) -> Reading:
    """A push farm of these numbers of senders and receivers, with messages of 16 B."""
    made: list[MeasuredCurve] = []
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


@pytest.mark.parametrize(
    ("from_bytes", "cause"),
    [(4, ""), (64, "bandwidth"), (256, "bandwidth")],
    ids=["all sizes", "long messages only: bandwidth", "half of them"],
)
def test_a_number_of_ranks_that_breaks_the_law(from_bytes: int, cause: str) -> None:
    (broken,) = found(
        "scaling laws", funnels(lambda n, size: lawful(n, size) * (2 if n == 16 and size >= from_bytes else 1))
    )
    assert (broken.code, broken.subject.pattern) == ("broken scaling law", "funnel")
    assert (broken.facts["at"], broken.facts["at_ranks"]) == (16, [17])
    assert broken.subject.sizes_bytes == tuple(size for size in SIZES if size >= from_bytes)
    assert broken.cause == cause
    assert 0.9 < broken.effect < 1.2


def test_fewer_than_half_of_the_sizes_break_no_law() -> None:
    assert (
        found("scaling laws", funnels(lambda n, size: lawful(n, size) * (2 if n == 16 and size == 1024 else 1))) == []
    )


def test_a_number_of_receivers_at_which_a_farm_is_faster() -> None:
    (broken,) = found(
        "scaling laws", farm(lambda senders, receivers: (30000 + 5000 * senders) * (0.92 if receivers == 16 else 1))
    )
    assert (broken.facts["axis"], broken.facts["at"]) == ("receivers", 16)
    assert broken.facts["most_ratio"] < 1


def test_a_constant_law_is_the_mean_of_the_others() -> None:
    """Not a line through them, which would go on to 109."""
    times = {2: 100.0, 4: 103.0, 6: 106.0, 8: 150.0}
    made = [curve(lambda _, time=time: time, "pairs", ranks=n, sizes=(4, 64)) for n, time in times.items()]  # type: ignore[misc]
    (broken,) = found("scaling laws", reading(*made))
    assert (broken.facts["axis"], broken.facts["at"]) == ("ranks", 8)
    assert broken.facts["most_ratio"] == pytest.approx(150 / 103, rel=0.002)


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (1.30, 1.06, 1.50, True),
        (1.30, 1.04, 1.50, False),
        (0.70, 0.50, 0.94, True),
        (0.70, 0.50, 0.96, False),
        (1.26, 1.20, 1.30, True),
        (1.24, 1.20, 1.30, False),
    ],
)
def test_a_figure_is_off_by_five_times_the_others_with_an_interval_beyond_them(
    value: float, low: float, high: float, expected: bool
) -> None:
    row = next(rows(funnels(lawful)))
    assert is_off(Odd(row, row.items[0], Estimate(value, low, high)), 0.05) is expected


@pytest.mark.parametrize(
    ("others", "ratio", "is_broken"),
    [
        (1.0, 1.027, False),  # 3 % off a constant
        (1.0, 1.035, True),
        (1.068, 3.0, True),  # none of the others 5 % off
        (1.084, 3.0, False),
    ],
)
def test_a_figure_off_a_constant_breaks_it(others: float, ratio: float, is_broken: bool) -> None:
    times = {2: 100.0, 4: 100.0, 6: 100.0 * others, 8: 100.0 * ratio}
    made = [
        curve(lambda _, time=time: time, "pairs", ranks=n, sizes=(4,), precision=1e-4)  # type: ignore[misc]
        for n, time in times.items()
    ]
    assert bool(found("scaling laws", reading(*made))) is is_broken


@pytest.mark.parametrize(("ratio", "is_broken"), [(1.27, False), (1.33, True)])
def test_a_figure_three_tenths_off_a_line_breaks_it(ratio: float, is_broken: bool) -> None:
    of = funnels(lambda n, size: lawful(n, size) * (ratio if n == 8 else 1))
    assert bool(found("scaling laws", of)) is is_broken


def test_laws_that_hold_are_no_finding() -> None:
    straight = farm(lambda senders, receivers: 30000 + 5000 * senders, ATLAS)
    assert found("scaling laws", straight) == []
    assert found("scaling laws", funnels(lawful)) == []


def test_three_numbers_of_ranks_make_no_law() -> None:
    assert not_checked("scaling laws", funnels(lawful, (3, 5, 9))).reason is Absence.NOT_MEASURED
