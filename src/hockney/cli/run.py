"""`hockney run`: measure a suite or some patterns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from hockney.cli.common import (
    command,
    complete,
    count_of,
    dry_run_option,
    duration_option,
    file_option,
    label_option,
    limit_option,
    model_option,
    place_options,
    point_options,
    quiet_option,
    transports_option,
)
from hockney.units import LAUNCHES_MAX, parse_fraction


@command("run", example="hockney run pingpong -t shm,tcp,mpi --bytes 1:1M --precision 1%")
@click.argument("what", metavar="[SUITE|PATTERN,…|FILE.toml]", nargs=-1, shell_complete=complete("what"))
@transports_option(help="Transports: tcp, 'tcp*', mpi, mpi@openmpi. [default: the suite's]")
@model_option(help="Run on a model of a machine, as `hockney list machines` names it.")
@point_options
@click.option(
    "--precision",
    type=parse_fraction,
    metavar="PERCENT",
    help="End a point when its 95 % CI is within this. [default: 1%]",
)
@duration_option("--time", "time_s", help="Time for measuring. [default: 1m for each pattern]")
@click.option(
    "--launches",
    type=count_of("launches", LAUNCHES_MAX),
    metavar="NUMBER",
    help="At least this many launches, more while --time lasts. [patterns: 6]",
)
@place_options
@limit_option(help="Time limit of one measurement. [default: --time, but 20s to 60s]")
@click.option("--refine/--no-refine", default=None, help="Add sizes until the size of each jump is known exactly.")
@click.option("--oversubscribe", is_flag=True, help="Also run points with more ranks than CPUs.")
@click.option("--background", metavar="NAME[:N]", help="Also measure under incast, alltoall or bulk by N ranks.")
@label_option()
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Continue a run, or add launches to it.",
    shell_complete=complete("run"),
)
@file_option("--csv", help="Also write the figures to FILE, like `hockney export --csv`.")
@quiet_option
@dry_run_option
def run(
    *,
    as_json: bool,
    store: Path | None,
    what: tuple[str, ...],
    resume: str | None,
    csv: Path | None,
    quiet: bool,
    dry_run: bool,
    label: str | None,
    **words: object,
) -> int:
    """Measure a suite or some patterns."""
    from hockney.cli.measuring import OutputOptions, measure_and_show, resume_and_show, show_plan
    from hockney.cli.run_options import find_suite, read_limits, read_options
    from hockney.measure.plan import planned

    output = OutputOptions("run", store, as_json, quiet, csv)
    if resume is not None:
        return resume_and_show(resume, output)
    asked = read_options(words)
    suite = find_suite(",".join(what), on_hosts=bool(asked.placement.hosts) and asked.background is None)
    asked = replace(asked, limits=read_limits(suite, words))
    if dry_run:
        return show_plan(planned(suite, asked)[0], as_json=as_json)
    return measure_and_show(suite, asked, output, label=label)
