"""`hockney quick`: measure this machine and print its data sheet."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import command, duration_option, file_option, label_option, place_options, quiet_option


@command("quick", example="hockney quick\nhockney quick --time 20s --label monday\nhockney quick --cpus 0,2")
@duration_option("--time", "time_s", help="Time for measuring. [default: 50s]")
@place_options
@label_option(help="A name for this run: hockney show NAME shows it.")
@file_option("--report", help="Also write a report to FILE, *.html or *.md.")
@quiet_option
@click.option("-v", "--verbose", is_flag=True, help="Also print definitions, and every finding and caveat in full.")
def quick(
    *,
    as_json: bool,
    store: Path | None,
    time_s: float | None,
    label: str | None,
    report: Path | None,
    quiet: bool,
    verbose: bool,
    **places: object,
) -> int:
    """Measure this machine in about a minute, and print its data sheet.

    The sheet has the latency, the bandwidth in one and in both directions, and the barrier of two ranks over every
    transport that can run here. The run is stored: `hockney show last` shows the sheet again, with --all all of
    its figures. A label that several runs share names the newest.
    """
    from hockney.cli.measuring import OutputOptions, measure_and_show
    from hockney.cli.run_options import read_placement
    from hockney.suites import load_suite
    from hockney.worker.points import RunOptions

    suite = load_suite("quick")
    asked = RunOptions(placement=read_placement(places), limits=suite.limits(time_s=time_s))
    if asked.placement.hosts:  # within one host they show little, and would cost the other transports time
        suite = suite.model_copy(update={"transports": (*suite.transports, "udp", "pvm")})
    output = OutputOptions("quick", store, as_json, quiet, report=report, verbose=verbose)
    return measure_and_show(suite, asked, output, label=label)
