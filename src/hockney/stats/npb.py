"""The operations of the NAS Parallel Benchmark FT, by the NPB's own count.

Grids: D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007, 1994. Operations: as FT of NPB 2 and 3 counts them for
"Mop/s total".
"""

from __future__ import annotations

import math

from hockney.model import Point

FT_GRIDS = {"S": (64, 64, 64), "W": (128, 128, 32), "A": (256, 256, 128)}
FT_ITERATIONS = 6


def ft_class(point: Point) -> str | None:
    """The class of a point of the pattern `ft`, by default S; None for other patterns."""
    return dict(point.options).get("class", "S") if point.pattern == "ft" else None


def ft_operations(class_: str) -> float:
    """The floating point operations of FT in a class. Raises KeyError for an unknown class."""
    points = math.prod(FT_GRIDS[class_])
    start = 14.8157 + 7.19641 * math.log(points)
    iteration = 5.23518 + 7.21113 * math.log(points)
    return points * (start + iteration * FT_ITERATIONS)
