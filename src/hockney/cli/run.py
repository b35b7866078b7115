"""`hockney run`: a suite or a pattern, with every wish."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli import complete
from hockney.cli.common import command

_EXAMPLES = """hockney run pingpong -t shm,tcp,mpi --bytes 1:1M --precision 1%
hockney run oneway -t mpi -o window=64 -o until=sent
hockney run my-suite.toml --launches 6 --label monday
hockney run --resume"""


@command("run", example=_EXAMPLES)
@click.argument(
    "what", metavar="[SUITE|PATTERN|FILE.toml]", required=False, shell_complete=complete.suites_and_patterns
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
    help="Start every job so often; a pattern alone: 6 times if there is time.",
)
@click.option("--hosts", multiple=True, metavar="HOST,…", help="Ranks on these hosts (MPI; tcp and udp through ssh).")
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
def run(*, as_json: bool, store: Path | None, what: str | None, resume: str | None, **wishes: object) -> int:
    """Measure a suite or a pattern.

    A suite is one of those that `hockney list suites` shows, or a file of one's own; a pattern alone is measured over
    all sizes, with more of them where the curve bends.
    """
    from hockney.cli.measuring import measure_and_show, resume_and_show
    from hockney.cli.wishes import find_suite, read_wishes
    from hockney.errors import UsageError

    if resume is not None:
        given = [name for name, value in wishes.items() if value]
        if what is not None or given:
            raise UsageError("--resume goes on with a run as it was begun: it takes no suite and no other wishes")
        return resume_and_show("run", resume, store=store, as_json=as_json)
    if what is None:
        raise UsageError("say what to run: a pattern, a suite or a file, for example: `hockney run pingpong`")
    label = wishes.pop("label")
    assert label is None or isinstance(label, str)
    return measure_and_show("run", find_suite(what), read_wishes(wishes), store=store, label=label, as_json=as_json)
