"""`hockney run`: a suite or a pattern, with every wish."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli import complete
from hockney.cli.common import command

_EXAMPLES = """hockney run pingpong -t shm,tcp,mpi --bytes 1:1M --precision 1%
hockney run pingpong,oneway -t shm,tcp --csv figures.csv
hockney run oneway -t mpi -o window=64 -o until=sent
hockney run my-suite.toml --launches 6 --label monday
hockney run --resume"""


@command("run", example=_EXAMPLES)
@click.argument(
    "what", metavar="[SUITE|PATTERN,…|FILE.toml]", required=False, shell_complete=complete.suites_and_patterns
)
@click.option(
    "-t",
    "--transport",
    multiple=True,
    metavar="NAME,…",
    help="Transports: tcp, tcp:spin, 'tcp*' (all of them), mpi, mpi@openmpi …; a suite's own, or shm and every MPI.",
    shell_complete=complete.transports,
)
@click.option("-n", "--ranks", multiple=True, metavar="N,…", help="Numbers of ranks.")
@click.option(
    "--bytes",
    "sizes",
    multiple=True,
    metavar="SIZES",
    help="Message sizes: 8, 0,8,1K or 1:1M for its powers of two.",
)
@click.option("-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the pattern.")
@click.option(
    "--precision", metavar="PERCENT", help="End a point when its 95 % interval is within this; 1% if not said."
)
@click.option("--time", "time_", metavar="DURATION", help="Stop measuring after this long.")
@click.option(
    "--launches",
    metavar="NUMBER",
    help="Number of launches per job, and more while points are not precise (default: 6 for a pattern alone, time "
    "permitting; else 1).",
)
@click.option("--hosts", multiple=True, metavar="HOST,…", help="Ranks on these hosts (MPI; tcp and udp through ssh).")
@click.option(
    "--cpus", multiple=True, metavar="CPU,…", help="Place ranks: rank 0 on the first CPU, and so on; 0,2 or 0-3."
)
@click.option(
    "--limit",
    metavar="DURATION",
    help="Time limit of a measurement (else as --time, from 20s to 60s) and of a job's start (10s at least, else 60s).",
)
@click.option(
    "--refine/--no-refine",
    default=None,
    help="Add sizes until each jump lies between two neighbours, as close as the pattern's sizes can lie (mostly 1 B).",
)
@click.option("--oversubscribe", is_flag=True, help="Run points with more ranks than CPUs too.")
@click.option(
    "-l",
    "--label",
    metavar="NAME",
    help="A name for this run. Where several have it, NAME is the newest and NAME~1 the one before.",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="last",
    metavar="[RUN]",
    help="Go on with a run that was stopped, or whose time was up; what failed in it stays so.",
    shell_complete=complete.runs,
)
@click.option(
    "--csv",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the figures to this file, as `hockney export --csv` does.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress, only the result.")
@click.option("--dry-run", is_flag=True, help="Show what would be measured and how long it takes; measure nothing.")
def run(
    *,
    as_json: bool,
    store: Path | None,
    what: str | None,
    resume: str | None,
    csv: Path | None,
    quiet: bool,
    dry_run: bool,
    **wishes: object,
) -> int:
    """Measure a suite or some patterns.

    A suite is one of those that `hockney list suites` shows, or a file of your own. Patterns that you name, with
    commas between them, are measured over all sizes, with more sizes where a curve bends.
    """
    from hockney.cli.measuring import Output, measure_and_show, resume_and_show
    from hockney.cli.run_options import find_suite, read_wishes
    from hockney.errors import UsageError

    if resume is not None:
        if what is not None or dry_run or any(wishes.values()):
            raise UsageError(
                "--resume continues a run with its original settings; it cannot be combined with a suite or other "
                "options than --csv and --quiet"
            )
        return resume_and_show("run", resume, Output(as_json, quiet, csv), store=store)
    if what is None:
        raise UsageError("say what to run: a pattern, a suite or a file, for example: `hockney run pingpong`")
    label = wishes.pop("label")
    if dry_run and (csv is not None or label is not None):
        raise UsageError("--dry-run measures nothing and stores nothing: leave out --csv and --label")
    assert label is None or isinstance(label, str)
    suite, asked = find_suite(what), read_wishes(wishes)
    if dry_run:
        from hockney.cli.dry_run import show_plan

        return show_plan(suite, asked, as_json=as_json)
    return measure_and_show("run", suite, asked, Output(as_json, quiet, csv), store=store, label=label)
