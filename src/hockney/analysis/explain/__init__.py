"""Findings, fits and layers of a run, as data. report/findings.py has the sentences.

`DETECTORS` has one record for each check. A finding is added by one record here, and its row in docs/explain.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hockney.analysis.explain import caches, laws, outliers, pattern_pairs, ranks, switches
from hockney.analysis.explain.curve import Parameters, Reading
from hockney.analysis.explain.fits import FittedLine, OffLine, lines_of, parameters_of
from hockney.analysis.explain.hardware_limits import hardware_limits
from hockney.analysis.explain.layers import Layer, layers_of
from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Absence, Detector, Finding, NotChecked, Note, Subject, as_warned, load_of
from hockney.analysis.health import health_of
from hockney.analysis.impact import greatest_impacts
from hockney.analysis.repeat import same_placement
from hockney.errors import Fix
from hockney.model import split_placed
from hockney.results.runs import Run

__all__ = ["DETECTORS", "Explanation", "FittedLine", "Layer", "OffLine", "Parameters", "explain", "explain_run"]

DETECTORS: tuple[Detector, ...] = (
    Detector("protocol switch", "protocol switches", switches.switches, "quick"),
    Detector("cache limit", "cache limits", caches.cache_limits, "quick"),
    Detector("flat latency", "flat latency", caches.flat, "quick"),
    Detector("duplex limit", "duplex limits", pattern_pairs.duplex, "quick"),
    Detector("shared path", "shared paths", pattern_pairs.shared_path),
    Detector("impact", "impacts of a background", lambda reading: greatest_impacts(reading.impacts, reading.facts)),
    Detector("broken scaling law", "scaling laws", laws.broken_laws),
    Detector("outliers", "outliers", outliers.outliers),
    Detector("bimodal", "groups of launches", outliers.bimodal),
    Detector("slow rank or pair", "slow links", ranks.slow_links),
    Detector("slow rank or pair", "slow ranks and pairs", ranks.slow_pairs, "allpairs"),
    Detector("slow host", "slow hosts", ranks.slow_hosts),
    Detector("yielding library", "yielding libraries", ranks.yields),
    Detector("far above the floor", "latency above the floor", ranks.above_floor, "quick"),
    Detector("hardware limit", "limits of the hardware", hardware_limits),
    Detector("slower than its parts", "collectives and their parts", pattern_pairs.slower_than_parts, "guidelines"),
)
# Findings that other programs on the CPUs may cause. Where such programs ran, one finding replaces all of these, except
# those that are `is_paired`: their factor is of measurements of the same rounds, in which both sides had the same load.
_OF_LOAD = frozenset(
    ("outliers", "bimodal", "slow size", "drift", "cache limit", "duplex limit", "slower than its parts")
)
# Facts that may differ where one thing is found twice.
_VARYING = frozenset(("load", "rounds", "points", "timed", "pairs", "class", "others", "level", "cache_bytes"))
SUITES = {detector.what: detector.suite for detector in DETECTORS if detector.suite} | {"LogGP": "loggp"}


@dataclass(frozen=True)
class Explanation:
    """All results of explain for a run or a machine; findings in the order of `_rank`, which every screen keeps.

    `oddities` are sentences on the published figures of a machine of the archive.
    """

    subject: str
    findings: tuple[Finding, ...] = ()
    lines: tuple[FittedLine, ...] = ()
    loggp: tuple[Parameters, ...] = ()
    layers: tuple[Layer, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    notes: tuple[Note, ...] = ()
    off_lines: tuple[OffLine, ...] = ()
    oddities: tuple[str, ...] = ()


def explain_run(run: Run, reading: Reading | None = None) -> Explanation:
    """Explain a run, or its `reading`; of `health` by its findings. Raises HockneyError if it has no interval."""
    if run.info.suite == "health":
        health = health_of(run)
        return Explanation(f"run {run.id}", findings=health.findings, not_checked=health.not_checked)
    explanation = explain(read_run(run) if reading is None else reading)
    if run.info.is_imported:  # which hockney cannot measure again
        by_hand = ((each, each.fix if each.fix and not each.fix.argv else None) for each in explanation.findings)
        return replace(explanation, findings=tuple(replace(finding, fix=fix) for finding, fix in by_hand))
    return replace(explanation, not_checked=tuple(_with_suite(gap, run) for gap in explanation.not_checked))


def _with_suite(gap: NotChecked, run: Run) -> NotChecked:
    """The check with the command of the suite that measures it, on the same models or hosts; not for that suite."""
    suite, info = SUITES.get(gap.what, ""), run.info
    if gap.how is not None or gap.reason is Absence.NOT_APPLICABLE or suite in ("", info.suite):
        return gap
    transports = dict.fromkeys(split_placed(series.point.transport)[0] for series in run.series)
    chosen = info.plan.get("virtual") or (transports if info.plan.get("hosts") else ())
    where = *(("-t", ",".join(chosen)) if chosen else ()), *same_placement(info.plan)
    return replace(gap, how=Fix("measure suite", ("hockney", "run", suite, *where), {"suite": suite}))


def explain(reading: Reading, detectors: Iterable[Detector] = DETECTORS) -> Explanation:
    """Run every detector, and fit lines and LogGP's parameters."""
    findings: list[Finding] = []
    gaps: dict[str, list[NotChecked]] = {}
    is_oversubscribed = bool(reading.curves) and all(curve.oversubscribed for curve in reading.curves)
    for detector in detectors:
        result = detector.find(reading)
        if not isinstance(result, NotChecked):
            findings.extend(result)
            continue
        if is_oversubscribed and detector.find is not ranks.yields:
            result = NotChecked(Absence.NOT_APPLICABLE, why="oversubscribed")
        gaps.setdefault(detector.code, []).append(replace(result, what=detector.what))
    lines, off_lines, without_lines = lines_of(reading)
    loggp, without_loggp = parameters_of(reading)
    codes = {finding.code for finding in findings}
    not_checked = [gap for code, of_code in gaps.items() if code not in codes for gap in of_code]
    return Explanation(
        subject=reading.subject,
        findings=_without_load(_once(findings), reading),
        lines=tuple(lines),
        loggp=tuple(loggp),
        layers=tuple(layers_of(reading)),
        not_checked=(*not_checked, *without_lines, *without_loggp),
        notes=reading.notes,
        off_lines=tuple(off_lines),
    )


