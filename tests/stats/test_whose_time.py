"""Whose samples make the time: by the definition that came with the measurement."""

from __future__ import annotations

import pytest
from tests.builders import make_measurement

from hockney.model import Definition

ELAPSED_NS = ((100, 200), (300, 100), (50, 60), (30, 40))


@pytest.mark.parametrize(
    ("timed", "times_ns"),
    [
        ("root", [50.0, 100.0]),
        ("rank 1", [150.0, 50.0]),
        ("rank 3", [15.0, 20.0]),
        ("sources", [100.0, 75.0]),
        ("mean", [60.0, 50.0]),
        ("slowest", [150.0, 100.0]),
    ],
)
def test_whose_samples_make_the_time(timed: str, times_ns: list[float]) -> None:
    measurement = make_measurement(elapsed_ns=ELAPSED_NS, definition=Definition(timed, 2, 8, 1))
    assert measurement.times_ns().tolist() == times_ns


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_of_up_to_three_ranks_one_is_a_source(rows: int) -> None:
    measurement = make_measurement(elapsed_ns=ELAPSED_NS[:rows], definition=Definition("sources", 2, 8, 1))
    assert measurement.times_ns().tolist() == [50.0, 100.0]


def test_the_row_of_a_large_model_is_that_of_every_rank() -> None:
    measurement = make_measurement(elapsed_ns=ELAPSED_NS[:1], definition=Definition("rank 3", 2, 8, 1))
    assert measurement.times_ns().tolist() == [50.0, 100.0]
