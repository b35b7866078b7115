"""Numbers of operations by the NPB's definition, against the output of the NPB's programs."""

from __future__ import annotations

import pytest

from hockney.model import Point
from hockney.stats.npb import FT_GRIDS, ft_class, ft_operations
from hockney.worker.catalogue import load


def test_operations_of_ft() -> None:
    """The NPB's output for class S, 3.18 s and 55.63 Mop/s, says 177 million."""
    assert ft_operations("S") == pytest.approx(177.2e6, rel=1e-3)
    assert sorted(FT_GRIDS, key=ft_operations) == ["S", "W", "A"]


def test_classes_are_the_workers() -> None:
    option = load(libraries=()).pattern("ft").option("class")
    assert tuple(FT_GRIDS) == option.choices
    assert ft_class(Point("shm", "ft", 2, 0)) == option.default
    assert ft_class(Point("shm", "ft", 2, 0, (("class", "W"),))) == "W"
    assert ft_class(Point("shm", "memload", 1, 0)) is None


def test_a_class_that_ft_has_not() -> None:
    with pytest.raises(KeyError):
        ft_operations("Z")
