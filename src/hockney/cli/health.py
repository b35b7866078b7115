"""`hockney health`: find the slow host, the bad cable and what else is wrong among hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli.common import (
    command,
    duration_option,
    file_option,
    host_options,
    label_option,
    limit_option,
    quiet_option,
    refuse_output,
    transport_option,
)
from hockney.errors import ExitCode, UsageError
from hockney.model import RunStatus
from hockney.render.json import print_json
from hockney.render.streams import remark
from hockney.report.commands import typed
from hockney.results.runs import Run
from hockney.units import ordinal

if TYPE_CHECKING:
    from hockney.analysis.health import Health
    from hockney.worker.catalogue import Catalogue


@command(
    "health",
    example="""hockney health --hosts 'n[1-8]'
    hockney health --hostfile hosts --time 10m --json
    hockney health --hostfile hosts --expect limits.toml
    hockney health --hostfile hosts -q --drain""",
    codes=(ExitCode.DONE, ExitCode.WORSE, ExitCode.USAGE, ExitCode.INCOMPLETE),
)
@host_options
@transport_option(default="tcp", help="The transport: tcp or an MPI. Only tcp counts lost packets. [default: tcp]")
@duration_option("--time", "time_s", help="Time for measuring. [default: 2m]")
@limit_option(help="Time limit of one measurement: more for a very slow host. [default: 4s-10s]")
@file_option("--topology", help="Slurm's topology.conf, or lines switch = hosts: name the switch of a shared fault.")
@label_option()
@quiet_option
@file_option("--expect", metavar="FILE.toml", help="Also check the limits of hosts in this file (docs/checking.md).")
@click.option("--drain", is_flag=True, help="Print only the commands that drain in Slurm the hosts of findings.")
@file_option("--bad-hosts", "output", help="Write the names of these hosts to FILE, one a line.")
def health(
    *,
    as_json: bool,
    store: Path | None,
    expect: Path | None,
    drain: bool,
    output: Path | None,
    transport: str,
    time_s: float | None,
    timeout_s: int | None,
    topology: Path | None,
    label: str | None,
    quiet: bool,
    **places: object,
) -> int:
    """Find the slow host, the bad cable, and what else is wrong among hosts.

    Measures all pairs of hosts, one rank on each, in rounds of disjoint pairs: the latency, the bandwidth in each
    direction while all pairs of a round are busy, and lost packets. If there are more pairs than fit the time, it
    measures whole rounds, so that every host meets as many others. docs/hosts.md describes each finding.
    """
    from hockney.analysis.health import health_of
    from hockney.analysis.health.topology import read_topology
    from hockney.cli.export import written
    from hockney.cli.measuring import measuring
    from hockney.cli.run_options import read_placement
    from hockney.measure.health import measure_health
    from hockney.render.text import say, show
    from hockney.report.documents.health import (
        bad_hosts,
        drain_lines,
        health_document,
        health_json,
        health_line,
        undrained,
    )
    from hockney.suites import load_suite
    from hockney.worker.catalogue import load
    from hockney.worker.hosts import current_allocation
    from hockney.worker.points import RunOptions

    if output is not None:
        hostfile = places.get("hostfile")
        refuse_output(
            "--bad-hosts", output, [path for path in (store, hostfile, topology, expect) if isinstance(path, Path)]
        )
    if drain and as_json:
        raise UsageError("--drain and --json are two outputs: choose one; --json has bad_hosts, too")
    limits = load_suite("health").limits(time_s=time_s, timeout_s=timeout_s)
    asked = RunOptions((transport,), placement=read_placement(places), limits=limits)
    if not asked.placement.hosts:
        job, why = current_allocation(), ""
        if job is not None and len(job.hosts) == 1:
            why = f"{job} has one host, and health compares several: ask for more ({job.asking}), or "
        raise UsageError(f"{why}name the hosts, for example: {typed('health', '--hosts', 'n[1-8]')}")
    switches = read_topology(topology, [host.name for host in asked.placement.hosts]) if topology is not None else {}
    if output is not None and output.is_file():
        output.unlink()  # a script must not take the names of an earlier run
    catalogue = load([transport] if expect is None else None)
    expected = [] if expect is None else _limits(expect, catalogue)
    with measuring("health", store, catalogue, quiet=quiet) as lab:
        outcome = measure_health(asked, lab, label=label, expected=expected, switches=switches)
        run = Run(lab.store, outcome.run_id)
        result = health_of(run)
        code = exit_code_of(result, is_done=outcome.status is RunStatus.DONE)
        if output is not None:
            with written(output) as stream:
                stream.writelines(f"{host}\n" for host in bad_hosts(result))
        if as_json:
            document = {"run": run.id, "store": str(lab.store.path), "health": health_json(result), "exit_code": code}
            print_json("health", document)
        elif drain:
            click.echo("".join(f"{line}\n" for line in drain_lines(result)), nl=False)
            if besides := undrained(result):
                remark(f"drains no host: {besides} ({typed('show', run.id)})")
        elif quiet:
            say(health_line(result, run))
        else:
            show(health_document(result, run))
        if not quiet:
            remark(f"\nSaved as run {run.id} in {lab.store.path}; the matrices again: {typed('show', run.id)}")
    return code


def _limits(path: Path, catalogue: Catalogue) -> list[dict[str, Any]]:
    """The tables of a file of expectations, all of hosts, as a plan stores them. Raises UsageError."""
    from hockney.analysis.expect import load_expectations

    tables = load_expectations(path, catalogue).expect
    if others := [number for number, table in enumerate(tables, start=1) if not table.hosts]:
        why = f'the {ordinal(others[0])} [[expect]] of {path} names no hosts: add for example hosts = "n[1-8]", or "*"'
        raise UsageError(why)
    return [table.model_dump(mode="json", by_alias=True, exclude_unset=True) for table in tables]


def exit_code_of(result: Health, *, is_done: bool = True) -> ExitCode:
    """1 for a fault; 3 where a host could not be used, or something is not clear or failed."""
    if result.has_fault:
        return ExitCode.WORSE
    return ExitCode.DONE if is_done and result.is_clear else ExitCode.INCOMPLETE
