"""Time slices, and libraries that yield."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.analysis.explain.readings import curve, found, lacking, reading

from hockney.analysis.explain.curve import Reading
from hockney.analysis.explain.periods import locked_values
from hockney.model import Warning_

LOCKED = "values locked to a period"


def figures(times_us: Sequence[float]) -> Reading:
    places = dict(enumerate(times_us))
    return reading(curve(lambda size: 1e3 * places[size], sizes=range(len(times_us)), precision=0.0002))


def test_figures_on_multiples_of_a_slice() -> None:
    random = np.random.default_rng(1)
    free = random.uniform(200, 9000, 24).tolist()
    (locked,) = found(LOCKED, figures([256.1, 512.2, 1024, 1535.8, 3072, 4608, 5888, *free]))
    assert "multiples of 256 us" in locked.sentence


@pytest.mark.parametrize("seed", range(20))
def test_figures_at_random_are_not_locked(seed: int) -> None:
    assert locked_values(figures(np.random.default_rng(seed).uniform(200, 9000, 40).tolist())) == []


def test_the_same_figure_many_times_is_no_period() -> None:
    assert found(LOCKED, figures([1000.0, 1000.1, 999.9, 1000.2, 1000.0, 999.8, 1234, 1777, 2345, 3111, 4567])) == []


def test_the_same_figure_at_all_sizes_is_a_time_slice_where_ranks_share_a_cpu() -> None:
    """As measured with MPICH on one CPU: 4.00 ms from 1 to 64 KiB."""
    made = curve(lambda _: 4.001e6, sizes=[1024 << n for n in range(7)], precision=0.001)
    assert "needs 5 different figures" in lacking(LOCKED, reading(made))
    (locked,) = found(LOCKED, reading(replace(made, oversubscribed=True)))
    assert locked.sentence.startswith("7 of 7 figures lie on multiples of 4.00 ms (4.00 ms, 4.00 ms")


def test_figures_that_are_not_known_well_enough_tell_nothing() -> None:
    assert "each known better" in lacking(LOCKED, reading(curve(lambda size: 1e6 + size, precision=0.05)))


def test_a_library_that_yields_is_what_the_run_was_warned_of() -> None:
    warnings = (Warning_("yield", "mpi@x-1", "mpi@x-1 yields.", "Don't."), Warning_("steal", "machine", "a", "b"))
    (yields,) = found("a library that yields", reading(curve(), warnings=warnings, libraries={"mpi@x-1": "X 1"}))
    assert (yields.transport, yields.remedy) == ("mpi@x-1", "Don't.")
