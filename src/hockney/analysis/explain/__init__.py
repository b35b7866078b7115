"""Explaining figures: what the curves of a run, or of a machine of the archive, say in sentences.

`DETECTORS` is the list of all that is looked for: a detector takes a Reading and gives what it found, or what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hockney.analysis.explain import (
    archive_grids,
    archive_pairs,
    blips,
    caches,
    derived,
    documented,
    guidelines,
    laws,
    outliers,
    pattern_pairs,
    ranks,
    shape,
    switches,
)
from hockney.analysis.explain.curve import Reading, read_run
from hockney.analysis.explain.data import rows_of
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking, as_lacking, as_old
from hockney.analysis.explain.fits import (
    LOGGP,
    Line,
    OffLine,
    Parameters,
    by_reason,
    lines_of,
    off_lines_of,
    parameters_of,
)
from hockney.analysis.explain.layers import Layer, layers_of
from hockney.analysis.explain.published import read_machine
from hockney.analysis.finding import NotChecked
from hockney.archive import Machine
from hockney.results.runs import Run

__all__ = [
    "DETECTORS",
    "PRINTED_DETECTORS",
    "Evidence",
    "Explanation",
    "Finding",
    "Lacking",
    "Layer",
    "Line",
    "OffLine",
    "Parameters",
    "explain",
    "explain_machine",
    "explain_run",
]

# What it looks for, as docs/explain.md calls it -> what does it.
DETECTORS: dict[str, Callable[[Reading], Found]] = {
    "protocol switches": switches.switches,
    "nothing at a documented size": documented.without_trace,
    "a blip at the page size": blips.page_blip,
    "a bandwidth that falls beyond a cache": caches.cache_falls,
    "latency independent of size": shape.flat,
    "the duplex ratio": pattern_pairs.duplex,
    "a path shared by several": pattern_pairs.shared_path,
    "a scaling law broken": laws.broken_laws,
    "outliers": outliers.outliers,
    "a slow rank or pair": ranks.slow_links,
    "pairs that stand out": ranks.slow_pairs,
    "a library that yields": ranks.yields,
    "figures far above the floor": ranks.above_floor,
    "operations slower than their parts": guidelines.slower_than_parts,
}
# What only a printed report can show.
PRINTED_DETECTORS: dict[str, Callable[[Reading], Found]] = {
    "one-way and two-way messages against half the round trip": archive_pairs.half_round_trips,
    "loaded faster than idle": archive_pairs.faster_under_load,
    "different data against the same data": archive_pairs.same_data,
    "two rows of a grid identical": archive_grids.identical_rows,
    "a law that is not straight": archive_grids.kinked_laws,
    "two speeds in one grid": archive_grids.two_speeds,
    "delays longer than asked for": archive_grids.delays,
    "the share of the own block": archive_grids.own_block,
    "times that are multiples of a time slice": archive_grids.time_slices,
    "steps that a best rate does not explain": shape.steps,
    "derived figures that do not follow": derived.derived_columns,
    "parts longer than the whole": derived.long_latencies,
}

# What may lack -> the suite that has it, and where.
GOT_BY = {
    "protocol switches": ("quick", ""),
    "a bandwidth that falls beyond a cache": ("quick", ""),
    "the duplex ratio": ("quick", ""),
    "operations slower than their parts": ("guidelines", ""),
    "pairs that stand out": ("allpairs", " on three CPUs or more"),
    LOGGP: ("loggp", ""),
}

# Detectors whose kind of finding another detector has, too: what was found is not said to lack.
_FOUND_ELSEWHERE = {
    "protocol switches": "protocol switch",
    "a bandwidth that falls beyond a cache": "bandwidth falls beyond a cache",
}

# What is looked at though ranks are more than CPUs, and why nothing else is.
_OF_CROWDED = ("a library that yields",)
_CROWDED = "not looked at, for there were more ranks than CPUs"


@dataclass(frozen=True)
class Explanation:
    """All that is said of a run or a machine.

    `findings` stand by transport, the one with the greatest effect first, and so within each; those of several
    transports last. `lines` and `loggp` are what was fitted to the curves, `off_lines` the sizes that no line explains.
    `lacking` says of what could not be looked for, or not be fitted, why not; `notes` what limits all of it.
    """

    subject: str
    findings: tuple[Finding, ...]
    lines: tuple[Line, ...]
    loggp: tuple[Parameters, ...]
    layers: tuple[Layer, ...]
    lacking: tuple[Lacking, ...]
    notes: tuple[str, ...]
    off_lines: tuple[OffLine, ...] = ()


def explain_run(run: Run) -> Explanation:
    """Raises HockneyError where the run has no figure with an interval."""
    found = explain(read_run(run))
    return replace(found, lacking=tuple(_with_command(one, run.info.suite) for one in found.lacking))


def _with_command(lacking: Lacking, suite: str) -> Lacking:
    """`suite`: that of the run, which measures no more the next time."""
    other, where = GOT_BY.get(lacking.what, ("", ""))
    if lacking.got_by or other in ("", suite) or not lacking.reason.startswith("needs "):
        return lacking
    return replace(lacking, got_by=f"`hockney run {other}`{where}")


def explain_machine(machine: Machine) -> Explanation:
    """What the published figures of a machine of the archive say, and what its report has that they don't tell."""
    found = explain(read_machine(machine))
    unseen = {row["what"]: row["why"] for row in rows_of("unseen") if row["machine"] == machine.name}
    rest = [one for one in found.lacking if one.what not in unseen]
    return replace(found, lacking=(*(Lacking(why, what=what) for what, why in unseen.items()), *rest))


