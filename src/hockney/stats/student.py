"""The quantile of Student's t; at 95 % without scipy, which takes half a second to load."""

from __future__ import annotations

import functools
import math

_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution


@functools.lru_cache(maxsize=1024)
def t_quantile(dof: float, confidence: float = 0.95) -> float:
    """The value that |t| exceeds with probability 1 - confidence. At 95 % and whole `dof`: within 0.2 % above.

    Cornish-Fisher expansion: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 1964, 26.7.5.
    """
    if dof < 1:
        raise ValueError(f"degrees of freedom must be at least 1: {dof}")
    if confidence != 0.95 or dof != int(dof):
        from scipy.special import stdtrit

        return float(stdtrit(dof, (1 + confidence) / 2))
    if dof == 1:
        return math.tan(math.pi * 0.475)
    if dof == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    x = _NORMAL
    return (
        x
        + (x**3 + x) / (4 * dof)
        + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * dof**2)
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * dof**3)
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / (92160 * dof**4)
    )
