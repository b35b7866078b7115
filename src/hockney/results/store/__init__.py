"""Results on disk: one SQLite file. Start at `Store.open`; exports are in `store.export`."""

from __future__ import annotations

from hockney.results.store.opening import default_path
from hockney.results.store.records import RunSummary, StoredPoint, StoredRun, VisitSummary
from hockney.results.store.store import Store

__all__ = ["RunSummary", "Store", "StoredPoint", "StoredRun", "VisitSummary", "default_path"]
