"""The health of hosts as a document and as JSON."""

from __future__ import annotations

import heapq
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hockney.analysis.clusters import Pair
from hockney.analysis.finding import Finding
from hockney.analysis.health import SMALL, Health, health_of
from hockney.report.charts import PairValues
from hockney.report.commands import typed
from hockney.report.document import Block, Column, Item, Section, Table, Title
from hockney.report.documents.findings import finding_bullet, findings_json, gap_line, gaps_json
from hockney.report.documents.pairs import host_values, pair_block, square_json
from hockney.report.documents.runs import verdict_text
from hockney.report.documents.tables import TableKind
from hockney.report.findings import check_name, title_of
from hockney.results.runs import Run
from hockney.units import counted, format_duration_s, format_ns, format_rate

_ENDS = {"": "value", "_low": "low", "_high": "high"}
_FIGURES_MAX = 16  # hosts: more have a table of the slowest
_MATRIX_MAX = 32  # hosts: more have no matrix on a screen
_SLOWEST_MAX = 20  # hosts, and links
_OF_HOSTS = {"slow host", "late host", "lossy host", "wrong clock"}  # though most hosts of a switch have it


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
        for host in _to_drain(finding):
            reasons.setdefault(host, []).append(title_of(finding))
    return {host: "; ".join(dict.fromkeys(titles)) for host, titles in reasons.items()}


def _to_drain(finding: Finding) -> list[str]:
    """The hosts that a finding is about; none of a link, of a cable of several, or of all with one speed.

    Those of a switch only if they have the fault among themselves, or each by itself.
    """
    facts = finding.facts
    if "switch" in facts:
        return facts["hosts"] if finding.code in _OF_HOSTS else []
    return [facts["host"]] if "host" in facts and "other" not in facts else []


def drain_lines(health: Health) -> list[str]:
    """The commands that take these hosts out of Slurm's nodes."""
    return [
        shlex.join(["scontrol", "update", f"NodeName={host}", "State=DRAIN", f"Reason=hockney: {reason}"])
        for host, reason in bad_hosts(health).items()
    ]


def undrained(health: Health) -> str:
    """What else is wrong or unclear, which drains no host; empty if nothing is."""
    return _titles(health, [each for each in health.findings if not _to_drain(each)])


def health_line(health: Health, run: Run) -> str:
    """`run 7: n3 is slow; 28 of 28 pairs of 8 hosts measured`."""
    known = health.matrices
    verdict = _titles(health, health.findings) if not health.is_clear else verdict_text(0, is_clear=True)
    hosts = counted(len(known.hosts), "host")
    return f"{run.name}: {verdict}; {known.measured:,} of {counted(known.pairs, 'pair')} of {hosts} measured"


def _titles(health: Health, findings: Iterable[Finding]) -> str:
    gaps = [f"{check_name(gap)}: {gap.reason.value}" for gap in health.not_checked if gap.why not in SMALL]
    return "; ".join(dict.fromkeys([*map(title_of, findings), *gaps]))


def health_document(health: Health, run: Run) -> Iterator[Block]:
    """The matrices, or of many hosts the slowest ones, and then what is wrong."""
    known = health.matrices
    yield Title(
        f"{counted(len(known.hosts), 'host')}, {known.measured:,} of {counted(known.pairs, 'pair')} measured "
        f"in {format_duration_s(run.measured_s)}"
    )
    values = list(host_values(health))
    if len(known.hosts) <= _MATRIX_MAX:
        yield from map(pair_block, values)
    if len(known.hosts) > _FIGURES_MAX and len(values) == 2:
        yield from _slowest(health, *values)
    count = len(health.findings)
    yield Title(f"Findings: {count}" if count else verdict_text(0, is_clear=health.is_clear).capitalize())
    yield from map(finding_bullet, _by_fix(health.findings))
    if health.not_checked:
        yield Title("Not checked")
        for gap in health.not_checked:
            yield Item(gap_line(gap))


def _by_fix(findings: Iterable[Finding]) -> Iterable[Sequence[Finding]]:
    """Findings about one host together where one fix is for all, which is then said once."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        is_of_host = finding.fix is not None and "host" in finding.facts and "other" not in finding.facts
        groups.setdefault((finding.facts["host"], finding.fix) if is_of_host else number, []).append(finding)
    return groups.values()


def _slowest(health: Health, of_rates: PairValues, of_waits: PairValues) -> Iterator[Section]:
    """The slowest half of the hosts, and where there is no matrix the slowest links of hosts without a finding."""
    import numpy as np

    known, rates, waits = health.matrices, of_rates.values, of_waits.values
    has_values = [np.isfinite(each).any(axis=axis) for each, axis in ((rates, 1), (rates, 0), (waits, 1))]
    met = np.flatnonzero(np.logical_and.reduce(has_values))
    medians = zip(met, *(np.nanmedian(each[met], axis=1).tolist() for each in (rates, rates.T, waits)), strict=True)
    rows = sorted(
        (min(sends, receives), known.hosts[at], sends, receives, wait) for at, sends, receives, wait in medians
    )
    columns = [Column("host"), *(Column(word, right=True) for word in ("sends", "receives", "latency"))]
    hosts = [(name, format_rate(a), format_rate(b), format_ns(wait)) for _, name, a, b, wait in rows]
    title = "The slowest hosts by the median over those that they met; all pairs: --json"
    yield Section(title, (Table(columns, hosts[: min(_SLOWEST_MAX, len(known.hosts) // 2)]),))
    if len(known.hosts) > _MATRIX_MAX:
        named = bad_hosts(health)
        bad = {number for number, name in enumerate(known.hosts) if name in named}
        links = ((rate.value, a, b) for (a, b), rate in known.bytes_per_s.items() if bad.isdisjoint((a, b)))
        slowest = [
            (known.hosts[a], known.hosts[b], format_rate(rate), format_ns(float(waits[a, b])))
            for rate, a, b in heapq.nsmallest(_SLOWEST_MAX, links)
        ]
        heads = [Column("from"), Column("to", key=True), Column("bandwidth", right=True), Column("latency", right=True)]
        title = f"The slowest links{' of the other hosts' * bool(bad)}; a heat map of all: {typed('report')}"
        yield Section(title, (Table(heads, slowest),))


KIND = TableKind(
    health_of,
    lambda health, run, *_: health_document(health, run),
    lambda health: {"health": health_json(health)},
    with_placement=False,
)