def explain(reading: Reading) -> Explanation:
    """Try every detector."""
    findings: list[Finding] = []
    lacking: list[Lacking] = []
    for name, detector in (DETECTORS | (PRINTED_DETECTORS if reading.published else {})).items():
        found = detector(reading)
        if isinstance(found, (Lacking, NotChecked)):
            lacking.append(replace(as_lacking(found), what=name))
        else:
            findings.extend(map(as_old, found))
    lacking.extend(caches.unreached(reading))
    lines, unfitted = lines_of(reading)
    parameters, without = parameters_of(reading)
    lacking.extend(Lacking(reason, what=f"lines through {names}") for names, reason in by_reason(unfitted))
    lacking.extend(Lacking(reason, what=names) for names, reason in by_reason(without))
    kinds = {finding.kind for finding in findings}
    lacking = [one for one in lacking if _FOUND_ELSEWHERE.get(one.what) not in kinds]
    if reading.curves and all(curve.oversubscribed for curve in reading.curves):
        lacking = [one if one.what in _OF_CROWDED else Lacking(_CROWDED, what=one.what) for one in lacking]
    findings = _without_repeats(findings)
    greatest: dict[str, float] = {}
    for finding in findings:
        greatest[finding.transport] = max(finding.effect, greatest.get(finding.transport, 0.0))
    findings.sort(key=lambda one: (not one.transport, -greatest[one.transport], one.transport, -one.effect))
    return Explanation(
        subject=reading.subject,
        findings=tuple(findings),
        lines=lines,
        loggp=parameters,
        layers=tuple(layers_of(reading)),
        lacking=tuple(lacking),
        notes=reading.notes,
        off_lines=tuple(off_lines_of(reading)),
    )


def _without_repeats(findings: list[Finding]) -> list[Finding]:
    """Of findings that say the same of one pattern with other options the greatest, which then counts the others.

    What is not of one number of ranks stands by itself.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        who = (finding.transport, finding.state, finding.sentence if finding.ranks is None else finding.ranks)
        key = (finding.kind, *who, finding.pattern.partition(" ")[0], finding.sizes_bytes)
        groups.setdefault(key, []).append(finding)
    return [replace(max(alike, key=lambda one: one.effect), more_alike=len(alike) - 1) for alike in groups.values()]
