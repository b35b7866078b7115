"""`hockney health`: find the slow host, the bad cable and what else is wrong among hosts."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import render
from hockney.cli.common import check_label, command, duration_option, host_options
from hockney.cli.complete import complete
from hockney.errors import ExitCode
from hockney.units import counted, format_duration_s, format_ns, format_rate

if TYPE_CHECKING:
    from hockney.analysis.health import Health
    from hockney.results.runs import Run

_MATRIX_MAX = 16  # hosts of a matrix on the screen
_ROWS_MAX = 10  # of what is listed in its place


@command(
    "health",
    example="hockney health --hosts 'n[1-8]'\nhockney health --hostfile hosts --time 10m --json",
    codes=(ExitCode.DONE, ExitCode.WORSE, ExitCode.USAGE, ExitCode.INCOMPLETE),
)
@functools.partial(host_options, has_per_node=False)
@click.option(
    "-t",
    "--transport",
    default="tcp",
    metavar="NAME",
    help="What carries the messages: tcp, or an MPI. Only tcp counts lost segments. [default: tcp]",
    shell_complete=complete("transport"),
)
@duration_option("--time", "time_s", help="Time for measuring. [default: 2m]")
@click.option("-l", "--label", metavar="NAME", help="A name for this run.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress, only the result.")
def health(
    *,
    as_json: bool,
    store: Path | None,
    transport: str,
    time_s: float | None,
    label: str | None,
    quiet: bool,
    **places: object,
) -> int:
    """Find the slow host, the bad cable, and what else is wrong among hosts.

    Measures all pairs of hosts, one rank on each, in rounds of disjoint pairs: the latency, the bandwidth in each
    direction while all pairs of a round are busy, and lost segments. If there are more pairs than fit the time, it
    measures whole rounds, so that every host meets as many others. docs/hosts.md describes each finding.
    """
    from hockney.analysis.health import health_of
    from hockney.cli.measuring import command_line, measuring
    from hockney.cli.progress import PairsDisplay
    from hockney.cli.rerun import typed
    from hockney.cli.run_options import read_launcher, read_places
    from hockney.cli.streams import remark
    from hockney.errors import UsageError
    from hockney.measure.health import measure_health
    from hockney.measure.plan import RunOptions
    from hockney.model import RunStatus
    from hockney.results.runs import Run
    from hockney.worker.hosts import parse_hosts

    hosts, _ = read_places(places)
    if not hosts:
        raise UsageError(f"name the hosts, for example: {typed('health', '--hosts', 'n[1-8]')}")
    check_label(label)
    asked = RunOptions(transports=(transport,), time_s=time_s, launcher=read_launcher(places))
    shown = measuring(store, create=True, quiet=quiet, words=[transport], make_display=PairsDisplay)
    with shown as (catalogue, results, display):
        outcome = measure_health(
            parse_hosts(",".join(hosts)), asked, catalogue, results, display,
            command=command_line("health"), label=label,
        )  # fmt: skip
        display.close()
        run = Run(results, outcome.run_id)
        found = health_of(run)
        code = exit_code_of(found, is_done=outcome.status is RunStatus.DONE)
        if as_json:
            document = {"run": run.id, "store": str(results.path), "health": health_json(found), "exit_code": int(code)}
            render.print_json("health", document)
        else:
            print_health(run, found)
        if not quiet:
            remark(
                f"\nSaved as run {run.id} in {results.path}; the matrices again: {typed('show', run.id, '--tables')}"
            )
    return code


def exit_code_of(found: Health, *, is_done: bool = True) -> ExitCode:
    """1 for a fault; 3 where a host could not be used, or something is not clear or failed."""
    if found.has_fault:
        return ExitCode.WORSE
    return ExitCode.DONE if is_done and not found.findings and not found.not_checked else ExitCode.INCOMPLETE


def health_json(found: Health) -> dict[str, Any]:
    """Everything: `[from][to]`, null where nothing was measured."""
    from hockney.cli.explain import findings_json, gaps_json

    known = found.matrices
    places = range(len(known.hosts))

    def square(values: Any, of: Any) -> list[list[float | None]]:
        return [[of(values[a, b]) if (a, b) in values else None for b in places] for a in places]

    return {
        "hosts": list(known.hosts),
        "pairs": known.pairs,
        "measured_pairs": known.measured,
        "usual_bytes_per_s": found.usual_bytes_per_s,
        "usual_ns": found.usual_ns,
        **{
            f"{name}{suffix}": square(values, of)
            for name, values in (("bytes_per_s", known.bytes_per_s), ("latency_ns", known.latency_ns))
            for suffix, of in (("", lambda v: v.value), ("_low", lambda v: v.low), ("_high", lambda v: v.high))
        },
        "lost_share": square(known.sent, lambda sent: sent.lost_share),
        "findings": findings_json(found.findings),
        "not_checked": gaps_json(found.not_checked),
    }


def print_health(run: Run, found: Health) -> None:
    """Print the matrices, or of many hosts the slowest ones, and then what is wrong."""
    from hockney.cli.explain import finding_lines
    from hockney.cli.rerun import fix_text

    known = found.matrices
    took_s = (run.finished_unix_s or run.info.started_unix_s) - run.info.started_unix_s
    render.title(
        f"{counted(len(known.hosts), 'host')}, {known.measured:,} of {counted(known.pairs, 'pair')} measured "
        f"in {format_duration_s(took_s)}",
        first=True,
    )
    if len(known.hosts) <= _MATRIX_MAX:
        _print_matrices(found)
    else:
        _print_slowest(found)
    count = f"Findings: {len(found.findings)}"
    render.title(count if found.findings or found.not_checked else "No fault found")
    for finding in found.findings:
        render.lines(finding_lines([finding]))
    if found.not_checked:
        render.title("Not checked")
        for gap in found.not_checked:
            how = f"; {fix_text(gap.how)}" if gap.how else ""
            render.item(f"{gap.what}: {gap.reason.value}: {gap.detail}{how}")


def _print_matrices(found: Health) -> None:
    known = found.matrices
    columns = [render.Column("from", key=True), *(render.Column(f"to {name}", right=True) for name in known.hosts)]
    places = range(len(known.hosts))
    parts = (
        ("Bandwidth, all pairs of a round at once", known.bytes_per_s, found.usual_bytes_per_s, format_rate),
        ("Latency of 8 B, half a round trip", known.latency_ns, found.usual_ns, format_ns),
    )
    for title, values, usual, text in parts:
        if usual is None:
            continue
        render.title(f"{title}: usually {text(usual)}")
        render.table(
            columns,
            ([known.hosts[a], *(text(values[a, b].value) if (a, b) in values else "" for b in places)] for a in places),
        )


def _print_slowest(found: Health) -> None:
    """The hosts that are slowest by their medians."""
    from statistics import median

    known = found.matrices
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
            render.Column("host", key=True),
            *(render.Column(head, right=True) for head in ("sends", "receives", "latency")),
        ],
        (
            [name, format_rate(sends), format_rate(receives), format_ns(waits)]
            for _, name, sends, receives, waits in sorted(rows)[:_ROWS_MAX]
        ),
    )
