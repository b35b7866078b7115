"""Hosts of a run: where its ranks ran, clocks before and after it, and the tables of the suites clocks and health."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from hockney.analysis.clocks import ClockAround, Clocks, HostClock, Seen, clocks_around
from hockney.analysis.health import Health
from hockney.machine.files import format_cpus
from hockney.model import Launch
from hockney.report.document import Block, Column, Item, Sentence, Table, Text, Title, records
from hockney.report.documents.findings import finding_bullet, findings_json, gap_line, gaps_json
from hockney.report.pairs import HOSTS_MAX, host_values, pair_table
from hockney.report.table import TextTable, text_rows
from hockney.results.placement import Cores, cores_of_hosts, shared_cores
from hockney.results.runs import Run
from hockney.units import counted, format_duration_s, format_ns, format_rate

# ---- where ranks ran ------------------------------------------------------------------------------------------------


def bindings(run: Run) -> Iterator[Block]:
    """A row for each host of each job; launches that are alike are one."""
    cores = cores_of_hosts(run.facts)
    jobs = {
        (each.transport, each.hosts, each.cpus, each.bound): each
        for each in run.launches.values()
        if each.hosts and max(each.cpus, default=-1) >= 0
    }
    rows = [row for launch in jobs.values() for row in _rows(launch, cores)]
    if not rows:
        return
    yield Title("Where ranks ran")
    columns = [Column(name, key=name == "transport") for name in ("transport", "host", "ranks", "CPUs")]
    yield Table(columns, rows)
    if any("*" in row[-1] for row in rows):
        yield Text("*: on a core with another rank.", tone="quiet")


def _rows(launch: Launch, cores: Cores) -> Iterator[list[str]]:
    """A row for each host: its ranks, and their CPUs in that order."""
    shared = {rank for ranks in shared_cores(launch, cores) for rank in ranks}
    for host in dict.fromkeys(launch.hosts):
        ranks = [rank for rank, name in enumerate(launch.hosts) if name == host]
        cpus = [_cpu_text(launch, rank) + "*" * (rank in shared) for rank in ranks]
        yield [launch.transport, host, format_cpus(ranks), ", ".join(cpus)]


def _cpu_text(launch: Launch, rank: int) -> str:
    """`3`, or `3 of 0-7` of a rank that may move."""
    cpu = launch.cpus[rank]
    bound = launch.bound[rank] if rank < len(launch.bound) else ""
    text = "unknown" if cpu < 0 else str(cpu)
    return text if not bound or bound == text else f"{text} of {bound}"


# ---- clocks ---------------------------------------------------------------------------------------------------------

_MEANING = "+: ahead. Error: half the shortest round trip, which bounds it."


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{format_ns(abs(ns))}"


def _drift_text(clock: HostClock) -> str:
    if clock.drift_ppm is None:
        return ""
    return f"{clock.drift_ppm:+.2f} ppm ({clock.drift_low_ppm:+.2f} to {clock.drift_high_ppm:+.2f})"


_CLOCKS: dict[Column, Callable[[HostClock], str]] = {
    Column("host", key=True): lambda clock: clock.host,
    Column("clock", right=True, tone="strong"): lambda clock: (
        _signed(clock.ahead_ns) if clock.error_ns else "reference"
    ),
    Column("error", right=True): lambda clock: f"±{format_ns(clock.error_ns)}" if clock.error_ns else "",
    Column("drift (95 % interval)", right=True): lambda clock: _drift_text(clock) if clock.error_ns else "",
}


def clocks_document(clocks: Clocks) -> Iterator[Block]:
    """A row for each host; jobs within one host compare nothing, and are left out if others do."""
    jobs = [job for job in clocks.jobs if len(job.hosts) > 1] or clocks.jobs
    for job in jobs:
        what = f"Clocks compared with {job.hosts[0].host}, over {job.point.transport}"
        yield Title(f"{what}, {job.point.ranks_text}")
        yield records(_CLOCKS, job.hosts, fits=True)
    yield Sentence()
    yield Text(_MEANING, tone="quiet")


def _seen_text(seen: Seen | None) -> str:
    """`+12 us ±3 us`; empty of the reference."""
    return "" if seen is None or not seen.error_ns else f"{_signed(seen.ahead_ns)} ±{format_ns(seen.error_ns)}"


def _ppm_text(clock: ClockAround) -> str:
    if clock.drift_ppm is None or not clock.before.error_ns:
        return ""
    return f"{round(clock.drift_ppm, 2) + 0:+.2f} ppm ±{clock.drift_error_ppm:.2f}"  # + 0: not -0.00


_AROUND: dict[Column, Callable[[ClockAround], str]] = {
    Column("host", key=True): lambda clock: clock.host,
    Column("before", right=True): lambda clock: _seen_text(clock.before) or "reference",
    Column("after", right=True): lambda clock: _seen_text(clock.after),
    Column("drift", right=True): _ppm_text,
}


def clocks_around_document(run: Run) -> Iterator[Block]:
    """How the clocks of a run's hosts were before and after it, where they were compared."""
    clocks = clocks_around(run)
    if clocks:
        yield Title(f"Clocks compared with {clocks[0].host}, before and after the run")
        yield records(_AROUND, clocks, fits=True)
        yield Text(_MEANING, tone="quiet")


