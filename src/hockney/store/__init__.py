"""Results on disk: one SQLite file. Start at `Store.open`; exports are in `store.export`."""

from __future__ import annotations

from hockney.store.opening import default_path
from hockney.store.records import RunSummary, StoredPoint, StoredRun, VisitSummary
from hockney.store.store import Store

__all__ = ["RunSummary", "Store", "StoredPoint", "StoredRun", "VisitSummary", "default_path"]
