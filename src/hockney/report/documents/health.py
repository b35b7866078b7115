"""The health of hosts as a document and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from hockney.analysis.clusters import Pair
from hockney.analysis.finding import Finding
from hockney.analysis.health import Health, health_of
from hockney.report.document import Block, Column, Item, Section, Table, Title
from hockney.report.documents.findings import finding_bullet, findings_json, gap_line, gaps_json
from hockney.report.documents.pairs import HOSTS_MAX, host_values, pair_block, square_json
from hockney.report.documents.runs import verdict_text
from hockney.report.documents.tables import TableKind
from hockney.report.findings import check_name, title_of
from hockney.results.runs import Run
from hockney.units import counted, format_duration_s, format_ns, format_rate

_ENDS = {"": "value", "_low": "low", "_high": "high"}
_FIGURES_MAX = 16  # hosts: more have a table of the slowest


def health_json(health: Health) -> dict[str, Any]:
    """Everything: `[from][to]`, null where nothing was measured."""
    known = health.matrices
    nodes = range(len(known.hosts))

    def square(values: Mapping[Pair, object], names: Mapping[str, str]) -> dict[str, list[list[float | None]]]:
        return square_json([[values.get((a, b)) for b in nodes] for a in nodes], names)

    return {
        "hosts": list(known.hosts),
        "pairs": known.pairs,
        "measured_pairs": known.measured,
        "usual_bytes_per_s": known.usual_bytes_per_s,
        "usual_ns": known.usual_ns,
        **square(known.bytes_per_s, {f"bytes_per_s{end}": of for end, of in _ENDS.items()}),
        **square(known.latency_ns, {f"latency_ns{end}": of for end, of in _ENDS.items()}),
        **square(known.sent, {"lost_share": "lost_share"}),
        "bad_hosts": bad_hosts(health),
        "findings": findings_json(health.findings),
        "not_checked": gaps_json(health.not_checked),
    }


def bad_hosts(health: Health) -> dict[str, str]:
    """Why each host that a finding is about should take no jobs, without those of a bad link or cable of several."""
    reasons: dict[str, list[str]] = {}
    for finding in health.findings:
        if "host" in finding.facts and "other" not in finding.facts:
            reasons.setdefault(str(finding.facts["host"]), []).append(title_of(finding))
    return {host: "; ".join(dict.fromkeys(titles)) for host, titles in reasons.items()}


def drain_lines(health: Health) -> list[str]:
    """The commands that take these hosts out of Slurm's nodes."""
    return [
        shlex.join(["scontrol", "update", f"NodeName={host}", "State=DRAIN", f"Reason=hockney: {reason}"])
        for host, reason in bad_hosts(health).items()
    ]


def undrained(health: Health) -> str:
    """What else is wrong or unclear, which drains no host; empty if nothing is."""
    drained = bad_hosts(health)
    return _titles(
        health, [each for each in health.findings if each.facts.get("host") not in drained or "other" in each.facts]
    )


def health_line(health: Health, run: Run) -> str:
    """`run 7: n3 is slow; 28 of 28 pairs of 8 hosts measured`."""
    known = health.matrices
    verdict = _titles(health, health.findings) if not health.is_clear else verdict_text(0, is_clear=True)
    hosts = counted(len(known.hosts), "host")
    return f"{run.name}: {verdict}; {known.measured:,} of {counted(known.pairs, 'pair')} of {hosts} measured"


def _titles(health: Health, findings: Iterable[Finding]) -> str:
    gaps = [f"{check_name(gap)}: {gap.reason.value}" for gap in health.not_checked]
    return "; ".join(dict.fromkeys([*map(title_of, findings), *gaps]))


def health_document(health: Health, run: Run) -> Iterator[Block]:
    """The matrices, or of many hosts the slowest ones, and then what is wrong."""
    known = health.matrices
    yield Title(
        f"{counted(len(known.hosts), 'host')}, {known.measured:,} of {counted(known.pairs, 'pair')} measured "
        f"in {format_duration_s(run.measured_s)}"
    )
    if len(known.hosts) <= HOSTS_MAX:
        yield from map(pair_block, host_values(health))
    if len(known.hosts) > _FIGURES_MAX:
        yield _slowest(health)
    count = len(health.findings)
    yield Title(f"Findings: {count}" if count else verdict_text(0, is_clear=health.is_clear).capitalize())
    yield from (finding_bullet([finding]) for finding in health.findings)
    if health.not_checked:
        yield Title("Not checked")
        for gap in health.not_checked:
            yield Item(gap_line(gap))


def _slowest(health: Health) -> Section:
    known = health.matrices
    rows = []
    for number, name in enumerate(known.hosts):
        sends, receives, waits = (
            [value.value for pair, value in values.items() if pair[end] == number]
            for values, end in ((known.bytes_per_s, 0), (known.bytes_per_s, 1), (known.latency_ns, 0))
        )
        if sends and receives and waits:
            rows.append((min(median(sends), median(receives)), name, median(sends), median(receives), median(waits)))
    title = "The slowest hosts by the median over those that they met; all pairs: --json"
    slowest = [(name, format_rate(a), format_rate(b), format_ns(wait)) for _, name, a, b, wait in sorted(rows)[:10]]
    columns = [Column("host"), *(Column(word, right=True) for word in ("sends", "receives", "latency"))]
    return Section(title, (Table(columns, slowest),))


KIND = TableKind(
    health_of,
    lambda health, run, *_: health_document(health, run),
    lambda health: {"health": health_json(health)},
    with_placement=False,
)
