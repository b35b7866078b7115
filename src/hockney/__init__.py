"""Hockney measures how fast programs communicate; as a library it reads stored results.

    import hockney

    with hockney.open() as results:
        run = results.run("last")
        series = run.select(transport="shm", pattern="pingpong", bytes=8)
        series.times_ns       # numpy array: ns, one per sample, by the pattern's definition
        series.figures()      # median with its interval, one per state of the machine
        run.curve("pingpong", "shm")  # sizes, times, low, high as numpy arrays

`import hockney` itself loads nothing; the names below load their module when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hockney.version import __version__

if TYPE_CHECKING:
    from hockney.errors import HockneyError, StoreError, UsageError
    from hockney.results.runs import Curve, Results, Run, Series
    from hockney.results.runs import open_results as open  # noqa: A004  # read as hockney.open

__all__ = ["Curve", "HockneyError", "Results", "Run", "Series", "StoreError", "UsageError", "__version__", "open"]

_HOMES = {
    "hockney.errors": ("HockneyError", "StoreError", "UsageError"),
    "hockney.results.runs": ("Curve", "Results", "Run", "Series", "open"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), "open_results" if name == "open" else name)
    raise AttributeError(f"module 'hockney' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