def _without_load(findings: tuple[Finding, ...], reading: Reading) -> tuple[Finding, ...]:
    """The findings, with one in place of those that the load of other programs explains; others name it."""
    busy = load_of(reading.warnings)
    if busy is None:
        return findings
    seen = {"seen": busy.cause}
    named = [each for each in findings if each.code not in _OF_LOAD]
    named += [replace(each, facts={**each.facts, **seen}) for each in findings if each.facts.get("is_paired")]
    explained = [each for each in findings if each.code in _OF_LOAD and not each.facts.get("is_paired")]
    if explained:
        kinds = Counter(finding.code for finding in explained)
        facts = {"explained": [f"{code} ({count})" for code, count in kinds.items()], "findings": len(explained)}
        effect = max(each.effect for each in explained)
        named.insert(0, Finding("busy machine", Subject(), {**seen, **facts}, "", as_warned(busy.remedy), effect))
    return tuple(sorted(named, key=_rank))


def _rank(finding: Finding) -> tuple[object, ...]:
    """A sort key: problems first, between hosts before those within one, by the greatest effect."""
    return not finding.is_problem, _is_within_host(finding.subject), -finding.effect


def _once(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings in their order, without those that say the same as one before: of other numbers of ranks, say."""
    by_words: dict[object, Finding] = {}
    for finding in sorted(findings, key=_rank):
        about, facts = finding.subject, finding.facts.items()
        words = [str(fact) for name, fact in facts if isinstance(fact, str | int | list) and name not in _VARYING]
        where = about.transport, about.pattern.partition(" ")[0], about.state, _is_within_host(about)
        by_words.setdefault((finding.code, *where, *words), finding)
    return tuple(by_words.values())


def _is_within_host(subject: Subject) -> bool:
    """Whether all of its ranks fill one host of a run on several: `tcp/2` of two ranks."""
    per_host = split_placed(subject.transport)[1]
    return per_host.isdecimal() and subject.ranks is not None and subject.ranks <= int(per_host)
