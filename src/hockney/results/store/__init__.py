"""Results on disk: one SQLite file. Start at `Store.open`; exports are in `store.export`."""

from __future__ import annotations

from hockney.results.store.opening import default_path
from hockney.results.store.rows import (
    VERDICT,
    MeasurementSummary,
    RunSummary,
    StoredPoint,
    StoredRun,
    accepted_of,
    summary_of,
)
from hockney.results.store.store import Store

__all__ = [
    "VERDICT",
    "MeasurementSummary",
    "RunSummary",
    "Store",
    "StoredPoint",
    "StoredRun",
    "accepted_of",
    "default_path",
    "summary_of",
]
