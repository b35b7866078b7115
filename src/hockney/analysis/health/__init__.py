"""The health of hosts, from a run of the suite `health`: faults of hosts and links as findings."""

from __future__ import annotations

from dataclasses import dataclass

from hockney.analysis.finding import Absence, Finding, Fix, NotChecked, Subject
from hockney.analysis.health import faults
from hockney.analysis.health.differences import differences
from hockney.analysis.health.matrices import SUITE, UNUSABLE, Matrices, matrices_of
from hockney.analysis.health.places import Located
from hockney.results.runs import Run

__all__ = ["CODES", "SUITE", "UNUSABLE", "Health", "Matrices", "health_of"]

CODES = frozenset(
    {f"{what} {where}" for what in ("slow", "late", "lossy") for where in ("host", "link", "uplink")}
    | {"differing hosts", "wrong clock", "unusable host"}
)
"""Those of all findings here."""


@dataclass(frozen=True)
class Health:
    """What is wrong with hosts, the worst first, and why no verdict was possible. None: not measured."""

    matrices: Matrices
    usual_bytes_per_s: float | None
    usual_ns: float | None
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]

    @property
    def has_fault(self) -> bool:
        """Whether anything but a host that could not be used was found."""
        return any(finding.code != "unusable host" for finding in self.findings)


def health_of(run: Run) -> Health:
    """Every fault that a run shows. Raises UsageError for a run of other hosts than the suite's."""
    known = matrices_of(run)
    slow, late = faults.slow_places(known), faults.late_places(known)
    lossy = faults.lossy_places(known, slow)
    findings = [
        *(_unusable(host, cause) for host, cause in run.info.plan.get(UNUSABLE, {}).items()),
        *faults.slow_findings(known, slow),
        *faults.late_findings(known, late),
        *faults.lossy_findings(known, lossy),
        *differences(run.facts.get("hosts", [])),
    ]
    located = {"bandwidth": slow, "latency": late, "lost messages": lossy}
    gaps = [_unclear(known, what, places) for what, places in located.items() if places.unclear]
    if not known.bytes_per_s:
        gaps.append(NotChecked(Absence.NOT_MEASURED, "bandwidth", "the time was up before a pair was measured"))
    return Health(
        matrices=known,
        usual_bytes_per_s=faults.usual_bytes_per_s(known),
        usual_ns=faults.usual_ns(known),
        findings=tuple(sorted(findings, key=lambda finding: -finding.effect)),
        not_checked=tuple(gaps),
    )


def _unusable(host: str, cause: str) -> Finding:
    fix = Fix("Make it reachable by ssh without a password, with hockney's folder at the same place")
    return Finding("unusable host", Subject(), {"host": host, "said": cause}, "", fix, 100.0)


def _unclear(known: Matrices, what: str, located: Located) -> NotChecked:
    names = dict.fromkeys(known.hosts[host] for pair in located.unclear for host in pair)
    pairs = ", ".join(f"{known.hosts[a]} to {known.hosts[b]}" for a, b in located.unclear[:3])
    more = f" and {len(located.unclear) - 3} more" if len(located.unclear) > 3 else ""
    if located.are_many:
        detail = (
            f"too many pairs differ from most for faults of single links, such as {pairs}{more}: is the network uneven?"
        )
        return NotChecked(Absence.INSUFFICIENT_DATA, what, detail)
    how = Fix("Measure these hosts longer", ("hockney", "health", "--hosts", ",".join(names), "--time", "10m"))
    return NotChecked(Absence.INSUFFICIENT_DATA, what, f"{pairs}{more} may be bad, with too few measurements", how)
