"""The screen and the JSON of a health run, for `hockney health` and for `hockney show --tables`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hockney.cli import render
from hockney.units import counted, format_duration_s, format_ns, format_rate

if TYPE_CHECKING:
    from hockney.analysis.health import Health
    from hockney.report.table import TextTable
    from hockney.results.runs import Run


def health_json(health: Health) -> dict[str, Any]:
    """Everything: `[from][to]`, null where nothing was measured."""
    from hockney.cli.explain import findings_json, gaps_json

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


def print_health(run: Run, health: Health) -> None:
    """Print the matrices, or of many hosts the slowest ones, and then what is wrong."""
    from hockney.cli.explain import finding_lines, gap_line
    from hockney.report.pairs import HOSTS_MAX, host_values, pair_table

    known = health.matrices
    took_s = (run.finished_unix_s or run.info.started_unix_s) - run.info.started_unix_s
    render.title(
        f"{counted(len(known.hosts), 'host')}, {known.measured:,} of {counted(known.pairs, 'pair')} measured "
        f"in {format_duration_s(took_s)}",
        first=True,
    )
    if len(known.hosts) <= HOSTS_MAX:
        for table in map(pair_table, host_values(health)):
            render.title(table.title)
            print_pair_table(table)
    else:
        _print_slowest(health)
    count = f"Findings: {len(health.findings)}"
    render.title(count if health.findings or health.not_checked else "No fault found")
    for finding in health.findings:
        render.lines(finding_lines([finding]))
    if health.not_checked:
        render.title("Not checked")
        for gap in health.not_checked:
            render.item(gap_line(gap))


def print_pair_table(table: TextTable) -> None:
    """Print a matrix without its title."""
    key, *others = table.columns
    columns = [render.TableColumn(key, key=True), *(render.TableColumn(name, right=True) for name in others)]
    render.table(columns, table.texts)


def _print_slowest(health: Health) -> None:
    """The hosts that are slowest by their medians."""
    from statistics import median

    known = health.matrices
    rows = []
    for place, name in enumerate(known.hosts):
        sends, receives, waits = (
            [value.value for pair, value in values.items() if pair[end] == place]
            for values, end in ((known.bytes_per_s, 0), (known.bytes_per_s, 1), (known.latency_ns, 0))
        )
        if sends and receives and waits:
            rows.append((min(median(sends), median(receives)), name, median(sends), median(receives), median(waits)))
    render.title("The slowest hosts by the median over those that they met; all pairs: --json")
    render.table(
        [
            render.TableColumn("host", key=True),
            *(render.TableColumn(head, right=True) for head in ("sends", "receives", "latency")),
        ],
        (
            [name, format_rate(sends), format_rate(receives), format_ns(waits)]
            for _, name, sends, receives, waits in sorted(rows)[:10]
        ),
    )
