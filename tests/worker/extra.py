"""The workers that only tests have: as few as they can be, since each is compiled once, before the tests begin."""

from __future__ import annotations

from pathlib import Path

from hockney.worker.build import Recipe

_HERE = Path(__file__).parent
EXTRA = Recipe(
    flags=("-DHK_EXTRA_TRANSPORTS(X)=X(fault) X(lossy) X(coarse) X(sleepy) X(virtual)",),
    extra_sources=(_HERE / "fault.c", _HERE / "virtual.c"),
)
ADDRESS = Recipe(flags=("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
THREAD = Recipe(flags=("-g", "-fsanitize=thread"))
QUICK = Recipe(flags=("-O0",))
"""The native worker without optimisation: compiled in half the time."""