# ---- health ---------------------------------------------------------------------------------------------------------


def health_json(health: Health) -> dict[str, Any]:
    """Everything: `[from][to]`, null where nothing was measured."""
    known = health.matrices
    places = range(len(known.hosts))

    def square(values: Any, of: Any) -> list[list[float | None]]:
        return [[of(values[a, b]) if (a, b) in values else None for b in places] for a in places]

    return {
        "hosts": list(known.hosts),
        "pairs": known.pairs,
        "measured_pairs": known.measured,
        "usual_bytes_per_s": known.usual_bytes_per_s,
        "usual_ns": known.usual_ns,
        **{
            f"{name}{suffix}": square(values, of)
            for name, values in (("bytes_per_s", known.bytes_per_s), ("latency_ns", known.latency_ns))
            for suffix, of in (("", lambda v: v.value), ("_low", lambda v: v.low), ("_high", lambda v: v.high))
        },
        "lost_share": square(known.sent, lambda sent: sent.lost_share),
        "findings": findings_json(health.findings),
        "not_checked": gaps_json(health.not_checked),
    }


def health_document(run: Run, health: Health) -> Iterator[Block]:
    """The matrices, or of many hosts the slowest ones, and then what is wrong."""
    known = health.matrices
    yield Title(
        f"{counted(len(known.hosts), 'host')}, {known.measured:,} of {counted(known.pairs, 'pair')} measured "
        f"in {format_duration_s(run.measured_s)}"
    )
    if len(known.hosts) > HOSTS_MAX:
        yield _slowest(health)
    else:
        yield from (replace(pair_table(matrix), fits=False) for matrix in host_values(health))
    count = f"Findings: {len(health.findings)}"
    yield Title(count if health.findings or health.not_checked else "No fault found")
    yield from (finding_bullet([finding]) for finding in health.findings)
    if health.not_checked:
        yield Title("Not checked")
        for gap in health.not_checked:
            yield Item(gap_line(gap))


def _slowest(health: Health) -> TextTable:
    known = health.matrices
    rows = []
    for place, name in enumerate(known.hosts):
        sends, receives, waits = (
            [value.value for pair, value in values.items() if pair[end] == place]
            for values, end in ((known.bytes_per_s, 0), (known.bytes_per_s, 1), (known.latency_ns, 0))
        )
        if sends and receives and waits:
            rows.append((min(median(sends), median(receives)), name, median(sends), median(receives), median(waits)))
    title = "The slowest hosts by the median over those that they met; all pairs: --json"
    slowest = ((name, format_rate(a), format_rate(b), format_ns(wait)) for _, name, a, b, wait in sorted(rows)[:10])
    return TextTable(title, ("host", "sends", "receives", "latency"), text_rows(slowest), fits=False)
