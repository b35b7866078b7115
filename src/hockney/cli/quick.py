"""`hockney quick`: the main job."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import command


@command("quick", example="hockney quick\nhockney quick --time 20s --label monday")
@click.option("--time", "time_", metavar="DURATION", help="How long to measure; 50s unless said otherwise.")
@click.option(
    "--cpus", multiple=True, metavar="CPU,…", help="Place ranks: rank 0 on the first CPU, and so on; 0,2 or 0-3."
)
@click.option(
    "-l",
    "--label",
    metavar="NAME",
    help="A name for this run, for later: hockney show NAME. Where several have it, it names the newest.",
)
def quick(*, as_json: bool, store: Path | None, time_: str | None, cpus: tuple[str, ...], label: str | None) -> int:
    """Measure this machine in about a minute, and print its data sheet.

    Measured are latency, bandwidth in one and in both directions, and barriers between two ranks, over every
    transport that can run here. The results are stored: `hockney show last` has all of them,
    and with --tables the sheet again.
    """
    from hockney.cli.measuring import Output, measure_and_show
    from hockney.cli.run_options import read_cpus
    from hockney.measure.plan import RunOptions
    from hockney.suites import load_suite
    from hockney.units import parse_duration_s

    wishes = RunOptions(time_s=None if time_ is None else parse_duration_s(time_), cpus=read_cpus(cpus))
    return measure_and_show("quick", load_suite("quick"), wishes, Output(as_json), store=store, label=label)
