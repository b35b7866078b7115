"""The worker with every transport that only tests have: one, so that it is compiled once."""

from __future__ import annotations

from pathlib import Path

from hockney.worker.build import Recipe

_HERE = Path(__file__).parent
EXTRA = Recipe(
    flags=("-DHK_EXTRA_TRANSPORTS(X)=X(fault) X(lossy) X(coarse) X(sleepy) X(virtual)",),
    extra_sources=(_HERE / "fault.c", _HERE / "virtual.c"),
)
QUICK = Recipe(flags=("-O0",))
"""The native worker without optimisation: compiled in half the time."""
