"""Findings in the published figures of the archive's machines (`hockney explain --machine`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hockney.analysis.explain import DETECTORS, Explanation, explain
from hockney.analysis.finding import Absence, Detector, NotChecked
from hockney.archive import Machine, grids, oddities
from hockney.archive.curves import read_machine
from hockney.machine.files import rows_of

# Detectors for printed reports only.
ODDITIES: tuple[Detector, ...] = (
    Detector("streaming against round trip", "streams against round trips", oddities.half_round_trips),
    Detector("faster under load", "latency under load", oddities.faster_under_load),
    Detector("data beyond a cache", "different data against the same data", oddities.same_data),
    Detector("identical rows", "identical rows", grids.identical_rows),
    Detector("kinked scaling law", "kinks in scaling laws", grids.kinked_laws),
    Detector("two speeds", "two speeds in one grid", grids.two_speeds),
    Detector("long delays", "delays longer than requested", grids.delays),
    Detector("broken scaling law", "the share of the own block", grids.own_block),
    Detector("time slices", "times that are multiples of a time slice", grids.time_slices),
    Detector("protocol switch", "steps beyond the best rate", oddities.steps),
    Detector("flat latency", "plateaus below a line", oddities.plateaus),
    Detector("derived figure", "derived figures", oddities.derived_columns),
    Detector("part longer than the whole", "parts longer than the whole", oddities.long_latencies),
)


def explain_machine(machine: Machine) -> Explanation:
    """Findings in the published figures, and statements of the report without figures (unseen.toml)."""
    explanation = explain(read_machine(machine), (*DETECTORS, *ODDITIES))
    rows = [row for row in rows_of(Path(__file__).with_name("unseen.toml")) if row["machine"] == machine.name]
    unseen = {
        row["what"]: NotChecked(Absence.INSUFFICIENT_DATA, row["what"], "of report", {"reason": row["why"]})
        for row in rows
    }
    rest = [gap for gap in explanation.not_checked if gap.what not in unseen]
    return replace(explanation, not_checked=(*unseen.values(), *rest))
