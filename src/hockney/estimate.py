"""How long a plan takes at the least, roughly, before anything of it is measured."""

from __future__ import annotations

from collections.abc import Sequence

from hockney.model import Point
from hockney.stats.npb import ft_class, ft_operations

SAMPLES_MIN = 3  # of a visit, unless a single one is long
LONG_NS = 500_000_000  # a sample this long is a visit by itself, and what a warm-up would save is lost in it
FIRST_ROUNDS_MIN = 3  # in the time of fewer there are too few visits for any interval
_FIRST_POINT_S = 0.015  # of the first round, seen with sockets and MPIs on two virtual CPUs
_FIRST_START_S = 0.1  # likewise, of a job
_FT_PER_S = 2e9  # likewise, operations of FT on each rank


def first_rounds_s(points: Sequence[Point], launches: int) -> float:
    """What the first round of every launch takes: it is made whole, whatever the budget.

    Of long repetitions only those of FT are known beforehand.
    """
    jobs = len({(point.transport, point.ranks) for point in points})
    points_s = sum(_FIRST_POINT_S + _first_ft_s(point) for point in points)
    return launches * (jobs * _FIRST_START_S + points_s)


def _first_ft_s(point: Point) -> float:
    class_ = ft_class(point)
    if class_ is None:
        return 0.0
    repetition_s = ft_operations(class_) / (_FT_PER_S * point.ranks)
    # Calibrated and measured: see Sampler._calibrate.
    return repetition_s * (3 if repetition_s * 1e9 >= LONG_NS else 2 + 2 * (SAMPLES_MIN + 1))
